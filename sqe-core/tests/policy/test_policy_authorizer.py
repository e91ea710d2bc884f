"""Combining the answers of policy engines: restrictively, and failing closed."""

from collections.abc import Sequence

import pytest

from sqe_core.policy.authorizer import AccessRequest, Authorizer, Circumstances
from sqe_core.spi.catalog import Column, TableMetadata
from sqe_core.spi.errors import AccessDeniedError, ExternalError, NotSupportedError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import (
    Action,
    Decision,
    Effect,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
)
from sqe_core.spi.sql import SqlExpression

ALICE = Identity(issuer="i", subject="1", username="alice", provider="test", access_token=Secret("token"))
NOW = Circumstances(protocol="embedded", query_id="q")
NAME = ObjectName(catalog="c", namespace=("n",), name="t")
TABLE = TableMetadata(
    namespace=("n",),
    name="t",
    uuid="u",
    location="l",
    format_version=2,
    schema_id=0,
    columns=(Column(name="a", type="int"), Column(name="b", type="int")),
)
READ = AccessRequest(name=NAME, action=Action.SELECT, loaded=TABLE)


class Fixed(PolicyEnforcer):
    def __init__(self, *decisions: Decision) -> None:
        self.decisions = decisions
        self.requests: list[PolicyRequest] = []

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        self.requests.append(request)
        return PolicyResponse(decisions=self.decisions)


class Broken(PolicyEnforcer):
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        raise ConnectionError("http://opa:8181 secret")


def decide(*decisions: Decision) -> object:
    return Authorizer([Fixed(decision) for decision in decisions]).decide(ALICE, [READ], NOW)[NAME, Action.SELECT]


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize(
    ("effects", "denied"),
    [
        ([Effect.ALLOW], False),
        ([Effect.ABSTAIN], True),
        ([Effect.DENY], True),
        ([Effect.ALLOW, Effect.DENY], True),
        ([Effect.DENY, Effect.ALLOW], True),
        ([Effect.ALLOW, Effect.ABSTAIN], False),
        ([Effect.ABSTAIN, Effect.ABSTAIN], True),
    ],
)
def test_deny_wins_and_silence_denies(effects: Sequence[Effect], denied: bool) -> None:
    assert decide(*(Decision(effect=effect) for effect in effects)).denied is denied


@pytest.mark.rule("POL-8")
def test_hidden_columns_add_up() -> None:
    access = decide(Decision(effect=Effect.ALLOW, hidden_columns=frozenset({"a"})), Decision(effect=Effect.ABSTAIN))
    assert [column.name for column in access.columns] == ["b"]
    assert not access.unrestricted


@pytest.mark.rule("STMT-9")
def test_what_a_reader_does_not_see_is_not_described() -> None:
    hides = Decision(effect=Effect.ALLOW, hidden_columns=frozenset({"a"}))
    for describe, select in ((Decision.allow(), hides), (hides, Decision.allow()), (hides, Decision.deny("no"))):
        seen = Authorizer([Fixed(describe, select)]).visible_columns(ALICE, NAME, TABLE.columns, NOW)
        assert [column.name for column in seen] == ["b"]
    assert Authorizer([Fixed(Decision.deny("no"), hides)]).visible_columns(ALICE, NAME, TABLE.columns, NOW) == ()


@pytest.mark.rule("POL-2")
def test_what_does_not_exist_yet_has_no_columns_to_hide() -> None:
    hides = Decision(effect=Effect.ALLOW, hidden_columns=frozenset({"a"}))
    request = AccessRequest(name=NAME, action=Action.CREATE)
    access = Authorizer([Fixed(hides)]).decide(ALICE, [request], NOW)[NAME, Action.CREATE]
    assert access.hidden == {"a"}
    assert not access.unrestricted


@pytest.mark.rule("POL-2")
def test_an_engine_that_fails_denies_with_an_error_of_ours() -> None:
    authorizer = Authorizer([Fixed(Decision.allow()), Broken()])
    for ask in (
        lambda: authorizer.decide(ALICE, [READ], NOW),
        lambda: authorizer.visible(ALICE, [NAME], NOW),
        lambda: authorizer.visible_columns(ALICE, NAME, TABLE.columns, NOW),
    ):
        with pytest.raises(ExternalError) as raised:
            ask()
        assert "opa" not in raised.value.message


@pytest.mark.rule("POL-4")
def test_too_few_answers_and_unknown_columns_deny() -> None:
    with pytest.raises(ExternalError):
        Authorizer([Fixed()]).decide(ALICE, [READ], NOW)
    with pytest.raises(ExternalError):
        decide(Decision(effect=Effect.ALLOW, hidden_columns=frozenset({"renamed"})))


@pytest.mark.rule("POL-1")
def test_what_is_not_enforced_yet_is_refused_and_not_ignored() -> None:
    with pytest.raises(NotSupportedError):
        decide(Decision(effect=Effect.ALLOW, row_filters=(SqlExpression(text="a = 1"),)))
    with pytest.raises(ValueError, match="policy engine"):
        Authorizer([])


def test_engines_are_asked_once_for_all_objects_and_never_see_tokens() -> None:
    other = ObjectName(catalog="c", namespace=("n",), name="u")
    engine = Fixed(Decision.allow(), Decision.deny("no"))
    answers = Authorizer([engine]).decide(ALICE, [READ, AccessRequest(name=other, action=Action.INSERT)], NOW)
    assert len(engine.requests) == 1
    assert engine.requests[0].principal.access_token is None
    assert answers[other, Action.INSERT].denied


def test_require_raises_with_the_action() -> None:
    with pytest.raises(AccessDeniedError, match="create schema"):
        Authorizer([Fixed(Decision.deny("no"))]).require(ALICE, NAME.schema, Action.CREATE_SCHEMA, NOW)
