"""USE, SET SESSION, transactions, and statements that are accepted and do nothing."""

from __future__ import annotations

from sqe_core.query.answers.metadata import Metadata
from sqe_core.query.context import StatementContext
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.judge.names import schema_not_found
from sqe_core.query.statements.handler import Change
from sqe_core.sql.statement import NoOperation, ResetSession, SetSession, TransactionControl, Use


class UseHandler(Change[Use]):
    """USE schema, USE catalog.schema; one part that is no schema but a catalog means the catalog."""

    def apply(self, statement: Use, context: StatementContext) -> None:
        """Change the current names."""
        resolver, visible, name = context.resolver, context.visible, statement.name
        if len(name) == 1 and resolver.find(context.session.catalog) is None:
            # The current catalog was detached: the only names that mean anything are those of catalogs.
            name = (name[0], "default")
        mount, schema = resolver.schema(name, context.names)
        namespace = schema.namespace
        if not visible.has_schema(mount, namespace):
            other = resolver.find(statement.name[0]) if len(statement.name) == 1 else None
            if other is None or not visible.shows(other):
                known = [".".join(entry) for entry in visible.schemas(mount)]
                raise schema_not_found(schema, hint=did_you_mean(".".join(namespace), known))
            mount, namespace = other, ("default",)
        context.session.use(mount.name, namespace)


class SetSessionHandler(Change[SetSession]):
    """SET SESSION."""

    def apply(self, statement: SetSession, context: StatementContext) -> None:
        """Set one property."""
        context.session.set_property(statement.name, statement.value)


class ResetSessionHandler(Change[ResetSession]):
    """RESET SESSION."""

    def apply(self, statement: ResetSession, context: StatementContext) -> None:
        """Put one property, or all of them, back to the default."""
        context.session.reset_property(statement.name)


class TransactionHandler(Change[TransactionControl]):
    """BEGIN, COMMIT, ROLLBACK: each statement commits by itself."""

    def apply(self, statement: TransactionControl, context: StatementContext) -> None:
        """Nothing."""


class NoOperationHandler(Change[NoOperation]):
    """SET TIME ZONE 'UTC', ANALYZE and the like."""

    def apply(self, statement: NoOperation, context: StatementContext) -> None:
        """See that what it names is there."""
        if statement.must_exist is not None:
            Metadata(context).find_columns(statement.must_exist)
