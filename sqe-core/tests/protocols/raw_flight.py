"""A core that is a fake with several users, and a client of Flight that sends what it is told, right or wrong."""

from __future__ import annotations

import base64
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import grpc
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from sqe_core.auth.certificate import read_certificate
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.query.run.division import divide
from sqe_core.query.run.result import StatementPlan, StatementResult
from sqe_core.spi.auth import (
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    ClientInfo,
    Credential,
    NoCredential,
)
from sqe_core.spi.errors import ErrorCode, InvalidCredentialsError, QueryCancelledError, UserError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import (
    GatewaySession,
    IngestRequest,
    QueryProgress,
    StatementDescription,
    StatementRequest,
    StatementState,
)
from sqe_core.spi.statement_kinds import StatementKind
from sqe_core.testing.fakes import FakeGateway, FakeResult, FakeSession, make_identity

SERVICE = "/arrow.flight.protocol.FlightService/"
USERS = {"alice": "wonderland", "bob": "builder", "ünïcode": "pass:with:colons€"}


class SlowResult(FakeResult):
    """A result whose second batch comes when it is cancelled, or never."""

    def __init__(self, query_id: str) -> None:
        super().__init__(pa.table({"n": [1]}), query_id=query_id)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        self.cancelled.wait(30)
        raise QueryCancelledError("The statement was cancelled")

    def progress(self) -> QueryProgress:
        return QueryProgress(state=StatementState.RUNNING, tasks=4, tasks_done=1, tasks_active=1, rows=1)


class Part:
    """A part of a statement's rows, as the core divides them. Also its plan, as far as Flight can tell."""

    is_constant = False

    def __init__(self, plan: Plan, part: StatementPlan) -> None:
        self.query_id, self.statement_kind, self.schema = plan.query_id, plan.statement_kind, plan.schema
        self.closed = False
        self._part = part

    def divide(self, count: int) -> Sequence[Any]:
        raise AssertionError("a part of a part")

    def start(self) -> FakeResult:
        return PartResult(self._part.start())

    def close(self) -> None:
        self.closed = True
        self._part.close()


class PartResult(FakeResult):
    """The rows of a part."""

    def __init__(self, part: StatementResult) -> None:
        assert part.schema is not None
        super().__init__(part.schema.empty_table(), query_id=part.query_id)
        self._part = part

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._part

    def cancel(self) -> None:
        self._part.cancel()

    def close(self) -> None:
        self._part.close()


class Plan:
    """A statement.

    Texts with `endless` are judged, those with `stuck` started, until they are cancelled; those with `constant` are so.
    """

    def __init__(
        self, session: CoreSession, request: StatementRequest, described: StatementDescription, query_id: str
    ) -> None:
        self.query_id = query_id
        self.statement_kind = described.statement_kind
        self.schema = described.schema
        self.is_constant = "constant" in request.sql
        self.parts: list[Part] = []
        self.closed = False
        self.cancelled = threading.Event()
        self.entered = threading.Event()
        self._session = session
        self._request = request

    def judge(self) -> None:
        if "endless" in self._request.sql:
            self.entered.set()
            self.cancelled.wait(30)
            raise QueryCancelledError("The statement was cancelled")

    def divide(self, count: int) -> Sequence[Any]:
        if self.schema is None or "ORDER BY" in self._request.sql:
            return [self]
        whole = StatementPlan(
            query_id=self.query_id,
            kind=StatementKind.QUERY,
            schema=self.schema,
            start=self._start,
            abandon=lambda: None,
            is_divisible=True,
        )
        self.parts = [Part(self, part) for part in divide(whole, count)]
        return self.parts

    def _start(self) -> StatementResult:
        rows = self.start()
        return StatementResult(
            query_id=self.query_id,
            kind=StatementKind.QUERY,
            schema=self.schema,
            batches=rows,
            on_cancel=rows.cancel,
            on_close=rows.close,
        )

    def start(self) -> FakeResult:
        if "stuck" in self._request.sql:
            self.entered.set()
            self.cancelled.wait(30)
            raise QueryCancelledError("The statement was cancelled")
        return self._session.run(self._request, self.query_id)

    def close(self) -> None:
        self.closed = True


class CoreSession(FakeSession):
    """A session that refuses what the core would refuse."""

    def __init__(self, core: Core, username: str, name: str = "") -> None:
        super().__init__(core, make_identity(username), Secret(secrets.token_urlsafe(24)), name)
        self.core = core
        self._properties = {"dialect": "sqe", "query_max_run_time": "", "parallel_endpoints": "1"}

    def run(self, request: StatementRequest, query_id: str) -> FakeResult:
        if request.sql.startswith("slow"):
            self.core.statements.append(request)
            slow = SlowResult(query_id)
            self.core.results.append(slow)
            return slow
        if request.sql.startswith("update"):
            self.core.statements.append(request)
            done = FakeResult(None, kind="update", affected_rows=self.core.affected, query_id=query_id)
            self.core.results.append(done)
            return done
        return super().run(request, query_id)

    def described(self, request: StatementRequest, query_id: str) -> StatementDescription:
        described = self._described(request, query_id)
        looked = Plan(self, request, described, query_id)
        self.core.plans.append(looked)
        looked.judge()
        return described

    def _described(self, request: StatementRequest, query_id: str) -> StatementDescription:
        parameters = self.core.parameters.get(request.sql, pa.schema([]))
        if request.sql.startswith(("slow", "stuck query", "endless query")):
            return StatementDescription(schema=pa.schema({"n": pa.int64()}), parameters=parameters, statement_kind="q")
        if request.sql.startswith("open"):
            return StatementDescription(schema=None, parameters=parameters, statement_kind="query")
        if request.sql.startswith(("update", "stuck", "endless update")):
            return StatementDescription(schema=None, parameters=parameters, statement_kind="update")
        return replace(super().described(request, query_id), parameters=parameters)

    def judge(self, request: StatementRequest, query_id: str) -> Any:
        expected = len(self.core.parameters.get(request.sql, ()))
        if len(request.parameters) != expected:
            raise UserError(f"The statement has {expected} parameters", code=ErrorCode.INVALID_ARGUMENTS)
        plan = Plan(self, request, self._described(request, query_id), query_id)
        self.core.plans.append(plan)
        plan.judge()
        return plan

    def ingest(
        self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch], query_id: str
    ) -> FakeResult:
        try:
            return super().ingest(request, schema, batches, query_id)
        finally:
            self.core.ingests_ended += 1

    def cancel(self, query_id: str) -> bool:
        found = [plan for plan in self.core.plans if plan.query_id == query_id]
        for plan in found:
            plan.cancelled.set()
        return super().cancel(query_id) or bool(found)

    def set_properties(self, values: Any) -> None:
        for name, value in values.items():
            if name not in self._properties:
                raise UserError("unknown", code=ErrorCode.INVALID_ARGUMENTS)
            if value == "bad":
                raise UserError("bad value", code=ErrorCode.INVALID_ARGUMENTS)
            self._properties[name] = value or ""

    def use(self, catalog: str | None, schema: tuple[str, ...] | None) -> None:
        if catalog not in (None, "iceberg", "other") or schema == ("missing",):
            raise UserError("missing", code=ErrorCode.SCHEMA_NOT_FOUND)
        super().use(catalog, schema)


class Core(FakeGateway):
    """A core with several users, whose sessions go by user and label."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Plan] = []
        self.parameters: dict[str, pa.Schema] = {}
        self.affected: int | None = 1
        self.ingests_ended = 0
        self.anonymous = False
        self._lock = threading.Lock()
        self.ended: list[str | None] = []
        self._by_login: dict[tuple[str, str], CoreSession] = {}

    def end_connection(self, client: ClientInfo) -> None:
        with self._lock:
            self.ended.append(client.connection)
            for (_, name), session in self._by_login.items():
                if name == client.connection:
                    session.close()

    def _of_login(self, credential: Credential, client: ClientInfo, name: str) -> GatewaySession:
        with self._lock:
            self.logins.append((credential, client))
            match credential:
                case BasicCredential(username=user, password=password):
                    if user in USERS and Secret(USERS[user]) == password:
                        return self._of(user, name)
                case BearerCredential(token=token):
                    for session in self._by_login.values():
                        if session.token == token and not session.closed:
                            return session
                case CertificateCredential(der=der):
                    return self._of(dict(read_certificate(der).subject)["commonName"], name)
                case NoCredential():
                    if self.anonymous:
                        return self._of("guest", name)
        raise InvalidCredentialsError

    def _of(self, user: str, name: str) -> CoreSession:
        session = self._by_login.get((user, name))
        if session is None or session.closed:
            session = self._by_login[user, name] = CoreSession(self, user, name)
            self.sessions.append(session)
        return session


class Refused(Exception):
    """What a call ended with."""

    def __init__(self, error: grpc.RpcError) -> None:
        call: Any = error
        self.status: grpc.StatusCode = call.code()
        self.text: str = call.details()
        self.trailing: dict[str, Any] = dict(call.trailing_metadata() or ())
        self.code = self.trailing.get("x-sqe-error-code")
        super().__init__(f"{self.status.name} {self.code}: {self.text}")


def refusal(call: Callable[[], object], match: str | None = None) -> tuple[grpc.StatusCode, str | None]:
    """The status and the code that a call is refused with."""
    with pytest.raises(Refused, match=match) as caught:
        call()
    return caught.value.status, caught.value.code


def packed(message: Message) -> bytes:
    any_message = AnyMessage()
    any_message.Pack(message)
    return any_message.SerializeToString()


def unpacked(data: bytes, kind: Any) -> Any:
    any_message, message = AnyMessage.FromString(data), kind()
    assert any_message.Unpack(message)
    return message


def descriptor(command: Message | bytes) -> flight.FlightDescriptor:
    data = command if isinstance(command, bytes) else packed(command)
    return flight.FlightDescriptor(type=flight.FlightDescriptor.CMD, cmd=data)


def ipc_messages(table: pa.Table | pa.RecordBatch, options: pa.ipc.IpcWriteOptions | None = None) -> list[Any]:
    """The IPC messages of a table, one batch for each of its chunks."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write(table)
    return list(pa.ipc.MessageReader.open_stream(sink.getvalue()))


def flight_data(message: Any, first: flight.FlightDescriptor | None = None) -> flight.FlightData:
    data = flight.FlightData(data_header=message.metadata.to_pybytes())
    if message.body is not None:
        data.data_body = message.body.to_pybytes()
    if first is not None:
        data.flight_descriptor.CopyFrom(first)
    return data


def put_messages(
    command: Message | bytes, table: pa.Table | None, options: pa.ipc.IpcWriteOptions | None = None
) -> list[flight.FlightData]:
    first = descriptor(command)
    if table is None:
        return [flight.FlightData(flight_descriptor=first)]
    return [
        flight_data(message, None if number else first) for number, message in enumerate(ipc_messages(table, options))
    ]


def read_stream(messages: Iterable[bytes]) -> tuple[pa.Table, list[bytes]]:
    """The rows of a stream, and the metadata that came with each message."""
    pieces: list[bytes] = []
    told: list[bytes] = []
    for each in messages:
        data = flight.FlightData.FromString(each)
        told.append(data.app_metadata)
        assert len(data.data_header) % 8 == 0, "other readers want it so"
        pieces += [b"\xff\xff\xff\xff", len(data.data_header).to_bytes(4, "little"), data.data_header, data.data_body]
    return pa.ipc.open_stream(pa.py_buffer(b"".join(pieces))).read_all(), told


@dataclass
class RawClient:
    """Sends bytes to any of the ten calls."""

    channel: grpc.Channel
    metadata: tuple[tuple[str, Any], ...] = ()

    def begin(self, name: str, requests: Iterable[bytes], metadata: Any = None, timeout: float = 20) -> Any:
        method = self.channel.stream_stream(SERVICE + name)
        return method(iter(requests), metadata=self.metadata if metadata is None else metadata, timeout=timeout)

    def call(
        self,
        name: str,
        *requests: Message | bytes,
        metadata: Sequence[tuple[str, Any]] | None = None,
        timeout: float = 20,
    ) -> list[bytes]:
        data = [each if isinstance(each, bytes) else each.SerializeToString() for each in requests]
        try:
            return list(self.begin(name, data, metadata, timeout))
        except grpc.RpcError as error:
            raise Refused(error) from None

    def one(self, name: str, request: Message | bytes, kind: Any) -> Any:
        (answer,) = self.call(name, request)
        return kind.FromString(answer)

    def info(self, command: Message | bytes) -> flight.FlightInfo:
        return self.one("GetFlightInfo", descriptor(command), flight.FlightInfo)

    def plan(self, text: str) -> flight.FlightInfo:
        return self.info(sql.CommandStatementQuery(query=text))

    def fetch(self, info: flight.FlightInfo) -> pa.Table:
        return read_stream(self.call("DoGet", info.endpoint[0].ticket))[0]

    def query(self, text: str) -> pa.Table:
        return self.fetch(self.plan(text))

    def action(self, name: str, request: Message | bytes = b"") -> list[bytes]:
        body = request if isinstance(request, bytes) else packed(request)
        return [
            flight.Result.FromString(each).body for each in self.call("DoAction", flight.Action(type=name, body=body))
        ]

    def prepare(self, text: str) -> sql.ActionCreatePreparedStatementResult:
        (body,) = self.action("CreatePreparedStatement", sql.ActionCreatePreparedStatementRequest(query=text))
        return unpacked(body, sql.ActionCreatePreparedStatementResult)

    def put(self, command: Message | bytes, table: pa.Table | None = None, **options: Any) -> list[bytes]:
        answers = self.call("DoPut", *put_messages(command, table, **options))
        return [flight.PutResult.FromString(each).app_metadata for each in answers]

    def update(self, command: Message, table: pa.Table | None = None) -> int:
        (told,) = self.put(command, table)
        return sql.DoPutUpdateResult.FromString(told).record_count

    def signed_in(self, header: str) -> RawClient:
        return RawClient(self.channel, (("authorization", header),))


def basic(username: str, password: str | None = None) -> str:
    pair = f"{username}:{USERS.get(username, '') if password is None else password}"
    return "Basic " + base64.b64encode(pair.encode()).decode()
