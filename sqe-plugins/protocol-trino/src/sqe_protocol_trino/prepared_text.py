"""Texts of prepared statements in headers: long ones are compressed, as Trino's server does for its clients to keep."""

from __future__ import annotations

import base64
import binascii

import zstandard

from sqe_core.spi import ErrorCode, UserError

_MARK = "$zstd:"
_LONG = 2048
_LONGEST = 1 << 20


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
