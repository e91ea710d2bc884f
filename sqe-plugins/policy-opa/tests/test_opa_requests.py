"""What OPA is asked: exactly the forms of features §6.7, as few times as possible."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from sqe_core.spi import (
    Access,
    Action,
    Effect,
    ExternalError,
    Identity,
    NamespaceName,
    ObjectName,
    PluginContext,
    PolicyRequest,
    Secret,
)
from sqe_core.testing import make_policy_request
from sqe_policy_opa.enforcer import OpaEnforcer

ALICE = Identity(
    issuer="https://idp",
    subject="17",
    username="alice",
    provider="idp",
    roles=frozenset({"viewer", "analyst"}),
    groups=frozenset({"emea"}),
    claims=MappingProxyType({"tenant": "acme", "sites": ("a", "b")}),
    access_token=Secret("the-token-of-alice"),
)


def table(name: str, *namespace: str) -> ObjectName:
    return ObjectName(catalog="lake", namespace=namespace or ("hr",), name=name)


def asking(*tables: ObjectName, action: Action = Action.SELECT) -> PolicyRequest:
    return make_policy_request(*tables, principal=ALICE, action=action, columns=("id", "ssn"))


def make(opa: Any, enforcers: list[OpaEnforcer], **keys: Any) -> OpaEnforcer:
    enforcer = OpaEnforcer(opa.config(**keys), PluginContext(sqe_version="9.9"))
    enforcers.append(enforcer)
    return enforcer


@pytest.mark.rule("POL-3")
def test_one_table_per_request(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    make(opa, enforcers).decide(asking(table("people", "eu", "hr")))

    (request,) = opa.requests
    assert (request.method, request.path) == ("POST", "/v1/data/sqe/policy/evaluate")
    assert request.document == {
        "input": {
            "user": {"username": "alice", "roles": ["analyst", "viewer"]},
            "table": {"name": "people", "namespace": "eu.hr"},
            "version": 1,
            "principal": {
                "issuer": "https://idp",
                "subject": "17",
                "username": "alice",
                "roles": ["analyst", "viewer"],
                "groups": ["emea"],
                "claims": {"tenant": "acme", "sites": ["a", "b"]},
            },
            "action": "select",
            "resource": {
                "catalog": "lake",
                "namespace": ["eu", "hr"],
                "name": "people",
                "type": "table",
                "columns": ["id", "ssn"],
                "ref": None,
                "uuid": None,
                "column_tags": {},
            },
            "context": {
                "protocol": "test",
                "now": "2026-01-01T00:00:00+00:00",
                "client_addr": None,
                "query_id": "q1",
            },
        }
    }
    assert request.headers["user-agent"] == "sqe/9.9"
    assert "the-token-of-alice" not in json.dumps([request.document, dict(request.headers)])


@pytest.mark.rule("POL-3")
def test_twenty_tables_are_one_request(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    enforcer = make(opa, enforcers, authz_path="sqe/authz")
    opa.all = lambda asked: {"per_table": {"lake.hr.people": {}, "lake.hr.clients": {"masks": {"ssn": "hash"}}}}
    names = [table(name) for name in ("people", "clients", "secrets", *(f"t{number}" for number in range(17)))]
    response = enforcer.decide(asking(*names))

    (request,) = opa.requests
    assert request.path == "/v1/data/sqe/authz"
    asked = request.document["input"]
    assert (asked["user"], asked["roles"], len(asked["tables"])) == ("alice", ["analyst", "viewer"], 20)
    assert asked["tables"][0] == {
        "catalog": "lake",
        "schema": "hr",
        "table": "people",
        "namespace": ["hr"],
        "actions": ["select"],
        "type": "table",
        "columns": ["id", "ssn"],
        "ref": None,
        "uuid": None,
        "column_tags": {},
    }
    assert asked["principal"]["claims"]["tenant"] == "acme"
    assert asked["context"]["query_id"] == "q1"
    assert response.decision_id == "d-1"
    assert [decision.effect for decision in response.decisions] == [Effect.ALLOW] * 2 + [Effect.DENY] * 18


def test_one_table_with_several_actions_is_asked_about_once(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    enforcer = make(opa, enforcers, authz_path="sqe/authz")
    read = asking(table("people"))
    both = replace(read, accesses=(*read.accesses, replace(read.accesses[0], action=Action.UPDATE)))
    response = enforcer.decide(both)

    (asked,) = opa.requests[0].document["input"]["tables"]
    assert asked["actions"] == ["select", "update"]
    assert len(response.decisions) == 2
    assert response.decisions[0] == response.decisions[1]


def test_two_branches_of_a_table_are_decided_apart(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    """They have one key; an answer about one must not stand for the other."""
    opa.all = lambda asked: {"per_table": {"lake.hr.people": {}} if asked["tables"][0]["ref"] is None else {}}
    enforcer = make(opa, enforcers, authz_path="sqe/authz")
    read = asking(table("people"))
    (main,) = read.accesses
    branch = replace(main, resource=replace(main.resource, ref="audit"))
    decisions = enforcer.decide(replace(read, accesses=(branch, main, replace(main, action=Action.DESCRIBE)))).decisions
    assert [decision.effect for decision in decisions] == [Effect.DENY, Effect.ALLOW, Effect.ALLOW]
    asked = [[(one["ref"], one["actions"]) for one in request.document["input"]["tables"]] for request in opa.requests]
    assert asked == [[("audit", ["select"])], [(None, ["describe", "select"])]]


def test_a_part_with_a_dot_is_quoted_in_the_key(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    opa.all = lambda asked: {"per_table": {'lake."eu.hr"."t""1.x"': {}}}
    enforcer = make(opa, enforcers, authz_path="sqe/authz")
    (decision,) = enforcer.decide(asking(table('t"1.x', "eu", "hr"))).decisions
    assert decision.effect is Effect.ALLOW


@pytest.mark.rule("POL-10")
def test_two_namespaces_never_share_a_key(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    enforcer = make(opa, enforcers, authz_path="sqe/authz")
    opa.all = lambda asked: {"per_table": {'lake."a.b".t': {}}}
    assert enforcer.decide(asking(table("t", "a", "b"))).decisions[0].effect is Effect.ALLOW
    with pytest.raises(ExternalError, match="holds a dot"):
        enforcer.decide(asking(table("t", "a.b")))


def test_requests_run_side_by_side_and_never_more_than_allowed(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def slow(question: Any) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        return {"allow": True}

    opa.one = slow
    enforcer = make(opa, enforcers, max_connections=4)
    response = enforcer.decide(asking(*(table(f"t{number}") for number in range(20))))
    assert len(response.decisions) == 20
    assert most == 4
    assert opa.connections <= 4


def test_answers_belong_to_their_tables(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    opa.one = lambda asked: {"allow": True, "row_filters": [f"name = '{asked['resource']['name']}'"]}
    names = [table(f"t{number}") for number in range(20)]
    decisions = make(opa, enforcers).decide(asking(*names)).decisions
    assert [decision.row_filters[0].text for decision in decisions] == [f"name = '{name.name}'" for name in names]


def test_connections_are_used_again(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    enforcer = make(opa, enforcers)
    for _ in range(10):
        enforcer.decide(asking(table("people")))
    assert opa.connections == 1


def test_the_token_is_sent_and_never_shown(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    enforcer = make(opa, enforcers, token=Secret("s3cr3t-of-sqe"))
    enforcer.decide(asking(table("people")))
    assert opa.requests[0].headers["authorization"] == "Bearer s3cr3t-of-sqe"
    opa.misbehave(status=500)
    with pytest.raises(ExternalError) as raised:
        enforcer.decide(asking(table("people")))
    assert "s3cr3t" not in repr(raised.value) + str(raised.value.__cause__)


def test_schemas_and_catalogs_are_told_apart(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    enforcer = make(opa, enforcers, authz_path="sqe/authz")
    opa.all = lambda asked: {"per_table": {"lake": {}, "lake.hr": {}}}
    catalog, schema = NamespaceName(catalog="lake", namespace=()), NamespaceName(catalog="lake", namespace=("hr",))
    read = asking(table("people"))
    accesses = tuple(
        Access(action=Action.DESCRIBE, resource=replace(read.accesses[0].resource, name=name, columns=()))
        for name in (catalog, schema)
    )
    decisions = enforcer.decide(replace(read, accesses=accesses)).decisions
    assert [decision.effect for decision in decisions] == [Effect.ALLOW, Effect.ALLOW]
    shapes = [(asked["type"], asked["schema"], asked["table"]) for asked in opa.requests[0].document["input"]["tables"]]
    assert shapes[0] == ("catalog", None, None)


def test_a_claim_that_is_no_json_is_refused(opa: Any, enforcers: list[OpaEnforcer]) -> None:
    enforcer = make(opa, enforcers)
    odd = replace(asking(table("people")), principal=replace(ALICE, claims=MappingProxyType({"x": object()})))
    with pytest.raises(ExternalError, match="claim"):
        enforcer.decide(odd)
    infinite = replace(asking(table("people")), principal=replace(ALICE, claims=MappingProxyType({"x": float("inf")})))
    with pytest.raises(ValueError, match="JSON"):
        enforcer.decide(infinite)
    assert opa.requests == []
