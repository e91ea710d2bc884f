"""The audit log: its chain, what damages it, and what happens when it cannot be written."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.counting import Counted
from testbed.making import each_ended

from sqe_core.observe import audit
from sqe_core.observe.audit import AuditLog
from sqe_core.observe.audit_chain import FIRST_HASH, START, Verdict, seal, verify
from sqe_core.spi.errors import ExternalError, StartupError

pytestmark = pytest.mark.rule("OBS-5")


Open = Callable[..., AuditLog]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def open_log(path: Path) -> Iterator[Open]:

    def open_it(**options: Any) -> AuditLog:
        return AuditLog(path, **options)

    yield from each_ended(open_it)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def checked(path: Path, *expected: str) -> Verdict:
    return verify(lines(path), expected=frozenset(expected))


def write(log: AuditLog, count: int = 3) -> None:
    for number in range(count):
        log.write({"kind": "query", "n": number})


class Disk:
    """Makes writes fail, or stop after some bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self.room: int | None = None
        self._write = os.write
        monkeypatch.setattr(audit.os, "write", self.write)

    def write(self, file: int, data: bytes) -> int:
        if self.room is not None:
            return self._write(file, data[: self.room])
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(file, data)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_events_are_chained_from_64_zeros(path: Path, open_log: Open) -> None:
    log = open_log()
    write(log)
    events = [json.loads(line) for line in lines(path)]
    assert [event["integrity"]["seq"] for event in events] == [1, 2, 3]
    assert events[0]["integrity"]["prev_hash"] == FIRST_HASH == "0" * 64
    assert events[1]["integrity"]["prev_hash"] == events[0]["integrity"]["hash"]
    assert events[2]["integrity"]["hash"] == log.head.hash
    assert list(events[0])[:2] == ["time", "kind"]
    assert checked(path).sound


def test_the_hash_is_one_that_others_can_compute(path: Path, open_log: Open) -> None:
    write(open_log(), 1)
    (line,) = lines(path)
    digest = json.loads(line)["integrity"]["hash"]
    assert hashlib.sha256(line.replace(f',"hash":"{digest}"'.encode(), b"")).hexdigest() == digest


def test_the_file_is_private_and_only_appended_to(path: Path, open_log: Open) -> None:
    log = open_log()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    flags = audit.fcntl.fcntl(log._file, audit.fcntl.F_GETFL)
    assert flags & os.O_APPEND


def test_a_restart_goes_on_with_the_chain(path: Path, open_log: Open) -> None:
    log = open_log()
    write(log)
    log.close()
    write(open_log(), 2)
    verdict = checked(path)
    assert (verdict.sound, verdict.events, verdict.notes) == (True, 5, [])


@pytest.mark.parametrize(
    ("tamper", "fault"),
    [
        (lambda all: [all[0], all[1].replace(b'"n":1', b'"n":7'), *all[2:]], "line 2 is no event, or was changed"),
        (lambda all: [all[0], *all[2:]], "line 2 (event 3) does not follow event 1"),
        (lambda all: [all[1], all[0], *all[2:]], "line 2 begins a new chain"),
        (lambda all: [*all, all[-1]], "line 5 (event 4) does not follow event 4"),
        (lambda all: [*all[:2], b"{}", *all[2:]], "line 3 is no event, or was changed"),
        (lambda all: [*all, seal({"kind": "query"}, START)[0]], "line 5 begins a new chain"),
        (lambda all: [*all[:2], all[2].replace(b'"seq":3', b'"seq":4'), all[3]], "line 3 is no event, or was changed"),
        (lambda all: [*all[:3], all[3][:-20]], "line 4 is no event, or was changed"),
    ],
)
def test_tampering_is_found(
    path: Path, open_log: Open, tamper: Callable[[list[bytes]], list[bytes]], fault: str
) -> None:
    write(open_log(), 4)
    assert checked(path).sound
    verdict = verify(tamper(lines(path)))
    assert not verdict.sound
    assert fault in verdict.faults


def test_a_line_that_was_sealed_anew_does_not_fit_what_follows(path: Path, open_log: Open) -> None:
    write(open_log(), 3)
    kept = lines(path)
    first = json.loads(kept[0])["integrity"]
    forged = seal({"kind": "query", "n": 99}, type(START)(1, first["hash"]))[0]
    assert verify([kept[0], forged, kept[2]]).faults == ["line 3 (event 3) does not follow event 2"]


def test_only_a_hash_that_was_kept_elsewhere_shows_a_missing_end(path: Path, open_log: Open) -> None:
    log = open_log()
    write(log)
    head = log.head.hash
    assert verify(lines(path)[:-1]).sound
    assert checked(path, head).sound
    assert verify(lines(path)[:-1], expected=frozenset({head})).missing == {head}


def test_damage_that_was_done_while_nobody_wrote_is_told(
    path: Path, open_log: Open, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log()
    write(log)
    log.close()
    with path.open("ab") as file:
        file.write(b"something else\n")
    counted = Counted()
    write(open_log(metrics=counted), 1)
    assert counted.values[("sqe_audit_damage_total",)] == 1
    assert "damaged" in caplog.text
    verdict = checked(path)
    assert (verdict.faults, verdict.events) == (["line 4 is no event, or was changed"], 4)


def test_a_line_that_was_cut_by_a_crash_does_not_spoil_the_next(path: Path, open_log: Open) -> None:
    log = open_log()
    write(log)
    log.close()
    path.write_bytes(path.read_bytes()[:-30])
    write(open_log(), 1)
    verdict = checked(path)
    assert verdict.faults == ["line 3 is no event, or was changed"]
    assert (verdict.last.seq if verdict.last else 0) == 3


@pytest.mark.parametrize("change", [lambda file: file.write(b"x\n"), lambda file: file.truncate(10)])
def test_damage_is_told_while_the_log_is_open(
    path: Path, open_log: Open, change: Callable[[Any], object], caplog: pytest.LogCaptureFixture
) -> None:
    counted = Counted()
    log = open_log(metrics=counted)
    write(log)
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        change(file)
    write(log, 1)
    assert counted.values[("sqe_audit_damage_total",)] == 1
    assert [line.levelno for line in caplog.records] == [logging.ERROR]
    assert not checked(path).sound


def test_a_renamed_file_is_followed_by_a_new_one(path: Path, open_log: Open) -> None:
    log = open_log()
    write(log)
    old = path.with_name("audit.log.1")
    path.rename(old)
    write(log, 2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert verify([*lines(old), *lines(path)]).sound
    verdict = checked(path)
    assert verdict.sound
    assert verdict.notes == [f"begins with event 4, which follows {json.loads(lines(old)[-1])['integrity']['hash']}"]
    assert not verify([*lines(path), *lines(old)]).sound


def test_concurrent_writers_make_one_chain(path: Path, open_log: Open) -> None:
    log = open_log()
    threads = [threading.Thread(target=write, args=(log, 50)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    verdict = checked(path)
    assert (verdict.sound, verdict.events) == (True, 400)


def test_one_server_writes_a_file(path: Path, open_log: Open) -> None:
    open_log()
    with pytest.raises(StartupError, match="another server writes it"):
        AuditLog(path)


@pytest.mark.parametrize("prepare", ["folder", "link", "shared", "pipe", "missing"])
def test_a_file_that_cannot_be_trusted_stops_the_server(path: Path, prepare: str) -> None:
    match prepare:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(path.with_name("elsewhere"))
        case "shared":
            path.touch()
            path.chmod(0o666)
        case "pipe":
            path = Path("/dev/null")
        case "missing":
            path = path.parent / "no" / "such" / "audit.log"
    with pytest.raises(StartupError, match="cannot be written"):
        AuditLog(path)


def test_a_failure_counts_and_alarms_once_and_nothing_is_lost(
    path: Path, open_log: Open, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    counted = Counted()
    log = open_log(metrics=counted)
    disk.full = True
    write(log, 3)
    assert counted.values[("sqe_audit_write_failures_total",)] == 3
    assert counted.values[("sqe_audit_writable",)] == 0
    assert [line.levelno for line in caplog.records] == [logging.ERROR]
    disk.full = False
    log.write({"kind": "query", "n": 3})
    assert counted.values[("sqe_audit_writable",)] == 1
    assert [json.loads(line)["n"] for line in lines(path)] == [0, 1, 2, 3]
    assert checked(path).sound


def test_what_does_not_fit_into_memory_is_told_as_lost(
    path: Path, open_log: Open, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_MOST_WAITING", 2)
    log = open_log()
    disk.full = True
    write(log, 5)
    disk.full = False
    log.write({"kind": "query", "n": 5})
    events = [json.loads(line) for line in lines(path)]
    assert [(event["n"], event.get("lost_events")) for event in events] == [(4, 4), (5, None)]


@pytest.mark.parametrize("room", [0, 1, 40])
def test_a_disk_that_fills_up_in_a_line_leaves_a_chain(path: Path, open_log: Open, disk: Disk, room: int) -> None:
    log = open_log()
    write(log, 1)
    disk.room = room
    write(log, 1)
    disk.room = None
    write(log, 1)
    verdict = checked(path)
    assert [json.loads(line)["n"] for line in lines(path) if line.endswith(b"}}")] == [0, 0, 0]
    assert verdict.faults == (["line 2 is no event, or was changed"] if room else [])


def test_alert_lets_things_happen(open_log: Open, disk: Disk) -> None:
    log = open_log()
    disk.full = True
    log.write({"kind": "grant"}, must=True)
    log.ensure_writable()


def test_refuse_does_not(path: Path, open_log: Open, disk: Disk) -> None:
    log = open_log(refuse=True)
    log.ensure_writable()
    disk.full = True
    with pytest.raises(ExternalError, match="cannot record"):
        log.write({"kind": "policy_decision"}, must=True)
    log.write({"kind": "query"})
    with pytest.raises(ExternalError, match="cannot record"):
        log.ensure_writable()
    disk.full = False
    log.ensure_writable()
    assert [json.loads(line)["kind"] for line in lines(path)] == ["policy_decision", "query"]


@pytest.mark.rule("OBS-2", "OBS-3")
def test_secrets_and_control_characters_do_not_arrive(path: Path, open_log: Open) -> None:
    log = open_log()
    log.write(
        {"kind": "query", "text": "a\nb\x1b[2J\u2028é password=hunter2x", "deep": [{"h": "Bearer abcdefgh"}], "o": log}
    )
    (line,) = lines(path)
    assert all(0x20 <= byte < 0x7F for byte in line)
    assert b"hunter2x" not in line
    assert b"abcdefgh" not in line
    assert json.loads(line)["text"].startswith("a\nb\x1b[2J\u2028é ")


def test_rights_are_synced_at_once_and_the_rest_soon(
    path: Path, open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = threading.Event()
    monkeypatch.setattr(audit.os, "fdatasync", lambda file: synced.set())
    monkeypatch.setattr(audit, "_SYNC_SECS", 0.05)
    log = open_log()
    log.write({"kind": "grant"})
    assert synced.is_set()
    synced.clear()
    log.write({"kind": "query"})
    assert synced.wait(10)


def test_the_last_line_may_be_long(path: Path, open_log: Open) -> None:
    log = open_log()
    log.write({"kind": "query", "texts": ["x" * 60_000] * 20})
    log.close()
    write(open_log(), 1)
    assert checked(path).events == 2
    assert checked(path).sound
