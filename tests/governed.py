"""An analyst below policies that the test writes, through the whole pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from sqe_core.bootstrap import Sqe
from sqe_core.session.session import Session
from sqe_core.spi.errors import SqeError
from sqe_core.spi.policy import (
    ColumnMask,
    Decision,
    Effect,
    Mask,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
)
from sqe_core.spi.sql import SqlExpression


@dataclass
class WrittenPolicies(PolicyEnforcer):
    """Decides by the name of the table; what is not named is allowed. May be changed while it is asked."""

    decisions: dict[str, Decision] = field(default_factory=dict)
    asked: list[PolicyRequest] = field(default_factory=list)

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        self.asked.append(request)
        return PolicyResponse(
            decisions=tuple(
                self.decisions.get(getattr(access.resource.name, "name", ""), Decision.allow())
                for access in request.accesses
            )
        )


@dataclass
class Governed:
    """A session below policies."""

    sqe: Sqe
    session: Session
    policies: WrittenPolicies
    canaries: frozenset[str] = frozenset()

    def table(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        result = self.sqe.service.execute(self.session, sql, **parameters)
        rows = [row for batch in result for row in batch.to_pylist()]
        self.check(repr(rows), sql)
        return rows

    def run(self, sql: str, **parameters: Any) -> list[list[Any]]:
        return [list(row.values()) for row in self.table(sql, **parameters)]

    def refusal(self, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(sql)
        self.check(f"{caught.value} {caught.value.message} {caught.value.hint}", sql)
        return caught.value

    def check(self, told: str, sql: str) -> None:
        """Nothing that the analyst did not write tells of what is kept away (TEST-2)."""
        for canary in self.canaries:
            assert canary in sql or canary not in told, told


Govern = Callable[..., Governed]


def allow(
    *filters: str, hidden: frozenset[str] = frozenset(), check: tuple[str, ...] | None = None, **masks: Mask
) -> Decision:
    return Decision(
        effect=Effect.ALLOW,
        row_filters=tuple(SqlExpression(text=text) for text in filters),
        column_masks=tuple(ColumnMask(column=column, mask=mask) for column, mask in masks.items()),
        hidden_columns=hidden,
        check=None if check is None else tuple(SqlExpression(text=text) for text in check),
    )
