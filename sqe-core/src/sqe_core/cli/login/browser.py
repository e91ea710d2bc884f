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
from types import TracebackType
from urllib.parse import parse_qs

from sqe_core.cli.login.http import LoginError
from sqe_core.cli.login.provider import Proof, Provider, Tokens
from sqe_http.listener import HttpAnswer, HttpListener, HttpRequest

_PATH = "/callback"
_SECS = 300.0
_LONGEST = 16 * 1024
_DONE = b"<!doctype html><title>sqe-cli</title><p>You can close this window and go back to sqe-cli."
_HEADERS = {"Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'"}


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
        self._listener = HttpListener("login", "127.0.0.1", 0, {self._start: self._lead, _PATH: self._take})

    def __enter__(self) -> _Redirect:
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.stop()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._listener.port}{_PATH}"

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

    def _take(self, request: HttpRequest) -> HttpAnswer:
        answer = _parameters(request.query) if len(request.query) <= _LONGEST else None
        if answer is None or answer.get("state") != self._state:
            return HttpAnswer(status=404, headers=_HEADERS)
        self._answers.put(answer)
        return HttpAnswer(body=_DONE, content_type="text/html; charset=utf-8", headers=_HEADERS)

    def _lead(self, request: HttpRequest) -> HttpAnswer:
        if self._started.acquire(blocking=False):
            return HttpAnswer(status=302, headers={"Location": self._login_url, **_HEADERS})
        # One of the two is not the browser, and nobody knows which.
        self._answers.put(None)
        return HttpAnswer(status=404, headers=_HEADERS)


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
