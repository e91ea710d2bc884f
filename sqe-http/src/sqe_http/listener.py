"""A small HTTP listener: for probes and scrapers, and for a browser's way back to a login.

It stands open to whoever reaches the port, so everything that a client can make it hold is bounded before anything of
a request is looked at (LIM-2): connections in all and per address, the bytes of the head, the time of the whole
exchange. One request per connection, no bodies, GET and HEAD only. The standard library's `http.server` parses and
answers; a web framework would bring keep-alive, bodies and an event loop, which is what nobody needs here.
"""

from __future__ import annotations

import hmac
import io
import json
import logging
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from types import MappingProxyType
from typing import Any

# Below the server's own logger, whose level SQE_LOG sets; other libraries only warn.
_log = logging.getLogger("sqe_core.http")

_ALLOWED = "GET, HEAD"
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)

    @classmethod
    def of_text(cls, text: str, status: int = 200) -> HttpAnswer:
        return cls(status=status, body=f"{text}\n".encode())

    @classmethod
    def of_json(cls, value: object, status: int = 200) -> HttpAnswer:
        return cls(status=status, body=f"{json.dumps(value)}\n".encode(), content_type="application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What a route is asked; names of headers are in lower case."""

    path: str
    query: str
    headers: Mapping[str, str]


Route = Callable[[HttpRequest], HttpAnswer]
"""Answers a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBounds:
    """What one listener may be made to hold."""

    connections: int = 64
    connections_per_address: int = 16
    head_bytes: int = 32_768
    head_secs: float = 5.0
    answer_secs: float = 10.0


class HttpListener:
    """Serves a few routes on one port, each connection in a thread of its own.

    Args:
        name: for the log and for thread names.
        host: the address to listen on.
        port: the port, 0 for any free one.
        routes: what is answered, by path.
        tls: None for plain HTTP.
        bearer: what every request must carry as `Authorization: Bearer …`; None lets everybody in.
        bounds: what clients can make it hold.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        routes: Mapping[str, Route],
        *,
        tls: ListenerTls | None = None,
        bearer: str | None = None,
        bounds: HttpBounds | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.secure = tls is not None
        self._routes = routes
        self._tls = tls
        self._bearer = bearer
        self.bounds = bounds or HttpBounds()
        self._server: _Server | None = None

    def start(self) -> None:
        """Bind and begin to serve. Raises ListenError when the port is taken."""
        try:
            server = _Server(self)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ListenError(f"Cannot listen on {self.host}:{self.port} ({self.name}): {reason}") from error
        self.port = server.server_address[1]
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.1,), name=f"sqe-{self.name}", daemon=True).start()

    def stop(self) -> None:
        """Listen no more. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """Answer a request whose method was allowed."""
        if self._bearer is not None and not _carries(request.headers, self._bearer):
            return HttpAnswer(
                status=HTTPStatus.UNAUTHORIZED, body=b"unauthorized\n", headers={"WWW-Authenticate": "Bearer"}
            )
        route = self._routes.get(request.path)
        if route is None:
            return HttpAnswer.of_text("not found", HTTPStatus.NOT_FOUND)
        try:
            return route(request)
        except Exception:  # noqa: BLE001 - the request boundary: whoever asks learns nothing of it (ERR-1)
            _log.exception("the %s listener could not answer %s", self.name, request.path)
            return HttpAnswer.of_text("internal error", HTTPStatus.INTERNAL_SERVER_ERROR)

    def encrypted(self, connection: socket.socket) -> socket.socket:
        """Shake hands, when this listener speaks TLS."""
        return connection if self._tls is None else self._tls.context().wrap_socket(connection, server_side=True)


class ListenError(OSError):
    """A listener cannot start; its text says why."""


class ListenerTls:
    """The TLS of a listener, 1.2 or later (OBS-7); a renewed certificate counts for the next connection.

    Args:
        cert_file: the chain.
        key_file: its key.
        client_ca_file: whose certificates clients need; None asks for none.
    """

    def __init__(self, cert_file: Path, key_file: Path, client_ca_file: Path | None = None) -> None:
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_ca_file = client_ca_file
        self._lock = threading.Lock()
        try:
            self._stamp = self._changed_at()
            self._context = self._load()
        except OSError as error:  # ssl.SSLError is one
            raise ListenError(f"The TLS files cannot be used: {error.strerror or error}") from error

    def context(self) -> ssl.SSLContext:
        """Return what connections are encrypted with from now on."""
        with self._lock:
            try:
                stamp = self._changed_at()
                if stamp != self._stamp:
                    self._stamp = stamp
                    self._context = self._load()
            except OSError as error:
                _log.error("the new certificate cannot be used, the old one stays: %s", error.strerror or error)
            return self._context

    def _changed_at(self) -> tuple[int, ...]:
        files = (self._cert_file, self._key_file, self._client_ca_file)
        return tuple(file.stat().st_mtime_ns for file in files if file is not None)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._cert_file, self._key_file)
        if self._client_ca_file is not None:
            context.load_verify_locations(self._client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _carries(headers: Mapping[str, str], bearer: str) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given, wanted = token.strip().encode("utf-8", "replace"), bearer.encode()
    return hmac.compare_digest(given, wanted) and scheme.lower() == "bearer"


class _Server(TCPServer):
    """Accepts connections, as many as the bounds allow."""

    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, listener: HttpListener) -> None:
        self.listener = listener
        self.address_family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()
        super().__init__((listener.host, listener.port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        address = str(client_address[0])
        bounds = self.listener.bounds
        with self._lock:
            full = self._open.total() >= bounds.connections or self._open[address] >= bounds.connections_per_address
            if not full:
                self._open[address] += 1
        if full:
            self.shutdown_request(request)
            return
        worker = threading.Thread(
            target=self._serve, args=(request, address), name=f"sqe-{self.listener.name}-request", daemon=True
        )
        try:
            worker.start()
        except RuntimeError:  # no more threads
            self._forget(address)
            self.shutdown_request(request)

    def _serve(self, connection: socket.socket, address: str) -> None:
        try:
            connection.settimeout(self.listener.bounds.head_secs)
            connection = self.listener.encrypted(connection)
            _Handler(connection, address, self)
        except (OSError, ValueError):
            pass  # whoever asked went away, was too slow, or speaks something else
        finally:
            self.shutdown_request(connection)
            self._forget(address)

    def _forget(self, address: str) -> None:
        with self._lock:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a connection to the %s listener failed", self.listener.name, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One request. Its head is read whole, within the bounds, before it is parsed."""

    server: _Server
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(message)s\n"

    def version_string(self) -> str:
        """Which version it is, nobody outside learns from this header."""
        return "SQE"

    def handle(self) -> None:
        head = self._read_head()
        if head is None:
            return
        self.connection.settimeout(self.server.listener.bounds.answer_secs)
        self.rfile.close()
        self.rfile = io.BytesIO(head)
        self.close_connection = True
        self.handle_one_request()

    def _read_head(self) -> bytes | None:
        """Return the bytes up to the empty line; None when there is nobody to answer."""
        bounds = self.server.listener.bounds
        deadline = time.monotonic() + bounds.head_secs
        head = b""
        while True:
            for end in (b"\r\n\r\n", b"\n\n"):
                at = head.find(end)
                if at >= 0:
                    return head[: at + len(end)]
            left = deadline - time.monotonic()
            if len(head) > bounds.head_bytes or left <= 0:
                self.request_version, self.requestline, self.command = "HTTP/1.0", "", ""
                too_large = len(head) > bounds.head_bytes
                self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if too_large else HTTPStatus.REQUEST_TIMEOUT)
                return None
            self.connection.settimeout(left)
            try:
                received = self.connection.recv(8192)
            except TimeoutError:
                continue
            if not received:
                return None
            head += received

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Any other method, whatever it is called: `http.server` looks for `do_<method>`."""
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def _refuse_method(self) -> None:
        answer = HttpAnswer.of_text("method not allowed", HTTPStatus.METHOD_NOT_ALLOWED)
        self._send(answer, {"Allow": _ALLOWED})

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        path, _, query = self.path.partition("?")
        self._send(self.server.listener.answer(HttpRequest(path=path, query=query, headers=headers)))

    def _send(self, answer: HttpAnswer, more: Mapping[str, str] = _NO_HEADERS) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        for name, value in {**answer.headers, **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every second: nothing of them is logged."""
