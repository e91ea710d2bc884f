"""What the clock shows at a time with a zone: parts, formats and texts are asked of it, and days are counted on it."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call, Conversion, Period
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.write_calls import argument
from sqe_core.sql.spark.writer import Writer
from sqe_core.sql.spark.zones import SESSION, STORED, ZONED, constant_zone
from sqe_core.sql.statement import session_marker
from sqe_core.sql.text.context import Dialect
from sqe_core.sql.text.time_zone import has_zone

UTC = "'UTC'"
STORED_ZONE = "TRUE"
"""Stands for a zone where nothing is said of it: UTC, and Spark's own expressions where that is the session's zone."""


def local(writer: Writer, node: Any) -> str:
    """Write a time as what the clock of its zone shows; one without a zone as it is."""
    explicit = _explicit(node)
    if explicit is not None:
        return f"_sqe_local_time({argument(writer, explicit[0])}, {_zone(writer, explicit[1])})"
    zone = zone_of(writer, node)
    if zone is None:
        return argument(writer, node)
    if writer.zones.of(node) not in (None, STORED):
        return f"_sqe_local_time({argument(writer, node)}, {zone})"
    value = _bare(node)
    if isinstance(value, Conversion) and value.target.name == ZONED and isinstance(value.this, exp.Column):
        return f"_sqe_clock_of_cast({argument(writer, value.this)}, {argument(writer, node)})"
    return f"_sqe_clock({argument(writer, node)}, {zone})"


def zone_of(writer: Writer, node: Any) -> str | None:
    """Write the zone of an expression; None where it is that of the session, or certainly has none.

    The session of policies is in UTC (POL-7). They are written so that they are the same in every other.
    """
    if writer.dialect is not Dialect.TRINO or has_no_zone(node):
        return None
    explicit = _explicit(node)
    if explicit is not None:
        return _zone(writer, explicit[1])
    zone = writer.zones.of(node)
    if zone is SESSION:
        return None
    if zone is None or zone is STORED:
        return None if writer.of_policy else STORED_ZONE
    return quote_string(zone.name)


def zone_name_of(writer: Writer, node: Any) -> str:
    """Write the name of the zone of an expression, whatever it is."""
    zone = zone_of(writer, node)
    if zone is None:
        known = writer.zones.of(node)
        stored = known is not SESSION and not has_no_zone(node)
        return UTC if stored else f":{session_marker('current_timezone')}"
    return UTC if zone == STORED_ZONE else zone


def in_zone(writer: Writer, node: Any) -> str:
    """Write a time, and behind a comma the zone in which it is told, where that is not the session's."""
    zone = zone_of(writer, node)
    return argument(writer, node) if zone is None else f"{argument(writer, node)}, {zone}"


def _explicit(node: Any) -> tuple[Any, Any] | None:
    """Return the time and the zone of AT TIME ZONE."""
    node = _bare(node)
    if isinstance(node, exp.AtTimeZone):
        return node.this, node.args["zone"]
    if isinstance(node, Call) and node.this == "at_timezone" and len(node.expressions) == 2:
        return node.expressions[0], node.expressions[1]
    return None


def _zone(writer: Writer, node: Any) -> str:
    constant = constant_zone(node) if writer.dialect is Dialect.TRINO or isinstance(_bare(node), Period) else None
    return argument(writer, node) if constant is None else quote_string(constant.name)


def has_no_zone(node: Any) -> bool:
    """Whether an expression is certainly of a type without a zone."""
    node = _bare(node)
    if isinstance(node, Call):
        return bool(node.this == "_sqe_today_at")
    if isinstance(node, Conversion):
        return node.target.name != ZONED and not (node.args.get("literal") and has_zone(str(node.this.this)))
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean | Period)


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node
