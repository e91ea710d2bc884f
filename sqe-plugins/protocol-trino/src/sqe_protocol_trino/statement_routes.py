"""Statements and their pages, as clients ask for them."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any

from aiohttp.web import BaseRequest, Response

from sqe_core.spi import ProtocolContext, SqeError, StatementRequest
from sqe_protocol_trino import compressed, error_names, running
from sqe_protocol_trino.bodies import TooLargeError, read_text
from sqe_protocol_trino.budget import Budget
from sqe_protocol_trino.callers import Caller, Callers
from sqe_protocol_trino.chain import Chain, ChainBounds
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.places import Places, is_slug
from sqe_protocol_trino.replies import NotFoundError, json_reply
from sqe_protocol_trino.spooling import encodings
from sqe_protocol_trino.spooling.segments import Segments
from sqe_protocol_trino.spooling.writer import SegmentWriter
from sqe_protocol_trino.statement_page import Answer, answer
from sqe_protocol_trino.statements import Statements

_PARAMETRIC = "PARAMETRIC_DATETIME"
_FIRST_WAIT_SECS, _WAIT_SECS, _LONGEST_WAIT_SECS = 1.0, 1.0, 10.0


class StatementRoutes:
    """Begins statements, answers their pages, and ends them."""

    def __init__(
        self,
        config: TrinoConfig,
        context: ProtocolContext,
        callers: Callers,
        *,
        places: Places,
        statements: Statements,
        segments: Segments | None,
    ) -> None:
        self._config, self._context, self._callers = config, context, callers
        self._places, self._statements, self._segments = places, statements, segments
        self._budget = Budget(config.cache_bytes)
        self._bounds = ChainBounds(page_bytes=config.page_bytes, linger_secs=config.page_linger_millis / 1000)

    async def post(self, request: BaseRequest) -> Response:
        caller = await self._callers.log_in(request)
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
            caller.key,
            bounds=self._bounds,
            budget=self._budget,
            loop=asyncio.get_running_loop(),
        )
        parametric = _PARAMETRIC in caller.headers.capabilities
        segments = self._writer(request, caller, chain)
        run = partial(running.run, chain, sql=sql, parametric=parametric, segments=segments)
        try:
            self._statements.add(chain, run)
        except SqeError:
            chain.forget()
            raise
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

    async def beat(self, request: BaseRequest, *, phase: str, query_id: str, slug: str, number: str) -> Response:
        """A client that has not come for the next page yet is still there."""
        _, chain, _ = await self._asked(request, phase, query_id, slug, number)
        chain.touch()
        return Response()

    def _failed_at_once(self, request: BaseRequest, error: dict[str, Any]) -> Response:
        base = self._places.base(request)
        document = {"id": "none", "infoUri": f"{base}/v1/query/none", "stats": {"state": "FAILED"}, "error": error}
        return json_reply(document)

    async def get_page(self, request: BaseRequest, *, phase: str, query_id: str, slug: str, number: str) -> Response:
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
            response.body = await self._callers.in_thread(partial(compressed.pack, made.body, encoding))
            response.headers["Content-Encoding"] = encoding
        return response

    async def _asked(
        self, request: BaseRequest, phase: str, query_id: str, slug: str, number: str
    ) -> tuple[Caller, Chain, int]:
        caller = await self._callers.log_in(request)
        chain = self._statements.find(query_id, caller.key)
        if chain is None or not number.isdecimal() or len(number) > 9:
            raise NotFoundError
        if not is_slug(slug, chain.slug_key, phase, int(number)):
            raise NotFoundError
        if chain.spool is not None:
            chain.spool.token = caller.session.token
        return caller, chain, int(number)

    async def delete_page(self, request: BaseRequest, *, phase: str, query_id: str, slug: str, number: str) -> Response:
        _, chain, _ = await self._asked(request, phase, query_id, slug, number)
        await self._callers.in_thread(chain.cancel)
        return Response(status=HTTPStatus.NO_CONTENT)

    async def stop(self, request: BaseRequest, *, query_id: str, slug: str) -> Response:
        """End a statement with the rows that are there."""
        caller = await self._callers.log_in(request)
        chain = self._statements.find(query_id, caller.key)
        if chain is None or not is_slug(slug, chain.slug_key, "partial", 0):
            raise NotFoundError
        await self._callers.in_thread(partial(chain.stop, None))
        return Response(status=HTTPStatus.NO_CONTENT)

    async def cancel(self, request: BaseRequest, *, query_id: str) -> Response:
        caller = await self._callers.log_in(request)
        chain = self._statements.find(query_id, caller.key)
        if chain is not None:
            await self._callers.in_thread(chain.cancel)
        elif not await self._callers.in_thread(partial(caller.session.cancel, query_id)):
            raise NotFoundError
        return Response(status=HTTPStatus.NO_CONTENT)


def _wait_secs(text: str | None) -> float:
    """Return how long a client wants to wait: `500ms`, `1s`, `0.5m`."""
    if not text:
        return _WAIT_SECS
    for unit, scale in (("ms", 0.001), ("us", 1e-6), ("s", 1.0), ("m", 60.0)):
        number = text.strip().removesuffix(unit)
        if text.strip().endswith(unit) and number.replace(".", "", 1).isdecimal():
            return min(float(number) * scale, _LONGEST_WAIT_SECS)
    return _WAIT_SECS
