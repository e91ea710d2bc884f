"""The log: its form, and that secrets and forged lines do not reach it."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sqe_core.observe.logging import (
    JsonFormatter,
    TerminalFormatter,
    configure_logging,
    log_stray_errors,
    of_statement,
    redact_secrets,
)

CANARY = "canary-4c2e"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("sqe_core")
    handlers, level, own_level = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(own_level)
    logging.captureWarnings(False)


def logged(*, level: str = "info", human: bool = False) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    configure_logging(level, stream=stream, human=human)
    return logging.getLogger("sqe_core.test"), stream


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_one_object_per_line() -> None:
    log, stream = logged()
    log.info("two %s", "words", extra={"fields": {"event": "e", "ports": [1, 2], "level": "cannot be replaced"}})
    entry = entries(stream)[0]
    assert entry["time"].endswith("+00:00")
    assert (entry["level"], entry["logger"], entry["message"]) == ("info", "sqe_core.test", "two words")
    assert (entry["event"], entry["ports"]) == ("e", [1, 2])


def test_the_level() -> None:
    log, stream = logged(level="warning")
    log.info("no")
    log.warning("yes")
    assert [entry["message"] for entry in entries(stream)] == ["yes"]


@pytest.mark.parametrize("level", ["debug", "trace"])
def test_libraries_only_warn_whatever_the_level(level: str) -> None:
    log, stream = logged(level=level)
    logging.getLogger("py4j.clientserver").debug("a command")
    log.debug("ours")
    assert [entry["message"] for entry in entries(stream)] == ["ours"]


def test_a_statement_is_named() -> None:
    log, stream = logged()
    with of_statement("query-1", "hash-1"):
        log.info("inside")
        threading.Thread(target=lambda: log.info("of another thread")).start()
    log.info("outside")
    log.info("told", extra={"query_id": "query-2"})
    named = {entry["message"]: (entry.get("query_id"), entry.get("session")) for entry in entries(stream)}
    assert named["inside"] == ("query-1", "hash-1")
    assert named["of another thread"] == named["outside"] == (None, None)
    assert named["told"][0] == "query-2"


@pytest.mark.rule("OBS-2")
@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"authorization=Basic {CANARY}",
        f"headers {{'Authorization': 'Bearer {CANARY}'}}",
        f"password={CANARY}",
        f'{{"client_secret": "{CANARY} with \\" quotes {CANARY}"}}',
        f"refresh_token='{CANARY}'",
        f"https://alice:{CANARY}@idp.test/token",
        f"GET /data?X-Amz-Signature={CANARY}&x=1",
        f"?sig={CANARY}",
        f"fs.s3a.secret.key={CANARY}",
        f"CREATE SECRET s (TYPE bearer, TOKEN => '{CANARY}')",
        f"session_id: {CANARY}",
        f"Cookie: {CANARY}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}",
        JWT,
        "AKIAIOSFODNN7EXAMPLE",
        "_sqe_c_0123456789abcdef0123456789abcdef",
    ],
)
def test_secrets_are_taken_out(text: str) -> None:
    log, stream = logged()
    log.warning("it says %s", text)
    log.warning("a field", extra={"fields": {"deep": {"list": [text]}}})
    try:
        raise RuntimeError(text)
    except RuntimeError:
        log.exception("it failed")
    written = stream.getvalue()
    for secret in (CANARY, JWT, "c2lnbmF0dXJl", "AKIA", "0123456789abcdef"):
        assert secret not in written
    assert "***" in written
    assert "RuntimeError" in written


@pytest.mark.parametrize(
    "text", ["SELECT 1", "the catalog lake does not answer", "12:30:00", "http://host:9090/metrics", "a basic rule"]
)
def test_other_text_stays(text: str) -> None:
    assert redact_secrets(text) == text


@pytest.mark.parametrize("text", ["token" * 4000, "a-" * 8000, "password='" + "\\'" * 8000, "x://" + "a:" * 8000])
def test_redacting_takes_no_time(text: str) -> None:
    import time

    began = time.monotonic()
    redact_secrets(text)
    assert time.monotonic() - began < 1


@pytest.mark.rule("OBS-3")
@pytest.mark.parametrize("human", [True, False])
def test_lines_cannot_be_forged(human: bool) -> None:
    log, stream = logged(human=human)
    log.info("user %s", 'x\n{"level": "info"}\r\x1b[31m\u2028\u202e')
    assert len(stream.getvalue().splitlines()) == 1
    assert stream.getvalue().rstrip("\n").isprintable()


def test_a_terminal_gets_a_readable_line() -> None:
    log, stream = logged(human=True)
    with of_statement("query-1", "hash"):
        log.warning("careful")
    try:
        raise ValueError("because")
    except ValueError:
        log.exception("it failed")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("WARNING careful [query-1]")
    assert lines[-1] == "ValueError: because"


def test_a_long_text_is_cut() -> None:
    log, stream = logged()
    log.info("x" * 1_000_000)
    assert len(stream.getvalue()) < 20_000


@pytest.mark.parametrize("formatter", [JsonFormatter(), TerminalFormatter()])
def test_arguments_that_do_not_fit_are_left_out(formatter: logging.Formatter) -> None:
    record = logging.LogRecord("sqe_core", logging.INFO, "", 0, "one %s two %s", (CANARY,), None)
    line = formatter.format(record)
    assert "one %s two %s" in line
    assert CANARY not in line


def test_a_closed_stream_raises_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    log, stream = logged()
    stream.close()
    log.info("password=%s", CANARY)
    assert CANARY not in capsys.readouterr().err


def test_configuring_twice_logs_once() -> None:
    logged()
    log, stream = logged()
    log.info("once")
    assert len(entries(stream)) == 1


def test_an_error_that_ends_a_thread_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    _, stream = logged()
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    import sys

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    log_stray_errors()

    def fail() -> None:
        raise RuntimeError(f"token={CANARY}")

    thread = threading.Thread(target=fail, name="worker-7")
    thread.start()
    thread.join()
    sys.excepthook(ValueError, ValueError("stray"), None)
    first, second = entries(stream)
    assert first["message"] == "the thread worker-7 ended"
    assert "RuntimeError" in first["error"]
    assert CANARY not in stream.getvalue()
    assert (second["level"], second["message"]) == ("critical", "the server ended")
