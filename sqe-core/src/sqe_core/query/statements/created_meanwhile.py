"""What becomes of CREATE when somebody else made the object between its judgement and its commit.

It was judged for a name that was free. So it is judged anew, and then does what it does with an object that was there
before: IF NOT EXISTS leaves it, OR REPLACE replaces it if that is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqe_core.engine.port import EngineExecutionError, EngineFailure
from sqe_core.spi.errors import CommitConflictError, ErrorCode, SqeError, UserError
from sqe_core.spi.names import ObjectName

T = TypeVar("T")

# In each of these cases the engine has certainly committed nothing.
_CONDITIONS = frozenset(
    {"TABLE_OR_VIEW_ALREADY_EXISTS", "TableAlreadyExistsException", "AlreadyExistsException", "CommitFailedException"}
)
# Iceberg says it where it looks at the table before a commit.
_ANOTHER_TABLE = "Table UUID does not match"
_MORE_TRIES = 2


class CreatedMeanwhileError(Exception):
    """Somebody else made or changed the object first; nothing was committed.

    `answer` is what the client reads when the statement is not tried again. `may_exist` says whether it is: only what
    means something when the object is there. With `or_nothing`, as IF NOT EXISTS asks, nothing is to be done when the
    name stays taken: by an object that this user does not see.
    """

    def __init__(self, answer: SqeError, *, may_exist: bool, or_nothing: bool = False) -> None:
        super().__init__(answer.message)
        self.answer = answer
        self.may_exist = may_exist
        self.or_nothing = or_nothing


def is_created_meanwhile(failure: EngineFailure) -> bool:
    """Whether CREATE failed because of an object of this name that was not there before, or is another one now."""
    replaced = failure.condition == "IllegalStateException" and _ANOTHER_TABLE in failure.raw
    return replaced or failure.condition in _CONDITIONS


def created_table(
    name: ObjectName, *, may_exist: bool, or_nothing: bool = False, seen: bool = False
) -> CreatedMeanwhileError:
    """Return what such a failure of CREATE TABLE means; `may_exist` with OR REPLACE and IF NOT EXISTS."""
    exists = UserError(f"Table {name} already exists", code=ErrorCode.DUPLICATE_TABLE)
    # What is taken and yet not to be seen is hidden, and stays so if the statement is sent again.
    answer = _changed("table") if may_exist and seen else exists
    return CreatedMeanwhileError(answer, may_exist=may_exist, or_nothing=or_nothing)


@contextmanager
def created_by_catalog(
    what: str, *, may_exist: bool, or_nothing: bool = False, replaces: bool = False
) -> Iterator[None]:
    """Find out why the catalog does not create an object that was not there, or replace the one that was."""
    try:
        yield
    except EngineExecutionError as error:
        if not is_created_meanwhile(error.failure):
            raise
        raise CreatedMeanwhileError(_changed(what), may_exist=may_exist, or_nothing=or_nothing) from error
    except UserError as error:
        if error.code is not ErrorCode.DUPLICATE_TABLE:
            raise
        # A name that is free and stays taken is that of an object which this user does not see.
        answer = _changed(what) if replaces else error
        raise CreatedMeanwhileError(answer, may_exist=may_exist, or_nothing=or_nothing) from error.__cause__


def _changed(what: str) -> CommitConflictError:
    return CommitConflictError(f"Another statement changed the {what} first", hint="send the statement again")


def tried(
    first: Callable[[], T], again: Callable[[], T], check: Callable[[], None], nothing: Callable[[], T] | None = None
) -> T:
    """Run a statement, which `again` judges anew; `check` raises when it was cancelled.

    `nothing` is the answer of IF NOT EXISTS about a name that stays taken.
    """
    attempt = first
    for more in range(_MORE_TRIES, -1, -1):
        try:
            return attempt()
        except CreatedMeanwhileError as error:
            if not more and error.or_nothing and nothing is not None:
                return nothing()
            if not more or not error.may_exist:
                raise error.answer from error.__cause__
        check()
        attempt = again
    raise AssertionError
