"""START TRANSACTION, COMMIT and ROLLBACK of clients that keep a transaction, and what may be done in one.

Every statement commits by itself, and nothing that was committed is rolled back. So a transaction reads: whatever would
write in it is refused, as Trino refuses it for Iceberg's tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqe_core.query.context import StatementContext
from sqe_core.query.statements.handler import Change, Handler, RunsInEngine
from sqe_core.session.transactions import Transactions
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.sql.statement import Statement, StatementKind, TransactionControl

_LEVELS = ("READ UNCOMMITTED", "READ COMMITTED")


@dataclass(frozen=True, slots=True)
class TransactionOf:
    """The transaction that one statement is in."""

    context: StatementContext

    @property
    def _transactions(self) -> Transactions:
        return self.context.parts.transactions

    def control(self, statement: TransactionControl) -> None:
        """Begin or end it."""
        session = self.context.session
        current = session.state().transaction
        if statement.what == "start":
            if current is not None:
                raise NotSupportedError("A transaction has none inside of it", hint="COMMIT or ROLLBACK it first")
            isolation = statement.isolation or _LEVELS[0]
            if isolation not in _LEVELS:
                raise NotSupportedError(
                    f"Isolation level {isolation} is not supported: each statement sees what is committed when it runs",
                    hint="READ COMMITTED is",
                )
            begun = self._transactions.begin(self.context.identity, read_only=statement.read_only, isolation=isolation)
            session.change(lambda state: replace(state, transaction=begun.id))
            return
        if current is None:
            raise UserError("No transaction was begun", code=ErrorCode.NOT_IN_TRANSACTION)
        self._transactions.end(current)
        session.change(lambda state: replace(state, transaction=None))

    def check(self, handler: Handler[Any], statement: Statement) -> None:
        """Refuse what may not be done in it."""
        current = self.context.session.state().transaction
        if current is None:
            return
        found = self._transactions.use(current, self.context.identity)
        if not _writes(handler, statement):
            return
        if found.read_only:
            raise UserError("The transaction is READ ONLY", code=ErrorCode.READ_ONLY_VIOLATION)
        raise UserError(
            "Nothing is written in a transaction: each write commits by itself and could not be rolled back",
            code=ErrorCode.AUTOCOMMIT_WRITE_CONFLICT,
            hint="write outside of it, with autocommit",
        )


def _writes(handler: Handler[Any], statement: Statement) -> bool:
    if isinstance(handler, RunsInEngine):
        return statement.kind is not StatementKind.QUERY
    return isinstance(handler, Change) and not handler.of_session
