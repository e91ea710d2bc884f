"""Folders and files that several processes share: private, locked, and never half written."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqe_core.spi.errors import StartupError

_HINT = "set [engine] cache_dir or XDG_CACHE_HOME to a folder that you can write"


def make_private_folder(folder: Path) -> None:
    """Create a folder that only this user can write; refuse one that somebody else could have filled.

    What lies in it is code: jars that we compiled and archives of classes.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, folder) from error
    check_private(folder)


def check_private(folder: Path) -> None:
    """Refuse a folder whose content another user may have written."""
    try:
        found = folder.stat()
    except OSError as error:
        raise disk_error(error, folder) from error
    if found.st_uid not in (os.geteuid(), 0):
        raise StartupError(f"{folder} belongs to another user (uid {found.st_uid})", hint=_HINT)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StartupError(f"{folder} can be written by other users", hint=f"chmod go-w {folder}")


def disk_error(error: OSError, path: Path) -> StartupError:
    """Say what failed on which file, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StartupError(f"No space left to write {path}", hint=f"free some space, or {_HINT}")
    reason = error.strerror or str(error)
    return StartupError(f"Cannot write {path}: {reason}", hint=_HINT)


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a lock between processes; the system frees it when a process dies."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise disk_error(error, path) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def try_lock(path: Path) -> int | None:
    """Take a lock for as long as the returned descriptor stays open; None when another process has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def forget_old(folder: Path, pattern: str, *, kept: int) -> None:
    """Remove all but the newest files of a kind, each with what is called like it."""
    for old in sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)[:-kept]:
        for path in folder.glob(f"{old.stem}.*"):
            path.unlink(missing_ok=True)


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """Yield the name of a file to write beside `target`; it takes the target's place when the block ends well."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise disk_error(error, target) from error
    os.close(descriptor)
    draft = Path(name)
    try:
        yield draft
        os.replace(draft, target)
    except OSError as error:
        raise disk_error(error, target) from error
    finally:
        draft.unlink(missing_ok=True)
