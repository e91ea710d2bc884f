"""A client of a few lines, which shows what the real ones hide."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    Credential,
    Endpoint,
    NoCredential,
    ProtocolContext,
    Secret,
)
from sqe_core.testing.protocol import soon

ALICE = BasicCredential(username="alice", password=Secret("wonderland"))
MALLORY = BasicCredential(username="mallory", password=Secret("wonderland"))


class Serve(Protocol):
    """Starts a server."""

    def __call__(self, context: ProtocolContext | None = None, **keys: object) -> Endpoint:
        """Start one, with keys of its configuration, or with a context."""


class StatementFailed(Exception):
    """A statement ended with an error, which is here as the client reads it."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


class HttpRefused(Exception):
    """An answer that is not about a statement."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"{status} {text}")
        self.status, self.text, self.headers = status, text, headers


class Connection:
    """A connection that stays open, as those of real clients do."""

    def __init__(self, endpoint: Endpoint, credential: Credential = ALICE, **headers: str) -> None:
        self.endpoint = endpoint
        self.headers = {"X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME", **headers}
        if isinstance(credential, BearerCredential):
            self.headers["Authorization"] = f"Bearer {credential.token.reveal()}"
        elif isinstance(credential, BasicCredential):
            word = f"{credential.username}:{credential.password.reveal()}".encode()
            self.headers["Authorization"] = f"Basic {base64.b64encode(word).decode()}"
        else:
            assert isinstance(credential, NoCredential)
        self.answered: Any = None
        self.pages: list[dict[str, Any]] = []
        self.next: str | None = None
        self._http: http.client.HTTPConnection | None = None
        self._closed = False

    def rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Run a statement; each row by the names of its columns, timestamps as what they are."""
        for columns, row in self.listed(sql):
            yield {
                column["name"]: datetime.fromisoformat(value) if value and "timestamp" in column["type"] else value
                for column, value in zip(columns, row, strict=True)
            }

    def listed(self, sql: str) -> Iterator[tuple[list[dict[str, Any]], list[Any]]]:
        """Run a statement; each row with the columns that its page tells."""
        page = self.ask("POST", "/v1/statement", sql.encode())
        while True:
            for row in page.get("data", ()):
                yield page["columns"], row
            if self.next is None:
                return
            page = self.ask("GET", self.next)

    def ask(self, method: str, address: str, body: bytes | None = None, **headers: str) -> Any:
        """Send one request and return its document."""
        status, text, _ = self.send(method, address, body, **headers)
        if status >= 300:
            raise HttpRefused(status, text.decode(), self.answered)
        document = json.loads(text) if text else {}
        if isinstance(document, dict) and "stats" in document:
            self.pages.append(document)
            self.next = document.get("nextUri")
            if "error" in document:
                raise StatementFailed(document["error"])
        return document

    def send(self, method: str, address: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, Any]:
        if self._closed:
            raise ConnectionError("closed")
        parts = urlsplit(address)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection = self._http = self._http or http.client.HTTPConnection(
            self.endpoint.host, self.endpoint.port, timeout=30
        )
        connection.request(method, path, body, {**self.headers, **headers})
        answer = connection.getresponse()
        text = answer.read()
        self.answered = answer.headers
        return answer.status, text, answer.headers

    def cancel(self) -> None:
        assert soon(lambda: self.next is not None)
        other = Connection(self.endpoint)
        other.headers = self.headers
        assert other.send("DELETE", str(self.next))[0] == 204

    def close(self) -> None:
        """There is nothing to say: who does not come back is gone."""
        self._closed = True

    def __del__(self) -> None:
        if self._http is not None:
            self._http.close()


class Client:
    """Connects, for the contract."""

    def connect(self, endpoint: Endpoint, credential: Credential) -> Connection:
        return Connection(endpoint, credential)
