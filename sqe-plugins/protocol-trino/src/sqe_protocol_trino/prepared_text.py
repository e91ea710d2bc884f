"""Texts of prepared statements in headers: long ones are compressed, as Trino's server does for its clients to keep."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

import zstandard

from sqe_core.spi import ErrorCode, UserError

_MARK = "$zstd:"
_LONG = 2048
_LONGEST = 1 << 20
"""Of all texts of a request together: a few bytes of a header may stand for that many, and it has room for many."""


def packed(text: str) -> str:
    """Return a text as clients keep it."""
    if len(text) < _LONG:
        return text
    return _MARK + base64.urlsafe_b64encode(zstandard.compress(text.encode())).decode()


def unpacked(kept: str) -> str:
    """Return the text that a client kept.

    Raises:
        UserError: it was not made by `packed`.
    """
    if not kept.startswith(_MARK):
        return kept
    try:
        data = base64.urlsafe_b64decode(kept.removeprefix(_MARK))
        if not 0 <= zstandard.frame_content_size(data) <= _LONGEST:
            raise ValueError  # it would be as large as its sender likes
        return zstandard.decompress(data, max_output_size=_LONGEST).decode()
    except (binascii.Error, ValueError, zstandard.ZstdError):
        raise UserError("A prepared statement cannot be read", code=ErrorCode.INVALID_ARGUMENTS) from None


def all_unpacked(kept: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that a client kept, by their names.

    Raises:
        UserError: one was not made by `packed`, or together they are too long.
    """
    texts: dict[str, str] = {}
    left = _LONGEST
    for name, each in kept.items():
        texts[name] = unpacked(each)
        left -= len(texts[name])
        if left < 0:
            raise UserError(
                f"The prepared statements are longer than {_LONGEST} characters together",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="DEALLOCATE those that are not needed",
            )
    return texts
