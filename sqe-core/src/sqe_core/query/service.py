"""The one use case: a statement of a session becomes a result, in the nine steps of docs/architecture.md."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import pyarrow as pa

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.trino_tables import TRINO_TABLES
from sqe_core.catalog.visible import VisibleCatalogs
from sqe_core.config.values import parse_duration
from sqe_core.engine.port import EngineState, Progress
from sqe_core.observe.logging import of_statement
from sqe_core.policy.authorizer import Circumstances
from sqe_core.policy.trail import DecisionTrail
from sqe_core.query.context import StatementContext, StatementWatch
from sqe_core.query.ingest.ingestion import described
from sqe_core.query.judge.names import NameResolver
from sqe_core.query.judge.roles_in_use import ChosenRoles, identity_in_use
from sqe_core.query.parts import QueryParts
from sqe_core.query.run.admission import Admission, DeadlineWatch
from sqe_core.query.run.failures import explained
from sqe_core.query.run.judging import Judging
from sqe_core.query.run.record import Origin, StatementRecord
from sqe_core.query.run.result import Parameters, StatementPlan, StatementResult
from sqe_core.query.run.running import Ending, EndReason, RunningStatement, new_query_id
from sqe_core.query.run.statement_run import StatementRun
from sqe_core.query.statements.registry import HANDLERS
from sqe_core.session.fingerprint import session_hash
from sqe_core.session.session import Session
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import CatalogMetadata, Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import SqeError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.protocol import IngestRequest, StatementDescription, StatementState
from sqe_core.sql.grammar.value_rows import value_row
from sqe_core.sql.statement import EngineStatement

_log = logging.getLogger(__name__)
_LONGEST_SOURCE = 256
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")

__all__ = ["Parameters", "QueryService", "StatementOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementOptions:
    """What comes with a statement beside its text and its parameters.

    Attributes:
        at: what the statement sees of its session; None is the session as it is when the statement begins.
        running: the statement, where somebody made it before, to end it at any time.
        request_id: what the client calls the request, for the log.
        source: what the client calls itself.
        trace_parent: the W3C `traceparent` that it sent.
    """

    at: StatementSession | None = None
    running: RunningStatement | None = None
    request_id: str | None = None
    source: str | None = None
    trace_parent: str | None = None

    @property
    def trace_id(self) -> str | None:
        """The id of the client's trace; None unless it is one."""
        found = _TRACE_PARENT.fullmatch(self.trace_parent or "")
        return found.group(1) if found is not None else None


_PLAIN = StatementOptions()


class QueryService:
    """Executes statements. One per process; safe for use from many threads.

    Every error is an SqeError, in words that may be shown to the user.
    """

    def __init__(self, parts: QueryParts) -> None:
        self._parts = parts
        self._admission = Admission(parts.limits)
        self._deadlines = DeadlineWatch()
        # Reentrant: a result that nobody closed is ended by the garbage collector, in the middle of whatever runs.
        self._lock = threading.RLock()
        self._running: dict[str, tuple[Session, RunningStatement]] = {}
        self._ended: WeakKeyDictionary[Session, EndReason] = WeakKeyDictionary()

    def execute(
        self,
        session: Session,
        sql: str,
        *,
        parameters: Parameters = (),
        dialect: str | None = None,
        options: StatementOptions = _PLAIN,
    ) -> StatementResult:
        """Run one statement and return its result as soon as the first rows can be read."""
        with self._begun(session, sql, options, dialect) as begun:
            result = begun.run.run(sql, parameters, begun.ending)
            return result.watched(begun.record.delivered)

    def plan(
        self,
        session: Session,
        sql: str,
        *,
        parameters: Parameters = (),
        dialect: str | None = None,
        options: StatementOptions = _PLAIN,
    ) -> StatementPlan:
        """Judge one statement without running it, for protocols whose clients ask for the columns first.

        A plan holds no slot. It runs once; what was decided is decided again when it is started much later.
        """
        with self._begun(session, sql, options, dialect) as begun:
            plan = begun.run.plan(sql, parameters, _Held(self, session, options, begun))
            begun.ending.leave()
        begun.record.pause()
        return plan

    def describe(
        self, session: Session, sql: str, *, dialect: str | None = None, options: StatementOptions = _PLAIN
    ) -> StatementDescription:
        """Judge one statement and say what it expects and answers, for prepared statements. Nothing runs."""
        with self._begun(session, sql, options, dialect) as begun:
            shape = begun.run.describe(sql)
            begun.record.described()
            begun.ending.tell(None)
            return shape

    def ingest(
        self,
        session: Session,
        request: IngestRequest,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        *,
        options: StatementOptions = _PLAIN,
    ) -> StatementResult:
        """Write record batches into a table with one commit, and return when they are there.

        The batches are read in this thread. Whatever they raise ends the statement, and nothing was written then.
        """
        with self._begun(session, described(request), options) as begun:
            return begun.run.ingest(request, schema, batches, begun.ending)

    def insert_rows(
        self,
        session: Session,
        sql: str,
        batches: Sequence[pa.RecordBatch],
        *,
        dialect: str | None = None,
        options: StatementOptions = _PLAIN,
    ) -> StatementResult | None:
        """Run an INSERT of one row of VALUES for each row of parameters, with one commit for all of them.

        A statement of another form does nothing, and returns None. There is at least one batch, with a column for each
        marker in their order.
        """
        running = options.running or RunningStatement(new_query_id())
        with self.admitted(session, running, options) as leave:
            # A long text takes a while to read: that is a statement's work, and needs its slot (LIM-1).
            try:
                statement = self._parts.read(sql, dialect or (options.at or session).properties["dialect"])
            except SqeError:
                with _explained(self._begin(session, running, sql, options, dialect, leave)):
                    raise  # history has what could not be read, too
            row = value_row(statement) if isinstance(statement, EngineStatement) else None
            if row is None:
                leave()
                return None
            begun = self._begin(session, running, sql, options, dialect, leave)
            with _explained(begun):
                return begun.run.insert_rows(statement, row, batches, begun.ending)

    @contextmanager
    def _begun(
        self,
        session: Session,
        sql: str,
        options: StatementOptions,
        dialect: str | None = None,
    ) -> Iterator[_Begun]:
        """Admit a statement; whatever is raised on its way becomes its end, and what its client may read."""
        running = options.running or RunningStatement(new_query_id())
        with self.admitted(session, running, options) as leave:
            begun = self._begin(session, running, sql, options, dialect, leave)
            with _explained(begun):
                yield begun

    def _begin(
        self,
        session: Session,
        running: RunningStatement,
        sql: str,
        options: StatementOptions,
        dialect: str | None,
        leave: Callable[[], None],
    ) -> _Begun:
        """Record that a statement was admitted, and find out what it sees."""
        seen = options.at or StatementSession(session)
        seen.find_roles(self._with_roles)
        self._parts.known.saw(session.identity)
        written = dialect or seen.properties["dialect"]
        origin = Origin(source=_printable(options.source), trace_id=options.trace_id, queued_ms=running.queued_ms)
        record = self._parts.recorder.begin(running.query_id, session, sql, written, origin)
        context = self._context(seen, written, running, record, record.trail)
        return _Begun(run=StatementRun(context), record=record, ending=Ending(leave, record.end))

    def _context(
        self,
        seen: StatementSession,
        dialect: str,
        running: RunningStatement,
        watch: StatementWatch,
        trail: DecisionTrail | None = None,
    ) -> StatementContext:
        seen.find_roles(self._with_roles)
        visible = self.visible(seen, running.query_id, trail)
        if dialect == "trino":
            visible = replace(visible, own=TRINO_TABLES)
        return StatementContext(
            parts=self._parts,
            handlers=HANDLERS,
            session=seen,
            dialect=dialect,
            running=running,
            visible=visible,
            resolver=NameResolver(self._parts.catalogs, shows=visible.shows, discover=seen.discovered.find),
            circumstances=Circumstances(
                protocol=seen.protocol,
                query_id=running.query_id,
                client_address=seen.client_address,
                trail=trail,
            ),
            watch=watch,
            others=self,
        )

    @contextmanager
    def admitted(
        self, session: Session, running: RunningStatement, options: StatementOptions
    ) -> Iterator[Callable[[], None]]:
        """Step 1: take a slot, and give what gives it back; an error gives it back at once.

        The statement can be cancelled while it waits, and its session is not idle.
        """
        with self._lock:
            self._running[running.query_id] = (session, running)
            ended = self._ended.get(session)
        if ended is not None:
            running.cancel(ended)  # it was ended between a plan and its start; its user is told why
        try:
            waits_since = time.monotonic()
            free = self._admission.enter(session.identity, running)
            running.queued_ms += int((time.monotonic() - waits_since) * 1000)
            running.state = StatementState.PLANNING
        except BaseException as error:
            with self._lock:
                self._running.pop(running.query_id, None)
            if isinstance(error, SqeError) and running.reason is None:
                self._parts.recorder.refused(error)
            raise
        forget_deadline = self._set_deadline(options.at or session, running)

        def leave() -> None:
            with self._lock:
                self._running.pop(running.query_id, None)
            forget_deadline()
            free()

        try:
            with of_statement(running.query_id, session_hash(session), options.request_id or ""):
                yield leave
        except BaseException:
            leave()
            raise

    @property
    def running(self) -> int:
        return self._admission.running

    def drain(self, timeout_secs: float) -> bool:
        """Take nothing new, and wait for what runs; False when the time was over first."""
        self._admission.close()
        return self._admission.wait_idle(timeout_secs)

    def end_all(self, timeout_secs: float) -> bool:
        """Take nothing new, end what runs, and wait until it is gone."""
        self._admission.close()
        with self._lock:
            running = [running for _, running in self._running.values()]
        _end_each(running, EndReason.SHUTDOWN)
        return self._admission.wait_idle(timeout_secs)

    def cancel(self, session: Session, query_id: str | None = None) -> int:
        """Cancel one statement of a session, or all of them; return how many there were (TRI-9)."""
        mine = [each for each in self._running_of(session) if query_id in (None, each.query_id)]
        _end_each(mine, EndReason.CANCELLED)
        return len(mine)

    def cancel_of(self, user: tuple[str, str], query_id: str, *, any_user: bool = False) -> bool:
        """Cancel a statement of a user, whichever session it runs in; False when there is none of theirs (TRI-3)."""
        with self._lock:
            found = self._running.get(query_id)
        if found is None or not (any_user or found[0].identity.key == user):
            return False
        found[1].cancel()
        return True

    def cancel_any(self, query_id: str) -> bool:
        """Cancel a statement, whoever runs it; False when it does not run. Who may do so was decided before."""
        return self.cancel_of(("", ""), query_id, any_user=True)

    def is_admin(self, session: Session) -> bool:
        """Whether a session's user is an administrator, with the roles that SET ROLE chose."""
        return self._parts.admins(self._with_roles(session.identity, session.chosen_roles))

    def is_running(self, session: Session) -> bool:
        """Whether a statement of a session runs, or its result is still read."""
        return bool(self._running_of(session))

    def progress(self, session: Session) -> Progress | None:
        mine = self._running_of(session)
        return mine[-1].progress() if mine else None

    def _running_of(self, session: Session) -> list[RunningStatement]:
        with self._lock:
            return [running for owner, running in self._running.values() if owner is session]

    def close_session(self, session: Session, *, reason: EndReason = EndReason.CLOSED) -> None:
        """End a session and everything it runs (SESS-6)."""
        with self._lock:
            mine = self._running_of(session)
            if reason is not EndReason.CLOSED:
                self._ended[session] = reason
        _end_each(mine, reason)
        session.close()

    def _with_roles(self, identity: Identity, chosen: ChosenRoles) -> Identity:
        return identity_in_use(self._parts.authorizer, identity, chosen)

    def visible(
        self, session: Session | StatementSession, query_id: str = "", trail: DecisionTrail | None = None
    ) -> VisibleCatalogs:
        """Return what a session may see; `trail` is told which objects a statement could not have for that."""
        circumstances = Circumstances(
            protocol=session.protocol, query_id=query_id, client_address=session.client_address
        )
        whole = session if isinstance(session, Session) else session.session

        def identity() -> Identity:
            if isinstance(session, StatementSession):
                return session.identity
            return self._with_roles(session.identity, session.chosen_roles)

        def listing_of(mount: Mount) -> CatalogMetadata:
            # Listings are answered while the engine warms up, where the backend can (design §1, cold start).
            if mount.backend.lists_without_engine or self._parts.engine.state is not EngineState.READY:
                quick = mount.backend.quick_metadata(whole.identity)
                if quick is not None:
                    return quick
            return session.metadata(mount)

        return VisibleCatalogs(
            registry=self._parts.catalogs,
            listing_of=listing_of,
            metadata_of=session.metadata,
            visible_of=lambda names: self._parts.authorizer.visible(identity(), names, circumstances),
            columns_of=lambda name, loaded: self._parts.authorizer.visible_columns(
                identity(), name, loaded, circumstances
            ),
            enforced=self._parts.authorizer.enforces,
            refused=replace(circumstances, trail=trail).refused,
            discovered=whole.discovered.mounts,
        )

    def columns_of(self, session: Session) -> Callable[[ObjectName, TableMetadata | ViewMetadata], Sequence[Column]]:
        """Return what tells the columns of tables and views that exist for a session's user (STMT-9, VIEW-4)."""
        running, seen = RunningStatement(new_query_id()), StatementSession(session)
        return Judging(self._context(seen, seen.properties["dialect"], running, StatementWatch())).columns_of

    def _set_deadline(self, session: Session | StatementSession, running: RunningStatement) -> Callable[[], None]:
        own = session.properties["query_max_run_time"]
        bounds = [
            seconds for seconds in (self._parts.limits.timeout_secs, parse_duration(own) if own else 0) if seconds
        ]
        if not bounds:
            return lambda: None
        running.timeout_secs = min(bounds)
        return self._deadlines.after(running.timeout_secs, lambda: running.cancel(EndReason.TIMEOUT))


def _printable(source: str | None) -> str | None:
    """A client may call itself anything; logs have one line for it."""
    if not source:
        return None
    return "".join(character for character in source[:_LONGEST_SOURCE] if character.isprintable())


def _end_each(statements: Iterable[RunningStatement], reason: EndReason) -> None:
    """Tell every one of them, whatever becomes of the others."""
    for running in statements:
        try:
            running.cancel(reason)
        except Exception:  # noqa: BLE001 - the next one, and the session, have to end too
            _log.exception("statement %s could not be ended", running.query_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A statement that was admitted."""

    run: StatementRun
    record: StatementRecord
    ending: Ending


@dataclass(frozen=True, slots=True)
class _Held:
    """Implements `PlanLifecycle`: a plan holds no slot while its client has it."""

    service: QueryService
    session: Session
    options: StatementOptions
    begun: _Begun

    def started(self, start: Callable[[Ending], StatementResult]) -> StatementResult:
        record, running = self.begun.record, self.begun.run.context.running
        record.resume()
        try:
            with self.service.admitted(self.session, running, self.options) as leave:
                begun = replace(self.begun, ending=Ending(leave, record.end))
                with _explained(begun):
                    running.check()
                    return start(begun.ending).watched(record.delivered)
        except SqeError as error:
            record.end(error, None)  # a refusal comes before anybody could finish it
            raise

    def abandoned(self) -> None:
        record, running = self.begun.record, self.begun.run.context.running
        record.resume()
        running.cancel()
        record.end(running.end_error(), None)


@contextmanager
def _explained(begun: _Begun) -> Iterator[None]:
    """Whatever is raised becomes what the client may read, and the statement's end."""
    try:
        yield
    except BaseException as error:
        shown = explained(begun.run.context, error)
        begun.ending.tell(shown)
        if shown is error or not isinstance(error, Exception):
            raise
        raise shown from None
