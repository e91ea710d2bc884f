"""The audit log: JSON lines, chained by hashes, in a file that is only ever appended to (docs/audit.md, OBS-5).

Every event is in the operating system's hands before the call returns, so the end of this process loses none. Events
that change rights are synced to the disk at once, all others within a second: that much a power failure may take.
What cannot be written waits in memory, bounded, and goes first when the file can be written again; it counts and
alarms at once.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import threading
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqe_core.observe.audit_chain import START, Link, Tail, seal, tail_of
from sqe_core.observe.logging import plain, redact_secrets
from sqe_core.spi.errors import ErrorCode, ExternalError, StartupError
from sqe_core.spi.factory import Metrics, NoMetrics

_log = logging.getLogger(__name__)

_MODE = 0o600
_SYNC_SECS = 1.0
_TAIL_BYTES = (1 << 18, 1 << 24)
_MOST_WAITING = 1000
_LONGEST_TEXT = 65_536
_SYNCED_AT_ONCE = frozenset({"grant", "admin_ddl"})
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class AuditLog:
    """One file of one server. Safe for use from many threads.

    The file may be renamed while the server runs (logrotate with `create` or `nocreate`, never `copytruncate`): the
    next event begins a new one, which goes on with the chain.

    Args:
        path: the file; its folder must exist.
        refuse: whether nothing may happen that cannot be recorded. Without it, what happens goes on, unrecorded for
            as long as the file cannot be written.
        metrics: where events and failures are counted.

    Raises:
        StartupError: the file cannot be opened, others may write it, or another server does.
    """

    def __init__(self, path: Path, *, refuse: bool = False, metrics: Metrics | None = None) -> None:
        self._path = path
        self.refuses = refuse
        self._metrics = metrics or NoMetrics()
        self._lock = threading.Lock()
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._lost = 0
        self._failing = False
        self._torn = False
        self._unsynced = False
        self._closed = threading.Event()
        self._last: Link = START
        try:
            self._file = self._open()
        except OSError as error:
            raise StartupError(f"The audit log {path} cannot be written: {error.strerror or error}") from error
        self._size = os.fstat(self._file).st_size
        self._resume()
        self._metrics.gauge("sqe_audit_writable", 1)
        threading.Thread(target=self._sync_now_and_then, name="sqe-audit-sync", daemon=True).start()

    @property
    def head(self) -> Link:
        """The last event: its number and its hash, to be kept elsewhere."""
        with self._lock:
            return self._last

    def ensure_writable(self) -> None:
        """Raise when nothing may begin because it could not be recorded.

        Raises:
            ExternalError: the log cannot be written, and `refuse` was asked for.
        """
        if not self.refuses:
            return
        with self._lock:
            if self._failing:
                self._write_waiting()
            failing = self._failing
        if failing:
            raise _unwritable()

    def write(self, event: Mapping[str, Any], *, must: bool = False) -> None:
        """Append an event; `must` says that what it tells of waits for it.

        Args:
            event: its fields, with a `kind`; `time` is added.
            must: raise when it cannot be written and `refuse` was asked for.

        Raises:
            ExternalError: see `must`.
        """
        cleaned: dict[str, Any] = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **plain(event, _clean)}
        with self._lock:
            if len(self._waiting) >= _MOST_WAITING:
                self._waiting.popleft()
                self._lost += 1
            self._waiting.append(cleaned)
            self._write_waiting()
            failing = self._failing
        if failing and must and self.refuses:
            raise _unwritable()

    def close(self) -> None:
        """Sync and close the file. Idempotent."""
        self._closed.set()
        with self._lock:
            if self._file >= 0:
                self._sync()
                os.close(self._file)
                self._file = -1

    # What follows happens with the lock

    def _write_waiting(self) -> None:
        try:
            while self._waiting:
                self._append(self._waiting[0])
                kind = str(self._waiting.popleft().get("kind", ""))
                self._lost = 0
                self._metrics.count("sqe_audit_events_total", labels={"kind": kind})
        except OSError as error:
            self._fail(error)
            return
        if self._failing:
            self._failing = False
            self._metrics.gauge("sqe_audit_writable", 1)
            _log.warning("the audit log can be written again", extra={"fields": {"event": "audit_recovered"}})

    def _append(self, event: Mapping[str, Any]) -> None:
        if self._file < 0:
            raise OSError("it is closed")
        self._follow_rotation()
        told = {**event, "lost_events": self._lost} if self._lost else event
        line, link = seal(told, self._last)
        break_off = b"\n" if self._torn else b""
        data = break_off + line + b"\n"
        written = os.write(self._file, data)
        self._size += written
        if written:
            self._torn = written not in (len(break_off), len(data))
        if written < len(data) - 1:
            raise OSError("the disk is full")
        self._last, self._unsynced = link, True
        if event.get("kind") in _SYNCED_AT_ONCE:
            self._sync()

    def _fail(self, error: OSError) -> None:
        self._metrics.count("sqe_audit_write_failures_total")
        if not self._failing:
            self._failing = True
            self._metrics.gauge("sqe_audit_writable", 0)
            _log.error(
                "the audit log cannot be written: %s; %s",
                error.strerror or error,
                "nothing that it should tell of is done" if self.refuses else "what happens is not recorded",
                extra={"fields": {"event": "audit_failed", "refusing": self.refuses}},
            )

    def _follow_rotation(self) -> None:
        """Write where the path leads now; say so when somebody else changed the file."""
        held = os.fstat(self._file)
        try:
            there = os.stat(self._path, follow_symlinks=False)
            moved = (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino)
        except FileNotFoundError:
            moved = True
        if not moved:
            if held.st_size != self._size:
                self._damaged("it was written, or cut, by somebody else")
                self._torn = held.st_size > 0
                self._size = held.st_size
            return
        file = self._open()
        self._sync()
        os.close(self._file)
        self._file, self._torn = file, False
        self._size = os.fstat(file).st_size
        if self._size:
            self._damaged("another file is in its place")
            self._torn = True

    def _damaged(self, how: str) -> None:
        self._metrics.count("sqe_audit_damage_total")
        _log.error("the audit log is damaged: %s", how, extra={"fields": {"event": "audit_damaged"}})

    def _open(self) -> int:
        file = os.open(self._path, _FLAGS, _MODE)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise OSError("it is no regular file")
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise OSError("others may write it (chmod 600)")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError("another server writes it") from None
        except BaseException:
            os.close(file)
            raise
        return file

    def _resume(self) -> None:
        """Go on with the chain that is in the file."""
        if not self._size:
            return
        tail = self._read_tail()
        if tail.last is not None:
            self._last = tail.last
        self._torn = tail.torn
        if tail.damaged:
            self._damaged("its end is no chain of events; sqe audit verify says where")

    def _read_tail(self) -> Tail:
        try:
            with open(self._path, "rb") as file:
                for size in _TAIL_BYTES:
                    start = max(0, self._size - size)
                    file.seek(start)
                    tail = tail_of(file.read(size), whole=start == 0)
                    if tail.last is not None or start == 0:
                        break
            return tail
        except OSError as error:
            raise StartupError(f"The audit log {self._path} cannot be read: {error.strerror or error}") from error

    def _sync(self) -> None:
        if self._unsynced:
            self._unsynced = False
            os.fdatasync(self._file)

    def _sync_now_and_then(self) -> None:
        while not self._closed.wait(_SYNC_SECS):
            with self._lock:
                if self._file < 0 or not self._unsynced:
                    continue
                try:
                    self._sync()
                except OSError as error:
                    self._fail(error)


def _unwritable() -> ExternalError:
    return ExternalError(
        "The server cannot record what happens, and does nothing until it can", code=ErrorCode.EXECUTION_FAILED
    )


def _clean(text: str) -> str:
    """Bound what is written, and take out what looks like a secret, the second lock (OBS-2)."""
    return redact_secrets(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…")
