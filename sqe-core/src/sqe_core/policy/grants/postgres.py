"""The store in PostgreSQL, for several coordinators."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from ipaddress import ip_address
from types import ModuleType
from typing import Any

from sqe_core.policy.grants.store import Execute, GrantStore, make_layout, migrate, unreachable
from sqe_core.spi.errors import ConfigError, StartupError
from sqe_core.spi.identity import Secret

# Held while the tables are made: two servers may start at once. Any constant of ours would do.
_MAKING = 0x5351_4547
_PROTECTED = frozenset({"require", "verify-ca", "verify-full"})


class PostgresStore(GrantStore):
    """Records in three tables of a database, in the first schema of the login's search path.

    In production an unprotected connection to another machine is refused.
    """

    def __init__(
        self, url: Secret, *, timeout_secs: float, now: Callable[[], datetime], production_mode: bool = False
    ) -> None:
        super().__init__(now=now)
        self._driver: Any = _driver()
        self._url = url
        self._timeout_secs = timeout_secs
        self._guard = threading.Lock()
        self._reader: Any = None
        self._closed = False
        try:
            parts = self._driver.conninfo.conninfo_to_dict(url.reveal())
        except self._driver.Error:
            # The driver's own text repeats the address, password and all.
            raise ConfigError(("policy.grants.url is no address of a PostgreSQL database",)) from None
        self._options = str(parts.get("options") or "")
        hosts = [str(parts.get(key) or "") for key in ("host", "hostaddr")]
        if production_mode and not all(map(_is_local, hosts)) and parts.get("sslmode") not in _PROTECTED:
            raise ConfigError(
                ("policy.grants.url has no TLS, which production_mode refuses; add ?sslmode=verify-full to it",)
            )

    def prepare(self) -> bool:
        """Make the tables unless they are there, or bring them to this version; True when they were made."""
        try:
            with self._connect() as connection:
                execute = _execute(connection)
                execute("SELECT pg_advisory_xact_lock(?)", (_MAKING,))
                missing = execute("SELECT to_regclass('sqe_policy_meta') IS NULL", ())[0][0]
                if missing:
                    make_layout(execute)
                migrate(execute)
        except (self._driver.Error, KeyError, ValueError) as error:
            raise StartupError(f"the grant store in PostgreSQL cannot be used: {error}") from error
        return bool(missing)

    def is_there(self) -> bool:
        """Whether somebody made the tables. Raises StartupError when the database cannot be used."""
        try:
            with self._connect() as connection:
                return not _execute(connection)("SELECT to_regclass('sqe_policy_meta') IS NULL", ())[0][0]
        except self._driver.Error as error:
            raise StartupError(f"the grant store in PostgreSQL cannot be used: {error}") from error

    @contextmanager
    def reading(self) -> Iterator[Execute]:
        """Read in one transaction of the one reading connection."""
        with self._guard:
            try:
                connection = self._opened()
                yield _execute(connection)
                connection.commit()
            except BaseException as error:
                self._drop()
                if isinstance(error, self._driver.Error):
                    raise unreachable() from error
                raise

    @contextmanager
    def writing(self) -> Iterator[Execute]:
        """Write in a transaction of a connection of its own, which other writers wait for."""
        if self._closed:
            raise unreachable()
        try:
            with self._connect() as connection:
                execute = _execute(connection)
                execute("LOCK TABLE sqe_policy_meta IN EXCLUSIVE MODE", ())
                yield execute
        except self._driver.Error as error:
            raise unreachable() from error

    def close(self) -> None:
        with self._guard:
            self._closed = True
            self._drop()

    def _opened(self) -> Any:
        """Return the reading connection inside a transaction; one that ended while it was idle is replaced."""
        if self._closed:
            raise unreachable()
        if self._reader is not None:
            try:
                self._reader.execute("SELECT 1")
            except self._driver.OperationalError:
                self._drop()
        if self._reader is None:
            self._reader = self._connect()
            self._reader.isolation_level = self._driver.IsolationLevel.REPEATABLE_READ
            self._reader.read_only = True
        return self._reader

    def _connect(self) -> Any:
        millis = int(self._timeout_secs * 1000)
        return self._driver.connect(
            self._url.reveal(),
            connect_timeout=max(2, int(self._timeout_secs)),
            options=f"{self._options} -c statement_timeout={millis} -c lock_timeout={millis}".strip(),
            application_name="sqe",
        )

    def _drop(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None


def _driver() -> ModuleType:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise StartupError(
            "the grant store in PostgreSQL needs a driver; run: pip install 'sqe-core[postgres]'"
        ) from error
    module: ModuleType = psycopg
    return module


def _is_local(hosts: str) -> bool:
    """Whether every host is this machine; none at all, or a path, is a Unix socket."""
    return all(
        host == "localhost" or host.startswith("/") or not host or _is_loopback(host) for host in hosts.split(",")
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _execute(connection: Any) -> Execute:
    def execute(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = connection.execute(statement.replace("?", "%s"), tuple(values))
        return list(cursor.fetchall()) if cursor.description else []

    return execute
