"""Who sends a request: every one says so, and is logged in by the core (TRI-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from aiohttp.web import BaseRequest

from sqe_core.spi import (
    AccessDeniedError,
    CertificateCredential,
    ClientInfo,
    Credential,
    GatewaySession,
    InvalidCredentialsError,
    NoCredential,
    QueryGateway,
)
from sqe_protocol_trino.client_headers import ClientHeaders, credential
from sqe_protocol_trino.connections import Connections, GuardedHandler
from sqe_protocol_trino.places import Places

T = TypeVar("T")

_PREFIXES = ("X-Trino-", "X-Presto-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request, logged in."""

    session: GatewaySession
    headers: ClientHeaders
    client: ClientInfo

    @property
    def key(self) -> tuple[str, str]:
        """Whose the statements of this caller are."""
        return self.session.identity.key


class Callers:
    """Logs callers in. What may wait for the core does so in a thread.

    Args:
        gateway: the core.
        places: reads addresses.
        connections: are told who is no stranger any more.
        threads: for what may wait.
    """

    def __init__(
        self, gateway: QueryGateway, places: Places, connections: Connections, threads: ThreadPoolExecutor
    ) -> None:
        self._gateway, self._places, self._connections, self._threads = gateway, places, connections, threads
        self._in_browser = gateway.browser_logins is not None

    async def log_in(self, request: BaseRequest) -> Caller:
        """Log in: every request says who it is from (TRI-1)."""
        if _is_web_page(request):
            raise AccessDeniedError("Web pages may not send requests here")
        prefix = next((each for each in _PREFIXES if request.headers.get(each + "User")), _PREFIXES[0])
        headers = ClientHeaders(request.headers, prefix)
        if len(request.headers.getall("Authorization", [])) > 1:
            raise InvalidCredentialsError
        client = self.client(request, headers)
        shown = credential(request.headers.get("Authorization"))
        if isinstance(shown, NoCredential):
            shown = _certificate(request) or shown
        if self._in_browser and isinstance(shown, NoCredential):
            # The way of such clients to ask how to log in: no attempt, which the core would count.
            raise InvalidCredentialsError
        session = await self.in_thread(partial(self._gateway.authenticate, shown, client))
        self.is_known(request)
        identity, original = session.identity, headers.text("Original-User")
        if identity.personal and original not in (None, identity.username):
            # SET SESSION AUTHORIZATION of a client: nobody works for somebody else here (AUTHN-9).
            raise AccessDeniedError("The original user is not the one that logged in")
        return Caller(session=session, headers=headers, client=client)

    def client(self, request: BaseRequest, headers: ClientHeaders | None = None) -> ClientInfo:
        return ClientInfo(
            protocol="trino",
            address=self._places.client_address(request),
            secure=self._places.is_secure(request),
            source=headers.source if headers else None,
            user_agent=request.headers.get("User-Agent", "")[:256] or None,
            requested_user=headers.user if headers else None,
        )

    def is_known(self, request: BaseRequest) -> None:
        """Its connection is no stranger's."""
        if isinstance(request.protocol, GuardedHandler):
            self._connections.logged_in(request.protocol)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Call what may wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _is_web_page(request: BaseRequest) -> bool:
    """Whether a page in a browser made it send this: its user did not, and the browser adds the user's login to it.

    No client of Trino's is a page. Browsers say where a request is from whenever it is more than a link that was
    followed; a page of a name that was turned to this address (DNS rebinding) says so, too.
    """
    return "Origin" in request.headers or request.headers.get("Sec-Fetch-Site", "none") != "none"


def _certificate(request: BaseRequest) -> Credential | None:
    secured = request.get_extra_info("ssl_object")
    der = secured.getpeercert(binary_form=True) if secured is not None else None
    return CertificateCredential(der=der) if der else None
