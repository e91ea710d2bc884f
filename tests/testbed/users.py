"""What the user of a warehouse says to an SQE in this process, and what the many users of a server say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sqe_core.bootstrap import EmbeddedSqe, Sqe, build
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.catalog.registry import Mount
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.sqlite import MemoryStore
from sqe_core.policy.masks import MaskWriter
from sqe_core.query.run.admission import QueryLimits
from sqe_core.query.run.result import StatementResult
from sqe_core.session.session import Session
from sqe_core.spi.errors import SqeError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.testing import make_identity

Rows = list[tuple[Any, ...]]
ROOT = make_identity("root", roles=["service_admin"])


def rows_of(result: StatementResult) -> Rows:
    """The rows; none of what is no query."""
    return [row for batch in result for row in zip(*(each.to_pylist() for each in batch.columns), strict=True)]


def rows(sqe: EmbeddedSqe, sql: str, parameters: Any = ()) -> Rows:
    """What a query answers."""
    return rows_of(sqe.execute(sql, parameters))


def run(sqe: EmbeddedSqe, *statements: str) -> int | None:
    """Run what answers no rows; return how many the last statement changed."""
    for sql in statements:
        with sqe.execute(sql) as result:
            assert result.schema is None
            changed = result.affected_rows
    return changed


def refusal(sqe: EmbeddedSqe, sql: str, parameters: Any = ()) -> SqeError:
    """How a statement is refused."""
    with pytest.raises(SqeError) as caught:
        rows(sqe, sql, parameters)
    return caught.value


class Users:
    """An SQE with the catalog `lake`, and a session for everybody who comes. Nobody is told a canary."""

    def __init__(self, sqe: Sqe, *, canaries: tuple[str, ...] = (), **client: str) -> None:
        self.sqe = sqe
        self.canaries = canaries
        self._client = {"catalog": "lake", "protocol": "test", **client}
        self._sessions: list[tuple[Identity, Session]] = []

    def session(self, who: Identity) -> Session:
        for each, session in self._sessions:
            if each == who:
                return session
        session = self.sqe.open_session(who, **self._client)
        self._sessions.append((who, session))
        return session

    def run(self, who: Identity, sql: str, **options: Any) -> Rows:
        return rows_of(self.sqe.service.execute(self.session(who), sql, **options))

    def root(self, *statements: str) -> None:
        for sql in statements:
            self.run(ROOT, sql)

    def refusal(self, who: Identity, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(who, sql)
        told = f"{caught.value} {caught.value.hint}"
        assert not [canary for canary in self.canaries if canary in told and canary not in sql], told
        return caught.value

    def close(self) -> None:
        for _, session in self._sessions:
            self.sqe.service.close_session(session)
        self.sqe.release()


def granted(engine: SparkEngine, folder: Path, **parts: Any) -> Sqe:
    """An SQE over one folder, in which root grants what others may."""

    def now() -> datetime:
        return datetime.now(UTC)

    standard = {
        "enforcers": [GrantsEnforcer(MemoryStore(now=now), now=now)],
        "limits": QueryLimits(timeout_secs=120, max_result_rows=0, max_sql_bytes=1 << 20),
        "masks": MaskWriter(key=Secret("mask key")),
        "admins": lambda identity: "service_admin" in identity.roles,
    }
    mount = Mount(name="lake", backend=SqliteBackend.at(folder, "sqe.db"))
    return build(engine=engine, mounts=[mount], **{**standard, **parts})
