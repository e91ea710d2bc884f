"""A protocol after the manner of Trino: a statement is posted, its pages are fetched one by one, DELETE cancels it.

    POST   /v1/statement                 the text; the client's names, settings and prepared statements are headers
    GET    /v1/statement/<id>/<page>     rows, and where the next ones are; the last page may be fetched again
    DELETE /v1/statement/<id>/<page>

Clients keep their state: a statement sees what its headers say, and answers with headers what it changed.
"""

from __future__ import annotations

import base64
import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    ClientInfo,
    ClientState,
    Credential,
    Endpoint,
    GatewaySession,
    InvalidCredentialsError,
    NoCredential,
    ProtocolContext,
    ProtocolFactory,
    ProtocolServer,
    QueryGateway,
    Secret,
    ShuttingDownError,
    SqeError,
    SqePlugin,
    StartupContext,
    StartupError,
    Statement,
    StatementRequest,
    hookimpl,
    setting,
)

_PATH = "/v1/statement"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementsConfig:
    """`[protocols.statements]`, beside `port`."""

    page_rows: int = setting(1000, "rows in a page at most", minimum=1)
    wait_secs: float = setting(1, "how long a page without news waits", minimum=0)


class Query:
    """A statement on its way; its pages are made when they are asked for."""

    def __init__(self, session: GatewaySession, statement: Statement, rows: int) -> None:
        self.id, self.owner = secrets.token_urlsafe(18), session.identity.key
        self.statement = statement
        self.touched = time.monotonic()
        self.ended = False
        self._rows = rows
        self._lock = threading.Lock()
        self._page = 0
        self._last: dict[str, Any] = {}
        self._error: Exception | None = None
        self._left: Iterator[list[Any]] = iter(())
        self._started = threading.Event()
        threading.Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        try:
            self.statement.start()
            self._left = self._cut()
        except Exception as error:  # it is told with the next page
            self._error = error
        self._started.set()

    def _cut(self) -> Iterator[list[Any]]:
        for batch in self.statement:
            for start in range(0, batch.num_rows, self._rows):
                columns = [column.to_pylist() for column in batch.slice(start, self._rows).columns]
                yield [[_plain(value) for value in row] for row in zip(*columns, strict=True)]

    def page(self, number: int, wait_secs: float) -> dict[str, Any]:
        """Return a page: the next one, or the last one once more."""
        self._started.wait(wait_secs)
        with self._lock:
            self.touched = time.monotonic()
            if number != self._page and number == self._page - 1:
                return self._last
            if number != self._page:
                raise KeyError(number)
            if not self._started.is_set():
                return {"id": self.id, "stats": self._stats(), "page": number}
            self._last = self._next()
            self._page += 1
            return self._last

    def _next(self) -> dict[str, Any]:
        page: dict[str, Any] = {"id": self.id}
        try:
            if self._error is not None:
                raise self._error
            if self.statement.schema is not None:
                page["columns"] = [{"name": each.name, "type": each.type.text} for each in self.statement.columns]
            rows = next(self._left, None)
            if rows is not None:
                page["data"] = rows
                page["page"] = self._page + 1
            else:
                page["updateType"] = self.statement.statement_kind
                page["updateCount"] = self.statement.affected_rows
                page["warnings"] = list(self.statement.warnings)
                self.close()
        except Exception as error:  # what is no SqeError stays inside
            page["error"] = _told(error)
            self.close()
        page["stats"] = self._stats()
        return page

    def _stats(self) -> dict[str, Any]:
        progress = self.statement.progress()
        return {"state": progress.state.value, "tasks": progress.tasks, "tasksDone": progress.tasks_done}

    def close(self) -> None:
        """End it."""
        self.ended = True
        self.statement.close()


def _told(error: Exception) -> dict[str, str]:
    if isinstance(error, SqeError):
        return {"code": error.code.name, "message": error.message}
    return {"code": "GENERIC_INTERNAL_ERROR", "message": "Internal error"}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Listener
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        """Begin a statement."""
        self._answer(self._post)

    def do_GET(self) -> None:
        """Fetch a page."""
        self._answer(self._get)

    def do_DELETE(self) -> None:
        """Cancel a statement."""
        self._answer(self._delete)

    def _answer(self, work: Any) -> None:
        try:
            work()
        except InvalidCredentialsError as error:
            self._send(401, {"error": _told(error)}, {"WWW-Authenticate": 'Basic realm="sqe"'})
        except ShuttingDownError as error:
            self._send(503, {"error": _told(error)})
        except KeyError:
            self._send(404, {"error": {"code": "NOT_FOUND", "message": "There is no such statement"}})
        except SqeError as error:
            self._send(200, {"error": _told(error)})
        except OSError:
            self.close_connection = True
        except Exception as error:  # the border
            self._send(500, {"error": _told(error)})

    def _post(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if self.path != _PATH or not 0 < length <= self.server.context.limits.sql_bytes:
            raise KeyError(self.path)
        sql = self.rfile.read(length).decode()
        session = self._session()
        header = self.headers.get
        state = ClientState(
            catalog=_decoded(header("X-Acme-Catalog")),
            schema=tuple(name.split(".")) if (name := _decoded(header("X-Acme-Schema"))) else None,
            properties=_pairs(header("X-Acme-Session")),
            prepared=_pairs(header("X-Acme-Prepared-Statement")),
        )
        request = StatementRequest(
            sql=sql, state=state, source=header("X-Acme-Source"), trace_parent=header("traceparent")
        )
        query = self.server.add(session, request)
        self._page(query, {"id": query.id, "stats": {"state": "queued"}, "page": 0})

    def _get(self) -> None:
        query, number = self._asked()
        self._page(query, query.page(number, self.server.config.wait_secs))

    def _delete(self) -> None:
        query, _ = self._asked()
        query.statement.cancel()
        query.close()
        self._send(204, None)

    def _asked(self) -> tuple[Query, int]:
        _, _, rest = self.path.partition(_PATH + "/")
        name, _, number = rest.partition("/")
        session, query = self._session(), self.server.queries[name]
        # What is somebody else's is answered like what does not exist.
        if query.owner != session.identity.key or not number.isdecimal():
            raise KeyError(name)
        return query, int(number)

    def _session(self) -> GatewaySession:
        client = ClientInfo(
            protocol="statements",
            address=self.client_address[0],
            secure=isinstance(self.connection, ssl.SSLSocket),
            source=self.headers.get("X-Acme-Source"),
            user_agent=self.headers.get("User-Agent"),
        )
        return self.server.gateway.authenticate(_credential(self.headers.get("Authorization")), client)

    def _page(self, query: Query, page: dict[str, Any]) -> None:
        headers = {}
        if (number := page.get("page")) is not None:
            page = {**page, "nextUri": f"{_PATH}/{query.id}/{number}"}
        else:
            changes = query.statement.changes
            if changes.catalog is not None:
                headers["X-Acme-Set-Catalog"] = quote_plus(changes.catalog)
            if changes.schema is not None:
                headers["X-Acme-Set-Schema"] = quote_plus(".".join(changes.schema))
            headers.update({"X-Acme-Set-Session": _listed(changes.set_properties)} if changes.set_properties else {})
            headers.update({"X-Acme-Added-Prepare": _listed(changes.added_prepared)} if changes.added_prepared else {})
        self._send(200, page, headers)

    def _send(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: addresses of statements are secrets."""


def _credential(header: str | None) -> Credential:
    if header is None:
        return NoCredential()
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return BearerCredential(token=Secret(value))
    try:
        username, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        raise InvalidCredentialsError from None
    return BasicCredential(username=username, password=Secret(password))


def _decoded(text: str | None) -> str | None:
    # A plus is a space here, as it is in forms: whoever means one writes %2B.
    return None if text is None else unquote_plus(text)


def _pairs(text: str | None) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in (text or "").split(",") if pair)
    return {unquote_plus(name.strip()): unquote_plus(value.strip()) for name, _, value in pairs}


def _listed(pairs: Any) -> str:
    return ",".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs.items())


class Listener(ThreadingHTTPServer):
    """Accepts connections, and knows what is on its way."""

    block_on_close = False
    daemon_threads = True

    def __init__(self, config: StatementsConfig, context: ProtocolContext) -> None:
        super().__init__((context.bind_host, context.port), Handler)
        self.config, self.context = config, context
        self.gateway: QueryGateway
        self.queries: dict[str, Query] = {}
        self.closing = False
        self.gone = threading.Event()
        threading.Thread(target=self._forget, daemon=True).start()

    def add(self, session: GatewaySession, request: StatementRequest) -> Query:
        """Begin a statement."""
        if self.closing:
            raise ShuttingDownError("The server is shutting down")
        query = Query(session, session.begin(request), self.config.page_rows)
        self.queries[query.id] = query
        return query

    def _forget(self) -> None:
        """Close what nobody fetches."""
        idle = self.context.stream_idle_secs
        while not self.gone.wait(min(1.0, idle / 4)):
            for query in list(self.queries.values()):
                if time.monotonic() - query.touched > idle:
                    query.close()
                    self.queries.pop(query.id, None)

    def drain(self, secs: float) -> None:
        """Let what is on its way be fetched to its end, and close the rest."""
        deadline = time.monotonic() + secs
        self.closing = True
        while time.monotonic() < deadline and any(not query.ended for query in list(self.queries.values())):
            time.sleep(0.02)
        for query in list(self.queries.values()):
            query.close()
        self.gone.set()


class StatementsServer(ProtocolServer):
    """The protocol on one port."""

    def __init__(self, config: StatementsConfig, context: ProtocolContext) -> None:
        self._config, self._context = config, context
        self._listener: Listener | None = None

    def start(self, gateway: QueryGateway) -> Endpoint:
        """Bind, and serve in threads."""
        host, port, tls = self._context.bind_host, self._context.port, self._context.tls
        try:
            listener = self._listener = Listener(self._config, self._context)
        except OSError as error:
            raise StartupError(f"Cannot listen on {host}:{port} (statements): {error.strerror}") from error
        if tls is not None:
            secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            secure.load_cert_chain(tls.cert_file, tls.key_file)
            listener.socket = secure.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
        listener.gateway = gateway
        threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True).start()
        return Endpoint(protocol="statements", host=host, port=listener.server_address[1], secure=tls is not None)

    def stop(self, drain_secs: float) -> None:
        """Begin nothing new, let clients fetch what is theirs, close."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.drain(drain_secs)
            listener.shutdown()
            listener.server_close()


class StatementsFactory(ProtocolFactory[StatementsConfig]):
    """Makes the protocol `statements`."""

    kind = "statements"
    config_type = StatementsConfig

    def create(self, name: str, config: StatementsConfig, context: ProtocolContext) -> StatementsServer:
        """Make it."""
        return StatementsServer(config, context)


class StatementsPlugin(SqePlugin):
    """Registers it."""

    @hookimpl
    def sqe_provide_protocols(self, context: StartupContext) -> Sequence[ProtocolFactory[Any]]:
        """Contribute `statements`."""
        return (StatementsFactory(),)
