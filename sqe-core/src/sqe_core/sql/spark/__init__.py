"""From the tree to Spark SQL: functions, rewrites, and a rule for each node that may be written."""
