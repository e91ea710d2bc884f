"""What is answered where segments are fetched and acknowledged."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from aiohttp.web import BaseRequest, Response, StreamResponse

from sqe_core.spi import BearerCredential, ClientInfo, ErrorCode, InvalidCredentialsError, QueryGateway, SqeError
from sqe_protocol_trino.config import SpoolingConfig
from sqe_protocol_trino.spooling.seal import KEY_BYTES, DamagedError
from sqe_protocol_trino.spooling.segments import Segment, Segments
from sqe_protocol_trino.spooling.writer import KEY_HEADER

_log = logging.getLogger("sqe_core.trino")
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class NoSegmentError(Exception):
    """There is none, it is over, or it is somebody else's: all the same."""


class SpooledRoutes:
    """Serves segments. The event loop's.

    Args:
        config: bounds.
        segments: what is there.
        gateway: knows which sessions are alive.
        in_thread: runs what waits.
        headers: of every answer.
    """

    def __init__(
        self,
        config: SpoolingConfig,
        segments: Segments,
        gateway: QueryGateway,
        in_thread: InThread,
        headers: Mapping[str, str],
    ) -> None:
        self._config, self._segments, self._gateway = config, segments, gateway
        self._in_thread, self._headers = in_thread, headers
        self._slots = asyncio.Semaphore(config.max_downloads)

    async def found(self, id: str, key_text: str | None, client: ClientInfo) -> tuple[Segment, bytes]:
        """Return a segment to whom it was given, while that one's session lives.

        Raises:
            NoSegmentError: there is none.
        """
        key = _key(key_text)
        segment = self._segments.find(id, key)
        if segment is None:
            raise NoSegmentError
        session = BearerCredential(token=segment.spool.token)
        try:
            await self._in_thread(partial(self._gateway.authenticate, session, client))
        except SqeError as error:
            if not isinstance(error, InvalidCredentialsError) and error.code is not ErrorCode.SESSION_EXPIRED:
                raise
            self._segments.drop(segment.spool)
            raise NoSegmentError from None
        segment.spool.use()
        return segment, key

    async def acknowledge(self, segment: Segment) -> Response:
        """Delete a segment."""
        self._segments.acknowledge(segment)
        return Response()

    async def download(self, request: BaseRequest, segment: Segment, key: bytes) -> StreamResponse:
        """Send a segment, a frame at a time, to whoever reads it."""
        async with self._slots:
            try:
                stored, frames = await self._in_thread(partial(self._segments.read, segment, key))
            except OSError as error:
                _log.error("a spooled segment cannot be read: %s", error.strerror or error)
                raise NoSegmentError from None
            try:
                return await self._sent(request, segment, frames)
            finally:
                await self._in_thread(stored.close)

    async def _sent(self, request: BaseRequest, segment: Segment, frames: Iterator[bytes]) -> StreamResponse:
        response = StreamResponse(headers=self._headers)
        response.content_type = "application/octet-stream"
        response.content_length = segment.size
        try:
            await response.prepare(request)
            while (frame := await self._in_thread(partial(next, frames, None))) is not None:
                async with asyncio.timeout(self._config.download_idle_secs):
                    await response.write(frame)
                segment.spool.use()
            await response.write_eof()
        except TimeoutError:
            raise _cut(request, "a client does not read its segment") from None
        except DamagedError:
            raise _cut(request, "a spooled segment was changed by somebody else") from None
        except OSError as error:
            raise _cut(request, f"a spooled segment cannot be read: {error.strerror or error}") from None
        return response


def _cut(request: BaseRequest, why: str) -> ConnectionError:
    """End the connection: a client must not take a part for the whole."""
    _log.warning("a download was ended: %s", why)
    if request.transport is not None:
        request.transport.abort()
    return ConnectionAbortedError(why)


def _key(text: str | None) -> bytes:
    try:
        key = base64.b64decode((text or "").encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeError):
        raise NoSegmentError from None
    if len(key) != KEY_BYTES:
        raise NoSegmentError
    return key


__all__ = ["KEY_HEADER", "NoSegmentError", "SpooledRoutes"]
