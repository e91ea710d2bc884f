"""The built-in policy engine `grants`: a durable store of grants, roles and policies, and what follows from it.

factory.py      what `[policy.grants]` says, and the kinds `grants` and `in-memory`
enforcer.py     the capabilities of the SPI on top of a store
changes.py      what each statement does to the records
evaluation.py   what the records mean for one access
state.py        the records in memory, indexed by name
records.py      the records as JSON
store.py        versions, transactions, audit: the part that SQLite and PostgreSQL share
"""
