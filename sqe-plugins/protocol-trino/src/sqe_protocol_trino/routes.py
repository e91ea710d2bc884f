"""The addresses of Trino's protocol, and what is answered there."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus

from aiohttp.web import BaseRequest, HTTPException, Response, StreamResponse

from sqe_core.spi import (
    AccessDeniedError,
    ErrorCode,
    InvalidCredentialsError,
    ProtocolContext,
    QueryGateway,
    ResourcesError,
    ShuttingDownError,
    SqeError,
)
from sqe_protocol_trino.callers import Callers
from sqe_protocol_trino.chain import GoneError, NoPageError
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.connections import Connections, GuardedHandler
from sqe_protocol_trino.places import Places
from sqe_protocol_trino.replies import EVERY_ANSWER, NotFoundError, text_reply
from sqe_protocol_trino.server_routes import ServerRoutes
from sqe_protocol_trino.sign_in import SignIn
from sqe_protocol_trino.spooling.routes import NoSegmentError, SpooledRoutes
from sqe_protocol_trino.spooling.segments import Segments
from sqe_protocol_trino.spooling.writer import KEY_HEADER
from sqe_protocol_trino.statement_routes import StatementRoutes
from sqe_protocol_trino.statements import Statements

_log = logging.getLogger("sqe_core.trino")


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
        self._context, self._places = context, places
        callers = self._callers = Callers(gateway, places, connections, threads)
        self._of_statements = StatementRoutes(
            config, context, callers, places=places, statements=statements, segments=segments
        )
        self._of_server = ServerRoutes(gateway, callers, places=places, statements=statements, clock=context.clock)
        self._spooled = (
            SpooledRoutes(config.spooling, segments, gateway, callers.in_thread, EVERY_ANSWER)
            if segments is not None
            else None
        )
        logins = gateway.browser_logins
        self._sign_in = SignIn(logins, callers.in_thread) if logins is not None else None

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer a request."""
        response = await self._answer(request)
        response.headers.update(EVERY_ANSWER)
        return response

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        protocol = request.protocol
        if isinstance(protocol, GuardedHandler):
            protocol.head_arrived()
        try:
            if sum(len(name) + len(value) for name, value in request.raw_headers) > self._context.limits.header_bytes:
                return text_reply("The headers are too long", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return await self._route(request)(request)
        except SqeError as error:
            return self._refused(request, error)
        except NoSegmentError:
            return text_reply("Segment not found", HTTPStatus.NOT_FOUND)
        except (NotFoundError, NoPageError):
            return text_reply("Query not found", HTTPStatus.NOT_FOUND)
        except GoneError:
            return text_reply("The page was read already", HTTPStatus.GONE)
        except HTTPException:
            raise
        except ConnectionError:  # nobody is there to read it
            return text_reply("Gone", HTTPStatus.BAD_REQUEST)
        except Exception:  # noqa: BLE001 - the border: whoever asks learns nothing of it (ERR-1)
            _log.exception("the Trino listener could not answer")
            return text_reply("Internal error", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _route(self, request: BaseRequest) -> Callable[[BaseRequest], Awaitable[StreamResponse]]:
        path = request.path
        if self._sign_in is not None and request.method == "GET" and path == self._sign_in.callback_path:
            return self._sign_in.callback
        statements, server = self._of_statements, self._of_server
        match request.method, path.split("/")[1:]:
            case "POST", ["v1", "statement"]:
                return statements.post
            case "GET", ["v1", "statement", ("queued" | "executing") as phase, query_id, slug, number]:
                return partial(statements.get_page, phase=phase, query_id=query_id, slug=slug, number=number)
            case "HEAD", ["v1", "statement", ("queued" | "executing") as phase, query_id, slug, number]:
                return partial(statements.beat, phase=phase, query_id=query_id, slug=slug, number=number)
            case "GET", ["v1", "spooled", ("download" | "ack") as what, id]:
                return partial(self._segment, what=what, id=id)
            case "DELETE", ["v1", "statement", ("queued" | "executing") as phase, query_id, slug, number]:
                return partial(statements.delete_page, phase=phase, query_id=query_id, slug=slug, number=number)
            case "DELETE", ["v1", "statement", "executing", "partialCancel", query_id, _, slug, _]:
                return partial(statements.stop, query_id=query_id, slug=slug)
            case "DELETE", ["v1", "statement" | "query", query_id]:
                return partial(statements.cancel, query_id=query_id)
            case "GET" | "HEAD", ["v1", "info"]:
                return server.info
            case "GET" | "HEAD", ["v1", "info", "state"]:
                return server.state
            case "GET" | "HEAD", ["v1", "status"]:
                return server.status
            case "GET", ["v1", "node"]:
                return server.nodes
            case "GET", ["v1", "query"]:
                return server.queries
            case "GET", ["v1", "query", query_id]:
                return partial(server.query, query_id=query_id)
            case "GET", ["oauth2", "token", "initiate", hash] if self._sign_in is not None:
                return partial(self._initiate, hash=hash)
            case "GET" | "DELETE", ["oauth2", "token", id] if self._sign_in is not None:
                return partial(self._token, id=id)
        raise NotFoundError

    async def _initiate(self, request: BaseRequest, *, hash: str) -> Response:
        assert self._sign_in is not None
        return await self._sign_in.initiate(request, hash, self._callers.client(request))

    async def _token(self, request: BaseRequest, *, id: str) -> Response:
        assert self._sign_in is not None
        if request.method == "DELETE":
            return self._sign_in.forget(id)
        return await self._sign_in.token(id, self._callers.client(request), self._places.base(request))

    def _refused(self, request: BaseRequest, error: SqeError) -> Response:
        match error:
            case InvalidCredentialsError() | SqeError(code=ErrorCode.SESSION_EXPIRED):
                response = text_reply("Unauthorized", HTTPStatus.UNAUTHORIZED)
                response.headers.add("WWW-Authenticate", 'Basic realm="Trino"')
                if self._sign_in is not None:
                    response.headers.add("WWW-Authenticate", self._sign_in.challenge(self._places.base(request)))
                    # What comes next may be long in coming, and a connection without a login ends soon.
                    response.force_close()
                return response
            case AccessDeniedError():
                return text_reply(error.message, HTTPStatus.FORBIDDEN)
            case ShuttingDownError():
                return text_reply(error.message, HTTPStatus.SERVICE_UNAVAILABLE)
            case ResourcesError(retry_after_secs=int(secs)):
                response = text_reply(error.message, HTTPStatus.TOO_MANY_REQUESTS)
                response.headers["Retry-After"] = str(secs)
                return response
            case _:
                _log.info("the Trino listener refused a request: %s", error.code.name)
                return text_reply(error.message, HTTPStatus.BAD_REQUEST)

    async def _segment(self, request: BaseRequest, *, what: str, id: str) -> StreamResponse:
        if self._spooled is None:
            raise NoSegmentError
        client = self._callers.client(request)
        segment, key = await self._spooled.found(id, request.headers.get(KEY_HEADER), client)
        if "Authorization" in request.headers:
            # Clients send none; who does is the owner, or nobody.
            caller = await self._callers.log_in(request)
            if caller.key != segment.spool.owner:
                raise NoSegmentError
        self._callers.is_known(request)
        if what == "ack":
            return await self._spooled.acknowledge(segment)
        return await self._spooled.download(request, segment, key)
