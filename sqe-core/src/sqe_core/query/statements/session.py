"""USE, SET SESSION, transactions, and statements that are accepted and do nothing."""

from __future__ import annotations

from dataclasses import replace

from sqe_core.query.answers.metadata import Metadata
from sqe_core.query.context import StatementContext
from sqe_core.query.statements.handler import change
from sqe_core.query.statements.transactions import TransactionOf
from sqe_core.session.trino_properties import own_name
from sqe_core.sql.statement import (
    NoOperation,
    ResetSession,
    SetPath,
    SetSession,
    SetTimeZone,
    TransactionControl,
    Use,
)


@change(Use, of_session=True)
def use(statement: Use, context: StatementContext) -> None:
    """USE schema, USE catalog.schema; one part that is no schema but a catalog means the catalog."""
    resolver, visible, name = context.resolver, context.visible, statement.name
    if len(name) == 1 and resolver.find(context.session.catalog) is None:
        # The current catalog was detached: the only names that mean anything are those of catalogs.
        name = (name[0], "default")
    mount, schema = resolver.schema(name, context.names)
    namespace = schema.namespace
    if not visible.has_schema(mount, namespace):
        other = resolver.find(statement.name[0]) if len(statement.name) == 1 else None
        if other is None or not visible.shows(other):
            raise context.near.no_schema(mount, schema)
        mount, namespace = other, ("default",)
    context.session.use(mount.name, namespace)


@change(SetSession, of_session=True)
def set_session(statement: SetSession, context: StatementContext) -> None:
    context.session.set_property(_property(statement.name, context), statement.value)


@change(ResetSession, of_session=True)
def reset_session(statement: ResetSession, context: StatementContext) -> None:
    name = statement.name
    context.session.reset_property(None if name is None else _property(name, context))


def _property(name: str, context: StatementContext) -> str:
    """Return what SQE calls a property of Trino's."""

    def is_catalog(name: str) -> bool:
        mount = context.resolver.find(name)
        return mount is not None and context.visible.shows(mount)

    return own_name(name, is_catalog)


@change(SetTimeZone, of_session=True)
def set_time_zone(statement: SetTimeZone, context: StatementContext) -> None:
    if statement.zone is None:
        context.session.reset_property("time_zone")
    else:
        context.session.set_property("time_zone", statement.zone)


@change(SetPath, of_session=True)
def set_path(statement: SetPath, context: StatementContext) -> None:
    """All functions are built in, wherever they are looked for; the client is told what it said."""
    context.session.change(lambda state: replace(state, path=statement.path))


@change(TransactionControl, of_session=True)
def transaction(statement: TransactionControl, context: StatementContext) -> None:
    """Each statement commits by itself; a client that keeps a transaction has one in which nothing is written."""
    if context.session.keeps_own_state:
        TransactionOf(context).control(statement)


@change(NoOperation, of_session=True)
def no_operation(statement: NoOperation, context: StatementContext) -> None:
    """ANALYZE and the like."""
    if statement.must_exist is not None:
        Metadata(context).find_columns(statement.must_exist)
