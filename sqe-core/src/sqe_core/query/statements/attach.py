"""ATTACH, DETACH and secrets: administrators only. Nobody else learns even whether a name is taken."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.registry import Mount
from sqe_core.query.answers.like import like_filter
from sqe_core.query.answers.metadata import text_table
from sqe_core.query.context import StatementContext
from sqe_core.query.run.judging import Judging
from sqe_core.query.statements.handler import Answer, Change
from sqe_core.query.statements.traits import DDL
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statements.attachments import Attach, CreateSecret, Detach, DropSecret, ShowSecrets


class ShowSecretsHandler(Answer[ShowSecrets]):
    """SHOW SECRETS."""

    admin = "see secrets"

    def rows(self, statement: ShowSecrets, context: StatementContext) -> pa.Table:
        """Return names and types, and never values."""
        matches = like_filter(statement.like)
        return text_table(("name", "type"), [row for row in context.parts.attachments.secrets() if matches(row[0])])


class CreateSecretHandler(Change[CreateSecret]):
    """CREATE SECRET."""

    traits = DDL
    admin = "create secrets"
    changes_rights = True

    def apply(self, statement: CreateSecret, context: StatementContext) -> None:
        """Keep it."""
        context.parts.attachments.create_secret(statement)


class DropSecretHandler(Change[DropSecret]):
    """DROP SECRET."""

    traits = DDL
    admin = "drop secrets"
    changes_rights = True

    def apply(self, statement: DropSecret, context: StatementContext) -> None:
        """Forget it."""
        context.parts.attachments.drop_secret(statement.name, if_exists=statement.if_exists)


class AttachHandler(Change[Attach]):
    """ATTACH."""

    traits = DDL
    admin = "attach catalogs"
    changes_rights = True

    def apply(self, statement: Attach, context: StatementContext) -> None:
        """Mount a catalog that answers."""
        context.parts.attachments.attach(statement, _Probe(context))


class DetachHandler(Change[Detach]):
    """DETACH."""

    traits = DDL
    admin = "detach catalogs"
    changes_rights = True

    def apply(self, statement: Detach, context: StatementContext) -> None:
        """Take a catalog away, unless the session stands in it."""
        if statement.name == context.session.catalog:
            raise UserError(
                f"catalog '{statement.name}' is the current one of this session",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="USE another one first",
            )
        context.parts.attachments.detach(statement.name, if_exists=statement.if_exists)


@dataclass(frozen=True, slots=True)
class _Probe:
    """Asks a catalog whether it is there."""

    context: StatementContext

    def __call__(self, mount: Mount) -> None:
        """List the schemas of a catalog in the way that statements will."""
        session = self.context.session
        identity = session.session.identity
        own = mount.backend.quick_metadata(identity)
        if own is not None:
            own.list_namespaces()
        else:
            with Judging(self.context).scope():
                session.metadata(mount).list_namespaces()
        # Whoever was told that the statement ended must not find the catalog afterwards.
        self.context.running.check()
