"""Functions that a text with places for the arguments cannot say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call, Conversion
from sqe_core.sql.spark.aggregate_rules import AGGREGATE_RULES
from sqe_core.sql.spark.json_rules import JSON_RULES
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.time_rules import TIME_RULES
from sqe_core.sql.spark.type_rules import TYPE_RULES
from sqe_core.sql.spark.write_calls import Calling, argument, concatenated, copied, named
from sqe_core.sql.statement import session_marker
from sqe_core.sql.text.context import Dialect

_SHA = {"sha224": 224, "sha256": 256, "sha384": 384, "sha512": 512}


def _substring(calling: Calling) -> str:
    calling.count(2, 3)
    start = calling.arguments[1]
    positive = isinstance(start, exp.Literal) and str(start.this).isdigit() and int(start.this) > 0
    # From a fixed place on, Spark means the same, and can push the predicate down.
    name = "substring" if positive else "_sqe_substring"
    return f"{name}({', '.join(calling.written(at) for at in range(len(calling.arguments)))})"


def _concat(calling: Calling) -> str:
    if not calling.arguments:
        calling.wrong_count()
    return concatenated(calling.writer, calling.arguments)


def _contains(calling: Calling) -> str:
    calling.count(2)
    node = calling.arguments[1]
    network = isinstance(node, Conversion) and node.target.name == "ipaddress"
    return f"{'_sqe_in_network' if network else '_sqe_contains'}({calling.written(0)}, {calling.written(1)})"


def _repeat(calling: Calling) -> str:
    calling.count(2)
    if calling.writer.dialect is Dialect.TRINO:
        # By a name that the judge knows: it bounds counts that are literals (LIM-6).
        return f"_sqe_array_repeat({calling.written(0)}, {calling.written(1)})"
    return f"_sqe_repeat({calling.written(0)}, {calling.written(1)})"


def _regexp_replace(calling: Calling) -> str:
    calling.count(2, 3)
    by_lambda = len(calling.arguments) == 3 and isinstance(calling.arguments[2], exp.Lambda)
    with copied(calling.writer, 2 if by_lambda else 1, calling.name):
        text, pattern = calling.written(0), calling.written(1)
    replacement = calling.written(2) if len(calling.arguments) == 3 else "''"
    if by_lambda:
        groups = f"_sqe_regexp_groups({text}, {pattern})"
        return f"_sqe_regexp_replaced({text}, {pattern}, transform({groups}, {replacement}))"
    return f"regexp_replace({text}, {pattern}, {replacement})"


def _digest(calling: Calling) -> str:
    calling.count(2)
    algorithm = (calling.literal(1) or "").lower().replace("-", "")
    value = calling.written(0)
    if algorithm == "md5":
        return f"unhex(md5({value}))"
    if algorithm not in _SHA:
        raise calling.error("digest knows the algorithms md5, sha224, sha256, sha384 and sha512")
    return f"unhex(sha2({value}, {_SHA[algorithm]}))"


def _encode(calling: Calling) -> str:
    calling.count(2)
    return _coded(calling, {"base64": "base64({})", "hex": "lower(hex({}))"}, "encode({}, {})")


def _decode(calling: Calling) -> str:
    calling.count(2)
    return _coded(calling, {"base64": "unbase64({})", "hex": "unhex({})"}, "decode({}, {})")


def _coded(calling: Calling, known: dict[str, str], charset: str) -> str:
    written = (calling.literal(1) or "").lower()
    if written in known:
        return known[written].format(calling.written(0))
    if written.replace("_", "-") in ("utf-8", "utf8", "us-ascii", "iso-8859-1", "utf-16", "utf-16be", "utf-16le"):
        return charset.format(calling.written(0), quote_string(written.upper().replace("UTF8", "UTF-8")))
    raise calling.error(f"{calling.name} knows the formats base64, hex and UTF-8")


def _try(calling: Calling) -> str:
    calling.count(1)
    return _tried(calling, calling.arguments[0])


def _tried(calling: Calling, node: Any) -> str:
    """An expression that is NULL where it would fail; only what is known to be so is accepted."""
    writer = calling.writer
    if isinstance(node, exp.Paren):
        return _tried(calling, node.this)
    if isinstance(node, Conversion):
        inner = Conversion(this=node.this, to=node.target, safe=True)
        if _cannot_fail(node.this):
            return writer.write(inner)
    names = {exp.Add: "_sqe_try_add", exp.Sub: "_sqe_try_sub", exp.Mul: "_sqe_try_mul", exp.Mod: "_sqe_try_mod"}
    for kind, name in names.items():
        if type(node) is kind:
            return f"{name}({_tried(calling, node.this)}, {_tried(calling, node.expression)})"
    if isinstance(node, exp.Div):
        left, right = _tried(calling, node.this), _tried(calling, node.expression)
        return f"_sqe_div({left}, nullif({right}, 0))"
    if isinstance(node, exp.Bracket):
        return f"try_element_at({argument(writer, node.this)}, {argument(writer, node.expressions[0])})"
    if isinstance(node, Call) and node.this in ("json_parse", "date_parse", "parse_datetime", "from_iso8601_timestamp"):
        calling.writer.refuse(f"try({node.this}(…)) is not supported", node, hint="test the text first")
    if _cannot_fail(node):
        return argument(writer, node)
    writer.refuse(
        "This expression cannot stand in try()", node, hint="use TRY_CAST, or CASE WHEN to test the values first"
    )


def _cannot_fail(node: Any) -> bool:
    return isinstance(node, exp.Column | exp.Literal | exp.Null | exp.Boolean | exp.Placeholder | exp.Dot)


def _format(calling: Calling) -> str:
    """Spark's own prints a date as a number of days."""
    if not calling.arguments:
        calling.wrong_count()
    rest = [f"_sqe_format_argument({calling.written(at)})" for at in range(1, len(calling.arguments))]
    return f"format_string({', '.join([calling.written(0), *rest])})"


def _map_concat(calling: Calling) -> str:
    """Later maps win; Spark refuses keys that occur twice."""
    maps = [calling.written(at) for at in range(len(calling.arguments))]
    if not maps:
        return "map()"
    result = maps[-1]
    for one in reversed(maps[:-1]):
        result = f"_sqe_map_concat({one}, {result})"
    return result


def _row(calling: Calling) -> str:
    if not calling.arguments:
        calling.wrong_count()
    return named([(f"col{at + 1}", calling.written(at)) for at in range(len(calling.arguments))])


def _session(calling: Calling) -> str:
    calling.count(0)
    return f":{session_marker(calling.name)}"


RULES: dict[str, Callable[[Calling], str]] = {
    "substring": _substring,
    "concat": _concat,
    "contains": _contains,
    "repeat": _repeat,
    "regexp_replace": _regexp_replace,
    "digest": _digest,
    "encode": _encode,
    "decode": _decode,
    "try": _try,
    "format": _format,
    "map_concat": _map_concat,
    "row": _row,
    "session": _session,
    **TIME_RULES,
    **JSON_RULES,
    **TYPE_RULES,
    **AGGREGATE_RULES,
}
