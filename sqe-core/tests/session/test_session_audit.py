"""What logins and sessions write into the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqe_core.observe import audit
from sqe_core.observe.audit import AuditLog
from sqe_core.query.run import audited
from sqe_core.query.run.audited import SessionAudit
from sqe_core.session.login import LoginChain
from sqe_core.session.store import SessionStore
from sqe_core.spi.auth import BasicCredential, BearerCredential, ClientInfo
from sqe_core.spi.errors import ExternalError, InvalidCredentialsError
from sqe_core.spi.identity import Identity, Secret

pytestmark = pytest.mark.rule("OBS-4")

HERE = ClientInfo(protocol="flight", address="127.0.0.1", user_agent="tester")
ALICE = BasicCredential(username="alice", password=Secret("wonderland"))
WRONG = BasicCredential(username="alice", password=Secret("guess-5f1c"))


class FakeSession:
    id = "secret-session-id"
    protocol = "flight"
    closed = False
    last_used = 0.0

    def __init__(self, identity: Identity, client: ClientInfo) -> None:
        self.identity = identity
        self.client_address = client.address


class Desk:
    """A store whose logins and sessions are audited."""

    def __init__(self, provider: Any, path: Path, *, refuse: bool = False) -> None:
        self.path = path
        self.log = AuditLog(path, refuse=refuse)
        self.closed: list[Any] = []
        self.store = SessionStore(
            LoginChain([("passwords", provider)], timeout_secs=5),
            open_session=FakeSession,  # type: ignore[arg-type]
            close_session=self.closed.append,
            observer=SessionAudit(self.log),
        )

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]

    def close(self) -> None:
        self.store.close()
        self.log.close()


@pytest.fixture
def desk(users: Any, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(users, tmp_path / "audit.log")
    yield made
    made.close()


def test_a_login_a_session_and_its_end(desk: Desk) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    desk.store.authenticate(BearerCredential(token=live.token), HERE)
    desk.store.authenticate(ALICE, HERE)
    live.close()
    told = desk.told()
    assert [(event["kind"], event.get("activity")) for event in told] == [
        ("auth", None),
        ("session", "opened"),
        ("session", "ended"),
    ]
    assert {event["actor"]["username"] for event in told} == {"alice"}
    assert {event["client_ip"] for event in told} == {"127.0.0.1"}
    assert told[0]["provider"] == "passwords"
    assert told[1]["session_id"] == told[2]["session_id"]
    written = desk.path.read_text()
    for secret in (FakeSession.id, live.token.reveal(), "wonderland", "idp-alice"):
        assert secret not in written


@pytest.mark.rule("OBS-2")
def test_a_failed_login_names_the_account_and_no_secret(desk: Desk) -> None:
    with pytest.raises(InvalidCredentialsError):
        desk.store.authenticate(WRONG, HERE)
    with pytest.raises(InvalidCredentialsError):
        desk.store.authenticate(BearerCredential(token=Secret("stolen-5f1c")), HERE)
    one, other = desk.told()
    assert (one["kind"], one["status"], one["actor"]["username"], one["credential"]) == (
        "auth",
        "failure",
        "alice",
        "basic",
    )
    assert one["error"]["error_code"] == "AUTHENTICATION_FAILED"
    assert (other["actor"]["username"], other["credential"]) == (None, "bearer")
    assert "5f1c" not in desk.path.read_text()


def test_nobody_fills_the_log_with_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(audited.time, "monotonic", lambda: now[0])
    log = AuditLog(tmp_path / "audit.log")
    observer = SessionAudit(log)
    for _ in range(200):
        observer.refused(WRONG, HERE, InvalidCredentialsError())
    now[0] += 1
    observer.refused(WRONG, HERE, InvalidCredentialsError())
    log.close()
    told = [json.loads(line) for line in (tmp_path / "audit.log").read_bytes().splitlines()]
    assert len(told) == 51
    assert told[-1]["left_out"] == 150


@pytest.mark.rule("OBS-5")
def test_nobody_logs_in_unrecorded(users: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(users, tmp_path / "audit.log", refuse=True)

    def full(file: int, data: bytes) -> int:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(audit.os, "write", full)
        with pytest.raises(ExternalError, match="cannot record"):
            desk.store.authenticate(ALICE, HERE)
    assert desk.store.count == 0
    assert desk.store.authenticate(ALICE, HERE).identity.username == "alice"
    desk.close()
