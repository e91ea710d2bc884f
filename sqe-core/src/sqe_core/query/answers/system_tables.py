"""The rows and columns of `information_schema` and of `system`, as one user sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sqe_core.catalog.information_schema import SCHEMAS, InformationSchema, system_columns
from sqe_core.catalog.system import RUNTIME, SYSTEM, TABLES, runtime_columns
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.query.answers.sessions import RuntimeTables
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.names import ResolvedName
from sqe_core.spi.catalog import Column
from sqe_core.spi.names import ObjectName

if TYPE_CHECKING:
    from sqe_core.query.run.judging import Judging


class NoSystemRows:
    """Tables without rows, for who only wants to know what a view makes of them."""

    def rows(self, name: ObjectName) -> pa.Table | None:
        schema = SCHEMAS.get(name.name) or TABLES.get(name.name)
        return schema.empty_table() if schema is not None else None


@dataclass(frozen=True, slots=True)
class SystemTables:
    """Answers for one statement."""

    context: StatementContext
    judging: Judging

    def rows(self, name: ObjectName) -> pa.Table | None:
        mount = self.context.resolver.catalog(name.catalog)
        if mount is SYSTEM:
            return RuntimeTables(self.context).rows(name) if name.namespace == RUNTIME else None
        listing = InformationSchema(
            visible=self.context.visible,
            visible_columns=self.judging.columns_of,
            visible_text=self.judging.text_of,
            settings=[(row[0], row[1]) for row in self.context.session.properties.rows()],
        )
        return listing.rows(mount, name.name)

    def columns(self, resolved: ResolvedName) -> tuple[Column, ...] | None:
        """Return the columns of a table, or None when the name is none of theirs."""
        if resolved.mount is SYSTEM:
            known = resolved.name.namespace == RUNTIME and resolved.name.name in TABLES
            return runtime_columns(resolved.name.name) if known and not resolved.metadata_table else None
        if resolved.name.namespace != (INFORMATION_SCHEMA,) or resolved.name.name not in SCHEMAS:
            return None
        if resolved.metadata_table or not self.context.visible.shows(resolved.mount):
            return None
        return system_columns(resolved.name.name)
