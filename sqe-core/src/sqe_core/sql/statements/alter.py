"""ALTER TABLE, ALTER VIEW, COMMENT ON and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqe_core.sql.grammar.types import spark_identifier
from sqe_core.sql.spark.text import quote_keys, quote_name, quote_properties, quote_string
from sqe_core.sql.statement import (
    AddColumnWithDefault,
    CommentOn,
    MaintainTable,
    RenameTable,
    RenameView,
    SetTableLayout,
    SetViewProperties,
    Statement,
    StatementKind,
)
from sqe_core.sql.statements.alter_governance import alter_owner, alter_tags
from sqe_core.sql.statements.attach import at_secret
from sqe_core.sql.statements.create_table import stored_type
from sqe_core.sql.statements.trino_properties import (
    ICEBERG_NAMES,
    REFUSED,
    partition_field,
    property_value,
    sort_field,
)
from sqe_core.sql.text.clauses import (
    MarkedName,
    Property,
    column,
    column_path,
    map_entries,
    marked_name,
    property_key,
    property_list,
    transform,
)
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.literals import literal_value
from sqe_core.sql.text.positions import mark
from sqe_core.sql.text.tokens import Kind

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class _Alter:
    statement: StatementText
    cursor: Cursor
    table: MarkedName
    if_exists: bool

    def engine(self, action: str) -> Statement:
        self.cursor.done()
        sql = f"ALTER TABLE {self.table.sql} {action}"
        made = self.statement.engine.composed(self.statement, StatementKind.ALTER_TABLE, sql)
        return replace(made, if_exists=self.if_exists)


def alter(statement: StatementText) -> Statement:
    cursor = statement.cursor(1)
    if cursor.accept("view"):
        return _alter_view(statement, cursor)
    if cursor.accept_any("schema", "database", "namespace") is not None:
        owned = alter_owner(cursor, "schema", cursor.name("the name of a schema", most=2))
        if owned is not None:
            return owned
        cursor.refuse("ALTER SCHEMA is not supported", hint="create a new schema and move the tables")
    if not cursor.accept("table"):
        if at_secret(cursor):
            cursor.refuse("ALTER SECRET is not supported", hint="use CREATE OR REPLACE SECRET")
        if cursor.token.kind is Kind.WORD and cursor.at_any("user", "role", "policy", "session", "catalog"):
            cursor.refuse(f"ALTER {cursor.token.value.upper()} is not supported")
        cursor.fail("TABLE or VIEW")
    if_exists = cursor.if_exists()
    table = marked_name(cursor)
    altered = _Alter(statement, cursor, table, if_exists)
    if cursor.at("rename", "to"):
        return _rename(altered)
    governance = _governance(altered)
    if governance is not None:
        return governance
    if statement.dialect is Dialect.SPARK and not if_exists and not _adds_default(statement):
        return statement.engine.unchanged(statement, StatementKind.ALTER_TABLE)
    word = cursor.accept_any(*_ACTIONS) or cursor.fail("ADD, DROP, RENAME, ALTER COLUMN, SET or UNSET")
    return _ACTIONS[word](altered)


def _governance(altered: _Alter) -> Statement | None:
    """Tags, masking policies and owners, which are no business of the engine's."""
    cursor = altered.cursor
    found = alter_owner(cursor, "table", altered.table.name)
    found = found or alter_tags(cursor, altered.table.name)
    if found is not None and altered.if_exists:
        cursor.refuse("IF EXISTS is not supported here", hint="leave it out", at=altered.statement.tokens[2])
    return found


def _adds_default(statement: StatementText) -> bool:
    words = {token.value for token in statement.tokens if token.kind is Kind.WORD}
    return "default" in words and "add" in words


def _rename(altered: _Alter) -> Statement:
    cursor = altered.cursor
    cursor.expect("rename", "to")
    target = cursor.name("the new name")
    cursor.done()
    return RenameTable(name=altered.table.name, target=target, if_exists=altered.if_exists)


def _add(altered: _Alter) -> Statement:
    cursor = altered.cursor
    if cursor.accept("partition", "field"):
        field = transform(cursor)
        name = f" AS {column(cursor)}" if cursor.accept("as") else ""
        return altered.engine(f"ADD PARTITION FIELD {field}{name}")
    if cursor.at_any("constraint", "primary", "unique", "foreign", "check"):
        cursor.refuse("Iceberg tables have no constraints but NOT NULL")
    if cursor.at("partition"):
        cursor.refuse("Partitions are not added by hand: Iceberg derives them from the rows")
    cursor.accept_any("columns", "column")
    if_not_exists = cursor.if_not_exists()
    if cursor.at_symbol("(") and not if_not_exists:
        columns = cursor.bracketed(lambda cursor: _new_column(altered))
        return altered.engine(f"ADD COLUMNS ({', '.join(columns)})")
    return _add_column(altered, if_not_exists)


def _add_column(altered: _Alter, if_not_exists: bool) -> Statement:
    cursor, statement = altered.cursor, altered.statement
    start = cursor.index
    name = cursor.name("the name of a column", most=64)
    spark_type = stored_type(statement, cursor)
    default: Any = None
    has_default, comment = False, None
    while not cursor.at_end:
        if cursor.accept("default"):
            default, has_default = literal_value(cursor), True
        elif cursor.accept("comment"):
            comment = cursor.string()
        elif has_default or if_not_exists:
            cursor.refuse("DEFAULT and IF NOT EXISTS allow only COMMENT beside them")
        else:
            break
    if not has_default and not if_not_exists:
        cursor.index = start
        return altered.engine(f"ADD COLUMNS ({_new_column(altered)})")
    if len(name) > 1:
        cursor.refuse("A field inside a column cannot have a default")
    cursor.done()
    table, last = altered.table.name, name[0]
    return AddColumnWithDefault(
        name=table, column=last, type=spark_type, default=default, comment=comment, if_not_exists=if_not_exists
    )


def _new_column(altered: _Alter) -> str:
    cursor = altered.cursor
    written = f"{column_path(cursor)} {stored_type(altered.statement, cursor)}"
    while not (cursor.at_end or cursor.at_symbol(",") or cursor.at_symbol(")")):
        if cursor.accept("not", "null"):
            written += " NOT NULL"
        elif cursor.accept("comment"):
            written += f" COMMENT {quote_string(cursor.string())}"
        elif cursor.accept("first"):
            written += " FIRST"
        elif cursor.accept("after"):
            written += f" AFTER {column(cursor)}"
        elif cursor.at("default"):
            cursor.refuse("DEFAULT is allowed when one column is added", hint="send one ALTER TABLE for each column")
        else:
            cursor.fail("COMMENT, FIRST or AFTER")
    return written


def _drop(altered: _Alter) -> Statement:
    cursor = altered.cursor
    if cursor.accept("partition", "field"):
        return altered.engine(f"DROP PARTITION FIELD {transform(cursor)}")
    kind = cursor.accept_any("branch", "tag")
    if kind is not None:
        exists = " IF EXISTS" if cursor.if_exists() else ""
        return altered.engine(f"DROP {kind.upper()}{exists} {column(cursor)}")
    if cursor.accept("identifier", "fields"):
        return altered.engine(f"DROP IDENTIFIER FIELDS {', '.join(cursor.items(column_path))}")
    if cursor.at_any("constraint", "primary"):
        cursor.refuse("Iceberg tables have no constraints but NOT NULL")
    if cursor.at("partition"):
        cursor.refuse("Partitions are not dropped by hand", hint="use DELETE FROM t WHERE …")
    cursor.accept_any("column", "columns")
    exists = " IF EXISTS" if cursor.if_exists() else ""
    if cursor.at_symbol("("):
        return altered.engine(f"DROP COLUMNS{exists} ({', '.join(cursor.bracketed(column_path))})")
    path = column_path(cursor)
    cursor.accept("restrict")
    return altered.engine(f"DROP COLUMN{exists} {path}")


def _rename_column(altered: _Alter) -> Statement:
    cursor = altered.cursor
    cursor.accept("column")
    if cursor.if_exists():
        cursor.refuse("RENAME COLUMN IF EXISTS is not supported", hint="leave IF EXISTS out", at=cursor.peek(-2))
    path = column_path(cursor)
    cursor.expect("to")
    return altered.engine(f"RENAME COLUMN {path} TO {column(cursor)}")


def _alter_column(altered: _Alter) -> Statement:
    cursor = altered.cursor
    cursor.accept("column")
    path = column_path(cursor)
    if cursor.accept("set", "data", "type") or cursor.accept("type"):
        return altered.engine(f"ALTER COLUMN {path} TYPE {stored_type(altered.statement, cursor)}")
    for words in (("set", "not", "null"), ("drop", "not", "null"), ("first",)):
        if cursor.accept(*words):
            return altered.engine(f"ALTER COLUMN {path} {' '.join(words).upper()}")
    if cursor.accept("comment"):
        return altered.engine(f"ALTER COLUMN {path} COMMENT {quote_string(cursor.string())}")
    if cursor.accept("after"):
        return altered.engine(f"ALTER COLUMN {path} AFTER {column(cursor)}")
    if cursor.at("set", "default") or cursor.at("drop", "default"):
        cursor.refuse("The default of an existing column cannot be changed", hint="add a column with the new default")
    if cursor.at_any("set", "unset") and (cursor.peek().is_word("tag") or cursor.peek().is_word("masking")):
        cursor.refuse("Fields inside a column have no tags or policies of their own", hint="name the column")
    cursor.fail("SET DATA TYPE, SET NOT NULL, DROP NOT NULL, SET TAG, COMMENT, FIRST or AFTER")


def _set(altered: _Alter) -> Statement:
    cursor = altered.cursor
    if cursor.accept("tblproperties"):
        return _set_properties(altered, brackets=True)
    if cursor.accept("properties"):
        return _set_properties(altered, brackets=False)
    if cursor.accept("identifier", "fields"):
        return altered.engine(f"SET IDENTIFIER FIELDS {', '.join(cursor.items(column_path))}")
    if cursor.at("location"):
        cursor.refuse("SET LOCATION is not supported: the catalog chooses where a table's files lie")
    if cursor.at_any("tag", "masking"):
        cursor.refuse(
            "Tags and masking policies belong to columns", hint="use ALTER COLUMN c SET …, or SET TAGS (c = …)"
        )
    if cursor.at_any("serde", "serdeproperties"):
        cursor.refuse(f"SET {cursor.token.value.upper()} is not supported")
    cursor.fail("TBLPROPERTIES, PROPERTIES, TAGS, AUTHORIZATION or IDENTIFIER FIELDS")


def _set_properties(altered: _Alter, *, brackets: bool) -> Statement:
    cursor = altered.cursor
    listed = property_list(cursor, brackets=brackets)
    if any(one.key in ("partitioning", "sorted_by") for one in listed):
        return _layout(altered, listed)
    properties: dict[str, str] = {}
    removed: list[str] = []
    for one in listed:
        if one.key == "extra_properties":
            properties.update(map_entries(cursor, one))
            continue
        if one.key in REFUSED or one.key == "format":
            hint = REFUSED.get(one.key, "tables are stored as Parquet")
            message = f"The property {one.key} cannot be set"
            cursor.refuse(message, hint=hint, at=one.at, condition="INVALID_TABLE_PROPERTY")
        key = ICEBERG_NAMES.get(one.key, one.key)
        if one.value is None:
            removed.append(key)
        else:
            properties[key] = property_value(cursor, one)
    if removed and properties:
        cursor.refuse("Setting and removing properties need a statement each")
    if removed:
        return altered.engine(f"UNSET TBLPROPERTIES IF EXISTS {quote_keys(removed)}")
    return altered.engine(f"SET TBLPROPERTIES {quote_properties(properties)}")


def _layout(altered: _Alter, listed: Sequence[Property]) -> Statement:
    """Partitioning and order, with one commit."""
    cursor = altered.cursor
    found: dict[str, Sequence[str]] = {}
    for one in listed:
        if one.key not in ("partitioning", "sorted_by"):
            cursor.refuse("Partitioning and order need a statement of their own", at=one.at)
        values = one.value if isinstance(one.value, tuple) else (one.value,) if one.value is not None else ()
        found[one.key] = values
    cursor.done()
    at = listed[0].at
    fields, order = found.get("partitioning"), found.get("sorted_by")
    return SetTableLayout(
        name=altered.table.name,
        partitioning=None if fields is None else tuple(partition_field(cursor, at, each) for each in fields),
        sort_order=None if order is None else tuple(sort_field(cursor, at, each) for each in order),
        if_exists=altered.if_exists,
    )


def _unset(altered: _Alter) -> Statement:
    cursor = altered.cursor
    cursor.expect("tblproperties")
    exists = " IF EXISTS" if cursor.if_exists() else ""
    return altered.engine(f"UNSET TBLPROPERTIES{exists} {quote_keys(cursor.bracketed(property_key))}")


def _replace(altered: _Alter) -> Statement:
    cursor = altered.cursor
    if not cursor.accept("partition", "field"):
        return _reference(altered, "CREATE OR REPLACE" if cursor.at_any("branch", "tag") else "")
    old = transform(cursor)
    cursor.expect("with")
    new = transform(cursor)
    name = f" AS {column(cursor)}" if cursor.accept("as") else ""
    return altered.engine(f"REPLACE PARTITION FIELD {old} WITH {new}{name}")


def _create(altered: _Alter) -> Statement:
    replace = altered.cursor.accept("or", "replace")
    return _reference(altered, "CREATE OR REPLACE" if replace else "CREATE")


def _reference(altered: _Alter, words: str) -> Statement:
    """A branch or a tag."""
    cursor = altered.cursor
    kind = cursor.accept_any("branch", "tag")
    if kind is None or not words:
        cursor.fail("BRANCH or TAG")
    action = f"{words} {kind.upper()}"
    if cursor.if_not_exists():
        action += " IF NOT EXISTS"
    action += f" {column(cursor)}"
    if cursor.accept("as", "of", "version"):
        action += f" AS OF VERSION {cursor.integer('the id of a snapshot')}"
    if cursor.accept("retain"):
        action += f" RETAIN {_duration(cursor)}"
    if cursor.accept("with", "snapshot", "retention"):
        action += " WITH SNAPSHOT RETENTION"
        if cursor.peek().is_word("snapshots"):
            action += f" {cursor.integer()} SNAPSHOTS"
            cursor.expect("snapshots")
        if not cursor.at_end:
            action += f" {_duration(cursor)}"
    elif cursor.accept("with", "retention"):
        action += _retention(cursor)
    return altered.engine(action)


def _duration(cursor: Cursor) -> str:
    number = cursor.integer()
    unit = cursor.accept_any("days", "hours", "minutes") or cursor.fail("DAYS, HOURS or MINUTES")
    return f"{number} {unit.upper()}"


def _retention(cursor: Cursor) -> str:
    values = dict(cursor.bracketed(_retention_setting))
    written = ""
    if "max_ref_age_ms" in values:
        written += f" RETAIN {values['max_ref_age_ms'] // _MINUTE_MS} MINUTES"
    if "min_snapshots_to_keep" in values or "max_snapshot_age_ms" in values:
        written += " WITH SNAPSHOT RETENTION"
    if "min_snapshots_to_keep" in values:
        written += f" {values['min_snapshots_to_keep']} SNAPSHOTS"
    if "max_snapshot_age_ms" in values:
        written += f" {values['max_snapshot_age_ms'] // _MINUTE_MS} MINUTES"
    return written


def _retention_setting(cursor: Cursor) -> tuple[str, int]:
    key = cursor.part("the name of a setting")
    if key not in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
        cursor.refuse(f"Unknown setting {key}", at=cursor.peek(-1))
    cursor.expect_symbol("=>")
    value = cursor.integer()
    if key.endswith("_ms") and (value < _MINUTE_MS or value % _MINUTE_MS):
        cursor.refuse(f"{key} must be whole minutes: a multiple of {_MINUTE_MS}", at=cursor.peek(-1))
    return key, value


def _write(altered: _Alter) -> Statement:
    cursor = altered.cursor
    action = "WRITE"
    if cursor.accept("distributed", "by", "partition"):
        action += " DISTRIBUTED BY PARTITION"
    if cursor.accept("unordered"):
        return altered.engine(f"{action} UNORDERED")
    if cursor.accept("locally"):
        action += " LOCALLY"
    if cursor.at_end and action != "WRITE":
        return altered.engine(action)
    cursor.expect("ordered", "by")
    return altered.engine(f"{action} ORDERED BY {', '.join(cursor.items(_sort_field))}")


def _sort_field(cursor: Cursor) -> str:
    written = transform(cursor)
    direction = cursor.accept_any("asc", "desc")
    if direction is not None:
        written += f" {direction.upper()}"
    if cursor.accept("nulls"):
        place = cursor.accept_any("first", "last") or cursor.fail("FIRST or LAST")
        return f"{written} NULLS {place.upper()}"
    return f"{written} NULLS LAST"


def _execute(altered: _Alter) -> Statement:
    """EXECUTE action, EXECUTE action(name => value, …)."""
    cursor = altered.cursor
    action = cursor.part("the name of a procedure")
    arguments: dict[str, Any] = {}
    if cursor.accept_symbol("("):
        while not cursor.at_symbol(")"):
            at = cursor.token
            name = cursor.part("the name of an argument")
            cursor.expect_symbol("=>")
            if name in arguments:
                cursor.refuse(f"Argument {name} is given twice", at=at)
            arguments[name] = literal_value(cursor, what="An argument")
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")
    if cursor.at("where"):
        cursor.refuse("EXECUTE … WHERE is not supported", hint="leave it out: the whole table is maintained")
    cursor.done()
    return MaintainTable(name=altered.table.name, action=action, arguments=arguments, if_exists=altered.if_exists)


def _modify(altered: _Alter) -> Statement:
    altered.cursor.refuse("MODIFY is not supported", hint="use ALTER COLUMN c SET DATA TYPE …")


_ACTIONS: dict[str, Callable[[_Alter], Statement]] = {
    "add": _add,
    "drop": _drop,
    "rename": _rename_column,
    "alter": _alter_column,
    "change": _modify,
    "modify": _modify,
    "set": _set,
    "unset": _unset,
    "replace": _replace,
    "create": _create,
    "write": _write,
    "execute": _execute,
}


def _alter_view(statement: StatementText, cursor: Cursor) -> Statement:
    if_exists = cursor.if_exists()
    name = cursor.name("the name of a view")
    owned = None if if_exists else alter_owner(cursor, "view", name)
    if owned is not None:
        return owned
    if cursor.accept("rename", "to"):
        target = cursor.name("the new name")
        cursor.done()
        return RenameView(name=name, target=target, if_exists=if_exists)
    if if_exists:
        cursor.refuse("ALTER VIEW IF EXISTS allows only RENAME TO")
    properties: dict[str, str | None]
    if cursor.accept("set", "tblproperties"):
        properties = {}
        for one in property_list(cursor):
            if isinstance(one.value, tuple):
                cursor.refuse(f"The property {one.key} needs a string", at=one.at)
            properties[one.key] = one.value
    elif cursor.accept("unset", "tblproperties"):
        cursor.if_exists()
        properties = dict.fromkeys(cursor.bracketed(property_key))
    elif cursor.at("as"):
        cursor.refuse("ALTER VIEW … AS is not supported", hint="use CREATE OR REPLACE VIEW")
    else:
        cursor.fail("RENAME TO, SET TBLPROPERTIES or UNSET TBLPROPERTIES")
    cursor.done()
    return SetViewProperties(name=name, properties=properties)


def comment(statement: StatementText) -> Statement:
    """COMMENT ON TABLE | COLUMN | VIEW | SCHEMA … IS 'text' | NULL."""
    cursor = statement.cursor(1)
    cursor.expect("on")
    kinds = ("table", "column", "view", "schema", "database", "namespace")
    word = cursor.accept_any(*kinds) or cursor.fail("TABLE, COLUMN, VIEW or SCHEMA")
    start = cursor.token
    most = {"column": 4, "table": 3, "view": 3}.get(word, 2)
    name = cursor.name("a name", most=most)
    cursor.expect("is")
    text = None if cursor.accept("null") else cursor.string()
    cursor.done()
    written = "NULL" if text is None else quote_string(text)
    if word == "table":
        sql = f"COMMENT ON TABLE {mark(start.start)}{quote_name(name)} IS {written}"
        return statement.engine.composed(statement, StatementKind.COMMENT, sql)
    if word == "column":
        if len(name) == 1:
            raise statement.text.error("A column needs the name of its table", start.start, hint="write table.column")
        place = mark(start.start)
        target = f"{place}{quote_name(name[:-1])} ALTER COLUMN {place}{spark_identifier(name[-1])}"
        sql = f"ALTER TABLE {target} COMMENT {quote_string(text or '')}"
        return statement.engine.composed(statement, StatementKind.ALTER_TABLE, sql)
    return CommentOn(object="view" if word == "view" else "schema", name=name, comment=text)


def truncate(statement: StatementText) -> Statement:
    """TRUNCATE [TABLE] t."""
    cursor = statement.cursor(1)
    cursor.accept("table")
    table = marked_name(cursor)
    if cursor.at("partition"):
        cursor.refuse("TRUNCATE … PARTITION is not supported", hint="use DELETE FROM t WHERE …")
    cursor.done()
    return statement.engine.composed(statement, StatementKind.TRUNCATE, f"TRUNCATE TABLE {table.sql}")
