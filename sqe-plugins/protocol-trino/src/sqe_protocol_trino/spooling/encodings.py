"""How the rows of a segment are written: Trino's encodings that are JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import lz4.block
import zstandard

_LEVEL = 1
_WORTH = 4096


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows as a client fetches them; `uncompressed` is None where they are as they were."""

    data: bytes
    uncompressed: int | None = None


@dataclass(frozen=True, slots=True)
class Encoding:
    """One of Trino's names, and what it stands for."""

    name: str
    _compress: Callable[[bytes], bytes] | None = None

    def encode(self, text: bytes) -> Encoded:
        """Return rows, compressed where that makes them smaller; clients see it by the size that is told."""
        if self._compress is None or len(text) < _WORTH:
            return Encoded(text)
        packed = self._compress(text)
        return Encoded(packed, len(text)) if len(packed) < len(text) else Encoded(text)


def _zstd(text: bytes) -> bytes:
    return zstandard.compress(text, level=_LEVEL)


def _lz4(text: bytes) -> bytes:
    # A bare block: clients know how long it becomes.
    packed: bytes = lz4.block.compress(text, mode="fast", acceleration=2, store_size=False)
    return packed


_KNOWN = {each.name: each for each in (Encoding("json"), Encoding("json+lz4", _lz4), Encoding("json+zstd", _zstd))}

# Java's clients ask for segments since 465, and fetched them with the machine's certificates alone until 469:
# https://github.com/trinodb/trino/pull/24595
_JAVA, _FIRST_JAVA = re.compile(r"(?:Trino JDBC Driver|Trino CLI|trino-cli|StatementClientV1)/([0-9]{1,6})"), 469


def wanted(names: Iterable[str], user_agent: str | None = None) -> Encoding | None:
    """Return the first that is known, which is the one that the client likes best; None for rows in pages.

    Args:
        names: what the client knows.
        user_agent: what it is; some ask for what they cannot fetch.
    """
    java = _JAVA.search(user_agent or "")
    if java is not None and int(java[1]) < _FIRST_JAVA:
        return None
    return next((_KNOWN[name.lower()] for name in names if name.lower() in _KNOWN), None)
