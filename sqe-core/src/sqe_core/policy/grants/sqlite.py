"""The store in a SQLite file (the default), and in memory."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqe_core.policy.grants.store import Execute, GrantStore, damaged, make_layout, migrate, unreachable
from sqe_core.spi.errors import StartupError

_OTHERS = 0o077


class SqliteStore(GrantStore):
    """Records in a file that only its owner may read. Several processes on one machine may share it.

    The file is made once, whole, by `prepare`. Later a file that is gone, empty or damaged is an error and never an
    empty store, which would open every table. Of one that is for a process `alone` a second one is refused: nobody
    chose the file, so that two servers would share it unawares.
    """

    def __init__(self, path: Path, *, busy_secs: float, now: Callable[[], datetime], alone: bool = False) -> None:
        super().__init__(now=now)
        self._path = path
        self._alone = alone
        self._claim: int | None = None
        self._busy_secs = busy_secs
        self._guard = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._size = 0
        self._closed = False

    def prepare(self) -> bool:
        """Make the file unless it is there, or bring it to this version; True when it was made."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._alone:
                self._lock_out_others()
            made = self._make()
            with closing(self._examined()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                migrate(_execute(connection))
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError, KeyError, ValueError) as error:
            raise StartupError(f"the grant store {self._path} cannot be used: {error}") from error
        return made

    def is_there(self) -> bool:
        """Whether the file is there and a store. Raises StartupError when it is no store, or none can be made."""
        try:
            if not self._path.exists():
                place = next(folder for folder in self._path.absolute().parents if folder.exists())
                if not os.access(place, os.W_OK | os.X_OK):
                    raise StartupError(f"the grant store {self._path} cannot be made: {place} cannot be written")
                return False
            self._examined().close()
        except (sqlite3.Error, OSError, ValueError) as error:
            raise StartupError(f"the grant store {self._path} cannot be used: {error}") from error
        return True

    def _examined(self) -> sqlite3.Connection:
        """Open the file, which is private, not empty and a database."""
        found = self._path.stat()
        if found.st_mode & _OTHERS:
            raise StartupError(f"the grant store {self._path} can be read by others; run: chmod 600 {self._path}")
        if not found.st_size:
            raise StartupError(f"the grant store {self._path} is empty, which it never is; restore a backup")
        return self._connect(check=True)

    @contextmanager
    def reading(self) -> Iterator[Execute]:
        """Read in one transaction of the one reading connection."""
        with self._guard:
            try:
                connection = self._opened()
                connection.execute("BEGIN")
                yield _execute(connection)
                connection.execute("COMMIT")
            except BaseException as error:
                self._drop()
                if isinstance(error, (sqlite3.Error, OSError)):
                    raise unreachable() from error
                raise

    @contextmanager
    def writing(self) -> Iterator[Execute]:
        """Write in a transaction of a connection of its own."""
        try:
            with self._guard:
                self._opened()
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield _execute(connection)
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise unreachable() from error

    def close(self) -> None:
        """Close the reading connection."""
        with self._guard:
            self._closed = True
            self._drop()
            if self._claim is not None:
                os.close(self._claim)
                self._claim = None

    def _lock_out_others(self) -> None:
        """The system frees the lock when the process ends, however it does."""
        self._claim = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(
                f"another server of this user keeps its grants in {self._path}",
                hint="give each a file of its own: path in [policy.grants]; two that name the same one share it",
            ) from None

    def _make(self) -> bool:
        """Write a whole store beside the path and link it there: no process ever sees half of one."""
        if self._path.exists():
            return False
        with tempfile.TemporaryDirectory(dir=self._path.parent, prefix=".grants-") as private:
            fresh = Path(private) / "new.db"
            os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                make_layout(_execute(connection))
                connection.execute("COMMIT")
            try:
                os.link(fresh, self._path)
            except FileExistsError:
                return False
        return True

    def _opened(self) -> sqlite3.Connection:
        """Return the reading connection, to the file that is at the path now."""
        if self._closed:
            raise unreachable()
        found = self._path.stat()
        if self._reader is None or (found.st_dev, found.st_ino) != self._file or found.st_size < self._size:
            self._drop()
            if not found.st_size:
                raise damaged()
            self._reader, self._file = self._connect(check=True), (found.st_dev, found.st_ino)
        self._size = found.st_size
        return self._reader

    def _connect(self, *, check: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode=rw",
            uri=True,
            timeout=self._busy_secs,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            if check and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise damaged()
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None


class MemoryStore(GrantStore):
    """Records that end with the process."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        super().__init__(now=now)
        self._guard = threading.Lock()
        self._closed = False
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        make_layout(_execute(self._connection))

    def reading(self) -> AbstractContextManager[Execute]:
        return self._transaction()

    writing = reading

    def close(self) -> None:
        with self._guard:
            self._closed = True
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        with self._guard:
            if self._closed:
                raise unreachable()
            self._connection.execute("BEGIN")
            try:
                yield _execute(self._connection)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _execute(connection: sqlite3.Connection) -> Execute:
    def execute(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return connection.execute(statement, tuple(values)).fetchall()

    return execute
