"""A protocol after the manner of PostgreSQL: version 3 of its wire, passwords, simple queries, cancel requests."""

from __future__ import annotations

import secrets
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqe_core.spi import (
    BasicCredential,
    ClientInfo,
    Endpoint,
    ErrorCode,
    GatewaySession,
    ProtocolContext,
    ProtocolFactory,
    ProtocolServer,
    QueryGateway,
    Secret,
    SqeError,
    SqePlugin,
    StartupContext,
    StartupError,
    Statement,
    StatementRequest,
    hookimpl,
    setting,
)

_MOST_BYTES = 1 << 20  # of one message of a client
_SSL, _CANCEL, _VERSION_3 = 80877103, 80877102, 196608
_OIDS = {
    "bool": 16,
    "int8": 21,
    "int16": 21,
    "int32": 23,
    "int64": 20,
    "float": 700,
    "double": 701,
    "date32[day]": 1082,
    "binary": 17,
}
_STATES = {
    ErrorCode.TABLE_NOT_FOUND: "42P01",
    ErrorCode.COLUMN_NOT_FOUND: "42703",
    ErrorCode.SYNTAX_ERROR: "42601",
    ErrorCode.ACCESS_DENIED: "42501",
    ErrorCode.QUERY_CANCELLED: "57014",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireConfig:
    """`[protocols.wire]`, beside `port`."""

    server_version: str = setting("14.0", "what clients are told, who choose their SQL by it")


class Closed(Exception):
    """The client has gone."""


class Connection(socketserver.BaseRequestHandler):
    """One connection, one session."""

    server: Listener

    def handle(self) -> None:
        """Serve it until its end."""
        self.running: Statement | None = None
        self.began: str | None = None
        try:
            session = self._start()
            if session is not None:
                self._serve(session)
        except (Closed, OSError):
            pass
        finally:
            self.server.leave(self)

    # The start

    def _start(self) -> GatewaySession | None:
        code, body = self._startup()
        if code == _SSL:
            tls = self.server.tls
            self.request.sendall(b"S" if tls else b"N")
            if tls:
                self.request = tls.wrap_socket(self.request, server_side=True)
            code, body = self._startup()
        if code == _CANCEL:
            self.server.cancel(struct.unpack(">II", body[:8]))
            return None
        if code != _VERSION_3:
            raise Closed
        words = body.split(b"\0")
        asked = dict(zip(words[::2], words[1::2], strict=False))
        self._send(b"R", struct.pack(">I", 3))  # a password, please
        kind, password = self._receive()
        if kind != b"p":
            raise Closed
        try:
            credential = BasicCredential(
                username=asked.get(b"user", b"").decode(), password=Secret(password.rstrip(b"\0").decode())
            )
            client = ClientInfo(
                protocol="wire",
                address=self.client_address[0],
                secure=isinstance(self.request, ssl.SSLSocket),
                source=asked.get(b"application_name", b"").decode() or None,
                connection=secrets.token_hex(8),
            )
            session = self.server.gateway.authenticate(credential, client)
        except (SqeError, UnicodeDecodeError) as error:
            self._fail(error, "28P01")
            raise Closed from error
        self.client = client
        self.key = self.server.join(self)
        self._send(b"R", struct.pack(">I", 0))
        for name, value in (
            ("server_version", self.server.config.server_version),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("integer_datetimes", "on"),
            ("TimeZone", "UTC"),
        ):
            self._send(b"S", _text(name) + _text(value))
        self._send(b"K", struct.pack(">II", *self.key))
        return session

    def _startup(self) -> tuple[int, bytes]:
        length, code = struct.unpack(">II", self._read(8))
        if not 8 <= length <= 10_000:
            raise Closed
        return code, self._read(length - 8)

    # Statements

    def _serve(self, session: GatewaySession) -> None:
        self._send(b"Z", b"I")
        while True:
            kind, body = self._receive()
            if kind == b"X":
                return
            with self.server.working():
                self._serve_one(session, kind, body)
                self._send(b"Z", b"I")

    def _serve_one(self, session: GatewaySession, kind: bytes, body: bytes) -> None:
        try:
            sql = body.rstrip(b"\0").decode()
            if kind != b"Q":
                self._error("0A000", "This server knows simple queries only")
            elif sql.strip(" \n;"):
                self._answer(session, sql)
            else:
                self._send(b"I", b"")
        except (Closed, OSError):
            raise
        except Exception as error:  # the border: what is no SqeError stays inside
            self._fail(error, "XX000")

    def _answer(self, session: GatewaySession, sql: str) -> None:
        with session.begin(StatementRequest(sql=sql)) as statement:
            self.running = statement
            try:
                with _Watch(self.request, statement):
                    self._run(statement)
            finally:
                self.running = None

    def _run(self, statement: Statement) -> None:
        statement.start()
        if statement.schema is None:
            self._send(b"C", _text(f"{statement.statement_kind.upper()} {statement.affected_rows or 0}"))
            return
        self._columns(statement.schema)
        count = 0
        for batch in statement:
            self._rows(batch)
            count += batch.num_rows
        self._send(b"C", _text(f"SELECT {count}"))

    def _columns(self, schema: pa.Schema) -> None:
        columns = b"".join(
            _text(column.name) + struct.pack(">IHIhih", 0, 0, _oid(column.type), -1, -1, 0) for column in schema
        )
        self._send(b"T", struct.pack(">H", len(schema)) + columns)

    def _rows(self, batch: pa.RecordBatch) -> None:
        columns = [[_written(value) for value in column.to_pylist()] for column in batch.columns]
        count = struct.pack(">H", len(columns))
        rows = (count + b"".join(values) for values in zip(*columns, strict=True))
        self.request.sendall(b"".join(b"D" + struct.pack(">I", len(row) + 4) + row for row in rows))

    # Messages

    def _fail(self, error: Exception, otherwise: str) -> None:
        if isinstance(error, SqeError):
            self._error(_STATES.get(error.code, otherwise), error.message)
        else:
            self._error(otherwise, "Internal error")

    def _error(self, state: str, message: str) -> None:
        parts = (b"S", "ERROR"), (b"V", "ERROR"), (b"C", state), (b"M", message)
        self._send(b"E", b"".join(kind + _text(text) for kind, text in parts) + b"\0")

    def _send(self, kind: bytes, body: bytes) -> None:
        self.request.sendall(kind + struct.pack(">I", len(body) + 4) + body)

    def _receive(self) -> tuple[bytes, bytes]:
        kind = self._read(1)
        (length,) = struct.unpack(">I", self._read(4))
        if not 4 <= length <= _MOST_BYTES:
            raise Closed
        return kind, self._read(length - 4)

    def _read(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            part = self.request.recv(count - len(found))
            if not part:
                raise Closed
            found += part
        return bytes(found)


class _Watch:
    """Cancels a statement whose client goes away while it waits for rows."""

    def __init__(self, connection: socket.socket, statement: Statement) -> None:
        self._connection, self._statement = connection, statement
        self._done = threading.Event()

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()

    def _look(self) -> None:
        while not self._done.wait(0.2):
            try:
                gone = self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
            except (BlockingIOError, ValueError):
                continue
            except OSError:
                gone = True
            if gone:
                self._statement.cancel()
                return


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


def _oid(type: pa.DataType) -> int:
    if pa.types.is_decimal(type):
        return 1700
    if pa.types.is_timestamp(type):
        return 1184 if type.tz else 1114
    return _OIDS.get(str(type), 25)


def _written(value: Any) -> bytes:
    if value is None:
        return b"\xff\xff\xff\xff"
    if isinstance(value, bool):
        text = b"t" if value else b"f"
    elif isinstance(value, bytes):
        text = b"\\x" + value.hex().encode()
    else:
        text = str(value).encode()
    return struct.pack(">I", len(text)) + text


class Listener(socketserver.ThreadingTCPServer):
    """Accepts connections."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], config: WireConfig, tls: ssl.SSLContext | None) -> None:
        super().__init__(address, Connection)
        self.config, self.tls = config, tls
        self.gateway: QueryGateway
        self._here: dict[tuple[int, int], Connection] = {}
        self._busy = 0
        self._changed = threading.Condition()

    def join(self, connection: Connection) -> tuple[int, int]:
        """Remember a connection; return the key that cancels what it runs."""
        key = secrets.randbits(31), secrets.randbits(32)
        with self._changed:
            self._here[key] = connection
        return key

    def leave(self, connection: Connection) -> None:
        """Forget a connection, and end what is its own."""
        key = getattr(connection, "key", None)
        if key is not None:
            with self._changed:
                self._here.pop(key, None)
            self.gateway.end_connection(connection.client)

    def cancel(self, key: tuple[int, ...]) -> None:
        """Cancel what the connection of a key runs; whoever has no key learns nothing."""
        with self._changed:
            connection = self._here.get((key[0], key[1]))
        running = connection.running if connection is not None else None
        if running is not None:
            running.cancel()

    def working(self) -> Any:
        """Count a statement while it runs."""
        return _Counted(self)

    def drain(self, secs: float) -> None:
        """Wait until nothing runs, at most so long; then close all connections."""
        deadline = time.monotonic() + secs
        with self._changed:
            while self._busy and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            here = list(self._here.values())
        for connection in here:
            try:
                connection.request.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, change: int) -> None:
        """Note that a statement begins or ends."""
        with self._changed:
            self._busy += change
            self._changed.notify_all()


class _Counted:
    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def __enter__(self) -> None:
        self._listener.count(1)

    def __exit__(self, *_: object) -> None:
        self._listener.count(-1)


class WireServer(ProtocolServer):
    """The protocol on one port."""

    def __init__(self, config: WireConfig, context: ProtocolContext) -> None:
        self._config, self._context = config, context
        self._listener: Listener | None = None

    def start(self, gateway: QueryGateway) -> Endpoint:
        """Bind, and serve in threads."""
        tls = None
        if self._context.tls is not None:
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(self._context.tls.cert_file, self._context.tls.key_file)
        host, port = self._context.bind_host, self._context.port
        try:
            self._listener = Listener((host, port), self._config, tls)
        except OSError as error:
            raise StartupError(f"Cannot listen on {host}:{port} (wire): {error.strerror}") from error
        self._listener.gateway = gateway
        threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True).start()
        return Endpoint(protocol="wire", host=host, port=self._listener.server_address[1], secure=tls is not None)

    def stop(self, drain_secs: float) -> None:
        """Accept nobody, let statements finish, close."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown()
            listener.server_close()
            listener.drain(drain_secs)


class WireFactory(ProtocolFactory[WireConfig]):
    """Makes the protocol `wire`."""

    kind = "wire"
    config_type = WireConfig

    def create(self, name: str, config: WireConfig, context: ProtocolContext) -> WireServer:
        """Make it."""
        return WireServer(config, context)


class WirePlugin(SqePlugin):
    """Registers it."""

    @hookimpl
    def sqe_provide_protocols(self, context: StartupContext) -> Sequence[ProtocolFactory[Any]]:
        """Contribute `wire`."""
        return (WireFactory(),)
