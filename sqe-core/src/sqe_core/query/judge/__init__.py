"""Steps 3 to 7 for what Spark runs: its parsed plan is inspected, bound to objects, decided, secured and verified.

All of this is about Spark's plans: the names of their nodes, functions and fields are those of Spark 4.1, the lists in
`allowed/` too. Another engine needs a room of its own beside this one, behind the same `Judge`.
"""
