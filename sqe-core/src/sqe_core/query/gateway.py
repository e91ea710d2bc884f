"""What protocols stand on: `spi.protocol.QueryGateway`, made of the session store and the query service.

A protocol holds a `GatewaySession` for each client and hands it statements; whatever is decided is decided below.
"""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from sqe_core.auth.certificate import read_certificate
from sqe_core.catalog.arrow_types import arrow_schema
from sqe_core.catalog.information_schema import SCHEMAS, system_columns
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.query.answers.like import like_filter
from sqe_core.query.run.division import divide
from sqe_core.query.run.result import StatementPlan, StatementResult
from sqe_core.query.service import QueryService, StatementOptions
from sqe_core.session.properties import find_property
from sqe_core.session.rate_limits import RateLimiter, Traffic
from sqe_core.session.session import SessionState
from sqe_core.session.statement_session import StatementSession
from sqe_core.session.store import LiveSession, SessionStore
from sqe_core.spi.auth import CertificateCredential, ClientInfo, Credential
from sqe_core.spi.catalog import Column, ObjectType
from sqe_core.spi.errors import ErrorCode, InvalidCredentialsError, SqeError, UserError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.protocol import (
    BrowserLogins,
    DeviceLogins,
    GatewaySession,
    IngestRequest,
    QueryProgress,
    QueryResult,
    ServerStatus,
    SessionChanges,
    StatementDescription,
    StatementRequest,
    TableFilter,
    TableListing,
)

_SYSTEM_TABLES = sorted(SCHEMAS)


class Gateway:
    """Implements `QueryGateway`."""

    def __init__(
        self,
        *,
        store: SessionStore,
        service: QueryService,
        status: Callable[[], ServerStatus],
        admin_roles: frozenset[str] = frozenset(),
        rates: RateLimiter | None = None,
        browser_logins: BrowserLogins | None = None,
        device_logins: DeviceLogins | None = None,
    ) -> None:
        self._store = store
        self._browser_logins = browser_logins
        self._device_logins = device_logins
        self._service = service
        self._status = status
        self._admin_roles = admin_roles
        self._rates = rates or RateLimiter()

    def authenticate(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        """Find the session that this credential belongs to, or log in."""
        return self._connected(self._store.authenticate(_with_names(credential), client), client)

    def log_in(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        """Log in, to a session of its own."""
        return self._connected(self._store.authenticate(_with_names(credential), client, own=True), client)

    def end_connection(self, client: ClientInfo) -> None:
        """End the sessions of a connection."""
        if client.connection is not None:
            self._store.end_connection(client.protocol, client.connection)

    def _connected(self, live: LiveSession, client: ClientInfo) -> GatewaySession:
        return ConnectedSession(
            live,
            self._service,
            take=lambda traffic: self._rates.take(traffic, live.session.identity, client.address),
            renew=lambda new: self._store.renew_login(live, _with_names(new), client),
            is_admin=bool(live.session.identity.roles & self._admin_roles),
        )

    def status(self) -> ServerStatus:
        """Return the state of the server."""
        return self._status()

    @property
    def browser_logins(self) -> BrowserLogins | None:
        """Browser logins, or None when none are configured."""
        return self._browser_logins

    @property
    def device_logins(self) -> DeviceLogins | None:
        """Logins on another device, or None when none are configured."""
        return self._device_logins


class ConnectedSession:
    """Implements `GatewaySession` for one session of the store. Holds no state: there may be several for a session."""

    def __init__(
        self,
        live: LiveSession,
        service: QueryService,
        *,
        take: Callable[[Traffic], None],
        renew: Callable[[Credential], None],
        is_admin: bool = False,
    ) -> None:
        """Make one; `take` counts a request of its client, or raises, and `renew` judges its new credential."""
        self._live = live
        self._session = live.session
        self._service = service
        self._take = take
        self._renew = renew
        self._is_admin = is_admin

    @property
    def token(self) -> Secret:
        """The session's own bearer."""
        return self._live.token

    @property
    def identity(self) -> Identity:
        """Who it is, without tokens."""
        return self._live.identity

    @property
    def expires_at(self) -> datetime | None:
        """When it ends at the latest."""
        return self._live.expires_at

    @property
    def catalog(self) -> str:
        """The current catalog."""
        return self._session.catalog

    @property
    def schema(self) -> tuple[str, ...]:
        """The current schema."""
        return self._session.schema

    def execute(self, request: StatementRequest) -> RunningQuery:
        """Admit, judge and start a statement."""
        self._count(Traffic.STATEMENT)
        at = self._seen_by(request)
        result = self._service.execute(
            self._session,
            request.sql,
            parameters=request.parameters,
            dialect=request.dialect,
            options=_options(request, at),
        )
        return RunningQuery(result, _changes_of(at))

    def plan(self, request: StatementRequest) -> PlannedQuery:
        """Judge a statement, to be started later."""
        self._count(Traffic.STATEMENT)
        at = self._seen_by(request)
        plan = self._service.plan(
            self._session,
            request.sql,
            parameters=request.parameters,
            dialect=request.dialect,
            options=_options(request, at),
        )
        return PlannedQuery(plan, self._live, _changes_of(at))

    def describe(self, request: StatementRequest) -> StatementDescription:
        """Say what a statement would answer."""
        self._count(Traffic.METADATA)
        at = self._seen_by(request)
        options = _options(request, at)
        return self._service.describe(self._session, request.sql, dialect=request.dialect, options=options)

    def insert_rows(self, request: StatementRequest, rows: Sequence[pa.RecordBatch]) -> RunningQuery | None:
        """Insert a row for each row of parameters, with one commit; None when the statement is none of that form."""
        if not rows:
            return None
        self._count(Traffic.STATEMENT)
        at = self._seen_by(request)
        result = self._service.insert_rows(
            self._session, request.sql, rows, dialect=request.dialect, options=_options(request, at)
        )
        return None if result is None else RunningQuery(result, _changes_of(at))

    def ingest(self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> RunningQuery:
        """Write record batches into a table; `batches` may be `WatchedBatches`."""
        self._count(Traffic.STATEMENT)
        options = StatementOptions(began=request.began, request_id=request.request_id)
        result = self._service.ingest(self._session, request, schema, batches, options=options)
        return RunningQuery(result, SessionChanges)

    def catalogs(self) -> Sequence[str]:
        """List the visible catalogs."""
        with self._session.looking():
            return [mount.name for mount in self._visible().mounts()]

    def schemas(self, catalog: str | None = None, pattern: str | None = None) -> Sequence[NamespaceName]:
        """List the visible schemas."""
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
        """List the visible tables and views, after policies."""
        with self._session.looking():
            return self._tables(filter)

    def _tables(self, filter: TableFilter) -> Sequence[TableListing]:
        in_schema, in_table = like_filter(filter.schema_pattern), like_filter(filter.table_pattern)
        kinds = frozenset(ObjectType) if filter.types is None else filter.types
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
        """Return the session's properties as text."""
        return {row[0]: row[1] for row in self._session.properties.rows()}

    def set_properties(self, values: Mapping[str, str | None]) -> None:
        """Set properties of the session, all or none."""
        self._session.set_properties(
            {name: None if value is None else _typed(name, value) for name, value in values.items()}
        )

    def use(self, catalog: str | None, schema: tuple[str, ...] | None) -> None:
        """Change the current catalog, the current schema, or both."""
        parts = [_quoted(".".join(schema))] if schema is not None else [_quoted("default")]
        if catalog is not None:
            parts.insert(0, _quoted(catalog))
        elif schema is None:
            return
        self._count(Traffic.METADATA)
        self._service.execute(self._session, "USE " + ".".join(parts), dialect="sqe").close()

    def cancel(self, query_id: str) -> bool:
        """Cancel a statement of this user, for admins of anybody."""
        return self._service.cancel_of(self._session.identity.key, query_id, any_user=self._is_admin)

    def renew_login(self, credential: Credential) -> None:
        """Go on with a new credential of the same person."""
        self._live.ensure_usable()
        self._renew(credential)

    def close(self) -> None:
        """End the session and everything that runs in it."""
        self._live.close()

    def _count(self, traffic: Traffic) -> None:
        self._live.ensure_usable()
        self._take(traffic)

    def _visible(self) -> VisibleCatalogs:
        self._count(Traffic.METADATA)
        return self._service.visible(self._session)

    def _with_columns(
        self, visible: VisibleCatalogs, mount: Mount, listed: Sequence[tuple[ObjectName, ObjectType]]
    ) -> Iterator[TableListing]:
        for name, kind in listed:
            if kind is ObjectType.SYSTEM_TABLE:
                columns: Sequence[Column] = system_columns(name.name)
            else:
                loaded = visible.load(mount, name)  # what was listed may be known
                if loaded is None:
                    continue  # it went away meanwhile
                columns = self._service.visible_columns(self._session, name, loaded)
            yield TableListing(name=name, type=kind, columns=arrow_schema(columns))

    def _seen_by(self, request: StatementRequest) -> StatementSession | None:
        """What a statement sees that brings names or settings of its own; None is the session as it is."""
        if not _is_apart(request):
            return None
        return StatementSession(
            self._session,
            catalog=request.catalog,
            schema=request.schema,
            properties={name: _typed(name, value) for name, value in request.properties.items()},
            apart=True,
        )


def _with_names(credential: Credential) -> Credential:
    """Read the names of a certificate, which most transports do not give."""
    if not isinstance(credential, CertificateCredential) or credential.subject or not credential.der:
        return credential
    try:
        read = read_certificate(credential.der)
    except ValueError:
        raise InvalidCredentialsError from None
    return replace(credential, subject=read.subject, issuer=read.issuer, alternative_names=read.alternative_names)


def _is_apart(request: StatementRequest) -> bool:
    return request.catalog is not None or request.schema is not None or bool(request.properties)


def _options(request: StatementRequest, at: StatementSession | None) -> StatementOptions:
    return StatementOptions(at=at, began=request.began, request_id=request.request_id)


def _changes_of(at: StatementSession | None) -> Callable[[], SessionChanges]:
    """Return what tells what a statement changed that brought its names and settings with it."""
    return SessionChanges if at is None else lambda: _changes(at.began, at.state())


def _changes(before: SessionState, later: SessionState) -> SessionChanges:
    moved = (later.catalog, later.schema) != (before.catalog, before.schema)
    return SessionChanges(
        catalog=later.catalog if moved else None,
        schema=later.schema if moved else None,
        set_properties={
            name: str(value) for name, value in later.properties.items() if before.properties.get(name) != value
        },
        reset_properties=tuple(name for name in before.properties if name not in later.properties),
    )


class PlannedQuery:
    """Implements `spi.protocol.StatementPlan`."""

    def __init__(self, plan: StatementPlan, live: LiveSession, changes: Callable[[], SessionChanges]) -> None:
        self._plan = plan
        self._live = live
        self._changes = changes

    @property
    def query_id(self) -> str:
        """The id in history and audit."""
        return self._plan.query_id

    @property
    def statement_kind(self) -> str:
        """The word of features §2.0."""
        return self._plan.kind.value

    @property
    def schema(self) -> pa.Schema | None:
        """The columns, as the result will have them."""
        return self._plan.schema

    @property
    def is_constant(self) -> bool:
        """Whether it is one row of constants."""
        return self._plan.is_constant

    def divide(self, count: int) -> Sequence[PlannedQuery]:
        """Return plans of parts of the rows."""
        return [PlannedQuery(part, self._live, self._changes) for part in divide(self._plan, count)]

    def start(self) -> RunningQuery:
        """Run it."""
        self._live.ensure_usable()
        return RunningQuery(self._plan.start(), self._changes)

    def close(self) -> None:
        """Forget it."""
        self._plan.close()


class RunningQuery:
    """Implements `QueryResult`."""

    def __init__(self, result: StatementResult, changes: Callable[[], SessionChanges]) -> None:
        self._result = result
        self._changes = changes
        self._began = time.monotonic()
        self._ended: SqeError | None = None
        self._done = False

    @property
    def query_id(self) -> str:
        """The id in history and audit."""
        return self._result.query_id

    @property
    def statement_kind(self) -> str:
        """The word of features §2.0."""
        return self._result.kind.value

    @property
    def schema(self) -> pa.Schema | None:
        """The columns; None for statements without rows."""
        return self._result.schema

    @property
    def affected_rows(self) -> int | None:
        """Rows written; None for queries and DDL."""
        return self._result.affected_rows

    @property
    def changes(self) -> SessionChanges:
        """What changed for later statements."""
        return self._changes()

    @property
    def warnings(self) -> tuple[str, ...]:
        """There are none yet."""
        return ()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._result
        except SqeError as error:
            self._ended = error
            raise
        finally:
            self._done = True

    def progress(self) -> QueryProgress:
        """How far it is."""
        now = self._result.progress()
        return QueryProgress(
            state="failed" if self._ended else "finished" if self._done or self._result.schema is None else "running",
            tasks=now.tasks,
            tasks_done=now.tasks_done,
            tasks_active=now.tasks_active,
            rows=now.rows,
            bytes=now.bytes,
            elapsed_ms=int((time.monotonic() - self._began) * 1000),
        )

    def cancel(self) -> None:
        """End it."""
        self._result.cancel()

    def close(self) -> None:
        """Free everything."""
        self._result.close()

    def __enter__(self) -> QueryResult:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _mounts(visible: VisibleCatalogs, catalog: str | None) -> list[Mount]:
    return [mount for mount in visible.mounts() if catalog is None or mount.name == catalog]


def _typed(name: str, value: str) -> Any:
    """Read the text of a property, as its type wants it."""
    if find_property(name).type != "bigint":
        return value
    try:
        return int(value)
    except ValueError:
        raise UserError(f"Session property {name} must be a number", code=ErrorCode.INVALID_ARGUMENTS) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
