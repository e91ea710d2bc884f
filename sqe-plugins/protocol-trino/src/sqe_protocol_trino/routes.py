"""The addresses of Trino's protocol, and what is answered there."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from aiohttp.web import BaseRequest, HTTPException, Response, StreamResponse

from sqe_core.spi import (
    AccessDeniedError,
    CertificateCredential,
    ClientInfo,
    Credential,
    ErrorCode,
    GatewaySession,
    InvalidCredentialsError,
    NoCredential,
    ProtocolContext,
    QueryGateway,
    ResourcesError,
    ServerState,
    ShuttingDownError,
    SqeError,
    StatementRequest,
)
from sqe_protocol_trino import compressed, error_names, running
from sqe_protocol_trino.bodies import TooLargeError, read_text
from sqe_protocol_trino.budget import Budget
from sqe_protocol_trino.chain import Chain, ChainBounds, GoneError, NoPageError
from sqe_protocol_trino.client_headers import ClientHeaders, credential
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.connections import Connections, GuardedHandler
from sqe_protocol_trino.places import Places, is_slug
from sqe_protocol_trino.sign_in import SignIn
from sqe_protocol_trino.spooling import encodings
from sqe_protocol_trino.spooling.routes import NoSegmentError, SpooledRoutes
from sqe_protocol_trino.spooling.segments import Segments
from sqe_protocol_trino.spooling.writer import KEY_HEADER, SegmentWriter
from sqe_protocol_trino.statement_page import Answer, answer
from sqe_protocol_trino.statements import Statements
from sqe_protocol_trino.stats import statement_stats

_log = logging.getLogger("sqe_core.trino")
T = TypeVar("T")

_PARAMETRIC = "PARAMETRIC_DATETIME"
_FIRST_WAIT_SECS, _WAIT_SECS, _LONGEST_WAIT_SECS = 1.0, 1.0, 10.0
_PREFIXES = ("X-Trino-", "X-Presto-")
_EVERY_ANSWER = {"Server": "SQE", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class NotFoundError(Exception):
    """There is nothing at an address, or it is somebody else's (TRI-3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request, logged in."""

    session: GatewaySession
    headers: ClientHeaders
    client: ClientInfo


class Routes:
    """Answers requests. What may wait for the core does so in a thread."""

    def __init__(
        self,
        config: TrinoConfig,
        context: ProtocolContext,
        gateway: QueryGateway,
        *,
        places: Places,
        statements: Statements,
        connections: Connections,
        threads: ThreadPoolExecutor,
        segments: Segments | None,
    ) -> None:
        self._config, self._context, self._gateway = config, context, gateway
        self._places, self._statements, self._connections = places, statements, connections
        self._threads = threads
        self._budget = Budget(config.cache_bytes)
        self._bounds = ChainBounds(page_bytes=config.page_bytes, linger_secs=config.page_linger_millis / 1000)
        self._segments = segments
        self._spooled = (
            SpooledRoutes(config.spooling, segments, gateway, self._in_thread, _EVERY_ANSWER)
            if segments is not None
            else None
        )
        logins = gateway.browser_logins
        self._sign_in = SignIn(logins, self._in_thread) if logins is not None else None

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer a request."""
        response = await self._answer(request)
        response.headers.update(_EVERY_ANSWER)
        return response

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        protocol = request.protocol
        if isinstance(protocol, GuardedHandler):
            protocol.head_arrived()
        try:
            if sum(len(name) + len(value) for name, value in request.raw_headers) > self._context.limits.header_bytes:
                return _text("The headers are too long", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return await self._route(request)(request)
        except SqeError as error:
            return self._refused(request, error)
        except NoSegmentError:
            return _text("Segment not found", HTTPStatus.NOT_FOUND)
        except (NotFoundError, NoPageError):
            return _text("Query not found", HTTPStatus.NOT_FOUND)
        except GoneError:
            return _text("The page was read already", HTTPStatus.GONE)
        except HTTPException:
            raise
        except ConnectionError:  # nobody is there to read it
            return _text("Gone", HTTPStatus.BAD_REQUEST)
        except Exception:  # noqa: BLE001 - the border: whoever asks learns nothing of it (ERR-1)
            _log.exception("the Trino listener could not answer")
            return _text("Internal error", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _route(self, request: BaseRequest) -> Callable[[BaseRequest], Awaitable[StreamResponse]]:
        path = request.path
        if self._sign_in is not None and request.method == "GET" and path == self._sign_in.callback_path:
            return self._sign_in.callback
        match request.method, path.split("/")[1:]:
            case "POST", ["v1", "statement"]:
                return self._post
            case "GET", ["v1", "statement", ("queued" | "executing") as phase, query_id, slug, number]:
                return partial(self._get_page, phase=phase, query_id=query_id, slug=slug, number=number)
            case "HEAD", ["v1", "statement", ("queued" | "executing") as phase, query_id, slug, number]:
                return partial(self._beat, phase=phase, query_id=query_id, slug=slug, number=number)
            case "GET", ["v1", "spooled", ("download" | "ack") as what, id]:
                return partial(self._segment, what=what, id=id)
            case "DELETE", ["v1", "statement", ("queued" | "executing") as phase, query_id, slug, number]:
                return partial(self._delete_page, phase=phase, query_id=query_id, slug=slug, number=number)
            case "DELETE", ["v1", "statement", "executing", "partialCancel", query_id, _, slug, _]:
                return partial(self._stop, query_id=query_id, slug=slug)
            case "DELETE", ["v1", "statement" | "query", query_id]:
                return partial(self._cancel, query_id=query_id)
            case "GET" | "HEAD", ["v1", "info"]:
                return self._info
            case "GET" | "HEAD", ["v1", "info", "state"]:
                return self._state
            case "GET" | "HEAD", ["v1", "status"]:
                return self._status
            case "GET", ["v1", "node"]:
                return self._nodes
            case "GET", ["v1", "query"]:
                return self._queries
            case "GET", ["v1", "query", query_id]:
                return partial(self._query, query_id=query_id)
            case "GET", ["oauth2", "token", "initiate", hash] if self._sign_in is not None:
                return partial(self._initiate, hash=hash)
            case "GET" | "DELETE", ["oauth2", "token", id] if self._sign_in is not None:
                return partial(self._token, id=id)
        raise NotFoundError

    # -- logins

    async def _caller(self, request: BaseRequest) -> Caller:
        """Log in: every request says who it is from (TRI-1)."""
        prefix = next((each for each in _PREFIXES if request.headers.get(each + "User")), _PREFIXES[0])
        headers = ClientHeaders(request.headers, prefix)
        if len(request.headers.getall("Authorization", [])) > 1:
            raise InvalidCredentialsError
        client = self._client(request, headers)
        shown = credential(request.headers.get("Authorization"))
        if isinstance(shown, NoCredential):
            shown = _certificate(request) or shown
        if self._sign_in is not None and isinstance(shown, NoCredential):
            # The way of such clients to ask how to log in: no attempt, which the core would count.
            raise InvalidCredentialsError
        session = await self._in_thread(partial(self._gateway.authenticate, shown, client))
        if isinstance(request.protocol, GuardedHandler):
            self._connections.logged_in(request.protocol)
        identity, original = session.identity, headers.text("Original-User")
        if identity.personal and original not in (None, identity.username):
            # SET SESSION AUTHORIZATION of a client: nobody works for somebody else here (AUTHN-9).
            raise AccessDeniedError("The original user is not the one that logged in")
        return Caller(session=session, headers=headers, client=client)

    def _client(self, request: BaseRequest, headers: ClientHeaders | None = None) -> ClientInfo:
        return ClientInfo(
            protocol="trino",
            address=self._places.client_address(request),
            secure=self._places.is_secure(request),
            source=headers.source if headers else None,
            user_agent=request.headers.get("User-Agent", "")[:256] or None,
            requested_user=headers.user if headers else None,
        )

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def _initiate(self, request: BaseRequest, *, hash: str) -> Response:
        assert self._sign_in is not None
        return await self._sign_in.initiate(request, hash, self._client(request))

    async def _token(self, request: BaseRequest, *, id: str) -> Response:
        assert self._sign_in is not None
        if request.method == "DELETE":
            return self._sign_in.forget(id)
        return await self._sign_in.token(id, self._client(request), self._places.base(request))

    def _refused(self, request: BaseRequest, error: SqeError) -> Response:
        match error:
            case InvalidCredentialsError() | SqeError(code=ErrorCode.SESSION_EXPIRED):
                response = _text("Unauthorized", HTTPStatus.UNAUTHORIZED)
                response.headers.add("WWW-Authenticate", 'Basic realm="Trino"')
                if self._sign_in is not None:
                    response.headers.add("WWW-Authenticate", self._sign_in.challenge(self._places.base(request)))
                    # What comes next may be long in coming, and a connection without a login ends soon.
                    response.force_close()
                return response
            case AccessDeniedError():
                return _text(error.message, HTTPStatus.FORBIDDEN)
            case ShuttingDownError():
                return _text(error.message, HTTPStatus.SERVICE_UNAVAILABLE)
            case ResourcesError(retry_after_secs=int(secs)):
                response = _text(error.message, HTTPStatus.TOO_MANY_REQUESTS)
                response.headers["Retry-After"] = str(secs)
                return response
            case _:
                _log.info("the Trino listener refused a request: %s", error.code.name)
                return _text(error.message, HTTPStatus.BAD_REQUEST)

    # -- statements

    async def _post(self, request: BaseRequest) -> Response:
        caller = await self._caller(request)
        try:
            sql = await read_text(request, self._context.limits.sql_bytes, self._config.body_timeout_secs)
            state = caller.headers.state()
        except TooLargeError:
            too_large = error_names.named(
                *error_names.QUERY_TEXT_TOO_LARGE,
                f"Query text length exceeds the maximum length ({self._context.limits.sql_bytes})",
            )
            return self._failed_at_once(request, too_large)
        except SqeError as error:
            return self._failed_at_once(request, error_names.told(error))
        statement = caller.session.begin(
            StatementRequest(
                sql=sql,
                dialect="trino",
                state=state,
                trace_parent=request.headers.get("traceparent"),
                source=caller.headers.source,
                request_id=caller.headers.text("Trace-Token"),
            )
        )
        chain = Chain(
            statement,
            caller.session.identity.key,
            bounds=self._bounds,
            budget=self._budget,
            loop=asyncio.get_running_loop(),
        )
        parametric = _PARAMETRIC in caller.headers.capabilities
        run = partial(running.run, chain, parametric=parametric, segments=self._writer(request, caller, chain))
        self._statements.add(chain, run)
        return await self._page(request, caller, chain, 0, _FIRST_WAIT_SECS)

    def _writer(self, request: BaseRequest, caller: Caller, chain: Chain) -> SegmentWriter | None:
        encoding = encodings.wanted(caller.headers.listed("Query-Data-Encoding"), caller.client.user_agent)
        if self._segments is None or encoding is None:
            return None
        spool = chain.spool = self._segments.open(chain.owner, caller.session.token)
        spool.on_use = chain.touch
        chain.on_waste = partial(self._segments.drop, spool)
        return SegmentWriter(
            chain,
            spool,
            segments=self._segments,
            encoding=encoding,
            config=self._config.spooling,
            budget=self._budget,
            base=self._places.base(request),
        )

    async def _segment(self, request: BaseRequest, *, what: str, id: str) -> StreamResponse:
        if self._spooled is None:
            raise NoSegmentError
        client = self._client(request)
        segment, key = await self._spooled.found(id, request.headers.get(KEY_HEADER), client)
        if "Authorization" in request.headers:
            # Clients send none; who does is the owner, or nobody.
            caller = await self._caller(request)
            if caller.session.identity.key != segment.spool.owner:
                raise NoSegmentError
        if isinstance(request.protocol, GuardedHandler):
            self._connections.logged_in(request.protocol)
        if what == "ack":
            return await self._spooled.acknowledge(segment)
        return await self._spooled.download(request, segment, key)

    async def _beat(self, request: BaseRequest, *, phase: str, query_id: str, slug: str, number: str) -> Response:
        """A client that has not come for the next page yet is still there."""
        _, chain, _ = await self._asked(request, phase, query_id, slug, number)
        chain.touch()
        return Response()

    def _failed_at_once(self, request: BaseRequest, error: dict[str, Any]) -> Response:
        base = self._places.base(request)
        document = {"id": "none", "infoUri": f"{base}/v1/query/none", "stats": {"state": "FAILED"}, "error": error}
        return _json(document)

    async def _get_page(self, request: BaseRequest, *, phase: str, query_id: str, slug: str, number: str) -> Response:
        caller, chain, place = await self._asked(request, phase, query_id, slug, number)
        return await self._page(request, caller, chain, place, _wait_secs(request.query.get("maxWait")))

    async def _page(
        self, request: BaseRequest, caller: Caller, chain: Chain, number: int, wait_secs: float
    ) -> Response:
        base = self._places.base(request)  # whoever has gone meanwhile has no address any more
        await chain.ready(number, wait_secs)
        made = answer(chain, chain.take(number), base, caller.headers.prefix)
        return await self._sent(request, caller, made)

    async def _sent(self, request: BaseRequest, caller: Caller, made: Answer) -> Response:
        response = Response(body=made.body, content_type="application/json")
        for name, value in made.headers:
            response.headers.add(name, value)
        if encoding := compressed.wanted(request, self._config.compression, caller.client.address, len(made.body)):
            response.body = await self._in_thread(partial(compressed.pack, made.body, encoding))
            response.headers["Content-Encoding"] = encoding
        return response

    async def _asked(
        self, request: BaseRequest, phase: str, query_id: str, slug: str, number: str
    ) -> tuple[Caller, Chain, int]:
        caller = await self._caller(request)
        chain = self._statements.find(query_id, caller.session.identity.key)
        if chain is None or not number.isdecimal() or len(number) > 9:
            raise NotFoundError
        if not is_slug(slug, chain.slug_key, phase, int(number)):
            raise NotFoundError
        if chain.spool is not None:
            chain.spool.token = caller.session.token
        return caller, chain, int(number)

    async def _delete_page(
        self, request: BaseRequest, *, phase: str, query_id: str, slug: str, number: str
    ) -> Response:
        _, chain, _ = await self._asked(request, phase, query_id, slug, number)
        await self._in_thread(chain.cancel)
        return Response(status=HTTPStatus.NO_CONTENT)

    async def _stop(self, request: BaseRequest, *, query_id: str, slug: str) -> Response:
        """End a statement with the rows that are there."""
        caller = await self._caller(request)
        chain = self._statements.find(query_id, caller.session.identity.key)
        if chain is None or not is_slug(slug, chain.slug_key, "partial", 0):
            raise NotFoundError
        await self._in_thread(partial(chain.stop, None))
        return Response(status=HTTPStatus.NO_CONTENT)

    async def _cancel(self, request: BaseRequest, *, query_id: str) -> Response:
        caller = await self._caller(request)
        chain = self._statements.find(query_id, caller.session.identity.key)
        if chain is not None:
            await self._in_thread(chain.cancel)
        elif not await self._in_thread(partial(caller.session.cancel, query_id)):
            raise NotFoundError
        return Response(status=HTTPStatus.NO_CONTENT)

    # -- the server

    async def _info(self, request: BaseRequest) -> Response:
        status = self._gateway.status()
        return _json(
            {
                "nodeVersion": {"version": _major_minor(status.version)},
                "environment": "production",
                "coordinator": True,
                "starting": status.state is ServerState.STARTING,
                "uptime": "0.00s" if "Authorization" not in request.headers else await self._uptime(request),
            }
        )

    async def _uptime(self, request: BaseRequest) -> str:
        """Return how long the server runs, which is for those who logged in (TRI-1)."""
        await self._caller(request)
        began = self._gateway.status().started_at
        return f"{(self._context.clock.now() - began).total_seconds():.2f}s"

    async def _state(self, request: BaseRequest) -> Response:
        state = self._gateway.status().state
        return _json("SHUTTING_DOWN" if state is ServerState.DRAINING else state.name)

    async def _status(self, request: BaseRequest) -> Response:
        await self._caller(request)
        return _json(
            {
                "nodeId": "sqe",
                "nodeVersion": {"version": _major_minor(self._gateway.status().version)},
                "environment": "production",
                "coordinator": True,
                "uptime": await self._uptime(request),
            }
        )

    async def _nodes(self, request: BaseRequest) -> Response:
        await self._caller(request)
        return _json([])

    async def _queries(self, request: BaseRequest) -> Response:
        caller = await self._caller(request)
        base = self._places.base(request)
        return _json([_query_info(chain, base) for chain in self._statements.of(caller.session.identity.key)])

    async def _query(self, request: BaseRequest, *, query_id: str) -> Response:
        caller = await self._caller(request)
        chain = self._statements.find(query_id, caller.session.identity.key)
        if chain is None:
            raise NotFoundError
        return _json(_query_info(chain, self._places.base(request)))


def _query_info(chain: Chain, base: str) -> dict[str, Any]:
    stats = statement_stats(chain.statement.progress(), ended=chain.ended)
    return {
        "queryId": chain.id,
        "state": stats["state"],
        "scheduled": stats["scheduled"],
        "self": f"{base}/v1/query/{chain.id}",
        "updateType": chain.outcome.kind,
        "queryStats": stats,
    }


def _certificate(request: BaseRequest) -> Credential | None:
    secured = request.get_extra_info("ssl_object")
    der = secured.getpeercert(binary_form=True) if secured is not None else None
    return CertificateCredential(der=der) if der else None


def _major_minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _wait_secs(text: str | None) -> float:
    """Return how long a client wants to wait: `500ms`, `1s`, `0.5m`."""
    if not text:
        return _WAIT_SECS
    for unit, scale in (("ms", 0.001), ("us", 1e-6), ("s", 1.0), ("m", 60.0)):
        number = text.strip().removesuffix(unit)
        if text.strip().endswith(unit) and number.replace(".", "", 1).isdecimal():
            return min(float(number) * scale, _LONGEST_WAIT_SECS)
    return _WAIT_SECS


def _text(message: str, status: HTTPStatus) -> Response:
    return Response(text=f"{message}\n", status=status)


def _json(document: object) -> Response:
    return Response(body=json.dumps(document).encode(), content_type="application/json")
