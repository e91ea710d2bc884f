"""What protocols stand on: `spi.protocol.QueryGateway`, made of the session store and the query service.

A protocol holds a `GatewaySession` for each client and hands it statements; whatever is decided is decided below.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

import pyarrow as pa

from sqe_core.auth.certificate import read_certificate
from sqe_core.catalog.arrow_types import arrow_schema
from sqe_core.catalog.own_tables import own_columns
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.sqe_tables import SCHEMAS
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs, each_apart
from sqe_core.query.run.division import divide
from sqe_core.query.run.result import StatementPlan, StatementResult
from sqe_core.query.run.running import RunningStatement, new_query_id
from sqe_core.query.service import QueryService, StatementOptions
from sqe_core.session.properties import SessionProperties, find_property
from sqe_core.session.rate_limits import RateLimiter, Traffic
from sqe_core.session.session import SessionState
from sqe_core.session.statement_session import StatementSession
from sqe_core.session.store import LiveSession, SessionStore
from sqe_core.session.trino_properties import own_name
from sqe_core.spi.auth import CertificateCredential, ClientInfo, Credential
from sqe_core.spi.catalog import Column, ObjectType
from sqe_core.spi.errors import ErrorCode, InvalidCredentialsError, NotSupportedError, QueryCancelledError, UserError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.protocol import (
    BrowserLogins,
    ClientState,
    DeviceLogins,
    GatewaySession,
    IngestRequest,
    QueryProgress,
    ServerStatus,
    SessionChanges,
    Statement,
    StatementDescription,
    StatementRequest,
    StatementState,
    TableFilter,
    TableListing,
)
from sqe_core.spi.statement_kinds import StatementKind
from sqe_core.spi.types import ResultColumn, result_columns
from sqe_core.sql.text.like import like_filter
from sqe_core.sql.text.time_zone import zone_name

_SYSTEM_TABLES = sorted(SCHEMAS)
_JUST_NOW_SECS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Implements `QueryGateway`."""

    store: SessionStore
    service: QueryService
    status: Callable[[], ServerStatus]
    rates: RateLimiter = field(default_factory=RateLimiter)
    browser_logins: BrowserLogins | None = None
    device_logins: DeviceLogins | None = None

    def authenticate(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        return self._connected(self.store.authenticate(_with_names(credential), client), client)

    def log_in(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        return self._connected(self.store.authenticate(_with_names(credential), client, own=True), client)

    def end_connection(self, client: ClientInfo) -> None:
        if client.connection is not None:
            self.store.end_connection(client.protocol, client.connection)

    def _connected(self, live: LiveSession, client: ClientInfo) -> GatewaySession:
        return ConnectedSession(
            live,
            self.service,
            take=lambda traffic: self.rates.take(traffic, live.session.identity, client.address),
            renew=lambda new: self.store.renew_login(live, _with_names(new), client),
        )


class ConnectedSession:
    """Implements `GatewaySession` for one session of the store that was found usable; there may be several of one."""

    def __init__(
        self,
        live: LiveSession,
        service: QueryService,
        *,
        take: Callable[[Traffic], None],
        renew: Callable[[Credential], None],
    ) -> None:
        """Make one; `take` counts a request of its client, or raises, and `renew` judges its new credential."""
        self._live = live
        self._session = self.session = live.session
        self._service = self.service = service
        self._take = take
        self._renew = renew
        live.let_in_at = time.monotonic()

    @property
    def token(self) -> Secret:
        return self._live.token

    @property
    def identity(self) -> Identity:
        return self._live.identity

    @property
    def expires_at(self) -> datetime | None:
        return self._live.expires_at

    @property
    def catalog(self) -> str:
        return self._session.catalog

    @property
    def schema(self) -> tuple[str, ...]:
        return self._session.schema

    def begin(self, request: StatementRequest) -> SqlStatement:
        return SqlStatement(self, request)

    def begin_ingest(
        self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> IngestStatement:
        return IngestStatement(self, request, schema, batches)

    def execute(self, request: StatementRequest) -> Statement:
        return self.begin(request).start()

    def catalogs(self) -> Sequence[str]:
        with self._session.looking():
            return [mount.name for mount in self._visible().mounts()]

    def schemas(self, catalog: str | None = None, pattern: str | None = None) -> Sequence[NamespaceName]:
        matches = like_filter(pattern)
        with self._session.looking():
            visible = self._visible()
            return [
                NamespaceName(catalog=mount.name, namespace=namespace)
                for mount in _mounts(visible, catalog)
                for namespace in sorted(visible.schemas(mount))
                if matches(".".join(namespace))
            ]

    def tables(self, filter: TableFilter) -> Sequence[TableListing]:
        in_schema, in_table = like_filter(filter.schema_pattern), like_filter(filter.table_pattern)
        kinds = frozenset(ObjectType) if filter.types is None else filter.types
        with self._session.looking():
            visible = self._visible()
            found: list[TableListing] = []
            for mount in _mounts(visible, filter.catalog):
                listed = list(visible.all_objects(mount, kinds=kinds, in_schema=in_schema, matches=in_table))
                if ObjectType.SYSTEM_TABLE in kinds and in_schema(INFORMATION_SCHEMA):
                    schema: tuple[str, ...] = (INFORMATION_SCHEMA,)
                    names = (ObjectName(catalog=mount.name, namespace=schema, name=name) for name in _SYSTEM_TABLES)
                    place = bisect(listed, schema, key=lambda entry: entry[0].namespace)
                    listed[place:place] = [(name, ObjectType.SYSTEM_TABLE) for name in names if in_table(name.name)]
                if filter.with_columns:
                    found += self._with_columns(visible, mount, listed)
                else:
                    found += [TableListing(name=name, type=kind) for name, kind in listed]
            return found

    def properties(self) -> Mapping[str, str]:
        return {row[0]: row[1] for row in self._session.properties.rows()}

    def set_properties(self, values: Mapping[str, str | None]) -> None:
        self._session.set_properties(
            {name: None if value is None else _typed(name, value) for name, value in values.items()}
        )

    def use(self, catalog: str | None, schema: tuple[str, ...] | None) -> None:
        parts = [_quoted(".".join(schema))] if schema is not None else [_quoted("default")]
        if catalog is not None:
            parts.insert(0, _quoted(catalog))
        elif schema is None:
            return
        self.count(Traffic.METADATA)
        self._service.execute(self._session, "USE " + ".".join(parts), dialect="sqe").close()

    def cancel(self, query_id: str) -> bool:
        any_user = self._service.is_admin(self._session)
        return self._service.cancel_of(self._session.identity.key, query_id, any_user=any_user)

    def renew_login(self, credential: Credential) -> None:
        self._live.ensure_usable()
        self._renew(credential)

    def close(self) -> None:
        self._live.close()

    def count(self, traffic: Traffic) -> None:
        """Count a request of its client, or raise: the session has ended, or there were too many."""
        self.ensure_usable()
        self._take(traffic)

    def ensure_usable(self) -> None:
        """Raise when no statement may start any more; who has just been let in is not asked about twice."""
        let_in_at, self._live.let_in_at = self._live.let_in_at, -math.inf
        if time.monotonic() - let_in_at > _JUST_NOW_SECS:
            self._live.ensure_usable()

    def _visible(self) -> VisibleCatalogs:
        self.count(Traffic.METADATA)
        return self._service.visible(self._session)

    def _with_columns(
        self, visible: VisibleCatalogs, mount: Mount, listed: Sequence[tuple[ObjectName, ObjectType]]
    ) -> Iterator[TableListing]:
        kinds = dict(listed)
        columns_of = self._service.columns_of(self._session)

        def columns(name: ObjectName) -> Sequence[Column] | None:
            if kinds[name] is ObjectType.SYSTEM_TABLE:
                return own_columns(SCHEMAS[name.name])
            loaded = visible.load(mount, name)  # what was listed may be known
            return columns_of(name, loaded) if loaded is not None else None  # it went away meanwhile

        for name, found in each_apart(kinds, columns):
            yield TableListing(name=name, type=kinds[name], columns=arrow_schema(found))

    def seen_by(self, kept: ClientState | None) -> StatementSession:
        """Return what a statement sees: the session as it is, or what its client keeps in the place of that."""
        if kept is None:
            return StatementSession(self._session)
        state, is_catalog = self._session.state(), self._is_catalog
        named = ((own_name(name, is_catalog), value) for name, value in kept.properties.items())
        return StatementSession(
            self._session,
            kept=SessionState(
                catalog=kept.catalog or state.catalog,
                schema=kept.schema or state.schema,
                properties=SessionProperties().changed({name: _typed(name, value) for name, value in named}),
                prepared=kept.prepared,
                roles=kept.roles,
                zone=_zone_of(kept),
                transaction=kept.transaction,
            ),
        )

    def _is_catalog(self, name: str) -> bool:
        visible = self._service.visible(self._session)
        mount = visible.registry.find(name)
        return mount is not None and visible.shows(mount)


def _with_names(credential: Credential) -> Credential:
    """Read the names of a certificate, which most transports do not give."""
    if not isinstance(credential, CertificateCredential) or credential.subject or not credential.der:
        return credential
    try:
        read = read_certificate(credential.der)
    except ValueError:
        raise InvalidCredentialsError from None
    return replace(credential, subject=read.subject, issuer=read.issuer, alternative_names=read.alternative_names)


def _changes(before: SessionState, later: SessionState, *, named: bool) -> SessionChanges:
    then, now = before.properties.values, later.properties.values
    moved = named or (later.catalog, later.schema) != (before.catalog, before.schema)
    return SessionChanges(
        catalog=later.catalog if named or later.catalog != before.catalog else None,
        schema=later.schema if moved else None,
        set_properties={name: str(value) for name, value in now.items() if then.get(name) != value},
        reset_properties=tuple(name for name in then if name not in now),
        added_prepared={name: text for name, text in later.prepared.items() if before.prepared.get(name) != text},
        removed_prepared=tuple(name for name in before.prepared if name not in later.prepared),
        roles=later.roles if later.roles != before.roles else None,
        all_roles=later.roles is None and before.roles is not None,
        path=later.path if later.path != before.path else None,
        started_transaction=later.transaction if later.transaction != before.transaction else None,
        cleared_transaction=later.transaction is None and before.transaction is not None,
    )


def _end_by(error: BaseException) -> StatementState:
    cancelled = isinstance(error, QueryCancelledError | GeneratorExit)
    return StatementState.CANCELLED if cancelled else StatementState.FAILED


class _BegunStatement:
    """What the statements of a session have in common: an id from the first moment on, and a state until the end."""

    def __init__(self, session: ConnectedSession) -> None:
        self._session = session
        self._running = RunningStatement(new_query_id())
        self._began = time.monotonic()
        self._planned: StatementPlan | None = None
        self._parts: Sequence[_BegunStatement] = (self,)
        self._result: StatementResult | None = None
        self._seen: StatementSession | None = None
        self._over: StatementState | None = None
        # Reentrant: what nobody closed is closed by the garbage collector, anywhere.
        self._lock = threading.RLock()
        self._closed = False

    @property
    def query_id(self) -> str:
        return self._running.query_id

    @property
    def statement_kind(self) -> str:
        known = self._result or self._planned
        return known.kind.value if known is not None else ""

    @property
    def schema(self) -> pa.Schema | None:
        known = self._result or self._planned
        return known.schema if known is not None else None

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return result_columns(self.schema)

    @property
    def is_constant(self) -> bool:
        return self._planned is not None and self._planned.is_constant

    @property
    def state(self) -> StatementState:
        if self._over is None and (error := self._running.end_error()) is not None:
            return _end_by(error)
        return self._over or self._running.state

    @property
    def affected_rows(self) -> int | None:
        return self._result.affected_rows if self._result is not None else None

    @property
    def changes(self) -> SessionChanges:
        if self._seen is None:
            return SessionChanges()
        # Who says USE is told the names, those too that it has already: the client may not know them.
        named = self.statement_kind == StatementKind.USE.value
        return _changes(self._seen.began, self._seen.state(), named=named)

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._running.warnings

    def _options(self, request: StatementRequest | IngestRequest) -> StatementOptions:
        """Count the request, and return what comes with it."""
        if self._seen is None:
            kept = request.state if isinstance(request, StatementRequest) else None
            self._seen = self._session.seen_by(kept)
        return StatementOptions(
            at=self._seen,
            running=self._running,
            request_id=request.request_id,
            source=request.source,
            trace_parent=request.trace_parent,
        )

    def _has(self, result: StatementResult) -> None:
        with self._lock:
            self._result, closed = result, self._closed
        if closed:
            result.close()
            raise QueryCancelledError("The statement was cancelled")
        if result.schema is None:
            self._over = StatementState.FINISHED

    @contextmanager
    def _ended_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._over = _end_by(error)
            raise

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._result is not None:
            with self._ended_by_errors():
                yield from self._result
            self._over = StatementState.FINISHED

    def progress(self) -> QueryProgress:
        now = self._running.progress()
        return QueryProgress(
            state=self.state,
            tasks=now.tasks,
            tasks_done=now.tasks_done,
            tasks_active=now.tasks_active,
            rows=now.rows,
            bytes=now.bytes,
            queued_ms=self._running.queued_ms,
            elapsed_ms=int((time.monotonic() - self._began) * 1000),
        )

    def cancel(self) -> None:
        self._running.cancel()
        for part in self._parts:
            if part._planned is not None:
                part._planned.close()

    def close(self) -> None:
        with self._lock:
            self._closed, result = True, self._result
        if self._planned is not None:
            self._planned.close()
        if result is not None:
            result.close()
        elif self._over is None:
            self._running.cancel()  # it may be judged, or begin to run, in another thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class SqlStatement(_BegunStatement):
    """Implements `spi.protocol.Statement` for a text, or for a part of its rows."""

    def __init__(self, session: ConnectedSession, request: StatementRequest, whole: SqlStatement | None = None) -> None:
        super().__init__(session)
        self._request = request
        if whole is not None:
            self._running, self._seen = whole._running, whole._seen

    def plan(self) -> None:
        self._session.count(Traffic.STATEMENT)
        with self._ended_by_errors():
            request = self._request
            self._planned = self._session.service.plan(
                self._session.session,
                request.sql,
                parameters=request.parameters,
                dialect=request.dialect,
                options=self._options(request),
            )

    def describe(self) -> StatementDescription:
        self._session.count(Traffic.METADATA)
        with self._ended_by_errors():
            request = self._request
            described = self._session.service.describe(
                self._session.session, request.sql, dialect=request.dialect, options=self._options(request)
            )
        self._over = StatementState.FINISHED
        return described

    def start(self) -> SqlStatement:
        request = self._request
        if self._planned is not None:
            self._session.ensure_usable()
        else:
            self._session.count(Traffic.STATEMENT)
        with self._ended_by_errors():
            self._has(
                self._planned.start()
                if self._planned is not None
                else self._session.service.execute(
                    self._session.session,
                    request.sql,
                    parameters=request.parameters,
                    dialect=request.dialect,
                    options=self._options(request),
                )
            )
        return self

    def start_with_rows(self, rows: Sequence[pa.RecordBatch]) -> bool:
        if not rows:
            return False
        self._session.count(Traffic.STATEMENT)
        with self._ended_by_errors():
            request = self._request
            result = self._session.service.insert_rows(
                self._session.session, request.sql, rows, dialect=request.dialect, options=self._options(request)
            )
        if result is not None:
            self._has(result)
        return result is not None

    def divide(self, count: int) -> Sequence[SqlStatement]:
        if self._planned is None:
            return [self]
        parts: list[SqlStatement] = []
        for planned in divide(self._planned, count):
            part = SqlStatement(self._session, self._request, self)
            part._planned, part._parts = planned, parts
            parts.append(part)
        return parts


class IngestStatement(_BegunStatement):
    """Implements `spi.protocol.Statement` for rows that a client brings."""

    def __init__(
        self,
        session: ConnectedSession,
        request: IngestRequest,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
    ) -> None:
        super().__init__(session)
        self._request = request
        self._sent = schema
        self._batches = batches

    def plan(self) -> None:
        raise NotSupportedError("A bulk ingest is not planned before it is started")

    def describe(self) -> StatementDescription:
        raise NotSupportedError("A bulk ingest cannot be described")

    def start(self) -> IngestStatement:
        self._session.count(Traffic.STATEMENT)
        with self._ended_by_errors():
            options = self._options(self._request)
            self._has(
                self._session.service.ingest(
                    self._session.session, self._request, self._sent, self._batches, options=options
                )
            )
        return self

    def start_with_rows(self, rows: Sequence[pa.RecordBatch]) -> bool:
        return False

    def divide(self, count: int) -> Sequence[IngestStatement]:
        return [self]


def _mounts(visible: VisibleCatalogs, catalog: str | None) -> list[Mount]:
    return [mount for mount in visible.mounts() if catalog is None or mount.name == catalog]


def _typed(name: str, value: str) -> Any:
    """Read the text of a property, as its type wants it."""
    if find_property(name).type != "bigint":
        return value
    try:
        return int(value)
    except ValueError:
        raise UserError(f"Session property {name} must be a number", code=ErrorCode.INVALID_SESSION_PROPERTY) from None


def _zone_of(kept: ClientState) -> str:
    zone = "UTC" if kept.time_zone is None else zone_name(kept.time_zone)
    if zone is None:
        raise UserError(f"Time zone {(kept.time_zone or '')[:64]} does not exist", code=ErrorCode.INVALID_ARGUMENTS)
    return zone


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
