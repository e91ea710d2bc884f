"""The segments that wait for their clients: bounded, found by who was given them, and deleted when they are done.

A client sends no login for a segment, only the headers that the page named: Trino's clients leave `Authorization` out,
for segments may lie in foreign stores. So the page names a header with the key of the segment, which is what it is
sealed with, and which the server does not keep. The session has to be alive, too (docs/adr/0018).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sqe_core.spi import Secret
from sqe_protocol_trino.config import SpoolingConfig
from sqe_protocol_trino.spooling import seal
from sqe_protocol_trino.spooling.storage import Storage, StoredSegment

_log = logging.getLogger("sqe_core.trino")


@dataclass(slots=True, eq=False, kw_only=True)
class Spool:
    """The segments of one statement.

    Args:
        owner: whose it is.
        token: of a session of the owner; when that has ended, the segments are over.
    """

    owner: tuple[str, str]
    token: Secret
    touched: float = field(default_factory=time.monotonic)
    on_use: Callable[[], None] = lambda: None
    _bytes: int = 0
    _segments: set[str] = field(default_factory=set)
    _closed: bool = False
    _written: bool = False

    def use(self) -> None:
        """Note that its client is there."""
        self.touched = time.monotonic()
        self.on_use()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment that waits; `size` is what its client reads."""

    id: str
    name: str
    size: int
    spool: Spool
    key_hash: bytes


@dataclass(frozen=True, slots=True)
class Given:
    """What a client needs for a segment."""

    id: str
    key: bytes


class Segments:
    """All segments. Safe for use from many threads."""

    def __init__(self, config: SpoolingConfig, storage: Storage) -> None:
        self._config, self._storage = config, storage
        self._lock = threading.Lock()
        self._known: dict[str, Segment] = {}
        self._spools: set[Spool] = set()
        self._used = 0
        self._deleting = ThreadPoolExecutor(1, thread_name_prefix="sqe-trino-spool")

    @property
    def used(self) -> int:
        """How many bytes are stored."""
        return self._used

    @property
    def waiting(self) -> int:
        """How many segments wait."""
        return len(self._known)

    def open(self, owner: tuple[str, str], token: Secret) -> Spool:
        """Begin the segments of a statement."""
        spool = Spool(owner=owner, token=token)
        with self._lock:
            self._spools.add(spool)
        return spool

    def store(self, spool: Spool, data: bytes) -> Given | None:
        """Keep a segment; None when there is no room, for the statement, for all, or on the disk."""
        size = seal.sealed_size(len(data))
        if not self._reserve(spool, size):
            return None
        given, name = Given(secrets.token_urlsafe(24), secrets.token_bytes(seal.KEY_BYTES)), secrets.token_hex(16)
        try:
            if not self._storage.has_room(size):
                raise OSError("the disk is nearly full")
            self._storage.write(name, seal.seal(given.key, data))
        except OSError as error:
            _log.warning("a segment could not be spooled, its rows go into the page: %s", error.strerror or error)
            self._release(spool, size)
            return None
        segment = Segment(id=given.id, name=name, size=len(data), spool=spool, key_hash=_hash(given.key))
        with self._lock:
            if not spool._closed:
                self._known[given.id] = segment
                spool._segments.add(given.id)
                return given
        self._delete(segment)
        return None

    def written(self, spool: Spool) -> None:
        """No segment comes any more: it is forgotten with the last of them, or at once."""
        with self._lock:
            spool._written = True
            self._forget_empty(spool)

    def _forget_empty(self, spool: Spool) -> None:
        if spool._written and not spool._segments:
            self._spools.discard(spool)

    def _reserve(self, spool: Spool, size: int) -> bool:
        with self._lock:
            full = self._used + size > self._config.max_bytes
            if full or spool._bytes + size > self._config.max_statement_bytes or spool._closed:
                return False
            self._used += size
            spool._bytes += size
            return True

    def _release(self, spool: Spool, size: int) -> None:
        with self._lock:
            self._used -= size
            spool._bytes -= size

    def find(self, id: str, key: bytes) -> Segment | None:
        """Return a segment to whom it was given."""
        segment = self._known.get(id)
        # Whether it is there or not takes the same time.
        known = segment.key_hash if segment is not None else bytes(32)
        return segment if hmac.compare_digest(known, _hash(key)) else None

    def read(self, segment: Segment, key: bytes) -> tuple[StoredSegment, Iterator[bytes]]:
        """Return the file of a segment, to be closed, and what is in it.

        Raises:
            OSError: it is not there any more.
        """
        stored = self._storage.open(segment.name)
        return stored, seal.unseal(key, stored, segment.size)

    def acknowledge(self, segment: Segment) -> None:
        """Delete a segment, which its client has."""
        with self._lock:
            if self._known.pop(segment.id, None) is None:
                return
            segment.spool._segments.discard(segment.id)
            self._forget_empty(segment.spool)
        self._delete(segment)

    def drop(self, spool: Spool) -> None:
        """Delete all segments of a statement, those too that are being written."""
        with self._lock:
            spool._closed = True
            self._spools.discard(spool)
            gone = [self._known.pop(id) for id in spool._segments]
            spool._segments.clear()
        for segment in gone:
            self._delete(segment)

    def _delete(self, segment: Segment) -> None:
        """Delete what is stored, elsewhere: a store may be slow. It counts until it is gone."""
        try:
            self._deleting.submit(self._delete_now, segment)
        except RuntimeError:  # it is closed, and all goes
            return

    def _delete_now(self, segment: Segment) -> None:
        try:
            self._storage.delete(segment.name)
        except OSError as error:
            _log.warning("a spooled segment could not be deleted: %s", error.strerror or error)
        self._release(segment.spool, seal.sealed_size(segment.size))

    def sweep(self) -> None:
        """Delete what nobody came for."""
        before = time.monotonic() - self._config.ttl_secs
        with self._lock:
            old = [spool for spool in self._spools if spool.touched < before]
        for spool in old:
            self.drop(spool)

    def close(self) -> None:
        """Delete everything."""
        with self._lock:
            self._known.clear()
            for spool in self._spools:
                spool._closed = True
        self._deleting.shutdown(cancel_futures=True)
        self._storage.close()


def _hash(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
