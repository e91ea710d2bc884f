"""CALL catalog.system.rollback_to_snapshot('schema.table', id): the table is again what it was then (STMT-6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqe_core.engine.port import ResultStream
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.metadata_projections import metadata_projection
from sqe_core.query.judge.relation_text import metadata_text, new_marker
from sqe_core.query.statements.handler import ExistingObject, denied
from sqe_core.query.statements.objects import CatalogObjects
from sqe_core.query.statements.procedures.procedure import Argument, Procedure
from sqe_core.spi.catalog import TableMetadata
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.policy import Action, SupportsOwnership
from sqe_core.sql.spark.text import quote_name


class RollbackToSnapshot(Procedure):
    """Takes whoever may maintain the table, owns it and sees all of it."""

    name = "rollback_to_snapshot"
    arguments = (Argument(name="table", type=str), Argument(name="snapshot_id", type=int))

    def by_places(self, places: Sequence[Any]) -> Mapping[str, Any] | None:
        """Trino's form has the schema and the table apart."""
        if len(places) == 3 and isinstance(places[0], str) and isinstance(places[1], str):
            places = (f"{places[0]}.{places[1]}", places[2])
        return super().by_places(places)

    def needs(self, catalog: str | None, given: Mapping[str, Any]) -> Sequence[ExistingObject]:
        """Return the table."""
        *schema, table = given["table"].split(".")
        if catalog is not None and not schema:
            raise UserError("table has to be 'schema.table'", code=ErrorCode.INVALID_ARGUMENTS)
        name = (*([catalog] if catalog is not None else []), *([".".join(schema)] if schema else []), table)
        return (ExistingObject(name=name, actions=(Action.MAINTAIN, Action.SELECT), kind=TableMetadata),)

    def call(self, catalog: str | None, given: Mapping[str, Any], context: StatementContext) -> Iterable[Sequence[Any]]:
        """Make the snapshot the current one, if the current one comes from it."""
        found = CatalogObjects(context).existing(*self.needs(catalog, given))
        assert found is not None
        resolved, loaded = found
        assert isinstance(loaded, TableMetadata)
        stores = context.parts.authorizer.stores(SupportsOwnership)
        owns = bool(stores) and all(
            store.is_owner(resolved.name, context.identity, uuid=loaded.uuid) for store in stores
        )
        if not (owns or context.is_admin):
            raise denied(f"roll {resolved.name} back: it takes its owner")
        name, snapshot, session = resolved.name, given["snapshot_id"], context.session
        parts = (session.alias_of(resolved.mount), *name.namespace, name.name)
        if snapshot not in _ancestors(context, parts, loaded):
            raise UserError(
                f"Snapshot {snapshot} is no ancestor of the current one of {name}",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint=f"{name.name}$history lists them",
            )
        if snapshot != loaded.current_snapshot_id:
            _execute(
                context, f"ALTER TABLE {quote_name(parts)} CREATE OR REPLACE BRANCH `main` AS OF VERSION {snapshot:d}"
            ).close()
        return [(self.name, str(name), None, None, None, None, "ok")]


def _ancestors(context: StatementContext, parts: Sequence[str], table: TableMetadata) -> set[int]:
    """Return the snapshots that the current one was made of, and itself."""
    columns = metadata_projection("snapshots", table, trino=False)
    text = metadata_text(tuple(parts), "snapshots", columns, marker=new_marker(), partitioned=False)
    parents: dict[int, int | None] = {}
    stream = _execute(context, text)
    try:
        for batch in stream:
            parents.update((row["snapshot_id"], row["parent_id"]) for row in batch.to_pylist())
    finally:
        stream.close()
    found: set[int] = set()
    current = table.current_snapshot_id
    while current is not None and current not in found:
        found.add(current)
        current = parents.get(current)
    return found


def _execute(context: StatementContext, sql: str) -> ResultStream:
    """Run a statement of ours, on an object that was resolved and allowed."""
    engine, tag = context.session.engine_session(), context.running.tag
    return engine.execute(engine.analyse(engine.parse(sql), tag=tag), tag=tag)
