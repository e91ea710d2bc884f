"""Views of catalogs and of the session: their text is judged when they are made, and again by each use (VIEW-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from sqe_core.query.context import StatementContext
from sqe_core.query.judge.judge import Judgement
from sqe_core.query.judge.names import schema_not_found
from sqe_core.query.judge.views import VIEW_COLUMNS_PROPERTY, VIEW_SECURITY_PROPERTY
from sqe_core.query.run.judging import Judging
from sqe_core.query.statements.created_meanwhile import created_by_catalog
from sqe_core.query.statements.handler import ExistingObject, Need, NewObject, PlanNeed, SchemaNeed, change
from sqe_core.query.statements.objects import CatalogObjects, check_properties
from sqe_core.query.statements.tables import rename
from sqe_core.query.statements.traits import DDL, DDL_IF_EXISTS
from sqe_core.session.session import SessionView
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, ErrorCode, NotSupportedError, UserError
from sqe_core.spi.names import RESERVED_PREFIXES
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import CommentOn, CreateView, DropView, Name, RenameView, SetViewProperties


def _create_view_needs(statement: CreateView) -> Sequence[Need]:
    query = PlanNeed(statement=statement.query)
    if statement.temporary:
        return (query,)
    replaces = Action.DROP_VIEW if statement.replace else None
    return NewObject(name=statement.name, action=Action.CREATE_VIEW, replaces=replaces), query


@change(CreateView, traits=DDL, in_engine=True, needs=_create_view_needs)
def create_view(statement: CreateView, context: StatementContext) -> None:
    if statement.temporary:
        _create_for_session(statement, context)
    else:
        _create(statement, context)


def _create_for_session(statement: CreateView, context: StatementContext) -> None:
    if len(statement.name) != 1:
        raise UserError("A temporary view has a name of one part: it belongs to the session, not to a schema")
    name = statement.name[0]
    if statement.if_not_exists and context.session.find_view(name) is not None:
        return
    if name.lower().startswith(RESERVED_PREFIXES) or "$" in name:
        raise UserError(f"{name} cannot be the name of a view")
    judgement = _judged(statement, context)
    columns = _view_columns(statement, judgement.plan.schema)
    types = dict(zip(judgement.plan.schema.names, judgement.plan.column_types, strict=True))
    context.session.put_view(
        SessionView(
            name=name,
            spark_sql=statement.query.spark_sql,
            text=statement.query.text,
            columns=tuple((visible, types[inner]) for inner, visible in columns),
            renames=columns,
            catalog=context.session.catalog,
            schema=context.session.schema,
        ),
        replace=statement.replace,
    )


def _create(statement: CreateView, context: StatementContext) -> None:
    objects = CatalogObjects(context)
    resolved = objects.new(NewObject(name=statement.name, action=Action.CREATE_VIEW))
    if not resolved.mount.backend.supports_views:
        raise NotSupportedError(f"Catalog {resolved.mount.name} has no views")
    existing = context.visible.find(resolved.mount, resolved.name)
    if existing is not None:
        if statement.if_not_exists:
            return
        if not statement.replace or isinstance(existing, TableMetadata):
            raise UserError(
                f"{resolved.name} already exists",
                code=ErrorCode.DUPLICATE_TABLE,
                hint=None if isinstance(existing, TableMetadata) else "use CREATE OR REPLACE VIEW",
            )
        if not objects.may_change(resolved.name, existing, (Action.DROP_VIEW,)):
            raise AccessDeniedError(f"You may not replace {resolved.name}")
    judgement = _judged(statement, context)
    if judgement.uses_session_views:
        raise UserError("A view cannot read a temporary view, which ends with the session")
    if any(entry.resolved is not None and entry.resolved.name == resolved.name for entry in judgement.bound):
        raise UserError(f"View {resolved.name} would read itself")
    columns = _view_columns(statement, judgement.plan.schema)
    comments = dict(statement.columns)
    described = tuple(
        Column(name=visible, type=type_text, nullable=field.nullable, comment=comments.get(visible))
        for field, type_text, (_, visible) in zip(
            judgement.plan.schema, judgement.plan.column_types, columns, strict=True
        )
    )
    properties = {
        VIEW_COLUMNS_PROPERTY: "\n".join(inner for inner, _ in columns),
        "sqe.view-text": statement.query.text,
        # Kept, since dbt writes DEFINER into every view; whoever reads it reads with their own rights (VIEW-2).
        VIEW_SECURITY_PROPERTY: statement.security,
        "sqe.view-definer": context.session.identity.username,
    }
    if statement.comment is not None:
        properties["comment"] = statement.comment
    may_exist = statement.replace or statement.if_not_exists
    with created_by_catalog(
        "view", may_exist=may_exist, or_nothing=statement.if_not_exists, replaces=existing is not None
    ):
        context.session.metadata(resolved.mount).create_view(
            resolved.name.namespace,
            resolved.name.name,
            columns=described,
            representations={"spark": statement.query.spark_sql},
            default_catalog=context.session.catalog,
            default_namespace=context.session.schema,
            properties=properties,
            # One that the user may not see is not replaced: the catalog refuses a name that is taken.
            replace=existing is not None,
        )
    if existing is None:
        objects.lives.created(resolved.name, context.session.metadata(resolved.mount).load_view)


def _judged(statement: CreateView, context: StatementContext) -> Judgement:
    if statement.query.parameters:
        raise UserError("A view cannot keep parameters", hint="write the values into its text")
    return Judging(context).judge(statement.query)


def _drop_view_needs(statement: DropView) -> Sequence[ExistingObject]:
    return (
        ExistingObject(
            name=statement.name, actions=(Action.DROP_VIEW,), kind=ViewMetadata, if_exists=statement.if_exists
        ),
    )


@change(DropView, traits=DDL_IF_EXISTS, in_engine=True, needs=_drop_view_needs)
def drop_view(statement: DropView, context: StatementContext) -> None:
    """DROP VIEW; a view of the session comes before one of its catalog."""
    if len(statement.name) == 1 and context.session.drop_view(statement.name[0]):
        return
    objects = CatalogObjects(context)
    found = objects.existing(*_drop_view_needs(statement))
    if found is not None:
        resolved, loaded = found
        context.session.metadata(resolved.mount).drop_view(resolved.name.namespace, resolved.name.name)
        objects.lives.dropped(resolved.name, loaded.uuid)


def _rename_view_needs(statement: RenameView) -> tuple[ExistingObject, NewObject]:
    existing = ExistingObject(
        name=statement.name,
        actions=(Action.ALTER_VIEW, Action.SELECT),
        kind=ViewMetadata,
        if_exists=statement.if_exists,
    )
    return existing, NewObject(name=statement.target, action=Action.CREATE_VIEW, beside=statement.name)


@change(RenameView, traits=DDL_IF_EXISTS, in_engine=True, needs=_rename_view_needs)
def rename_view(statement: RenameView, context: StatementContext) -> None:
    rename(statement, _rename_view_needs(statement), context)


def _set_view_properties_needs(statement: SetViewProperties) -> Sequence[ExistingObject]:
    return (_altered(statement.name),)


@change(SetViewProperties, traits=DDL_IF_EXISTS, in_engine=True, needs=_set_view_properties_needs)
def set_view_properties(statement: SetViewProperties, context: StatementContext) -> None:
    check_properties("View", statement.properties)
    _change(context, _altered(statement.name), statement.properties)


def _comment_needs(statement: CommentOn) -> Sequence[ExistingObject | SchemaNeed]:
    if statement.object == "view":
        return (_altered(statement.name),)
    return (SchemaNeed(name=statement.name, action=Action.ALTER_SCHEMA),)


@change(CommentOn, traits=DDL, in_engine=True, needs=_comment_needs)
def comment(statement: CommentOn, context: StatementContext) -> None:
    """COMMENT ON VIEW and COMMENT ON SCHEMA; tables and columns go to the engine."""
    (need,) = _comment_needs(statement)
    if isinstance(need, ExistingObject):
        _change(context, need, {"comment": statement.comment})
        return
    objects = CatalogObjects(context)
    mount, schema = objects.schema(need)
    if not context.visible.has_schema(mount, schema.namespace):
        raise schema_not_found(schema)
    objects.require(schema, need.action)
    context.session.metadata(mount).set_namespace_properties(schema.namespace, {"comment": statement.comment})


def _altered(name: Name) -> ExistingObject:
    return ExistingObject(name=name, actions=(Action.ALTER_VIEW,), kind=ViewMetadata)


def _change(context: StatementContext, need: ExistingObject, properties: Mapping[str, str | None]) -> None:
    found = CatalogObjects(context).existing(need)
    assert found is not None
    resolved, _ = found
    context.session.metadata(resolved.mount).set_view_properties(
        resolved.name.namespace, resolved.name.name, properties
    )


def _view_columns(statement: CreateView, schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Return (name in the query, visible name) of each column; the visible ones must be unique."""
    names = [name for name, _ in statement.columns] or schema.names
    if len(names) != len(schema.names):
        raise UserError(f"The view names {len(names)} columns, its query returns {len(schema.names)}")
    for listed in (names, schema.names):
        folded = [name.lower() for name in listed]
        twice = sorted({name for name in listed if folded.count(name.lower()) > 1})
        if twice:
            raise UserError(
                f"Column {twice[0]} occurs twice in the view",
                code=ErrorCode.DUPLICATE_COLUMN,
                hint="give the columns of the query different names with AS",
            )
    return tuple(zip(schema.names, names, strict=True))
