"""Step 6: the text of ours that stands for a table in the plan (ENF-8, ENF-9).

    SELECT r.c1, r.c2 FROM <alias>.<ns>.<table> [VERSION AS OF n] AS r

Every column is qualified with `r`, a name with a fresh nonce, so that no name of the user's text can be captured.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from sqe_core.engine.port import TimeTravel
from sqe_core.sql.grammar.types import spark_identifier as quote
from sqe_core.sql.spark.text import quote_name, quote_string

# The last part of the name under which a target is changed by who sees some of its rows. Users cannot write it.
VISIBLE_ROWS = "_sqe_visible_rows"


def new_marker() -> str:
    """Return a name that nobody can have written (NAME-6)."""
    return "_sqe_r_" + secrets.token_hex(16)


def time_travel_clause(travel: TimeTravel | None) -> str:
    """Write a time-travel clause of checked literals."""
    if travel is None:
        return ""
    if travel.version is not None:
        if travel.version.lstrip("-").isdigit():
            return f" VERSION AS OF {travel.version}"
        return f" VERSION AS OF {quote_string(travel.version)}"
    assert travel.timestamp is not None
    return f" TIMESTAMP AS OF {quote_string(travel.timestamp)}"


def table_text(parts: Sequence[str], columns: Sequence[str], *, marker: str, travel: TimeTravel | None = None) -> str:
    projection = ", ".join(f"{quote(marker)}.{quote(column)}" for column in columns)
    return f"SELECT {projection} FROM {quote_name(parts)}{time_travel_clause(travel)} AS {quote(marker)}"


def property_text(parts: Sequence[str], key: str, value: str) -> str:
    """Return the statement that sets a property of a table. `parts` begin with the catalog's alias."""
    return f"ALTER TABLE {quote_name(parts)} SET TBLPROPERTIES ({quote_string(key)} = {quote_string(value)})"


def metadata_name(kind: str) -> str:
    """The last part of a metadata table's name. Users cannot write it, so a table that is called so is never meant."""
    return f"_sqe_metadata_{kind}"


def metadata_text(parts: Sequence[str], kind: str, columns: Sequence[str], *, marker: str, partitioned: bool) -> str:
    partition = "to_json(r.partition)" if partitioned else "CAST(NULL AS STRING)"
    written = (column.replace("{partition}", partition) for column in columns)
    projection = ", ".join(column.replace("r.", f"{quote(marker)}.") for column in written)
    return f"SELECT {projection} FROM {quote_name([*parts, metadata_name(kind)])} AS {quote(marker)}"


def all_columns_text(parts: Sequence[str], travel: TimeTravel | None) -> str:
    """Return text that names a table, for what is built or learnt above it. It is never executed as it is."""
    return f"SELECT * FROM {quote_name(parts)}{time_travel_clause(travel)}"


def no_rows_text(columns: Sequence[tuple[str, str]]) -> str:
    """Return text that has these columns, of these types, for what is judged above it. It is never executed."""
    items = [f"CAST(NULL AS {_engine_type(type_text)}) AS {quote(name)}" for name, type_text in columns]
    return f"SELECT {', '.join(items)}"


def _engine_type(type_text: str) -> str:
    """Return a type in the engine's notation, which has no words for two of Iceberg's."""
    if type_text == "uuid":
        return "string"
    return "binary" if type_text.startswith("fixed(") else type_text


def append_text(target: Sequence[str], columns: Mapping[str, str | None], rows: str) -> str:
    """Return the statement that appends `rows`: for each column of the target one of theirs, or None for NULL.

    BY NAME, since a list of columns would match the fields inside of a struct by their order.
    """
    items = ", ".join(
        f"{'NULL' if value is None else quote(value)} AS {quote(column)}" for column, value in columns.items()
    )
    return f"INSERT INTO {quote_name(target)} BY NAME SELECT {items} FROM {quote(rows)}"


def create_text(target: Sequence[str], columns: Sequence[str], rows: str, *, replace: bool) -> str:
    head = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
    return f"{head} {quote_name(target)} AS SELECT {', '.join(map(quote, columns))} FROM {quote(rows)}"
