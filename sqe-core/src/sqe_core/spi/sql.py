"""SQL text with its dialect: the only form in which an expression crosses the SPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dialect = Literal["sqe", "trino", "spark"]
"""`sqe` is SQE's own SQL (docs/sql.md), `trino` what the Trino wire speaks, `spark` the engine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlExpression:
    """One SQL expression, unchecked: the core compiles it against an allow-list before it is used (POL-5).

    Args:
        text: the expression, without a statement around it.
        dialect: how it is to be read.
        reads_tables: whether it may hold `x IN (SELECT …)` over tables that are read with the policy's rights, and not
            the user's. For row filters that administrators wrote.

    Example:
        >>> SqlExpression(text="region = 'EU'").dialect
        'sqe'
    """

    text: str
    dialect: Dialect = "sqe"
    reads_tables: bool = False
