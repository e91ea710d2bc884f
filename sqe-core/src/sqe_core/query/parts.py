"""What the pipeline is made of, wired once by `bootstrap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqe_core.catalog.attaching import Attachments
from sqe_core.catalog.registry import CatalogRegistry
from sqe_core.engine.port import Engine
from sqe_core.policy.authorizer import Authorizer
from sqe_core.policy.outside import OutsideGrants
from sqe_core.query.judge.inspect import PlanLimits
from sqe_core.query.run.admission import QueryLimits
from sqe_core.query.run.record import Recorder
from sqe_core.session.directory import SessionDirectory
from sqe_core.session.known_names import KnownNames
from sqe_core.session.transactions import Transactions
from sqe_core.spi.identity import Identity
from sqe_core.sql.statement import SqlReader, Statement, TextLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParts:
    """The collaborators of every statement.

    `template_functions` are the names of SQE's own function templates, which users cannot write; `functions` lists
    (name, kind, description) of what users can call. `admins` says who is an administrator, `sessions` who is
    connected, `known` which roles and users there seem to be. `outside` is where grants and roles are kept when no
    policy engine keeps them.
    """

    engine: Engine
    reader: SqlReader
    catalogs: CatalogRegistry
    attachments: Attachments
    authorizer: Authorizer
    recorder: Recorder
    limits: QueryLimits
    plan_limits: PlanLimits
    template_functions: frozenset[str]
    functions: Callable[[], Sequence[tuple[str, str, str]]]
    admins: Callable[[Identity], bool] = field(default=lambda identity: False)
    sessions: SessionDirectory = field(default_factory=SessionDirectory)
    known: KnownNames = field(default_factory=KnownNames)
    outside: OutsideGrants | None = None
    transactions: Transactions = field(default_factory=Transactions)

    def read(self, sql: str, dialect: str) -> Statement:
        """Read a statement that is not too long."""
        return self.reader.read(sql, dialect=dialect, limits=TextLimits(max_bytes=self.limits.max_sql_bytes))
