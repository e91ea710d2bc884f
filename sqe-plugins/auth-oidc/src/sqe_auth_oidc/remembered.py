"""What is known of tokens, without the tokens."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Something of each token, by its hash; of too many the oldest are forgotten. Safe for use from many threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, T] = OrderedDict()

    def find(self, token: str) -> T | None:
        with self._lock:
            return self._kept.get(_digest(token))

    def keep(self, token: str, known: T) -> None:
        with self._lock:
            self._kept[_digest(token)] = known
            self._kept.move_to_end(_digest(token))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def forget(self, token: str) -> None:
        with self._lock:
            self._kept.pop(_digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
