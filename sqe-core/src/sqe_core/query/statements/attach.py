"""ATTACH, DETACH and secrets: administrators only. Nobody else learns even whether a name is taken."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.registry import Mount
from sqe_core.query.answers.metadata import text_table
from sqe_core.query.context import StatementContext
from sqe_core.query.run.judging import Judging
from sqe_core.query.statements.handler import answer, change
from sqe_core.query.statements.traits import DDL
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statements.attachments import Attach, CreateSecret, Detach, DropSecret, ShowSecrets
from sqe_core.sql.text.like import like_filter


@answer(ShowSecrets, admin="see secrets")
def show_secrets(statement: ShowSecrets, context: StatementContext) -> pa.Table:
    matches = like_filter(statement.like)
    return text_table(("name", "type"), [row for row in context.parts.attachments.secrets() if matches(row[0])])


create_secret = change(CreateSecret, admin="create secrets", traits=DDL, changes_rights=True)(
    lambda statement, context: context.parts.attachments.create_secret(statement)
)
drop_secret = change(DropSecret, admin="drop secrets", traits=DDL, changes_rights=True)(
    lambda statement, context: context.parts.attachments.drop_secret(statement.name, if_exists=statement.if_exists)
)
attach = change(Attach, admin="attach catalogs", traits=DDL, changes_rights=True)(
    lambda statement, context: context.parts.attachments.attach(statement, _Probe(context))
)


@change(Detach, traits=DDL, admin="detach catalogs", changes_rights=True)
def detach(statement: Detach, context: StatementContext) -> None:
    """DETACH, unless the session stands in the catalog."""
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
