"""The protocol keeps SQE's contract, with psycopg as its client."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from acme_wire import WireConfig, WireFactory
from sqe_core.spi import BasicCredential, Credential, Endpoint
from sqe_core.testing import PluginContract, ProtocolContract


class Connection:
    """A connection of psycopg."""

    def __init__(self, endpoint: Endpoint, credential: Credential) -> None:
        assert isinstance(credential, BasicCredential)
        self.address, self.login = (endpoint.host, endpoint.port), credential
        self.connection = psycopg.connect(
            host=endpoint.host,
            port=endpoint.port,
            user=credential.username,
            password=credential.password.reveal(),
            dbname="lake",
            sslmode="disable",
            connect_timeout=10,
            autocommit=True,
        )

    def rows(self, sql: str) -> Iterator[dict[str, Any]]:
        if sql == "large":
            yield from self.one_by_one(sql)
            return
        cursor = self.connection.execute(sql)
        for row in cursor if cursor.description else ():
            yield {column.name: value for column, value in zip(cursor.description or (), row, strict=True)}

    def one_by_one(self, sql: str) -> Iterator[dict[str, Any]]:
        """Psycopg keeps all rows before it gives one; this does not."""
        with socket.create_connection(self.address, timeout=10) as raw, raw.makefile("rwb") as stream:

            def say(kind: bytes, body: bytes) -> None:
                stream.write(kind + struct.pack(">I", len(body) + 4) + body)
                stream.flush()

            def heard() -> Iterator[tuple[bytes, bytes]]:
                while kind := stream.read(1):
                    yield kind, stream.read(struct.unpack(">I", stream.read(4))[0] - 4)

            say(b"", struct.pack(">I", 196608) + f"user\0{self.login.username}\0\0".encode())
            say(b"p", self.login.password.reveal().encode() + b"\0")
            messages = heard()
            assert any(kind == b"Z" for kind, _ in messages)
            say(b"Q", sql.encode() + b"\0")
            yield from ({"text": body[6:].decode()} for kind, body in messages if kind == b"D")

    def cancel(self) -> None:
        self.connection.cancel_safe()

    def close(self) -> None:
        """As a process that dies; a connection is in use by one thread only, and its socket is not."""
        with suppress(psycopg.OperationalError), socket.socket(fileno=os.dup(self.connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)


class Client:
    def __init__(self) -> None:
        self.opened: list[Connection] = []

    def connect(self, endpoint: Endpoint, credential: Credential) -> Connection:
        self.opened.append(Connection(endpoint, credential))
        return self.opened[-1]


class TestWirePlugin(PluginContract):
    plugin_name = "acme-wire"


class TestWire(ProtocolContract):
    capabilities = frozenset({"basic"})

    @pytest.fixture
    def factory(self) -> WireFactory:
        return WireFactory()

    @pytest.fixture
    def config(self) -> WireConfig:
        return WireConfig()

    @pytest.fixture
    def client(self) -> Iterator[Client]:
        client = Client()
        yield client
        for each in client.opened:
            each.connection.close()

    @pytest.mark.parametrize("garbage", [b"\0", b"\xff", b"GET / HTTP/1.1\r\n"], ids=["zeros", "ones", "http"])
    def test_garbage_ends_the_connection(self, endpoint: Endpoint, garbage: bytes) -> None:
        with suppress(OSError), socket.create_connection((endpoint.host, endpoint.port), timeout=10) as connection:
            connection.sendall(garbage * 100)
            connection.shutdown(socket.SHUT_WR)
            assert len(connection.recv(1000)) < 100
