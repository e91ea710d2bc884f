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


@pytest.mark.rule("ERR-1")
def test_of_what_is_not_ours_nothing_is_told() -> None:
    told = error_names.told(RuntimeError("secret"))
    assert told["message"] == "Internal error"
    assert "secret" not in str(told)
