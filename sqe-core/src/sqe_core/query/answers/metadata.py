"""What tables and views look like for one user, without the engine's SQL and without a job (STMT-2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.query.answers.system_tables import SystemTables
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.judge import unreadable_view
from sqe_core.query.judge.names import ResolvedName, table_not_found
from sqe_core.query.run.judging import Judging
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.sql.statement import Name


def text_table(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> pa.Table:
    """Return rows of text as a table."""
    return to_table(pa.schema([(name, pa.string()) for name in names]), list(rows))


@dataclass(frozen=True, slots=True)
class Metadata:
    """Looks up for one statement."""

    context: StatementContext

    def find_columns(self, name: Name) -> tuple[Column, ...]:
        """Return the visible columns of a table, a view, a session view or a system table."""
        if len(name) == 1 and (view := self.context.session.find_view(name[0])) is not None:
            return tuple(Column(name=column, type=type_text) for column, type_text in view.columns)
        resolved = self.context.resolver.object(name, self.context.names)
        judging = Judging(self.context)
        system = SystemTables(self.context, judging).columns(resolved)
        if system is not None:
            return system
        loaded = self.load(resolved, name)
        columns = judging.columns_of(resolved.name, loaded)
        if not columns and isinstance(loaded, ViewMetadata):
            raise unreadable_view(str(resolved.name))
        return columns

    def load(self, resolved: ResolvedName, written: Name) -> TableMetadata | ViewMetadata:
        """Load a table or view, or raise the one not-found answer with what the user may have meant."""
        loaded = self.context.visible.find(resolved.mount, resolved.name)
        if loaded is None:
            raise table_not_found(written, hint=self.context.near.hint(resolved))
        return loaded
