"""Answers are read strictly: whatever is not exactly of the known form denies (POL-4)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sqe_core.spi import (
    Action,
    ConstantMask,
    Decision,
    Effect,
    ExternalError,
    HashMask,
    Mask,
    NullMask,
    ObjectName,
    PartialMask,
    PluginContext,
    RangeMask,
    SqlExpression,
    SqlMask,
    YearMask,
)
from sqe_core.testing import make_policy_request
from sqe_policy_opa.enforcer import OpaEnforcer
from sqe_policy_opa.masks import read_mask, write_mask

PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")
REQUEST = make_policy_request(PEOPLE, columns=("id", "name", "ssn"))
KEY = "lake.hr.people"


@pytest.fixture
def one(opa: Any, enforcers: list[OpaEnforcer]) -> Any:
    """Decide with an answer about one table."""
    enforcers.append(OpaEnforcer(opa.config(), PluginContext()))

    def decide(answer: Any) -> Decision:
        opa.one = lambda asked: answer
        return enforcers[0].decide(REQUEST).decisions[0]

    return decide


@pytest.fixture
def every(opa: Any, enforcers: list[OpaEnforcer]) -> Any:
    """Decide with an answer about all tables."""
    enforcers.append(OpaEnforcer(opa.config(authz_path="sqe/authz"), PluginContext()))

    def decide(answer: Any) -> Decision:
        opa.all = lambda asked: answer
        return enforcers[0].decide(REQUEST).decisions[0]

    return decide


def texts(expressions: tuple[SqlExpression, ...] | None) -> list[str] | None:
    return None if expressions is None else [expression.text for expression in expressions]


def masks(decision: Decision) -> dict[str, Mask]:
    return {mask.column: mask.mask for mask in decision.column_masks}


def test_the_first_form(one: Any) -> None:
    decision = one(
        {
            "allow": True,
            "row_filters": ["clearance >= 3"],
            "column_masks": {"ssn": "hash", "id": "null", "name": "redact:***"},
            "restricted_columns": ["name"],
        }
    )
    assert decision.effect is Effect.ALLOW
    assert texts(decision.row_filters) == ["clearance >= 3"]
    assert masks(decision) == {"ssn": HashMask(), "id": NullMask(), "name": ConstantMask(value="***")}
    assert decision.hidden_columns == {"name"}
    assert decision.check is None


def test_the_second_form(one: Any) -> None:
    custom = {"type": "custom", "expression": "regexp_replace(name, '^[^@]+', '***')"}
    decision = one(
        {
            "version": 1,
            "allow": True,
            "row_filters": ["dept = 'eng'"],
            "column_masks": {"name": custom, "id": {"type": "null"}},
            "hidden_columns": ["ssn"],
            "check": ["dept = 'eng'"],
            "ttl_s": 30,
        }
    )
    assert masks(decision) == {
        "name": SqlMask(expression=SqlExpression(text=custom["expression"])),
        "id": NullMask(),
    }
    assert decision.hidden_columns == {"ssn"}
    assert texts(decision.check) == ["dept = 'eng'"]
    assert decision.ttl_secs == 30


@pytest.mark.parametrize("answer", [{}, {"allow": False}, {"allow": 1}, {"allow": "true"}, {"allow": None}])
def test_only_true_allows(one: Any, answer: Any) -> None:
    assert one(answer).effect is Effect.DENY


def test_a_refusal_may_name_restrictions(one: Any) -> None:
    assert one({"allow": False, "row_filters": ["x"], "column_masks": {"ssn": "hash"}}) == Decision(
        effect=Effect.DENY, reason="opa: allow is not true", ttl_secs=60
    )


ODD_PARTS = [
    {"row_filter": "x"},
    {"row_filters": "x"},
    {"row_filters": None},
    {"row_filters": [None]},
    {"row_filters": [""]},
    {"row_filters": ["  "]},
    {"row_filters": ["x" * 20_000]},
    {"row_filters": ["x"] * 101},
    {"hidden_columns": "ssn"},
    {"hidden_columns": ["nope"]},
    {"hidden_columns": ["SSN"]},
    {"hidden_columns": ["ssn", "ssn"]},
    {"hidden_columns": ["ssn", "Ssn"]},
    {"hidden_columns": [1]},
    {"hidden_columns": {"ssn": True}},
    {"check": "x"},
    {"check": None},
    {"ttl_s": "30"},
    {"ttl_s": -1},
    {"ttl_s": True},
    {"ttl_s": 1.5},
    {"ttl_s": None},
    {"ttl_s": 10**30},
    {"reason": "because"},
]
ODD_MASKS = [
    [],
    "hash",
    {"nope": "hash"},
    {"SSN": "hash"},
    {"ssn": "hash", "SSN": "hash"},
    {"ssn": None},
    {"ssn": 5},
    {"ssn": ["hash"]},
    {"ssn": {}},
    {"ssn": {"type": "scramble"}},
    {"ssn": {"type": ["null"]}},
    {"ssn": {"type": "null", "extra": 1}},
    {"ssn": {"type": "custom"}},
    {"ssn": {"type": "custom", "expression": ""}},
    {"ssn": {"type": "custom", "expression": 5}},
    {"ssn": {"type": "range", "width": 0}},
    {"ssn": {"type": "range", "width": "10"}},
    {"ssn": {"type": "range", "width": True}},
    {"ssn": {"type": "partial", "show_last": -1}},
    {"ssn": {"type": "partial", "upper": "XX"}},
    {"ssn": {"type": "Null"}},
    {"ssn": "x" * 20_000},
]


@pytest.mark.rule("POL-4")
@pytest.mark.parametrize(
    "answer",
    [
        *({"allow": True, **part} for part in ODD_PARTS),
        *({"allow": True, "column_masks": part} for part in ODD_MASKS),
        {"allow": True, "masks": {}},
        {"allow": True, "allowed_columns": ["id"]},
        {"allow": True, "Allow": False},
        {"allow": True, "version": 2},
        {"allow": True, "version": "1"},
        {"allow": True, "version": True},
        {"allow": True, "hidden_columns": ["id"], "restricted_columns": ["ssn"]},
        True,
        [],
        "allow",
        5,
    ],
)
def test_every_other_form_about_one_table_denies(one: Any, answer: Any) -> None:
    with pytest.raises(ExternalError, match="answer of OPA"):
        one(answer)


@pytest.mark.rule("POL-4")
@pytest.mark.parametrize(
    "answer",
    [
        *({"per_table": {KEY: part}} for part in ODD_PARTS),
        *({"per_table": {KEY: {"masks": part}}} for part in ODD_MASKS),
        {"per_table": {KEY: {"column_masks": {}}}},
        {"per_table": {KEY: {"allow": True}}},
        {"per_table": {KEY: {"allowed_columns": "id"}}},
        {"per_table": {KEY: {"allowed_columns": ["nope"]}}},
        {"per_table": {KEY: {"allowed_columns": ["id", "ID"]}}},
        {"per_table": {KEY: True}},
        {"per_table": {KEY: None}},
        {"per_table": {KEY: {}, "lake.hr.other": {}}},
        {"per_table": {KEY: {}, "LAKE.hr.people": {}}},
        {"per_table": {"people": {}}},
        {"per_table": []},
        {"per_table": {KEY: {}}, "allow": True},
        {"per_table": {KEY: {}}, "version": 2},
        {"Per_table": {KEY: {}}},
        {},
        [],
        True,
    ],
)
def test_every_other_form_about_all_tables_denies(every: Any, answer: Any) -> None:
    with pytest.raises(ExternalError, match="answer of OPA"):
        every(answer)


def test_all_tables_carry_every_restriction(every: Any) -> None:
    decision = every(
        {
            "version": 1,
            "per_table": {
                KEY: {
                    "allowed_columns": ["id", "ssn"],
                    "hidden_columns": ["id"],
                    "masks": {"ssn": "hash"},
                    "row_filters": ["a", "b"],
                    "check": ["c"],
                    "ttl_s": 7,
                }
            },
        }
    )
    assert decision.hidden_columns == {"id", "name"}
    assert masks(decision) == {"ssn": HashMask()}
    assert (texts(decision.row_filters), texts(decision.check), decision.ttl_secs) == (["a", "b"], ["c"], 7)


@pytest.mark.parametrize("entry", [{}, {"allowed_columns": None}])
def test_without_allowed_columns_all_are(every: Any, entry: Any) -> None:
    assert not every({"per_table": {KEY: entry}}).hidden_columns


def test_allowed_columns_of_what_has_none(every: Any, enforcers: list[OpaEnforcer]) -> None:
    """A listing, or a table that is gone, shows none. What is still to be made cannot be told which it may have."""
    every({"per_table": {KEY: {"allowed_columns": ["id"]}}})
    for action, allowed in ((Action.SELECT, True), (Action.DESCRIBE, True), (Action.CREATE, False)):
        asked = make_policy_request(PEOPLE, action=action, columns=())
        if allowed:
            assert enforcers[0].decide(asked).decisions[0].effect is Effect.ALLOW
        else:
            with pytest.raises(ExternalError, match="single columns"):
                enforcers[0].decide(asked)


def test_no_allowed_column_hides_all(every: Any) -> None:
    assert every({"per_table": {KEY: {"allowed_columns": []}}}).hidden_columns == {"id", "name", "ssn"}


def test_a_table_without_an_entry_is_denied(every: Any) -> None:
    assert every({"per_table": {}}).effect is Effect.DENY


@pytest.mark.parametrize(
    ("ttl_s", "keys", "expected"),
    [
        (None, {}, 60),
        (30, {}, 30),
        (300, {}, 60),
        (0, {}, 0),
        (300, {"cache_ttl_secs": 0}, 0),
        (30, {"cache_max_entries": 0}, 0),
    ],
)
def test_answers_last_no_longer_than_the_configuration_says(
    opa: Any, enforcers: list[OpaEnforcer], ttl_s: int | None, keys: dict[str, int], expected: int
) -> None:
    opa.one = lambda asked: {"allow": True, **({} if ttl_s is None else {"ttl_s": ttl_s})}
    enforcers.append(OpaEnforcer(opa.config(**keys), PluginContext()))
    assert enforcers[0].decide(REQUEST).decisions[0].ttl_secs == expected


@pytest.mark.parametrize(
    ("written", "mask"),
    [
        ("hash", HashMask()),
        ("null", NullMask()),
        ("nullify", NullMask()),
        ("redact:***", ConstantMask(value="***")),
        ("redact:", ConstantMask(value="")),
        ("redact:redact:x", ConstantMask(value="redact:x")),
        ("HASH", ConstantMask(value="HASH")),
        ("n/a", ConstantMask(value="n/a")),
        ({"type": "null"}, NullMask()),
        ({"type": "hash"}, HashMask()),
        ({"type": "year"}, YearMask()),
        ({"type": "redact"}, ConstantMask()),
        ({"type": "redact", "text": "x"}, ConstantMask(value="x")),
        ({"type": "range", "width": 10}, RangeMask(width=10)),
        ({"type": "range", "width": 0.5}, RangeMask(width=Decimal("0.5"))),
        ({"type": "partial", "show_last": 4, "digit": "#"}, PartialMask(show_last=4, digit="#")),
        ({"type": "custom", "expression": "upper({col})"}, SqlMask(expression=SqlExpression(text="upper({col})"))),
    ],
)
def test_masks(written: Any, mask: Mask) -> None:
    assert read_mask(written) == mask
    assert read_mask(write_mask(mask)) == mask


@pytest.mark.parametrize(
    "mask",
    [RangeMask(width=Decimal("0.1234567890123456789")), SqlMask(expression=SqlExpression(text="x", dialect="spark"))],
)
def test_masks_that_json_cannot_say_are_not_written(mask: Mask) -> None:
    with pytest.raises(ValueError, match="OPA cannot hold"):
        write_mask(mask)
