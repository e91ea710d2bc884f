"""CREATE that lost against somebody else: what is tried again, how often, and what is answered in the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sqe_core.engine.port import EngineExecutionError, EngineFailure
from sqe_core.query.statements.created_meanwhile import (
    CreatedMeanwhileError,
    created_by_catalog,
    created_table,
    is_created_meanwhile,
    tried,
)
from sqe_core.spi.errors import CommitConflictError, ErrorCode, QueryCancelledError, UserError
from sqe_core.spi.names import ObjectName

NAME = ObjectName(catalog="lake", namespace=("sales",), name="orders")


def failure(condition: str, raw: str = "") -> EngineFailure:
    return EngineFailure(condition=condition, sql_state=None, parameters={}, raw=raw)


def attempts(*answers: int | Exception) -> tuple[Callable[[], int], list[int]]:
    left, made = iter(answers), list[int]()

    def attempt() -> int:
        made.append(len(made))
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return attempt, made


def test_a_statement_that_may_find_the_object_is_judged_anew() -> None:
    lost = created_table(NAME, may_exist=True)
    first, firsts = attempts(lost)
    again, others = attempts(lost, 7)
    assert tried(first, again, lambda: None) == 7
    assert (len(firsts), len(others)) == (1, 2)


def test_whoever_loses_thrice_is_told_to_send_it_again() -> None:
    lost = created_table(NAME, may_exist=True, seen=True)
    attempt, made = attempts(lost, lost, lost, 7)
    with pytest.raises(CommitConflictError, match="Another statement changed the table first") as caught:
        tried(attempt, attempt, lambda: None)
    assert (len(made), caught.value.hint) == (3, "send the statement again")


def test_if_not_exists_does_nothing_when_the_name_stays_taken() -> None:
    lost = created_table(NAME, may_exist=True, or_nothing=True)
    attempt, made = attempts(lost, lost, lost, 7)
    assert tried(attempt, attempt, lambda: None, lambda: 0) == 0
    assert len(made) == 3
    # Rows of an ingest are never dropped like that.
    attempt, _ = attempts(lost, lost, lost)
    with pytest.raises(UserError, match="already exists"):
        tried(attempt, attempt, lambda: None)


def test_a_table_that_must_not_exist_is_not_tried_again() -> None:
    attempt, made = attempts(created_table(NAME, may_exist=False), 7)
    with pytest.raises(UserError, match=r"Table lake\.sales\.orders already exists") as caught:
        tried(attempt, attempt, lambda: None)
    assert (len(made), caught.value.code) == (1, ErrorCode.DUPLICATE_TABLE)


def test_a_statement_that_was_cancelled_is_not_tried_again() -> None:
    attempt, made = attempts(created_table(NAME, may_exist=True), 7)

    def check() -> None:
        raise QueryCancelledError("The statement was cancelled")

    with pytest.raises(QueryCancelledError):
        tried(attempt, attempt, check)
    assert len(made) == 1


def test_other_errors_pass() -> None:
    attempt, made = attempts(UserError("no"), 7)
    with pytest.raises(UserError, match="no"):
        tried(attempt, attempt, lambda: None)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("found", "meant"),
    [
        (failure("AlreadyExistsException"), True),
        (failure("TABLE_OR_VIEW_ALREADY_EXISTS"), True),
        (failure("CommitFailedException"), True),
        (failure("IllegalStateException", "Table UUID does not match: current=1 != refreshed=2"), True),
        (failure("IllegalStateException", "stopped"), False),
        # Nobody knows whether these rows are in the table.
        (failure("CommitStateUnknownException"), False),
        (failure("DIVIDE_BY_ZERO", "Table UUID does not match"), False),
    ],
)
def test_after_what_a_statement_is_tried_again(found: EngineFailure, meant: bool) -> None:
    assert is_created_meanwhile(found) is meant


def test_why_a_catalog_does_not_create() -> None:
    taken = UserError("'sales.orders' already exists", code=ErrorCode.DUPLICATE_TABLE)
    answers: list[type[Exception]] = []
    for error, replaces in (
        (taken, False),
        (taken, True),
        (EngineExecutionError(failure("CommitFailedException")), True),
    ):
        with (
            pytest.raises(CreatedMeanwhileError) as caught,
            created_by_catalog("view", may_exist=True, replaces=replaces),
        ):
            raise error
        answers.append(type(caught.value.answer))
    assert answers == [UserError, CommitConflictError, CommitConflictError]
    other = (UserError("no"), EngineExecutionError(failure("DIVIDE_BY_ZERO")))
    for error in other:
        with pytest.raises(type(error)), created_by_catalog("view", may_exist=True):
            raise error
