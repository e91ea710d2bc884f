"""CREATE TABLE, CREATE TABLE … AS and CREATE TABLE … LIKE, composed for Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sqe_core.sql.grammar.types import SqlType
from sqe_core.sql.spark.text import quote_properties, quote_string
from sqe_core.sql.statement import CreateTableLike, Statement, StatementKind
from sqe_core.sql.statements.trino_properties import ICEBERG_NAMES, REFUSED, property_value, sort_field
from sqe_core.sql.text.clauses import (
    MarkedName,
    Property,
    column,
    literal,
    map_entries,
    marked_name,
    property_list,
    transform,
    transform_text,
)
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind, outside_brackets

FORMAT_VERSION = "format-version"
_DEFAULTS_NEED = 3  # the format version that stores default values

SORTED_BY = "sqe.sorted-by"  # read by the engine's side of catalogs, and kept as the table's sort order
_CONSTRAINTS = ("primary", "unique", "foreign", "check", "constraint", "references", "generated", "identity", "collate")


@dataclass
class _Table:
    name: MarkedName
    replace: bool
    if_not_exists: bool
    columns: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    partitioning: list[str] = field(default_factory=list)
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    has_default: bool = False


def create_table(statement: StatementText, cursor: Cursor, *, replace: bool) -> Statement:
    """Read what follows CREATE [OR REPLACE] TABLE."""
    if statement.dialect is Dialect.SPARK:
        return _unchanged(statement, cursor)
    if_not_exists = cursor.if_not_exists()
    table = _Table(marked_name(cursor), replace, if_not_exists)
    if cursor.at("like") or (cursor.at_symbol("(") and cursor.peek().is_word("like")):
        return _like(statement, cursor, table)
    if cursor.at_symbol("("):
        _columns(statement, cursor, table)
    _clauses(statement, cursor, table)
    if cursor.accept("as"):
        return _as_query(statement, cursor, table)
    cursor.done()
    if table.aliases or not table.columns:
        cursor.fail("AS and a query" if table.aliases else "the columns in brackets, or AS and a query")
    return statement.engine.composed(statement, StatementKind.CREATE_TABLE, _head(cursor, table, "CREATE TABLE"))


def _unchanged(statement: StatementText, cursor: Cursor) -> Statement:
    queried = any(token.is_word("as") for token in outside_brackets(statement.tokens[cursor.index :]))
    kind = StatementKind.CREATE_TABLE_AS if queried else StatementKind.CREATE_TABLE
    return statement.engine.unchanged(statement, kind)


def _head(cursor: Cursor, table: _Table, words: str) -> str:
    if table.replace:
        words = words.replace("CREATE", "CREATE OR REPLACE")
        if table.if_not_exists:
            cursor.refuse("OR REPLACE and IF NOT EXISTS exclude each other", at=cursor.tokens[1])
    pieces = [words, " IF NOT EXISTS" if table.if_not_exists else "", f" {table.name.sql}"]
    if table.columns:
        pieces.append(f" ({', '.join(table.columns)})")
    if table.partitioning:
        pieces.append(f" PARTITIONED BY ({', '.join(table.partitioning)})")
    if table.comment is not None:
        pieces.append(f" COMMENT {quote_string(table.comment)}")
    if table.has_default:
        version = table.properties.setdefault(FORMAT_VERSION, str(_DEFAULTS_NEED))
        if version in ("1", "2"):
            cursor.refuse(
                f"DEFAULT needs format version {_DEFAULTS_NEED}", hint="leave format_version out", at=cursor.tokens[0]
            )
    if table.properties:
        pieces.append(f" TBLPROPERTIES {quote_properties(table.properties)}")
    return "".join(pieces)


def _columns(statement: StatementText, cursor: Cursor, table: _Table) -> None:
    if any(cursor.peek(2).is_symbol(symbol) for symbol in (",", ")")):
        table.aliases = cursor.bracketed(column)
    else:
        table.columns = cursor.bracketed(lambda cursor: _column(statement, cursor, table))


def _column(statement: StatementText, cursor: Cursor, table: _Table) -> str:
    if cursor.at("like"):
        cursor.refuse("LIKE beside columns is not supported", hint="name all columns")
    if cursor.at_any(*_CONSTRAINTS) and cursor.peek().kind is not Kind.SYMBOL and _is_constraint(cursor):
        _refuse_constraint(cursor)
    written = f"{column(cursor)} {stored_type(statement, cursor)}"
    while not (cursor.at_symbol(",") or cursor.at_symbol(")")):
        if cursor.accept("not", "null"):
            written += " NOT NULL"
        elif cursor.accept("null"):
            continue
        elif cursor.accept("default"):
            written += f" DEFAULT {literal(statement, cursor, 'A default')}"
            table.has_default = True
        elif cursor.accept("comment"):
            written += f" COMMENT {quote_string(cursor.string())}"
        elif cursor.at_any(*_CONSTRAINTS):
            _refuse_constraint(cursor)
        else:
            cursor.fail('"," or ")"')
    return written


def _is_constraint(cursor: Cursor) -> bool:
    following = cursor.peek()
    return cursor.at("constraint") or (following.kind is Kind.WORD and following.value == "key")


def _refuse_constraint(cursor: Cursor) -> None:
    cursor.refuse(
        f"{cursor.token.value.upper()} is not supported: Iceberg tables have no constraints but NOT NULL",
        hint="leave it out",
    )


def stored_type(statement: StatementText, cursor: Cursor) -> str:
    """Read the type of a column; return it for Spark."""
    at = cursor.token
    result = statement.read_type(cursor)
    unstored = _unstored(result)
    if unstored is not None:
        cursor.refuse(f"A column cannot have the type {unstored.upper()}", at=at)
    return result.spark(stored=True)


def _unstored(column_type: SqlType) -> str | None:
    if column_type.name.startswith("interval") or column_type.name.endswith("_ns"):
        return column_type.name
    return next((found for found in map(_unstored, column_type.elements) if found is not None), None)


def _clauses(statement: StatementText, cursor: Cursor, table: _Table) -> None:
    while not cursor.at_end and not cursor.at("as"):
        if cursor.accept("comment"):
            table.comment = cursor.string()
        elif cursor.accept("partitioned", "by"):
            table.partitioning += cursor.bracketed(transform)
        elif cursor.accept("with") or cursor.accept("tblproperties"):
            for one in property_list(cursor):
                _property(cursor, table, one)
        elif cursor.at("using"):
            _using(cursor)
        elif cursor.at("location"):
            cursor.refuse("LOCATION is not supported: the catalog chooses where a table's files lie")
        elif cursor.at_any("options", "clustered", "row", "stored", "cluster", "distributed", "engine"):
            cursor.refuse(f"{cursor.token.value.upper()} is not supported", hint="every table is an Iceberg table")
        else:
            cursor.fail("AS, WITH, PARTITIONED BY or COMMENT")


def _using(cursor: Cursor) -> None:
    cursor.expect("using")
    if not cursor.accept("iceberg"):
        cursor.refuse(
            f"USING {cursor.token.value.upper()} is not supported: every table is an Iceberg table",
            hint="leave USING out",
        )


def _property(cursor: Cursor, table: _Table, one: Property) -> None:
    key = one.key
    if key == "partitioning" or key == "partitioned_by":
        values = one.value if isinstance(one.value, tuple) else (one.value or "",)
        table.partitioning.extend(transform_text(cursor, one.at, value) for value in values)
        return
    if key == "format":
        if not isinstance(one.value, str) or one.value.lower() != "parquet":
            hint = "leave format out"
            cursor.refuse("Tables are stored as Parquet", hint=hint, at=one.at, condition="INVALID_TABLE_PROPERTY")
        return
    if key == "extra_properties":
        for each, value in map_entries(cursor, one):
            table.properties[each] = value
        return
    if key == "sorted_by":
        values = one.value if isinstance(one.value, tuple) else (one.value or "",)
        table.properties[SORTED_BY] = json.dumps([sort_field(cursor, one.at, value) for value in values])
        return
    if key in REFUSED:
        message = f"The table property {key} is not supported"
        cursor.refuse(message, hint=REFUSED[key], at=one.at, condition="INVALID_TABLE_PROPERTY")
    known = "comment" if key == "comment" else ICEBERG_NAMES.get(key)
    if known is None and "." not in key and "-" not in key:
        hint = "the table properties are listed in docs/sql.md"
        cursor.refuse(f"Unknown table property {key}", hint=hint, at=one.at, condition="INVALID_TABLE_PROPERTY")
    table.properties[known or key] = property_value(cursor, one)


def _like(statement: StatementText, cursor: Cursor, table: _Table) -> Statement:
    bracket = cursor.accept_symbol("(")
    cursor.expect("like")
    source = cursor.name("the name of a table")
    if cursor.accept_any("including", "excluding"):
        cursor.expect("properties")
        if cursor.peek(-2).is_word("excluding"):
            cursor.refuse("EXCLUDING PROPERTIES is not supported")
    if bracket:
        if cursor.at_symbol(","):
            cursor.refuse("LIKE beside columns is not supported", hint="name all columns")
        cursor.expect_symbol(")")
    _clauses(statement, cursor, table)
    cursor.done()
    if table.partitioning or table.comment is not None or table.replace or SORTED_BY in table.properties:
        cursor.refuse("CREATE TABLE … LIKE takes no clauses but WITH, and keeps the order", at=cursor.tokens[0])
    return CreateTableLike(
        name=table.name.name, source=source, if_not_exists=table.if_not_exists, properties=table.properties
    )


def _as_query(statement: StatementText, cursor: Cursor, table: _Table) -> Statement:
    if table.columns:
        cursor.refuse("Columns with types and AS exclude each other", hint="name the columns without types, or cast")
    last = statement.last
    empty = False
    ends = cursor.tokens
    if ends[last - 1].is_word("data") and ends[last - 2].is_word("with"):
        last -= 2
    elif ends[last - 1].is_word("data") and ends[last - 2].is_word("no") and ends[last - 3].is_word("with"):
        last, empty = last - 3, True
    if cursor.index >= last:
        cursor.fail("SELECT")
    query = statement.engine.marked_query(statement, cursor.index, last)
    if table.aliases or empty:
        columns = f"({', '.join(table.aliases)})" if table.aliases else ""
        query = f"SELECT * FROM ({query}) AS `_sqe_source`{columns}" + (" WHERE FALSE" if empty else "")
    head = _head(cursor, table, "CREATE TABLE")
    return statement.engine.composed(statement, StatementKind.CREATE_TABLE_AS, f"{head} AS {query}")
