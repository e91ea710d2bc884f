"""What a server says of itself, and of the statements of whoever asks."""

from __future__ import annotations

from typing import Any

from aiohttp.web import BaseRequest, Response

from sqe_core.spi import Clock, QueryGateway, ServerState
from sqe_protocol_trino.callers import Callers
from sqe_protocol_trino.chain import Chain
from sqe_protocol_trino.places import Places
from sqe_protocol_trino.replies import NotFoundError, json_reply
from sqe_protocol_trino.statements import Statements
from sqe_protocol_trino.stats import statement_stats


class ServerRoutes:
    """Answers what is asked beside statements; all but the version is for those who logged in (TRI-1)."""

    def __init__(
        self, gateway: QueryGateway, callers: Callers, *, places: Places, statements: Statements, clock: Clock
    ) -> None:
        self._gateway, self._callers = gateway, callers
        self._places, self._statements, self._clock = places, statements, clock

    async def info(self, request: BaseRequest) -> Response:
        status = self._gateway.status()
        return json_reply(
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
        await self._callers.log_in(request)
        began = self._gateway.status().started_at
        return f"{(self._clock.now() - began).total_seconds():.2f}s"

    async def state(self, request: BaseRequest) -> Response:
        state = self._gateway.status().state
        return json_reply("SHUTTING_DOWN" if state is ServerState.DRAINING else state.name)

    async def status(self, request: BaseRequest) -> Response:
        await self._callers.log_in(request)
        return json_reply(
            {
                "nodeId": "sqe",
                "nodeVersion": {"version": _major_minor(self._gateway.status().version)},
                "environment": "production",
                "coordinator": True,
                "uptime": await self._uptime(request),
            }
        )

    async def nodes(self, request: BaseRequest) -> Response:
        await self._callers.log_in(request)
        return json_reply([])

    async def queries(self, request: BaseRequest) -> Response:
        caller = await self._callers.log_in(request)
        base = self._places.base(request)
        if not caller.session.identity.personal:
            return json_reply([])  # many people share it, and nobody knows whose is whose (TRI-9)
        return json_reply([_query_info(chain, base) for chain in self._statements.of(caller.key)])

    async def query(self, request: BaseRequest, *, query_id: str) -> Response:
        caller = await self._callers.log_in(request)
        chain = self._statements.find(query_id, caller.key)
        if chain is None:
            raise NotFoundError
        return json_reply(_query_info(chain, self._places.base(request)))


def _query_info(chain: Chain, base: str) -> dict[str, Any]:
    stats = statement_stats(chain.statement.progress(), ended=chain.ended)
    return {
        "queryId": chain.id,
        "state": stats["state"],
        "scheduled": stats["scheduled"],
        "self": f"{base}/v1/query/{chain.id}",
        "updateType": chain.outcome.update_type,
        "queryStats": stats,
    }


def _major_minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
