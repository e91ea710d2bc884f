"""The actions of Flight and Flight SQL: prepared statements, cancel, session options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from sqe_core.protocols.flight.leaving import OnEnd
from sqe_core.protocols.flight.messages import packed, schema_bytes
from sqe_core.protocols.flight.session_options import get_options, set_options
from sqe_core.protocols.flight.statements import Prepared, Statements, ensure_columns
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.auth import BearerCredential
from sqe_core.spi.errors import ErrorCode, InvalidCredentialsError, NotSupportedError, UserError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import GatewaySession, StatementRequest

ACTIONS = {
    "CreatePreparedStatement": "Judge a statement and keep its text. Request: ActionCreatePreparedStatementRequest",
    "ClosePreparedStatement": "Forget a prepared statement. Request: ActionClosePreparedStatementRequest",
    "CancelFlightInfo": "End a statement. Request: CancelFlightInfoRequest",
    "CancelQuery": "The same, in its older form. Request: ActionCancelQueryRequest",
    "RenewFlightEndpoint": "Keep a ticket for longer. Request: RenewFlightEndpointRequest",
    "SetSessionOptions": "Set options of the session. Request: SetSessionOptionsRequest",
    "GetSessionOptions": "Return the options of the session. Request: GetSessionOptionsRequest",
    "CloseSession": "Log out. Request: CloseSessionRequest",
    "RenewLogin": "Go on with a new token of the same login, for SQE's own clients. Request: the token",
}
_LONGEST_TOKEN = 32 << 10
_TRANSACTIONS = ("BeginTransaction", "EndTransaction", "BeginSavepoint", "EndSavepoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing:
    """How a call prepares a statement.

    Attributes:
        ask: makes a request of a text.
        on_end: calls back when the call has ended.
        java: whether the client is Arrow's Java library.
    """

    ask: Callable[[str], StatementRequest]
    on_end: OnEnd
    java: bool


class Actions:
    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._methods: dict[str, Callable[[GatewaySession, bytes], Iterator[bytes]]] = {
            "ClosePreparedStatement": self._close_prepared,
            "CancelFlightInfo": self._cancel_info,
            "CancelQuery": self._cancel_query,
            "RenewFlightEndpoint": self._renew,
            "SetSessionOptions": self._set_options,
            "GetSessionOptions": self._get_options,
            "CloseSession": self._close_session,
            "RenewLogin": self._renew_login,
        }

    def run(self, session: GatewaySession, name: str, body: bytes, preparing: Preparing) -> Iterator[bytes]:
        """Run one action and yield the bodies of its results."""
        if name == "CreatePreparedStatement":
            yield from self._prepare(session, body, preparing)
            return
        method = self._methods.get(name)
        if method is not None:
            yield from method(session, body)
            return
        if name in _TRANSACTIONS:
            raise NotSupportedError("Transactions are not supported", hint="each statement commits by itself")
        if name == "CreatePreparedSubstraitPlan":
            raise NotSupportedError("Substrait plans are not supported", hint="send SQL")
        raise NotSupportedError(f"There is no action {name[:60]!r}", hint="ListActions names them")

    def _prepare(self, session: GatewaySession, body: bytes, preparing: Preparing) -> Iterator[bytes]:
        request = _read(body, sql.ActionCreatePreparedStatementRequest)
        if request.transaction_id:
            raise NotSupportedError("Transactions are not supported", hint="each statement commits by itself")
        described = self._statements.describe(session, preparing.ask(request.query), preparing.on_end)
        if preparing.java:
            ensure_columns(described)  # it would send a query without columns as an update
        handle = self._statements.prepare(session, Prepared(request.query, described))
        parameters = _for_java(described.parameters) if preparing.java else described.parameters
        yield packed(
            sql.ActionCreatePreparedStatementResult(
                prepared_statement_handle=handle,
                dataset_schema=schema_bytes(described.schema) if described.schema is not None else b"",
                parameter_schema=schema_bytes(parameters) if len(parameters) else b"",
            )
        )

    def _close_prepared(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        request = _read(body, sql.ActionClosePreparedStatementRequest)
        self._statements.prepared.take(session, request.prepared_statement_handle).close()
        return iter(())

    def _cancel_info(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        request = _read(body, flight.CancelFlightInfoRequest)
        done = self._cancel(session, request.info)
        status = flight.CANCEL_STATUS_CANCELLED if done else flight.CANCEL_STATUS_NOT_CANCELLABLE
        yield flight.CancelFlightInfoResult(status=status).SerializeToString()

    def _cancel_query(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        request = _read(body, sql.ActionCancelQueryRequest)
        done = self._cancel(session, _parsed(request.info, flight.FlightInfo))
        result = sql.ActionCancelQueryResult
        yield packed(result(result=result.CANCEL_RESULT_CANCELLED if done else result.CANCEL_RESULT_NOT_CANCELLABLE))

    def _cancel(self, session: GatewaySession, info: flight.FlightInfo) -> bool:
        handles = [handle for endpoint in info.endpoint if (handle := _handle_of(endpoint)) is not None]
        ended = [self._statements.cancel(session, handle) for handle in handles]
        if not handles and info.app_metadata:
            # What PollFlightInfo answers has no endpoint while the statement runs.
            ended.append(session.cancel(_query_id_of(info)))
        return any(ended)

    def _renew(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        endpoint = _read(body, flight.RenewFlightEndpointRequest).endpoint
        handle = _handle_of(endpoint)
        if handle is None:
            raise _malformed("RenewFlightEndpoint")
        self._statements.tickets.get(session, handle)
        endpoint.expiration_time.GetCurrentTime()
        endpoint.expiration_time.seconds += int(self._statements.tickets.expires_in(handle))
        yield endpoint.SerializeToString()

    def _set_options(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        yield set_options(session, _read(body, flight.SetSessionOptionsRequest)).SerializeToString()

    def _get_options(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        yield get_options(session).SerializeToString()

    def _close_session(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        self._statements.end_session(session)
        session.close()
        yield flight.CloseSessionResult(status=flight.CloseSessionResult.CLOSED).SerializeToString()

    def _renew_login(self, session: GatewaySession, body: bytes) -> Iterator[bytes]:
        if not 0 < len(body) <= _LONGEST_TOKEN or not body.isascii():
            raise InvalidCredentialsError
        session.renew_login(BearerCredential(token=Secret(body.decode("ascii"))))
        return iter(())


def _for_java(parameters: pa.Schema) -> pa.Schema:
    """Return what the JDBC driver is to be told.

    It writes milliseconds whatever the unit is, and nothing but NULL where a type is not known.
    """
    fields = []
    for field in parameters:
        if pa.types.is_null(field.type):
            field = field.with_type(pa.string())
        elif pa.types.is_timestamp(field.type):
            field = field.with_type(pa.timestamp("ms", field.type.tz))
        elif pa.types.is_time(field.type):
            field = field.with_type(pa.time32("ms"))
        fields.append(field)
    return pa.schema(fields)


def _handle_of(endpoint: flight.FlightEndpoint) -> bytes | None:
    try:
        ticket = AnyMessage.FromString(endpoint.ticket.ticket)
        if ticket.TypeName() == sql.TicketStatementQuery.DESCRIPTOR.full_name:
            return sql.TicketStatementQuery.FromString(ticket.value).statement_handle
    except DecodeError:
        pass
    return None


def _query_id_of(info: flight.FlightInfo) -> str:
    text = info.app_metadata.decode("utf-8", "replace")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return str(told.get("query_id", "")) if isinstance(told, dict) else text


def _read(body: bytes, kind: Any) -> Any:
    """Read a request; those of Flight SQL come packed, those of Flight itself bare."""
    try:
        holder = AnyMessage.FromString(body)
        if holder.TypeName() == kind.DESCRIPTOR.full_name:
            return kind.FromString(holder.value)
    except (DecodeError, ValueError):
        pass
    if kind.DESCRIPTOR.full_name.startswith("arrow.flight.protocol.sql."):
        raise _malformed(kind.DESCRIPTOR.name)
    return _parsed(body, kind)


def _parsed(body: bytes, kind: Any) -> Any:
    try:
        return kind.FromString(body)
    except DecodeError:
        raise _malformed(kind.DESCRIPTOR.name) from None


def _malformed(name: str) -> UserError:
    return UserError(f"The body is no {name}", code=ErrorCode.INVALID_ARGUMENTS)
