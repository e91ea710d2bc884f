"""Wire protocols: a server object that a plugin brings, and the gateway that the core offers to it.

A protocol translates bytes to these calls and the answers back. It decides nothing: login, current names, settings,
policies, limits and sessions belong to the core. Only pyarrow types and the values of this package cross.

    session = gateway.authenticate(BasicCredential(...), ClientInfo(...))
    with session.execute(StatementRequest(sql="SELECT 1 AS one")) as statement:
        for batch in statement: ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from sqe_core.spi.auth import ClientInfo, Credential
from sqe_core.spi.catalog import ObjectType
from sqe_core.spi.factory import ConfigT, PluginContext, PluginFactory
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.sql import Dialect
from sqe_core.spi.types import ResultColumn

if TYPE_CHECKING:
    # Half of the time that importing this package would take: those who make batches import it anyway.
    import pyarrow as pa

_EMPTY: Mapping[str, str] = MappingProxyType({})

MOST_PARTS = 16
"""Into how many parts `Statement.divide` divides a result at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientState:
    """What a client keeps itself and sends with each statement, as Trino's do.

    A statement that brings it sees nothing of what others of the same login set or made, and what it changes goes back
    in `Statement.changes` and nowhere else.

    Args:
        catalog: the current catalog; None is the server's own.
        schema: the current schema; None is the server's own.
        properties: session properties as text; unknown names are refused (CONF-2).
        prepared: prepared statements, name to text, which is judged when it is executed (TRI-6).
        roles: those of the user's roles that count, as SET ROLE chooses them; None is all. What the user does not have
            is left out.
        time_zone: the client's own, which `SET TIME ZONE LOCAL` means; None is UTC.
        transaction: the id of the transaction that it began; unknown, foreign and expired ones are one error.
    """

    catalog: str | None = None
    schema: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    prepared: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    roles: tuple[str, ...] | None = None
    time_zone: str | None = None
    transaction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRequest:
    """One statement as a client sent it.

    Args:
        sql: the text, one statement.
        parameters: pyarrow scalars; a sequence for `?`, a mapping for `:name`.
        dialect: how the text is read; None is the session's own.
        state: what the client keeps; None for clients whose session is here.
        trace_parent: the W3C `traceparent` header.
        source: what the client calls itself, when it differs by statement.
        request_id: what the client calls the request, for the log.

    Example:
        >>> import pyarrow as pa
        >>> StatementRequest(sql="SELECT ?", parameters=(pa.scalar(1),)).state is None
        True
    """

    sql: str
    parameters: Sequence[pa.Scalar[Any]] | Mapping[str, pa.Scalar[Any]] = ()
    dialect: Dialect | None = None
    state: ClientState | None = None
    trace_parent: str | None = None
    source: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanges:
    """What a statement changed for the statements after it; protocols whose clients keep state pass it on.

    Args:
        catalog: the new current catalog.
        schema: the new current schema.
        set_properties: properties with their new values, as text.
        reset_properties: properties that have their defaults again.
        added_prepared: prepared statements, name to text.
        removed_prepared: names of prepared statements that are gone.
        roles: the roles that SET ROLE chose, `()` for NONE.
        all_roles: SET ROLE ALL: every role counts again.
        path: what SET PATH said.
        started_transaction: the id of the transaction that begins, to be sent with each statement of it.
        cleared_transaction: the transaction is over.
    """

    catalog: str | None = None
    schema: tuple[str, ...] | None = None
    set_properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    reset_properties: tuple[str, ...] = ()
    added_prepared: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    removed_prepared: tuple[str, ...] = ()
    roles: tuple[str, ...] | None = None
    all_roles: bool = False
    path: str | None = None
    started_transaction: str | None = None
    cleared_transaction: bool = False


class StatementState(Enum):
    """What becomes of a statement, in this order; one of the last three is its end.

    FINISHING is a statement whose work is done: what is written is written, or the batch that came last, of whichever
    part, is the last of all. One whose rows come slowly may end without it.
    """

    QUEUED = "queued"
    PLANNING = "planning"
    RUNNING = "running"
    FINISHING = "finishing"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """How far a statement is. Rows and bytes count what the user may see (ENF-17)."""

    state: StatementState = StatementState.QUEUED
    tasks: int = 0
    tasks_done: int = 0
    tasks_active: int = 0
    rows: int = 0
    bytes: int = 0
    queued_ms: int = 0
    elapsed_ms: int = 0


class Statement(Protocol):
    """One statement of a client, from its first moment to its end. Close it; it is a context manager.

        statement = session.begin(StatementRequest(sql="SELECT 1 AS one"))
        statement.plan()               # for clients that ask for the columns first
        statement.start()
        for batch in statement: ...

    `plan`, `start` and the iterator work in the caller's thread, and raise `SqeError`s. `progress` and `cancel` may be
    called from any thread, at any time. Of `plan` and what runs it each is called once at most.
    """

    @property
    def query_id(self) -> str:
        """The id in history and audit. It is no proof of ownership (TRI-2)."""

    @property
    def statement_kind(self) -> str:
        """What it is, the value of a `StatementKind`, once it was planned or started; empty before."""

    @property
    def schema(self) -> pa.Schema | None:
        """The columns, once it was planned or started; None for statements without rows."""

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The same with their types in SQL, which say more than Arrow's."""

    @property
    def is_constant(self) -> bool:
        """Whether it is one row of constants, as `SELECT 1`: made in no time, so it may be started at once, before
        the client comes for it."""

    @property
    def state(self) -> StatementState:
        """What becomes of it, as `progress` says too; to ask costs nothing."""

    @property
    def affected_rows(self) -> int | None:
        """Rows written; None for queries and DDL."""

    @property
    def changes(self) -> SessionChanges:
        """What it changed for later statements, of this session or of this client."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Remarks for the user."""

    def plan(self) -> None:
        """Judge it: then the columns are known. It holds no slot until it is started, and what was decided is decided
        again when that is much later.

        Raises:
            SqeError: refused.
        """

    def describe(self) -> StatementDescription:
        """Judge it and say what it would answer, without running it. That is its end; parameters may be missing.

        Raises:
            SqeError: refused.
        """

    def start(self) -> Statement:
        """Run it until its first rows can be read, or to its end where it has none; judges it if need be.

        Returns:
            Itself, to be iterated.

        Raises:
            SqeError: refused, or failed before the first batch.
        """

    def start_with_rows(self, rows: Sequence[pa.RecordBatch]) -> bool:
        """Run an INSERT of one row of VALUES for each row of parameters, with one commit for all of them.

        Args:
            rows: rows of parameters, a column for each marker in their order; the request's own do not count.

        Returns:
            Whether it did. A statement of another form was not run, and runs once for each row.

        Raises:
            SqeError: refused, or failed; nothing was written.
        """

    def divide(self, count: int) -> Sequence[Statement]:
        """Return parts of the rows of a planned statement, for clients that fetch them side by side, each in a thread
        of its own.

        The statement runs once, when the first of them is started, and each of its rows comes through one of them:
        whoever asks first gets the next batch, so a part may be empty. A part that is closed before its end, once it
        was started, ends the statement, and the others fail; so does whatever ends it otherwise.

        Args:
            count: how many; `MOST_PARTS` at most.

        Returns:
            As many parts, in the place of this one, which is used up. It alone where rows have an order, or are few.
        """

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    def progress(self) -> QueryProgress:
        """How far it is."""

    def cancel(self) -> None:
        """End it, in whatever state it is; who waits for it gets a `QueryCancelledError`. Idempotent."""

    def close(self) -> None:
        """Free everything; what still runs is cancelled. Idempotent."""

    def __enter__(self) -> Statement: ...

    def __exit__(self, *exc: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementDescription:
    """What a statement would answer, without running it.

    Args:
        schema: the result's columns; None for statements without rows, and for queries whose columns only values tell.
        parameters: one field per `?`, of type null where the type could not be found.
        statement_kind: the value of a `StatementKind`.
    """

    schema: pa.Schema | None
    parameters: pa.Schema
    statement_kind: str


class IngestMode(Enum):
    """What becomes of the table that record batches are written to.

    A missing table is a `UserError` (TABLE_NOT_FOUND) for APPEND, an existing one (DUPLICATE_TABLE) for CREATE.
    """

    CREATE = "create"
    APPEND = "append"
    REPLACE = "replace"
    CREATE_APPEND = "create_append"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """Record batches for one table, written with a single commit.

    Args:
        table: the table's name, exactly as the catalog has it.
        catalog: its catalog; None is the session's current one.
        schema: its schema, a nested one with dots; None is the session's current one.
        mode: whether the table is created, appended to or replaced. REPLACE creates a missing table.
        temporary: a table of this session only, which is refused.
        options: options of the protocol; none are known, and unknown ones are refused.
        trace_parent: the W3C `traceparent` header.
        source: what the client calls itself.
        request_id: what the client calls the request, for the log.

    Example:
        >>> IngestRequest(table="orders", mode=IngestMode.APPEND).catalog is None
        True
    """

    table: str
    mode: IngestMode
    catalog: str | None = None
    schema: str | None = None
    temporary: bool = False
    options: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    trace_parent: str | None = None
    source: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter:
    """Which tables to list. Patterns are SQL LIKE patterns with `\\` as escape; None matches everything."""

    catalog: str | None = None
    schema_pattern: str | None = None
    table_pattern: str | None = None
    types: frozenset[ObjectType] | None = None
    with_columns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableListing:
    """One listed table or view; `columns` as this user sees them, when they were asked for."""

    name: ObjectName
    type: ObjectType
    columns: pa.Schema | None = None


class GatewaySession(Protocol):
    """A session of the core, for one logged-in client. Safe for use from several threads."""

    @property
    def token(self) -> Secret:
        """The session's own bearer; `BearerCredential(token=…)` finds the session again."""

    @property
    def identity(self) -> Identity:
        """Who it is, without tokens."""

    @property
    def expires_at(self) -> datetime | None:
        """When it ends at the latest."""

    @property
    def catalog(self) -> str:
        """The current catalog."""

    @property
    def schema(self) -> tuple[str, ...]:
        """The current schema."""

    def begin(self, request: StatementRequest) -> Statement:
        """Make a statement, which nothing was done for yet but that it has an id, and can be cancelled.

        Args:
            request: the statement.
        """

    def begin_ingest(self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Statement:
        """Make a statement that writes record batches into a table with one commit when it is started.

        The batches are read in the thread that starts it, one at a time. An exception that `batches` raises ends the
        statement without a commit: a client that goes away half-way leaves neither rows nor files.

        Args:
            request: which table, and what becomes of it.
            schema: the columns; appending matches them to the table's by name, without case.
            batches: the rows, each batch of just that schema. Exhausting it means that the client is done. Whoever
                waits for one sees by the statement's `state` whether it is wanted still.
        """

    def execute(self, request: StatementRequest) -> Statement:
        """Begin and start a statement: `begin(request).start()`.

        Args:
            request: the statement.

        Raises:
            SqeError: refused, or failed before the first batch.
        """

    def catalogs(self) -> Sequence[str]:
        """List the visible catalogs."""

    def schemas(self, catalog: str | None = None, pattern: str | None = None) -> Sequence[NamespaceName]:
        """List the visible schemas.

        Args:
            catalog: one catalog, None for all of them.
            pattern: a LIKE pattern of the schema's name.
        """

    def tables(self, filter: TableFilter) -> Sequence[TableListing]:
        """List the visible tables and views, after policies.

        Args:
            filter: which ones.
        """

    def properties(self) -> Mapping[str, str]:
        """Return the session's properties as text."""

    def set_properties(self, values: Mapping[str, str | None]) -> None:
        """Set properties of the session; None puts one back to its default. All or nothing.

        Args:
            values: names and texts; unknown names and bad values are a `UserError`.
        """

    def use(self, catalog: str | None, schema: tuple[str, ...] | None) -> None:
        """Change the current catalog, the current schema, or both.

        Args:
            catalog: None keeps it.
            schema: None keeps it.
        """

    def cancel(self, query_id: str) -> bool:
        """Cancel a statement of this user, for admins of anybody.

        Args:
            query_id: the statement.

        Returns:
            False when there is no such statement, or it is somebody else's: the two look the same (TRI-3).
        """

    def renew_login(self, credential: Credential) -> None:
        """Go on with a new credential of the same person, as a client does whose token is about to end.

        Args:
            credential: what the client presents now. Statements that run go on.

        Raises:
            InvalidCredentialsError: it is bad, or somebody else's; the session stays as it was.
        """

    def close(self) -> None:
        """End the session and everything that runs in it. Idempotent."""


class ServerState(Enum):
    """What a protocol says when it is asked how the server is."""

    STARTING = "starting"
    ACTIVE = "active"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The state of the server, for the unauthenticated version calls of a protocol."""

    state: ServerState
    version: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLogin:
    """A browser login that a client began.

    Args:
        id: what the client polls with; random and secret.
        url: the address for the browser.
        expires_at: when it is forgotten.
    """

    id: Secret
    url: str
    expires_at: datetime


class BrowserLogins(Protocol):
    """Logins in a browser, kept by the core: bounded, in time, each token handed out once (TRI-8, LIM-10)."""

    @property
    def redirect_uri(self) -> str:
        """Return the configured address that browsers come back to, which a protocol serves. `begin` takes no other."""

    def begin(self, *, redirect_uri: str, client: ClientInfo) -> BrowserLogin:
        """Begin a login.

        Args:
            redirect_uri: where the browser comes back to.
            client: who asks.
        """

    def finish(self, *, state: str, code: Secret) -> None:
        """Take what came back to the redirect address.

        Args:
            state: which login it belongs to; an unknown one is an `InvalidCredentialsError`.
            code: the authorization code.
        """

    def refuse(self, *, state: str) -> None:
        """Note that the browser came back without a code, so that nobody waits for it.

        Args:
            state: which login it belongs to; an unknown one is an `InvalidCredentialsError`.
        """

    def poll(self, id: Secret) -> Secret | None:
        """Return the bearer that the client shall use from now on, once; None while the user has not finished.

        Args:
            id: the login; an unknown or expired one is an `InvalidCredentialsError`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoginStart:
    """A login on another device that a client began.

    Args:
        id: what the client polls with; random and secret.
        user_code: what the user types at `verification_uri`.
        verification_uri: the address for the user.
        verification_uri_complete: the same with the code in it, when the identity provider has that.
        interval_secs: how long the client waits between two polls.
        expires_at: when it is forgotten.
    """

    id: Secret
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None = None
    interval_secs: int = 5
    expires_at: datetime


class DeviceLogins(Protocol):
    """Logins on another device (RFC 8628), for clients without a browser; kept by the core as `BrowserLogins` are."""

    def begin(self, *, client: ClientInfo) -> DeviceLoginStart:
        """Begin a login.

        Args:
            client: who asks.
        """

    def poll(self, id: Secret) -> Secret | None:
        """Return the bearer that the client shall use from now on, once; None while the user has not finished.

        Args:
            id: the login; an unknown, refused or expired one is an `InvalidCredentialsError`.
        """


class QueryGateway(Protocol):
    """What the core offers to a protocol. Safe for use from several threads."""

    def authenticate(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        """Find the session of a bearer or of a login, or log in and open one; to be called for each request.

        The bearer of a session finds it. Any other credential finds the session that it opened before under the same
        `client.label`, else on the same `client.connection`, else the one that all clients of the login share: that
        is for protocols whose clients keep their state and send it with each statement (`StatementRequest.state`).

        Args:
            credential: what the transport received.
            client: what the transport knows.

        Raises:
            InvalidCredentialsError: with the constant text.
            ResourcesError: too many attempts, or sessions; `retry_after_secs` says when to come back.
        """

    def log_in(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        """Log in and open a session that its `token` alone finds, as a handshake does; the rest is as above.

        Args:
            credential: what the transport received. The bearer of a session finds that session.
            client: what the transport knows.
        """

    def end_connection(self, client: ClientInfo) -> None:
        """End the sessions of a connection that is gone, and what runs in them.

        Args:
            client: its `protocol` and `connection`; the rest does not count.
        """

    def status(self) -> ServerStatus:
        """Return the state of the server; needs no login."""

    @property
    def browser_logins(self) -> BrowserLogins | None:
        """Browser logins, or None when none are configured."""

    @property
    def device_logins(self) -> DeviceLogins | None:
        """Logins on another device, or None when none are configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Certificate and key of a listener; with `ca_file` client certificates are demanded."""

    cert_file: Path
    key_file: Path
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The bounds of what a client sends at once (LIM-2).

    Args:
        sql_bytes: of a statement's text; the core refuses a longer one, so a protocol need not receive it.
        header_bytes: of the headers of a request.
    """

    sql_bytes: int = 1 << 20
    header_bytes: int = 32 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolContext(PluginContext):
    """What the core offers to a protocol's factory, beside the rest.

    Args:
        bind_host: the address to listen on; loopback when nobody has to log in.
        port: the configured port, 0 for any free one.
        tls: the files of `[coordinator.tls]`.
        public_url: the address that clients use, when it is configured; else made from the connection (TRI-5).
        trusted_proxies: addresses whose `X-Forwarded-*` headers count.
        stream_idle_secs: a client that does not read its result, or does not send what it began, is ended after this
            long (LIM-8).
        limits: the bounds of a request and of its answer.
    """

    bind_host: str = "127.0.0.1"
    port: int = 0
    tls: TlsFiles | None = None
    public_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    stream_idle_secs: float = 300.0
    limits: RequestLimits = field(default_factory=RequestLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a started protocol listens."""

    protocol: str
    host: str
    port: int
    secure: bool = False


class ProtocolServer(ABC):
    """One protocol on one listener."""

    @abstractmethod
    def start(self, gateway: QueryGateway) -> Endpoint:
        """Bind, begin to serve in threads of the server's own, and return at once.

        Args:
            gateway: the core. It answers `status` at once and waits by itself until the engine is up.

        Returns:
            Where it listens, with the real port.

        Raises:
            StartupError: the port is taken, or the TLS files are unusable.
        """

    @abstractmethod
    def stop(self, drain_secs: float) -> None:
        """Accept nothing new, let running statements finish, then close every connection. Idempotent.

        Args:
            drain_secs: how long running statements get.
        """


class ProtocolFactory(PluginFactory[ConfigT, ProtocolContext, ProtocolServer]):
    """Makes the server of one protocol.

    Example:
        >>> class GopherFactory(ProtocolFactory[NoConfig]):
        ...     kind = "gopher"
        ...     config_type = NoConfig
        ...
        ...     def create(self, name, config, context):
        ...         return GopherServer()
    """

    default_port: int = 0
    """The port when the configuration names none; 0 leaves the protocol off unless a port is configured."""
