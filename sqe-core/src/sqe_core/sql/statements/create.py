"""CREATE of schemas and views; tables are in create_table.py."""

from __future__ import annotations

from typing import Literal

from sqe_core.sql.statement import CreateSchema, CreateView, Statement
from sqe_core.sql.statements.attach import at_secret, create_secret, refuse_create_catalog
from sqe_core.sql.statements.create_table import create_table
from sqe_core.sql.statements.policies import create_policy
from sqe_core.sql.statements.roles import create_role
from sqe_core.sql.text.clauses import property_list
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind

_HINTS = {
    "index": "Iceberg tables have no indexes; partition the table or write it sorted",
    "unique": "Iceberg tables have no indexes; partition the table or write it sorted",
    "function": "SQE has no functions of users; write the expression in a view",
    "aggregate": "SQE has no functions of users",
    "macro": "SQE has no functions of users; write the expression in a view",
    "sequence": "SQE has no sequences; use row_number() or uuid()",
    "type": "SQE has no types of users; write ROW(…)",
    "procedure": "SQE has no stored procedures",
    "external": "every table is an Iceberg table; leave EXTERNAL out",
    "user": "users come from the identity provider",
    "trigger": "SQE has no triggers",
    "role": "a role has nothing to replace; leave OR REPLACE out",
    "global": "use CREATE TEMPORARY VIEW",
    "streaming": None,
    "live": None,
    "extension": None,
    "masking": "use CREATE POLICY p ON TABLE t COLUMN MASK …",
}


def create(statement: StatementText) -> Statement:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW, CREATE SCHEMA, CREATE TABLE, CREATE POLICY, ROLE, SECRET."""
    cursor = statement.cursor(1)
    replace = cursor.accept("or", "replace")
    if cursor.at("materialized"):
        cursor.refuse("SQE has no materialized views", hint="create a table with CREATE TABLE … AS SELECT")
    if cursor.at_any("temp", "temporary") and cursor.peek().is_word("table"):
        cursor.refuse("SQE has no temporary tables", hint="use CREATE TEMPORARY VIEW")
    if at_secret(cursor):
        return create_secret(statement, cursor, replace=replace)
    temporary = cursor.accept_any("temp", "temporary") is not None
    if cursor.accept("view"):
        return _view(statement, cursor, replace=replace, temporary=temporary)
    if temporary:
        cursor.fail("VIEW")
    if cursor.accept("table"):
        return create_table(statement, cursor, replace=replace)
    if cursor.accept_any("schema", "database", "namespace"):
        return _schema(cursor)
    if cursor.accept("policy"):
        return create_policy(statement, cursor, replace=replace)
    if not replace and cursor.accept("role"):
        return create_role(cursor)
    if cursor.at("catalog"):
        refuse_create_catalog(statement, cursor)
    word = cursor.token.value
    if word in _HINTS and cursor.token.kind is Kind.WORD:
        cursor.refuse(f"CREATE {word.upper()} is not supported", hint=_HINTS[word])
    cursor.fail("TABLE, VIEW or SCHEMA")


def _schema(cursor: Cursor) -> Statement:
    if_not_exists = cursor.if_not_exists()
    name = cursor.name("the name of a schema", most=2)
    location: str | None = None
    properties: dict[str, str] = {}
    while not cursor.at_end:
        if cursor.accept("location"):
            location = cursor.string()
        elif cursor.accept("comment"):
            properties["comment"] = cursor.string()
        elif cursor.accept("authorization"):
            cursor.refuse("CREATE SCHEMA … AUTHORIZATION is not supported", hint="the schema belongs to its creator")
        elif cursor.accept("with"):
            cursor.accept_any("dbproperties", "properties")
            for one in property_list(cursor):
                if one.key == "location" and isinstance(one.value, str):
                    location = one.value
                elif isinstance(one.value, str):
                    properties[one.key] = one.value
                else:
                    cursor.refuse(f"The property {one.key} needs a string", at=one.at)
        else:
            cursor.fail("LOCATION, COMMENT or WITH")
    return CreateSchema(name=name, if_not_exists=if_not_exists, location=location, properties=properties)


def _view(statement: StatementText, cursor: Cursor, *, replace: bool, temporary: bool) -> Statement:
    if_not_exists = cursor.if_not_exists(replace=replace)
    name = cursor.name("the name of a view", most=1 if temporary else 3)
    columns = tuple(cursor.bracketed(_view_column)) if cursor.at_symbol("(") else ()
    comment: str | None = None
    security: Literal["definer", "invoker"] = "invoker"
    while not cursor.at("as"):
        if cursor.accept("comment"):
            comment = cursor.string()
        elif cursor.accept("security"):
            if cursor.accept("definer"):
                security = "definer"
            else:
                cursor.expect("invoker")
        elif cursor.at_any("tblproperties", "with", "options", "using", "location"):
            cursor.refuse(f"{cursor.token.value.upper()} is not supported in CREATE VIEW")
        else:
            cursor.fail("AS")
    cursor.expect("as")
    if cursor.at_end:
        cursor.fail("SELECT")
    query = statement.engine.query(statement, cursor.index, statement.last)
    if query.parameters:
        cursor.refuse("A view cannot hold parameters", hint="write the values into its query")
    return CreateView(
        name=name,
        query=query,
        columns=columns,
        comment=comment,
        security=security,
        replace=replace,
        if_not_exists=if_not_exists,
        temporary=temporary,
    )


def _view_column(cursor: Cursor) -> tuple[str, str | None]:
    return cursor.part("the name of a column"), cursor.string() if cursor.accept("comment") else None
