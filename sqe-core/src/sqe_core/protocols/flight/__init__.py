"""Arrow Flight SQL, a plugin like any other: it sees `sqe_core.spi` and nothing of the core behind it.

plugin.py       registers the protocol, and its settings
server.py       the gRPC server: ports, TLS, limits, drain
rpcs.py         the ten calls of Flight: signs in, dispatches, turns errors into statuses
sign_in.py      who calls, from headers, cookies and certificates
statements.py   statements, prepared statements, updates, ingest
metadata.py     catalogs, schemas, tables, keys; sql_info.py and type_info.py what the server is like
handles.py      tickets and prepared statements: random, bound to their owner, bounded, expiring
messages.py     Arrow batches as Flight messages and back
wire/           the messages of Flight and Flight SQL
"""
