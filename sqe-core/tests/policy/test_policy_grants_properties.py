"""What holds for every store, whatever stands in it: tried on many random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.sqlite import MemoryStore
from sqe_core.policy.masks import strictest
from sqe_core.spi.catalog import Column
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
COLUMNS = ("a", "b", "c")
SCHEMAS = [NamespaceName(catalog="lake", namespace=parts) for parts in (("x",), ("x", "y"), ("z",))]
TABLES = [
    ObjectName(catalog="lake", namespace=schema.namespace, name=name) for schema in SCHEMAS for name in ("t", "u")
]
ROLES = ("r", "s", "t")
GRANTEES = [
    *(Grantee(type="role", name=name) for name in ROLES),
    Grantee(type="user", name="alice"),
    Grantee(type="group", name="staff"),
    Grantee(type="public"),
]
PRINCIPALS = [
    make_identity("alice"),
    make_identity("bob", roles=("r",)),
    make_identity("bob", roles=("r", "s")),
    make_identity("alice", roles=ROLES),
    replace(make_identity("carol", roles=("t",)), groups=frozenset({"staff"})),
]
MASKS = (NullMask(), ConstantMask(), HashMask(), RangeMask(width=10), RangeMask(width=100))
ON_OBJECTS = (
    Privilege.SELECT,
    Privilege.SELECT_VIEW,
    Privilege.INSERT,
    Privilege.MODIFY,
    Privilege.DROP,
    Privilege.ALL,
)
SEEDS = range(40)

Step = Grant | StoredPolicy


def a_target(chance: random.Random) -> GrantTarget:
    table = chance.choice(TABLES)
    scope = chance.choice(("table", "table", "table", "view", "schema", "all_tables", "all_views", "catalog"))
    if scope == "catalog":
        return GrantTarget(scope="catalog", catalog="lake")
    name = table.name if scope in ("table", "view") else None
    return GrantTarget(scope=scope, catalog="lake", namespace=table.namespace, name=name)


def a_grant(chance: random.Random) -> Grant:
    target = a_target(chance)
    wanted = [*ON_OBJECTS, Privilege.USE, Privilege.CREATE] if target.scope in ("catalog", "schema") else ON_OBJECTS
    grant = Grant(
        privileges=frozenset(chance.sample(list(wanted), chance.randint(1, 2))),
        target=target,
        grantee=chance.choice(GRANTEES),
    )
    if target.name is None or Privilege.SELECT not in grant.privileges or chance.random() < 0.4:
        return grant
    columns = tuple(sorted(chance.sample(COLUMNS, chance.randint(1, 3))))
    masks = (ColumnMask(column=columns[0], mask=chance.choice(MASKS)),) if chance.random() < 0.4 else ()
    row_filter = SqlExpression(text=f"a > {chance.randint(0, 3)}") if chance.random() < 0.3 else None
    return replace(grant, columns=columns if chance.random() < 0.7 else None, column_masks=masks, row_filter=row_filter)


def a_denial(chance: random.Random) -> Grant:
    target = a_target(chance)
    grant = Grant(
        privileges=frozenset({chance.choice(ON_OBJECTS)}),
        target=target,
        grantee=chance.choice(GRANTEES),
        effect=Effect.DENY,
    )
    narrow = target.name is not None and chance.random() < 0.5
    return replace(grant, privileges=frozenset({Privilege.SELECT}), columns=("b",)) if narrow else grant


def a_policy(chance: random.Random, number: int) -> StoredPolicy:
    grantees = tuple(chance.sample(GRANTEES, chance.randint(1, 2)))
    table = chance.choice(TABLES)
    if chance.random() < 0.5:
        return StoredPolicy(
            name=f"p{number}",
            kind="column_mask",
            target=table,
            column=chance.choice(COLUMNS),
            mask=chance.choice(MASKS),
            grantees=grantees,
        )
    predicate = SqlExpression(text=f"b > {chance.randint(0, 3)}")
    return StoredPolicy(name=f"p{number}", kind="row_filter", target=table, row_filter=predicate, grantees=grantees)


def some_steps(chance: random.Random) -> list[Step]:
    steps: list[Step] = [a_grant(chance) for _ in range(chance.randint(0, 8))]
    steps += [a_denial(chance) for _ in range(chance.randint(0, 2))]
    steps += [a_policy(chance, number) for number in range(chance.randint(0, 3))]
    return steps


def make(engine: GrantsEnforcer, step: Step) -> None:
    if isinstance(step, Grant):
        engine.put_grant(step, author=ADMIN)
    else:
        engine.put_policy(step, replace=False, author=ADMIN)


def new_engine(*steps: Step) -> GrantsEnforcer:
    engine = GrantsEnforcer(MemoryStore(now=lambda: NOW), now=lambda: NOW)
    for step in steps:
        make(engine, step)
    return engine


def answers(engine: GrantsEnforcer) -> Iterator[list[Decision]]:
    """What each principal is told about each table and schema, for each action."""
    columns = tuple(Column(name=name, type="int") for name in COLUMNS)
    resources = [
        *(Resource(name=table, columns=columns) for table in TABLES),
        Resource(name=TABLES[0], columns=columns, type=ResourceType.VIEW),
        *(Resource(name=schema, type=ResourceType.SCHEMA) for schema in SCHEMAS),
    ]
    accesses = tuple(Access(action=action, resource=resource) for action in Action for resource in resources)
    names = (*TABLES, *SCHEMAS)
    for principal in PRINCIPALS:
        decisions = engine.decide(PolicyRequest(principal=principal, accesses=accesses, context=CONTEXT)).decisions
        effects = engine.visible(VisibilityRequest(principal=principal, names=names, context=CONTEXT))
        yield [replace(one, policy_version=None, reason="") for one in decisions] + [
            Decision(effect=effect, ttl_secs=0) for effect in effects
        ]


def is_wider(after: Decision, before: Decision) -> bool:
    """Whether something can be seen or done after that could not be before."""
    if after.effect is Effect.DENY:
        return False
    if before.effect is Effect.DENY:
        return True
    masks = {mask.column: mask.mask for mask in after.column_masks}
    unmasked = any(
        mask.column not in after.hidden_columns
        and (mask.column not in masks or strictest([mask.mask, masks[mask.column]]) != masks[mask.column])
        for mask in before.column_masks
    )
    return (
        unmasked
        or not before.hidden_columns <= after.hidden_columns
        or not set(before.row_filters) <= set(after.row_filters)
    )


def widened(before: GrantsEnforcer, after: GrantsEnforcer) -> list[list[bool]]:
    return [
        [is_wider(new, old) for new, old in zip(news, olds, strict=True)]
        for news, olds in zip(answers(after), answers(before), strict=True)
    ]


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_in_which_things_were_written_never_matters(seed: int) -> None:
    chance = random.Random(seed)
    steps = some_steps(chance)
    shuffled = chance.sample(steps, len(steps))
    with closing(new_engine(*steps)) as one, closing(new_engine(*shuffled)) as other:
        assert list(answers(one)) == list(answers(other))


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_denial_a_mask_or_a_filter_never_widens(seed: int) -> None:
    chance = random.Random(1000 + seed)
    steps = some_steps(chance)
    for added in (a_denial(chance), a_policy(chance, 99)):
        with closing(new_engine(*steps)) as before, closing(new_engine(*steps, added)) as after:
            assert not any(map(any, widened(before, after))), added


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_grant_widens_nothing_for_others(seed: int) -> None:
    chance = random.Random(2000 + seed)
    steps, added = some_steps(chance), a_grant(chance)
    with closing(new_engine(*steps)) as before, closing(new_engine(*steps, added)) as after:
        for principal, wider in zip(PRINCIPALS, widened(before, after), strict=True):
            holders = {("user", principal.username), ("public", "")}
            holders |= {("role", name) for name in principal.roles} | {("group", name) for name in principal.groups}
            if (added.grantee.type, added.grantee.name) not in holders:
                assert not any(wider), principal


@pytest.mark.parametrize("seed", SEEDS)
def test_a_revoke_opens_nothing_that_was_closed(seed: int) -> None:
    chance = random.Random(3000 + seed)
    steps = [a_grant(chance), *some_steps(chance)]
    grants = [step for step in steps if isinstance(step, Grant) and step.effect is Effect.ALLOW]
    with closing(new_engine(*steps)) as before, closing(new_engine(*steps)) as after:
        revoked = replace(chance.choice(grants), columns=None, column_masks=(), row_filter=None)
        assert after.delete_grant(revoked, author=ADMIN)
        for news, olds in zip(answers(after), answers(before), strict=True):
            assert not any(
                new.effect is Effect.ALLOW and old.effect is Effect.DENY for new, old in zip(news, olds, strict=True)
            )


def test_the_comparison_sees_what_is_wider() -> None:
    allow = Decision.allow()
    masked = Decision(effect=Effect.ALLOW, column_masks=(ColumnMask(column="a", mask=HashMask()),))
    assert is_wider(allow, Decision.deny("x"))
    assert is_wider(allow, masked)
    assert is_wider(masked, Decision(effect=Effect.ALLOW, column_masks=(ColumnMask(column="a", mask=NullMask()),)))
    assert is_wider(allow, Decision(effect=Effect.ALLOW, hidden_columns=frozenset({"a"})))
    assert is_wider(allow, Decision(effect=Effect.ALLOW, row_filters=(SqlExpression(text="x"),)))
    assert not is_wider(masked, allow)
    assert not is_wider(Decision.deny("x"), allow)
