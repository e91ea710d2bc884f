"""OPA down, slow, broken or lying: nobody reads anything, and nobody waits for long (TEST-9)."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqe_core.spi import (
    Effect,
    ErrorCode,
    ExternalError,
    ObjectName,
    PluginContext,
    PolicyResponse,
    Secret,
    StartupError,
    VisibilityRequest,
)
from sqe_core.testing import RecordingMetrics, make_policy_request
from sqe_core.testing.contract import in_threads
from sqe_policy_opa.config import OpaConfig
from sqe_policy_opa.enforcer import OpaEnforcer
from sqe_policy_opa.plugin import OpaFactory

PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")
REQUEST = make_policy_request(PEOPLE)
ALLOWED = json.dumps({"result": {"allow": True}}).encode()
CANARY = b"canary-5d1f-in-the-body"


@pytest.fixture
def metrics() -> RecordingMetrics:
    return RecordingMetrics()


@pytest.fixture
def make(opa: Any, clock: Any, enforcers: list[OpaEnforcer], metrics: RecordingMetrics) -> Callable[..., OpaEnforcer]:
    """Make an enforcer on the server."""

    def make(**keys: Any) -> OpaEnforcer:
        enforcer = OpaEnforcer(opa.config(**keys), PluginContext(metrics=metrics), monotonic=clock)
        enforcers.append(enforcer)
        return enforcer

    return make


# What is sent, and the sentence that comes of it.
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "500": ({"status": 500, "body": b'{"code": "internal_error"}'}, "OPA answered with status 500"),
    "500 of somebody else": ({"status": 500, "body": CANARY}, "The answer of OPA is no JSON"),
    "503": ({"status": 503}, "OPA answered with status 503"),
    "400": ({"status": 400, "body": b'{"message": "canary-5d1f"}'}, "has the status 400"),
    "401": ({"status": 401, "body": b"{}"}, "wants another token"),
    "404": ({"status": 404, "body": b"{}"}, "has the status 404"),
    "204": ({"status": 204}, "has the status 204"),
    "201": ({"status": 201, "body": ALLOWED}, "has the status 201"),
    "redirect": ({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "redirect, which is not followed"),
    "redirect with an answer": ({"status": 307, "body": ALLOWED, "headers": {"Location": "/v1/x"}}, "redirect"),
    "empty": ({"body": b""}, "is no answer of OPA"),
    "no result": ({"body": b"{}"}, "has no result"),
    "null": ({"body": b'{"result": null}'}, "has no result"),
    "an array": ({"body": b"[]"}, "is no answer of OPA"),
    "text": ({"body": b"<html>" + CANARY}, "is no JSON"),
    "half": ({"body": ALLOWED[:-2]}, "is no JSON"),
    "two": ({"body": ALLOWED + ALLOWED}, "is no JSON"),
    "not utf-8": ({"body": b'{"result": "\xff\xfe"}'}, "is no JSON"),
    "nan": ({"body": b'{"result": {"allow": true, "ttl_s": NaN}}'}, "is no JSON"),
    "deep": ({"body": b"[" * 60_000}, "is no JSON"),
    "twice": ({"body": b'{"result": {"allow": false, "allow": true}}'}, "is no JSON"),
    "result twice": ({"body": b'{"result": {}, "result": {"allow": true}}'}, "is no JSON"),
    "envelope": ({"body": b'{"result": {"allow": true}, "also": 1}'}, "is no answer of OPA"),
    "decision id": ({"body": b'{"result": {"allow": true}, "decision_id": "a\\nb"}'}, "decision id of another form"),
    "huge": (
        {"body": b'{"result": {"row_filters": ["' + b"x" * 70_000 + b'"]}}'},
        "answered with more than 65536 bytes",
    ),
    "endless": (
        {"raw": b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 3_000_000 + ALLOWED},
        "answered with more than 65536 bytes",
    ),
    "cut off": ({"raw": b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"result": '}, "ended the connection"),
    "cut off after a whole answer": ({"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + ALLOWED}, "ended the"),
    "cut off in chunks": (
        {"raw": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\n" + ALLOWED[:10]},
        "ended the connection",
    ),
    "hung up": ({"raw": b""}, "ended the connection"),
    "garbage": ({"raw": b"\x16\x03\x01 this is no HTTP\r\n\r\n"}, "ended the connection"),
    "many headers": ({"raw": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 500 + b"\r\n" + ALLOWED}, "ended the connection"),
    "slow": ({"body": ALLOWED, "wait_secs": 30}, "did not answer in time"),
    "dripping": ({"body": ALLOWED + b" " * 1000, "drip_secs": 0.1}, "did not answer in time"),
}


@pytest.mark.rule("TEST-9", "POL-2", "ERR-1")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("path", [None, "sqe/authz"])
def test_a_bad_answer_is_an_error(opa: Any, make: Callable[..., OpaEnforcer], fault: str, path: str | None) -> None:
    reply, sentence = FAULTS[fault]
    opa.misbehave(**reply)
    hurry = 1 if "in time" in sentence else 20
    enforcer = make(authz_path=path, max_response_bytes=65_536, token=Secret("s3cr3t-token"), timeout_secs=hurry)
    began = time.monotonic()
    with pytest.raises(ExternalError, match=sentence) as raised:
        enforcer.decide(REQUEST)
    assert time.monotonic() - began < 10
    shown = f"{raised.value} {raised.value.hint}"
    for secret in ("canary", "s3cr3t", "127.0.0.1", str(opa.port), "/v1/data"):
        assert secret not in shown
    assert opa.requests


def test_listings_fail_the_same_way(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    opa.misbehave(status=500)
    listing = VisibilityRequest(principal=REQUEST.principal, names=(PEOPLE,), context=REQUEST.context)
    with pytest.raises(ExternalError):
        make().visible(listing)


def test_an_answer_that_is_nearly_the_largest_is_read(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    body = ALLOWED + b" " * (65_536 - len(ALLOWED))
    opa.misbehave(body=body)
    assert effect(make(max_response_bytes=65_536).decide(REQUEST)) is Effect.ALLOW


def test_headers_that_drip_end_in_time(make: Callable[..., OpaEnforcer], opa: Any, clock: Any) -> None:
    """A socket's timeout begins anew with every byte; the time of a statement does not."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            for byte in b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 10_000:
                if stop.wait(0.2):
                    return
                try:
                    connection.send(bytes([byte]))
                except OSError:
                    return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        enforcer = make(url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_secs=1)
        began = time.monotonic()
        with pytest.raises(ExternalError, match="in time"):
            enforcer.decide(REQUEST)
        assert time.monotonic() - began < 10
    finally:
        stop.set()
        thread.join(5)
        listener.close()


def test_nobody_listens(make: Callable[..., OpaEnforcer], opa: Any) -> None:
    opa.stop()
    with pytest.raises(ExternalError, match="cannot be reached"):
        make().decide(REQUEST)


def test_many_tables_share_one_time(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    opa.misbehave(body=ALLOWED, wait_secs=0.4)
    names = [ObjectName(catalog="lake", namespace=("hr",), name=f"t{number}") for number in range(20)]
    began = time.monotonic()
    with pytest.raises(ExternalError):
        make(max_connections=2, timeout_secs=1).decide(make_policy_request(*names))
    assert time.monotonic() - began < 3.5


def test_a_busy_opa_is_asked_again(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    busy = iter([503, 429])
    honest = opa.honest
    opa.misbehave(status=503)
    unavailable = opa.reply

    def reply(request: Any) -> Any:
        return unavailable(request) if next(busy, None) else honest(request)

    opa.reply = reply
    assert effect(make(max_retries=2).decide(REQUEST)) is Effect.ALLOW
    assert len(opa.requests) == 3


def test_retries_are_bounded(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    opa.misbehave(status=503)
    with pytest.raises(ExternalError):
        make(max_retries=3).decide(REQUEST)
    assert len(opa.requests) == 4


@pytest.mark.parametrize("reply", [{"status": 500, "body": b"{}"}, {"body": b"x"}, {"status": 403, "body": b"{}"}])
def test_what_would_not_change_is_asked_once(opa: Any, make: Callable[..., OpaEnforcer], reply: dict[str, Any]) -> None:
    opa.misbehave(**reply)
    with pytest.raises(ExternalError):
        make(max_retries=3).decide(REQUEST)
    assert len(opa.requests) == 1


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    opa.misbehave(body=ALLOWED, headers={"Connection": "close"})
    enforcer = make()
    for _ in range(3):
        assert effect(enforcer.decide(REQUEST)) is Effect.ALLOW
    assert opa.connections == 3


@pytest.mark.rule("POL-14")
def test_the_breaker_opens_probes_once_and_closes(
    opa: Any, make: Callable[..., OpaEnforcer], clock: Any, metrics: RecordingMetrics
) -> None:
    state = "sqe_policy_circuit_breaker_state"
    enforcer = make(breaker_failure_threshold=3, breaker_recovery_secs=30)
    opa.misbehave(status=500)
    for _ in range(3):
        with pytest.raises(ExternalError):
            enforcer.decide(REQUEST)
    assert metrics.values[state] == 2
    with pytest.raises(ExternalError) as refused:
        enforcer.decide(REQUEST)
    assert refused.value.code is ErrorCode.CIRCUIT_BREAKER_OPEN
    assert len(opa.requests) == 3

    clock.offset += 31
    with pytest.raises(ExternalError) as probed:
        enforcer.decide(REQUEST)
    assert probed.value.code is not ErrorCode.CIRCUIT_BREAKER_OPEN
    assert len(opa.requests) == 4
    with pytest.raises(ExternalError) as again:
        enforcer.decide(REQUEST)
    assert again.value.code is ErrorCode.CIRCUIT_BREAKER_OPEN
    assert len(opa.requests) == 4

    opa.reply = None
    clock.offset += 31
    assert effect(enforcer.decide(REQUEST)) is Effect.ALLOW
    assert metrics.values[state] == 0
    assert effect(enforcer.decide(REQUEST)) is Effect.ALLOW


@pytest.mark.rule("POL-14")
def test_only_one_probe_is_sent(opa: Any, make: Callable[..., OpaEnforcer], clock: Any) -> None:
    enforcer = make(breaker_failure_threshold=1)
    opa.misbehave(status=500)
    with pytest.raises(ExternalError):
        enforcer.decide(REQUEST)
    opa.misbehave(body=ALLOWED, wait_secs=0.4)
    clock.offset += 31
    outcomes = in_threads(lambda: _outcome(enforcer), 8)
    assert outcomes.count("allow") == 1
    assert outcomes.count("open") == 7
    assert len(opa.requests) == 2


def _outcome(enforcer: OpaEnforcer) -> str:
    try:
        return effect(enforcer.decide(REQUEST)).value
    except ExternalError as error:
        return "open" if error.code is ErrorCode.CIRCUIT_BREAKER_OPEN else "error"


def test_the_probe_is_one_request(opa: Any, make: Callable[..., OpaEnforcer], clock: Any) -> None:
    enforcer = make(breaker_failure_threshold=1, max_retries=2)
    opa.misbehave(status=503)
    with pytest.raises(ExternalError):
        enforcer.decide(REQUEST)
    assert len(opa.requests) == 3
    clock.offset += 31
    with pytest.raises(ExternalError):
        enforcer.decide(REQUEST)
    assert len(opa.requests) == 4


def test_successes_between_failures_keep_the_breaker_closed(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    enforcer = make(breaker_failure_threshold=2)
    for _ in range(4):
        opa.misbehave(status=500)
        with pytest.raises(ExternalError, match="500"):
            enforcer.decide(REQUEST)
        opa.reply = None
        assert effect(enforcer.decide(REQUEST)) is Effect.ALLOW


@pytest.mark.parametrize(
    "reply",
    [
        {"body": b'{"result": {"allow": true, "odd": 1}}'},
        {"body": b"{}"},
        {"status": 500, "body": b'{"code": "internal_error", "errors": [{"code": "eval_conflict_error"}]}'},
    ],
)
def test_one_broken_policy_does_not_lock_everybody_out(
    opa: Any, make: Callable[..., OpaEnforcer], reply: dict[str, Any]
) -> None:
    """Whoever finds a table whose policy fails must not be able to open the breaker with it."""
    enforcer = make(breaker_failure_threshold=2)
    opa.misbehave(**reply)
    for _ in range(5):
        with pytest.raises(ExternalError):
            enforcer.decide(REQUEST)
    opa.reply = None
    assert effect(enforcer.decide(REQUEST)) is Effect.ALLOW


@pytest.mark.rule("POL-1")
@pytest.mark.parametrize("path", [None, "sqe/authz"])
def test_an_engine_that_cannot_decide_does_not_start(opa: Any, path: str | None) -> None:
    for reply in ({"status": 500}, {"body": b"{}"}, {"body": b"<html>"}, {"status": 401, "body": b"{}"}):
        opa.misbehave(**reply)
        with pytest.raises(StartupError, match="cannot decide") as raised:
            OpaFactory().create("opa", opa.config(authz_path=path), PluginContext())
        assert raised.value.hint
        assert (path or "sqe/policy/evaluate") in raised.value.hint
    opa.stop()
    with pytest.raises(StartupError, match="cannot be reached"):
        OpaFactory().create("opa", opa.config(authz_path=path), PluginContext())


def test_an_engine_that_allows_everything_is_warned_about(
    opa: Any, make: Callable[..., OpaEnforcer], caplog: pytest.LogCaptureFixture
) -> None:
    make().check()
    assert not caplog.records
    opa.one = lambda asked: {"allow": True}
    make().check()
    assert "deny by default" in caplog.text


@pytest.mark.rule("POL-14")
def test_the_certificate_is_checked(
    certificate: Callable[[str], tuple[str, str]], fake_opa: Callable[..., Any], enforcers: list[OpaEnforcer]
) -> None:
    good, wrong = certificate("IP:127.0.0.1"), certificate("DNS:opa.example.com")
    secure, ca_file = fake_opa(good), Path(good[0])
    enforcers.append(OpaEnforcer(secure.config(ca_file=ca_file), PluginContext()))
    assert effect(enforcers[0].decide(REQUEST)) is Effect.ALLOW

    enforcers.append(OpaEnforcer(secure.config(timeout_secs=5), PluginContext()))
    with pytest.raises(ExternalError, match="certificate"):
        enforcers[1].decide(REQUEST)

    other = fake_opa(wrong)
    enforcers.append(OpaEnforcer(other.config(ca_file=Path(wrong[0])), PluginContext()))
    with pytest.raises(ExternalError, match="certificate"):
        enforcers[2].decide(REQUEST)
    assert not other.requests


def test_certificates_that_cannot_be_read_stop_the_start(tmp_path: Path) -> None:
    config = OpaConfig(url="https://opa", ca_file=tmp_path / "none.pem")
    with pytest.raises(StartupError, match="cannot be read"):
        OpaEnforcer(config, PluginContext())


def effect(response: PolicyResponse) -> Effect:
    (decision,) = response.decisions
    return decision.effect
