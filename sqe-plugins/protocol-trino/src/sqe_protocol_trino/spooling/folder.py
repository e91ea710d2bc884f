"""Segments in a folder of this machine, which nobody else can read, and which goes with the server."""

from __future__ import annotations

import fcntl
import io
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_log = logging.getLogger("sqe_core.trino")
_NAME = re.compile(r"[0-9a-f]{32}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """A folder of this process below one that several may share; each holds a lock on its own while it lives.

    Everything is reached from the folder that was opened at first, and no link is followed: who may write beside it
    cannot lead it elsewhere.

    Args:
        parent: what may be shared.
        min_free_bytes: what stays free on its disk.
        temporary: whether the shared one goes, too.

    Raises:
        OSError: it is not there and cannot be made, or is not this user's alone to write.
    """

    def __init__(self, parent: Path, min_free_bytes: int, *, temporary: bool = False) -> None:
        self._min_free, self._temporary = min_free_bytes, parent if temporary else None
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._parent = os.open(parent, _FOLDER)
        try:
            _refuse_shared(self._parent, parent)
            self._remove_leftovers()
            self.name = secrets.token_hex(16)
            os.mkdir(self.name, 0o700, dir_fd=self._parent)
            self._own = os.open(self.name, _FOLDER, dir_fd=self._parent)
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(self._parent)
            raise

    def has_room(self, size: int) -> bool:
        """Whether as many bytes more would leave enough for others."""
        disk = os.fstatvfs(self._own)
        return disk.f_bavail * disk.f_frsize - size >= self._min_free

    def write(self, name: str, frames: Iterable[bytes]) -> None:
        """Keep a segment; of one that cannot be written whole nothing stays."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=self._own), "wb", buffering=0) as file:
                for frame in frames:
                    _write_all(file, frame)
        except OSError:
            with suppress(OSError):
                self.delete(name)
            raise

    def open(self, name: str) -> io.BufferedReader:
        """Read a segment."""
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._own)
        return os.fdopen(opened, "rb")

    def delete(self, name: str) -> None:
        """Forget a segment, which may be gone."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._own)

    def close(self) -> None:
        """Delete what is left, and the folder."""
        self._remove(self.name, self._own)
        os.close(self._own)
        os.close(self._parent)
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.rmdir()

    def _remove_leftovers(self) -> None:
        """Delete the folders of processes that are gone: their keys went with their clients."""
        for name in os.listdir(self._parent):
            if not _NAME.fullmatch(name):
                continue
            try:
                folder = os.open(name, _FOLDER, dir_fd=self._parent)
            except OSError:  # a link, or no folder: nothing of ours
                continue
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._remove(name, folder)
            except BlockingIOError:
                pass  # another server's
            finally:
                os.close(folder)

    def _remove(self, name: str, folder: int) -> None:
        try:
            for segment in os.listdir(folder):
                os.unlink(segment, dir_fd=folder)
            os.rmdir(name, dir_fd=self._parent)
        except OSError as error:
            _log.warning("spooled segments could not be removed: %s", error.strerror)


def _refuse_shared(folder: int, path: Path) -> None:
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(0, "it has to belong to the server's user, and others must not write there", str(path))


def _write_all(file: io.RawIOBase, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]
