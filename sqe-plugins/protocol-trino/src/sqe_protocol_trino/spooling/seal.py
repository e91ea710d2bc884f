"""Segments at rest: AES-256-GCM in frames, each segment with a key of its own that only its client has.

A frame's number and whether it is the last are in its nonce, so frames that are moved, repeated, left out or cut off
do not open. One key seals one segment: no nonce comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FRAME_BYTES = 512 << 10
TAG_BYTES = 16
KEY_BYTES = 32


class DamagedError(Exception):
    """What was stored is not what was sealed."""


class Readable(Protocol):
    """Where a sealed segment is read from."""

    def read(self, size: int, /) -> bytes:
        """Return as many bytes, fewer at the end."""


def sealed_size(size: int) -> int:
    """Return how many bytes as many become."""
    return size + TAG_BYTES * _frames(size)


def seal(key: bytes, data: bytes) -> Iterator[bytes]:
    """Yield the sealed frames of a segment."""
    cipher, whole, frames = AESGCM(key), memoryview(data), _frames(len(data))
    for number in range(frames):
        frame = whole[number * FRAME_BYTES : (number + 1) * FRAME_BYTES]
        yield cipher.encrypt(_nonce(number, number == frames - 1), frame, None)


def unseal(key: bytes, stored: Readable, size: int) -> Iterator[bytes]:
    """Yield what was sealed, frame by frame.

    Args:
        key: that it was sealed with.
        stored: where the frames are.
        size: how many bytes were sealed.

    Raises:
        DamagedError: something else is there.
    """
    cipher, frames = AESGCM(key), _frames(size)
    for number in range(frames):
        last = number == frames - 1
        length = size - number * FRAME_BYTES if last else FRAME_BYTES
        frame = stored.read(length + TAG_BYTES)
        try:
            yield cipher.decrypt(_nonce(number, last), frame, None)
        except (InvalidTag, ValueError):
            raise DamagedError from None


def _frames(size: int) -> int:
    return max(1, -(-size // FRAME_BYTES))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
