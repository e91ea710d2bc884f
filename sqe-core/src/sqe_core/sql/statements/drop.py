"""DROP of tables, views, schemas and what else there is."""

from __future__ import annotations

from sqe_core.sql.statement import DropSchema, DropTable, DropView, Name, NoOperation, Statement, StatementKind
from sqe_core.sql.statements.attach import at_secret, drop_secret
from sqe_core.sql.statements.policies import drop_policy
from sqe_core.sql.statements.roles import drop_role
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor

_HINTS = {
    "index": "Iceberg tables have no indexes",
    "function": "SQE has no functions of users",
    "sequence": "SQE has no sequences",
    "type": "SQE has no types of users",
    "procedure": "SQE has no stored procedures",
    "catalog": "what was attached is taken away with DETACH name",
    "masking": "use DROP POLICY p",
    "user": "users come from the identity provider",
}


def drop(statement: StatementText) -> Statement:
    """DROP TABLE, VIEW, SCHEMA, ROLE, POLICY, SECRET; DROP MATERIALIZED VIEW IF EXISTS does nothing."""
    cursor = statement.cursor(1)
    if cursor.accept("table"):
        return _table(cursor)
    if cursor.accept("view"):
        if_exists = cursor.if_exists()
        name = _one(cursor, "the name of a view")
        cursor.done()
        return DropView(name=name, if_exists=if_exists)
    if cursor.accept_any("schema", "database", "namespace"):
        return _schema(cursor)
    if cursor.accept("materialized", "view"):
        if not cursor.if_exists():
            cursor.refuse("SQE has no materialized views", at=cursor.peek(-1))
        cursor.name("the name of a view")
        cursor.done()
        return NoOperation(kind=StatementKind.DROP_VIEW)
    if cursor.accept("role"):
        return drop_role(cursor)
    if cursor.accept("policy"):
        return drop_policy(cursor)
    if at_secret(cursor):
        return drop_secret(statement, cursor)
    word = cursor.token.value
    if word in _HINTS:
        cursor.refuse(f"DROP {word.upper()} is not supported", hint=_HINTS[word])
    cursor.fail("TABLE, VIEW or SCHEMA")


def _table(cursor: Cursor) -> Statement:
    if_exists = cursor.if_exists()
    name = _one(cursor, "the name of a table")
    purge = cursor.accept("purge")
    if cursor.at("cascade"):
        cursor.refuse(
            "DROP TABLE … CASCADE is not supported", hint="views that use the table stay; drop them one by one"
        )
    cursor.done()
    return DropTable(name=name, if_exists=if_exists, purge=purge)


def _schema(cursor: Cursor) -> Statement:
    if_exists = cursor.if_exists()
    name = _one(cursor, "the name of a schema", most=2)
    cascade = cursor.accept("cascade")
    if not cascade:
        cursor.accept("restrict")
    cursor.done()
    return DropSchema(name=name, if_exists=if_exists, cascade=cascade)


def _one(cursor: Cursor, what: str, *, most: int = 3) -> Name:
    name = cursor.name(what, most=most)
    if cursor.at_symbol(","):
        cursor.refuse("One DROP takes one name", hint="send one statement for each")
    return name
