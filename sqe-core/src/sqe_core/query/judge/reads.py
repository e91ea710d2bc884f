"""Step 6 for the tables that a text reads: all that this user sees of each, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sqe_core.engine.port import AnalysedPlan, InlinedRows, InlinedSpool, SecuredTable, TimeTravel
from sqe_core.policy.authorizer import AccessRequest, Verdict
from sqe_core.query.judge.bind import BoundRelation, SpooledRows
from sqe_core.query.judge.metadata_projections import PROPERTIES, metadata_projection
from sqe_core.query.judge.names import table_not_found
from sqe_core.query.judge.promise import Promise
from sqe_core.query.judge.relation_text import (
    all_columns_text,
    metadata_name,
    metadata_text,
    new_marker,
    table_text,
)
from sqe_core.query.judge.verify import ExpectedRelation
from sqe_core.spi.catalog import Column, TableMetadata
from sqe_core.spi.errors import InternalError, NotSupportedError, UserError
from sqe_core.spi.policy import Action, SqlMask
from sqe_core.spi.sql import SqlExpression

if TYPE_CHECKING:
    from sqe_core.query.judge.judge import Judge

_PROPERTIES = pa.schema([("key", pa.string()), ("value", pa.string())])
# Reads as nothing, and still derives from the column.
_VEIL = SqlMask(expression=SqlExpression(text="CASE WHEN false THEN {col} END"))


def secured_table(
    judge: Judge, entry: BoundRelation, table: TableMetadata, access: Verdict, promise: Promise, *, in_stored_view: bool
) -> SecuredTable:
    """Return a table as this user sees it, at the version that the text names."""
    parts, travel = judge.alias_parts(entry), entry.relation.time_travel
    if travel is not None and access.current_only:
        raise unreadable_version()
    if travel is not None and access.restricted and not _is_snapshot(travel):
        raise UserError(
            "A table of which you see a part is read as it is now, or at the id of a snapshot",
            position=entry.position,
        )
    then = None
    if travel is not None:
        then = judge.engine.analyse(judge.engine.parse(all_columns_text(parts, travel)), tag=judge.tag)
    if then is not None and judge.authorizer.enforces:
        access = _at_version(judge, entry, table, access, then)
        promise.restricted |= access.restricted
    if in_stored_view and access.hidden:
        # VIEW-6: the text of a view may name them. They read as nothing, and what depends on them is not shown.
        promise.veiled.update((parts, column) for column in access.hidden)
        veiled = dict.fromkeys(access.hidden, _VEIL)
        access = replace(access, columns=table.columns, hidden=frozenset(), masks={**access.masks, **veiled})
    if access.filters or access.masks:
        return _restricted_table(judge, entry, access, promise, parts)
    columns = tuple(column.name for column in access.columns)
    if then is not None:
        columns = _columns_at(then, hidden=access.hidden)
    if not columns:
        raise unreadable_version()  # ENF-10: an empty projection must not mean "all"
    marker = new_marker()
    promise.expect(ExpectedRelation(identity=parts, marker=marker, columns=columns, time_travel=travel))
    sql = table_text(parts, columns, marker=marker, travel=travel)
    return SecuredTable(index=entry.relation.index, sql=sql, visible_name=entry.name.parts)


def _at_version(
    judge: Judge, entry: BoundRelation, table: TableMetadata, access: Verdict, plan: AnalysedPlan
) -> Verdict:
    """Add what is kept of the columns that the table had then and has no more, on which nobody has decided yet.

    `plan` reads all of that version.
    """
    known = {column.name: column for column in table.columns}
    columns = tuple(
        known.get(field.name) or Column(name=field.name, type=type_text, nullable=field.nullable)
        for field, type_text in zip(plan.schema, plan.column_types, strict=True)
    )
    names = frozenset(column.name for column in columns)
    gone = names - known.keys()
    if not gone or not (access.hidden | access.masks.keys()) <= names:
        return access
    asked = AccessRequest(name=entry.name, action=Action.SELECT, loaded=replace(table, columns=columns))
    decided = judge.authorizer.decide(judge.session.identity, [asked], judge.circumstances.unrecorded())
    then = decided[asked.name, asked.action]
    shown = {column.name for column in then.columns if column.name not in then.masks}
    if not set(then.filters) <= set(access.filters):
        shown = set()
    return replace(access, hidden=access.hidden | (gone - shown))


def _restricted_table(
    judge: Judge, entry: BoundRelation, access: Verdict, promise: Promise, parts: tuple[str, ...]
) -> SecuredTable:
    travel = entry.relation.time_travel
    current = tuple(column.name for column in access.columns)

    def visible(columns: Sequence[str]) -> Sequence[str]:
        # Today's policy on old snapshots; what a table had then need not be what it has now (security §14).
        return current if travel is None else [name for name in columns if name not in access.hidden]

    sql = all_columns_text(parts, travel)
    relation = SecuredTable(index=entry.relation.index, sql=sql, visible_name=entry.name.parts)
    compiled = judge.compiler().compile(entry.name, relation, access, marker=new_marker(), visible=visible)
    if not compiled.columns:
        raise unreadable_version()  # ENF-10
    promise.expect(ExpectedRelation(identity=parts, time_travel=travel), compiled)
    return replace(relation, restriction=compiled.restriction)


def metadata_table(
    judge: Judge, entry: BoundRelation, kind: str, table: TableMetadata, promise: Promise
) -> SecuredTable | InlinedRows:
    """Return one of a table's metadata tables, for somebody who sees all of the table."""
    if entry.relation.time_travel is not None:
        raise NotSupportedError("Metadata tables have no versions to travel to")
    parts, marker, name = judge.alias_parts(entry), new_marker(), entry.name
    visible = (name.catalog, *name.namespace, f"{name.name}${kind}")
    if kind == PROPERTIES:
        rows = pa.table({"key": list(table.properties), "value": list(table.properties.values())}, schema=_PROPERTIES)
        return InlinedRows(index=entry.relation.index, rows=rows, visible_name=visible)
    columns = metadata_projection(kind, table, trino=judge.trino)
    identity = (*parts, metadata_name(kind))
    promise.expect(ExpectedRelation(identity=identity, marker=marker, columns=columns, metadata=True))
    return SecuredTable(
        index=entry.relation.index,
        sql=metadata_text(parts, kind, columns, marker=marker, partitioned=bool(table.partitioning)),
        visible_name=visible,
    )


def system_table(judge: Judge, entry: BoundRelation, *, by_statement: bool) -> InlinedRows:
    rows = None if entry.relation.time_travel else judge.system.rows(entry.name, by_statement=by_statement)
    if rows is None:
        raise table_not_found(entry.relation.parts, position=entry.position)
    return InlinedRows(index=entry.relation.index, rows=rows, visible_name=entry.name.parts)


def spooled_rows(entry: BoundRelation, rows: SpooledRows, promise: Promise) -> InlinedSpool:
    if rows.token in promise.spools:
        raise InternalError("The rows of a statement would be read twice")
    promise.spools.add(rows.token)
    return InlinedSpool(
        index=entry.relation.index, files=rows.files, token=rows.token, visible_name=entry.relation.parts
    )


def _columns_at(plan: AnalysedPlan, *, hidden: frozenset[str]) -> tuple[str, ...]:
    """Return the visible columns of a plan that reads all of an old version."""
    names = plan.schema.names
    if hidden and not hidden <= set(names):
        # Today's policy on old snapshots: a column it names that did not exist then denies (security §14).
        raise unreadable_version()
    return tuple(name for name in names if name not in hidden)


def unreadable_version() -> UserError:
    return UserError("This version of the table cannot be read under today's policy")


def _is_snapshot(travel: TimeTravel) -> bool:
    """Whether it is the id of a snapshot, which nobody guesses; times and names would tell of a table's history."""
    return travel.version is not None and travel.version.lstrip("-").isdigit()
