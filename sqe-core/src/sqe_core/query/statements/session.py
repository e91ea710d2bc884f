"""USE, SET SESSION, transactions, and statements that are accepted and do nothing."""

from __future__ import annotations

from sqe_core.query.answers.metadata import Metadata
from sqe_core.query.context import StatementContext
from sqe_core.query.statements.handler import change
from sqe_core.sql.statement import NoOperation, ResetSession, SetSession, TransactionControl, Use


@change(Use)
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


set_session = change(SetSession)(
    lambda statement, context: context.session.set_property(statement.name, statement.value)
)
reset_session = change(ResetSession)(lambda statement, context: context.session.reset_property(statement.name))
transaction = change(TransactionControl)(lambda statement, context: None)  # each statement commits by itself


@change(NoOperation)
def no_operation(statement: NoOperation, context: StatementContext) -> None:
    """SET TIME ZONE 'UTC', ANALYZE and the like."""
    if statement.must_exist is not None:
        Metadata(context).find_columns(statement.must_exist)
