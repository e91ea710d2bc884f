"""ATTACH and secrets as statements: who may, what others see of it, and where nothing of a secret is ever written."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sqe_core.bootstrap import Sqe, build
from sqe_core.catalog.attaching import AttachRules
from sqe_core.catalog.backends import HadoopBackend, SqliteBackend
from sqe_core.catalog.factories import HadoopFactory, JdbcFactory, SqliteFactory
from sqe_core.catalog.local_places import LocalPlaces
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.secret_file import SecretFile
from sqe_core.catalog.secret_store import Secrets
from sqe_core.engine.port import Engine, EngineExecutionError, EngineFailure, EngineState
from sqe_core.observe.audit import AuditLog
from sqe_core.observe.history import QueryHistory
from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.sqlite import MemoryStore
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.session import Session
from sqe_core.spi.errors import AccessDeniedError, ErrorCode, SqeError
from sqe_core.spi.events import QueryEvent
from sqe_core.spi.identity import Identity, Secret
from sqe_core.testing.fakes import make_identity

CANARY = "kanarienvogel7"
ROOT = make_identity("root", roles=["service_admin"])
ALICE = make_identity("alice", roles=["analyst"])
KEY = Secret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")


class Refusing:
    """An engine whose catalogs never answer, and say why."""

    alive = True

    def check_settings(self) -> bool:
        return True

    def mount(self, alias: str, properties: object, *, token: object = None) -> None:
        pass

    def unmount(self, alias: str) -> None:
        pass

    def statement_scope(self) -> Refusing:
        return self

    def __enter__(self) -> Refusing:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def catalog(self, alias: str) -> object:
        raise EngineExecutionError(
            EngineFailure(condition="org.postgresql.util.PSQLException", sql_state=None, parameters={}, raw=CANARY)
        )

    def cancel(self, tag: str) -> None:
        pass

    def close(self) -> None:
        pass


class NoEngine(Engine):
    state = EngineState.READY
    failure = None

    def start(self) -> None: ...
    def wait_ready(self, timeout_secs: float | None = None) -> None: ...
    def on_progress(self, listener: Callable[[str, float | None], None]) -> None: ...
    def open_session(self) -> Any:
        return Refusing()

    def open_spool(self) -> Any:
        raise NotImplementedError

    def stop(self) -> None: ...


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Server:
    sqe: Sqe
    folder: Path
    events: list[QueryEvent]
    sessions: dict[str, Session] = field(default_factory=dict)

    def run(self, who: Identity, sql: str) -> list[tuple[Any, ...]]:
        session = self.sessions.get(who.username)
        if session is None:
            session = self.sessions[who.username] = self.sqe.open_session(who, catalog="lake", protocol="test")
        result = self.sqe.service.execute(session, sql)
        return [tuple(row.values()) for batch in result for row in batch.to_pylist()]

    def refusal(self, who: Identity, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(who, sql)
        return caught.value

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "audit.log").read_text().splitlines()]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    factories: dict[str, Any] = {"sqlite": SqliteFactory(), "hadoop": HadoopFactory(), "jdbc": JdbcFactory()}
    events: list[QueryEvent] = []
    lake = SqliteBackend.at(tmp_path / "lake")
    other = HadoopBackend(warehouse=str(tmp_path / "other"))
    sqe = build(
        engine=NoEngine(),
        mounts=[Mount(name="lake", backend=lake), Mount(name="other", backend=other)],
        enforcers=[GrantsEnforcer(MemoryStore(now=now), now=now)],
        limits=QueryLimits(),
        notify=events.append,
        history=QueryHistory(),
        full_text=True,
        admins=lambda identity: "service_admin" in identity.roles,
        audit=AuditLog(tmp_path / "audit.log", refuse=True),
        attach=AttachRules(
            factory_of=factories.__getitem__,
            places=LocalPlaces([tmp_path / "audit.log"]),
            engine_jars=frozenset({"postgresql"}),
        ),
        kept_secrets=Secrets(SecretFile(tmp_path / "secrets.json", KEY)),
    )
    yield Server(sqe, tmp_path, events)
    sqe.close()


def test_a_mount_is_there_for_everybody_until_it_is_detached(server: Server) -> None:
    server.run(ROOT, f"ATTACH '{server.folder}/guest' AS guest (TYPE sqlite)")
    for who in (ROOT, ALICE):
        assert server.run(who, "SHOW CATALOGS") == [("guest",), ("lake",), ("other",)]
    assert server.refusal(ROOT, f"ATTACH '{server.folder}/guest' AS guest (TYPE sqlite)").message == (
        "catalog 'guest' is already attached; DETACH it first"
    )
    server.run(ROOT, "DETACH guest")
    for who in (ROOT, ALICE):
        assert server.run(who, "SHOW CATALOGS") == [("lake",), ("other",)]
    assert server.refusal(ROOT, "DETACH guest").message == "catalog 'guest' is not attached"
    assert server.refusal(ALICE, "SHOW SCHEMAS FROM guest").code is ErrorCode.CATALOG_NOT_FOUND
    server.run(ROOT, "DETACH IF EXISTS guest")


@pytest.mark.rule("STMT-3")
@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH '{}/guest' AS guest (TYPE sqlite)",
        "ATTACH IF NOT EXISTS '{}/guest' AS lake (TYPE sqlite)",
        "ATTACH OR REPLACE '{}/guest' AS lake (TYPE nothing, SECRET nothing)",
        "ATTACH 'postgresql://10.0.0.1/x' AS guest (TYPE jdbc, WAREHOUSE 'file:///etc')",
        "DETACH lake",
        "DETACH IF EXISTS nothing",
        "CREATE SECRET s (TYPE bearer, TOKEN 'x')",
        "CREATE SECRET IF NOT EXISTS root_s (TYPE nothing)",
        "CREATE OR REPLACE SECRET root_s (TYPE bearer, TOKEN 'x')",
        "DROP SECRET root_s",
        "DROP SECRET IF EXISTS nothing",
        "SHOW SECRETS",
    ],
)
def test_only_administrators_may_and_others_learn_nothing(server: Server, sql: str) -> None:
    """One answer, whatever exists: nobody reads from it which names, secrets, files or addresses there are."""
    server.run(ROOT, "CREATE SECRET root_s (TYPE bearer, TOKEN 'y')")
    error = server.refusal(ALICE, sql.format(server.folder))
    assert isinstance(error, AccessDeniedError)
    assert error.message in {
        f"You may not {what}"
        for what in ("attach catalogs", "detach catalogs", "see secrets", "create secrets", "drop secrets")
    }
    assert error.hint is None
    assert server.run(ROOT, "SHOW SECRETS") == [("root_s", "bearer")]
    assert not (server.folder / "guest").exists()
    assert [event for event in server.audited() if event["status"] == "failure"][-1]["error"][
        "error_code"
    ] == "ACCESS_DENIED"


def test_secrets_are_listed_without_values(server: Server) -> None:
    server.run(ROOT, f"CREATE SECRET b (TYPE basic, USERNAME 'me', PASSWORD '{CANARY}')")
    server.run(ROOT, f"CREATE TEMPORARY SECRET a (TYPE bearer, TOKEN '{CANARY}')")
    assert server.run(ROOT, "SHOW SECRETS") == [("a", "bearer"), ("b", "basic")]
    assert server.run(ROOT, "SHOW SECRETS LIKE 'b%'") == [("b", "basic")]
    server.run(ROOT, "DROP SECRET a")
    assert server.run(ROOT, "SHOW SECRETS") == [("b", "basic")]


def test_the_current_catalog_stays(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoEngine, "state", EngineState.STARTING)  # listings come from the files
    server.run(ROOT, f"ATTACH '{server.folder}/guest' AS guest (TYPE sqlite)")
    server.run(ROOT, "USE guest.default")
    assert server.refusal(ROOT, "DETACH guest").hint == "USE another one first"
    server.run(ROOT, "USE lake.default")
    server.run(ALICE, "USE guest.default")
    server.run(ROOT, "DETACH guest")
    assert server.refusal(ALICE, "SHOW TABLES").code is ErrorCode.CATALOG_NOT_FOUND
    assert server.run(ALICE, "SHOW CATALOGS") == [("lake",), ("other",)]
    assert server.refusal(ALICE, "USE nothing").code is ErrorCode.CATALOG_NOT_FOUND
    server.run(ALICE, "USE lake")
    assert server.run(ALICE, "SHOW TABLES") == []


@pytest.mark.rule("POL-9")
def test_what_was_decided_about_a_name_is_forgotten(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[bool] = []
    authorizer = server.sqe.service._parts.authorizer
    monkeypatch.setattr(server.sqe.service._parts.attachments, "_changed", lambda: flushed.append(True))
    assert callable(authorizer.flush)
    server.run(ROOT, f"ATTACH '{server.folder}/guest' AS guest (TYPE sqlite)")
    server.run(ROOT, "DETACH guest")
    assert len(flushed) == 2


@pytest.mark.rule("OBS-2", "OBS-3", "SESS-7")
def test_nothing_of_a_secret_is_written_anywhere(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    login = f"postgresql://me:{CANARY}@10.0.0.1/db"
    told: list[SqeError] = []
    for sql in (
        f"CREATE SECRET s (TYPE basic, USERNAME '{CANARY}', PASSWORD '{CANARY}x')",
        f'CREATE OR REPLACE SECRET s (TYPE basic, USERNAME {CANARY}, PASSWORD "{CANARY}")',
        f"/* {CANARY} */ CREATE SECRET aws (TYPE aws, ACCESS_KEY_ID {CANARY}, SECRET_ACCESS_KEY '{CANARY}')",
    ):
        server.run(ROOT, sql)
    for sql in (
        f"CREATE SECRET s (TYPE basic, USERNAME '{CANARY}', PASSWORD '{CANARY}')",
        f"CREATE SECRET t (TYPE bearer, TOKEN '{CANARY}', EXTRA '{CANARY}')",
        f"CREATE SECRET t (TYPE bearer, TOKEN '{CANARY}",
        f"CREATE SECRET t (TYPE bearer {CANARY} '{CANARY}')",
        f"EXPLAIN CREATE SECRET t (TYPE bearer, TOKEN '{CANARY}')",
        f"ATTACH '{login}' AS x (TYPE jdbc, WAREHOUSE 's3://b')",
        f"ATTACH '{login}?password={CANARY}' AS x (TYPE jdbc, WAREHOUSE 's3://b')",
        "ATTACH 'postgresql://10.0.0.1/db' AS x (TYPE jdbc, WAREHOUSE 's3://b', SECRET s)",
        f"ATTACH '{login}' AS x (TYPE jdbc, WAREHOUSE '{CANARY}', PASSWORD '{CANARY}')",
        f"ATTACH '{login}' AS x (TYPE sqlite)",
        f"CREATE CATALOG c USING jdbc WITH (\"connection-password\" = '{CANARY}')",
    ):
        told.append(server.refusal(ROOT, sql))
    told += [server.refusal(ALICE, f"CREATE SECRET t (TYPE bearer, TOKEN '{CANARY}')")]
    for error in told:
        assert CANARY not in f"{error.message} {error.hint} {error!r} {error.args}"
    assert CANARY not in caplog.text
    for event in server.events:
        assert CANARY not in repr(event)
    for entry in server.sqe.history.entries():
        assert CANARY not in repr(entry)
    for file in server.folder.rglob("*"):
        if file.is_file():
            assert CANARY.encode() not in file.read_bytes(), file
    assert server.run(ROOT, "SHOW SECRETS") == [("aws", "aws"), ("s", "basic")]


@pytest.mark.rule("OBS-3")
def test_the_hash_of_a_statement_does_not_give_a_password_away(server: Server) -> None:
    for password in ("1234", "4321"):
        server.run(ROOT, f"CREATE OR REPLACE SECRET s (TYPE basic, USERNAME 'me', PASSWORD '{password}')")
    hashes = {event["query"]["query_hash"] for event in server.audited() if event.get("query")}
    assert len(hashes) == 1


@pytest.mark.rule("OBS-4")
def test_the_audit_has_who_attached_what(server: Server) -> None:
    server.run(ROOT, f"ATTACH '{server.folder}/guest' AS guest (TYPE sqlite)")
    server.run(ROOT, "DETACH guest")
    written = [event for event in server.audited() if event["kind"] == "admin_ddl"]
    texts = [(event["query"]["text"], event["status"], event["actor"]["username"]) for event in written]
    assert ("ATTACH ? AS guest (TYPE sqlite)", "success", "root") in texts
    assert ("DETACH guest", "success", "root") in texts


def test_a_statement_that_was_cancelled_mounts_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow catalog answers after its statement was cancelled."""

    def answer_late(self: SqliteBackend) -> None:
        assert server.sqe.service.cancel(server.sessions["root"]) == 1

    monkeypatch.setattr(SqliteBackend, "check", answer_late)
    error = server.refusal(ROOT, f"ATTACH '{server.folder}/guest' AS guest (TYPE sqlite)")
    assert error.code is ErrorCode.QUERY_CANCELLED
    assert server.run(ROOT, "SHOW CATALOGS") == [("lake",), ("other",)]
    assert not (server.folder / "guest").exists()
