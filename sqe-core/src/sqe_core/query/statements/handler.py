"""A statement's handler: what it needs, and whether it answers rows, applies a change, or runs in the engine.

Each class of `sql/statement.py` and its neighbours has exactly one. What history and audit want to know (`traits`) and
what EXPLAIN ACCESS tells (`needs`) are said there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar, Unpack

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
    """A name that an object is to get; without a schema it is in that of `beside`, else in the current one.

    What the user sees there is dropped with the right of `replaces`.
    """

    name: Name
    action: Action = Action.CREATE
    beside: Name | None = None
    replaces: Action | None = None


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


Rows = Iterable[Sequence[Any]]


class Facts(TypedDict, total=False):
    """What is said of a statement beside what carries it out; see `Handler`."""

    traits: StatementTraits
    admin: str
    needs: Callable[[Any], Sequence[Need] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler(Generic[S]):
    """Carries out the statements of one class. Holds no state: one serves all sessions.

    Attributes:
        statement: the class.
        traits: what history and audit want to know.
        admin: what only administrators may, in the words of the refusal; None where it is no matter of that alone.
        needs: what its user has to be allowed; None where that is no matter of tables, views and schemas.
    """

    statement: type[S]
    traits: StatementTraits = field(default_factory=StatementTraits)
    admin: str | None = None
    needs: Callable[[S], Sequence[Need] | None] = lambda statement: None

    def traits_of(self, statement: S) -> StatementTraits:
        """Return what history and audit want to know of one statement."""
        return self.traits

    def require_admin(self, context: StatementContext) -> None:
        """Raise for others than administrators, where only they may; nobody else learns what exists."""
        if self.admin is not None and not context.is_admin:
            raise denied(self.admin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Handler[S]):
    """Answers rows, and changes nothing."""

    rows: Callable[[S, StatementContext], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAboutQuery(Handler[S]):
    """Answers rows about a query that the engine is asked to judge, and that does not run."""

    columns: pa.Schema
    query: Callable[[S], EngineStatement]
    told: Callable[[S, Judgement, StatementContext], Rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Handler[S]):
    """Applies a change; it answers nothing, but where it has columns what it tells about the change.

    Attributes:
        apply: carries it out, and returns the rows for `columns`.
        in_engine: whether it works with catalogs through an engine session; another CREATE in between is then tried
            again.
        changes_rights: whether it is recorded before it is done, where nothing may be done unrecorded.
        columns: the columns of what it tells.
        change_keepers: the stores whose changes the audit is told of.
        of_session: whether it changes what the session has, and nothing for anybody else.
    """

    apply: Callable[[S, StatementContext], Rows | None]
    in_engine: bool = False
    changes_rights: bool = False
    columns: Callable[[S], pa.Schema | None] = lambda statement: None
    change_keepers: Callable[[StatementContext], Sequence[KeepsChanges]] = lambda context: ()
    of_session: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsInEngine(Handler[S]):
    """The engine runs it, once its plan was judged.

    `command` is what it does with a table that its plan names as a command's; None for what holds no such name.
    """

    command: Callable[[S], Action | None]
    traits_by: Callable[[S], StatementTraits]

    def traits_of(self, statement: S) -> StatementTraits:
        return self.traits_by(statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandsFor(Handler[S]):
    """Stands for another statement, which is read and judged as if it had been sent (STMT-1).

    `meant` returns that statement, and the values of its parameters.
    """

    meant: Callable[[S, StatementContext], tuple[str, Sequence[Any]]]


def answer(
    statement: type[S], **facts: Unpack[Facts]
) -> Callable[[Callable[[S, StatementContext], pa.Table]], Answer[S]]:
    """Make a function the handler of what answers rows."""
    return lambda rows: Answer(statement=statement, rows=rows, **facts)


def change(
    statement: type[S],
    *,
    in_engine: bool = False,
    changes_rights: bool = False,
    of_session: bool = False,
    **facts: Unpack[Facts],
) -> Callable[[Callable[[S, StatementContext], None]], Change[S]]:
    """Make a function the handler of what changes something."""
    return lambda apply: Change(
        statement=statement,
        apply=apply,
        in_engine=in_engine,
        changes_rights=changes_rights,
        of_session=of_session,
        **facts,
    )


def stands_for(
    statement: type[S],
) -> Callable[[Callable[[S, StatementContext], tuple[str, Sequence[Any]]]], StandsFor[S]]:
    """Make a function the handler of what stands for another statement."""
    return lambda meant: StandsFor(statement=statement, meant=meant)


class Handlers:
    """The handlers of all statements."""

    def __init__(self, handlers: Iterable[Handler[Any]]) -> None:
        """Take one handler for each class; two for one are a fault of ours."""
        self._by_class: dict[type[Statement], Handler[Any]] = {}
        for handler in handlers:
            if self._by_class.setdefault(handler.statement, handler) is not handler:
                raise ValueError(f"{handler.statement.__name__} has two handlers")

    def of(self, statement: Statement) -> Handler[Any]:
        return self._by_class[type(statement)]

    def __iter__(self) -> Iterator[Handler[Any]]:
        return iter(self._by_class.values())

    @property
    def classes(self) -> frozenset[type[Statement]]:
        return frozenset(self._by_class)


def denied(what: str) -> AccessDeniedError:
    """The one answer to somebody who may not, whatever exists."""
    return AccessDeniedError(f"You may not {what}")
