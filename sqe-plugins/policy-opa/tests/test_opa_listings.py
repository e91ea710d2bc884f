"""Listings: asked in few requests, remembered for a while, denied by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sqe_core.spi import Effect, NamespaceName, ObjectName, PluginContext, VisibilityRequest
from sqe_core.testing import make_identity, make_policy_request
from sqe_policy_opa.enforcer import OpaEnforcer

CONTEXT = make_policy_request().context
ALICE = make_identity("alice", roles=["analyst"])
ALLOW, DENY = Effect.ALLOW, Effect.DENY


def table(name: str) -> ObjectName:
    return ObjectName(catalog="lake", namespace=("hr",), name=name)


def listing(*names: ObjectName | NamespaceName) -> VisibilityRequest:
    return VisibilityRequest(principal=ALICE, names=names, context=CONTEXT)


@pytest.fixture
def make(opa: Any, clock: Any, enforcers: list[OpaEnforcer]) -> Callable[..., OpaEnforcer]:
    def make(**keys: Any) -> OpaEnforcer:
        enforcers.append(OpaEnforcer(opa.config(**keys), PluginContext(), monotonic=clock))
        return enforcers[-1]

    return make


@pytest.mark.parametrize("path", [None, "sqe/authz"])
def test_names_are_shown_or_not(make: Callable[..., OpaEnforcer], path: str | None) -> None:
    names = [table("people"), table("secrets"), table("people").schema, NamespaceName(catalog="lake", namespace=())]
    assert list(make(authz_path=path).visible(listing(*names))) == [ALLOW, DENY, ALLOW, ALLOW]


def test_restrictions_do_not_matter_in_a_listing(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    """Names come without columns, and a policy that names some is no broken one."""
    enforcer = make(authz_path="sqe/authz")
    assert list(enforcer.visible(listing(table("clients")))) == [ALLOW]
    opa.all = lambda asked: {"per_table": {"lake.hr.orders": {"allowed_columns": ["id"], "hidden_columns": ["ssn"]}}}
    assert list(enforcer.visible(listing(table("orders")))) == [ALLOW]


def test_many_names_are_few_requests(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    names = [table(f"t{number}") for number in range(1200)]
    effects = make(authz_path="sqe/authz").visible(listing(*names, table("people")))
    assert effects.count(ALLOW) == 1
    assert effects[-1] is ALLOW
    assert [len(request.document["input"]["tables"]) for request in opa.requests] == [500, 500, 201]
    assert {tuple(asked["actions"]) for asked in opa.requests[0].document["input"]["tables"]} == {("describe",)}


def test_the_same_name_twice(make: Callable[..., OpaEnforcer]) -> None:
    names = (table("people"), table("secrets"), table("people"))
    assert list(make(authz_path="sqe/authz").visible(listing(*names))) == [ALLOW, DENY, ALLOW]


@pytest.mark.rule("POL-9")
def test_answers_are_remembered_for_a_while(opa: Any, make: Callable[..., OpaEnforcer], clock: Any) -> None:
    enforcer = make(authz_path="sqe/authz", cache_ttl_secs=60)
    asked = listing(table("people"), table("secrets"))

    def requests() -> list[list[str]]:
        seen = [[entry["table"] for entry in request.document["input"]["tables"]] for request in opa.requests]
        opa.requests.clear()
        return seen

    for _ in range(3):
        assert list(enforcer.visible(asked)) == [ALLOW, DENY]
    assert requests() == [["people", "secrets"]]
    clock.offset += 6
    enforcer.visible(asked)
    assert requests() == [["secrets"]]
    clock.offset += 60
    enforcer.visible(asked)
    assert requests() == [["people", "secrets"]]
    enforcer.flush()
    enforcer.visible(asked)
    assert requests() == [["people", "secrets"]]


@pytest.mark.rule("POL-9")
@pytest.mark.parametrize(
    "other",
    [
        {"principal": make_identity("bob", roles=["analyst"])},
        {"principal": make_identity("alice", roles=["analyst", "x"])},
        {"principal": replace(ALICE, all_roles=frozenset({"analyst", "x"}))},
        {"principal": replace(ALICE, groups=frozenset({"g"}))},
        {"principal": replace(ALICE, claims={"tenant": "a"})},
        {"principal": replace(ALICE, issuer="https://other")},
        {"context": replace(CONTEXT, client_address="10.0.0.1")},
        {"context": replace(CONTEXT, protocol="trino")},
    ],
)
def test_answers_are_not_shared(opa: Any, make: Callable[..., OpaEnforcer], other: dict[str, Any]) -> None:
    enforcer = make(authz_path="sqe/authz")
    enforcer.visible(listing(table("people")))
    enforcer.visible(replace(listing(table("people")), **other))
    assert len(opa.requests) == 2


def test_the_policy_bounds_the_time(opa: Any, make: Callable[..., OpaEnforcer], clock: Any) -> None:
    opa.all = lambda asked: {"per_table": {"lake.hr.people": {"ttl_s": 0}}}
    enforcer = make(authz_path="sqe/authz")
    for _ in range(2):
        enforcer.visible(listing(table("people")))
    assert len(opa.requests) == 2


@pytest.mark.parametrize("keys", [{"cache_ttl_secs": 0}, {"cache_max_entries": 0}, {"cache_max_entries": 1}])
def test_the_configuration_bounds_what_is_kept(
    opa: Any, make: Callable[..., OpaEnforcer], keys: dict[str, int]
) -> None:
    enforcer = make(authz_path="sqe/authz", **keys)
    for _ in range(2):
        enforcer.visible(listing(table("people")))
        enforcer.visible(listing(table("secrets")))
    assert len(opa.requests) == 4


def test_an_answer_from_before_a_flush_is_not_kept(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    enforcer = make(authz_path="sqe/authz")
    honest = opa.all

    def revoked_meanwhile(asked: Any) -> Any:
        enforcer.flush()
        return honest(asked)

    opa.all = revoked_meanwhile
    assert list(enforcer.visible(listing(table("people")))) == [ALLOW]
    opa.all = lambda asked: {"per_table": {}}
    assert list(enforcer.visible(listing(table("people")))) == [DENY]


def test_failures_are_not_remembered(opa: Any, make: Callable[..., OpaEnforcer]) -> None:
    enforcer = make(authz_path="sqe/authz")
    opa.misbehave(status=500)
    with pytest.raises(Exception, match="500"):
        enforcer.visible(listing(table("people")))
    opa.reply = None
    assert list(enforcer.visible(listing(table("people")))) == [ALLOW]
