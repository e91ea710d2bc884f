"""What tables and views look like for one user, without the engine's SQL and without a job (STMT-2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.query.answers.system_tables import SystemTables
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.names import ResolvedName, table_not_found, written
from sqe_core.query.judge.views import unreadable_view
from sqe_core.query.run.judging import Judging
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import NotSupportedError, ObjectNotFoundError
from sqe_core.sql.statement import EngineStatement, Name, TextLimits


def text_table(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> pa.Table:
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
        if resolved.metadata_table is not None:
            return self._metadata_columns(resolved, name, judging)
        loaded = self.load(resolved, name)
        columns = judging.columns_of(resolved.name, loaded)
        if not columns and isinstance(loaded, ViewMetadata):
            raise unreadable_view(str(resolved.name))
        return columns

    def _metadata_columns(self, resolved: ResolvedName, name: Name, judging: Judging) -> tuple[Column, ...]:
        text = f"SELECT * FROM {written(name)}"  # noqa: S608  # every part is quoted
        statement = self.context.parts.reader.read(text, dialect="sqe", limits=TextLimits())
        assert isinstance(statement, EngineStatement)
        try:
            with judging.scope():
                plan = judging.judge(statement).plan
        except ObjectNotFoundError:
            raise table_not_found(name, hint=self.context.near.hint(resolved)) from None
        return tuple(
            Column(name=each.name, type=type_text, nullable=each.nullable)
            for each, type_text in zip(plan.schema, plan.column_types, strict=True)
        )

    def load(self, resolved: ResolvedName, name: Name) -> TableMetadata | ViewMetadata:
        """Load a table or view, or raise the one not-found answer with what the user may have meant."""
        loaded = self.context.visible.find(resolved.mount, resolved.name)
        if loaded is None:
            raise table_not_found(name, hint=self.context.near.hint(resolved))
        if resolved.metadata_table is not None:
            raise NotSupportedError(
                f"{resolved.name.name}${resolved.metadata_table} comes with its table and is not created"
            )
        return loaded
