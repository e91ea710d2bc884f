"""Every error of the core has its gRPC status and its code, and nothing of ours reaches a client (ERR-1)."""

from __future__ import annotations

from typing import Any

import grpc
import pyarrow as pa
import pytest
from raw_flight import Core, RawClient, Refused

from sqe_core.protocols.flight.status import status_code, status_text, trailing_metadata
from sqe_core.spi.errors import (
    AccessDeniedError,
    CommitConflictError,
    EngineLostError,
    ErrorCode,
    ExternalError,
    InternalError,
    InvalidCredentialsError,
    NotSupportedError,
    ObjectNotFoundError,
    Position,
    QueryCancelledError,
    QueryTimeoutError,
    ResourcesError,
    ShuttingDownError,
    SqeError,
    UserError,
)

S = grpc.StatusCode
# features §3.1, for each code of §3.2.
STATUSES = {
    ErrorCode.SYNTAX_ERROR: S.INVALID_ARGUMENT,
    ErrorCode.PARSE_ERROR: S.INVALID_ARGUMENT,
    ErrorCode.SEMANTIC_ERROR: S.INVALID_ARGUMENT,
    ErrorCode.TYPE_MISMATCH: S.INVALID_ARGUMENT,
    ErrorCode.TABLE_NOT_FOUND: S.NOT_FOUND,
    ErrorCode.COLUMN_NOT_FOUND: S.INVALID_ARGUMENT,
    ErrorCode.SCHEMA_NOT_FOUND: S.NOT_FOUND,
    ErrorCode.CATALOG_NOT_FOUND: S.NOT_FOUND,
    ErrorCode.VIEW_NOT_FOUND: S.NOT_FOUND,
    ErrorCode.FUNCTION_NOT_FOUND: S.INVALID_ARGUMENT,
    ErrorCode.INVALID_ARGUMENTS: S.INVALID_ARGUMENT,
    ErrorCode.INVALID_SESSION_PROPERTY: S.INVALID_ARGUMENT,
    ErrorCode.UNKNOWN_TRANSACTION: S.FAILED_PRECONDITION,
    ErrorCode.NOT_IN_TRANSACTION: S.FAILED_PRECONDITION,
    ErrorCode.READ_ONLY_VIOLATION: S.FAILED_PRECONDITION,
    ErrorCode.AUTOCOMMIT_WRITE_CONFLICT: S.FAILED_PRECONDITION,
    ErrorCode.DUPLICATE_TABLE: S.ALREADY_EXISTS,
    ErrorCode.DUPLICATE_COLUMN: S.ALREADY_EXISTS,
    ErrorCode.DIVISION_BY_ZERO: S.INVALID_ARGUMENT,
    ErrorCode.INVALID_CAST: S.INVALID_ARGUMENT,
    ErrorCode.NOT_SUPPORTED: S.UNIMPLEMENTED,
    ErrorCode.AUTHENTICATION_FAILED: S.UNAUTHENTICATED,
    ErrorCode.ACCESS_DENIED: S.PERMISSION_DENIED,
    ErrorCode.SESSION_EXPIRED: S.UNAUTHENTICATED,
    ErrorCode.EXECUTION_FAILED: S.INTERNAL,
    ErrorCode.RESOURCE_EXHAUSTED: S.RESOURCE_EXHAUSTED,
    ErrorCode.QUERY_TIMEOUT: S.DEADLINE_EXCEEDED,
    ErrorCode.GENERIC_INTERNAL_ERROR: S.INTERNAL,
    ErrorCode.QUERY_CANCELLED: S.CANCELLED,
    ErrorCode.SERVER_SHUTTING_DOWN: S.UNAVAILABLE,
    ErrorCode.CATALOG_ERROR: S.INTERNAL,
    ErrorCode.STORAGE_ERROR: S.INTERNAL,
    ErrorCode.COMMIT_CONFLICT: S.ABORTED,
    ErrorCode.CATALOG_UNAVAILABLE: S.UNAVAILABLE,
    ErrorCode.CIRCUIT_BREAKER_OPEN: S.UNAVAILABLE,
}


def test_no_code_is_forgotten() -> None:
    assert set(STATUSES) == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_each_code_arrives_with_its_status(core: Core, alice: RawClient, code: ErrorCode) -> None:
    error = UserError("What failed", code=code)
    error.query_id = "q-1"
    core.answers["bad"] = error
    with pytest.raises(Refused, match="What failed") as caught:
        alice.plan("bad")
    assert (caught.value.status, caught.value.code) == (STATUSES[code], code.name)
    assert caught.value.trailing["x-sqe-query-id"] == "q-1"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AccessDeniedError("x"), S.PERMISSION_DENIED),
        (NotSupportedError("x"), S.UNIMPLEMENTED),
        (ObjectNotFoundError("x"), S.NOT_FOUND),
        (InvalidCredentialsError(), S.UNAUTHENTICATED),
        (InternalError("x"), S.INTERNAL),
        (EngineLostError("x"), S.INTERNAL),
        (ResourcesError("x"), S.RESOURCE_EXHAUSTED),
        (QueryTimeoutError("x"), S.DEADLINE_EXCEEDED),
        (QueryCancelledError("x"), S.CANCELLED),
        (ShuttingDownError("x"), S.UNAVAILABLE),
        (ExternalError("x"), S.INTERNAL),
        (CommitConflictError("x"), S.ABORTED),
    ],
)
def test_each_class_has_its_status(error: SqeError, status: S) -> None:
    assert status_code(error) is status
    assert ("x-sqe-error-kind", error.kind.value) in trailing_metadata(error)


def test_when_to_come_back(core: Core, alice: RawClient) -> None:
    core.answers["bad"] = ResourcesError("Too many", retry_after_secs=7)
    with pytest.raises(Refused) as caught:
        alice.plan("bad")
    assert caught.value.trailing["retry-after"] == "7"


def test_hint_and_position_can_be_told_apart(core: Core, alice: RawClient) -> None:
    core.answers["bad"] = UserError("Unexpected ')'", hint="dïd you mean", position=Position(2, 3))
    with pytest.raises(Refused) as caught:
        alice.plan("bad")
    assert caught.value.text == "line 2:3: Unexpected ')' (dïd you mean)"
    assert caught.value.trailing["x-sqe-hint-bin"] == "dïd you mean".encode()


@pytest.mark.parametrize("text", ["x" * 100_000, "€" * 100_000, "😀" * 100_000, "a\nb\x00\ud800" * 5000])
def test_a_long_text_arrives_with_its_status(core: Core, alice: RawClient, text: str) -> None:
    """The text travels percent-encoded in a header: clients refuse long ones, and the status with them."""
    core.answers["bad"] = UserError(text, code=ErrorCode.INVALID_CAST, hint=text)
    plain = RawClient(grpc.insecure_channel(alice.channel._channel.target().decode()), alice.metadata)
    with pytest.raises(Refused) as caught:
        plain.plan("bad")
    plain.channel.close()
    assert (caught.value.status, caught.value.code) == (S.INVALID_ARGUMENT, "INVALID_CAST")
    assert caught.value.text[:3] == status_text(core.answers["bad"])[:3]


class Bomb(RuntimeError):
    """What must not reach anybody."""

    def __init__(self) -> None:
        super().__init__("canary-91ab /opt/secret/place.py")


def raising(*args: Any, **kwargs: Any) -> Any:
    raise Bomb


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("where", ["plan", "start", "iterate", "describe", "ingest", "tables", "authenticate", "close"])
def test_nothing_of_ours_reaches_a_client(
    core: Core, alice: RawClient, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import raw_flight
    from raw_flight import CoreSession

    from sqe_core.protocols.flight.wire import flight_pb2 as flight
    from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql

    owner: Any = {"start": raw_flight.Plan, "iterate": raw_flight.FakeResult, "authenticate": Core}.get(
        where, CoreSession
    )
    method = {"iterate": "__iter__", "plan": "judge", "describe": "described"}.get(where, where)
    monkeypatch.setattr(owner, method, raising)
    calls = {
        "plan": lambda: alice.plan("SELECT 1 AS one"),
        "start": lambda: alice.query("SELECT 1 AS one"),
        "iterate": lambda: alice.query("SELECT 1 AS one"),
        "describe": lambda: alice.prepare("SELECT 1 AS one"),
        "ingest": lambda: alice.put(sql.CommandStatementIngest(table="t"), pa.table({"a": [1]})),
        "tables": lambda: alice.fetch(alice.info(sql.CommandGetTables())),
        "authenticate": lambda: alice.call("ListActions", flight.Empty()),
        "close": lambda: alice.action("CloseSession", b""),
    }
    with pytest.raises(Refused) as caught:
        calls[where]()
    told = f"{caught.value.text} {caught.value.trailing}"
    assert (caught.value.status, caught.value.code) == (S.INTERNAL, "GENERIC_INTERNAL_ERROR")
    for part in ("canary", "Traceback", "Bomb", ".py", "secret", "Exception"):
        assert part not in told
    monkeypatch.undo()
    assert alice.query("SELECT 1 AS one").num_rows == 1


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize("code", ErrorCode)
def test_what_may_be_a_denial_carries_the_query_id_in_its_text(core: Core, alice: RawClient, code: ErrorCode) -> None:
    error = UserError("What failed", code=code, hint="look")
    error.query_id = "q-1"
    core.answers["bad"] = error
    with pytest.raises(Refused) as caught:
        alice.plan("bad")
    quoted = code is ErrorCode.ACCESS_DENIED or (code.name.endswith("_NOT_FOUND") and "FUNCTION" not in code.name)
    assert caught.value.text == ("What failed (look) (query id q-1)" if quoted else "What failed (look)")
