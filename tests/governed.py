"""An analyst below policies that the test writes, through the whole pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sqe_core.bootstrap import EmbeddedSqe, Sqe
from sqe_core.query.gateway import ConnectedSession
from sqe_core.query.run.result import StatementResult
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.identity import Identity
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


# Many people share it.
ANALYST = Identity(issuer="test", subject="analyst", username="analyst", provider="test", personal=False)


def own(sqe: EmbeddedSqe, sql: str) -> list[list[Any]]:
    """What the owner of the warehouse is answered."""
    batches = sqe.execute(sql)
    return [list(row) for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True)]


@dataclass
class Governed:
    """A session below policies."""

    sqe: Sqe
    session: Session
    policies: Any
    canaries: frozenset[str] = frozenset()

    def execute(self, sql: str, **parameters: Any) -> StatementResult:
        return self.sqe.service.execute(self.session, sql, **parameters)

    @property
    def connected(self) -> ConnectedSession:
        """The session behind a wire protocol."""
        live = cast(Any, SimpleNamespace(session=self.session, ensure_usable=lambda: None))
        return ConnectedSession(live, self.sqe.service, take=lambda traffic: None, renew=lambda credential: None)

    def table(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        result = self.execute(sql, **parameters)
        rows = [row for batch in result for row in batch.to_pylist()]
        self.check(repr(rows), sql)
        return rows

    def run(self, sql: str, **parameters: Any) -> list[list[Any]]:
        return [list(row.values()) for row in self.table(sql, **parameters)]

    def refusal(self, sql: str, **parameters: Any) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(sql, **parameters)
        error = caught.value
        assert error.code is not ErrorCode.GENERIC_INTERNAL_ERROR, error
        self.check(f"{error} {error.message} {error.hint}", sql)
        return error

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
