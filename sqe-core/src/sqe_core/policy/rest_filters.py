"""Row filters of the Iceberg REST specification: predicates as JSON become one SQL expression.

Total and allow-listed: an operator, a member or a value that does not stand here is an error, and the statement is
refused (POL-4, POL-14). What compares with NULL is NULL and keeps no row, whatever stands around it.

    {"type": "and" | "or", "left": …, "right": …}      {"type": "not", "child": …}      true      false
    {"type": "is-null" | "not-null" | "is-nan" | "not-nan", "child": reference}
    {"type": "eq" | "not-eq" | "lt" | "lt-eq" | "gt" | "gt-eq", "left": reference, "right": literal}
    {"type": "starts-with" | "not-starts-with", "left": reference, "right": literal}
    {"type": "in" | "not-in", "child": reference, "values": [literal, …]}
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqe_core.spi.catalog import Column
from sqe_core.spi.sql import SqlExpression

MOST_NODES = 1_000
MOST_DEPTH = 30
MOST_VALUES = 10_000
_MOST_TEXT = 10_000

_COMPARED = {"eq": "=", "not-eq": "<>", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">="}
_FLIPPED = {"eq": "eq", "not-eq": "not-eq", "lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq"}
_UNORDERED = ("boolean", "uuid")
_NUMBER = re.compile(r"-?\d{1,38}(\.\d{1,38})?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX = re.compile(r"([0-9a-fA-F]{2})*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(\+00:00|Z)?", re.ASCII)
_BINARY = re.compile(r"binary|fixed\(\d+\)")
_DECIMAL = re.compile(r"decimal\(\d+, ?\d+\)")


class NotUnderstood(Exception):
    """A restriction of which something is not known. The text is for the log of the server."""


@dataclass(slots=True)
class FilterReader:
    """Reads the filter of one table."""

    columns: Sequence[Column]
    used: set[int] = field(default_factory=set)
    """The ids of the fields that were named."""
    _nodes: int = 0

    def read(self, document: Any) -> SqlExpression | None:
        """Return the expression; None for a filter that keeps every row."""
        if _constant(document) is True:
            return None
        return SqlExpression(text=self._predicate(document, 0), dialect="spark")

    def _predicate(self, node: Any, depth: int) -> str:
        self._nodes += 1
        if self._nodes > MOST_NODES or depth > MOST_DEPTH:
            raise NotUnderstood("the filter is too large")
        constant = _constant(node)
        if constant is not None:
            return "true" if constant else "false"
        if not isinstance(node, Mapping) or not isinstance(node.get("type"), str):
            raise NotUnderstood("something in the filter is no predicate")
        kind: str = node["type"]
        match kind:
            case "and" | "or":
                left, right = _members(node, "left", "right")
                return f"({self._predicate(left, depth + 1)} {kind.upper()} {self._predicate(right, depth + 1)})"
            case "not":
                (child,) = _members(node, "child")
                return f"(NOT {self._predicate(child, depth + 1)})"
            case "is-null" | "not-null" | "is-nan" | "not-nan":
                (child,) = _members(node, ("child", "term"))
                return self._unary(kind, self._column(child))
            case "in" | "not-in":
                child, values = _members(node, ("child", "term"), "values")
                return self._member(kind, self._column(child), values)
            case "starts-with" | "not-starts-with":
                left, right = _members(node, ("left", "term"), ("right", "value"))
                return self._starts(kind, self._column(left), right)
            case _ if kind in _COMPARED:
                left, right = _members(node, ("left", "term"), ("right", "value"))
                if isinstance(left, Mapping) and left.get("type") == "literal":
                    left, right, kind = right, left, _FLIPPED[kind]
                return self._compared(kind, self._column(left), right)
        raise NotUnderstood("an operator of the filter is not known")

    @staticmethod
    def _unary(kind: str, column: Column) -> str:
        name = _quoted(column)
        if kind in ("is-null", "not-null"):
            return f"({name} IS {'NOT ' if kind == 'not-null' else ''}NULL)"
        if column.type not in ("float", "double"):
            raise NotUnderstood("a column that is no floating-point number is asked for NaN")
        # The engine calls NULL no NaN; the filter does not know.
        found = f"(CASE WHEN {name} IS NOT NULL THEN isnan({name}) END)"
        return found if kind == "is-nan" else f"(NOT {found})"

    @staticmethod
    def _compared(kind: str, column: Column, value: Any) -> str:
        if column.type in _UNORDERED and kind not in ("eq", "not-eq"):
            raise NotUnderstood("a column without an order is compared")
        return f"({_quoted(column)} {_COMPARED[kind]} {_literal(value, column.type)})"

    @staticmethod
    def _member(kind: str, column: Column, values: Any) -> str:
        if not isinstance(values, Sequence) or isinstance(values, str) or not 0 < len(values) <= MOST_VALUES:
            raise NotUnderstood("a list of values is empty, too long or none")
        written = ", ".join(_literal(value, column.type) for value in values)
        return f"({_quoted(column)} {'NOT IN' if kind == 'not-in' else 'IN'} ({written}))"

    @staticmethod
    def _starts(kind: str, column: Column, value: Any) -> str:
        if column.type != "string":
            raise NotUnderstood("a column that is no text is asked for its beginning")
        found = f"startswith({_quoted(column)}, {_literal(value, column.type)})"
        return found if kind == "starts-with" else f"(NOT {found})"

    def _column(self, reference: Any) -> Column:
        """Return the column that a reference means: by its id, or by its exact name."""
        found: list[Column] = []
        if isinstance(reference, str):
            found = [column for column in self.columns if column.name == reference]
        elif isinstance(reference, Mapping) and reference.get("type") == "reference":
            if reference.keys() == {"type", "id"} and type(reference["id"]) is int:
                found = [column for column in self.columns if column.field_id == reference["id"]]
            elif reference.keys() in ({"type", "term"}, {"type", "name"}):
                name = reference.get("term", reference.get("name"))
                found = [column for column in self.columns if column.name == name]
        if len(found) != 1:
            raise NotUnderstood("the filter names what is no column of the table")
        if found[0].field_id is not None:
            self.used.add(found[0].field_id)
        return found[0]


def _constant(node: Any) -> bool | None:
    if isinstance(node, bool):
        return node
    if isinstance(node, Mapping) and node.keys() == {"type"}:
        # Not with `in`: for Python the number 1 is True.
        if node["type"] is True or node["type"] == "true":
            return True
        if node["type"] is False or node["type"] == "false":
            return False
    return None


def _members(node: Mapping[str, Any], *wanted: str | tuple[str, ...]) -> list[Any]:
    """Return the members of a predicate, each under one of its spellings; another one is an error."""
    names = []
    for one in wanted:
        spellings = (one,) if isinstance(one, str) else one
        found = [name for name in spellings if name in node]
        if len(found) != 1:
            raise NotUnderstood("a predicate of the filter is not complete")
        names += found
    if node.keys() != {"type", *names}:
        raise NotUnderstood("a predicate of the filter has a member that is not known")
    return [node[name] for name in names]


def _literal(value: Any, column_type: str) -> str:
    """Write a value of Iceberg's JSON as a literal of a column's type."""
    if isinstance(value, Mapping):
        if value.get("type") != "literal" or value.keys() != {"type", "value"}:
            raise NotUnderstood("a value of the filter is no literal")
        value = value["value"]
    write = _WRITERS.get(_family(column_type))
    text = write(value) if write is not None else None
    if text is None:
        raise NotUnderstood(f"a value of the filter is none of type {column_type}")
    return text


def _family(column_type: str) -> str:
    if _DECIMAL.fullmatch(column_type):
        return "decimal"
    return "binary" if _BINARY.fullmatch(column_type) else column_type


def _boolean(value: Any) -> str | None:
    return ("true" if value else "false") if isinstance(value, bool) else None


def _whole(bits: int, suffix: str) -> Callable[[Any], str | None]:
    def write(value: Any) -> str | None:
        # The least one has no literal: its sign is another token.
        return f"{value}{suffix}" if type(value) is int and abs(value) < 1 << (bits - 1) else None

    return write


def _floating(suffix: str) -> Callable[[Any], str | None]:
    def write(value: Any) -> str | None:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return f"{float(value)!r}{suffix}" if number and abs(value) < 1e30 and math.isfinite(value) else None

    return write


def _decimal(value: Any) -> str | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return f"{Decimal(value):f}BD"
    return None


def _text(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        return None
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _uuid(value: Any) -> str | None:
    return f"'{value.lower()}'" if isinstance(value, str) and _UUID.fullmatch(value.lower()) else None


def _bytes(value: Any) -> str | None:
    return f"X'{value}'" if isinstance(value, str) and len(value) <= _MOST_TEXT and _HEX.fullmatch(value) else None


def _day(value: Any) -> str | None:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return f"DATE '{date.fromisoformat(value).isoformat()}'"
    except ValueError:
        return None


def _moment(*, zone: bool) -> Callable[[Any], str | None]:
    def write(value: Any) -> str | None:
        form = _MOMENT.fullmatch(value) if isinstance(value, str) else None
        if form is None or (form[3] is not None) != zone:
            return None
        try:
            moment = datetime.fromisoformat(f"{form[1]}T{form[2]}")
        except ValueError:
            return None
        written = moment.isoformat(sep=" ")
        return f"TIMESTAMP '{written}Z'" if zone else f"TIMESTAMP_NTZ '{written}'"

    return write


_WRITERS: Mapping[str, Callable[[Any], str | None]] = {
    "boolean": _boolean,
    "int": _whole(32, ""),
    "bigint": _whole(64, "L"),
    "float": _floating("F"),
    "double": _floating("D"),
    "decimal": _decimal,
    "string": _text,
    "uuid": _uuid,
    "binary": _bytes,
    "date": _day,
    "timestamp_ltz": _moment(zone=True),
    "timestamp_ntz": _moment(zone=False),
}


def _quoted(column: Column) -> str:
    return "`" + column.name.replace("`", "``") + "`"
