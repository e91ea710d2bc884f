"""What is known around one statement: one value, from which its reading, judging and running are made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqe_core.catalog.visible import VisibleCatalogs
from sqe_core.engine.port import ResultStream
from sqe_core.policy.authorizer import Circumstances
from sqe_core.policy.trail import DecisionTrail
from sqe_core.query.judge.names import NameContext, NameResolver
from sqe_core.query.judge.near_names import NearNames
from sqe_core.query.judge.sights import ViewSights
from sqe_core.query.run.running import RunningStatement
from sqe_core.query.statements.traits import StatementTraits
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.identity import Identity
from sqe_core.sql.statement import PositionMap, Statement, StatementKind

if TYPE_CHECKING:
    from sqe_core.query.judge.judge import Judgement
    from sqe_core.query.parts import QueryParts
    from sqe_core.query.service import QueryService
    from sqe_core.query.statements.handler import Handlers


class StatementWatch:
    """Is told how far a statement is. This one does nothing, for what is only looked at."""

    def recognised(self, kind: StatementKind, traits: StatementTraits) -> None:
        """It is known which statement it is; nothing is decided."""

    def stands_for(self, sql: str, dialect: str) -> None:
        """It is another statement that is carried out, and recognised next."""

    def begins_change(self, kind: StatementKind) -> None:
        """Rights are about to be changed; raises when that could not be recorded, and must be."""

    def planned(self, kind: StatementKind, judgement: Judgement | None) -> None:
        """Everything was decided, right before it runs."""

    def scanned(self, stream: ResultStream) -> None:
        """The engine is done with it."""


@dataclass(slots=True)
class ErrorTerms:
    """What an error about the statement may speak of: its kind, places of its text, visible columns (ERR-3, ERR-5)."""

    kind: StatementKind = StatementKind.UTILITY
    positions: PositionMap | None = None
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """One statement of one session, whose `dialect` is that of what it stands for too.

    `visible` is what its user may see, `sights` what of views, and `terms` what errors may speak of; `watch` is told
    how far it is, and `others` are the statements of everybody, for KILL.
    """

    parts: QueryParts
    handlers: Handlers
    session: StatementSession
    dialect: str
    running: RunningStatement
    visible: VisibleCatalogs
    resolver: NameResolver
    circumstances: Circumstances
    watch: StatementWatch
    others: QueryService
    terms: ErrorTerms = field(default_factory=ErrorTerms)
    sights: ViewSights = field(default_factory=ViewSights)

    @property
    def identity(self) -> Identity:
        return self.session.identity

    @property
    def trino(self) -> bool:
        """Whether Trino's own columns and words are expected."""
        return self.dialect == "trino"

    @property
    def is_admin(self) -> bool:
        return self.parts.admins(self.identity)

    @property
    def names(self) -> NameContext:
        return NameContext(catalog=self.session.catalog, schema=self.session.schema)

    @property
    def near(self) -> NearNames:
        return NearNames(self.session, self.visible, self.resolver)

    @property
    def trail(self) -> DecisionTrail | None:
        return self.circumstances.trail

    def read_meant(self, sql: str) -> Statement:
        """Read what the statement stands for; what is told of it names no value of this text either.

        One that is too long is refused by its length, before anybody looks at it.
        """
        if len(sql) <= self.parts.limits.max_sql_bytes:
            self.watch.stands_for(sql, self.dialect)
        return self.parts.read(sql, self.dialect)

    def without_policies(self) -> StatementContext:
        """Return the same for somebody who sees every object: administrators, where they govern."""
        visible = self.visible.without_policies()
        find = self.session.discovered.find
        return replace(
            self, visible=visible, resolver=NameResolver(self.parts.catalogs, shows=visible.shows, discover=find)
        )
