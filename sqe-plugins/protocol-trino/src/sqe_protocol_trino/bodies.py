"""What comes in a request's body, within bounds."""

from __future__ import annotations

import asyncio

from aiohttp.web import BaseRequest

from sqe_core.spi import ErrorCode, UserError

_CHUNK = 64 << 10


class TooLargeError(Exception):
    """A body beyond the bound, of which no more was read."""


async def read_text(request: BaseRequest, most: int, secs: float) -> str:
    """Return the text of a statement.

    Args:
        request: where it comes from.
        most: bytes.
        secs: how long it may take.

    Raises:
        TooLargeError: it is longer.
        UserError: it did not arrive in time, or is no text.
    """
    if (request.content_length or 0) > most:
        raise TooLargeError
    body = bytearray()
    try:
        async with asyncio.timeout(secs):
            while chunk := await request.content.read(_CHUNK):
                body += chunk
                if len(body) > most:
                    raise TooLargeError
    except TimeoutError:
        raise UserError("The statement did not arrive in time", code=ErrorCode.SYNTAX_ERROR) from None
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise UserError("The statement is not UTF-8", code=ErrorCode.SYNTAX_ERROR) from None
