"""Steps 3 to 7 for what Spark runs: its parsed plan is inspected, bound to objects, decided, secured and verified.

    judge.py                       the way of a statement, and of each text in it
    inspect.py, amplifiers.py,
      table_clauses.py             3: what a plan may hold; the lists are in allowed/
    bind.py, names.py              4: what its names mean
    reads.py, views.py, targets.py 6: what becomes of a table that is read, of a view, of what is written
    restrict.py, mappings.py,
      relation_text.py             the filters and masks of a policy, what they look up, and the text of what is secured
    promise.py, verify.py          7: what was promised, and whether the analysed plan keeps it
    facts.py, sights.py            what others want to know: of a statement, of views in listings

All of this is about Spark's plans: the names of their nodes, functions and fields are those of Spark 4.1, the lists in
`allowed/` too. Another engine needs a room of its own beside this one, behind the same `Judge`.
"""
