"""A server on loopback that answers like OPA, or as badly as a test wants."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from sqe_policy_opa.config import OpaConfig
from sqe_policy_opa.enforcer import OpaEnforcer


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the server sends. `drip_secs` waits before each byte of the body; `raw` is sent in place of an answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_secs: float = 0
    drip_secs: float = 0
    raw: bytes | None = None


def result(value: Any, **envelope: Any) -> Reply:
    """An answer of OPA."""
    return Reply(body=json.dumps({"result": value, **envelope}).encode())


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the server received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class FakeOpa:
    """Decides with Python functions, keeps documents, and tells what it was asked."""

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        self.requests: list[Request] = []
        self.documents: dict[str, Any] = {}
        self.connections = 0
        self.reply: Callable[[Request], Reply] | None = None
        """Takes the place of everything below."""
        self.one: Callable[[Any], Any] = one
        self.all: Callable[[Any], Any] = all_of_them
        self._ending = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        scheme = "http"
        if certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*certificate)
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.port: int = self._server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def config(self, **keys: Any) -> OpaConfig:
        """Settings for this server: patient, without retries."""
        return OpaConfig(**{"url": self.url, "timeout_secs": 20, "max_retries": 0, **keys})

    def misbehave(self, **reply: Any) -> None:
        """Answer everything with this `Reply`."""
        self.reply = lambda request: Reply(**reply)

    def stop(self) -> None:
        """Stop listening, and leave nobody waiting."""
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def setup(self) -> None:
                fake.connections += 1
                super().setup()

            def log_message(self, *args: Any) -> None:
                pass

            def _answer(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Request(
                    method=self.command,
                    path=self.path,
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=json.loads(raw) if raw else None,
                )
                if fake._ending.is_set():
                    self.close_connection = True
                    return
                fake.requests.append(request)
                reply = (fake.reply or fake.honest)(request)
                with suppress(OSError):
                    self._send(reply)

            def _send(self, reply: Reply) -> None:
                fake._ending.wait(reply.wait_secs)
                if reply.raw is not None:
                    self.close_connection = True
                    self.wfile.write(reply.raw)
                    return
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if not reply.drip_secs:
                    self.wfile.write(reply.body)
                    return
                for byte in reply.body:
                    if fake._ending.wait(reply.drip_secs):
                        return
                    self.wfile.write(bytes([byte]))

            do_GET = do_POST = do_PUT = do_DELETE = _answer

        return Handler

    def honest(self, request: Request) -> Reply:
        """Answer as OPA does."""
        keys = [unquote(part) for part in request.path.removeprefix("/v1/data/").split("/")]
        match request.method, keys:
            case "POST", ["sqe", "policy", "evaluate"]:
                return result(self.one(request.body["input"]))
            case "POST", ["sqe", "authz"]:
                return result(self.all(request.body["input"]), decision_id="d-1")
            case "POST", _:
                return Reply(body=b"{}")
            case "PUT", ["sqe", "grants", table, role]:
                self.documents.setdefault(table, {})[role] = request.body
                return Reply(status=204)
            case "DELETE", ["sqe", "grants", table, role]:
                gone = self.documents.get(table, {}).pop(role, None)
                return Reply(status=404, body=b"{}") if gone is None else Reply(status=204)
            case "GET", ["sqe", "grants"]:
                return result(self.documents) if self.documents else Reply(body=b"{}")
            case "GET", ["sqe", "grants", table] if '"' in table:
                return Reply(status=500, body=b'{"code": "internal_error"}')  # as OPA 1.21 does
            case "GET", ["sqe", "grants", table]:
                return result(self.documents[table]) if table in self.documents else Reply(body=b"{}")
        return Reply(status=404, body=b"{}")


def one(question: Any) -> Any:
    """`people` may be read, `secrets` may not, `clients` with restrictions."""
    resource = question["resource"]
    if resource["catalog"] != "lake":
        return {"allow": False}
    match resource["name"]:
        case "clients":
            return {"allow": True, "row_filters": ["id > 0"], "column_masks": {"name": "hash"}}
        case "people" | None:
            return {"allow": True}
    return {"allow": False}


def all_of_them(question: Any) -> Any:
    """The same for all tables at once."""
    entries: dict[str, Any] = {}
    for table in question["tables"]:
        key = ".".join(part for part in (table["catalog"], table["schema"], table["table"]) if part)
        answer = one({"resource": {"catalog": table["catalog"], "name": table["table"]}})
        if answer["allow"]:
            entries[key] = {
                "row_filters": answer.get("row_filters", []),
                "masks": answer.get("column_masks", {}),
            }
    return {"per_table": entries}


class TurnedClock:
    """A monotonic clock that a test turns."""

    def __init__(self) -> None:
        self.offset = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.offset


@pytest.fixture
def opa() -> Iterator[FakeOpa]:
    """The server."""
    fake = FakeOpa()
    yield fake
    fake.stop()


@pytest.fixture
def clock() -> TurnedClock:
    """The clock of breaker and listings."""
    return TurnedClock()


@pytest.fixture
def enforcers() -> Iterator[list[OpaEnforcer]]:
    """What a test puts here is closed at its end."""
    made: list[OpaEnforcer] = []
    yield made
    for enforcer in made:
        enforcer.close()


@pytest.fixture
def fake_opa() -> Iterator[Callable[..., FakeOpa]]:
    """Makes further servers."""
    made: list[FakeOpa] = []

    def make(certificate: tuple[str, str] | None = None) -> FakeOpa:
        made.append(FakeOpa(certificate))
        return made[-1]

    yield make
    for fake in made:
        fake.stop()


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """Makes certificates that are their own authority, each for an alternative name."""

    def make(alternative_name: str) -> tuple[str, str]:
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.fail("openssl is needed to make a certificate")
        name = alternative_name.replace(":", "-")
        cert, key = str(tmp_path / f"{name}.pem"), str(tmp_path / f"{name}.key")
        made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=opa"
        arguments = [*made.split(), "-addext", f"subjectAltName={alternative_name}", "-keyout", key, "-out", cert]
        subprocess.run([openssl, *arguments], check=True, capture_output=True)
        return cert, key

    return make
