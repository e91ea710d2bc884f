"""The browser's way back: an address on this machine, open for one answer (RFC 8252)."""

from __future__ import annotations

import os
import queue
import secrets
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sqe_core.cli.login.http import LoginError
from sqe_core.cli.login.provider import Proof, Provider, Tokens

_PATH = "/callback"
_SECS = 300.0
_LONGEST = 16 * 1024
_DONE = b"<!doctype html><title>sqe-cli</title><p>You can close this window and go back to sqe-cli."
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'",
}


def has_browser(environ: Mapping[str, str]) -> bool:
    """Whether a window can open where the person sits."""
    if any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY")):
        return False
    if sys.platform.startswith("linux") and not any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        return bool(environ.get("BROWSER"))
    with suppress(webbrowser.Error):
        webbrowser.get()
        return True
    return False


def login_in_browser(provider: Provider, tell: Callable[[str], None], *, secs: float = _SECS) -> Tokens:
    """Have somebody log in, in the browser of this machine."""
    proof = Proof()
    with _Redirect(proof.state) as redirect:
        url = provider.login_url(redirect.uri, proof)
        start = redirect.start_at(url)
        tell(f"Log in with your browser. If no window opens, go to:\n  {url}")
        with suppress(webbrowser.Error, OSError), _quiet():
            webbrowser.open(start)
        parameters = redirect.wait(secs)
        return provider.redeem(provider.check_answer(parameters, proof), redirect.uri, proof)


class _Redirect:
    """Listens for the one request that knows the state; others read a page that says nothing, and change nothing.

    The window begins here too, at an address that is good for once. It stands in the arguments of the browser's
    process, which everybody on the machine can read: whoever read the login's own address there could log in as
    himself, and have somebody else work in his name.
    """

    def __init__(self, state: str) -> None:
        self._state = state
        self._start = f"/{secrets.token_urlsafe(32)}"
        self._login_url = ""
        self._started = threading.Lock()
        self._answers: queue.SimpleQueue[dict[str, str] | None] = queue.SimpleQueue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.uri = f"http://127.0.0.1:{self._server.server_port}{_PATH}"

    def __enter__(self) -> _Redirect:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="sqe-login", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def start_at(self, login_url: str) -> str:
        """Return an address on this machine that leads to the login once."""
        self._login_url = login_url
        return self.uri.removesuffix(_PATH) + self._start

    def wait(self, secs: float) -> dict[str, str]:
        try:
            answer = self._answers.get(timeout=secs)
        except queue.Empty:
            raise LoginError("Nobody logged in within the time") from None
        if answer is None:
            raise LoginError("Somebody else on this machine has opened the login", hint="use --login=device")
        return answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        redirect = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5
            server_version, sys_version = "sqe-cli", ""

            def log_message(self, format: str, *args: Any) -> None:
                """The address of the request holds the code."""

            def do_GET(self) -> None:
                if self.path == redirect._start:
                    self._lead_to_login()
                    return
                parts = urlsplit(self.path)
                known = parts.path == _PATH and len(self.path) <= _LONGEST
                answer = _parameters(parts.query) if known else None
                known = answer is not None and answer.get("state") == redirect._state
                self.send_response(200 if known else 404)
                for name, value in _HEADERS.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(_DONE if known else b"")
                if answer is not None and known:
                    redirect._answers.put(answer)

            def _lead_to_login(self) -> None:
                first = redirect._started.acquire(blocking=False)
                self.send_response(302 if first else 404)
                if first:
                    self.send_header("Location", redirect._login_url)
                for name, value in _HEADERS.items():
                    self.send_header(name, value)
                self.end_headers()
                if not first:
                    # One of the two is not the browser, and nobody knows which.
                    redirect._answers.put(None)

        return Handler


def _parameters(query: str) -> dict[str, str] | None:
    """The parameters, none of which may stand twice (RFC 6749 section 3.1)."""
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return None
    return {name: values[0] for name, values in found.items()} if all(len(v) == 1 for v in found.values()) else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Browsers write to the terminal that they are started from."""
    kept = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        for copy, standard in zip(kept, (1, 2), strict=True):
            os.dup2(copy, standard)
            os.close(copy)
        os.close(nowhere)
