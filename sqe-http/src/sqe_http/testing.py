"""Servers for tests, in this process and on loopback: one that answers as well or as badly as a test wants."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit


def make_certificate(folder: Path, *names: str, subject: str = "localhost") -> tuple[str, str]:
    """Make a certificate that is its own authority.

    Args:
        folder: where the files go.
        names: whom it is for, as in `DNS:localhost` and `IP:127.0.0.1`.
        subject: its common name, and that of the files.

    Returns:
        Its file, and that of its key.
    """
    cert, key = str(folder / f"{subject}.pem"), str(folder / f"{subject}.key")
    made = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={subject}"
    more = ["-addext", f"subjectAltName={','.join(names)}", "-keyout", key, "-out", cert]
    openssl = shutil.which("openssl") or "openssl"
    subprocess.run([openssl, *made.split(), *more], check=True, capture_output=True)
    return cert, key


class QuietHandler(BaseHTTPRequestHandler):
    """Answers without a word in the test's output; connections stay open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))


class Loopback:
    """Answers with a handler until `stop`; `url` is where.

    Args:
        handler: of each connection.
        certificate: chain and key, for TLS.
    """

    def __init__(self, handler: type[QuietHandler], certificate: tuple[str, str] | None = None) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*certificate)
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is sent: bytes, or anything else as JSON.

    `wait_secs` passes before it, `drip_secs` before each byte of the body; `raw` is sent in place of an answer, after
    which the connection ends.
    """

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_secs: float = 0
    drip_secs: float = 0
    raw: bytes | None = None

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was received; names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> Mapping[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def form(self) -> Mapping[str, str]:
        """The body as a form, in which nothing stands twice."""
        pairs = parse_qsl(self.body.decode(), keep_blank_values=True)
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    @property
    def document(self) -> Any:
        """The body as JSON, None when there is none."""
        return json.loads(self.body) if self.body else None

    @property
    def bearer(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


class HttpFake(Loopback):
    """Remembers what it was asked, and answers with `honest` unless a test wants something else.

    Args:
        certificate: chain and key, for TLS.
    """

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.reply: Callable[[Request], Reply | None] | None = None
        """Takes the place of `honest`, where it returns something."""
        self._ending = threading.Event()
        super().__init__(_handler(self), certificate)

    def honest(self, request: Request) -> Reply:
        return Reply(status=404)

    def usual_headers(self) -> Mapping[str, str]:
        """What stands in every answer; an empty one is left out."""
        return {}

    def misbehave(self, path: str = "", **reply: Any) -> None:
        """Answer every path that ends so with this `Reply`."""
        self.reply = lambda request: Reply(**reply) if request.path.endswith(path) else None

    def asked(self, path: str) -> int:
        """How often a path that ends so was asked for."""
        return sum(request.path.endswith(path) for request in self.requests)

    def wait(self, secs: float) -> bool:
        """Pause, and say whether the test has ended meanwhile."""
        return self._ending.wait(secs)

    def stop(self) -> None:
        """Stop listening, and leave nobody waiting."""
        self._ending.set()
        super().stop()


def _handler(fake: HttpFake) -> type[QuietHandler]:
    class Handler(QuietHandler):
        timeout = 10

        def setup(self) -> None:
            fake.connections += 1
            super().setup()

        def _answer(self) -> None:
            request = Request(
                method=self.command,
                target=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.read_body(),
            )
            if fake.wait(0):
                self.close_connection = True
                return
            fake.requests.append(request)
            reply = (fake.reply(request) if fake.reply else None) or fake.honest(request)
            with suppress(OSError):
                self._send(reply)

        def _send(self, reply: Reply) -> None:
            fake.wait(reply.wait_secs)
            if reply.raw is not None:
                self.close_connection = True
                self.wfile.write(reply.raw)
                return
            self.send_response_only(reply.status)
            usual = {"Date": self.date_time_string(), "Content-Length": str(len(reply.content))}
            for name, value in {**usual, **fake.usual_headers(), **reply.headers}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            if not reply.drip_secs:
                self.wfile.write(reply.content)
                return
            for byte in reply.content:
                if fake.wait(reply.drip_secs):
                    return
                self.wfile.write(bytes([byte]))

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer

    return Handler
