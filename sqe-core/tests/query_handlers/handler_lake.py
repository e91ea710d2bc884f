"""A whole SQE over an engine in memory: the tests of this folder start no JVM."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from sqe_core.bootstrap import Sqe, build
from sqe_core.catalog.registry import Mount
from sqe_core.observe.history import QueryHistory
from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.sqlite import MemoryStore
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.session import Session
from sqe_core.spi.errors import SqeError
from sqe_core.spi.events import QueryEvent
from sqe_core.spi.identity import Identity
from sqe_core.testing.engine import FakeBackend, FakeEngine
from sqe_core.testing.fakes import make_identity

ROOT = make_identity("root", roles=["service_admin"])
ALICE = make_identity("alice", roles=["analyst"])
BOB = make_identity("bob")


@dataclass
class Lake:
    """An SQE with the catalogs `lake` and `other`, and statements of three people."""

    sqe: Sqe
    engine: FakeEngine
    events: list[QueryEvent]
    sessions: dict[str, Session] = field(default_factory=dict)

    def session(self, who: Identity) -> Session:
        if who.username not in self.sessions:
            self.sessions[who.username] = self.sqe.open_session(who, catalog="lake", protocol="test")
        return self.sessions[who.username]

    def run(self, who: Identity, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        result = self.sqe.service.execute(self.session(who), sql, parameters=parameters)
        return [tuple(row.values()) for batch in result for row in batch.to_pylist()]

    def root(self, *statements: str) -> None:
        for sql in statements:
            self.run(ROOT, sql)

    def refusal(self, who: Identity, sql: str, *parameters: Any) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(who, sql, *parameters)
        return caught.value


def open_lake() -> Lake:
    engine = FakeEngine("lake", "other")
    people = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["ann", "ben"], "city": ["Rome", "Oslo"]})
    engine.catalogs["lake"].put("default", "people", people)
    engine.catalogs["lake"].put("hr", "pay", pa.table({"id": pa.array([1], pa.int32()), "amount": ["9"]}))
    events: list[QueryEvent] = []

    def now() -> datetime:
        return datetime.now(UTC)

    sqe = build(
        engine=engine,
        mounts=[Mount(name=name, backend=FakeBackend(name)) for name in ("lake", "other")],
        enforcers=[GrantsEnforcer(MemoryStore(now=now), now=now)],
        limits=QueryLimits(),
        notify=events.append,
        history=QueryHistory(),
        admins=lambda identity: "service_admin" in identity.roles,
    )
    return Lake(sqe, engine, events)
