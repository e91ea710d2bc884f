"""The calls of Arrow Flight SQL that the command line makes, over gRPC.

Not over pyarrow.flight's client: that has no PollFlightInfo, cannot end a call that waits for its first answer (an
INSERT is one), and mixes the server's text with its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from sqe_core.cli.remote.errors import SignedOutError, error_of
from sqe_core.cli.remote.login import Login
from sqe_core.cli.remote.rows import FlightRows
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import InternalError
from sqe_core.spi.identity import Secret

_SERVICE = "/arrow.flight.protocol.FlightService/"
_SIGN_IN_SECS = 60.0
_METADATA_SECS = 60.0


class Interruptible:
    """The call that a statement waits in; ending it from another thread wakes the statement."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: Any = None
        self.interrupted = False

    def enter(self, call: Any) -> None:
        """A call begins; when the statement was interrupted already, it ends at once."""
        with self._lock:
            self._call = call
            interrupted = self.interrupted
        if interrupted:
            call.cancel()

    def interrupt(self) -> None:
        """End the call, and every later one of this statement."""
        with self._lock:
            self.interrupted = True
            call = self._call
        if call is not None:
            call.cancel()


class FlightClient:
    """One signed-in session on a channel. Safe for use from several threads.

    Args:
        channel: the connection, which stays the caller's.
        address: the server's, for messages.
    """

    def __init__(self, channel: grpc.Channel, address: str) -> None:
        self._address = address
        self._authorization: str | None = None
        self._handshake = channel.stream_stream(
            _SERVICE + "Handshake", flight.HandshakeRequest.SerializeToString, flight.HandshakeResponse.FromString
        )
        self._get_flight_info = channel.unary_unary(
            _SERVICE + "GetFlightInfo", flight.FlightDescriptor.SerializeToString, flight.FlightInfo.FromString
        )
        self._poll_flight_info = channel.unary_unary(
            _SERVICE + "PollFlightInfo", flight.FlightDescriptor.SerializeToString, flight.PollInfo.FromString
        )
        self._do_get = channel.unary_stream(
            _SERVICE + "DoGet", flight.Ticket.SerializeToString, flight.FlightData.FromString
        )
        self._do_action = channel.unary_stream(
            _SERVICE + "DoAction", flight.Action.SerializeToString, flight.Result.FromString
        )

    def sign_in(self, login: Login) -> None:
        """Open a session. Raises SqeError: refused, or not reachable."""
        authorization = login.authorization()
        headers = (("authorization", authorization),) if authorization is not None else ()
        with self._failures():
            answers = self._handshake(iter([flight.HandshakeRequest()]), timeout=_SIGN_IN_SECS, metadata=headers)
            tokens = [answer.payload for answer in answers]
        if len(tokens) != 1:
            raise InternalError(f"{self._address} answered the login in a way that is not Flight's")
        self._authorization = f"Bearer {tokens[0].decode('ascii', 'replace')}"

    def renew(self, token: Secret) -> None:
        """Go on with a new token of the same login. Raises SqeError: the server does not take it, or cannot do that."""
        action = flight.Action(type="RenewLogin", body=token.reveal().encode())
        with self._failures():
            list(self._do_action(action, metadata=self._headers(), timeout=_SIGN_IN_SECS))

    def statement(self, text: str, running: Interruptible) -> flight.FlightInfo:
        """Have a statement judged; one without rows has run when this returns."""
        descriptor = _command(sql.CommandStatementQuery(query=text))
        info: flight.FlightInfo = self._waiting(running, self._get_flight_info, descriptor)
        return info

    def poll(self, descriptor: flight.FlightDescriptor, running: Interruptible) -> flight.PollInfo:
        """Run a judged statement, or wait for it a little longer."""
        poll: flight.PollInfo = self._waiting(running, self._poll_flight_info, descriptor)
        return poll

    def fetch(self, ticket: flight.Ticket, running: Interruptible, told: Callable[[bytes], None]) -> FlightRows:
        call = self._do_get(ticket, metadata=self._headers())
        running.enter(call)
        return FlightRows(self._messages(call), told)

    def metadata(self, command: Message) -> pa.Table:
        """Return the answer to a metadata command."""
        with self._failures():
            info = self._get_flight_info(_command(command), metadata=self._headers(), timeout=_METADATA_SECS)
            call = self._do_get(info.endpoint[0].ticket, metadata=self._headers(), timeout=_METADATA_SECS)
        rows = FlightRows(self._messages(call), lambda app_metadata: None)
        return pa.Table.from_batches(list(rows), rows.schema)

    def action(self, name: str, request: Message, *, timeout_secs: float = _METADATA_SECS) -> list[bytes]:
        """Run an action of Flight itself and return the bodies of its results."""
        action = flight.Action(type=name, body=request.SerializeToString())
        with self._failures():
            results = self._do_action(action, metadata=self._headers(), timeout=timeout_secs)
            return [result.body for result in results]

    def _headers(self) -> tuple[tuple[str, str], ...]:
        if self._authorization is None:
            raise SignedOutError("Nobody is signed in")
        # Whatever the session says: rows are shown in one place.
        return (("authorization", self._authorization), ("x-sqe-source", "sqe-cli"), ("x-sqe-endpoints", "1"))

    def _waiting(self, running: Interruptible, method: Any, descriptor: flight.FlightDescriptor) -> Any:
        with self._failures():
            call = method.future(descriptor, metadata=self._headers())
            running.enter(call)
            return call.result()

    def _messages(self, call: Any) -> Iterator[flight.FlightData]:
        with self._failures():
            yield from call

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        # A closed channel raises ValueError.
        except (grpc.RpcError, grpc.FutureCancelledError, ValueError) as failure:
            raise error_of(failure, self._address) from failure


def _command(command: Message) -> flight.FlightDescriptor:
    packed = AnyMessage()
    packed.Pack(command)
    return flight.FlightDescriptor(type=flight.FlightDescriptor.CMD, cmd=packed.SerializeToString())
