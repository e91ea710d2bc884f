"""CREATE SCHEMA and DROP SCHEMA, through the catalog's own interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqe_core.catalog.registry import Mount
from sqe_core.engine.port import EngineExecutionError
from sqe_core.policy.authorizer import AccessRequest
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.names import schema_not_found
from sqe_core.query.statements.created_meanwhile import CreatedMeanwhileError
from sqe_core.query.statements.handler import SchemaNeed, change
from sqe_core.query.statements.objects import CatalogObjects, check_properties
from sqe_core.query.statements.traits import DDL, DDL_IF_EXISTS
from sqe_core.spi.errors import AccessDeniedError, ErrorCode, NotSupportedError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import CreateSchema, DropSchema


def _create_schema_needs(statement: CreateSchema) -> Sequence[SchemaNeed]:
    return (SchemaNeed(name=statement.name, action=Action.CREATE_SCHEMA, new=True),)


@change(CreateSchema, traits=DDL, in_engine=True, needs=_create_schema_needs)
def create_schema(statement: CreateSchema, context: StatementContext) -> None:
    objects = CatalogObjects(context)
    (need,) = _create_schema_needs(statement)
    mount, schema = objects.schema(need)
    objects.require(schema, need.action)
    if statement.location is not None:
        # STMT-3: a location of one's own choice is for admins; nobody is one before logins exist.
        raise NotSupportedError("CREATE SCHEMA with a location is not supported", hint="leave the location out")
    check_properties("Schema", statement.properties)
    exists = UserError(
        f"Schema {schema} already exists",
        code=ErrorCode.DUPLICATE_TABLE,
        hint="add IF NOT EXISTS",
        condition="SCHEMA_ALREADY_EXISTS",
    )
    if context.visible.has_schema(mount, schema.namespace):
        if statement.if_not_exists:
            return
        raise exists
    try:
        context.session.metadata(mount).create_namespace(schema.namespace, statement.properties)
    except (EngineExecutionError, UserError) as error:
        # A catalog in a database knows the error of the database only.
        if not context.visible.has_schema(mount, schema.namespace):
            raise
        raise CreatedMeanwhileError(exists, may_exist=statement.if_not_exists) from error
    objects.lives.created_schema(schema)


def _drop_schema_needs(statement: DropSchema) -> Sequence[SchemaNeed]:
    return (SchemaNeed(name=statement.name, action=Action.DROP_SCHEMA, cascade=statement.cascade),)


@change(DropSchema, traits=DDL_IF_EXISTS, in_engine=True, needs=_drop_schema_needs)
def drop_schema(statement: DropSchema, context: StatementContext) -> None:
    objects = CatalogObjects(context)
    (need,) = _drop_schema_needs(statement)
    mount, schema = objects.schema(need)
    if not context.visible.has_schema(mount, schema.namespace):
        if statement.if_exists:
            return
        raise schema_not_found(schema)
    # Rights before what it holds, and before what those inside of it are called (ERR-7).
    objects.require(schema, need.action)
    held = held_by(context, mount, schema.namespace)
    if not statement.cascade and (len(held) > 1 or held[0].tables or held[0].views):
        raise UserError(f"Schema {schema} is not empty", hint="add CASCADE", condition="SCHEMA_NOT_EMPTY")
    # Everything is decided before anything is dropped (DML-4).
    if not all(may_drop_all(context, context.identity, mount, inner) for inner in held):
        raise AccessDeniedError(f"You may not drop everything that schema {schema} holds")
    context.resolver.ensure_mounted()
    metadata = context.session.metadata(mount)
    for inner in reversed(held):
        namespace = inner.schema.namespace
        # Each is told of at once: what fails later leaves no owner of what is gone.
        for name in inner.views:
            metadata.drop_view(namespace, name)
            objects.lives.dropped(ObjectName(catalog=mount.name, namespace=namespace, name=name))
        for name in inner.tables:
            metadata.drop_table(namespace, name, purge=False)
            objects.lives.dropped(ObjectName(catalog=mount.name, namespace=namespace, name=name))
        metadata.drop_namespace(namespace)
        objects.lives.dropped(inner.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldObjects:
    """What a schema holds for its catalog, whoever may see it."""

    schema: NamespaceName
    tables: tuple[str, ...]
    views: tuple[str, ...]


def held_by(context: StatementContext, mount: Mount, namespace: tuple[str, ...]) -> list[HeldObjects]:
    """Return a schema and those inside of it, with all that they hold, hidden or not; parents come first."""
    metadata = context.session.metadata(mount)
    found = [
        HeldObjects(
            schema=NamespaceName(catalog=mount.name, namespace=namespace),
            tables=tuple(metadata.list_tables(namespace)),
            views=tuple(metadata.list_views(namespace)),
        )
    ]
    for child in metadata.list_namespaces(namespace):
        found += held_by(context, mount, child)
    return found


def may_drop_all(context: StatementContext, identity: Identity, mount: Mount, held: HeldObjects) -> bool:
    """Whether somebody may drop a schema with every table and view of it, and sees all of each."""
    authorizer = context.parts.authorizer
    if authorizer.denies(identity, held.schema, Action.DROP_SCHEMA, context.circumstances):
        return False
    requests = []
    for names, action in ((held.tables, Action.DROP), (held.views, Action.DROP_VIEW)):
        for name in names:
            full_name = ObjectName(catalog=mount.name, namespace=held.schema.namespace, name=name)
            loaded = context.visible.find(mount, full_name)
            if loaded is None:
                return False
            requests += [AccessRequest(name=full_name, action=each, loaded=loaded) for each in (action, Action.SELECT)]
    decisions = authorizer.decide(identity, requests, context.circumstances)
    return all(access.unrestricted for access in decisions.values())
