"""`sqe audit verify`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sqe_core.cli.sqe import Surroundings, run
from sqe_core.observe.audit import AuditLog

pytestmark = pytest.mark.rule("OBS-5")


def sqe(folder: Path, *argv: str) -> tuple[int, list[str], str]:
    output, errors = io.StringIO(), io.StringIO()
    code = run(["audit", *argv], Surroundings(environ={}, folder=folder, output=output, errors=errors))
    return code, output.getvalue().splitlines(), errors.getvalue()


@pytest.fixture
def head(tmp_path: Path) -> str:
    """The last hash of a log of three events."""
    log = AuditLog(tmp_path / "audit.log")
    for number in range(3):
        log.write({"kind": "query", "n": number})
    log.close()
    return log.head.hash


def test_a_whole_chain(tmp_path: Path, head: str) -> None:
    code, told, _ = sqe(tmp_path, "verify", "audit.log", "--has", head)
    assert (code, told) == (0, [f"last event 3, hash {head}", "3 events, the chain is whole"])


def test_a_changed_line(tmp_path: Path, head: str) -> None:
    file = tmp_path / "audit.log"
    file.write_bytes(file.read_bytes().replace(b'"n":1', b'"n":2'))
    code, told, _ = sqe(tmp_path, "verify", "audit.log")
    assert code == 1
    assert told[0] == "fault: line 2 is no event, or was changed"
    assert told[-1] == "2 events, the chain is broken"


def test_a_hash_that_is_missing(tmp_path: Path, head: str) -> None:
    code, told, _ = sqe(tmp_path, "verify", "audit.log", "--has", "A" * 64)
    assert (code, told[0]) == (1, f"fault: no event has the hash {'a' * 64}")


def test_parts_are_one_chain_in_their_order(tmp_path: Path, head: str) -> None:
    whole = (tmp_path / "audit.log").read_bytes().splitlines(keepends=True)
    (tmp_path / "1").write_bytes(whole[0])
    (tmp_path / "2").write_bytes(b"".join(whole[1:]))
    assert sqe(tmp_path, "verify", "1", "2")[0] == 0
    assert sqe(tmp_path, "verify", "2", "1")[0] == 1
    code, told, _ = sqe(tmp_path, "verify", "2")
    assert code == 0
    assert told[0].startswith("note: begins with event 2, which follows ")


def test_what_cannot_be_used(tmp_path: Path, head: str) -> None:
    code, _, errors = sqe(tmp_path, "verify", "nowhere")
    assert (code, "cannot read" in errors) == (2, True)
    with pytest.raises(SystemExit):
        sqe(tmp_path, "verify", "audit.log", "--has", "12")


def test_an_empty_file_is_no_broken_chain(tmp_path: Path) -> None:
    (tmp_path / "audit.log").touch()
    assert sqe(tmp_path, "verify", "audit.log")[:2] == (0, ["0 events, the chain is whole"])
