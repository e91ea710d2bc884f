"""What the command line asks of SQE. Nothing here imports anything heavy: the prompt has to be there at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sqe_core.engine.port import EngineState, Progress
    from sqe_core.query.run.result import StatementResult
    from sqe_core.sql.statement import ScriptStatement

SchemaKey = tuple[str, str]
TableKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """What may be offered at the prompt: the names that this user may see, as they are spelt, unquoted."""

    catalogs: tuple[str, ...] = ()
    schemas: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By catalog."""
    tables: Mapping[SchemaKey, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Tables and views by (catalog, schema)."""


class Backend(Protocol):
    """One session with SQE, in this process or, later, on a server."""

    @property
    def current(self) -> tuple[str, str]:
        """The session's catalog and schema."""

    def execute(self, sql: str) -> StatementResult:
        """Run one statement; blocks until its first answer. Raises SqeError."""

    def cancel(self) -> None:
        """End the running statement, which then fails with QueryCancelledError. From any thread."""

    def progress(self) -> Progress | None:
        """How far the running statement is."""

    def engine_state(self) -> EngineState:
        """Where the engine is in its life."""

    def on_engine_progress(self, listener: Callable[[str, float | None], None]) -> None:
        """Report the steps of a long start: (what is being done, share done or None)."""

    def split(self, script: str) -> Sequence[ScriptStatement]:
        """Split a script at its semicolons."""

    def completions(self) -> Completions:
        """What can be completed right now; never waits for the engine."""

    def columns(self, table: TableKey) -> tuple[str, ...]:
        """Read the columns of a table, as this user sees them; none when there is nothing to be told."""

    def close(self) -> None:
        """End the session, the running statement included."""
