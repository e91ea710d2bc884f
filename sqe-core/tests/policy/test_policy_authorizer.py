"""Combining the answers of policy engines: restrictively, and failing closed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from testbed.clocks import StoppedClock

from sqe_core.policy.authorizer import AccessRequest, Authorizer, Circumstances, Verdict
from sqe_core.policy.cache import DecisionCache
from sqe_core.spi.catalog import Column, TableMetadata
from sqe_core.spi.errors import AccessDeniedError, ExternalError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import (
    Action,
    ColumnMask,
    ConstantMask,
    Decision,
    Effect,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
    RangeMask,
    SqlMask,
    YearMask,
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


def decide(*decisions: Decision) -> Verdict:
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
        seen = Authorizer([Fixed(describe, select)]).visible_columns(ALICE, NAME, TABLE, NOW)
        assert [column.name for column in seen] == ["b"]
    assert Authorizer([Fixed(Decision.deny("no"), hides)]).visible_columns(ALICE, NAME, TABLE, NOW) == ()


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
        lambda: authorizer.visible_columns(ALICE, NAME, TABLE, NOW),
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
def test_there_is_always_an_engine() -> None:
    with pytest.raises(ValueError, match="policy engine"):
        Authorizer([])


def restricting(*filters: str, check: tuple[str, ...] | None = None, **masks: Mask) -> Decision:
    return Decision(
        effect=Effect.ALLOW,
        row_filters=tuple(SqlExpression(text=text) for text in filters),
        column_masks=tuple(ColumnMask(column=column, mask=mask) for column, mask in masks.items()),
        check=None if check is None else tuple(SqlExpression(text=text) for text in check),
    )


@pytest.mark.rule("POL-8")
def test_restrictions_of_all_engines_hold_and_their_order_does_not_matter() -> None:
    one = restricting("a = 1", "b = 2", a=HashMask(), b=SqlMask(expression=SqlExpression(text="1")))
    other = restricting("b = 2", "c = 3", a=ConstantMask(), b=SqlMask(expression=SqlExpression(text="2")))
    for decisions in ((one, other), (other, one)):
        access = decide(*decisions)
        assert {expression.text for expression in access.filters} == {"a = 1", "b = 2", "c = 3"}
        assert len(access.filters) == 3
        assert access.masks == {"a": ConstantMask(), "b": NullMask()}
        assert not access.unrestricted


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize(
    ("masks", "strictest"),
    [
        ((HashMask(), NullMask()), NullMask()),
        ((ConstantMask(value="x"), HashMask()), ConstantMask(value="x")),
        ((ConstantMask(value="x"), ConstantMask(value="y")), NullMask()),
        ((HashMask(), RangeMask(width=10)), HashMask()),
        ((RangeMask(width=10), RangeMask(width=20)), NullMask()),
        ((YearMask(), PartialMask()), YearMask()),
        ((PartialMask(show_last=4), SqlMask(expression=SqlExpression(text="1"))), PartialMask(show_last=4)),
        ((SqlMask(expression=SqlExpression(text="1")),) * 2, SqlMask(expression=SqlExpression(text="1"))),
    ],
)
def test_the_strictest_mask_holds(masks: tuple[Mask, ...], strictest: Mask) -> None:
    for order in (masks, masks[::-1]):
        assert decide(*(restricting(a=mask) for mask in order)).masks == {"a": strictest}


def test_hidden_beats_masked() -> None:
    access = decide(restricting(a=HashMask()), Decision(effect=Effect.ALLOW, hidden_columns=frozenset({"a"})))
    assert access.hidden == {"a"}
    assert not access.masks


@pytest.mark.rule("POL-4")
def test_a_mask_on_a_column_that_is_not_there_denies() -> None:
    with pytest.raises(ExternalError):
        decide(restricting(renamed=NullMask()))


def test_what_may_be_written_is_what_may_be_read_unless_said_otherwise() -> None:
    access = decide(restricting("a = 1"), restricting("b = 2", check=("c = 3",)), restricting("d = 4", check=()))
    assert [expression.text for expression in access.checks] == ["a = 1", "c = 3"]


@pytest.mark.rule("POL-9")
def test_decisions_are_kept_for_their_time_and_flushed() -> None:
    clock = StoppedClock()
    engine = Fixed(Decision.allow())
    authorizer = Authorizer([engine], cache=DecisionCache(ttl_secs=60, clock=clock))
    for _ in range(3):
        authorizer.decide(ALICE, [READ], NOW)
    assert len(engine.requests) == 1
    authorizer.decide(replace(ALICE, roles=frozenset({"new"})), [READ], NOW)
    assert len(engine.requests) == 2
    authorizer.decide(ALICE, [READ], replace(NOW, client_address="10.0.0.1"))
    assert len(engine.requests) == 3
    authorizer.flush()
    authorizer.decide(ALICE, [READ], NOW)
    assert len(engine.requests) == 4
    clock.now += 61
    authorizer.decide(ALICE, [READ], NOW)
    assert len(engine.requests) == 5


@pytest.mark.rule("POL-9")
@pytest.mark.parametrize(("decision", "secs"), [(Decision.deny("no"), 6), (replace(Decision.allow(), ttl_secs=0), 0)])
def test_denials_are_kept_shorter_and_some_answers_not_at_all(decision: Decision, secs: float) -> None:
    clock = StoppedClock()
    engine = Fixed(decision)
    authorizer = Authorizer([engine], cache=DecisionCache(ttl_secs=60, clock=clock))
    authorizer.decide(ALICE, [READ], NOW)
    clock.now += secs
    authorizer.decide(ALICE, [READ], NOW)
    assert len(engine.requests) == 2


@pytest.mark.rule("POL-9")
def test_an_answer_that_was_asked_for_before_a_flush_is_not_kept() -> None:
    cache = DecisionCache()
    before = cache.generation
    cache.flush()
    cache.put("key", Decision.allow(), generation=before)
    assert cache.get("key") is None


class Remembering(Fixed):
    """Answers from its own memory until it is flushed; meanwhile somebody else asks."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def flush(self) -> None:
        self.meanwhile()
        self.decisions = (Decision.deny("revoked"),)


@pytest.mark.rule("POL-9")
def test_what_an_engine_says_while_it_is_being_flushed_is_not_kept() -> None:
    engine = Remembering(Decision.allow())
    authorizer = Authorizer([engine], cache=DecisionCache(ttl_secs=60))

    def denied() -> bool:
        return authorizer.decide(ALICE, [READ], NOW)[NAME, Action.SELECT].denied

    engine.meanwhile = denied
    before = authorizer.generation
    authorizer.flush()
    assert denied()
    assert authorizer.generation != before


@pytest.mark.rule("POL-9")
def test_an_engine_that_cannot_be_flushed_leaves_no_decision_behind() -> None:
    engine = Remembering(Decision.allow())
    authorizer = Authorizer([engine], cache=DecisionCache(ttl_secs=60))
    authorizer.decide(ALICE, [READ], NOW)

    def breaks() -> None:
        raise ConnectionError

    engine.meanwhile = breaks
    with pytest.raises(ConnectionError):
        authorizer.flush()
    authorizer.decide(ALICE, [READ], NOW)
    assert len(engine.requests) == 2


def test_the_cache_is_bounded() -> None:
    cache = DecisionCache(max_entries=2)
    for key in "abc":
        cache.put(key, Decision.allow(), generation=cache.generation)
    assert [cache.get(key) is not None for key in "abc"] == [False, True, True]


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
