"""The tree between reading and writing: sqlglot's expressions, and our own where sqlglot's lose something."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlglotDialect

from sqe_core.sql.grammar.types import SqlType


class AnsiTree(SqlglotDialect):
    """What sqlglot must know of the dialect: subscripts stay as written, division is ours."""

    INDEX_OFFSET = 0
    TYPED_DIVISION = False
    SAFE_DIVISION = False
    NULL_ORDERING = "nulls_are_last"
    STRICT_STRING_CONCAT = True


def place_of(node: exp.Expression) -> int | None:
    """Where the user wrote the first part of it whose place is known."""
    return next((part.meta["start"] for part in node.walk() if part.meta.get("start") is not None), None)


class Call(exp.Expression):
    """A function call with all that may follow it. `this` is the name, folded unless quoted.

    `order` stands inside the brackets, `within` is that of WITHIN GROUP, `nulls` "ignore" or "respect"; `options` are
    what only this function takes, as JSON_VALUE's ON EMPTY.
    """

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(
        ("this", "expressions", "distinct", "order", "within", "filter", "nulls", "options"), False
    )


class Conversion(exp.Expression):
    """CAST, TRY_CAST, :: and typed literals. `to` is a `SqlType`."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(("this", "to", "safe", "literal"), False)

    @property
    def target(self) -> SqlType:
        target = self.args["to"]
        assert isinstance(target, SqlType)
        return target


class Period(exp.Expression):
    """INTERVAL 'text' unit [TO unit]. `sign` is -1 or 1."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(("this", "sign", "unit", "to"), False)


class TimeTravel(exp.Expression):
    """FOR VERSION|TIMESTAMP AS OF. `kind` is "version" or "timestamp"."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(("this", "kind"), False)


class FileName(exp.Expression):
    """A quoted file name that stands for a table."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(("this",), False)


class Quantified(exp.Expression):
    """`x = ANY (query)`; `op` is the operator, `all` tells ALL from ANY."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(("this", "op", "query", "all"), False)


class DefaultMark(exp.Expression):
    """The word DEFAULT where a value stands."""

    arg_types: ClassVar[dict[str, bool]] = {}


class Frame(exp.Expression):
    """A window frame; each bound is "UNBOUNDED", "CURRENT ROW" or an expression, with its side."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(("kind", "start", "start_side", "end", "end_side"), False)


class MergeBranch(exp.Expression):
    """One WHEN clause of a MERGE. `action` is "update", "delete" or "insert"; `all` is UPDATE SET * and INSERT *."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(
        ("matched", "by_source", "condition", "action", "all", "assignments", "columns", "values"), False
    )
