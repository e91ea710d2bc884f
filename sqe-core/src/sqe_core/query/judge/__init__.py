"""Steps 3 to 7 for what Spark runs: its parsed plan is inspected, bound to objects, decided, secured and verified."""
