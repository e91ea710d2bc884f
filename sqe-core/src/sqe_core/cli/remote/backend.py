"""A session on an SQE server as the command line's backend, over Arrow Flight SQL.

A statement takes three calls. GetFlightInfo judges it, and runs it when it has no rows; PollFlightInfo runs what has
rows and tells how far it is, until the first rows are there; DoGet streams them. Each of them ends at once when the
person presses Ctrl-C, and the server ends the statement then.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sqe_core.cli.arguments import ServerOptions
from sqe_core.cli.backend import Backend, Completions, TableKey
from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.login.http import LoginError
from sqe_core.cli.names import NameCache, may_change_names
from sqe_core.cli.remote.client import FlightClient, Interruptible
from sqe_core.cli.remote.errors import ConnectionLostError, SignedOutError
from sqe_core.cli.remote.login import Login, ask_on_terminal, login_of
from sqe_core.cli.remote.names import read_columns, read_names
from sqe_core.cli.remote.renewal import Renewal
from sqe_core.cli.remote.rows import FlightRows
from sqe_core.cli.shell.names import BadNameError, parse_name, quote_name
from sqe_core.engine.port import EngineState, Progress
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as flight_sql
from sqe_core.query.run.result import StatementResult
from sqe_core.spi.errors import ErrorCode, InternalError, QueryCancelledError, SqeError, StartupError, UserError
from sqe_core.sql.statement import ScriptStatement, StatementKind
from sqe_core.sql.text.split import split

_END_SECS = 5.0
_NAMES_SECS = 30.0


class _Running(Interruptible):
    """One statement under way: what the server knows it by, and what it has told of it."""

    def __init__(self) -> None:
        super().__init__()
        self.info: flight.FlightInfo | None = None
        self.progress = Progress()
        self.kind = StatementKind.UTILITY
        self.warnings: Sequence[str] = ()

    def hear(self, app_metadata: bytes) -> None:
        """Take what comes with a poll or with rows; what is not understood is ignored."""
        try:
            told = json.loads(app_metadata)
        except ValueError:
            return
        if not isinstance(told, dict):
            return
        with contextlib.suppress(ValueError):
            self.kind = StatementKind(told.get("statement"))
        if isinstance(warnings := told.get("warnings"), list):
            self.warnings = [str(text) for text in warnings]
        was = self.progress
        self.progress = Progress(
            tasks=_count(told, "tasks", was.tasks),
            tasks_done=_count(told, "tasks_done", was.tasks_done),
            tasks_active=_count(told, "tasks_active", was.tasks_active),
            rows=_count(told, "rows", was.rows),
        )


class RemoteBackend(Backend):
    """A signed-in session.

    Args:
        client: signed in already.
        close: closes the connection.
        login: signs in anew when the session has ended.
        interactive: whether a person sits there. A script goes on with the settings that it made or not at all.
    """

    def __init__(
        self,
        client: FlightClient,
        close: Callable[[], None],
        login: Login,
        *,
        interactive: bool,
    ) -> None:
        self._client = client
        self._close = close
        self._login = login
        self._interactive = interactive
        self._running: _Running | None = None
        self._current = self._read_current()
        self._names = NameCache(lambda: read_names(client), _NAMES_SECS)
        self._renewal = Renewal(client, login.tokens) if login.tokens is not None else None
        if interactive:
            self._names.known()

    @property
    def current(self) -> tuple[str, str]:
        """The session's catalog and schema, as the server last said."""
        return self._current

    def execute(self, sql: str) -> StatementResult:
        """Run one statement; returns with its first rows, or when it is done."""
        running = _Running()
        self._running = running
        with self._errors(running):
            info = running.info = self._client.statement(sql, running)
            if len(info.endpoint) != 1:
                raise InternalError("The server has spread the result in a way that sqe-cli cannot read")
            ticket = info.endpoint[0].ticket
            query_id = info.app_metadata.decode("utf-8", "replace")
            if not pa.ipc.read_schema(pa.py_buffer(info.schema)).names:
                # It is done: neither Ctrl-C nor the end of the session can make it fail any more. Its ticket is used up
                # all the same, and tells what kind of statement it was.
                with contextlib.suppress(SqeError):
                    for _ in self._client.fetch(ticket, Interruptible(), running.hear):
                        pass
                    self._note_change(running.kind)
                self._finish(running)
                affected = info.total_records if info.total_records >= 0 else None
                return StatementResult(
                    query_id=query_id, kind=running.kind, affected_rows=affected, warnings=running.warnings
                )
            self._wait(ticket, running)
            rows = self._client.fetch(ticket, running, running.hear)
        return StatementResult(
            query_id=query_id,
            kind=running.kind,
            schema=rows.schema,
            batches=self._batches(rows, running),
            progress=lambda: running.progress,
            on_close=lambda: self._finish(running),
            on_cancel=self.cancel,
        )

    def cancel(self) -> None:
        """End the running statement here and on the server."""
        running = self._running
        if running is None:
            return
        running.interrupt()
        if running.info is not None:
            with contextlib.suppress(SqeError):
                request = flight.CancelFlightInfoRequest(info=running.info)
                self._client.action("CancelFlightInfo", request, timeout_secs=_END_SECS)

    def progress(self) -> Progress | None:
        running = self._running
        return running.progress if running is not None else None

    def engine_state(self) -> EngineState:
        """The server takes statements at any time, and waits for its engine by itself."""
        return EngineState.READY

    def on_engine_progress(self, listener: Callable[[str, float | None], None]) -> None:
        """There is nothing to report: the engine is the server's."""

    def split(self, script: str) -> Sequence[ScriptStatement]:
        return split(script)

    def completions(self) -> Completions:
        return self._names.known()

    @property
    def signed_in(self) -> str:
        """How people are told who they are here."""
        return self._login.who

    def server_name(self) -> str:
        """Name and version of the server, as far as it says."""
        command = flight_sql.CommandGetSqlInfo(
            info=[flight_sql.FLIGHT_SQL_SERVER_NAME, flight_sql.FLIGHT_SQL_SERVER_VERSION]
        )
        try:
            return " ".join(str(value) for value in self._client.metadata(command).column("value").to_pylist())
        except SqeError:
            return "a server"

    def begin_in(self, catalog: str | None, schema: str | None) -> None:
        """Use the catalog and schema of the command line. Raises SqeError and BadNameError."""
        parts = [".".join(parse_name(name)) for name in (catalog, schema) if name is not None]
        try:
            self._use(*parts)
        except SqeError as error:
            # One name alone may be that of a schema too, which nobody asked for.
            if schema is not None or error.code is not ErrorCode.SCHEMA_NOT_FOUND:
                raise
            raise UserError(
                f"Catalog {catalog} does not exist or you may not see it", code=ErrorCode.CATALOG_NOT_FOUND
            ) from error
        if schema is None and self._current[:1] != tuple(parts):
            raise UserError(f"{catalog} is a schema of the catalog {self._current[0]} too; add --schema")

    def columns(self, table: TableKey) -> tuple[str, ...]:
        return read_columns(self._client, table)

    def close(self) -> None:
        if self._renewal is not None:
            self._renewal.stop()
        self.cancel()
        # In a thread: gRPC has been seen not to keep its own deadline on a machine that was busy.
        goodbye = threading.Thread(target=self._end_session, name="sqe-close", daemon=True)
        goodbye.start()
        goodbye.join(_END_SECS)
        self._close()

    def _end_session(self) -> None:
        with contextlib.suppress(SqeError):
            self._client.action("CloseSession", flight.CloseSessionRequest(), timeout_secs=_END_SECS)

    def _wait(self, ticket: flight.Ticket, running: _Running) -> None:
        """Have a statement run until its first rows are there."""
        descriptor = flight.FlightDescriptor(type=flight.FlightDescriptor.CMD, cmd=ticket.ticket)
        while True:
            poll = self._client.poll(descriptor, running)
            if not poll.HasField("flight_descriptor"):
                return
            running.hear(poll.info.app_metadata)
            descriptor = poll.flight_descriptor

    def _batches(self, rows: FlightRows, running: _Running) -> Iterator[pa.RecordBatch]:
        with self._errors(running):
            yield from rows

    def _finish(self, running: _Running) -> None:
        """Whoever stops reading early ends the call, and with it the statement on the server."""
        running.interrupt()
        if self._running is running:
            self._running = None

    @contextlib.contextmanager
    def _errors(self, running: _Running) -> Iterator[None]:
        try:
            yield
        except SqeError as error:
            if self._running is running:
                self._running = None
            if running.interrupted and not isinstance(error, SignedOutError):
                raise QueryCancelledError("The statement was cancelled", hint=_cancel_hint(running)) from error
            if isinstance(error, SignedOutError):
                raise self._signed_out(error) from error
            raise

    def _signed_out(self, error: SignedOutError) -> SqeError:
        """The session has ended. In a script nothing more can run; a person gets a new one."""
        what = "The session on the server has ended: it expired, or the server was started anew"
        if not self._interactive:
            return UserError(what, code=ErrorCode.SESSION_EXPIRED, hint="settings of the session are lost; run it anew")
        was = self._current
        try:
            self._client.sign_in(self._login)
            self._current = self._read_current()
        except SqeError as failure:
            return UserError(
                f"{what}; a new one cannot be had: {failure.message}",
                code=ErrorCode.SESSION_EXPIRED,
                hint=failure.hint if isinstance(failure, LoginError) else "leave and connect again",
            )
        if self._current != was:
            with contextlib.suppress(SqeError):  # where the new session is instead is told
                self._use(*was)
        return UserError(
            what,
            code=ErrorCode.SESSION_EXPIRED,
            hint=f"you are signed in again, in {'.'.join(self._current)}; settings and temporary views are gone."
            " Run the statement again",
        )

    def _use(self, *parts: str) -> None:
        running = Interruptible()
        info = self._client.statement(f"USE {quote_name(parts)}", running)
        for _ in self._client.fetch(info.endpoint[0].ticket, running, lambda app_metadata: None):
            pass
        self._current = self._read_current()

    def _note_change(self, kind: StatementKind) -> None:
        """Names may have changed by a statement without rows, the current ones too."""
        if may_change_names(kind):
            self._current = self._read_current()
            self._names.expire()

    def _read_current(self) -> tuple[str, str]:
        (body,) = self._client.action("GetSessionOptions", flight.GetSessionOptionsRequest())
        options = flight.GetSessionOptionsResult.FromString(body).session_options
        return options["catalog"].string_value, options["schema"].string_value


def open_remote(server: ServerOptions, environ: Mapping[str, str], *, interactive: bool) -> RemoteBackend:
    """Connect and sign in. Raises UsageError and StartupError: the server cannot be reached, or refuses."""
    from sqe_core.cli import logs
    from sqe_core.cli.remote.channel import explain, open_channel
    from sqe_core.engine.spark.options import default_cache_dir

    logs.configure(environ, default_cache_dir(environ) / "logs" / "sqe-cli.log")
    try:
        login = login_of(server, environ, ask_on_terminal)
    except LoginError as error:
        raise StartupError(f"{error.message}{f' ({error.hint})' if error.hint else ''}") from None
    channel, close = open_channel(server)
    client = FlightClient(channel, server.address)
    try:
        client.sign_in(login)
        backend = RemoteBackend(client, close, login, interactive=interactive)
        if server.catalog is not None or server.schema is not None:
            backend.begin_in(server.catalog, server.schema)
    except BadNameError as error:
        close()
        raise UsageError(str(error)) from error
    except ConnectionLostError as error:
        close()
        raise StartupError(f"cannot connect to {server.address}: {explain(server) or error.message}") from error
    except SqeError as error:
        close()
        hint = error.hint
        if isinstance(error, SignedOutError) and login.header is None:
            hint = "log in with --login, or with -u USER"
        raise StartupError(f"{server.address}: {error}{f' ({hint})' if hint else ''}") from error
    except BaseException:
        close()
        raise
    return backend


def _cancel_hint(running: _Running) -> str | None:
    """Before the server has answered nobody knows how far a statement got."""
    return None if running.info is not None else "if it changes something, look whether it had done so already"


def _count(told: dict[str, Any], name: str, otherwise: int) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else otherwise
