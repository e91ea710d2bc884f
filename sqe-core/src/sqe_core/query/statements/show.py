"""SHOW and DESCRIBE: answered from metadata, without the engine's SQL and without a job (STMT-2)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sqe_core.catalog.types import display_type
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.policy.authorizer import AccessRequest
from sqe_core.query.answers import create_text, stats, trino_create, trino_shapes
from sqe_core.query.answers.metadata import Metadata, text_table
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.names import schema_not_found
from sqe_core.query.judge.views import unreadable_view
from sqe_core.query.run.judging import Judging
from sqe_core.query.statements.handler import ExistingObject, Need, answer
from sqe_core.spi.catalog import ObjectType, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ObjectNotFoundError, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import (
    ShowCatalogs,
    ShowColumns,
    ShowCreate,
    ShowFunctions,
    ShowSchemas,
    ShowSession,
    ShowStats,
    ShowTables,
)
from sqe_core.sql.text.like import like_filter


@answer(ShowCatalogs)
def show_catalogs(statement: ShowCatalogs, context: StatementContext) -> pa.Table:
    matches = like_filter(statement.like)
    names = (mount.name for mount in context.visible.mounts())
    return text_table(_titled(context, "catalog"), [(name,) for name in names if matches(name)])


@answer(ShowSchemas)
def show_schemas(statement: ShowSchemas, context: StatementContext) -> pa.Table:
    mount = context.resolver.catalog(statement.catalog or context.session.catalog)
    matches = like_filter(statement.like)
    names = sorted(".".join(namespace) for namespace in context.visible.schemas(mount))
    return text_table(_titled(context, "schema"), [(name,) for name in names if matches(name)])


@answer(ShowTables)
def show_tables(statement: ShowTables, context: StatementContext) -> pa.Table:
    """SHOW TABLES and SHOW VIEWS: the visible ones of a schema; of the current one with the session's own views."""
    session, visible = context.session, context.visible
    mount, schema = context.resolver.schema(
        statement.schema or (session.catalog, ".".join(session.schema)), context.names
    )
    if schema.namespace == (INFORMATION_SCHEMA,):
        names = [] if statement.views_only else sorted(visible.own.information_schema)
    else:
        kinds = (ObjectType.VIEW,) if statement.views_only else (ObjectType.TABLE, ObjectType.VIEW)
        try:
            names = [name.name for name, _ in visible.objects(mount, schema.namespace, kinds=kinds)]
        except ObjectNotFoundError:
            raise context.near.no_schema(mount, schema) from None
    if statement.schema is None:
        names = sorted({*names, *(view.name for view in session.views())})
    matches = like_filter(statement.like)
    column = "view" if statement.views_only else "table"
    return text_table(_titled(context, column), [(name,) for name in names if matches(name)])


def _show_columns_needs(statement: ShowColumns) -> Sequence[Need]:
    return (ExistingObject(name=statement.name, actions=(Action.DESCRIBE,), whole=False),)


@answer(ShowColumns, needs=_show_columns_needs)
def show_columns(statement: ShowColumns, context: StatementContext) -> pa.Table:
    matches = like_filter(statement.like)
    columns = [column for column in Metadata(context).find_columns(statement.name) if matches(column.name)]
    if context.trino:
        return text_table(
            trino_shapes.COLUMNS,
            [(column.name, display_type(column.type), "", column.comment or "") for column in columns],
        )
    return text_table(
        ("column_name", "data_type", "is_nullable"),
        [(column.name, display_type(column.type), "YES" if column.nullable else "NO") for column in columns],
    )


@answer(ShowFunctions)
def show_functions(statement: ShowFunctions, context: StatementContext) -> pa.Table:
    matches = like_filter(statement.like)
    listed = [row for row in context.parts.functions() if matches(row[0])]
    if context.trino:
        return trino_shapes.functions(listed)
    return text_table(("function", "kind", "description"), listed)


@answer(ShowSession)
def show_session(statement: ShowSession, context: StatementContext) -> pa.Table:
    matches = like_filter(statement.like)
    rows = [row for row in context.session.properties.rows() if matches(row[0])]
    return text_table(_session_columns(context), rows)


def _session_columns(context: StatementContext) -> tuple[str, ...]:
    columns = ("name", "value", "default", "type", "description")
    return tuple(column.title() for column in columns) if context.trino else columns


def _show_stats_needs(statement: ShowStats) -> Sequence[Need]:
    return (ExistingObject(name=statement.name, actions=(Action.SELECT,)),)


@answer(ShowStats, needs=_show_stats_needs)
def show_stats(statement: ShowStats, context: StatementContext) -> pa.Table:
    """SHOW STATS FOR t: what metadata tells; whoever sees a part of the table is told no number (META-5)."""
    resolved = context.resolver.object(statement.name, context.names)
    loaded = Metadata(context).load(resolved, statement.name)
    columns = Judging(context).columns_of(resolved.name, loaded)
    if isinstance(loaded, ViewMetadata) or not _sees_all(resolved.name, loaded, context):
        return stats.unknown(columns)
    return stats.known(columns, context.session.metadata(resolved.mount), resolved.name)


def _sees_all(name: ObjectName, table: TableMetadata, context: StatementContext) -> bool:
    request = AccessRequest(name=name, action=Action.SELECT, loaded=table)
    decided = context.parts.authorizer.decide(context.identity, [request], context.circumstances)
    return decided[name, Action.SELECT].unrestricted


def _show_create_needs(statement: ShowCreate) -> Sequence[Need] | None:
    if statement.object == "schema":
        return None
    return (ExistingObject(name=statement.name, actions=(Action.DESCRIBE,), whole=False),)


@answer(ShowCreate, needs=_show_create_needs)
def show_create(statement: ShowCreate, context: StatementContext) -> pa.Table:
    """SHOW CREATE TABLE, VIEW and SCHEMA: the statement that would make it, as far as the user sees it."""
    if statement.object == "schema":
        mount, schema = context.resolver.schema(statement.name, context.names)
        if not context.visible.has_schema(mount, schema.namespace):
            raise schema_not_found(schema)
        title = _titled(context, "create_schema")
        return text_table(title, [(f"CREATE SCHEMA {schema}",)])
    resolved = context.resolver.object(statement.name, context.names)
    loaded = Metadata(context).load(resolved, statement.name)
    wanted = ViewMetadata if statement.object == "view" else TableMetadata
    if not isinstance(loaded, wanted):
        other = "view" if statement.object == "table" else "table"
        hint = f"use SHOW CREATE {other.upper()}"
        raise UserError(f"{resolved.name} is a {other}", hint=hint, condition="NOT_SUPPORTED")
    title = _titled(context, f"create_{statement.object}")
    return text_table(title, [(_created(context, resolved.name, loaded),)])


def _created(context: StatementContext, name: ObjectName, loaded: TableMetadata | ViewMetadata) -> str:
    judging = Judging(context)
    if isinstance(loaded, TableMetadata):
        if context.trino:
            return trino_create.table_text(name, loaded, judging.columns_of(name, loaded))
        return create_text.table_text(name, loaded, judging.columns_of(name, loaded))
    text = judging.text_of(name, loaded)
    if text is None:
        raise unreadable_view(str(name))
    if context.trino:
        return trino_create.view_text(name, loaded, text)
    return create_text.view_text(name, loaded, text)


def _titled(context: StatementContext, column: str) -> tuple[str]:
    """The one column of an answer, which Trino writes like a title."""
    return (column.replace("_", " ").title(),) if context.trino else (column,)
