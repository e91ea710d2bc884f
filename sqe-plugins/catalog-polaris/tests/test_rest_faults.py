"""A catalog that is down, slow, broken or lying: a clear error in bounded time, and nothing of it is shown (ERR-1)."""

from __future__ import annotations

import logging
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from sqe_core.spi import CatalogContext, ErrorCode, ObjectNotFoundError, ResourcesError, Secret, SqeError, UserError
from sqe_core.testing.fakes import FixedClock, make_identity
from sqe_http.testing import Reply

ALICE = make_identity("alice", token="token-of-alice-5d1f")
HR = ("hr",)
SECRET_TEXT = "Zwiebelfisch-4711"


def fails(backend: Any, identity: Any = ALICE) -> SqeError:
    """List, and return the error; it came in time and tells nothing of what the catalog said."""
    began = time.monotonic()
    with pytest.raises(SqeError) as caught:
        backend.quick_metadata(identity).list_tables(HR)
    assert time.monotonic() - began < 5
    shown = f"{caught.value} {caught.value.hint} {caught.value!r}"
    for hidden in (SECRET_TEXT, "127.0.0.1", "token-of-alice", "/v1/", "Traceback"):
        assert hidden not in shown
    return caught.value


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    "reply",
    [
        {"body": f"<html>{SECRET_TEXT}</html>".encode(), "headers": {"Content-Type": "text/html"}},
        {"body": b""},
        {"body": b'{"namespaces": ['},
        {"body": b"[1, 2]"},
        {"body": b'"text"'},
        {"body": b"null"},
        {"body": b"[" * 100_000},
        {"body": b'{"overrides": {"prefix": NaN}}'},
        {"body": b"\xff\xfe\x00"},
        {"body": {"overrides": [1]}},
        {"body": {"overrides": "x", "defaults": 1}},
        {"body": {}},
        {"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"},
        {"raw": b"SSH-2.0-OpenSSH\r\n"},
        {"raw": b""},
        {"raw": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n{}"},
        {"status": 204},
        {"status": 418, "body": SECRET_TEXT.encode()},
        {"status": 500, "body": SECRET_TEXT.encode()},
        {"status": 501, "body": {"error": {"message": SECRET_TEXT, "type": "x", "code": 501}}},
        {"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}},
        {"status": 307, "headers": {"Location": "/api/catalog/v1/elsewhere"}},
        {"body": b'{"a": "' + b"x" * 300_000 + b'"}'},
    ],
)
def test_whatever_a_catalog_answers_is_an_error_of_ours(catalog: Any, make: Any, reply: dict[str, Any]) -> None:
    catalog.misbehave(**reply)

    error = fails(make(max_response_bytes=200_000, timeout_secs=2))
    assert error.code in (ErrorCode.CATALOG_ERROR, ErrorCode.CATALOG_UNAVAILABLE)


def test_a_redirect_is_not_followed(catalog: Any, make: Any) -> None:
    """It would carry the user's token to whoever the catalog names."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.2)
        catalog.misbehave(status=302, headers={"Location": f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"})
        fails(make())
        with pytest.raises(TimeoutError):
            elsewhere.accept()


def test_a_redirect_within_the_catalog_is_not_followed_either(catalog: Any, make: Any) -> None:
    """Whatever is behind it may send the next one."""
    catalog.misbehave(status=307, headers={"Location": "/api/catalog/v1/elsewhere"})
    fails(make())
    assert catalog.paths()
    assert "elsewhere" not in catalog.paths()


@pytest.mark.parametrize("reply", [{"wait_secs": 30}, {"body": {"overrides": {}}, "drip_secs": 0.3}])
def test_a_catalog_that_hangs_or_drips_costs_the_configured_time(
    catalog: Any, make: Any, reply: dict[str, Any]
) -> None:
    catalog.misbehave(**reply)
    began = time.monotonic()
    error = fails(make(timeout_secs=1))

    assert error.code is ErrorCode.CATALOG_UNAVAILABLE
    assert 0.9 < time.monotonic() - began < 2


def test_a_catalog_that_is_not_there(catalog: Any, make: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = fails(make(catalog_url=f"http://127.0.0.1:{port}/api"))

    assert error.code is ErrorCode.CATALOG_UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, ErrorCode.AUTHENTICATION_FAILED, UserError),
        (419, ErrorCode.AUTHENTICATION_FAILED, UserError),
        (403, ErrorCode.SCHEMA_NOT_FOUND, ObjectNotFoundError),
        (404, ErrorCode.SCHEMA_NOT_FOUND, ObjectNotFoundError),
        (429, ErrorCode.RESOURCE_EXHAUSTED, ResourcesError),
        (500, ErrorCode.CATALOG_UNAVAILABLE, SqeError),
        (503, ErrorCode.CATALOG_UNAVAILABLE, SqeError),
    ],
)
def test_what_a_status_means(catalog: Any, make: Any, status: int, code: ErrorCode, kind: type[SqeError]) -> None:
    catalog.reply = lambda request: None if request.path.endswith("/config") else catalog.error(status)

    error = fails(make())
    assert isinstance(error, kind)
    assert error.code is code


@pytest.mark.parametrize(
    "message",
    [
        "org.projectnessie.services.authz.AccessCheckException: 'READ_CONTENT_KEY' is not allowed for role 'bob'",
        "not authorized to list tables",
    ],
)
def test_a_denial_that_looks_like_a_fault_is_a_denial(catalog: Any, make: Any, message: str) -> None:
    catalog.reply = lambda request: (
        None if request.path.endswith("/config") else catalog.error(500, "RuntimeException", message)
    )

    assert fails(make()).code is ErrorCode.SCHEMA_NOT_FOUND


def test_a_denial_of_an_expired_login_is_its_end(catalog: Any, make: Any) -> None:
    """Some catalogs answer 403 to a token that has ended (testbed §14.4)."""
    clock = FixedClock()
    alice = replace(ALICE, expires_at=clock.now() + timedelta(minutes=5))
    catalog.reply = lambda request: None if request.path.endswith("/config") else catalog.error(403)
    backend = make(context=CatalogContext(clock=clock))
    assert fails(backend, alice).code is ErrorCode.SCHEMA_NOT_FOUND

    clock.advance(301)
    assert fails(backend, alice).code is ErrorCode.AUTHENTICATION_FAILED


@pytest.mark.parametrize("status", [429, 502, 503, 504, None])
def test_a_busy_catalog_is_asked_again(catalog: Any, make: Any, status: int | None) -> None:
    """So is one whose connection broke."""
    answers = [Reply(raw=b"") if status is None else catalog.error(status), None]
    catalog.reply = lambda request: answers.pop(0) if answers else None

    assert make().quick_metadata(ALICE).list_tables(HR) == ["emp", "roles"]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_respected(catalog: Any, make: Any, form: str) -> None:
    when = "1" if form == "seconds" else format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    answers = [catalog.error(503, Retry_After=when)]
    catalog.reply = lambda request: answers.pop(0) if answers else None
    began = time.monotonic()
    make().quick_metadata(ALICE).list_tables(HR)

    assert time.monotonic() - began >= 0.9


def test_a_retry_after_beyond_the_time_ends_the_request_and_is_told(catalog: Any, make: Any) -> None:
    catalog.misbehave(status=429, headers={"Retry-After": "3600"})
    error = fails(make(timeout_secs=2))

    assert isinstance(error, ResourcesError)
    assert error.retry_after_secs == 3600


def test_the_breaker_spares_a_catalog_that_is_down_and_closes_again(catalog: Any, make: Any) -> None:
    backend = make(breaker_failure_threshold=2, breaker_recovery_secs=1, max_retries=1)
    catalog.misbehave(status=503)
    assert [fails(backend).code for _ in range(2)] == [ErrorCode.CATALOG_UNAVAILABLE] * 2
    asked = len(catalog.requests)

    assert fails(backend).code is ErrorCode.CIRCUIT_BREAKER_OPEN
    assert len(catalog.requests) == asked
    catalog.reply = None
    time.sleep(1.05)
    assert backend.quick_metadata(ALICE).list_tables(HR) == ["emp", "roles"]


def test_one_catalog_that_is_down_leaves_others_alone(catalog: Any, make: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    down = make(catalog_url=f"http://127.0.0.1:{port}", breaker_failure_threshold=1)
    up = make()
    fails(down)

    assert fails(down).code is ErrorCode.CIRCUIT_BREAKER_OPEN
    assert up.quick_metadata(ALICE).list_tables(HR) == ["emp", "roles"]


@pytest.mark.parametrize("entry", [["hr", 1], [], [""], "hr", None, {"a": 1}])
def test_names_that_are_none_are_refused(catalog: Any, make: Any, entry: Any) -> None:
    catalog.reply = lambda request: (
        Reply(body={"namespaces": [entry]}) if request.path.endswith("/namespaces") else None
    )
    with pytest.raises(SqeError, match="does not answer as expected"):
        make().quick_metadata(ALICE).list_namespaces()


def test_namespaces_that_nobody_asked_for_are_left_out(catalog: Any, make: Any) -> None:
    """A catalog that lists itself below itself must not make listings run in circles."""
    catalog.reply = lambda request: (
        Reply(body={"namespaces": [["hr"], ["fin", "x"], ["hr", "pay"], ["hr", "pay", "deep"]]})
        if request.query.get("parent") == "hr"
        else None
    )

    assert make().quick_metadata(ALICE).list_namespaces(HR) == [("hr", "pay")]


@pytest.mark.rule("LIM-10")
def test_a_catalog_with_more_below_everything_is_not_asked_for_ever(catalog: Any, make: Any) -> None:
    def below(request: Any) -> Any:
        if not request.path.endswith("/namespaces"):
            return None
        parent = [part for part in request.query.get("parent", "").split("\x1f") if part]
        return Reply(body={"namespaces": [[*parent, "a"]] if len(parent) < 300 else []})

    catalog.reply = below
    with pytest.raises(ResourcesError, match="more schemas than SQE lists"):
        make(namespace_visibility_filter=False).quick_metadata(ALICE).all_namespaces()


def test_nothing_secret_is_logged(catalog: Any, make: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="sqe_core")
    catalog.misbehave(status=500, text=SECRET_TEXT.encode())
    auth = {"type": "static", "token": Secret("hunter2-static")}
    fails(make())
    fails(make(auth=auth))

    for hidden in (SECRET_TEXT, "token-of-alice", "hunter2-static"):
        assert hidden not in caplog.text


def test_a_check_takes_a_refused_login_for_a_sign_of_life(catalog: Any, make: Any) -> None:
    make().check()
    catalog.misbehave(status=500)
    with pytest.raises(SqeError, match="status 500"):
        make().check()
