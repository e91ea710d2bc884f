"""Stand-ins for what the core offers, for the tests of plugins."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Self

import pyarrow as pa

from sqe_core.spi.auth import BasicCredential, BearerCredential, ClientInfo, Credential, NoCredential
from sqe_core.spi.errors import InvalidCredentialsError, QueryCancelledError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import NamespaceName
from sqe_core.spi.protocol import (
    BrowserLogins,
    DeviceLogins,
    GatewaySession,
    IngestRequest,
    QueryProgress,
    ServerState,
    ServerStatus,
    SessionChanges,
    Statement,
    StatementDescription,
    StatementRequest,
    StatementState,
    TableFilter,
    TableListing,
)
from sqe_core.spi.types import ResultColumn, result_columns

_EMPTY: Mapping[str, str] = MappingProxyType({})


class FixedClock:
    """A clock that stands still until it is moved.

    Example:
        >>> clock = FixedClock()
        >>> before = clock.now()
        >>> clock.advance(60)
        >>> (clock.now() - before).total_seconds()
        60.0
    """

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock.

        Args:
            seconds: how far.
        """
        self._now += timedelta(seconds=seconds)


class RecordingMetrics:
    """Keeps what was counted: `values[name]` is the sum of a counter, or the last value of a gauge."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def count(self, name: str, amount: float = 1, labels: Mapping[str, str] = _EMPTY) -> None:
        """Add to a counter."""
        self.values[name] = self.values.get(name, 0) + amount

    def gauge(self, name: str, value: float, labels: Mapping[str, str] = _EMPTY) -> None:
        """Set a gauge."""
        self.values[name] = value

    def observe(self, name: str, value: float, labels: Mapping[str, str] = _EMPTY) -> None:
        """Add a value to a histogram."""
        self.count(name)


def make_identity(username: str = "alice", *, token: str | None = None, roles: Sequence[str] = ()) -> Identity:
    """Return an identity for a test.

    Args:
        username: the user name, which is the subject too.
        token: the access token.
        roles: the roles.

    Example:
        >>> make_identity("bob").subject
        'bob'
    """
    return Identity(
        issuer="https://idp.test",
        subject=username,
        username=username,
        provider="test",
        roles=frozenset(roles),
        access_token=Secret(token) if token else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeAnswer:
    """What a statement of a FakeGateway is answered with, when a table does not say it all.

    Args:
        table: the rows; None for a statement without rows.
        kind: the value of a `StatementKind`.
        affected_rows: how many rows it changed.
        batches: makes the rows, in the columns of `table`; None takes those of `table`.
        waits: it goes on until it is cancelled.
        progress: how far it says to be until it is done.
        on_run: is called with the session when it runs.
        warnings: what is told beside it.
    """

    table: pa.Table | None = None
    kind: str = "query"
    affected_rows: int | None = None
    batches: Callable[[], Iterator[pa.RecordBatch]] | None = None
    waits: bool = False
    progress: QueryProgress = QueryProgress(state=StatementState.RUNNING)  # noqa: RUF009 - it is frozen
    on_run: Callable[[FakeSession], object] | None = None
    warnings: tuple[str, ...] = ()


class FakeResult:
    """A result that is a table in memory."""

    def __init__(
        self,
        table: pa.Table | None,
        *,
        kind: str = "query",
        affected_rows: int | None = None,
        answer: FakeAnswer | None = None,
        query_id: str | None = None,
    ) -> None:
        self._answer = answer or FakeAnswer(table=table, kind=kind, affected_rows=affected_rows)
        self.query_id = query_id or secrets.token_hex(8)
        self.statement_kind = self._answer.kind
        self.schema = None if self._answer.table is None else self._answer.table.schema
        self.affected_rows = self._answer.affected_rows
        self.changes = SessionChanges()
        self.warnings = self._answer.warnings
        self.closed = False
        self.cancelled = threading.Event()
        self.state = self._answer.progress.state

    def wait(self) -> None:
        """Go on for as long as the answer says; until a minute is over, so that no test hangs."""
        if self._answer.waits and self.cancelled.wait(60):
            raise QueryCancelledError("The statement was cancelled")

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.wait()
        for batch in self._batches():
            if self.cancelled.is_set():
                raise QueryCancelledError("The statement was cancelled")
            yield batch
        self.state = StatementState.FINISHED

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._answer.batches is not None:
            yield from self._answer.batches()
            return
        known = [] if self._answer.table is None else self._answer.table.to_batches(max_chunksize=1000)
        for number, batch in enumerate(known, 1):
            if number == len(known):
                self.state = StatementState.FINISHING
            yield batch

    def progress(self) -> QueryProgress:
        """Return what the answer says, until it is done."""
        return replace(self._answer.progress, state=self.state)

    def cancel(self) -> None:
        """Remember the wish."""
        self.cancelled.set()

    def close(self) -> None:
        """Remember the end."""
        self.closed = True


class FakePlan:
    """What a FakeSession found of a statement that has not run."""

    is_constant = False

    def __init__(self, session: FakeSession, request: StatementRequest, query_id: str) -> None:
        self._session, self._request = session, request
        self.query_id = query_id
        described = session.described(request, query_id)
        self.statement_kind = described.statement_kind
        self.schema = described.schema
        self.closed = False

    def divide(self, count: int) -> Sequence[FakePlan]:
        """Divide nothing."""
        return [self]

    def start(self) -> FakeResult:
        """Run it."""
        return self._session.run(self._request, self.query_id)

    def close(self) -> None:
        """Remember the end."""
        self.closed = True


class FakeStatement:
    """A statement of a FakeSession, whose methods say what becomes of it."""

    def __init__(self, session: FakeSession, request: StatementRequest, query_id: str | None = None) -> None:
        self._session, self._request = session, request
        self.query_id = query_id or secrets.token_hex(8)
        self._planned: FakePlan | None = None
        self._result: FakeResult | None = None
        self._parts: Sequence[FakeStatement] = (self,)

    @property
    def statement_kind(self) -> str:
        """The kind of the answer."""
        known = self._result or self._planned
        return known.statement_kind if known is not None else ""

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the answer."""
        known = self._result or self._planned
        return known.schema if known is not None else None

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The same with types of SQL."""
        return result_columns(self.schema)

    @property
    def is_constant(self) -> bool:
        """Whether its plan says so."""
        return self._planned is not None and self._planned.is_constant

    @property
    def state(self) -> StatementState:
        """What becomes of it."""
        return self._result.state if self._result is not None else StatementState.QUEUED

    @property
    def affected_rows(self) -> int | None:
        """What the answer says."""
        return self._result.affected_rows if self._result is not None else None

    @property
    def changes(self) -> SessionChanges:
        """What the answer says."""
        return self._result.changes if self._result is not None else SessionChanges()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the answer says."""
        return self._result.warnings if self._result is not None else ()

    def plan(self) -> None:
        """Know the columns."""
        self._planned = self._session.judge(self._request, self.query_id)

    def describe(self) -> StatementDescription:
        """Describe the answer of that text."""
        return self._session.described(self._request, self.query_id)

    def start(self) -> FakeStatement:
        """Answer with the table of that text, or raise the error of that text."""
        return self._with(
            self._planned.start() if self._planned is not None else self._session.run(self._request, self.query_id)
        )

    def start_with_rows(self, rows: Sequence[pa.RecordBatch]) -> bool:
        """Keep the rows of a statement that has VALUES in `FakeGateway.inserted`."""
        result = self._session.insert(self._request, rows, self.query_id)
        if result is not None:
            self._with(result)
        return result is not None

    def divide(self, count: int) -> Sequence[FakeStatement]:
        """Divide as the plan says."""
        assert self._planned is not None
        planned = self._planned.divide(count)
        if len(planned) == 1:
            return [self]
        parts = [FakeStatement(self._session, self._request, self.query_id) for _ in planned]
        for part, its in zip(parts, planned, strict=True):
            part._planned, part._parts = its, parts
        return parts

    def _with(self, result: FakeResult) -> FakeStatement:
        self._result = result
        return self

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._result or ())

    def progress(self) -> QueryProgress:
        """Return what the answer says, until it is done."""
        return self._result.progress() if self._result is not None else QueryProgress()

    def cancel(self) -> None:
        """Remember the wish."""
        self._session.cancel(self.query_id)
        if self._result is not None:
            self._result.cancel()
        for part in self._parts:
            if part._planned is not None:
                part._planned.close()

    def close(self) -> None:
        """Remember the end."""
        for held in (self._planned, self._result):
            if held is not None:
                held.close()
        if self._result is None:
            self._session.cancel(self.query_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _FakeIngest(FakeStatement):
    def __init__(
        self, session: FakeSession, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> None:
        super().__init__(session, StatementRequest(sql=""))
        self._rows = (request, schema, batches)

    def start(self) -> FakeStatement:
        return self._with(self._session.ingest(*self._rows, self.query_id))


class FakeSession:
    """A session of a FakeGateway."""

    def __init__(self, gateway: FakeGateway, identity: Identity, token: Secret, name: str = "") -> None:
        self._gateway = gateway
        self.name = name
        self.identity = identity.without_tokens()
        self.token = token
        self.expires_at: datetime | None = None
        self.catalog = "iceberg"
        self.schema: tuple[str, ...] = ("default",)
        self.closed = False
        self._properties: dict[str, str] = {}

    def begin(self, request: StatementRequest) -> Statement:
        """Make a statement."""
        return FakeStatement(self, request)

    def begin_ingest(self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Statement:
        """Make a statement that writes rows."""
        return _FakeIngest(self, request, schema, batches)

    def execute(self, request: StatementRequest) -> Statement:
        """Begin and start a statement."""
        return self.begin(request).start()

    def judge(self, request: StatementRequest, query_id: str) -> FakePlan:
        """Know the columns, and answer when the plan is started."""
        return FakePlan(self, request, query_id)

    def run(self, request: StatementRequest, query_id: str) -> FakeResult:
        """Answer with the table of that text, or raise its error; one without rows runs until its end here."""
        self._gateway.statements.append(request)
        answer = self._answer(request)
        result = FakeResult(None, answer=answer, query_id=query_id)
        self._gateway.results.append(result)
        if answer.on_run is not None:
            answer.on_run(self)
        if answer.table is None:
            result.wait()
        return result

    def _answer(self, request: StatementRequest) -> FakeAnswer:
        answer = self._gateway.answers[request.sql]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, FakeAnswer) else FakeAnswer(table=answer)

    def described(self, request: StatementRequest, query_id: str) -> StatementDescription:
        """Describe the answer of that text."""
        answer = self._answer(request)
        schema = None if answer.table is None else answer.table.schema
        return StatementDescription(schema=schema, parameters=pa.schema([]), statement_kind=answer.kind)

    def insert(self, request: StatementRequest, rows: Sequence[pa.RecordBatch], query_id: str) -> FakeResult | None:
        """Keep the rows of a statement that has VALUES in `FakeGateway.inserted`."""
        if "VALUES" not in request.sql:
            return None
        table = pa.Table.from_batches(rows)
        self._gateway.inserted.append((request, table))
        result = FakeResult(None, kind="insert", affected_rows=table.num_rows, query_id=query_id)
        self._gateway.results.append(result)
        return result

    def ingest(
        self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch], query_id: str
    ) -> FakeResult:
        """Keep the rows in `FakeGateway.ingested`."""
        rows = pa.Table.from_batches(batches, schema)
        self._gateway.ingested.append((request, rows))
        result = FakeResult(None, kind="insert", affected_rows=rows.num_rows, query_id=query_id)
        self._gateway.results.append(result)
        return result

    def catalogs(self) -> Sequence[str]:
        """List one catalog."""
        return ["iceberg"]

    def schemas(self, catalog: str | None = None, pattern: str | None = None) -> Sequence[NamespaceName]:
        """List one schema."""
        return [NamespaceName(catalog="iceberg", namespace=("default",))]

    def tables(self, filter: TableFilter) -> Sequence[TableListing]:
        """List the tables that the test put there."""
        return self._gateway.tables

    def properties(self) -> Mapping[str, str]:
        """Return what was set."""
        return dict(self._properties)

    def set_properties(self, values: Mapping[str, str | None]) -> None:
        """Remember properties."""
        for name, value in values.items():
            if value is None:
                self._properties.pop(name, None)
            else:
                self._properties[name] = value

    def use(self, catalog: str | None, schema: tuple[str, ...] | None) -> None:
        """Remember the current names."""
        self.catalog = catalog or self.catalog
        self.schema = schema or self.schema

    def cancel(self, query_id: str) -> bool:
        """Cancel a result of this gateway."""
        found = [result for result in self._gateway.results if result.query_id == query_id]
        for result in found:
            result.cancel()
        return bool(found)

    def renew_login(self, credential: Credential) -> None:
        """Take the bearer of the gateway, and nothing else."""
        self._gateway.renewals.append(credential)
        if credential != BearerCredential(token=self._gateway.bearer):
            raise InvalidCredentialsError

    def close(self) -> None:
        """Remember the end."""
        self.closed = True


class FakeGateway:
    """A core with one user and answers by text, for the tests of protocols.

    Example:
        >>> gateway = FakeGateway()
        >>> credential = BasicCredential(username="alice", password=Secret("wonderland"))
        >>> session = gateway.authenticate(credential, ClientInfo(protocol="test"))
        >>> with session.execute(StatementRequest(sql="SELECT 1 AS one")) as result:
        ...     [batch.to_pydict() for batch in result]
        [{'one': [1]}]
    """

    def __init__(
        self,
        *,
        username: str = "alice",
        password: str = "wonderland",  # noqa: S107 - a test user
        anonymous: bool = False,
    ) -> None:
        self._anonymous = anonymous
        self._username = username
        self._password = Secret(password)
        self.bearer = Secret(secrets.token_urlsafe(24))
        """A token that logs the same user in."""
        self.answers: dict[str, pa.Table | FakeAnswer | Exception | None] = {"SELECT 1 AS one": pa.table({"one": [1]})}
        """What a text is answered with: a table, None for a statement without rows, or an exception to raise."""
        self.tables: list[TableListing] = []
        self.statements: list[StatementRequest] = []
        self.ingested: list[tuple[IngestRequest, pa.Table]] = []
        self.inserted: list[tuple[StatementRequest, pa.Table]] = []
        self.results: list[FakeResult] = []
        self.logins: list[tuple[Credential, ClientInfo]] = []
        self.sessions: list[FakeSession] = []
        self.renewals: list[Credential] = []
        self.state = ServerState.ACTIVE
        self.browser_logins: BrowserLogins | None = None
        self.device_logins: DeviceLogins | None = None

    def authenticate(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        """Log in with the one user name and password, the bearer, or the token of a session."""
        return self._of_login(credential, client, client.label or client.connection or "")

    def log_in(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        """Log in, to a session of its own."""
        return self._of_login(credential, client, secrets.token_hex(16))

    def end_connection(self, client: ClientInfo) -> None:
        """End the sessions of a connection."""
        for session in self.sessions:
            if session.name == client.connection:
                session.close()

    def _of_login(self, credential: Credential, client: ClientInfo, name: str) -> GatewaySession:
        self.logins.append((credential, client))
        match credential:
            case BasicCredential(username=username, password=password):
                if username == self._username and password == self._password:
                    return self._session(name)
            case BearerCredential(token=token):
                for session in self.sessions:
                    if token == session.token and not session.closed:
                        return session
                if token == self.bearer:
                    return self._session(name)
            case NoCredential():
                if self._anonymous:
                    return self._session(name)
        raise InvalidCredentialsError

    def status(self) -> ServerStatus:
        """Return the state that the test chose."""
        return ServerStatus(state=self.state, version="0", started_at=datetime(2026, 1, 1, tzinfo=UTC))

    def _session(self, name: str) -> GatewaySession:
        for session in self.sessions:
            if session.name == name and not session.closed:
                return session
        session = FakeSession(self, make_identity(self._username), Secret(secrets.token_urlsafe(24)), name)
        self.sessions.append(session)
        return session
