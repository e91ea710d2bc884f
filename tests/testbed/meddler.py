"""A server between SQE and a catalog, which says what a test wants."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqe_http.testing import Loopback, QuietHandler

_PASSED_ON = ("content-type", "accept", "authorization", "x-iceberg-access-delegation")


class Seen(NamedTuple):
    """A request; names of headers are small."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, content."""


class Meddler(Loopback):
    """Passes requests on to a catalog, and may change its answers or put others in their place."""

    def __init__(self, target: str) -> None:
        self.change: Callable[[str, str, Any], Any] = lambda method, path, body: body
        self.instead: Callable[[str, str], Answer | None] = lambda method, path: None
        self.serve: Callable[[Seen], Answer | None] = lambda request: None
        """The same, for what has to know more of a request."""
        self.seen: list[Seen] = []
        meddler, parts = self, urlsplit(target)

        class Handler(QuietHandler):
            def _pass(self) -> None:
                body = self.read_body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Seen(self.command, self.path, headers, body)
                meddler.seen.append(request)
                answer = meddler.instead(self.command, urlsplit(self.path).path) or meddler.serve(request)
                if answer is None:
                    answer = self._ask(body, headers)
                status, sent, content = answer
                with suppress(OSError):  # SQE hung up
                    self.send_response(status)
                    for name, value in {"Content-Length": str(len(content)), **sent}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)

            def _ask(self, body: bytes, headers: dict[str, str]) -> Answer:
                connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
                kept = {name: headers[name] for name in _PASSED_ON if name in headers}
                connection.request(self.command, self.path, body=body or None, headers=kept)
                reply = connection.getresponse()
                content = reply.read()
                connection.close()
                if reply.status == 200 and content:
                    changed = meddler.change(self.command, urlsplit(self.path).path, json.loads(content))
                    content = json.dumps(changed).encode()
                return reply.status, {"Content-Type": "application/json"}, content

            do_GET = do_POST = do_DELETE = do_HEAD = _pass

        super().__init__(Handler)
