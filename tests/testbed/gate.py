"""A server in front of an object store: it notes which keys come, and knows when they end."""

from __future__ import annotations

import http.client
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from sqe_http.testing import Loopback, QuietHandler

_KEY = re.compile(r"Credential=([^/]+)/")
_ENDED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"


@dataclass(frozen=True, kw_only=True)
class StoreRequest:
    """What came: `key` is the id of the access key, empty where nobody signed."""

    method: str
    path: str
    key: str
    status: int


class Gate(Loopback):
    """Passes requests on to a store as they are, whose signatures stay good, and refuses keys that ended.

    Args:
        store: the address of the store.
    """

    def __init__(self, store: str) -> None:
        self.seen: list[StoreRequest] = []
        self.ends: dict[str, float] = {}
        """When each key ends; what is not here never does."""
        self.pause_secs = 0.0
        """How long a file of data takes."""
        gate, parts = self, urlsplit(store)

        class Handler(QuietHandler):
            def _pass(self) -> None:
                body = self.read_body()
                found = _KEY.search(self.headers.get("Authorization", ""))
                key = found.group(1) if found else ""
                ended = gate.ends.get(key, float("inf")) <= time.time()
                if self.command == "GET" and self.path.endswith(".parquet"):
                    time.sleep(gate.pause_secs)
                if ended:
                    status, headers, content = 403, [("Content-Type", "application/xml")], _ENDED
                else:
                    status, headers, content = self._ask(body)
                path = urlsplit(self.path).path
                gate.seen.append(StoreRequest(method=self.command, path=path, key=key, status=status))
                with suppress(OSError):
                    self.send_response(status)
                    for name, value in headers:
                        if name.lower() not in ("connection", "transfer-encoding", "date", "server"):
                            self.send_header(name, value)
                    if not any(name.lower() == "content-length" for name, _ in headers):
                        self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
                connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body or None)
                reply = connection.getresponse()
                content = reply.read()
                connection.close()
                return reply.status, reply.getheaders(), content

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass

        super().__init__(Handler)
