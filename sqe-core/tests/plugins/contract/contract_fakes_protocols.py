"""Protocols to try their contract on: JSON lines; read contract_fakes.py first."""

from __future__ import annotations

import json
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import unquote_plus

from contract_variants import breaks, given, makes

from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    ClientInfo,
    Credential,
    Endpoint,
    NoConfig,
    ProtocolFactory,
    ProtocolServer,
    QueryGateway,
    Secret,
    SqeError,
    StartupError,
    Statement,
    StatementRequest,
    UserError,
)
from sqe_core.testing import ProtocolContract
from sqe_core.testing.protocol import soon


class Line(socketserver.StreamRequestHandler):
    """A question of one line; a key, rows and an end of one line each."""

    server: LineServer

    def handle(self) -> None:
        owner = self.server.owner
        asked = json.loads(self.rfile.readline() or b"{}")
        if "cancel" in asked:
            owner.cancel(asked["cancel"])
            return
        try:
            owner.answer(asked, self)
        except SqeError as error:
            self.say(error=error.message)
        except OSError:
            pass
        except Exception as error:
            self.say(error=owner.unexpected(error))

    def say(self, **words: Any) -> None:
        self.wfile.write(json.dumps(words).encode() + b"\n")

    @property
    def gone(self) -> bool:
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class LineServer(socketserver.ThreadingTCPServer):
    owner: LineProtocol
    daemon_threads = True
    block_on_close = False


class LineProtocol(ProtocolServer):
    """A protocol that keeps the contract."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.server: LineServer | None = None
        self.running: dict[str, Statement] = {}

    def start(self, gateway: QueryGateway) -> Endpoint:
        self.gateway = gateway
        try:
            self.server = LineServer((self.context.bind_host, self.context.port), Line)
        except OSError as exc:
            raise StartupError(f"port {self.context.port} is taken") from exc
        self.server.owner = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        host, port = self.server.server_address[:2]
        return Endpoint(protocol="line", host=str(host), port=port)

    def stop(self, drain_secs: float) -> None:
        server, self.server = self.server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            self.drain(drain_secs)

    def drain(self, secs: float) -> None:
        deadline = time.monotonic() + secs
        while self.running and time.monotonic() < deadline:
            time.sleep(0.01)

    def answer(self, asked: Any, line: Line) -> None:
        client = ClientInfo(protocol="line", address=self.address(line))
        session = self.gateway.authenticate(self.credential(asked), client)
        with session.begin(StatementRequest(sql=self.text(asked["sql"]))) as statement:
            self.run(statement, line)

    def run(self, statement: Statement, line: Line) -> None:
        key = secrets.token_hex(8)
        self.running[key] = statement
        try:
            line.say(key=key)
            threading.Thread(target=self.watch, args=(key, statement, line), daemon=True).start()
            statement.start()
            for row in self.rows(statement):
                line.say(row={name: self.value(value) for name, value in row.items()})
            line.say(end=True)
        finally:
            del self.running[key]

    def rows(self, statement: Statement) -> Iterator[dict[str, Any]]:
        for batch in statement:
            yield from batch.to_pylist()

    def watch(self, key: str, statement: Statement, line: Line) -> None:
        while key in self.running:
            if line.gone:
                statement.cancel()
                return
            time.sleep(0.02)

    def cancel(self, key: str) -> None:
        if key in self.running:
            self.running[key].cancel()

    def credential(self, asked: Any) -> Credential:
        if "token" in asked:
            return BearerCredential(token=Secret(asked["token"]))
        return BasicCredential(username=asked["user"], password=Secret(self.password(asked["password"])))

    def address(self, line: Line) -> str:
        return str(line.client_address[0])

    def text(self, sql: str) -> str:
        return sql

    def password(self, password: str) -> str:
        return password

    def value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    def unexpected(self, error: Exception) -> str:
        return "Internal error"


class LineConnection:
    def __init__(self, endpoint: Endpoint, credential: Credential) -> None:
        self.address = endpoint.host, endpoint.port
        self.login: dict[str, str] = {}
        if isinstance(credential, BearerCredential):
            self.login["token"] = credential.token.reveal()
        elif isinstance(credential, BasicCredential):
            self.login.update(user=credential.username, password=credential.password.reveal())
        self.key = ""

    def rows(self, sql: str) -> Iterator[dict[str, Any]]:
        self.socket = socket.create_connection(self.address, timeout=30)
        with self.socket, self.socket.makefile("rwb") as stream:
            stream.write(json.dumps({**self.login, "sql": sql}).encode() + b"\n")
            stream.flush()
            while "end" not in (said := json.loads(stream.readline() or b'{"error": "gone"}')):
                if "error" in said:
                    raise RuntimeError(said["error"])
                self.key = said.get("key", self.key)
                if "row" in said:
                    yield said["row"]

    def cancel(self) -> None:
        assert soon(lambda: bool(self.key))
        with socket.create_connection(self.address, timeout=30) as other:
            other.sendall(json.dumps({"cancel": self.key}).encode() + b"\n")
            other.recv(1)

    def close(self) -> None:
        if hasattr(self, "socket"):
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class LineClient:
    def connect(self, endpoint: Endpoint, credential: Credential) -> LineConnection:
        return LineConnection(endpoint, credential)


class TestLine(ProtocolContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"basic", "bearer"})
    protocol_class: type[LineProtocol] = LineProtocol

    factory = makes(ProtocolFactory, "protocol_class", lambda made, context: made(context), "line")
    config = given(NoConfig)
    client = given(LineClient)


@breaks(TestLine, "test_unexpected_error_stays_inside")
class TellsEverything(LineProtocol):
    def unexpected(self, error: Exception) -> str:
        return repr(error)


@breaks(TestLine, "test_text_arrives_unchanged")
class TrimsText(LineProtocol):
    def text(self, sql: str) -> str:
        return " ".join(sql.split())


@breaks(TestLine, "test_basic_login", "test_bad_login_is_refused")
class LetsEverybodyIn(LineProtocol):
    def credential(self, asked: Any) -> Credential:
        return BearerCredential(token=self.gateway.bearer)  # type: ignore[attr-defined]


@breaks(TestLine, "test_bearer_login")
class TokensAreNames(LineProtocol):
    def credential(self, asked: Any) -> Credential:
        if "token" in asked:
            return BasicCredential(username="alice", password=Secret("wonderland"))
        return super().credential(asked)


@breaks(TestLine, "test_odd_names_and_passwords")
class ReadsForms(LineProtocol):
    def password(self, password: str) -> str:
        return unquote_plus(password)


@breaks(TestLine, "test_error_arrives")
class HidesErrors(LineProtocol):
    def run(self, statement: Statement, line: Line) -> None:
        try:
            super().run(statement, line)
        except UserError:
            raise UserError("Query failed") from None


@breaks(TestLine, "test_many_rows")
class LeavesResultsOpen(LineProtocol):
    def answer(self, asked: Any, line: Line) -> None:
        client = ClientInfo(protocol="line", address=self.address(line))
        session = self.gateway.authenticate(self.credential(asked), client)
        self.run(session.begin(StatementRequest(sql=asked["sql"])), line)


@breaks(TestLine, "test_client_is_described")
class HidesTheClient(LineProtocol):
    def address(self, line: Line) -> str:
        return ""


@breaks(TestLine, "test_types")
class Rounds(LineProtocol):
    def value(self, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else super().value(value)


@breaks(TestLine, "test_no_rows")
class WantsRows(LineProtocol):
    def rows(self, statement: Statement) -> Iterator[dict[str, Any]]:
        rows = iter(super().rows(statement))
        yield next(rows, None) or {}["no rows"]
        yield from rows


@breaks(TestLine, "test_two_clients_at_once")
class OneClientAtATime(LineProtocol):
    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.free = threading.Lock()

    def run(self, statement: Statement, line: Line) -> None:
        if not self.free.acquire(timeout=5):
            raise UserError("busy")
        with statement:
            try:
                super().run(statement, line)
            finally:
                self.free.release()


@breaks(TestLine, "test_two_clients_at_once")
class EndsTheirNeighbours(LineProtocol):
    def answer(self, asked: Any, line: Line) -> None:
        super().answer(asked, line)
        for other in list(self.running.values()):
            other.cancel()


@breaks(TestLine, "test_cancel")
class GoesOn(LineProtocol):
    def cancel(self, key: str) -> None:
        pass


@breaks(TestLine, "test_who_is_gone_runs_nothing")
class NeverLooks(LineProtocol):
    def watch(self, key: str, statement: Statement, line: Line) -> None:
        pass


@breaks(TestLine, "test_slow_reader")
class Collects(LineProtocol):
    def rows(self, statement: Statement) -> Iterator[dict[str, Any]]:
        return iter(list(super().rows(statement)))


@breaks(TestLine, "test_drains")
class HangsUp(LineProtocol):
    def drain(self, secs: float) -> None:
        for statement in list(self.running.values()):
            statement.cancel()


@breaks(TestLine, "test_drains", "test_stops_and_frees_the_port")
class NeverStops(LineProtocol):
    def stop(self, drain_secs: float) -> None:
        self.drain(drain_secs)


@breaks(TestLine, "test_taken_port_is_a_clear_error")
class HidesThePort(LineProtocol):
    def start(self, gateway: QueryGateway) -> Endpoint:
        try:
            return super().start(gateway)
        except StartupError:
            raise StartupError("cannot start") from None
