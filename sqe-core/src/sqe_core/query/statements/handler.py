"""A statement's handler: what it needs, and whether it answers rows, applies a change, or runs in the engine.

Each class of `sql/statement.py` and its neighbours has exactly one. What history and audit want to know (`traits`) and
what EXPLAIN ACCESS tells (`needs`) are said there and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, get_args

import pyarrow as pa

from sqe_core.policy.trail import KeepsChanges
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.judge import Judgement
from sqe_core.query.statements.traits import StatementTraits
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import EngineStatement, Name, Statement

S = TypeVar("S", bound=Statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingObject:
    """A table or a view that has to be there.

    `kind` None takes both. `whole` says that nothing of it may be kept from the user (DML-4).
    """

    name: Name
    actions: tuple[Action, ...]
    kind: type[TableMetadata] | type[ViewMetadata] | None = None
    if_exists: bool = False
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NewObject:
    """A name that an object is to get; without a schema it is in that of `beside`, else in the current one."""

    name: Name
    action: Action = Action.CREATE
    beside: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNeed:
    """A schema; one that is `new` need not be there. `cascade` does the same to all that it holds."""

    name: Name
    action: Action
    new: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNeed:
    """Whatever the engine's plan of this names."""

    statement: EngineStatement


Need = ExistingObject | NewObject | SchemaNeed | PlanNeed


class Handler(ABC, Generic[S]):
    """Carries out the statements of one class. Holds no state: one serves all sessions."""

    statement: ClassVar[type[Statement]]
    """The class: what `Handler` is derived for."""
    traits: ClassVar[StatementTraits] = StatementTraits()
    admin: ClassVar[str | None] = None
    """What only administrators may, in the words of the refusal; None where it is no matter of that alone."""

    def __init_subclass__(cls) -> None:
        """Find the class that it is derived for."""
        (of,) = get_args(cls.__dict__["__orig_bases__"][0])
        if isinstance(of, type):
            cls.statement = of

    def traits_of(self, statement: S) -> StatementTraits:
        """Return what history and audit want to know."""
        return self.traits

    def needs(self, statement: S) -> Sequence[Need] | None:
        """Return what its user has to be allowed; None where that is no matter of tables, views and schemas."""
        return None

    def require_admin(self, context: StatementContext) -> None:
        """Raise for others than administrators, where only they may; nobody else learns what exists."""
        if self.admin is not None and not context.is_admin:
            raise denied(self.admin)


class Answer(Handler[S]):
    """Answers rows, and changes nothing."""

    @abstractmethod
    def rows(self, statement: S, context: StatementContext) -> pa.Table:
        """Return the rows."""


class AnswerAboutQuery(Handler[S]):
    """Answers rows about a statement that the engine is asked to judge, and that does not run."""

    columns: ClassVar[tuple[str, ...]]
    """The columns of the answer, all of them text."""

    @abstractmethod
    def query(self, statement: S) -> EngineStatement:
        """Return what is to be judged."""

    @abstractmethod
    def told(self, judgement: Judgement, context: StatementContext) -> Iterable[Sequence[str | None]]:
        """Return the rows."""


class Change(Handler[S]):
    """Applies a change and answers nothing."""

    in_engine: ClassVar[bool] = False
    """Whether it works with catalogs through an engine session; another CREATE in between is then tried again."""
    changes_rights: ClassVar[bool] = False
    """Whether it is recorded before it is done, where nothing may be done unrecorded."""

    def columns(self, statement: S) -> pa.Schema | None:
        """Return the columns of what it tells about the change; None where it tells nothing."""
        return None

    @abstractmethod
    def apply(self, statement: S, context: StatementContext) -> Iterable[Sequence[Any]] | None:
        """Carry it out, and return the rows for `columns`."""

    def change_keepers(self, context: StatementContext) -> Sequence[KeepsChanges]:
        """Return the stores whose changes the audit is told of."""
        return ()


class RunsInEngine(Handler[S]):
    """The engine runs it, once its plan was judged."""

    @abstractmethod
    def command(self, statement: S) -> Action | None:
        """Return what it does with a table that its plan names as a command's; None for what holds no such name."""


class StandsFor(Handler[S]):
    """Stands for another statement, which is read and judged as if it had been sent (STMT-1)."""

    @abstractmethod
    def meant(self, statement: S, context: StatementContext) -> tuple[str, Sequence[Any]]:
        """Return that statement, and the values of its parameters."""


class Handlers:
    """The handlers of all statements."""

    def __init__(self, handlers: Iterable[Handler[Any]]) -> None:
        """Take one handler for each class; two for one are a fault of ours."""
        self._by_class: dict[type[Statement], Handler[Any]] = {}
        for handler in handlers:
            if self._by_class.setdefault(handler.statement, handler) is not handler:
                raise ValueError(f"{handler.statement.__name__} has two handlers")

    def of(self, statement: Statement) -> Handler[Any]:
        """Return the handler of a statement."""
        return self._by_class[type(statement)]

    def __iter__(self) -> Iterator[Handler[Any]]:
        return iter(self._by_class.values())

    @property
    def classes(self) -> frozenset[type[Statement]]:
        """The classes that have one."""
        return frozenset(self._by_class)


def denied(what: str) -> AccessDeniedError:
    """The one answer to somebody who may not, whatever exists."""
    return AccessDeniedError(f"You may not {what}")
