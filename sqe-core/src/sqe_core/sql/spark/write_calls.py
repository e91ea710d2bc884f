"""Rules for function calls: the table says how each is written, special rules do the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sqe_core.spi.errors import ErrorCode, ResourcesError, SqeError, UserError
from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.spark import functions
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.writer import Writer, condition, operand, rule
from sqe_core.sql.text.context import Dialect

MAX_COPIES = 4096  # of one argument, by templates that repeat theirs

_PLACEHOLDER = re.compile(r"\{([0-9]|\*|[0-9]\*|distinct)\}")
_AGGREGATE = re.compile(r"\[\[(.+?)\]\]")
_ONE_AGGREGATE = re.compile(r"\[\[[^\[\]]+\]\]")
# ORDER BY inside the brackets changes nothing for these.
_ORDER_FREE = frozenset(("count", "sum", "avg", "min", "max", "count_if", "bool_and", "bool_or", "every"))
# DISTINCT changes nothing for these.
_DISTINCT_FREE = frozenset(
    ("min", "max", "bool_and", "bool_or", "every", "any_value", "arbitrary", "approx_distinct", "bit_and", "bit_or")
)
# What NULL is where a signature has these words.
_NULLS = {
    "array": "CAST(NULL AS ARRAY<VOID>)",
    "map": "CAST(NULL AS MAP<VOID, VOID>)",
    "number": "CAST(NULL AS TINYINT)",
    "decimal": "CAST(NULL AS DECIMAL(1, 0))",
    "json": "CAST(NULL AS STRING)",
    "string": "CAST(NULL AS STRING)",
}
# They take any number of arguments, and not none; Spark's own error of that is about a comma.
_COMPARING = frozenset(("_sqe_greatest", "_sqe_least"))
_NULLS_KEPT = frozenset(("lag", "lead", "first_value", "last_value", "nth_value"))


@dataclass(slots=True)
class Calling:
    """One call while it is written."""

    writer: Writer
    node: Call
    over: str | None  # what stands behind OVER

    @property
    def name(self) -> str:
        """The name that the user wrote, folded."""
        return str(self.node.this)

    @property
    def arguments(self) -> list[Any]:
        """The argument nodes."""
        return list(self.node.expressions)

    def written(self, at: int) -> str:
        """One argument, written; a NULL has the type that the signature says."""
        node = self.node.expressions[at]
        if isinstance(node, exp.Null) and (function := functions.find(self.name)) is not None:
            return _NULLS.get(function.parameter(at), "NULL")
        return argument(self.writer, node)

    def aggregate(self, text: str) -> str:
        """A call of Spark's aggregate with the FILTER and OVER of this call."""
        filtered = self.node.args.get("filter")
        written = None if filtered is None else condition(self.writer, filtered)
        if written is not None and self.over is not None:
            # Spark has no FILTER over windows; aggregates pass over NULL anyway.
            text = _conditional(text, written)
        pieces = [text]
        if written is not None and self.over is None:
            pieces.append(f" FILTER (WHERE {written})")
        nulls = self.node.args.get("nulls")
        if nulls:
            pieces.append(f" {nulls.upper()} NULLS")
        if self.over is not None:
            pieces.append(f" OVER {self.over}")
        return "".join(pieces)

    def literal(self, at: int) -> str | None:
        """The text of an argument that is a string literal."""
        node = self.node.expressions[at]
        return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None

    def count(self, *allowed: int) -> None:
        """Refuse another number of arguments."""
        if len(self.node.expressions) not in allowed:
            self.wrong_count()

    def wrong_count(self) -> None:
        """Say that the number of arguments is wrong."""
        function = functions.find(self.name)
        hint = f"it is {function.signature}" if function else None
        message = f"{self.name} does not take {len(self.node.expressions)} arguments"
        raise self.error(message, hint=hint, condition="FUNCTION_NOT_FOUND")

    def error(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: ErrorCode = ErrorCode.INVALID_ARGUMENTS,
        condition: str | None = None,
    ) -> UserError:
        """Build an error at this call."""
        start = self.node.meta.get("start")
        position = None if start is None else self.writer.text.position(start)
        return UserError(message, code=code, hint=hint, position=position, condition=condition)


def argument(writer: Writer, node: Any) -> str:
    """Write one argument so that it can stand anywhere in an expression."""
    if isinstance(node, exp.Lambda):
        return writer.write(node)
    if isinstance(node, exp.Star | exp.Kwarg):
        writer.refuse("This argument is not supported here", node)
    return operand(writer, node)


def concatenated(writer: Writer, parts: Sequence[Any]) -> str:
    """Write what joins texts, binaries or arrays."""
    values = [part for part in parts if not isinstance(part, exp.Null)]
    if writer.dialect is Dialect.TRINO and len(parts) == 2 and len(values) == 1:
        # Trino takes a text beside NULL for an element of an array.
        return f"_sqe_concat_null({argument(writer, values[0])})"
    return f"_sqe_concat({', '.join(argument(writer, part) for part in parts)})"


@rule(Call, "this", "expressions", "distinct", "order", "within", "filter", "nulls", "options")
def write_call(writer: Writer, node: Any, over: str | None = None) -> str:
    """Write a call; `over` is what stands behind OVER."""
    calling = Calling(writer, node, over)
    if calling.name.startswith(functions.TEMPLATE_PREFIX) or calling.name in writer.facts:
        return f"{calling.name}({', '.join(argument(writer, one) for one in node.expressions)})"
    function = functions.find(calling.name)
    if function is None:
        raise _unknown(calling)
    _check_clauses(calling, function)
    text = function.text_for(len(node.expressions))
    if text is None or (text in _COMPARING and not node.expressions):
        calling.wrong_count()
    assert text is not None
    if text.startswith("@"):
        from sqe_core.sql.spark.function_rules import RULES

        return RULES[text[1:]](calling)
    if text == "=":
        text = calling.name
    if functions.is_name(text):
        text = f"{text}({{*}})"
        return _fill(calling, function, text)
    filled = _fill(calling, function, text)
    closed = _ONE_AGGREGATE.fullmatch(text) is not None or _one_call(filled)
    return filled if closed else f"({filled})"


def _conditional(call: str, condition: str) -> str:
    """An aggregate of the rows that fulfil a condition."""
    name, inside = call.split("(", 1)
    if inside == "*)":
        return f"count(if({condition}, 1, NULL))"
    if call == "any_value(TRUE)":
        return f"bool_or({condition})"
    arguments = [one if _CONSTANT.fullmatch(one) else f"if({condition}, {one}, NULL)" for one in _split(inside[:-1])]
    return f"{name}({', '.join(arguments)})"


_CONSTANT = re.compile(r"TRUE|FALSE|[0-9.]+D?|'[^']*'")


def _split(arguments: str) -> list[str]:
    """Split at the commas outside of brackets and quotes."""
    pieces, start = [], 0
    for at, depth, char in _outside_quotes(arguments):
        if char == "," and depth == 0:
            pieces.append(arguments[start:at].strip())
            start = at + 1
    pieces.append(arguments[start:].strip())
    return pieces


def _one_call(text: str) -> bool:
    """Whether the text is one call and nothing beside it."""
    if not functions.is_name(text.split("(", 1)[0].lower()):
        return False
    for at, depth, char in _outside_quotes(text):
        if char == ")" and depth == 0:
            return at == len(text) - 1
    return False


def _outside_quotes(text: str) -> Iterator[tuple[int, int, str]]:
    """Per character outside of strings and quoted names: its place, the depth of brackets after it, and itself."""
    depth, quote, escaped = 0, "", False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = char == "\\" and quote == "'"
            if char == quote:
                quote = ""
        elif char in "'`":
            quote = char
        else:
            depth += (char in "([") - (char in ")]")
            yield at, depth, char


def _unknown(calling: Calling) -> SqeError:
    name = calling.name
    if (instead := functions.refused().get(name)) is not None:
        calling.writer.refuse(f"The function {name} is not supported", calling.node, hint=instead)
    near = functions.similar(name)
    hint = f"did you mean {near}?" if near else "SHOW FUNCTIONS lists the functions"
    return calling.error(f"Function {name[:80]} does not exist", hint=hint, code=ErrorCode.FUNCTION_NOT_FOUND)


def _check_clauses(calling: Calling, function: functions.Function) -> None:
    args = calling.node.args
    if function.kind == "window" and calling.over is None:
        hint = f"as in {function.name}() OVER (ORDER BY …)"
        raise calling.error(f"{function.name} needs OVER (…)", hint=hint, condition="MISSING_OVER")
    if function.kind == "scalar" and (calling.over is not None or args.get("filter") or args.get("distinct")):
        raise calling.error(f"{function.name} is no aggregate: OVER, FILTER and DISTINCT do not belong to it")
    if args.get("nulls") == "respect":
        args["nulls"] = None
    if (
        args.get("nulls")
        and function.name not in _NULLS_KEPT
        and function.name not in ("array_agg", "any_value", "arbitrary")
    ):
        raise calling.error(f"IGNORE NULLS does not belong to {function.name}")
    special = isinstance(function.spark, str) and function.spark.startswith("@")
    if args.get("order") and not special:
        if function.name not in _ORDER_FREE:
            raise calling.error(f"ORDER BY does not belong to the arguments of {function.name}")
        args["order"] = None
    if args.get("within") and not special:
        raise calling.error(f"WITHIN GROUP does not belong to {function.name}")
    if args.get("options") and not special:
        raise calling.error(f"These words do not belong to {function.name}")
    if args.get("distinct") and not special and "{distinct}" not in str(function.spark):
        _drop_distinct(calling, function)


def _drop_distinct(calling: Calling, function: functions.Function) -> None:
    if function.kind != "scalar" and function.name not in _DISTINCT_FREE:
        raise calling.error(f"DISTINCT does not belong to {function.name}")
    calling.node.args["distinct"] = None


def _fill(calling: Calling, function: functions.Function, text: str) -> str:
    """Put the arguments into a text of functions.toml."""
    most = max((functions.copies(name) for name in re.findall(r"_sqe_\w+", text)), default=1)
    with copied(calling.writer, most * functions.repeated(text), calling.name):
        written = [calling.written(at) for at in range(len(calling.arguments))]
    if isinstance(function.spark, str):
        _check_references(calling, text)

    def put(match: re.Match[str]) -> str:
        what = match.group(1)
        if what == "distinct":
            return "DISTINCT " if calling.node.args.get("distinct") else ""
        if what == "*":
            return ", ".join(written)
        if what.endswith("*"):
            return ", ".join(written[int(what[:-1]) :])
        return written[int(what)]

    # The aggregates are closed first: an argument may hold brackets of its own.
    pieces: list[str] = []
    done = 0
    for match in _AGGREGATE.finditer(text):
        pieces.append(_PLACEHOLDER.sub(put, text[done : match.start()]))
        pieces.append(calling.aggregate(_PLACEHOLDER.sub(put, match.group(1))))
        done = match.end()
    pieces.append(_PLACEHOLDER.sub(put, text[done:]))
    return "".join(pieces)


def _check_references(calling: Calling, text: str) -> None:
    count = len(calling.arguments)
    if "{*}" in text or re.search(r"\{[0-9]\*\}", text):
        return
    used = {int(number) for number in re.findall(r"\{([0-9])\}", text)}
    if max(used, default=-1) + 1 != count:
        calling.wrong_count()


@contextmanager
def copied(writer: Writer, times: int, name: str) -> Iterator[None]:
    """While the arguments of a call are written that repeats them."""
    writer.copies *= times
    if writer.copies > MAX_COPIES:
        raise ResourcesError(f"Calls of {name} nest too deeply", hint="split the expression with a subquery")
    yield
    writer.copies //= times


def named(pairs: list[tuple[str, str]]) -> str:
    """A row with these names and values."""
    return f"named_struct({', '.join(f'{quote_string(name)}, {value}' for name, value in pairs)})"
