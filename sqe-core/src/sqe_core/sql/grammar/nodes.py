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


class Call(exp.Expression):
    """A function call with all that may follow it. `this` is the name, folded unless quoted."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": False,
        "distinct": False,
        "order": False,  # inside the brackets
        "within": False,  # WITHIN GROUP (ORDER BY …)
        "filter": False,
        "nulls": False,  # "ignore" or "respect"
        "options": False,  # what only this function takes, as JSON_VALUE's ON EMPTY
    }


class Conversion(exp.Expression):
    """CAST, TRY_CAST, :: and typed literals. `to` is a `SqlType`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True, "safe": False, "literal": False}

    @property
    def target(self) -> SqlType:
        """The type."""
        target = self.args["to"]
        assert isinstance(target, SqlType)
        return target


class Period(exp.Expression):
    """INTERVAL 'text' unit [TO unit]. `sign` is -1 or 1."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "sign": True, "unit": True, "to": False}


class TimeTravel(exp.Expression):
    """FOR VERSION|TIMESTAMP AS OF. `kind` is "version" or "timestamp"."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class FileName(exp.Expression):
    """A quoted file name that stands for a table."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Quantified(exp.Expression):
    """`x = ANY (query)`; `op` is the operator, `all` tells ALL from ANY."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "op": True, "query": True, "all": True}


class DefaultMark(exp.Expression):
    """The word DEFAULT where a value stands."""

    arg_types: ClassVar[dict[str, bool]] = {}


class Frame(exp.Expression):
    """A window frame; each bound is "UNBOUNDED", "CURRENT ROW" or an expression, with its side."""

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "start": True,
        "start_side": False,
        "end": False,
        "end_side": False,
    }


class MergeBranch(exp.Expression):
    """One WHEN clause of a MERGE. `action` is "update", "delete" or "insert"; `all` is UPDATE SET * and INSERT *."""

    arg_types: ClassVar[dict[str, bool]] = {
        "matched": True,
        "by_source": False,
        "condition": False,
        "action": True,
        "all": False,
        "assignments": False,
        "columns": False,
        "values": False,
    }
