"""GRANT and REVOKE as documents of OPA: exactly what was said, or a refusal (POL-15)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sqe_core.spi import (
    ColumnMask,
    ConstantMask,
    Effect,
    ExternalError,
    Grant,
    Grantee,
    GrantTarget,
    HashMask,
    NotSupportedError,
    NullMask,
    PluginContext,
    Privilege,
    RangeMask,
    SqlExpression,
    SqlMask,
)
from sqe_core.testing import FixedClock, make_identity
from sqe_policy_opa.enforcer import OpaEnforcer

ADMIN = make_identity("root")
PEOPLE = GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="people")
ANALYST = Grantee(type="role", name="analyst")
READ = Grant(privileges=frozenset({Privilege.SELECT}), target=PEOPLE, grantee=ANALYST)
NARROW = replace(
    READ,
    columns=("id", "ssn"),
    column_masks=(ColumnMask(column="ssn", mask=HashMask()),),
    row_filter=SqlExpression(text="region = 'EU'"),
)
AUTHOR = {"granted_by": "root", "granted_at": "2026-01-01T00:00:00+00:00"}


@pytest.fixture
def store(opa: Any, enforcers: list[OpaEnforcer]) -> OpaEnforcer:
    enforcers.append(OpaEnforcer(opa.config(), PluginContext(clock=FixedClock())))
    return enforcers[0]


def stored(opa: Any, key: str = "lake.hr.people", role: str = "analyst") -> Any:
    return opa.documents[key][role]


@pytest.mark.rule("POL-15")
def test_a_grant_is_a_document(opa: Any, store: OpaEnforcer) -> None:
    store.put_grant(NARROW, author=ADMIN)
    assert opa.requests[-1].method == "PUT"
    assert opa.requests[-1].path == "/v1/data/sqe/grants/lake.hr.people/analyst"
    assert stored(opa) == {
        "columns": ["id", "ssn"],
        "masks": {"ssn": "hash"},
        "row_filter": "region = 'EU'",
        **AUTHOR,
    }
    (found,) = store.list_grants(target=PEOPLE, author=ADMIN)
    assert replace(found, granted_by=None, granted_at=None) == NARROW
    assert found.granted_by == "root"


def test_a_grant_on_everything_is_an_empty_document(opa: Any, store: OpaEnforcer) -> None:
    store.put_grant(READ, author=ADMIN)
    assert stored(opa) == AUTHOR


@pytest.mark.parametrize(
    "mask",
    [
        NullMask(),
        ConstantMask(value="x: y"),
        RangeMask(width=10),
        SqlMask(expression=SqlExpression(text="left({col}, 1)")),
    ],
)
def test_every_mask_comes_back(store: OpaEnforcer, mask: Any) -> None:
    grant = replace(READ, columns=("ssn",), column_masks=(ColumnMask(column="ssn", mask=mask),))
    store.put_grant(grant, author=ADMIN)
    (found,) = store.list_grants(author=ADMIN)
    assert found.column_masks == grant.column_masks


def test_names_are_escaped(opa: Any, store: OpaEnforcer) -> None:
    target = replace(PEOPLE, namespace=("eu", "hr"), name='a?b#c"d %2e')
    grant = replace(READ, target=target, grantee=Grantee(type="role", name="Ärzte & co?x=1"))
    store.put_grant(grant, author=ADMIN)
    assert list(opa.documents) == ['lake."eu.hr"."a?b#c""d %2e"']
    (found,) = store.list_grants(author=ADMIN)
    assert (found.target, found.grantee) == (target, grant.grantee)
    assert store.delete_grant(grant, author=ADMIN)


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize(
    "grant",
    [
        replace(READ, privileges=frozenset({Privilege.INSERT})),
        replace(READ, privileges=frozenset({Privilege.SELECT, Privilege.INSERT})),
        replace(READ, privileges=frozenset({Privilege.ALL})),
        replace(READ, effect=Effect.DENY),
        replace(READ, with_grant_option=True),
        replace(READ, grantee=Grantee(type="user", name="alice")),
        replace(READ, grantee=Grantee(type="group", name="g")),
        replace(READ, grantee=Grantee(type="public")),
        replace(READ, grantee=Grantee(type="role", name="..")),
        replace(READ, grantee=Grantee(type="role", name="a/b")),
        replace(READ, target=replace(PEOPLE, name="../../policies")),
        replace(READ, target=GrantTarget(scope="schema", catalog="lake", namespace=("hr",))),
        replace(READ, target=GrantTarget(scope="all_tables", catalog="lake", namespace=("hr",))),
        replace(READ, target=replace(PEOPLE, scope="view")),
        replace(READ, row_filter=SqlExpression(text="x", dialect="trino")),
        replace(READ, column_masks=(ColumnMask(column="x", mask=RangeMask(width=Decimal("0.12345678901234567890"))),)),
    ],
)
def test_what_a_document_cannot_say_is_refused(opa: Any, store: OpaEnforcer, grant: Grant) -> None:
    with pytest.raises(NotSupportedError, match="policy engine opa"):
        store.put_grant(grant, author=ADMIN)
    assert not opa.documents


def test_columns_add_up_and_restrictions_stay(opa: Any, store: OpaEnforcer) -> None:
    store.put_grant(NARROW, author=ADMIN)
    store.put_grant(replace(READ, columns=("name", "id")), author=ADMIN)
    assert stored(opa) == {
        "columns": ["id", "ssn", "name"],
        "masks": {"ssn": "hash"},
        "row_filter": "region = 'EU'",
        **AUTHOR,
    }
    store.put_grant(READ, author=ADMIN)
    assert stored(opa) == {"masks": {"ssn": "hash"}, "row_filter": "region = 'EU'", **AUTHOR}


@pytest.mark.parametrize(
    "more",
    [
        replace(NARROW, row_filter=SqlExpression(text="region = 'US'")),
        replace(NARROW, column_masks=(ColumnMask(column="ssn", mask=NullMask()),)),
    ],
)
def test_a_second_filter_or_mask_is_refused(opa: Any, store: OpaEnforcer, more: Grant) -> None:
    store.put_grant(NARROW, author=ADMIN)
    before = dict(stored(opa))
    with pytest.raises(NotSupportedError):
        store.put_grant(more, author=ADMIN)
    assert stored(opa) == before


@pytest.mark.rule("POL-10")
def test_a_new_table_of_the_same_name_inherits_nothing(opa: Any, store: OpaEnforcer) -> None:
    store.put_grant(replace(READ, object_uuid="u1"), author=ADMIN)
    store.put_grant(replace(NARROW, object_uuid="u2"), author=ADMIN)
    assert stored(opa)["columns"] == ["id", "ssn"]
    assert stored(opa)["object_uuid"] == "u2"


def test_revokes(opa: Any, store: OpaEnforcer) -> None:
    store.put_grant(NARROW, author=ADMIN)
    assert store.delete_grant(replace(READ, row_filter=SqlExpression(text="")), author=ADMIN)
    assert not store.delete_grant(replace(READ, row_filter=SqlExpression(text="")), author=ADMIN)
    assert "row_filter" not in stored(opa)
    assert store.delete_grant(replace(READ, columns=("ssn",)), author=ADMIN)
    assert stored(opa) == {"columns": ["id"], **AUTHOR}
    assert not store.delete_grant(replace(READ, columns=("ssn",)), author=ADMIN)
    assert store.delete_grant(replace(READ, columns=("id",)), author=ADMIN)
    assert not store.list_grants(author=ADMIN)


def test_revoking_everything_removes_the_document(opa: Any, store: OpaEnforcer) -> None:
    store.put_grant(NARROW, author=ADMIN)
    assert store.delete_grant(replace(READ, privileges=frozenset({Privilege.ALL})), author=ADMIN)
    assert opa.documents == {"lake.hr.people": {}}


@pytest.mark.parametrize(
    "other",
    [
        {"grantee": Grantee(type="user", name="analyst")},
        {"grantee": Grantee(type="role", name="other")},
        {"privileges": frozenset({Privilege.INSERT})},
        {"effect": Effect.DENY},
        {"with_grant_option": True},
        {"target": GrantTarget(scope="schema", catalog="lake", namespace=("hr",))},
    ],
)
def test_there_is_nothing_else_to_revoke(store: OpaEnforcer, other: dict[str, Any]) -> None:
    store.put_grant(READ, author=ADMIN)
    assert not store.delete_grant(replace(READ, **other), author=ADMIN)
    assert store.list_grants(target=PEOPLE, author=ADMIN)


def test_single_columns_cannot_leave_a_grant_on_all(opa: Any, store: OpaEnforcer) -> None:
    store.put_grant(READ, author=ADMIN)
    with pytest.raises(NotSupportedError, match="single columns"):
        store.delete_grant(replace(READ, columns=("ssn",)), author=ADMIN)
    assert stored(opa) == AUTHOR


def test_lists_by_target_and_grantee(store: OpaEnforcer) -> None:
    other = replace(READ, target=replace(PEOPLE, name="orders"), grantee=Grantee(type="role", name="seller"))
    for grant in (READ, other):
        store.put_grant(grant, author=ADMIN)
    assert len(store.list_grants(author=ADMIN)) == 2
    assert [grant.grantee.name for grant in store.list_grants(target=other.target, author=ADMIN)] == ["seller"]
    assert [grant.target for grant in store.list_grants(grantee=ANALYST, author=ADMIN)] == [PEOPLE]
    assert not store.list_grants(grantee=Grantee(type="user", name="analyst"), author=ADMIN)
    assert not store.list_grants(target=replace(PEOPLE, scope="view"), author=ADMIN)
    assert not store.list_grants(target=other.target, grantee=ANALYST, author=ADMIN)


@pytest.mark.parametrize(
    "document",
    [
        {"columns": "id"},
        {"columns": [1]},
        {"masks": []},
        {"masks": {"ssn": {"type": "odd"}}},
        {"row_filter": ["x"]},
        {"granted_at": "yesterday"},
        {"column": ["id"]},
        [],
        "all",
    ],
)
def test_documents_of_another_form_are_an_error(opa: Any, store: OpaEnforcer, document: Any) -> None:
    opa.documents = {"lake.hr.people": {"analyst": document}}
    with pytest.raises(ExternalError, match="another form"):
        store.list_grants(author=ADMIN)
    with pytest.raises(ExternalError, match="another form"):
        store.put_grant(READ, author=ADMIN)
    assert stored(opa) == document


@pytest.mark.parametrize("reply", [{"status": 500}, {"status": 403, "body": b"{}"}, {"status": 400, "body": b"{}"}])
def test_a_store_that_fails_is_an_error(opa: Any, store: OpaEnforcer, reply: dict[str, Any]) -> None:
    opa.misbehave(**reply)
    for call in (
        lambda: store.put_grant(READ, author=ADMIN),
        lambda: store.delete_grant(READ, author=ADMIN),
        lambda: store.list_grants(author=ADMIN),
    ):
        with pytest.raises(ExternalError):
            call()
