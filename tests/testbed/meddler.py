"""A server between SQE and a catalog, which says what a test wants."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Meddler:
    """Passes requests on to a catalog, and may change its answers or put others in their place."""

    def __init__(self, target: str) -> None:
        self.change: Callable[[str, str, Any], Any] = lambda method, path, body: body
        self.instead: Callable[[str, str], tuple[int, dict[str, str], bytes] | None] = lambda method, path: None
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        meddler, parts = self, urlsplit(target)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *args: Any) -> None:
                pass

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                meddler.seen.append((self.command, self.path, headers))
                answer = meddler.instead(self.command, urlsplit(self.path).path)
                if answer is None:
                    answer = self._ask(body, headers)
                status, sent, content = answer
                with suppress(OSError):  # SQE hung up
                    self.send_response(status)
                    for name, value in {"Content-Length": str(len(content)), **sent}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)

            def _ask(self, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
                connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
                kept = {name: headers[name] for name in ("content-type", "accept", "authorization") if name in headers}
                connection.request(self.command, self.path, body=body or None, headers=kept)
                reply = connection.getresponse()
                content = reply.read()
                connection.close()
                if reply.status == 200 and content:
                    changed = meddler.change(self.command, urlsplit(self.path).path, json.loads(content))
                    content = json.dumps(changed).encode()
                return reply.status, {"Content-Type": "application/json"}, content

            do_GET = do_POST = do_DELETE = do_HEAD = _pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
