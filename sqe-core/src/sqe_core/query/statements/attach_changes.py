"""ATTACH, DETACH and secrets for one session: who may, and what asks a catalog whether it is there (features §2.6)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.attaching import Attachments
from sqe_core.catalog.registry import Mount
from sqe_core.query.answers.like import like_filter
from sqe_core.query.answers.metadata import text_table
from sqe_core.query.statements.steward import denied
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Identity
from sqe_core.sql.statement import Statement
from sqe_core.sql.statements.attachments import Attach, CreateSecret, Detach, DropSecret, ShowSecrets

_CHANGES = (Attach, Detach, CreateSecret, DropSecret)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachChanges:
    """Answers and carries out for one session. Whoever may not learns nothing, not even whether a name is taken."""

    session: StatementSession
    attachments: Attachments
    admins: Callable[[Identity], bool]
    engine_scope: Callable[[], AbstractContextManager[object]]
    check: Callable[[], None]
    """Raises when the statement was cancelled."""

    def answer(self, statement: Statement) -> pa.Table | None:
        """Return the rows of SHOW SECRETS, names and types and never values; None for other statements."""
        if not isinstance(statement, ShowSecrets):
            return None
        self._require_admin("see secrets")
        matches = like_filter(statement.like)
        return text_table(("name", "type"), [row for row in self.attachments.secrets() if matches(row[0])])

    @staticmethod
    def changes(statement: Statement) -> bool:
        """Whether `apply` carries it out."""
        return isinstance(statement, _CHANGES)

    def apply(self, statement: Statement) -> None:
        """Carry out a statement."""
        match statement:
            case CreateSecret():
                self._require_admin("create secrets")
                self.attachments.create_secret(statement)
            case DropSecret():
                self._require_admin("drop secrets")
                self.attachments.drop_secret(statement.name, if_exists=statement.if_exists)
            case Attach():
                self._require_admin("attach catalogs")
                self.attachments.attach(statement, self._probe)
            case Detach():
                self._require_admin("detach catalogs")
                self._detach(statement)

    def _detach(self, statement: Detach) -> None:
        if statement.name == self.session.catalog:
            raise UserError(
                f"catalog '{statement.name}' is the current one of this session",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="USE another one first",
            )
        self.attachments.detach(statement.name, if_exists=statement.if_exists)

    def _probe(self, mount: Mount) -> None:
        """List the schemas of a catalog in the way that statements will."""
        identity = self.session.session.identity
        own = mount.backend.quick_metadata(identity) or mount.backend.metadata(identity)
        if own is not None:
            own.list_namespaces()
        else:
            with self.engine_scope():
                self.session.metadata(mount).list_namespaces()
        # Whoever was told that the statement ended must not find the catalog afterwards.
        self.check()

    def _require_admin(self, what: str) -> None:
        if not self.admins(self.session.identity):
            raise denied(what)
