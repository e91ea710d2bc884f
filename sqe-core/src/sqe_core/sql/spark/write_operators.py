"""Rules for operators, casts and literals whose meaning depends on types."""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call, Conversion, Period, Quantified, TimeTravel
from sqe_core.sql.grammar.types import MAX_TIME_PRECISION, SqlType
from sqe_core.sql.spark.clocks import in_zone, local, zone_of
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.write_calls import argument, concatenated, copied
from sqe_core.sql.spark.write_membership import member
from sqe_core.sql.spark.writer import Writer, operand, rule, says
from sqe_core.sql.text.context import Dialect
from sqe_core.sql.text.time_zone import has_zone

_ROUNDED = ("tinyint", "smallint", "integer", "bigint")
_BEYOND_MICROS = re.compile(r"\.\d{6}0*[1-9]")
_PERIOD_UNITS = {"quarter": ("month", 3)}
_PERIOD_TEXT = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*[a-zA-Z]+(?:\s+[+-]?\d+(?:\.\d+)?\s*[a-zA-Z]+)*\s*")


for _kind, _text in (
    (exp.Div, "_sqe_div({this}, {expression})"),
    (exp.Mod, "_sqe_mod({this}, {expression})"),
    (exp.Bracket, "_sqe_subscript({this}, {expressions})"),
    (exp.AtTimeZone, "_sqe_at_zone({this}, {zone})"),
    (exp.RegexpLike, "rlike({this}, {expression})"),
    (exp.RegexpILike, "rlike({this}, concat('(?i)', {expression}))"),
):
    says(_kind, _text, part=argument)


@rule(exp.DPipe, "this", "expression")
def _concat(writer: Writer, node: Any) -> str:
    parts: list[Any] = []
    while isinstance(node, exp.DPipe):
        parts.append(node.expression)
        node = node.this
    parts.append(node)
    return concatenated(writer, parts[::-1])


@rule(exp.Placeholder, "this")
def _parameter(writer: Writer, node: Any) -> str:
    name = str(node.this)
    return name if name.startswith(":") else f":{writer.positional[node.meta['start']]}"


# --- patterns


@rule(exp.Like, "this", "expression")
def _like(writer: Writer, node: Any) -> str:
    return _matched(writer, node, "LIKE", None)


@rule(exp.ILike, "this", "expression")
def _ilike(writer: Writer, node: Any) -> str:
    return _matched(writer, node, "ILIKE", None)


@rule(exp.Escape, "this", "expression")
def _escape(writer: Writer, node: Any) -> str:
    inner = node.this
    if isinstance(inner, exp.SimilarTo):
        return _similar(writer, inner, writer.write(node.expression))
    return _matched(writer, inner, "LIKE" if isinstance(inner, exp.Like) else "ILIKE", node.expression)


def _matched(writer: Writer, node: Any, word: str, escape: Any) -> str:
    pattern = node.expression
    if escape is not None:
        if not (isinstance(escape, exp.Literal) and len(str(escape.this)) == 1):
            writer.refuse("ESCAPE takes one character in single quotes", escape)
        return f"{operand(writer, node.this)} {word} {operand(writer, pattern)} ESCAPE {writer.write(escape)}"
    if isinstance(pattern, exp.Literal):
        # Spark escapes with a backslash unless told otherwise, SQL does not.
        text = str(pattern.this).replace("\\", "\\\\")
        return f"{operand(writer, node.this)} {word} {writer.place(pattern)}{quote_string(text)}"
    return f"{operand(writer, node.this)} {word} {operand(writer, pattern)} ESCAPE '\\u0000'"


@rule(exp.SimilarTo, "this", "expression")
def _similar_to(writer: Writer, node: Any) -> str:
    return _similar(writer, node, "''")


def _similar(writer: Writer, node: Any, escape: str) -> str:
    return f"_sqe_similar({argument(writer, node.this)}, {argument(writer, node.expression)}, {escape})"


# --- comparisons with subqueries

_OPERATORS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}

_WORDS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


@rule(Quantified, "this", "op", "query", "all")
def _quantified(writer: Writer, node: Any) -> str:
    sign, every = _OPERATORS[node.args["op"]], bool(node.args.get("all"))
    if (sign, every) in (("=", False), ("<>", True)):
        return member(writer, node, node.this, node.args["query"], negated=every)
    value, query = argument(writer, node.this), writer.write(node.args["query"])
    summary = (
        "(SELECT named_struct('n', count(*), 't', count(*) = count(`_sqe_v`), 'lo', min(`_sqe_v`), 'hi', max(`_sqe_v`))"
        f" FROM {query} AS `_sqe_q`(`_sqe_v`))"
    )
    return f"_sqe_{_WORDS[sign]}_{'all' if every else 'any'}({value}, {summary})"


# --- conversions


# Arrays whose elements Spark casts otherwise.
_ARRAYS = {
    SqlType("integer"): "_sqe_to_integers",
    SqlType("bigint"): "_sqe_to_bigints",
    SqlType("varchar"): "_sqe_to_varchars",
}


@rule(Conversion, "this", "to", "safe", "literal")
def _conversion(writer: Writer, node: Any) -> str:
    target: SqlType = node.target
    safe = bool(node.args.get("safe"))
    if node.args.get("literal"):
        return _typed_literal(writer, node)
    value = node.this
    if target.name in _ROUNDED and not _is_whole(value):
        word = "_sqe_try_to_" if safe else "_sqe_to_"
        return f"{word}{target.name}({argument(writer, value)})"
    if target.name == "varchar":
        return _to_varchar(writer, value, target)
    if target.name == "char":
        return f"_sqe_to_char_n({_told(writer, value)}, {target.numbers[0]})"
    if target.name == "uuid":
        return f"_sqe_{'try_' if safe else ''}to_uuid({argument(writer, value)})"
    if target.name == "ipaddress":
        return f"_sqe_{'try_' if safe else ''}to_address({argument(writer, value)})"
    if target.name == "varbinary" and isinstance(value, Conversion) and value.target.name == "uuid":
        return f"unhex(replace({argument(writer, value)}, '-', ''))"
    if target.name == "array" and not safe and target.elements[0] in _ARRAYS:
        return f"{_ARRAYS[target.elements[0]]}({argument(writer, value)})"
    if target.name == "json":
        if writer.dialect is Dialect.TRINO and isinstance(value, Call) and value.this == "row":
            hint = "CAST it to ROW(name type, …) first"
            writer.refuse("The fields of this row have no names for the members of a JSON object", node, hint=hint)
        return f"_sqe_to_json({argument(writer, value)})"
    if target.name == "time" and not safe and target.numbers and target.numbers[0] < MAX_TIME_PRECISION:
        return f"_sqe_to_time_p({local(writer, value)}, {target.numbers[0]})"
    if target.name == "time" and not safe:
        return f"_sqe_to_time({local(writer, value)})"
    if target.name.startswith("timestamp") and _is_time(value):
        # A time of today.
        value = Call(this="_sqe_today_at", expressions=[value])
    rounded = target.numbers and target.numbers[0] < MAX_TIME_PRECISION and not safe
    if target.name == "timestamp" and rounded:
        return f"_sqe_to_timestamp_p({local(writer, value)}, {target.numbers[0]})"
    if target.name == "timestamp with time zone" and rounded:
        return f"_sqe_to_timestamptz_p({argument(writer, value)}, {target.numbers[0]})"
    if target.elements:
        return _nested_cast(writer, value, target, safe=safe)
    clock = target.name in ("date", "timestamp")
    written = local(writer, value) if clock else writer.write(value)
    return f"{'TRY_CAST' if safe else 'CAST'}({written} AS {target.spark()})"


def _nested_cast(writer: Writer, value: Any, target: SqlType, *, safe: bool) -> str:
    with copied(writer, 2 if safe else 1, "TRY_CAST"):
        written = writer.write(value)
    shape = _shape(target)
    if shape is not None:
        written = f"_sqe_shaped({written}, {quote_string(json.dumps(shape))})"
    if safe:
        return f"_sqe_whole({written}, TRY_CAST({written} AS {target.spark()}))"
    return f"CAST({written} AS {target.spark()})"


def _shape(type: SqlType) -> list[Any] | None:
    """Say where a type has rows, and what their fields are called; None for one without rows."""
    inside = [_shape(element) for element in type.elements]
    if type.name == "row":
        return ["row", *([type.field(at), shape] for at, shape in enumerate(inside))]
    return [type.name, inside[-1]] if inside and inside[-1] is not None else None


def _is_time(node: Any) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, Conversion):
        return node.target.name == "time"
    return isinstance(node, Call) and node.this in ("current_time", "localtime")


def _is_whole(node: Any) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()


def _to_varchar(writer: Writer, value: Any, target: SqlType) -> str:
    if isinstance(value, exp.Literal) and value.is_string:
        text = str(value.this)
        return writer.place(value) + quote_string(text[: target.numbers[0]] if target.numbers else text)
    if target.numbers:
        return f"_sqe_to_varchar_n({_told(writer, value)}, {target.numbers[0]})"
    return f"_sqe_to_varchar({in_zone(writer, value) if writer.dialect is Dialect.TRINO else local(writer, value)})"


def _told(writer: Writer, value: Any) -> str:
    """Write what becomes a text of some length; a time with its zone."""
    if writer.dialect is not Dialect.TRINO:
        return local(writer, value)
    zone, written = zone_of(writer, value), argument(writer, value)
    return written if zone is None else f"_sqe_told({written}, {zone})"


def _typed_literal(writer: Writer, node: Any) -> str:
    name, text = node.target.name, str(node.this.this)
    if name.startswith("time") and _BEYOND_MICROS.search(text):
        writer.refuse("Times hold 6 digits of a second at most", node)
    literal = quote_string(text)
    if name in ("date", "time"):
        return f"{name.upper()} {literal}"
    if name in ("timestamp", "timestamp with time zone"):
        zoned = name != "timestamp" or has_zone(text)
        return f"{'TIMESTAMP_LTZ' if zoned else 'TIMESTAMP_NTZ'} {literal}"
    if name == "json":
        return f"_sqe_json_parse({literal})"
    if name in ("varchar", "char"):
        return literal
    if name == "ipaddress":
        return _address(writer, node, text)
    if name == "uuid":
        return _uuid(writer, node, text)
    if name == "decimal":
        return _decimal(writer, node, text)
    if name == "varbinary":
        writer.refuse("Binary literals are written X'…'", node)
    return f"CAST({literal} AS {node.target.spark()})"


def _uuid(writer: Writer, node: Any, text: str) -> str:
    if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is None:
        raise writer.text.error(f"{text[:60]!r} is no UUID", node.meta.get("start", 0))
    return quote_string(text.lower())


def _address(writer: Writer, node: Any, text: str) -> str:
    try:
        address = ipaddress.ip_address(text.replace("%", " "))  # the zone of a link is no part of an address
    except ValueError:
        raise writer.text.error(f"{text[:60]!r} is no address", node.meta.get("start", 0)) from None
    return quote_string(str(getattr(address, "ipv4_mapped", None) or address))


def _decimal(writer: Writer, node: Any, text: str) -> str:
    try:
        number = Decimal(text.strip())
        if not number.is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise writer.text.error(f"{text[:60]!r} is no DECIMAL", node.meta.get("start", 0)) from None
    return f"{number:f}BD"


@rule(Period, "this", "sign", "unit", "to")
def _period(writer: Writer, node: Any) -> str:
    text, unit, to = str(node.this), str(node.args.get("unit") or ""), node.args.get("to")
    sign = "-" if node.args.get("sign") == -1 else ""
    if not unit:
        if _PERIOD_TEXT.fullmatch(text) is None:
            writer.refuse("This interval has no unit", node, hint="write INTERVAL '3' DAY")
        return f"{sign}INTERVAL {quote_string(text)}"
    if unit in _PERIOD_UNITS and re.fullmatch(r"[+-]?\d+", text):
        unit, factor = _PERIOD_UNITS[unit]
        text = str(int(text) * factor)
    if to is not None:
        return f"INTERVAL {sign}{quote_string(text)} {unit.upper()} TO {str(to).upper()}"
    return f"INTERVAL {sign}{quote_string(text)} {unit.upper()}"


# --- time travel: literals only (NAME-5)


@rule(TimeTravel, "this", "kind")
def _time_travel(writer: Writer, node: Any) -> str:
    value = node.this
    while isinstance(value, exp.Paren):
        value = value.this
    if node.args["kind"] == "version":
        if isinstance(value, exp.Literal) and (value.is_string or str(value.this).isdigit()):
            return f"VERSION AS OF {writer.write(value)}"
        writer.refuse("A version must be a number or a name in single quotes", node, hint="parameters are not possible")
    if (
        isinstance(value, Conversion)
        and value.args.get("literal")
        and value.target.name.startswith(("timestamp", "date"))
    ):
        return f"TIMESTAMP AS OF {writer.place(value)}{quote_string(str(value.this.this))}"
    if isinstance(value, exp.Literal) and value.is_string:
        return f"TIMESTAMP AS OF {writer.write(value)}"
    if isinstance(value, exp.Literal) and str(value.this).isdigit():
        return f"TIMESTAMP AS OF {quote_string(_instant(writer, node, int(value.this)))}"
    writer.refuse(
        "The time must be a literal", node, hint="such as TIMESTAMP '2026-01-01 00:00:00' or milliseconds since 1970"
    )


def _instant(writer: Writer, node: Any, millis: int) -> str:
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        writer.refuse("This time is out of range", node)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{millis % 1000:03d}"


@rule(exp.Pivot, "expressions", "fields", "alias", "unpivot")
def _pivot(writer: Writer, node: Any) -> str:
    field = node.args["fields"][0]
    alias = node.args.get("alias")
    named = f" AS {writer.write(alias)}" if alias is not None else ""
    values = writer.writes(field.expressions)
    if node.args.get("unpivot"):
        return f"UNPIVOT ({writer.write(node.expressions[0])} FOR {writer.write(field.this)} IN ({values})){named}"
    return f"PIVOT ({writer.writes(node.expressions)} FOR {writer.write(field.this)} IN ({values})){named}"
