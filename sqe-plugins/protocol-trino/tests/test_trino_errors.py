"""Every error of SQE has one of Trino's names, with Trino's number and type."""

from __future__ import annotations

import pytest

from sqe_core.spi import ErrorCode, Position, UserError
from sqe_protocol_trino import error_names


def test_every_code_has_a_name() -> None:
    assert set(error_names.NAMES) == set(ErrorCode)


@pytest.mark.parametrize(
    ("name", "number", "kind"),
    [
        ("SYNTAX_ERROR", 1, "USER_ERROR"),
        ("GENERIC_INTERNAL_ERROR", 65536, "INTERNAL_ERROR"),
        ("EXCEEDED_TIME_LIMIT", 131075, "INSUFFICIENT_RESOURCES"),
        ("ICEBERG_COMMIT_ERROR", 84148236, "EXTERNAL"),
    ],
)
def test_types_follow_from_numbers(name: str, number: int, kind: str) -> None:
    assert (name, number) in error_names.NAMES.values()
    assert error_names.named(name, number, "x")["errorType"] == kind


def test_position_and_hint() -> None:
    told = error_names.told(
        UserError(
            "Column a does not exist", code=ErrorCode.COLUMN_NOT_FOUND, hint="did you mean b?", position=Position(2, 7)
        )
    )
    assert told["message"] == "line 2:7: Column a does not exist; did you mean b?"
    assert told["errorLocation"] == {"lineNumber": 2, "columnNumber": 7}
    assert told["failureInfo"]["errorLocation"] == told["errorLocation"]


def test_a_condition_names_an_error_more_finely_than_its_code() -> None:
    told = error_names.told(
        UserError("too big", code=ErrorCode.INVALID_ARGUMENTS, condition="NUMERIC_VALUE_OUT_OF_RANGE")
    )
    assert (told["errorName"], told["errorCode"], told["errorType"]) == ("NUMERIC_VALUE_OUT_OF_RANGE", 19, "USER_ERROR")


def test_a_condition_of_a_later_version_is_told_by_its_code() -> None:
    told = error_names.told(UserError("x", code=ErrorCode.INVALID_ARGUMENTS, condition="NEWER_THAN_THIS"))
    assert told["errorName"] == "INVALID_FUNCTION_ARGUMENT"


def test_no_two_names_share_a_number() -> None:
    numbers = dict(error_names.NAMES.values()) | error_names.CONDITIONS
    assert len(set(numbers.values())) == len(numbers)


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize("code", [each for each in ErrorCode if UserError("x", code=each).may_be_denial])
def test_what_may_be_a_denial_has_the_name_of_its_code_and_no_other(code: ErrorCode) -> None:
    plain = error_names.told(UserError("x", code=code))
    finer = UserError("x", code=code, condition="NOT_FOUND")
    assert finer.condition is None
    finer.condition = "NOT_FOUND"  # by whatever way
    assert error_names.told(finer) == plain


@pytest.mark.rule("ERR-1")
def test_of_what_is_not_ours_nothing_is_told() -> None:
    told = error_names.told(RuntimeError("secret"))
    assert told["message"] == "Internal error"
    assert "secret" not in str(told)
