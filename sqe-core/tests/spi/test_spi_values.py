"""Values of the SPI refuse what cannot be meant."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import UTC, datetime
from decimal import Decimal

import pytest

import sqe_core.spi as spi
from sqe_core.spi import (
    Access,
    Action,
    AttachRequest,
    AttachSecret,
    CatalogContext,
    ColumnMask,
    Decision,
    Effect,
    HashMask,
    LineageEvent,
    NamespaceName,
    NullMask,
    ObjectName,
    PartialMask,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
    QueryPhase,
    RangeMask,
    RequestContext,
    ResourcesError,
    ResourceType,
    Secret,
    SqlExpression,
    UserError,
    VisibilityRequest,
)
from sqe_core.testing import make_identity, make_lineage_event

CONTEXT = RequestContext(protocol="test", now=datetime(2026, 1, 1, tzinfo=UTC), query_id="q")
FILTER = SqlExpression(text="a = 1")


@pytest.mark.parametrize(
    "name", [name for name in dir(spi) if dataclasses.is_dataclass(getattr(spi, name)) and name != "Position"]
)
def test_values_are_frozen_and_keyword_only(name: str) -> None:
    value = getattr(spi, name)
    assert value.__dataclass_params__.frozen
    assert all(field.kw_only for field in dataclasses.fields(value))
    assert not hasattr(value, "__dict__") or "__slots__" in vars(value)


@pytest.mark.rule("POL-4")
@pytest.mark.parametrize(
    "restriction",
    [
        {"row_filters": (FILTER,)},
        {"column_masks": (ColumnMask(column="a", mask=NullMask()),)},
        {"hidden_columns": frozenset({"a"})},
        {"check": (FILTER,)},
    ],
)
def test_deny_with_a_restriction_is_no_decision(restriction: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="a DENY carries no row filter"):
        Decision(effect=Effect.DENY, **restriction)  # type: ignore[arg-type]


@pytest.mark.rule("POL-4")
def test_two_masks_on_a_column_are_no_decision() -> None:
    masks = (ColumnMask(column="a", mask=NullMask()), ColumnMask(column="a", mask=HashMask()))
    with pytest.raises(ValueError, match="at most one mask"):
        Decision(effect=Effect.ALLOW, column_masks=masks)


def test_abstain_may_restrict_but_does_not_allow() -> None:
    decision = Decision(effect=Effect.ABSTAIN, row_filters=(FILTER,))
    assert decision.restricted
    assert not Decision.abstain().restricted


@pytest.mark.parametrize("mask", [{"show_first": -1}, {"show_last": -1}, {"upper": ""}, {"digit": "00"}])
def test_partial_mask_refuses_nonsense(mask: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="partial mask"):
        PartialMask(**mask)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [0, -1, Decimal("NaN"), Decimal(0)])
def test_range_mask_refuses_nonsense(width: int | Decimal) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        RangeMask(width=width)


class OnlyTables(PolicyEnforcer):
    """Knows `decide` only; `visible` is inherited."""

    def __init__(self) -> None:
        self.asked: list[PolicyRequest] = []

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        self.asked.append(request)

        def one(access: Access) -> Decision:
            return Decision.allow() if str(access.resource.name).endswith("yes") else Decision.deny("no")

        return PolicyResponse(decisions=tuple(one(access) for access in request.accesses))


@pytest.mark.rule("STMT-9")
def test_visible_asks_once_about_describe() -> None:
    enforcer = OnlyTables()
    schema = NamespaceName(catalog="c", namespace=("yes",))
    names = (ObjectName(catalog="c", namespace=("n",), name="no"), schema)
    request = VisibilityRequest(principal=make_identity(), names=names, context=CONTEXT)
    assert list(enforcer.visible(request)) == [Effect.DENY, Effect.ALLOW]
    (asked,) = enforcer.asked
    assert {access.action for access in asked.accesses} == {Action.DESCRIBE}
    assert [access.resource.type for access in asked.accesses] == [ResourceType.TABLE, ResourceType.SCHEMA]


@pytest.mark.rule("AUTHN-8")
def test_secret_never_prints_nor_travels() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {secret:>20} {[secret]}"
    assert secret == Secret("hunter2") != Secret("other")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)


def test_identity_without_tokens_is_the_same_person() -> None:
    alice = make_identity("alice", token="token-5d1f")
    assert alice.without_tokens().access_token is None
    assert alice.without_tokens().key == alice.key
    assert "token-5d1f" not in repr(alice)


def test_attach_names_every_missing_and_unknown_option() -> None:
    request = AttachRequest(name="x", location="y", options={"warehose": "1", "depth": "2"})
    with pytest.raises(UserError, match="ATTACH needs WAREHOUSE, REGION"):
        request.check(required=("warehouse", "region"))
    with pytest.raises(UserError, match="does not know WAREHOSE") as caught:
        request.check(optional=("depth",))
    assert caught.value.hint == "known options: DEPTH"


def test_attach_refuses_a_secret_of_another_type() -> None:
    secret = AttachSecret(name="partner", type="aws", values={"access_key_id": Secret("AKIA")})
    request = AttachRequest(name="x", location="y", secret=secret)
    with pytest.raises(UserError, match="secret 'partner' is of type aws; this catalog takes bearer"):
        request.check(secrets=("bearer",))
    with pytest.raises(UserError, match="takes no secret at all"):
        request.check()
    request.check(secrets=("aws",))


def test_contexts_hide_storage_secrets() -> None:
    context = CatalogContext(storage={"s3.secret-access-key": "hunter2"})
    assert "hunter2" not in repr(context)


def test_lineage_events_hide_the_token() -> None:
    event = make_lineage_event()
    assert event.user_token is not None
    assert event.user_token.reveal() not in repr(event)
    assert event == dataclasses.replace(event, user_token=None)
    assert isinstance(event, LineageEvent)


def test_limits_say_when_to_come_back() -> None:
    assert ResourcesError("Too many logins", retry_after_secs=30).retry_after_secs == 30
    assert ResourcesError("Too much").retry_after_secs is None


def test_final_phases() -> None:
    assert {phase for phase in QueryPhase if phase.final} == {
        QueryPhase.FINISHED,
        QueryPhase.FAILED,
        QueryPhase.CANCELLED,
    }
