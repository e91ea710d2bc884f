"""The ten calls of Flight. Each signs in before it reads what the client sent (FLT-1); whatever is raised becomes a
status.

GetFlightInfo, GetSchema   judge a statement, or name the columns of a metadata command
PollFlightInfo             the same for statements that take long, with progress
DoGet                      runs it and streams the rows
DoPut                      updates, parameters, bulk ingest
DoAction                   prepared statements, cancel, session options
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import grpc
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from sqe_core.protocols.flight import sign_in
from sqe_core.protocols.flight.actions import ACTIONS, Actions, Preparing
from sqe_core.protocols.flight.call_pools import BoundedCalls, CallPools
from sqe_core.protocols.flight.client_batches import ClientBatches
from sqe_core.protocols.flight.connections import Connections
from sqe_core.protocols.flight.idle import IdleWatch
from sqe_core.protocols.flight.incoming import PutStream, read_request
from sqe_core.protocols.flight.incoming_bytes import ByteBudget, HeldBytes
from sqe_core.protocols.flight.messages import batch_messages, packed, pieces, schema_bytes, schema_message
from sqe_core.protocols.flight.metadata import answer_to
from sqe_core.protocols.flight.places import LoginPlaces, Places
from sqe_core.protocols.flight.session_options import ENDPOINTS, endpoints_wanted
from sqe_core.protocols.flight.statements import MOST_PARAMETER_BYTES, Statements, Ticket, ensure_columns
from sqe_core.protocols.flight.status import status_code, status_text, trailing_metadata
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.auth import ClientInfo, Credential
from sqe_core.spi.errors import (
    ErrorCode,
    InternalError,
    NotSupportedError,
    QueryCancelledError,
    SqeError,
    UserError,
)
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import GatewaySession, IngestMode, IngestRequest, QueryGateway, StatementRequest

_log = logging.getLogger(__name__)

_SERVICE = "arrow.flight.protocol.FlightService"
_POLL_WAIT_SECS = 1.0
_MOST_ENDERS = 16
# Who has as many calls as they may can still cancel some.
_SPARE_ACTIONS = 16
# Of each message that has not come to its end gRPC may have as much as a message may have. The one message of a call
# comes with its headers, so that few calls wait for theirs; rows may be long in coming.
_MOST_AWAITED_REQUESTS = 8
_MOST_AWAITED_STREAMS = 64
# Who waits for a place sees those end that wait for what never comes.
_PATIENCE = 2
_PLAIN = pa.ipc.IpcWriteOptions()
_COMMANDS = {
    f"arrow.flight.protocol.sql.{message.DESCRIPTOR.name}": message
    for message in (
        sql.CommandGetCatalogs,
        sql.CommandGetCrossReference,
        sql.CommandGetDbSchemas,
        sql.CommandGetExportedKeys,
        sql.CommandGetImportedKeys,
        sql.CommandGetPrimaryKeys,
        sql.CommandGetSqlInfo,
        sql.CommandGetTables,
        sql.CommandGetTableTypes,
        sql.CommandGetXdbcTypeInfo,
        sql.CommandPreparedStatementQuery,
        sql.CommandPreparedStatementUpdate,
        sql.CommandStatementIngest,
        sql.CommandStatementQuery,
        sql.CommandStatementSubstraitPlan,
        sql.CommandStatementUpdate,
        sql.TicketStatementQuery,
    )
}


ClientMessages = Generator[bytes, None, None]
"""The messages of a call that has several. Whoever takes no more closes it."""


@dataclass(frozen=True, slots=True)
class Call:
    session: GatewaySession
    context: grpc.ServicerContext
    trace_parent: str | None
    request_id: str | None
    source: str | None
    java: bool
    plain: bool
    """Whether batches are better sent uncompressed."""
    enders: ThreadPoolExecutor
    held: HeldBytes
    """What of the client's messages is in memory."""
    endpoints: str | None = None
    """How many endpoints a result may have, where the call says so."""

    def on_end(self, callback: Callable[[], object], over: Callable[[], bool]) -> bool:
        """Call back when the call has ended, unless there is nothing left to end; False when it has ended already.

        Not in gRPC's own thread, which serves everybody: to cancel a statement may take a while.
        """
        return bool(self.context.add_callback(lambda: None if over() else self.enders.submit(callback)))

    def statement(self, text: str) -> StatementRequest:
        return StatementRequest(
            sql=text, trace_parent=self.trace_parent, source=self.source, request_id=self.request_id
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How long a client may keep a call waiting, for its login or its one message and for anything else, and how many
    calls a user may have.
    """

    login_secs: float = 30.0
    idle_secs: float = 300.0
    most_of_user: int = 256


class FlightRpcs:
    """Implements the service.

    Args:
        gateway: the core.
        statements: what clients hold tickets of.
        secure: whether connections are encrypted.
        compression: of the rows that go over a network.
        watch: ends the calls of clients that keep a thread waiting.
        limits: how long they may, and how many calls one user may have.
        connections: how many clients there may be.
        pools: the threads.
    """

    def __init__(
        self,
        gateway: QueryGateway,
        statements: Statements,
        *,
        secure: bool,
        compression: str | None,
        watch: IdleWatch,
        limits: CallLimits,
        connections: Connections,
        pools: CallPools,
    ) -> None:
        self._gateway = gateway
        self._statements = statements
        self._secure = secure
        self._compressed = pa.ipc.IpcWriteOptions(compression=compression) if compression else _PLAIN
        self._watch = watch
        self._limits = limits
        self._connections = connections
        self._pools = pools
        most = limits.most_of_user
        self._calls = Places(most, f"You have {most} calls open", "end some of them")
        self._login_places = LoginPlaces()
        self._request_places, self._stream_places = (
            Places(
                most,
                f"The server waits for {most} messages of yours already",
                "send what was begun, or begin less at once",
            )
            for most in (_MOST_AWAITED_REQUESTS, _MOST_AWAITED_STREAMS)
        )
        self._incoming = ByteBudget()
        self._enders = ThreadPoolExecutor(_MOST_ENDERS, thread_name_prefix="sqe-flight-end")
        self._actions = Actions(statements)

    def handler(self) -> BoundedCalls:
        """Return what gRPC dispatches to.

        To gRPC each call takes a stream of bytes: so a method runs before its request is read, and reads it itself.
        """
        methods = grpc.method_handlers_generic_handler(
            _SERVICE,
            {
                "Handshake": grpc.stream_stream_rpc_method_handler(self._handshake, None, _to_bytes),
                "ListFlights": self._streamed(self._list_flights, flight.Criteria),
                "GetFlightInfo": self._answered(self._get_flight_info),
                "PollFlightInfo": self._answered(self._poll_flight_info),
                "GetSchema": self._answered(self._get_schema),
                "DoGet": self._streamed(self._do_get, flight.Ticket),
                "DoPut": self._streamed(self._do_put),
                "DoExchange": self._streamed(self._do_exchange),
                "DoAction": self._streamed(self._do_action, flight.Action, spare=_SPARE_ACTIONS),
                "ListActions": self._streamed(self._list_actions, flight.Empty),
            },
        )
        return BoundedCalls(methods, _reads_a_login, self._login_places.here.refused, _abort, self._pools)

    def end_connection(self, name: str) -> None:
        """End what belongs to a connection that is gone, in a thread of its own: that may take a while."""
        self._enders.submit(self._gateway.end_connection, ClientInfo(protocol=sign_in.PROTOCOL, connection=name))

    def close(self) -> None:
        """End what serves calls that have ended."""
        self._enders.shutdown(wait=False)

    # Around every call

    def _handshake(
        self, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[flight.HandshakeResponse]:
        try:
            headers = sign_in.headers_of(context)
            client = sign_in.client_of(context, headers, secure=self._secure)
            if sign_in.DEVICE_LOGIN in headers:
                # Nobody has logged in by this: the connection gets its place with the first call of the session.
                with self._connections.spared(context.peer()):
                    payload, token = self._on_another_device(headers[sign_in.DEVICE_LOGIN], client)
            else:

                def log_in(connection: str | None) -> GatewaySession:
                    credential = sign_in.credential_of(context, headers)
                    if sign_in.may_read(headers):
                        credential = self._credential_of_message(requests, context, client) or credential
                    return self._gateway.log_in(credential, client)

                payload, token = b"", self._connections.login(context.peer(), log_in).token
        except BaseException as error:  # noqa: BLE001 - becomes the status
            _abort(context, error)
        if token is not None:
            payload = token.reveal().encode()
            context.send_initial_metadata(sign_in.answer_headers(token.reveal(), secure=self._secure))
        yield flight.HandshakeResponse(payload=payload)

    def _on_another_device(self, asked: str, client: ClientInfo) -> tuple[bytes, Secret | None]:
        """Begin a login on another device, or ask whether it is finished; each is one short handshake.

        The first answer says what to show to the user. Later ones are empty until the user has finished, and then like
        that of every other handshake.
        """
        logins = self._gateway.device_logins
        if logins is None:
            raise NotSupportedError("This server has no logins on another device")
        if asked == sign_in.BEGIN:
            return sign_in.shown(logins.begin(client=client)), None
        return b"", logins.poll(Secret(asked))

    def _credential_of_message(
        self, requests: Iterator[bytes], context: grpc.ServicerContext, client: ClientInfo
    ) -> Credential | None:
        """Read the message of the older way to sign in, which may be as big as any: for as long as it is there, it is
        somebody's turn.
        """
        with (
            self._login_places.one(client.address, self._limits.login_secs),
            self._watch.waiting(context, self._limits.login_secs),
        ):
            return sign_in.credential_of_message(requests)

    def _signed_in(self, context: grpc.ServicerContext) -> Call:
        headers = sign_in.headers_of(context)
        client = sign_in.client_of(context, headers, secure=self._secure)

        def authenticate(connection: str | None) -> GatewaySession:
            credential = sign_in.credential_of(context, headers)
            return self._gateway.authenticate(credential, replace(client, connection=connection, reconnects=True))

        session = self._connections.login(context.peer(), authenticate)
        return Call(
            session,
            context,
            headers.get("traceparent"),
            sign_in.request_id_of(headers),
            client.source,
            sign_in.is_java(client),
            sign_in.reads_plain_only(client),
            self._enders,
            self._incoming.of(session.identity.key),
            headers.get(ENDPOINTS),
        )

    def _request_of(self, requests: Iterator[bytes], call: Call, kind: Any) -> Any:
        """Return what a method takes: the one message of its kind, or the client's messages as they come."""
        user, secs = call.session.identity.key, min(self._limits.login_secs, self._limits.idle_secs)
        if kind is None:
            return self._in_place(self._patiently(requests, call), user, secs)
        with self._request_places.one(user, _PATIENCE * secs), self._watch.waiting(call.context, secs):
            return read_request(requests, kind)

    def _in_place(self, messages: Iterator[bytes], user: tuple[str, str], secs: float) -> ClientMessages:
        """Yield messages; from the first to the last, or until this is closed, they have a place."""
        with self._stream_places.one(user, _PATIENCE * secs):
            yield from messages

    def _patiently(self, requests: Iterator[bytes], call: Call) -> Iterator[bytes]:
        while True:
            with self._watch.waiting(call.context, self._limits.idle_secs):
                message = next(requests, None)
                if message is None:
                    # To gRPC a client that went away has ended its messages too, until it says a moment later that the
                    # call was cancelled. Asked once more it answers after that, and then this raises.
                    next(requests, None)
            if message is None:
                call.held.message(0)  # what is done with all of them may take long
                return
            call.held.message(len(message))
            given, message = [message], None  # a name here would keep it until the next one comes
            yield given.pop()

    def _answered(self, method: Callable[[Call, Any], Message]) -> grpc.RpcMethodHandler:
        def run(requests: Iterator[bytes], context: grpc.ServicerContext) -> Message:
            try:
                call = self._signed_in(context)
                with self._calls.one(call.session.identity.key):
                    return method(call, self._request_of(requests, call, flight.FlightDescriptor))
            except BaseException as error:  # noqa: BLE001 - becomes the status
                _abort(context, error)

        return grpc.stream_unary_rpc_method_handler(run, None, _to_bytes)

    def _streamed(
        self, method: Callable[[Call, Any], Iterator[Any]], kind: Any = None, *, spare: int = 0
    ) -> grpc.RpcMethodHandler:
        def run(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                call = self._signed_in(context)
                with self._calls.one(call.session.identity.key, spare=spare), call.held:
                    for message in method(call, self._request_of(requests, call, kind)):
                        with self._watch.waiting(context, self._limits.idle_secs):
                            yield message
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - becomes the status
                _abort(context, error)

        return grpc.stream_stream_rpc_method_handler(run, None, _to_bytes)

    # The calls

    def _list_flights(self, call: Call, criteria: flight.Criteria) -> Iterator[flight.FlightInfo]:
        return iter(())  # Flight SQL lists by commands

    def _get_flight_info(self, call: Call, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        command = _command(descriptor)
        answer = answer_to(command, self._gateway.status)
        if answer is not None:
            return _info(answer.schema, descriptor, descriptor.cmd)
        ticket, handles = self._statements.plan(
            call.session,
            self._requests(call, command),
            on_end=call.on_end,
            most_parts=endpoints_wanted(call.session, call.endpoints),
        )
        return self._statement_info(ticket, descriptor, handles)

    def _get_schema(self, call: Call, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        command = _command(descriptor)
        answer = answer_to(command, self._gateway.status)
        if answer is not None:
            return flight.SchemaResult(schema=schema_bytes(answer.schema))
        described = self._statements.describe(call.session, self._requests(call, command)[0], call.on_end)
        ensure_columns(described)
        return flight.SchemaResult(schema=schema_bytes(described.schema or pa.schema([])))

    def _poll_flight_info(self, call: Call, descriptor: flight.FlightDescriptor) -> flight.PollInfo:
        command = _command(descriptor)
        answer = answer_to(command, self._gateway.status)
        if answer is not None:
            return flight.PollInfo(info=_info(answer.schema, descriptor, descriptor.cmd), progress=1.0)
        if isinstance(command, sql.TicketStatementQuery):
            handle = command.statement_handle
        else:
            handle = self._statements.plan_later(call.session, self._requests(call, command), call.on_end)
        ticket, progress = self._statements.poll(call.session, handle, _POLL_WAIT_SECS)
        again = flight.FlightDescriptor(type=flight.FlightDescriptor.CMD, cmd=_ticket_of(handle))
        info = self._statement_info(ticket, descriptor, [handle])
        if progress is None:
            return flight.PollInfo(info=info, progress=1.0)
        del info.endpoint[:]
        info.app_metadata = _progress(ticket)
        poll = flight.PollInfo(info=info, flight_descriptor=again, progress=progress)
        poll.expiration_time.FromSeconds(int(time.time() + self._statements.tickets.expires_in(handle)))
        return poll

    def _do_get(self, call: Call, ticket: flight.Ticket) -> Iterator[bytes]:
        command = _unpacked(ticket.ticket, "ticket")
        if isinstance(command, sql.TicketStatementQuery):
            options = _PLAIN if call.plain else self._compressed
            yield from self._statements.fetch(
                call.session, command.statement_handle, options=options, on_end=call.on_end
            )
            return
        answer = answer_to(command, self._gateway.status)
        if answer is None:
            raise _bad_argument("This is no ticket of this server", "take the ticket from GetFlightInfo")
        rows = answer.rows(call.session)
        yield schema_message(answer.schema)
        for batch in rows.to_batches(max_chunksize=10_000):
            for piece in pieces(batch):
                yield from batch_messages(piece)

    def _do_put(self, call: Call, messages: ClientMessages) -> Iterator[flight.PutResult]:
        with closing(messages):
            yield flight.PutResult(app_metadata=self._put(call, messages).SerializeToString())

    def _put(self, call: Call, messages: ClientMessages) -> Message:
        stream = PutStream(messages, call.held)
        command = _command(stream.descriptor)
        match command:
            case sql.CommandStatementUpdate():
                _refuse_transaction(command)
                messages.close()
                count = self._statements.update(call.session, call.statement(command.query), call.on_end)
            case sql.CommandPreparedStatementUpdate() | sql.CommandPreparedStatementQuery():
                handle = command.prepared_statement_handle
                self._statements.prepared.get(call.session, handle)
                stream.bound(MOST_PARAMETER_BYTES)
                if stream.has_data:
                    self._statements.bind(call.session, handle, iter(stream), stream.schema, call.held.rows)
                if isinstance(command, sql.CommandPreparedStatementQuery):
                    return sql.DoPutPreparedStatementResult(prepared_statement_handle=handle)
                messages.close()
                count = self._statements.update_prepared(
                    call.session, handle, call.statement, call.on_end, call.held.rows
                )
            case sql.CommandStatementIngest():
                _refuse_transaction(command)
                batches = ClientBatches(iter(stream), call.context, self._watch)
                request = replace(
                    _ingest_request(command),
                    request_id=call.request_id,
                    source=call.source,
                    trace_parent=call.trace_parent,
                )
                count = self._statements.ingest(call.session, request, stream.schema, batches, call.on_end)
            case _:
                raise _bad_argument("This command cannot be put", "send it with GetFlightInfo")
        return sql.DoPutUpdateResult(record_count=count)

    def _do_exchange(self, call: Call, messages: ClientMessages) -> Iterator[bytes]:
        raise NotSupportedError("DoExchange is not supported", hint="use DoGet and DoPut")

    def _do_action(self, call: Call, action: flight.Action) -> Iterator[flight.Result]:
        preparing = Preparing(ask=call.statement, on_end=call.on_end, java=call.java)
        for body in self._actions.run(call.session, action.type, action.body, preparing):
            yield flight.Result(body=body)

    def _list_actions(self, call: Call, empty: flight.Empty) -> Iterator[flight.ActionType]:
        return (flight.ActionType(type=name, description=text) for name, text in ACTIONS.items())

    # Statements

    def _requests(self, call: Call, command: object) -> Sequence[StatementRequest]:
        match command:
            case sql.CommandStatementQuery():
                _refuse_transaction(command)
                return [call.statement(command.query)]
            case sql.CommandPreparedStatementQuery():
                prepared = self._statements.prepared.get(call.session, command.prepared_statement_handle)
                return prepared.queries(call.statement)
            case sql.CommandStatementSubstraitPlan():
                raise NotSupportedError("Substrait plans are not supported", hint="send SQL")
        raise _bad_argument("This command returns no rows", "updates and ingest are sent with DoPut")

    def _statement_info(
        self, ticket: Ticket, descriptor: flight.FlightDescriptor, handles: Sequence[bytes]
    ) -> flight.FlightInfo:
        info = _info(ticket.schema, descriptor, *map(_ticket_of, handles))
        info.app_metadata = ticket.statement.query_id.encode()
        info.total_records = ticket.row_count
        return info


def _info(schema: pa.Schema, descriptor: flight.FlightDescriptor, *tickets: bytes) -> flight.FlightInfo:
    """Return an answer with an endpoint for each ticket, which is fetched from where the answer came from (FLT-6).

    They have no `expiration_time`, which would say that they may be fetched again until then.
    """
    return flight.FlightInfo(
        schema=schema_bytes(schema),
        flight_descriptor=descriptor,
        endpoint=[flight.FlightEndpoint(ticket=flight.Ticket(ticket=ticket)) for ticket in tickets],
        total_records=-1,
        total_bytes=-1,
    )


def _progress(ticket: Ticket) -> bytes:
    """What FlightInfo says beside `progress` while a statement runs: the counts of its tasks."""
    told: dict[str, object] = {"query_id": ticket.statement.query_id}
    now = ticket.statement.progress()
    told |= {"state": now.state.value, "tasks": now.tasks, "tasks_done": now.tasks_done}
    told |= {"tasks_active": now.tasks_active, "rows": now.rows}
    return json.dumps(told).encode()


def _reads_a_login(call: grpc.HandlerCallDetails) -> bool:
    if call.method != f"/{_SERVICE}/Handshake":
        return False
    return sign_in.may_read({name.lower() for name, _ in call.invocation_metadata or ()})


def _to_bytes(message: Message | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


def _ticket_of(handle: bytes) -> bytes:
    return packed(sql.TicketStatementQuery(statement_handle=handle))


def _command(descriptor: flight.FlightDescriptor) -> object:
    if descriptor.type != flight.FlightDescriptor.CMD:
        raise _bad_argument("The descriptor holds no command", "this server speaks Flight SQL")
    return _unpacked(descriptor.cmd, "command")


def _unpacked(data: bytes, what: str) -> object:
    try:
        holder = AnyMessage.FromString(data)
        message = _COMMANDS.get(holder.TypeName())
        if message is not None:
            return message.FromString(holder.value)
    except DecodeError:
        pass
    raise _bad_argument(
        f"This {what} is not one of Flight SQL", "this server speaks Flight SQL; plain text is no command"
    )


def _refuse_transaction(command: Any) -> None:
    if command.HasField("transaction_id") and command.transaction_id:
        raise NotSupportedError("Transactions are not supported", hint="each statement commits by itself")


def _ingest_request(command: sql.CommandStatementIngest) -> IngestRequest:
    options = command.table_definition_options
    creates = options.if_not_exist == options.TABLE_NOT_EXIST_OPTION_CREATE
    match options.if_exists:
        case options.TABLE_EXISTS_OPTION_REPLACE:
            if not creates:
                raise NotSupportedError(
                    "Replacing a table that must exist is not supported", hint="let the table be created when missing"
                )
            mode = IngestMode.REPLACE
        case options.TABLE_EXISTS_OPTION_FAIL:
            if not creates:
                raise _bad_argument("A table that may neither exist nor be made cannot be written", "choose one")
            mode = IngestMode.CREATE
        case _:
            # Without options the table exists, and rows are added.
            mode = IngestMode.CREATE_APPEND if creates else IngestMode.APPEND
    return IngestRequest(
        table=command.table,
        catalog=command.catalog if command.HasField("catalog") else None,
        schema=command.schema if command.HasField("schema") else None,
        temporary=command.temporary,
        mode=mode,
        options=dict(command.options),
    )


def _bad_argument(message: str, hint: str) -> UserError:
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, hint=hint)


def _abort(context: grpc.ServicerContext, error: BaseException) -> NoReturn:
    """End the call with the status of an error; of what is not ours the client learns nothing (ERR-1)."""
    if isinstance(error, grpc.RpcError):
        error = QueryCancelledError("The client went away")  # what reading from it raises
    elif not isinstance(error, SqeError):
        _log.error("a call failed", exc_info=error)
        error = InternalError("The server failed; its log says why")
    asked = sign_in.request_id_of(sign_in.text_headers(context))
    context.set_trailing_metadata(trailing_metadata(error, request_id=asked))
    context.abort(status_code(error), status_text(error))
    raise AssertionError("abort raises")
