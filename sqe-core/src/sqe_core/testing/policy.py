"""The contract of policy engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from sqe_core.spi.catalog import Column
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import (
    Access,
    Action,
    Effect,
    Grant,
    Grantee,
    GrantTarget,
    PolicyEnforcer,
    PolicyEnforcerFactory,
    PolicyRequest,
    Privilege,
    RequestContext,
    Resource,
    SupportsGrants,
    VisibilityRequest,
)
from sqe_core.testing.contract import FactoryContract, in_threads
from sqe_core.testing.fakes import make_identity


def make_policy_request(
    *tables: ObjectName,
    principal: Identity | None = None,
    action: Action = Action.SELECT,
    columns: Sequence[str] = ("id", "name"),
) -> PolicyRequest:
    """Return a request about some tables.

    Args:
        tables: the tables.
        principal: who asks; a user `alice` without roles by default.
        action: what for.
        columns: the columns of each table, all of them text.
    """
    described = tuple(Column(name=name, type="string") for name in columns)
    return PolicyRequest(
        principal=principal or make_identity(),
        accesses=tuple(
            Access(action=action, resource=Resource(name=table, columns=described, schema_id=0)) for table in tables
        ),
        context=RequestContext(protocol="test", now=datetime(2026, 1, 1, tzinfo=UTC), query_id="q1"),
    )


class PolicyEnforcerContract(FactoryContract):
    """What every policy engine promises.

    Fixtures to supply: `factory`, `config`, `allowed` (a request about one table that is allowed), and by capability
    `denied` (one that is not), `restricted` (one that is allowed with a filter, mask or hidden column), `broken` (an
    enforcer whose engine does not answer), `grantee` (who may receive grants on the table of `allowed`).

    Capabilities: `denies`, `restricts`, `remote` (asks an engine that may fail), `grants`.
    """

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"denies", "restricts", "remote", "grants"})

    @pytest.fixture
    def context(self) -> PluginContext:
        """What the core offers."""
        return PluginContext()

    @pytest.fixture
    def allowed(self) -> PolicyRequest:
        """A request about one table that is allowed."""
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
    def enforcer(
        self, factory: PolicyEnforcerFactory[Any], config: Any, context: PluginContext
    ) -> Iterator[PolicyEnforcer]:
        """The engine under test."""
        enforcer = factory.create(self.NAME, config, context)
        yield enforcer
        enforcer.close()

    def test_is_an_enforcer(self, enforcer: PolicyEnforcer) -> None:
        """The factory makes a PolicyEnforcer that can decide."""
        assert isinstance(enforcer, PolicyEnforcer)
        enforcer.check()

    def test_enforcing_engines_can_deny(self, enforcer: PolicyEnforcer) -> None:
        """An engine that never denies nor restricts says so, and production refuses it."""
        assert enforcer.enforces == (self.can("denies") or self.can("restricts"))

    def test_allowed(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """What is allowed is allowed."""
        assert [decision.effect for decision in enforcer.decide(allowed).decisions] == [Effect.ALLOW]

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
        assert effects[0] is Effect.ALLOW

    def test_denied_is_invisible(self, enforcer: PolicyEnforcer, request: pytest.FixtureRequest) -> None:
        """A table that may not be read does not appear in listings."""
        self.need("denies")
        denied: PolicyRequest = request.getfixturevalue("denied")
        names = (denied.accesses[0].resource.name,)
        effects = enforcer.visible(VisibilityRequest(principal=denied.principal, names=names, context=denied.context))
        assert list(effects) != [Effect.ALLOW]

    def test_many_threads(self, enforcer: PolicyEnforcer, allowed: PolicyRequest) -> None:
        """Concurrent questions get the same answer."""
        answers = in_threads(lambda: [decision.effect for decision in enforcer.decide(allowed).decisions])
        assert all(answer == [Effect.ALLOW] for answer in answers)

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

    def test_closes_twice(self, factory: PolicyEnforcerFactory[Any], config: Any, context: PluginContext) -> None:
        """Closing is idempotent."""
        enforcer = factory.create(self.NAME, config, context)
        enforcer.close()
        enforcer.close()
