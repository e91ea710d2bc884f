"""A store: records with a version, changed in transactions that leave an audit row. What SQLite and PostgreSQL share.

    sqe_policy_meta      schema_version, policy_version, change_id
    sqe_policy_records   kind, key, body (JSON)
    sqe_policy_audit     who, when, what, before, after

Readers ask for the version before each decision, which costs microseconds, and read the records when it moved. Several
servers may share a store: what one writes, the others see at their next decision.
"""

from __future__ import annotations

import json
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from sqe_core.policy.grants.records import Body, Kind, Records
from sqe_core.spi.errors import ErrorCode, ExternalError, ResourcesError, StartupError
from sqe_core.spi.identity import Identity

SCHEMA_VERSION = 1
MOST_RECORDS = 200_000
_MOST_CHANGES = 200

LAYOUT = (
    "CREATE TABLE sqe_policy_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE sqe_policy_records (kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,"
    " PRIMARY KEY (kind, key))",
    "CREATE TABLE sqe_policy_audit (version BIGINT PRIMARY KEY, at TEXT NOT NULL, author TEXT NOT NULL,"
    " author_issuer TEXT NOT NULL, author_subject TEXT NOT NULL, operation TEXT NOT NULL, before TEXT NOT NULL,"
    " after TEXT NOT NULL)",
)

MIGRATIONS: Mapping[int, tuple[str, ...]] = MappingProxyType({})
"""The statements that lead from a schema version to the next one; the layout above is that of the last version."""

Execute = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Runs one statement, with `?` for its values, and returns its rows."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The state of a store: two are equal when nothing was written between them.

    The number grows by one. The random id tells changes of the same number apart, as a restored backup brings them.
    """

    number: int
    change: str

    def __str__(self) -> str:
        return f"{self.number}-{self.change}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change: who made it, and the records before and after; None is a record that is not there."""

    version: int
    at: datetime
    author: str
    author_key: tuple[str, str]
    operation: str
    before: dict[str, Body | None]
    after: dict[str, Body | None]


class Draft:
    """The records while a change is made. `version` is the one that the change will have."""

    def __init__(self, records: Records, version: int) -> None:
        self._records = dict(records)
        self._before: dict[tuple[Kind, str], Body | None] = {}
        self.version = version

    def find(self, kind: Kind, key: str) -> Body | None:
        """Return a record, None when it is not there."""
        return self._records.get((kind, key))

    def all(self, kind: Kind) -> Iterator[tuple[str, Body]]:
        """Go through the records of a kind, which may change meanwhile."""
        yield from [(key, body) for (found, key), body in self._records.items() if found is kind]

    def put(self, kind: Kind, key: str, body: Body) -> None:
        if self._records.get((kind, key)) != body:
            self._before.setdefault((kind, key), self._records.get((kind, key)))
            self._records[kind, key] = body

    def delete(self, kind: Kind, key: str) -> None:
        body = self._records.pop((kind, key), None)
        if body is not None:
            self._before.setdefault((kind, key), body)

    @property
    def records(self) -> Records:
        return self._records

    def changes(self) -> dict[tuple[Kind, str], tuple[Body | None, Body | None]]:
        """Return what is different, before and after."""
        found = {place: (before, self._records.get(place)) for place, before in self._before.items()}
        return {place: (before, after) for place, (before, after) in found.items() if before != after}


class GrantStore(ABC):
    """Where records live. A backend opens connections and transactions; everything else is here.

    Any failure to read or write raises ExternalError: the statement that asked is refused (POL-2).
    """

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._cached: _Read | None = None

    @abstractmethod
    def reading(self) -> AbstractContextManager[Execute]:
        """Open a view of the store at one moment; errors leave as ExternalError."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Execute]:
        """Open a transaction that nobody else writes in, committed at the end; errors leave as ExternalError."""

    @abstractmethod
    def close(self) -> None:
        """Free connections. A closed store answers nothing."""

    def version(self) -> Version:
        with self.reading() as execute:
            return read_version(execute)

    def read(self) -> tuple[Version, Records]:
        """Return all records and their version; read again only when something was written."""
        with self.reading() as execute:
            return self._records_now(execute)

    def change(self, author: Identity, operation: str, make: Callable[[Draft], _Result]) -> _Result:
        """Change records in one transaction, with its audit row; nothing is written when nothing is different.

        When `make` raises, nothing has happened.
        """
        with self.writing() as execute:
            version, records = self._records_now(execute)
            draft = Draft(records, version.number + 1)
            result = make(draft)
            changes = draft.changes()
            if changes:
                if len(draft.records) > max(MOST_RECORDS, len(records)):
                    raise ResourcesError(f"The grant store holds {MOST_RECORDS} entries, and takes no more")
                self._write(execute, draft.version, changes, author, operation)
        return result

    def audit(self, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the latest changes, newest first."""
        with self.reading() as execute:
            rows = execute(
                "SELECT version, at, author, author_issuer, author_subject, operation, before, after"
                " FROM sqe_policy_audit ORDER BY version DESC LIMIT ?",
                (limit,),
            )
        return [
            AuditEntry(
                version=row[0],
                at=datetime.fromisoformat(row[1]),
                author=row[2],
                author_key=(row[3], row[4]),
                operation=row[5],
                before=json.loads(row[6]),
                after=json.loads(row[7]),
            )
            for row in rows
        ]

    def _records_now(self, execute: Execute) -> tuple[Version, Records]:
        version = read_version(execute)
        with self._lock:
            cached = self._cached
        if cached is not None and cached.version == version:
            return version, cached.records
        try:
            read = _caught_up(execute, cached, version) if cached is not None else None
            if read is None:
                records = {
                    (Kind(kind), key): json.loads(body)
                    for kind, key, body in execute("SELECT kind, key, body FROM sqe_policy_records", ())
                }
                latest = _changes(execute, version.number, version.number)
                read = _Read(version, records, latest[0] if latest else None)
        except ValueError as error:
            raise damaged() from error
        with self._lock:
            self._cached = read
        return version, read.records

    def _write(
        self,
        execute: Execute,
        version: int,
        changes: dict[tuple[Kind, str], tuple[Body | None, Body | None]],
        author: Identity,
        operation: str,
    ) -> None:
        for (kind, key), (_, after) in changes.items():
            if after is None:
                execute("DELETE FROM sqe_policy_records WHERE kind = ? AND key = ?", (kind.value, key))
            else:
                execute(
                    "INSERT INTO sqe_policy_records (kind, key, body) VALUES (?, ?, ?)"
                    " ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body",
                    (kind.value, key, _json(after)),
                )
        named = {f"{kind.value} {key}": both for (kind, key), both in changes.items()}
        execute(
            "INSERT INTO sqe_policy_audit (version, at, author, author_issuer, author_subject, operation, before,"
            " after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                version,
                self._now().isoformat(),
                author.username,
                author.issuer,
                author.subject,
                operation,
                _json({name: before for name, (before, _) in named.items()}),
                _json({name: after for name, (_, after) in named.items()}),
            ),
        )
        for key, value in (("policy_version", str(version)), ("change_id", _change_id())):
            execute("UPDATE sqe_policy_meta SET value = ? WHERE key = ?", (value, key))


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read at a version, with the row of the audit that made it."""

    version: Version
    records: Records
    change: tuple[Any, ...] | None


def _changes(execute: Execute, first: int, last: int) -> list[tuple[Any, ...]]:
    return execute(
        "SELECT version, at, author_issuer, author_subject, operation, before, after FROM sqe_policy_audit"
        " WHERE version >= ? AND version <= ? ORDER BY version",
        (first, last),
    )


def _caught_up(execute: Execute, read: _Read, version: Version) -> _Read | None:
    """Return what was read with the changes since; None when that cannot be told, as after a backup was restored.

    The audit has each change with what was there before. Where any of it is not what was read, all is read anew.
    """
    number = read.version.number
    if read.change is None or not 0 < version.number - number <= _MOST_CHANGES:
        return None
    changes = _changes(execute, number, version.number)
    if [change[0] for change in changes] != list(range(number, version.number + 1)) or changes[0] != read.change:
        return None
    records = dict(read.records)
    for *_, written_before, written_after in changes[1:]:
        before, after = json.loads(written_before), json.loads(written_after)
        if not isinstance(before, dict) or not isinstance(after, dict) or before.keys() != after.keys():
            return None
        for name, body in after.items():
            kind, _, key = name.partition(" ")
            place = Kind(kind), key
            if records.get(place) != before[name]:
                return None
            if body is None:
                records.pop(place, None)
            else:
                records[place] = body
    return _Read(version, records, changes[-1])


def read_version(execute: Execute) -> Version:
    """Read the version; a store without one is damaged."""
    meta = _meta(execute)
    try:
        number, schema, change = int(meta["policy_version"]), int(meta["schema_version"]), meta["change_id"]
    except (KeyError, ValueError) as error:
        raise damaged() from error
    if schema != SCHEMA_VERSION:
        # Another server migrated it while this one ran.
        raise ExternalError("The grant store belongs to another version of SQE", code=ErrorCode.EXECUTION_FAILED)
    return Version(number=number, change=change)


def make_layout(execute: Execute) -> None:
    for statement in LAYOUT:
        execute(statement, ())
    for key, value in (
        ("schema_version", str(SCHEMA_VERSION)),
        ("policy_version", "0"),
        ("change_id", _change_id()),
    ):
        execute("INSERT INTO sqe_policy_meta (key, value) VALUES (?, ?)", (key, value))


def migrate(execute: Execute, migrations: Mapping[int, tuple[str, ...]] = MIGRATIONS) -> None:
    """Bring an older store to this version, inside a transaction.

    Raises:
        StartupError: the store is of a later version.
    """
    found = int(_meta(execute)["schema_version"])
    if found > SCHEMA_VERSION:
        raise StartupError(f"the grant store has schema version {found}, this SQE knows up to {SCHEMA_VERSION}")
    for version in range(found, SCHEMA_VERSION):
        for statement in migrations[version]:
            execute(statement, ())
        execute("UPDATE sqe_policy_meta SET value = ? WHERE key = 'schema_version'", (str(version + 1),))


def damaged() -> ExternalError:
    return ExternalError("The grant store is damaged", code=ErrorCode.EXECUTION_FAILED)


def unreachable() -> ExternalError:
    return ExternalError("The grant store does not answer", code=ErrorCode.EXECUTION_FAILED)


def _meta(execute: Execute) -> dict[str, str]:
    rows: list[tuple[str, str]] = [(key, value) for key, value in execute("SELECT key, value FROM sqe_policy_meta", ())]
    return dict(rows)


def _change_id() -> str:
    return uuid.uuid4().hex[:12]


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)
