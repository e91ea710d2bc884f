"""What grants, denials, roles, policies and ownership mean for an access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.evaluation import ALLOWED_BY
from sqe_core.policy.grants.records import Kind
from sqe_core.policy.grants.sqlite import MemoryStore
from sqe_core.policy.grants.store import Draft
from sqe_core.spi.catalog import Column
from sqe_core.spi.errors import ExternalError, NotSupportedError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import (
    Access,
    Action,
    ColumnMask,
    ConstantMask,
    Decision,
    Effect,
    Grant,
    Grantee,
    GrantTarget,
    HashMask,
    Mask,
    NullMask,
    PolicyRequest,
    Privilege,
    RangeMask,
    RequestContext,
    Resource,
    ResourceType,
    StoredPolicy,
    VisibilityRequest,
)
from sqe_core.spi.sql import SqlExpression
from sqe_core.testing import make_identity

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RequestContext(protocol="test", now=NOW, query_id="q")
ADMIN = make_identity("admin")
ALICE = make_identity("alice")
PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")
ORDERS = ObjectName(catalog="lake", namespace=("shop",), name="orders")
HR = PEOPLE.schema
LAKE = NamespaceName(catalog="lake", namespace=())
COLUMNS = ("id", "name", "ssn")
EU = SqlExpression(text="region = 'EU'")


@pytest.fixture
def engine() -> Iterable[GrantsEnforcer]:
    enforcer = GrantsEnforcer(MemoryStore(now=lambda: NOW), now=lambda: NOW)
    yield enforcer
    enforcer.close()


def role(name: str) -> Grantee:
    return Grantee(type="role", name=name)


def user(name: str) -> Grantee:
    return Grantee(type="user", name=name)


PUBLIC = Grantee(type="public")


def on(
    name: ObjectName | NamespaceName,
    scope: Literal["all_tables", "all_views", "future_tables", "future_views", "view"] | None = None,
) -> GrantTarget:
    if isinstance(name, ObjectName):
        kind: Literal["view", "table"] = "view" if scope == "view" else "table"
        return GrantTarget(scope=kind, catalog=name.catalog, namespace=name.namespace, name=name.name)
    if not name.namespace:
        return GrantTarget(scope="catalog", catalog=name.catalog)
    return GrantTarget(scope=scope or "schema", catalog=name.catalog, namespace=name.namespace)


def grant(target: GrantTarget, grantee: Grantee, *privileges: Privilege, **more: Any) -> Grant:
    masks = tuple(ColumnMask(column=name, mask=mask) for name, mask in more.pop("masks", {}).items())
    return Grant(privileges=frozenset(privileges), target=target, grantee=grantee, column_masks=masks, **more)


def person(name: str = "alice", *roles: str, groups: Iterable[str] = ()) -> Identity:
    return replace(make_identity(name, roles=roles), groups=frozenset(groups))


def ask(
    engine: GrantsEnforcer,
    who: Identity,
    action: Action = Action.SELECT,
    name: ObjectName | NamespaceName = PEOPLE,
    **more: Any,
) -> Decision:
    if isinstance(name, NamespaceName):
        resource = Resource(name=name, type=ResourceType.SCHEMA)
    else:
        columns = tuple(Column(name=column, type="string") for column in more.pop("columns", COLUMNS))
        resource = Resource(name=name, columns=columns, **more)
    request = PolicyRequest(principal=who, accesses=(Access(action=action, resource=resource),), context=CONTEXT)
    return engine.decide(request).decisions[0]


def allows(
    engine: GrantsEnforcer, who: Identity, action: Action = Action.SELECT, name: Any = PEOPLE, **more: Any
) -> bool:
    return ask(engine, who, action, name, **more).effect is Effect.ALLOW


def shows(engine: GrantsEnforcer, who: Identity, *names: ObjectName | NamespaceName) -> list[bool]:
    effects = engine.visible(VisibilityRequest(principal=who, names=names, context=CONTEXT))
    return [effect is Effect.ALLOW for effect in effects]


def put(engine: GrantsEnforcer, *grants: Grant) -> None:
    for one in grants:
        engine.put_grant(one, author=ADMIN)


def test_what_no_grant_ever_covered_is_the_catalogs_to_decide(engine: GrantsEnforcer) -> None:
    assert all(allows(engine, ALICE, action) for action in Action)
    assert not ask(engine, ALICE).restricted
    put(engine, grant(on(ORDERS), role("shop"), Privilege.SELECT))
    assert allows(engine, ALICE)
    assert not allows(engine, ALICE, name=ORDERS)


@pytest.mark.parametrize("level", [on(PEOPLE), on(HR), on(LAKE), on(HR, "all_tables")])
def test_a_grant_covers_everything_below_it(engine: GrantsEnforcer, level: GrantTarget) -> None:
    put(engine, grant(level, role("analyst"), Privilege.SELECT))
    assert allows(engine, person("alice", "analyst"))
    assert not allows(engine, ALICE)
    assert ask(engine, ALICE).reason


@pytest.mark.parametrize("level", [on(PEOPLE), on(HR), on(LAKE), on(HR, "all_tables")])
def test_revoked_is_not_the_same_as_never_granted(engine: GrantsEnforcer, level: GrantTarget) -> None:
    given = grant(level, role("analyst"), Privilege.SELECT)
    put(engine, given)
    assert engine.delete_grant(given, author=ADMIN)
    assert not allows(engine, person("alice", "analyst"))
    assert not allows(engine, ALICE)


@pytest.mark.parametrize("grantee", [user("alice"), role("analyst"), Grantee(type="group", name="staff"), PUBLIC])
def test_each_sort_of_grantee(engine: GrantsEnforcer, grantee: Grantee) -> None:
    put(engine, grant(on(PEOPLE), grantee, Privilege.SELECT))
    assert allows(engine, person("alice", "analyst", groups=["staff"]))
    assert allows(engine, person("bob")) is (grantee == PUBLIC)
    # A name of another sort is another grantee.
    assert allows(engine, person("staff", "alice", groups=["analyst"])) is (grantee == PUBLIC)


@pytest.mark.parametrize("level", [on(PEOPLE), on(HR), on(LAKE)])
@pytest.mark.parametrize("denied", [Privilege.SELECT, Privilege.ALL])
def test_deny_wins_over_every_grant_and_over_ownership(
    engine: GrantsEnforcer, level: GrantTarget, denied: Privilege
) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.ALL), grant(on(LAKE), PUBLIC, Privilege.ALL))
    engine.set_owner(PEOPLE, user("alice"), author=ADMIN)
    put(engine, grant(level, role("leaver"), denied, effect=Effect.DENY))
    assert allows(engine, ALICE)
    assert not allows(engine, person("alice", "leaver"))
    assert shows(engine, person("alice", "leaver"), PEOPLE) == [False]
    assert allows(engine, person("alice", "leaver"), Action.INSERT) is (denied is Privilege.SELECT)


def test_deny_alone_covers_nothing_for_others(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT, effect=Effect.DENY))
    assert not allows(engine, ALICE)
    assert allows(engine, person("bob"))


def test_denying_use_closes_what_is_inside(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(HR), user("alice"), Privilege.USE, effect=Effect.DENY))
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT))
    assert not allows(engine, ALICE)
    assert shows(engine, ALICE, HR, PEOPLE, ORDERS) == [False, False, True]


def test_deny_of_one_privilege_denies_the_action_whichever_was_granted(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.MODIFY, Privilege.SELECT))
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.INSERT, effect=Effect.DENY))
    assert not allows(engine, ALICE, Action.UPDATE)
    assert allows(engine, ALICE)


_NEEDS: dict[Action, set[Privilege]] = {
    Action.SELECT: {Privilege.SELECT},
    Action.INSERT: {Privilege.INSERT, Privilege.MODIFY},
    Action.UPDATE: {Privilege.INSERT, Privilege.MODIFY},
    Action.DELETE: {Privilege.INSERT, Privilege.MODIFY},
    Action.MERGE: {Privilege.INSERT, Privilege.MODIFY},
    Action.TRUNCATE: {Privilege.INSERT, Privilege.MODIFY},
    Action.CREATE: {Privilege.CREATE},
    Action.DROP: {Privilege.DROP, Privilege.MANAGE},
    Action.ALTER: {Privilege.ALTER, Privilege.MANAGE},
    Action.DESCRIBE: {
        Privilege.SELECT,
        Privilege.MONITOR,
        Privilege.INSERT,
        Privilege.MODIFY,
        Privilege.ALTER,
        Privilege.DROP,
        Privilege.APPLY_POLICY,
        Privilege.MANAGE,
    },
    Action.MAINTAIN: {Privilege.MODIFY, Privilege.MANAGE},
    Action.CREATE_VIEW: {Privilege.CREATE_VIEW},
    Action.ALTER_VIEW: {Privilege.ALTER, Privilege.MANAGE},
    Action.DROP_VIEW: {Privilege.DROP_VIEW, Privilege.MANAGE},
    Action.CREATE_SCHEMA: {Privilege.CREATE_NAMESPACE},
    Action.ALTER_SCHEMA: {Privilege.ALTER, Privilege.MANAGE},
    Action.DROP_SCHEMA: {Privilege.DROP, Privilege.MANAGE},
}


def test_every_action_has_its_privileges() -> None:
    assert set(_NEEDS) == set(ALLOWED_BY) == set(Action)


@pytest.mark.parametrize("privilege", [*Privilege])
@pytest.mark.parametrize("action", [*Action])
def test_privileges_and_actions(engine: GrantsEnforcer, action: Action, privilege: Privilege) -> None:
    put(engine, grant(on(LAKE), user("alice"), privilege))
    expected = privilege in _NEEDS[action] or privilege is Privilege.ALL
    name = HR if action.value.endswith("_schema") else PEOPLE
    assert allows(engine, ALICE, action, name) is expected
    assert not allows(engine, person("bob"), action, name)


@pytest.mark.parametrize("action", [Action.SELECT, Action.DESCRIBE])
def test_select_view_is_for_views(engine: GrantsEnforcer, action: Action) -> None:
    put(engine, grant(on(HR), user("alice"), Privilege.SELECT_VIEW))
    assert allows(engine, ALICE, action, type=ResourceType.VIEW)
    assert not allows(engine, ALICE, action, type=ResourceType.TABLE)


def test_all_views_and_all_tables_differ(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(HR, "all_views"), user("alice"), Privilege.SELECT))
    put(engine, grant(on(HR, "all_tables"), user("bob"), Privilege.SELECT))
    for who, reads in (("alice", ResourceType.VIEW), ("bob", ResourceType.TABLE)):
        for kind in (ResourceType.VIEW, ResourceType.TABLE):
            assert allows(engine, person(who), type=kind) is (kind is reads)


def test_all_means_what_is_there_and_future_what_comes(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ADMIN)
    put(engine, grant(on(HR, "all_tables"), user("alice"), Privilege.SELECT))
    put(engine, grant(on(HR, "future_tables"), user("bob"), Privilege.SELECT))
    later = replace(PEOPLE, name="later")
    engine.object_created(later, uuid="2", owner=ADMIN)
    assert [allows(engine, person(who), name=PEOPLE) for who in ("alice", "bob")] == [True, False]
    assert [allows(engine, person(who), name=later) for who in ("alice", "bob")] == [False, True]
    # What was made without SQE counts as older.
    unseen = replace(PEOPLE, name="unseen")
    assert [allows(engine, person(who), name=unseen) for who in ("alice", "bob")] == [True, False]


@pytest.mark.rule("POL-10")
def test_a_name_of_another_case_makes_no_table_newer_and_takes_nothing(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT, row_filter=EU, object_uuid="uuid"))
    put(engine, grant(on(HR, "future_tables"), user("bob"), Privilege.SELECT))
    put(engine, grant(on(HR, "all_tables"), user("carol"), Privilege.SELECT))
    engine.set_owner(PEOPLE, role("stewards"), author=ADMIN)
    other = replace(PEOPLE, name="People")
    engine.object_created(other, uuid="2", owner=person("mallory"))
    assert not allows(engine, person("bob"))
    assert not allows(engine, person("carol"), name=other)
    assert allows(engine, person("bob"), name=other)
    assert engine.owner_of(PEOPLE) == role("stewards")
    assert allows(engine, person("dave", "stewards"))
    for change in (
        lambda: engine.object_renamed(other, replace(PEOPLE, name="x"), author=person("mallory")),
        lambda: engine.object_renamed(replace(PEOPLE, name="x"), other, author=person("mallory")),
        lambda: engine.object_dropped(other, uuid="2", author=person("mallory")),
    ):
        change()
        assert ask(engine, ALICE, uuid="uuid").row_filters == (EU,)
        assert allows(engine, ALICE, uuid="uuid")
        assert [one.target for one in engine.list_grants(grantee=user("alice"), author=ADMIN)] == [on(PEOPLE)]
    put(engine, grant(on(HR), user("erin"), Privilege.SELECT))
    schema = NamespaceName(catalog="lake", namespace=("HR",))
    engine.object_created(schema, uuid=None, owner=person("mallory"))
    assert allows(engine, person("erin"))
    engine.object_dropped(schema, uuid=None, author=person("mallory"))
    assert allows(engine, person("erin"))


def test_nested_schemas_inherit(engine: GrantsEnforcer) -> None:
    deep = ObjectName(catalog="lake", namespace=("hr", "eu", "de"), name="people")
    put(engine, grant(on(NamespaceName(catalog="lake", namespace=("hr", "eu"))), role("eu"), Privilege.SELECT))
    assert allows(engine, person("alice", "eu"), name=deep)
    assert not allows(engine, ALICE, name=deep)
    assert allows(engine, ALICE, name=PEOPLE)


@pytest.mark.rule("POL-10")
def test_names_are_parts_and_not_text(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(ObjectName(catalog="a", namespace=("b",), name="c.d")), PUBLIC, Privilege.INSERT))
    assert not allows(engine, ALICE, name=ObjectName(catalog="a", namespace=("b",), name="c.d"))
    assert allows(engine, ALICE, name=ObjectName(catalog="a", namespace=("b", "c"), name="d"))
    assert allows(engine, ALICE, name=ObjectName(catalog="a.b", namespace=("c",), name="d"))


@pytest.mark.rule("POL-10")
def test_another_case_gains_nothing_and_sheds_nothing(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT, row_filter=EU))
    put(engine, grant(on(LAKE), user("bob"), Privilege.SELECT))
    put(engine, grant(on(PEOPLE), user("bob"), Privilege.SELECT, effect=Effect.DENY))
    other = ObjectName(catalog="lake", namespace=("HR",), name="People")
    assert not allows(engine, ALICE, name=other)
    assert not allows(engine, person("bob"), name=other)
    put(engine, grant(on(LAKE), user("alice"), Privilege.SELECT))
    assert ask(engine, ALICE, name=other).row_filters == (EU,)


def test_passage_through_catalog_and_schema(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(LAKE), role("engineer"), Privilege.ALL))
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT))
    put(engine, grant(on(ORDERS.schema), user("bob"), Privilege.USE))
    other = replace(PEOPLE, name="salaries")
    assert shows(engine, ALICE, LAKE, HR, PEOPLE, other, ORDERS.schema, ORDERS) == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    assert shows(engine, person("bob"), LAKE, HR, ORDERS.schema, ORDERS) == [True, False, True, False]
    assert shows(engine, person("carol"), LAKE, HR, PEOPLE) == [False, False, False]


def test_making_tables_shows_nothing_of_others(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(HR), user("alice"), Privilege.CREATE, Privilege.USE))
    assert allows(engine, ALICE, Action.CREATE, replace(PEOPLE, name="new"), columns=())
    assert shows(engine, ALICE, HR, PEOPLE) == [True, False]


def test_a_column_list_hides_the_others(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, columns=("ID",)))
    put(engine, grant(on(PEOPLE), role("b"), Privilege.SELECT, columns=("name",)))
    put(engine, grant(on(PEOPLE), role("all"), Privilege.SELECT))
    assert ask(engine, person("alice", "a")).hidden_columns == {"name", "ssn"}
    assert ask(engine, person("alice", "a", "b")).hidden_columns == {"ssn"}
    assert ask(engine, person("alice", "a", "all")).hidden_columns == frozenset()
    assert ask(engine, person("alice", "a"), Action.DESCRIBE).hidden_columns == {"name", "ssn"}


def test_an_insert_grant_hides_nothing_and_reads_nothing(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.INSERT))
    assert not ask(engine, person("alice", "a"), Action.INSERT).restricted
    assert not allows(engine, person("alice", "a"))


def test_a_column_that_was_renamed_away_is_not_readable_under_its_new_name(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, columns=("id",)))
    assert ask(engine, person("alice", "a"), columns=("id", "nom")).hidden_columns == {"nom"}
    # ENF-10: no column at all is no access.
    assert not allows(engine, person("alice", "a"), columns=("key", "nom"))


def test_denied_columns_are_hidden_whatever_is_granted(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), PUBLIC, Privilege.SELECT))
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, columns=("ssn",), effect=Effect.DENY))
    assert ask(engine, person("alice", "a")).hidden_columns == {"ssn"}
    assert not ask(engine, ALICE).restricted


@pytest.mark.rule("POL-8")
def test_row_filters_of_several_roles_are_anded(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("eu"), Privilege.SELECT, row_filter=EU))
    put(engine, grant(on(PEOPLE), role("it"), row_filter=SqlExpression(text="dept = 'it'")))
    put(engine, grant(on(PEOPLE), role("all"), Privilege.SELECT))
    filters = ask(engine, person("alice", "it", "eu", "all")).row_filters
    assert [one.text for one in filters] == ["dept = 'it'", "region = 'EU'"]
    # A filter alone gives no access.
    assert not allows(engine, person("alice", "it"))


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (None, HashMask(), HashMask()),
        (ConstantMask(), HashMask(), ConstantMask()),
        (NullMask(), ConstantMask(), NullMask()),
        (RangeMask(width=10), RangeMask(width=7), NullMask()),
        (HashMask(), HashMask(), HashMask()),
    ],
)
def test_the_stricter_mask_holds(engine: GrantsEnforcer, one: Mask | None, other: Mask, expected: Mask) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, masks={"SSN": one} if one else {}))
    put(engine, grant(on(PEOPLE), role("b"), Privilege.SELECT, columns=("id", "ssn"), masks={"ssn": other}))
    for roles in (("a", "b"), ("b", "a")):
        decision = ask(engine, person("alice", *roles))
        assert decision.column_masks == (ColumnMask(column="ssn", mask=expected),)
    assert ask(engine, person("alice", "b")).hidden_columns == {"name"}


@pytest.mark.rule("POL-6")
def test_a_mask_on_a_missing_column_denies(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, Privilege.ALTER, masks={"ssn": NullMask()}))
    assert not allows(engine, person("alice", "a"), columns=("id", "social"))
    assert allows(engine, person("alice", "a"), Action.ALTER, columns=("id", "social"))


@pytest.mark.rule("POL-6")
def test_a_denied_column_that_is_missing_denies(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, Privilege.ALTER))
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, columns=("SSN",), effect=Effect.DENY))
    assert ask(engine, person("alice", "a")).hidden_columns == {"ssn"}
    assert not allows(engine, person("alice", "a"), columns=("id", "social"))
    assert allows(engine, person("alice", "a"), Action.ALTER, columns=("id", "social"))


def test_masks_of_hidden_columns_are_not_told(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, masks={"ssn": NullMask()}))
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, columns=("ssn",), effect=Effect.DENY))
    decision = ask(engine, person("alice", "a"))
    assert decision.hidden_columns == {"ssn"}
    assert decision.column_masks == ()


def mask_policy(
    name: str, target: ObjectName | str, mask: Mask | None, *grantees: Grantee, **more: Any
) -> StoredPolicy:
    column = "ssn" if isinstance(target, ObjectName) else None
    return StoredPolicy(
        name=name, kind="column_mask", target=target, mask=mask, column=column, grantees=grantees or (PUBLIC,), **more
    )


def test_policies_restrict_and_cover_nothing(engine: GrantsEnforcer) -> None:
    engine.put_policy(mask_policy("m", PEOPLE, HashMask(), role("a")), replace=False, author=ADMIN)
    row_filter = StoredPolicy(name="f", kind="row_filter", target=PEOPLE, grantees=(role("a"),), row_filter=EU)
    engine.put_policy(row_filter, replace=False, author=ADMIN)
    decision = ask(engine, person("alice", "a"))
    assert decision.effect is Effect.ALLOW
    assert decision.row_filters == (EU,)
    assert decision.column_masks == (ColumnMask(column="ssn", mask=HashMask()),)
    assert not ask(engine, ALICE).restricted
    engine.put_policy(replace(row_filter, enabled=False), replace=True, author=ADMIN)
    assert ask(engine, person("alice", "a")).row_filters == ()
    assert engine.delete_policy("M", author=ADMIN)
    assert not ask(engine, person("alice", "a")).restricted


def test_policy_names_are_unique_whatever_their_case(engine: GrantsEnforcer) -> None:
    engine.put_policy(mask_policy("m", PEOPLE, HashMask()), replace=False, author=ADMIN)
    with pytest.raises(UserError, match="exists"):
        engine.put_policy(mask_policy("M", ORDERS, HashMask()), replace=False, author=ADMIN)
    engine.put_policy(mask_policy("M", ORDERS, HashMask()), replace=True, author=ADMIN)
    assert [policy.name for policy in engine.list_policies(author=ADMIN)] == ["M"]
    assert engine.delete_policy("m", author=ADMIN)
    assert not engine.delete_policy("m", author=ADMIN)


TAGS = {"ssn": frozenset({"pii"}), "name": frozenset({"PII", "x"})}


def test_a_policy_on_a_tag_masks_every_column_that_has_it(engine: GrantsEnforcer) -> None:
    engine.put_policy(mask_policy("m", "PII", NullMask(), role("a")), replace=False, author=ADMIN)
    decision = ask(engine, person("alice", "a"), column_tags=TAGS)
    assert {mask.column for mask in decision.column_masks} == {"ssn", "name"}
    assert not ask(engine, ALICE, column_tags=TAGS).restricted
    assert not allows(engine, person("alice", "a"), column_tags={"gone": frozenset({"PII"})})


@pytest.mark.rule("POL-2")
def test_unknown_tags_are_an_error_where_a_tag_policy_could_apply(engine: GrantsEnforcer) -> None:
    engine.put_policy(mask_policy("m", "PII", NullMask(), role("a")), replace=False, author=ADMIN)
    with pytest.raises(ExternalError):
        ask(engine, person("alice", "a"), column_tags=None)
    assert allows(engine, ALICE, column_tags=None)
    assert allows(engine, person("alice", "a"), Action.DROP, column_tags=None)


@pytest.mark.parametrize("precedence", ["tag", "resource"])
def test_mask_precedence(precedence: Literal["tag", "resource"]) -> None:
    engine = GrantsEnforcer(MemoryStore(now=lambda: NOW), now=lambda: NOW, mask_precedence=precedence)
    engine.put_policy(mask_policy("t", "PII", HashMask()), replace=False, author=ADMIN)
    engine.put_policy(mask_policy("r", PEOPLE, NullMask()), replace=False, author=ADMIN)
    expected = HashMask() if precedence == "tag" else NullMask()
    tags = {"ssn": frozenset({"PII"})}
    assert ask(engine, ALICE, column_tags=tags).column_masks == (ColumnMask(column="ssn", mask=expected),)
    # MASK_NONE on the preferred level exempts from the other one.
    engine.put_policy(mask_policy("r", PEOPLE, None), replace=True, author=ADMIN)
    assert bool(ask(engine, ALICE, column_tags=tags).column_masks) is (precedence == "tag")
    engine.close()


def test_owners_may_do_everything_with_their_own(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    put(engine, grant(on(LAKE), role("x"), Privilege.SELECT))
    for action in set(Action) - {Action.CREATE, Action.CREATE_VIEW, Action.CREATE_SCHEMA}:
        assert allows(engine, ALICE, action), action
    assert not allows(engine, person("bob"))
    assert engine.owner_of(PEOPLE) == user("alice")
    engine.set_owner(PEOPLE, role("stewards"), author=ADMIN)
    assert not allows(engine, ALICE)
    assert allows(engine, person("bob", "stewards"))


def test_a_namesake_from_elsewhere_owns_nothing(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    put(engine, grant(on(LAKE), role("x"), Privilege.SELECT))
    assert not allows(engine, replace(ALICE, issuer="https://elsewhere"))


def test_owners_of_schemas_do_not_read_the_tables_of_others(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(LAKE), role("x"), Privilege.SELECT))
    engine.object_created(HR, uuid=None, owner=ALICE)
    assert allows(engine, ALICE, Action.DROP_SCHEMA, HR)
    assert allows(engine, ALICE, Action.CREATE, columns=())
    assert shows(engine, ALICE, LAKE, HR, PEOPLE) == [True, True, True]
    assert not allows(engine, ALICE)


def test_owners_are_restricted_like_everybody(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    put(engine, grant(on(PEOPLE), PUBLIC, Privilege.SELECT, columns=("id", "ssn"), masks={"ssn": NullMask()}))
    decision = ask(engine, ALICE)
    assert decision.hidden_columns == frozenset()
    assert decision.column_masks


@pytest.mark.rule("POL-10")
def test_drop_and_create_gains_nothing(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    put(engine, grant(on(PEOPLE), user("bob"), Privilege.SELECT, object_uuid="1"))
    put(engine, grant(on(PEOPLE), user("carol"), Privilege.SELECT, effect=Effect.DENY))
    engine.object_dropped(PEOPLE, uuid="1", author=ALICE)
    assert engine.owner_of(PEOPLE) is None
    # The schema was never covered: the owner may make the table again.
    assert allows(engine, ALICE, Action.CREATE, columns=())
    engine.object_created(PEOPLE, uuid="2", owner=ALICE)
    assert allows(engine, ALICE, uuid="2")
    assert not allows(engine, person("bob"), uuid="2")
    assert not allows(engine, person("dave"), uuid="2")
    put(engine, grant(on(PEOPLE), PUBLIC, Privilege.SELECT))
    assert allows(engine, person("dave"), uuid="2")
    assert not allows(engine, person("carol"), uuid="2")


@pytest.mark.rule("POL-10")
def test_what_another_engine_made_anew_gains_nothing_and_sheds_nothing(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("bob"), Privilege.SELECT, object_uuid="1", row_filter=EU))
    assert ask(engine, person("bob"), uuid="1").row_filters == (EU,)
    assert not allows(engine, person("bob"), uuid="2")
    put(engine, grant(on(HR), user("bob"), Privilege.SELECT))
    assert ask(engine, person("bob"), uuid="2").row_filters == (EU,)


@pytest.mark.rule("POL-10")
def test_what_another_engine_made_anew_is_not_its_former_owners(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(LAKE), role("x"), Privilege.SELECT))
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    engine.set_owner(ORDERS, user("alice"), uuid="2", author=ADMIN)
    for name, own in ((PEOPLE, "1"), (ORDERS, "2")):
        assert allows(engine, ALICE, name=name, uuid=own)
        assert engine.is_owner(name, ALICE, uuid=own)
        assert not allows(engine, ALICE, name=name, uuid="new")
        assert not allows(engine, ALICE, Action.DESCRIBE, name=name, uuid="new")
        assert not engine.is_owner(name, ALICE, uuid="new")
    # What another engine renamed is the same object, and what took its name is not.
    moved = replace(PEOPLE, name="persons")
    assert allows(engine, ALICE, name=moved, uuid="1")
    assert not engine.is_owner(replace(moved, catalog="elsewhere"), ALICE, uuid="1")
    engine.object_renamed(PEOPLE, moved, author=ALICE)
    assert allows(engine, ALICE, name=moved, uuid="1")
    assert not allows(engine, ALICE, name=moved, uuid="new")


@pytest.mark.rule("POL-10")
def test_stores_of_earlier_versions_know_the_id_from_the_object() -> None:
    store = MemoryStore(now=lambda: NOW)
    engine = GrantsEnforcer(store, now=lambda: NOW)
    put(engine, grant(on(LAKE), role("x"), Privilege.SELECT))
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)

    def as_it_was(draft: Draft) -> None:
        for key, body in draft.all(Kind.OWNER):
            draft.put(Kind.OWNER, key, {name: value for name, value in body.items() if name != "uuid"})

    store.change(ADMIN, "test", as_it_was)
    assert allows(engine, ALICE, uuid="1")
    assert not allows(engine, ALICE, uuid="new")
    engine.close()


@pytest.mark.rule("POL-10")
def test_what_another_engine_renamed_keeps_its_grants_and_policies(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("bob"), Privilege.SELECT, object_uuid="1"))
    put(engine, grant(on(PEOPLE), user("carol"), Privilege.SELECT, effect=Effect.DENY, object_uuid="1"))
    engine.put_policy(mask_policy("m", PEOPLE, NullMask(), object_uuid="1"), replace=False, author=ADMIN)
    moved = replace(PEOPLE, name="persons")
    assert ask(engine, person("bob"), name=moved, uuid="1").column_masks
    assert not allows(engine, ALICE, name=moved, uuid="1")
    assert not allows(engine, person("carol"), name=moved, uuid="1")


@pytest.mark.rule("POL-10")
def test_renaming_moves_everything_and_leaves_the_name_covered(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    put(engine, grant(on(PEOPLE), user("bob"), Privilege.SELECT, row_filter=EU))
    put(engine, grant(on(ORDERS), user("dave"), Privilege.SELECT))
    engine.put_policy(mask_policy("m", PEOPLE, NullMask(), user("bob")), replace=False, author=ADMIN)
    engine.object_renamed(PEOPLE, ORDERS, author=ALICE)
    decision = ask(engine, person("bob"), name=ORDERS, uuid="1")
    assert decision.effect is Effect.ALLOW
    assert decision.row_filters == (EU,)
    assert decision.column_masks
    assert engine.owner_of(ORDERS) == user("alice")
    assert engine.owner_of(PEOPLE) is None
    # Neither who had something on the new name before, nor who had nothing, gets in.
    assert not allows(engine, person("dave"), name=ORDERS, uuid="1")
    assert not allows(engine, person("carol"), name=ORDERS, uuid="1")
    assert not allows(engine, person("bob"), name=PEOPLE)
    assert not allows(engine, person("carol"), name=PEOPLE)


@pytest.mark.rule("POL-10")
def test_renaming_out_of_a_covered_schema_opens_nothing(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(HR), role("x"), Privilege.SELECT))
    engine.object_renamed(PEOPLE, ORDERS, author=ALICE)
    assert not allows(engine, person("bob"), name=ORDERS)
    other = replace(ORDERS, name="other")
    engine.object_renamed(replace(ORDERS, name="unseen"), other, author=ALICE)
    assert allows(engine, person("bob"), name=other)


def test_replacing_a_table_needs_the_right_to_drop_it(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(HR), user("alice"), Privilege.CREATE), grant(on(HR), user("bob"), Privilege.CREATE))
    put(engine, grant(on(PEOPLE), user("bob"), Privilege.DROP))
    new = replace(PEOPLE, name="new")
    assert allows(engine, ALICE, Action.CREATE, new, columns=())
    assert not allows(engine, ALICE, Action.CREATE, new, uuid="1")
    assert allows(engine, person("bob"), Action.CREATE, uuid="1")
    # What the core does not see is free as far as it can tell: the catalog knows better, and replaces nothing.
    engine.object_created(PEOPLE, uuid="1", owner=person("carol"))
    assert allows(engine, ALICE, Action.CREATE, columns=())


def test_roles_of_the_store_are_transitive(engine: GrantsEnforcer) -> None:
    for name in ("reader", "analyst", "lead"):
        engine.create_role(name, author=ADMIN)
    engine.grant_role("reader", role("analyst"), admin_option=False, author=ADMIN)
    engine.grant_role("analyst", role("lead"), admin_option=False, author=ADMIN)
    engine.grant_role("lead", user("alice"), admin_option=True, author=ADMIN)
    engine.grant_role("analyst", Grantee(type="group", name="staff"), admin_option=False, author=ADMIN)
    engine.grant_role("reader", role("of_token"), admin_option=False, author=ADMIN)
    assert engine.roles_of(ALICE) == {"lead", "analyst", "reader"}
    assert engine.roles_of(person("bob", groups=["staff"])) == {"analyst", "reader"}
    assert engine.roles_of(person("bob", "of_token")) == {"reader"}
    put(engine, grant(on(PEOPLE), role("reader"), Privilege.SELECT))
    assert allows(engine, ALICE)
    assert not allows(engine, person("bob"))
    assert {one.grantee.name for one in engine.effective_grants(ALICE, author=ADMIN)} == {"reader"}
    assert engine.revoke_role("analyst", role("lead"), author=ADMIN)
    assert not engine.revoke_role("analyst", role("lead"), author=ADMIN)
    assert not allows(engine, ALICE)
    assert [one.admin_option for one in engine.list_role_grants(author=ADMIN) if one.role == "lead"] == [True]


@pytest.mark.rule("POL-8")
def test_leaving_out_a_role_gives_less_and_sheds_nothing(engine: GrantsEnforcer) -> None:
    for name in ("reader", "leaver", "eu"):
        engine.create_role(name, author=ADMIN)
        engine.grant_role(name, user("alice"), admin_option=False, author=ADMIN)
    put(engine, grant(on(PEOPLE), role("reader"), Privilege.SELECT), grant(on(PEOPLE), role("eu"), row_filter=EU))
    put(engine, grant(on(ORDERS), role("leaver"), Privilege.SELECT, effect=Effect.DENY))
    engine.set_owner(PEOPLE, role("owners"), author=ADMIN)
    everything = frozenset({"reader", "leaver", "eu", "owners"})
    chosen = replace(ALICE, roles=frozenset({"reader"}), all_roles=everything)
    assert ask(engine, chosen).effect is Effect.ALLOW
    assert ask(engine, chosen).row_filters == (EU,)
    assert not allows(engine, chosen, Action.DROP)
    assert allows(engine, replace(chosen, roles=everything), Action.DROP)
    assert not allows(engine, chosen, name=ORDERS)
    nothing = replace(ALICE, all_roles=everything)
    assert not allows(engine, nothing)
    assert shows(engine, nothing, PEOPLE, ORDERS) == [False, False]
    # A store that a later login would add to: what is not among all roles restricts as well.
    assert ask(engine, replace(ALICE, roles=frozenset({"reader"}), all_roles=frozenset())).row_filters == (EU,)


def test_a_role_cannot_hold_itself(engine: GrantsEnforcer) -> None:
    for name in ("a", "b", "c"):
        engine.create_role(name, author=ADMIN)
    engine.grant_role("a", role("b"), admin_option=False, author=ADMIN)
    engine.grant_role("b", role("c"), admin_option=False, author=ADMIN)
    for holder in ("a", "b", "c"):
        with pytest.raises(UserError, match="hold itself"):
            engine.grant_role("c", role(holder), admin_option=False, author=ADMIN)
    with pytest.raises(UserError, match="does not exist"):
        engine.grant_role("d", user("alice"), admin_option=False, author=ADMIN)
    with pytest.raises(UserError, match="exists"):
        engine.create_role("a", author=ADMIN)


def test_dropping_a_role_takes_what_it_gave_and_keeps_what_it_denied(engine: GrantsEnforcer) -> None:
    engine.create_role("a", author=ADMIN)
    engine.grant_role("a", user("alice"), admin_option=False, author=ADMIN)
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT))
    put(engine, grant(on(ORDERS), role("a"), Privilege.SELECT, effect=Effect.DENY))
    assert engine.drop_role("a", author=ADMIN)
    assert not engine.drop_role("a", author=ADMIN)
    engine.create_role("a", author=ADMIN)
    assert engine.roles_of(ALICE) == frozenset()
    assert not allows(engine, person("alice", "a"))
    assert not allows(engine, person("alice", "a"), name=ORDERS)


def test_revoking_parts(engine: GrantsEnforcer) -> None:
    who = person("alice", "a")
    target = on(PEOPLE)
    put(
        engine,
        grant(target, role("a"), Privilege.SELECT, columns=("id", "ssn"), masks={"ssn": NullMask()}, row_filter=EU),
    )
    drop_filter = grant(target, role("a"), row_filter=SqlExpression(text=""))
    assert engine.delete_grant(drop_filter, author=ADMIN)
    assert ask(engine, who).row_filters == ()
    assert not engine.delete_grant(drop_filter, author=ADMIN)
    assert engine.delete_grant(grant(target, role("a"), Privilege.SELECT, columns=("SSN",)), author=ADMIN)
    assert ask(engine, who).hidden_columns == {"name", "ssn"}
    assert engine.delete_grant(grant(target, role("a"), Privilege.SELECT, columns=("id",)), author=ADMIN)
    assert not allows(engine, who)
    assert not engine.list_grants(author=ADMIN)


def test_a_column_cannot_be_taken_out_of_the_whole_table(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT))
    with pytest.raises(NotSupportedError):
        engine.delete_grant(grant(on(PEOPLE), role("a"), Privilege.SELECT, columns=("ssn",)), author=ADMIN)


def test_revoking_one_privilege_of_all_leaves_the_others(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.ALL))
    assert engine.delete_grant(grant(on(PEOPLE), user("alice"), Privilege.SELECT), author=ADMIN)
    assert not allows(engine, ALICE)
    assert allows(engine, ALICE, Action.INSERT)
    assert engine.delete_grant(grant(on(PEOPLE), user("alice"), Privilege.ALL), author=ADMIN)
    assert not allows(engine, ALICE, Action.INSERT)


def test_revoking_takes_nothing_from_others_and_nothing_elsewhere(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT), grant(on(HR), user("alice"), Privilege.SELECT))
    put(engine, grant(on(PEOPLE), user("bob"), Privilege.SELECT))
    assert engine.delete_grant(grant(on(PEOPLE), user("alice"), Privilege.SELECT), author=ADMIN)
    assert allows(engine, ALICE)
    assert allows(engine, person("bob"))


def test_lifting_a_denial_is_asked_for_as_such(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT, effect=Effect.DENY))
    assert not engine.delete_grant(grant(on(PEOPLE), user("alice"), Privilege.SELECT), author=ADMIN)
    denial = grant(on(PEOPLE), user("alice"), Privilege.SELECT, effect=Effect.DENY)
    assert engine.delete_grant(denial, author=ADMIN)
    assert allows(engine, ALICE)


def test_what_a_grant_lists(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), role("a"), Privilege.SELECT, Privilege.INSERT, columns=("id",), row_filter=EU))
    found = engine.list_grants(target=on(PEOPLE, "view"), author=ADMIN)
    assert [sorted(one.value for one in each.privileges) for each in found] == [["INSERT"], ["SELECT"]]
    assert [each.columns for each in found] == [None, ("id",)]
    assert {(each.granted_by, each.granted_at, each.row_filter) for each in found} == {("admin", NOW, EU)}
    assert not engine.list_grants(target=on(HR), author=ADMIN)
    assert not engine.list_grants(grantee=user("a"), author=ADMIN)


_SSN = {"ssn": NullMask()}


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize(
    "bad",
    [
        grant(on(PEOPLE), PUBLIC),
        grant(on(HR), PUBLIC, Privilege.SELECT, columns=("id",)),
        grant(on(HR), PUBLIC, Privilege.SELECT, row_filter=EU),
        grant(on(HR, "all_tables"), PUBLIC, Privilege.SELECT, masks=_SSN),
        grant(on(PEOPLE), PUBLIC, Privilege.CREATE),
        grant(on(PEOPLE), PUBLIC, Privilege.USE),
        grant(on(HR, "all_tables"), PUBLIC, Privilege.CREATE_NAMESPACE),
        grant(on(PEOPLE), PUBLIC, Privilege.INSERT, columns=("id",)),
        grant(on(PEOPLE), PUBLIC, Privilege.SELECT, columns=()),
        grant(on(PEOPLE), PUBLIC, Privilege.SELECT, columns=("id",), masks=_SSN),
        grant(on(PEOPLE), PUBLIC, Privilege.SELECT, masks={**_SSN, "SSN": HashMask()}),
        grant(on(PEOPLE), PUBLIC, Privilege.SELECT, row_filter=SqlExpression(text="  ")),
        grant(on(PEOPLE), PUBLIC, Privilege.SELECT, row_filter=EU, effect=Effect.DENY),
        grant(on(PEOPLE), PUBLIC, Privilege.SELECT, masks=_SSN, effect=Effect.DENY),
        grant(on(PEOPLE), PUBLIC, Privilege.SELECT, with_grant_option=True, effect=Effect.DENY),
        grant(on(PEOPLE), PUBLIC, Privilege.INSERT, Privilege.SELECT, columns=("id",), effect=Effect.DENY),
        grant(on(PEOPLE), role(""), Privilege.SELECT),
        grant(on(PEOPLE), role("a\nb"), Privilege.SELECT),
        grant(on(PEOPLE), Grantee(type="public", name="x"), Privilege.SELECT),
        grant(GrantTarget(scope="table", catalog="lake", namespace=("hr",)), PUBLIC, Privilege.SELECT),
        grant(GrantTarget(scope="table", catalog="lake", name="t"), PUBLIC, Privilege.SELECT),
        grant(GrantTarget(scope="schema", catalog="lake"), PUBLIC, Privilege.SELECT),
        grant(GrantTarget(scope="catalog", catalog="lake", namespace=("hr",)), PUBLIC, Privilege.SELECT),
        grant(GrantTarget(scope="catalog", catalog=""), PUBLIC, Privilege.SELECT),
    ],
)
def test_what_says_nothing_or_too_little_is_refused_and_not_stored(engine: GrantsEnforcer, bad: Grant) -> None:
    with pytest.raises(UserError):
        engine.put_grant(bad, author=ADMIN)
    assert not engine.list_grants(author=ADMIN)
    assert allows(engine, ALICE)


@pytest.mark.rule("POL-15")
def test_who_may_grant(engine: GrantsEnforcer) -> None:
    wish = grant(on(PEOPLE), user("bob"), Privilege.SELECT)
    assert not engine.may_grant(wish, author=ALICE)
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT))
    assert not engine.may_grant(wish, author=ALICE)
    put(engine, grant(on(HR), user("alice"), Privilege.SELECT, with_grant_option=True))
    assert engine.may_grant(wish, author=ALICE)
    assert not engine.may_grant(replace(wish, privileges=frozenset({Privilege.INSERT})), author=ALICE)
    assert not engine.may_grant(replace(wish, privileges=frozenset({Privilege.ALL})), author=ALICE)
    assert not engine.may_grant(replace(wish, effect=Effect.DENY), author=ALICE)
    assert not engine.may_grant(replace(wish, target=on(LAKE)), author=ALICE)
    put(engine, grant(on(LAKE), user("alice"), Privilege.SELECT, effect=Effect.DENY))
    assert not engine.may_grant(wish, author=ALICE)


@pytest.mark.rule("POL-15")
def test_nobody_passes_on_more_than_they_have(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT, columns=("id",), with_grant_option=True))
    narrow = grant(on(PEOPLE), user("bob"), Privilege.SELECT, columns=("ID",))
    assert engine.may_grant(narrow, author=ALICE)
    assert not engine.may_grant(replace(narrow, columns=None), author=ALICE)
    assert not engine.may_grant(replace(narrow, columns=("id", "ssn")), author=ALICE)
    put(engine, grant(on(PEOPLE), PUBLIC, row_filter=EU))
    assert not engine.may_grant(narrow, author=ALICE)


@pytest.mark.rule("POL-15")
def test_a_grant_on_a_schema_passes_on_nothing_of_what_is_restricted_in_it(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(LAKE), user("alice"), Privilege.SELECT, with_grant_option=True))
    wishes = [grant(target, user("bob"), Privilege.SELECT) for target in (on(LAKE), on(HR), on(HR, "all_tables"))]
    restrictions = [
        grant(on(PEOPLE), role("eu"), row_filter=EU),
        grant(on(PEOPLE), role("eu"), Privilege.SELECT, masks={"ssn": NullMask()}),
        grant(on(PEOPLE), role("eu"), Privilege.SELECT, effect=Effect.DENY),
        grant(on(PEOPLE), role("eu"), Privilege.SELECT, columns=("ssn",), effect=Effect.DENY),
        grant(on(HR), role("eu"), Privilege.SELECT, effect=Effect.DENY),
    ]
    for restriction in restrictions:
        put(engine, restriction)
        assert not any(engine.may_grant(wish, author=person("alice", "eu")) for wish in wishes), restriction
        assert all(engine.may_grant(wish, author=ALICE) for wish in wishes)
        assert engine.may_grant(replace(wishes[0], target=on(ORDERS)), author=person("alice", "eu"))
        engine.delete_grant(
            replace(restriction, columns=None, row_filter=None, privileges=frozenset({Privilege.ALL})), author=ADMIN
        )
        assert all(engine.may_grant(wish, author=person("alice", "eu")) for wish in wishes)
    engine.put_policy(mask_policy("m", PEOPLE, NullMask(), role("eu")), replace=False, author=ADMIN)
    assert not any(engine.may_grant(wish, author=person("alice", "eu")) for wish in wishes)


@pytest.mark.rule("POL-15")
def test_restrictions_are_for_admins_to_make(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(LAKE), user("alice"), Privilege.MANAGE, Privilege.ALL, with_grant_option=True))
    assert engine.may_grant(grant(on(PEOPLE), PUBLIC, Privilege.SELECT), author=ALICE)
    for more in ({"row_filter": EU}, {"masks": {"ssn": NullMask()}}, {"effect": Effect.DENY}):
        assert not engine.may_grant(grant(on(PEOPLE), PUBLIC, Privilege.SELECT, **more), author=ALICE)


def test_managers_may_grant_and_owners_only_with_the_option(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    put(engine, grant(on(ORDERS.schema), user("bob"), Privilege.MANAGE))
    for privilege in (Privilege.SELECT, Privilege.ALL):
        assert engine.may_grant(grant(on(ORDERS), PUBLIC, privilege), author=person("bob"))
        assert not engine.may_grant(grant(on(PEOPLE), PUBLIC, privilege), author=person("bob"))
        # features §6.5: by default only admins grant.
        assert not engine.may_grant(grant(on(PEOPLE), PUBLIC, privilege), author=ALICE)


def test_the_grant_option_can_be_revoked_alone(engine: GrantsEnforcer) -> None:
    given = grant(on(PEOPLE), user("alice"), Privilege.SELECT, with_grant_option=True)
    put(engine, given, replace(given, with_grant_option=False))
    wish = grant(on(PEOPLE), user("bob"), Privilege.SELECT)
    assert engine.may_grant(wish, author=ALICE)
    assert engine.delete_grant(given, author=ADMIN)
    assert not engine.may_grant(wish, author=ALICE)
    assert allows(engine, ALICE)


def test_decisions_are_not_kept_and_name_their_version(engine: GrantsEnforcer) -> None:
    before = ask(engine, ALICE)
    put(engine, grant(on(PEOPLE), PUBLIC, Privilege.SELECT))
    after = ask(engine, ALICE)
    assert before.ttl_secs == after.ttl_secs == 0
    assert before.policy_version != after.policy_version == str(engine.policy_version())


def test_a_column_list_holds_for_who_owned_what_had_the_name_before(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    put(engine, grant(on(PEOPLE), user("alice"), Privilege.SELECT, columns=("id",), object_uuid="2"))
    assert ask(engine, ALICE, uuid="2").hidden_columns == frozenset({"name", "ssn"})


def test_a_column_list_does_not_hold_for_the_owner_of_what_was_renamed(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    moved = replace(PEOPLE, name="persons")
    put(engine, grant(on(moved), PUBLIC, Privilege.SELECT, columns=("id",), object_uuid="1"))
    assert ask(engine, ALICE, name=moved, uuid="1").hidden_columns == frozenset()


def test_a_new_owner_of_what_another_engine_renamed_is_the_only_one(engine: GrantsEnforcer) -> None:
    put(engine, grant(on(LAKE), role("x"), Privilege.SELECT))
    engine.object_created(PEOPLE, uuid="1", owner=ALICE)
    moved, again = (replace(PEOPLE, name=name) for name in ("a_people", "z_people"))
    for name, owner in ((moved, "bob"), (PEOPLE, "carol")):
        engine.set_owner(name, user(owner), uuid="1", author=ADMIN)
        for now in (name, again):
            owners = [each for each in ("alice", "bob", "carol") if engine.is_owner(now, person(each), uuid="1")]
            assert owners == [owner]


def test_names_are_listed_in_time_that_grows_with_their_number(engine: GrantsEnforcer) -> None:
    import time

    names = [replace(PEOPLE, name=f"t{number}") for number in range(10_000)]

    def make(draft: Any) -> None:
        from sqe_core.policy.grants import changes

        author = changes.Author(identity=ADMIN, now=NOW)
        for number in range(500):
            changes.put_grant(draft, grant(on(HR), role(f"r{number}"), Privilege.SELECT), author)
        for name in names[::10]:
            changes.put_grant(draft, grant(on(name), user("alice"), Privilege.SELECT), author)

    engine.store.change(ADMIN, "many", make)
    assert shows(engine, ALICE, PEOPLE) == [False]

    def seconds(names: Sequence[ObjectName]) -> float:
        def once() -> float:
            began = time.thread_time()
            assert sum(shows(engine, ALICE, *names)) == len(names) / 10
            return time.thread_time() - began

        return min(once() for _ in range(3))

    # Ten times the names; if each were compared with each, a hundred times as long.
    assert seconds(names) < 40 * seconds(names[:1000])


CLOSED = replace(CONTEXT, closed_catalogs=frozenset({"lake"}))


def _effects(engine: GrantsEnforcer, who: Identity, context: RequestContext) -> dict[str, Effect]:
    """What somebody may do with a table, in a listing, and with its schema."""
    asked = [
        *(Access(action=action, resource=Resource(name=PEOPLE)) for action in (Action.SELECT, Action.DROP)),
        *(Access(action=action, resource=Resource(name=HR, type=ResourceType.SCHEMA)) for action in _OF_SCHEMAS),
    ]
    decided = engine.decide(PolicyRequest(principal=who, accesses=tuple(asked), context=context)).decisions
    (listed,) = engine.visible(VisibilityRequest(principal=who, names=(PEOPLE,), context=context))
    names = ["read", "drop", *(action.value for action in _OF_SCHEMAS), "listed"]
    return dict(zip(names, [*(one.effect for one in decided), listed], strict=True))


_OF_SCHEMAS = (Action.DESCRIBE, Action.DROP_SCHEMA)


@pytest.mark.rule("POL-2")
def test_what_no_grant_covers_is_its_makers_where_the_catalog_cannot_know_who_asks(engine: GrantsEnforcer) -> None:
    bob = make_identity("bob")
    engine.object_created(PEOPLE, uuid="u", owner=ALICE)
    assert set(_effects(engine, bob, CONTEXT).values()) == {Effect.ALLOW}
    assert set(_effects(engine, ALICE, CLOSED).values()) == {Effect.ALLOW, Effect.DENY}
    assert _effects(engine, ALICE, CLOSED)["drop_schema"] is Effect.DENY  # another made it
    assert _effects(engine, bob, CLOSED) == {
        "read": Effect.DENY,
        "drop": Effect.DENY,
        "describe": Effect.ALLOW,
        "drop_schema": Effect.DENY,
        "listed": Effect.DENY,
    }
    assert set(_effects(engine, bob, replace(CLOSED, administrator=True)).values()) == {Effect.ALLOW}
    other = replace(CONTEXT, closed_catalogs=frozenset({"elsewhere"}))
    assert set(_effects(engine, bob, other).values()) == {Effect.ALLOW}


def test_a_grant_to_everybody_opens_a_closed_table(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="u", owner=ALICE)
    engine.put_grant(Grant(target=on(PEOPLE), grantee=PUBLIC, privileges=frozenset({Privilege.SELECT})), author=ADMIN)
    seen = _effects(engine, make_identity("bob"), CLOSED)
    assert (seen["read"], seen["listed"], seen["drop"]) == (Effect.ALLOW, Effect.ALLOW, Effect.DENY)
    assert _effects(engine, ALICE, CLOSED)["drop"] is Effect.ALLOW


def test_others_make_tables_beside_a_closed_one_and_do_not_replace_it(engine: GrantsEnforcer) -> None:
    engine.object_created(PEOPLE, uuid="u", owner=ALICE)
    bob = make_identity("bob")

    def creates(name: ObjectName, uuid: str | None = None) -> Effect:
        request = PolicyRequest(
            principal=bob,
            accesses=(Access(action=Action.CREATE, resource=Resource(name=name, uuid=uuid)),),
            context=CLOSED,
        )
        return engine.decide(request).decisions[0].effect

    assert creates(replace(PEOPLE, name="mine")) is Effect.ALLOW
    assert creates(PEOPLE, "u") is Effect.DENY
