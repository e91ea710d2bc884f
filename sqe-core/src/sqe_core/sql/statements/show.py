"""SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from sqe_core.sql.statement import (
    DescribeQuery,
    EngineStatement,
    Explain,
    ExplainPlan,
    ExplainValidate,
    Name,
    ShowCatalogs,
    ShowColumns,
    ShowCreate,
    ShowFunctions,
    ShowSchemas,
    ShowSession,
    ShowStats,
    ShowTables,
    Statement,
    StatementKind,
)
from sqe_core.sql.statements import prepared
from sqe_core.sql.statements.attachments import ShowSecrets
from sqe_core.sql.statements.session_control import ShowQueries, ShowSessions
from sqe_core.sql.statements.show_governance import explain_access, show_governance
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.like import escaped_pattern
from sqe_core.sql.text.similar import meant
from sqe_core.sql.text.tokens import Kind

_SCHEMA_NAME_PARTS = 2

_SHOW_HINTS = {
    "engines": "SQE has one kind of table, Iceberg",
    "variables": "use SHOW SESSION",
    "status": "use SHOW SESSIONS and SHOW QUERIES",
    "secret": "use SHOW SECRETS",
    "attached": "use SHOW CATALOGS",
    "partitions": 'query the table\'s partitions, as in SELECT * FROM "t$partitions"',
    "tblproperties": "use SHOW CREATE TABLE t",
    "indexes": "Iceberg tables have no indexes",
    "index": "Iceberg tables have no indexes",
    "keys": "Iceberg tables have no keys",
    "procedures": "the procedures are listed in the documentation",
    "warnings": None,
    "errors": None,
    "all": "use SHOW SESSION",
    "search_path": "use SELECT current_catalog, current_schema",
    "current": "use SELECT current_catalog, current_schema",
    "branches": 'query the table\'s branches and tags, as in SELECT * FROM "t$refs"',
    "grant": "use SHOW GRANTS",
    "role": "use SHOW ROLES, SHOW CURRENT ROLES or SHOW ROLE GRANTS",
    "policies": "use SHOW MASKING POLICIES, or SHOW EFFECTIVE POLICY ON t",
}


def show(statement: StatementText) -> Statement:
    cursor = statement.cursor(1)
    governance = show_governance(cursor)
    if governance is not None:
        cursor.done()
        return governance
    first = cursor.token
    full = cursor.accept_any("full", "extended", "terse")
    word = cursor.token
    reader = _SHOWS.get(word.value) if word.kind is Kind.WORD else None
    if reader is None:
        lists = "SHOW lists CATALOGS, SCHEMAS, TABLES, VIEWS, COLUMNS, FUNCTIONS, SESSION, SESSIONS or QUERIES"
        hint = _SHOW_HINTS.get(word.value, meant(word.value, _SHOWS) or lists)
        if word.kind is not Kind.WORD:
            cursor.fail("CATALOGS, SCHEMAS, TABLES, VIEWS, COLUMNS, CREATE TABLE, FUNCTIONS, SESSION or STATS FOR")
        cursor.refuse(f"SHOW {word.value.upper()} is not supported", hint=hint)
    if full is not None:
        cursor.refuse(f"SHOW {full.upper()} is not supported", hint=f"leave {full.upper()} out", at=first)
    cursor.advance()
    made = reader(cursor)
    if isinstance(made, _Listing):
        made = replace(made, like=_like(statement, cursor))
    cursor.done()
    return made


def _schemas(cursor: Cursor) -> Statement:
    return ShowSchemas(catalog=cursor.part("the name of a catalog") if cursor.accept_any("from", "in") else None)


def _objects(cursor: Cursor) -> Statement:
    views_only = cursor.peek(-1).is_word("views")
    return ShowTables(schema=_schema(cursor) if cursor.accept_any("from", "in") else None, views_only=views_only)


def _columns(cursor: Cursor) -> Statement:
    if cursor.accept_any("from", "in") is None:
        cursor.fail("FROM")
    name = cursor.name("the name of a table")
    if len(name) == 1 and cursor.accept_any("from", "in"):
        name = (*_schema(cursor), *name)
    return ShowColumns(name=name)


def _create(cursor: Cursor) -> Statement:
    if cursor.at("materialized", "view") or cursor.at("function"):
        cursor.refuse("SQE has no materialized views and no functions of its own")
    if cursor.accept("table"):
        return ShowCreate(object="table", name=cursor.name("the name of a table"))
    if cursor.accept("view"):
        return ShowCreate(object="view", name=cursor.name("the name of a view"))
    if cursor.accept_any("schema", "database"):
        return ShowCreate(object="schema", name=_schema(cursor))
    cursor.fail("TABLE, VIEW or SCHEMA")


def _functions(cursor: Cursor) -> Statement:
    if cursor.at_any("from", "in"):
        cursor.refuse("Schemas hold no functions", hint="use SHOW FUNCTIONS [LIKE …]")
    return ShowFunctions()


def _stats(cursor: Cursor) -> Statement:
    cursor.expect("for")
    if cursor.at_symbol("("):
        cursor.refuse("SHOW STATS FOR a query is not supported", hint="name a table")
    return ShowStats(name=cursor.name("the name of a table"))


# What all of these may say at their end: LIKE 'pattern'.
_Listing = ShowCatalogs | ShowSchemas | ShowTables | ShowColumns | ShowFunctions | ShowSession | ShowSecrets

_SHOWS: dict[str, Callable[[Cursor], Statement]] = {
    # A database is a catalog, as in GRANT … ON DATABASE and ATTACH DATABASE.
    **dict.fromkeys(("catalogs", "databases"), lambda cursor: ShowCatalogs()),
    **dict.fromkeys(("schemas", "namespaces"), _schemas),
    **dict.fromkeys(("tables", "views"), _objects),
    "columns": _columns,
    "create": _create,
    "functions": _functions,
    "session": lambda cursor: ShowSession(),
    "sessions": lambda cursor: ShowSessions(),
    **dict.fromkeys(("queries", "processlist"), lambda cursor: ShowQueries()),
    "secrets": lambda cursor: ShowSecrets(),
    "stats": _stats,
}


def _schema(cursor: Cursor) -> Name:
    return cursor.name("the name of a schema", most=_SCHEMA_NAME_PARTS)


def _like(statement: StatementText, cursor: Cursor) -> str | None:
    """Read [LIKE] 'pattern' [ESCAPE 'c']; the result escapes with backslashes."""
    spark = statement.dialect is Dialect.SPARK
    if not cursor.accept("like") and not (spark and cursor.token.kind is Kind.STRING):
        return None
    pattern = cursor.string("a pattern in single quotes")
    escape = cursor.string("one character in single quotes") if cursor.accept("escape") else None
    if escape is None:
        if statement.dialect is Dialect.TRINO:
            return pattern.replace("\\", "\\\\")  # nothing escapes there unless it is said
        return pattern.replace("*", "%") if spark else pattern
    if len(escape) != 1:
        cursor.fail("one character after ESCAPE")
    return escaped_pattern(pattern, escape)


def describe(statement: StatementText) -> Statement:
    """DESCRIBE [TABLE] t, DESCRIBE <query>."""
    cursor = statement.cursor(1)
    if cursor.at_end:
        cursor.fail("the name of a table", hint="SHOW TABLES lists the tables")
    if cursor.at_any("select", "with", "values") or cursor.at_symbol("("):
        return _describe_query(statement, 1)
    if cursor.accept("query"):
        return _describe_query(statement, 2)
    if cursor.before_name("input", "output"):
        return prepared.describe(cursor)
    word = cursor.token.value.upper()
    if cursor.before_name("schema", "database", "function", "catalog"):
        cursor.refuse(f"DESCRIBE {word} is not supported", hint="DESCRIBE takes a table, a view or a query")
    if cursor.before_name("extended", "formatted", "detail"):
        cursor.refuse(f"DESCRIBE {word} is not supported", hint="use DESCRIBE t and SHOW CREATE TABLE t")
    cursor.accept_any("table", "view")
    name = cursor.name("the name of a table")
    cursor.done()
    return ShowColumns(kind=StatementKind.DESCRIBE, name=name)


def _describe_query(statement: StatementText, first: int) -> Statement:
    return DescribeQuery(query=statement.engine.query(statement, first, statement.last))


def explain(statement: StatementText, recognise: Callable[[StatementText], Statement]) -> Statement:
    """EXPLAIN [ANALYZE | FULL | VERBOSE] [(options)] statement, EXPLAIN ACCESS statement."""
    cursor = statement.cursor(1)
    if cursor.accept("access"):
        return explain_access(statement, cursor, recognise)
    mode: Literal["plan", "analyze", "full"] = "plan"
    if cursor.accept("analyze"):
        mode = "analyze"
        cursor.accept("verbose")
    elif cursor.accept("full"):
        mode = "full"
    elif cursor.accept_any("verbose", "extended", "formatted", "cost", "logical"):
        mode = "plan"
    elif cursor.at("codegen"):
        cursor.refuse("EXPLAIN CODEGEN is not supported")
    options: dict[str, str] = {}
    if cursor.at_symbol("(") and cursor.peek().kind is Kind.WORD and cursor.peek().value in ("type", "format"):
        trino = statement.dialect is Dialect.TRINO
        options = dict(cursor.bracketed(_trino_option if trino else _explain_option))
    if cursor.at_end:
        cursor.fail("a statement to explain")
    inner = recognise(statement.part(cursor.index, statement.last))
    if not isinstance(inner, EngineStatement):
        cursor.refuse("EXPLAIN takes a query, INSERT, UPDATE, DELETE, MERGE or CREATE TABLE")
    if statement.dialect is Dialect.TRINO and mode == "plan":
        return _explain_in_trino(cursor, inner, options)
    return Explain(mode=mode, inner=inner)


def _explain_option(cursor: Cursor) -> tuple[str, str]:
    option = cursor.accept_any("type", "format") or cursor.fail("TYPE or FORMAT")
    value = cursor.part("a value")
    if (option, value) not in (("type", "logical"), ("type", "distributed"), ("format", "text")):
        cursor.refuse(f"EXPLAIN ({option.upper()} {value.upper()}) is not supported", hint="leave the option out")
    return option, value


_TRINO_OPTIONS = {
    "type": ("logical", "distributed", "validate", "io"),
    "format": ("text", "json", "graphviz"),
}


def _trino_option(cursor: Cursor) -> tuple[str, str]:
    option = cursor.accept_any(*_TRINO_OPTIONS) or cursor.fail("TYPE or FORMAT")
    values = _TRINO_OPTIONS[option]
    return option, cursor.accept_any(*values) or cursor.fail(" or ".join(value.upper() for value in values))


def _explain_in_trino(cursor: Cursor, inner: EngineStatement, options: Mapping[str, str]) -> Statement:
    kind = options.get("type", "distributed")
    written = options.get("format", "json" if kind == "io" else "text")
    if kind == "validate":
        return ExplainValidate(inner=inner)
    if kind == "io":
        if written != "json":
            cursor.refuse("EXPLAIN (TYPE IO) has the format JSON")
        return ExplainPlan(inner=inner, type="io", format="json")
    type_: Literal["logical", "distributed"] = "logical" if kind == "logical" else "distributed"
    formats: dict[str, Literal["text", "json", "graphviz"]] = {"json": "json", "graphviz": "graphviz"}
    return ExplainPlan(inner=inner, type=type_, format=formats.get(written, "text"))
