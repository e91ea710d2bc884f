"""The contract of policy engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from sqe_core.spi.catalog import Column
from sqe_core.spi.errors import UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import (
    Access,
    Action,
    Effect,
    Grant,
    Grantee,
    GrantTarget,
    PartialMask,
    PolicyEnforcer,
    PolicyRequest,
    Privilege,
    RequestContext,
    Resource,
    StoredPolicy,
    SupportsGrants,
    SupportsOwnership,
    SupportsPolicies,
    SupportsRoles,
    VisibilityRequest,
)
from sqe_core.spi.sql import SqlExpression
from sqe_core.testing.contract import ProductContract, in_threads
from sqe_core.testing.fakes import make_identity


def make_policy_request(
    *tables: ObjectName,
    principal: Identity | None = None,
    action: Action = Action.SELECT,
    columns: Sequence[str] = ("id", "name"),
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC),
) -> PolicyRequest:
    """Return a request about some tables.

    Args:
        tables: the tables.
        principal: who asks; a user `alice` without roles by default.
        action: what for.
        columns: the columns of each table, all of them text.
        now: when; a Thursday by default.
    """
    described = tuple(Column(name=name, type="string") for name in columns)
    return PolicyRequest(
        principal=principal or make_identity(),
        accesses=tuple(
            Access(action=action, resource=Resource(name=table, columns=described, schema_id=0)) for table in tables
        ),
        context=RequestContext(protocol="test", now=now, query_id="q1"),
    )


class PolicyEnforcerContract(ProductContract):
    """What every policy engine promises.

    Fixtures to supply: `factory`, `config`, `allowed` (a request about one table that is allowed), and by capability
    `denied` (one that is not), `restricted` (one that is allowed with a filter, mask or hidden column), `broken` (an
    enforcer whose engine does not answer), `grantee` (who may receive grants on the table of `allowed`).

    Capabilities: `denies`, `restricts`, `remote` (asks an engine that may fail), `grants`, `roles`, `policies`,
    `ownership`, and `abstains`: it only objects. What it lets pass, as the request of `allowed`, is answered with
    ABSTAIN and never with ALLOW, so that somebody else has to allow it.
    """

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset(
        {"abstains", "denies", "restricts", "remote", "grants", "roles", "policies", "ownership"}
    )

    @property
    def passing(self) -> Effect:
        """What a request is answered with that is let pass."""
        return Effect.ABSTAIN if self.can("abstains") else Effect.ALLOW

    @pytest.fixture
    def allowed(self) -> PolicyRequest:
        """A request about one table that is let pass."""
        raise NotImplementedError("supply the fixture 'allowed'")

    @pytest.fixture
    def denied(self) -> PolicyRequest:
        """A request about one table that is denied."""
        raise NotImplementedError("supply the fixture 'denied', or do not declare 'denies'")

    @pytest.fixture
    def restricted(self) -> PolicyRequest:
        """A request about one table that is allowed with restrictions."""
        raise NotImplementedError("supply the fixture 'restricted', or do not declare 'restricts'")

    @pytest.fixture
    def broken(self) -> PolicyEnforcer:
        """An enforcer whose engine does not answer."""
        raise NotImplementedError("supply the fixture 'broken', or do not declare 'remote'")

    @pytest.fixture
    def grantee(self) -> Grantee:
        """Who may receive grants."""
        raise NotImplementedError("supply the fixture 'grantee', or do not declare 'grants'")

    @pytest.fixture
    def enforcer(self, product: PolicyEnforcer) -> PolicyEnforcer:
        """The engine under test."""
        return product

    def test_is_an_enforcer(self, enforcer: PolicyEnforcer) -> None:
        """The factory makes a PolicyEnforcer that can decide."""
        assert isinstance(enforcer, PolicyEnforcer)
        enforcer.check()

    def test_enforcing_engines_can_deny(self, enforcer: PolicyEnforcer) -> None:
        """An engine that never denies nor restricts says so, and production refuses it."""
        assert enforcer.enforces == (self.can("denies") or self.can("restricts"))

    def test_allowed(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """What is let pass is allowed; by an engine that only objects, left to the others."""
        assert [decision.effect for decision in enforcer.decide(allowed).decisions] == [self.passing]

    def test_abstaining_allows_nothing(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """An engine that only objects opens nothing, whatever the action, and no listing (POL-2)."""
        self.need("abstains")
        accesses = tuple(replace(allowed.accesses[0], action=action) for action in Action)
        effects = {decision.effect for decision in enforcer.decide(replace(allowed, accesses=accesses)).decisions}
        names = (allowed.accesses[0].resource.name,)
        effects.update(
            enforcer.visible(VisibilityRequest(principal=allowed.principal, names=names, context=allowed.context))
        )
        assert Effect.ALLOW not in effects

    def test_denied(self, enforcer: PolicyEnforcer, request: pytest.FixtureRequest) -> None:
        """What is denied is denied, with a reason for the audit."""
        self.need("denies")
        (decision,) = enforcer.decide(request.getfixturevalue("denied")).decisions
        assert decision.effect is Effect.DENY
        assert decision.reason

    def test_restricted(self, enforcer: PolicyEnforcer, request: pytest.FixtureRequest) -> None:
        """Masks and hidden columns name columns that the request named, exactly (POL-4, POL-6)."""
        self.need("restricts")
        restricted: PolicyRequest = request.getfixturevalue("restricted")
        (decision,) = enforcer.decide(restricted).decisions
        assert decision.effect is not Effect.DENY
        assert decision.restricted
        known = {column.name for column in restricted.accesses[0].resource.columns}
        assert {mask.column for mask in decision.column_masks} | decision.hidden_columns <= known

    def test_answers_in_order(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """A batch gets one decision per access, each the same as when asked alone (POL-8: order never matters)."""
        unknown = replace(
            allowed.accesses[0].resource, name=ObjectName(catalog="no_such", namespace=("catalog",), name="at_all")
        )
        accesses = (allowed.accesses[0], Access(action=Action.DROP, resource=unknown), allowed.accesses[0])
        together = enforcer.decide(replace(allowed, accesses=accesses)).decisions
        alone = [enforcer.decide(replace(allowed, accesses=(access,))).decisions for access in accesses]
        assert [decision.effect for decision in together] == [decisions[0].effect for decisions in alone]
        backwards = enforcer.decide(replace(allowed, accesses=accesses[::-1])).decisions
        assert [decision.effect for decision in backwards] == [decision.effect for decision in together][::-1]

    def test_no_question_no_answer(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """A statement without tables gets no decisions."""
        assert tuple(enforcer.decide(replace(allowed, accesses=())).decisions) == ()

    def test_every_action_is_understood(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """Every action gets an answer: an unknown one would turn into an error at the user."""
        accesses = tuple(replace(allowed.accesses[0], action=action) for action in Action)
        decisions = enforcer.decide(replace(allowed, accesses=accesses)).decisions
        assert len(decisions) == len(accesses)

    def test_visible_answers_in_order(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """Listings get one effect per name."""
        table = allowed.accesses[0].resource.name
        assert isinstance(table, ObjectName)
        catalog = NamespaceName(catalog=table.catalog, namespace=())
        names = (table, table.schema, catalog, replace(table, name="no_such_table_5d1f"))
        request = VisibilityRequest(principal=allowed.principal, names=names, context=allowed.context)
        effects = enforcer.visible(request)
        assert len(effects) == len(names)
        assert all(isinstance(effect, Effect) for effect in effects)
        assert effects[0] is self.passing

    def test_denied_is_invisible(self, enforcer: PolicyEnforcer, request: pytest.FixtureRequest) -> None:
        """A table that may not be read does not appear in listings."""
        self.need("denies")
        denied: PolicyRequest = request.getfixturevalue("denied")
        names = (denied.accesses[0].resource.name,)
        effects = enforcer.visible(VisibilityRequest(principal=denied.principal, names=names, context=denied.context))
        # Whoever only objects objects here, too: to abstain leaves it to those who allow.
        assert list(effects) == [Effect.DENY] if self.can("abstains") else list(effects) != [Effect.ALLOW]

    def test_many_threads(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """Concurrent questions get the same answer."""
        answers = in_threads(lambda: [decision.effect for decision in enforcer.decide(allowed).decisions])
        assert all(answer == [self.passing] for answer in answers)

    def test_flush_changes_no_answer(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """Forgetting caches is safe at any time."""
        before = enforcer.decide(allowed).decisions
        enforcer.flush()
        assert [decision.effect for decision in enforcer.decide(allowed).decisions] == [
            decision.effect for decision in before
        ]

    def test_silence_raises(self, request: pytest.FixtureRequest) -> None:
        """An engine that does not answer is an error, never an empty or a generous answer (POL-2)."""
        self.need("remote")
        broken: PolicyEnforcer = request.getfixturevalue("broken")
        allowed: PolicyRequest = request.getfixturevalue("allowed")
        with pytest.raises(Exception):  # noqa: B017, PT011 - any exception means "unknown"
            broken.decide(allowed)

    def test_grants(self, enforcer: PolicyEnforcer, allowed: PolicyRequest, request: pytest.FixtureRequest) -> None:
        """A grant that was written is listed, and gone after its removal; undeclared, there is nothing to write to."""
        assert isinstance(enforcer, SupportsGrants) == self.can("grants")
        if not isinstance(enforcer, SupportsGrants):
            return
        table = allowed.accesses[0].resource.name
        assert isinstance(table, ObjectName)
        target = GrantTarget(scope="table", catalog=table.catalog, namespace=table.namespace, name=table.name)
        grantee: Grantee = request.getfixturevalue("grantee")
        grant = Grant(privileges=frozenset({Privilege.SELECT}), target=target, grantee=grantee)
        author = make_identity("admin")
        enforcer.put_grant(grant, author=author)
        assert [found.grantee for found in enforcer.list_grants(target=target, grantee=grantee, author=author)] == [
            grantee
        ]
        assert enforcer.delete_grant(grant, author=author) is True
        assert not enforcer.list_grants(target=target, grantee=grantee, author=author)
        assert enforcer.delete_grant(grant, author=author) is False

    def test_roles(self, enforcer: PolicyEnforcer) -> None:
        """Roles reach users through roles, never hold themselves, and go with everything that hung on them."""
        assert isinstance(enforcer, SupportsRoles) == self.can("roles")
        if not isinstance(enforcer, SupportsRoles):
            return
        author, alice = make_identity("admin"), make_identity("alice")
        for name in ("reader", "analyst"):
            enforcer.create_role(name, author=author)
        with pytest.raises(UserError):
            enforcer.create_role("reader", author=author)
        with pytest.raises(UserError):
            enforcer.grant_role("no_such_role", Grantee(type="user", name="alice"), admin_option=False, author=author)
        enforcer.grant_role("reader", Grantee(type="role", name="analyst"), admin_option=False, author=author)
        with pytest.raises(UserError):
            enforcer.grant_role("analyst", Grantee(type="role", name="reader"), admin_option=False, author=author)
        enforcer.grant_role("analyst", Grantee(type="user", name="alice"), admin_option=True, author=author)
        assert {role.name for role in enforcer.list_roles(author=author)} >= {"reader", "analyst"}
        given = {(one.role, one.grantee.name, one.admin_option) for one in enforcer.list_role_grants(author=author)}
        assert given == {("reader", "analyst", False), ("analyst", "alice", True)}
        assert enforcer.roles_of(alice) == {"reader", "analyst"}
        assert enforcer.roles_of(make_identity("bob")) == frozenset()
        assert enforcer.revoke_role("reader", Grantee(type="role", name="analyst"), author=author) is True
        assert enforcer.revoke_role("reader", Grantee(type="role", name="analyst"), author=author) is False
        assert enforcer.roles_of(alice) == {"analyst"}
        assert enforcer.drop_role("analyst", author=author) is True
        assert enforcer.drop_role("analyst", author=author) is False
        assert enforcer.roles_of(alice) == frozenset()

    def test_policies(self, enforcer: PolicyEnforcer) -> None:
        """Named policies are unique whatever their case, and come back as they were written."""
        assert isinstance(enforcer, SupportsPolicies) == self.can("policies")
        if not isinstance(enforcer, SupportsPolicies):
            return
        author = make_identity("admin")
        target = ObjectName(catalog="lake", namespace=("contract",), name="policies")
        mask = StoredPolicy(
            name="hide_it",
            kind="column_mask",
            target=target,
            column="name",
            mask=PartialMask(show_last=2),
            grantees=(Grantee(type="role", name="analyst"),),
        )
        row_filter = StoredPolicy(
            name="hide_rows",
            kind="row_filter",
            target=target,
            row_filter=SqlExpression(text="id > 1"),
            grantees=(Grantee(type="public"),),
        )
        enforcer.put_policy(row_filter, replace=False, author=author)
        enforcer.put_policy(mask, replace=False, author=author)
        with pytest.raises(UserError):
            enforcer.put_policy(replace(mask, name="HIDE_IT"), replace=False, author=author)
        listed = enforcer.list_policies(author=author)
        assert [replace(one, created_by=None, created_at=None) for one in listed] == [mask, row_filter]
        enforcer.put_policy(replace(mask, enabled=False), replace=True, author=author)
        assert [one.enabled for one in enforcer.list_policies(author=author)] == [False, True]
        for policy in (mask, row_filter):
            assert enforcer.delete_policy(policy.name, author=author) is True
            assert enforcer.delete_policy(policy.name, author=author) is False
        assert not enforcer.list_policies(author=author)

    def test_ownership(self, enforcer: PolicyEnforcer) -> None:
        """An object belongs to its maker, keeps its owner when it is renamed, and leaves none behind."""
        assert isinstance(enforcer, SupportsOwnership) == self.can("ownership")
        if not isinstance(enforcer, SupportsOwnership):
            return
        author, alice = make_identity("admin"), make_identity("alice")
        old = ObjectName(catalog="lake", namespace=("contract",), name="owned")
        new = replace(old, name="renamed")
        assert enforcer.owner_of(old) is None
        enforcer.object_created(old.schema, uuid=None, owner=alice)
        enforcer.object_created(old, uuid="1", owner=alice)
        assert enforcer.owner_of(old) == enforcer.owner_of(old.schema) == Grantee(type="user", name="alice")
        enforcer.set_owner(old, Grantee(type="role", name="stewards"), uuid="1", author=author)
        enforcer.object_renamed(old, new, author=author)
        assert enforcer.owner_of(new) == Grantee(type="role", name="stewards")
        assert enforcer.owner_of(old) is None
        enforcer.object_dropped(new, uuid="1", author=author)
        enforcer.object_dropped(old.schema, uuid=None, author=author)
        assert enforcer.owner_of(new) is enforcer.owner_of(old.schema) is None
