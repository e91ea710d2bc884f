"""Logins in a browser, as Trino's clients do them (TRI-8).

    401                          a random id for the client, and an address for its browser with the id's hash
    /oauth2/token/initiate/HASH  the login begins, and the browser goes on to the identity provider
    /oauth2/callback             the browser comes back
    /oauth2/token/ID             the client waits here, and gets its session's token, once

Nothing is kept for a 401. The id is the client's alone; a browser sees its hash. Both of the browser's addresses are on
the host of the configured `redirect_uri`, so that a cookie tells whether the browser that comes back is the one that
went: nobody is sent to the identity provider with somebody else's `state`, and who opens a foreign address later
finishes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp.web import BaseRequest, Response

from sqe_core.spi import (
    BrowserLogin,
    BrowserLogins,
    ClientInfo,
    InvalidCredentialsError,
    ResourcesError,
    Secret,
    SqeError,
)
from sqe_protocol_trino.sign_in_pages import BUSY, DONE, FAILED, page

_CALLBACK, _TOKEN = "/oauth2/callback", "/oauth2/token"
_WAIT_SECS = 20.0
_LONGEST_SECS = 300.0
_MOST = 1000
_HASH = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[A-Za-z0-9_-]{43}")
_LONGEST_WORD = 4096
_OVER = "The login failed, or was not finished in time"


@dataclass(slots=True, kw_only=True, eq=False)
class _Begun:
    """A login whose browser is on its way."""

    login: asyncio.Task[BrowserLogin]
    cookie: str
    readable: bool
    """Whether others could read what its browser sent; the core allowed it, or the login had not begun."""
    ends_at: float
    state: str = ""
    over: bool = False
    """Whether its token was handed out, or nobody wants it: its address is good for nothing any more."""
    came_back: asyncio.Event = field(default_factory=asyncio.Event)


class SignIn:
    """Logins that wait. The event loop's; the core keeps what is secret about them.

    Args:
        logins: the core's.
        in_thread: runs what waits.
    """

    def __init__(self, logins: BrowserLogins, in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        self._logins, self._in_thread = logins, in_thread
        place = urlsplit(logins.redirect_uri)
        self.callback_path = place.path
        prefix = place.path.removesuffix(_CALLBACK) if place.path.endswith(_CALLBACK) else ""
        self._origin = f"{place.scheme}://{place.netloc}{prefix}"
        self._secure = place.scheme == "https"
        self._begun: dict[str, _Begun] = {}
        self._news: set[asyncio.Event] = set()

    def challenge(self, base: str) -> str:
        """Return what a client without a login is told.

        Args:
            base: the address that it knows this server by.
        """
        id = secrets.token_urlsafe(32)
        redirect = f"{self._origin}{_TOKEN}/initiate/{_hash(id)}"
        return f'Bearer x_redirect_server="{redirect}", x_token_server="{base}{_TOKEN}/{id}"'

    # -- the browser

    async def initiate(self, request: BaseRequest, hash: str, client: ClientInfo) -> Response:
        """Begin a login, and send the browser on; again to the same place when the same browser comes again."""
        if not _HASH.fullmatch(hash):
            return page(FAILED, HTTPStatus.NOT_FOUND)
        self._forget_old()
        begun = self._begun.get(hash)
        if begun is not None and (begun.over or not _has_cookie(request, self._cookie_name(hash), begun)):
            return page(FAILED, HTTPStatus.CONFLICT)
        if begun is None:
            if len(self._begun) >= _MOST:
                return page(BUSY, HTTPStatus.TOO_MANY_REQUESTS)
            begun = self._begun[hash] = self._begin(client)
        try:
            login = await asyncio.shield(begun.login)
        except SqeError as error:
            self._begun.pop(hash, None)
            full = isinstance(error, ResourcesError)
            return page(BUSY, HTTPStatus.TOO_MANY_REQUESTS if full else HTTPStatus.SERVICE_UNAVAILABLE)
        begun.state = _hash(_only(parse_qs(urlsplit(login.url).query).get("state")))
        self._tell()
        response = page("", HTTPStatus.SEE_OTHER)
        response.headers["Location"] = login.url
        response.set_cookie(
            self._cookie_name(hash),
            begun.cookie,
            max_age=int(_LONGEST_SECS),
            httponly=True,
            secure=self._secure,
            samesite="Lax",
        )
        return response

    def _begin(self, client: ClientInfo) -> _Begun:
        begin = partial(self._logins.begin, redirect_uri=self._logins.redirect_uri, client=client)
        return _Begun(
            login=asyncio.ensure_future(self._in_thread(begin)),
            cookie=secrets.token_urlsafe(32),
            readable=not client.secure,
            ends_at=time.monotonic() + _LONGEST_SECS,
        )

    def _cookie_name(self, hash: str) -> str:
        # Of each login its own: a browser may be at several.
        return f"{'__Host-' if self._secure else ''}sqe-login-{hash[:16]}"

    async def callback(self, request: BaseRequest) -> Response:
        """Take what the identity provider sent the browser back with."""
        state, code = (_only(request.query.getall(name, None)) for name in ("state", "code"))
        digest = _hash(state)
        self._forget_old()
        found = [(hash, begun) for hash, begun in self._begun.items() if hmac.compare_digest(begun.state, digest)]
        if not found or not state or not _has_cookie(request, self._cookie_name(found[0][0]), found[0][1]):
            return page(FAILED, HTTPStatus.BAD_REQUEST)
        ((hash, begun),) = found
        begun.state = ""
        try:
            if not code or "error" in request.query:
                await self._in_thread(partial(self._logins.refuse, state=state))
                return page(FAILED, HTTPStatus.FORBIDDEN)
            await self._in_thread(partial(self._logins.finish, state=state, code=Secret(code)))
        except SqeError:
            return page(FAILED, HTTPStatus.FORBIDDEN)
        finally:
            begun.came_back.set()
            self._tell()
        response = page(DONE, HTTPStatus.OK)
        response.del_cookie(self._cookie_name(hash), secure=self._secure, httponly=True, samesite="Lax")
        return response

    # -- the client

    async def token(self, id: str, client: ClientInfo, base: str) -> Response:
        """Wait for the browser, and hand the token out; once."""
        if not _ID.fullmatch(id):
            return _told(error=_OVER)
        hash, deadline = _hash(id), time.monotonic() + _WAIT_SECS
        news = asyncio.Event()
        self._news.add(news)
        try:
            while True:
                begun = self._begun.get(hash)
                if begun is not None and begun.came_back.is_set():
                    return await self._handed_out(begun, client)
                pause = deadline - time.monotonic()
                if pause <= 0:
                    return _told(nextUri=f"{base}{_TOKEN}/{id}")
                news.clear()
                try:
                    async with asyncio.timeout(pause):
                        await news.wait()
                except TimeoutError:
                    pass
        finally:
            self._news.discard(news)

    async def _handed_out(self, begun: _Begun, client: ClientInfo) -> Response:
        if not (client.secure or begun.readable or client.address in ("127.0.0.1", "::1")):
            return _told(error="A token is handed out over TLS only")
        over, begun.over = begun.over, True
        if over:
            return _told(error=_OVER)
        try:
            token: Secret | None = await self._in_thread(partial(self._logins.poll, (await begun.login).id))
        except SqeError as error:
            return _told(error=_OVER if isinstance(error, InvalidCredentialsError) else error.message)
        return _told(token=token.reveal()) if token is not None else _told(error=_OVER)

    def forget(self, id: str) -> Response:
        """Forget a login, whose client is done or gave up."""
        if (begun := self._begun.get(_hash(id))) is not None:
            begun.over, begun.state = True, ""
            begun.came_back.set()
        return Response()

    def _forget_old(self) -> None:
        now = time.monotonic()
        for hash, begun in list(self._begun.items()):
            if begun.ends_at <= now:
                del self._begun[hash]

    def _tell(self) -> None:
        for event in self._news:
            event.set()


def _told(**what: str) -> Response:
    # A connection that nobody logs in on ends soon: the next question comes on another one.
    response = Response(body=json.dumps(what).encode(), content_type="application/json")
    response.force_close()
    return response


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _only(values: list[str] | None) -> str:
    """Return a parameter that is there once, and not too long; else an empty text."""
    return values[0] if values is not None and len(values) == 1 and len(values[0]) <= _LONGEST_WORD else ""


def _has_cookie(request: BaseRequest, name: str, begun: _Begun) -> bool:
    given = request.cookies.get(name, "")
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), begun.cookie.encode())
