"""SHOW CREATE in Trino's words; what it prints makes the same table again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqe_core.catalog.types import display_type
from sqe_core.query.judge.allowed import table_properties
from sqe_core.query.judge.views import VIEW_SECURITY_PROPERTY
from sqe_core.spi.catalog import Column, PartitionField, TableMetadata, ViewMetadata
from sqe_core.spi.names import ObjectName, quote_part
from sqe_core.sql.statements.trino_properties import ICEBERG_NAMES, SIZES, written_size

_STATE = frozenset(("comment", "format-version", "write.format.default"))
_QUOTED = frozenset(("compression_codec",))


def view_text(name: ObjectName, view: ViewMetadata, text: str) -> str:
    """Return CREATE VIEW."""
    definer = view.properties.get(VIEW_SECURITY_PROPERTY) == "definer"
    comment = f" COMMENT {_literal(view.comment)}" if view.comment else ""
    return f"CREATE VIEW {name}{comment} SECURITY {'DEFINER' if definer else 'INVOKER'} AS\n{text}"


def table_text(name: ObjectName, table: TableMetadata, columns: Sequence[Column]) -> str:
    """Return CREATE TABLE, with the columns that the user sees."""
    lines = [f"CREATE TABLE {name} (", ",\n".join(f"   {_column(column)}" for column in columns), ")"]
    if table.comment:
        lines.append(f"COMMENT {_literal(table.comment)}")
    properties = ",\n".join(f"   {key} = {value}" for key, value in _properties(table, columns))
    return "\n".join((*lines, f"WITH (\n{properties}\n)"))


def _column(column: Column) -> str:
    written = f"{quote_part(column.name)} {display_type(column.type)}"
    if column.default is not None:
        written += f" DEFAULT {column.default}"
    if not column.nullable:
        written += " NOT NULL"
    return written + (f" COMMENT {_literal(column.comment)}" if column.comment else "")


def _properties(table: TableMetadata, columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    yield "format", "'PARQUET'"
    yield "format_version", str(table.format_version)
    visible = {column.name for column in columns}
    fields = [field for field in table.partitioning if field.source.split(".")[0] in visible]
    if partitioning := [text for field in fields if (text := _transform(field))]:
        yield "partitioning", _array(partitioning)
    # Everything else may name columns: a table that is seen in part shows none of it (STMT-9).
    if len(columns) != len(table.columns):
        return
    if table.sort_order:
        yield "sorted_by", _array([_sorted_by(each) for each in table.sort_order])
    yield from _others(table.properties)


def _others(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Properties that may be set: by Trino's names where it has some, the others by Iceberg's."""
    allowed = table_properties()
    left = {key: value for key, value in properties.items() if key not in _STATE and allowed.refusal(key) is None}
    for word, key in ICEBERG_NAMES.items():
        value = left.pop(key, None)
        if value is None:
            continue
        if word in SIZES:
            yield word, _literal(written_size(value))
        elif word.endswith("_columns"):
            yield word, _array(value.split(","))
        else:
            yield word, _literal(value.upper()) if word in _QUOTED else value
    left = {key: value for key, value in left.items() if not key.startswith("comment.")}
    if left:
        names = sorted(left)
        yield "extra_properties", f"MAP({_array(names)}, {_array([left[name] for name in names])})"


def _transform(field: PartitionField) -> str | None:
    name, _, argument = field.transform.rstrip("]").partition("[")
    source = _path(field.source)
    if name == "identity":
        return source
    if name == "void":
        return None
    return f"{name}({source}, {argument})" if argument else f"{name}({source})"


def _sorted_by(field: str) -> str:
    column, *order = field.rsplit(" ", 3)
    return " ".join((column if "(" in column else quote_part(column), *order))


def _path(source: str) -> str:
    return ".".join(quote_part(part) for part in source.split("."))


def _array(items: Sequence[str]) -> str:
    return f"ARRAY[{','.join(map(_literal, items))}]"


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
