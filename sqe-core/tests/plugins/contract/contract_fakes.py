"""Plugins to try the contracts on: a whole one of each kind, and many that break one promise.

Every class of contract tests here that has `breaks` must fail exactly that test; the others must pass. The file is not
collected by itself: test_plugins_contract_kit.py runs it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from sqe_core.spi import (
    AttachRequest,
    AuthProvider,
    AuthProviderFactory,
    BasicCredential,
    BearerCredential,
    CatalogBackend,
    CatalogFactory,
    CatalogMetadata,
    ClientInfo,
    ColumnMask,
    Decision,
    Effect,
    Grant,
    Grantee,
    GrantStore,
    GrantStoreFactory,
    GrantTarget,
    Identity,
    InvalidCredentialsError,
    LineageEvent,
    LineageSink,
    LineageSinkFactory,
    LoginRequest,
    NamespaceName,
    NoConfig,
    NoCredential,
    NotSupportedError,
    NullMask,
    ObjectName,
    ObjectNotFoundError,
    PolicyEnforcer,
    PolicyEnforcerFactory,
    PolicyRequest,
    PolicyResponse,
    RoleGrant,
    RoleInfo,
    Secret,
    StartupError,
    StoredPolicy,
    SupportsBrowserLogin,
    SupportsGrants,
    SupportsOwnership,
    SupportsPolicies,
    SupportsRoles,
    UserError,
    is_clean_name,
    to_run_event,
)
from sqe_core.testing import (
    AuthProviderContract,
    CatalogContract,
    GrantStoreContract,
    LineageSinkContract,
    PluginContract,
    PolicyEnforcerContract,
    make_identity,
    make_policy_request,
)

CLIENT = ClientInfo(protocol="test", address="10.0.0.1")


# Login providers


class Passwords(AuthProvider):
    """One user, with refresh."""

    def __init__(self, name: str) -> None:
        self.name = name

    def authenticate(self, request: LoginRequest) -> Identity | None:
        if not isinstance(request.credential, BasicCredential):
            return None
        if request.credential.password != Secret("right"):
            raise InvalidCredentialsError
        return self.identity(request)

    def identity(self, request: LoginRequest) -> Identity:
        return Identity(
            issuer="test", subject="1", username="ann", provider=self.name, access_token=Secret("access-5d1f")
        )

    def refresh(self, identity: Identity) -> Identity:
        return replace(identity, access_token=Secret("next-77c3"))


class PasswordsFactory(AuthProviderFactory[NoConfig]):
    kind = "passwords"
    config_type = NoConfig
    provider: type[Passwords] = Passwords

    def create(self, name: str, config: NoConfig, context: Any) -> AuthProvider:
        return self.provider(name)


class TestPasswords(AuthProviderContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"rejects", "refresh"})
    provider_class: type[Passwords] = Passwords

    @pytest.fixture
    def factory(self) -> PasswordsFactory:
        factory = PasswordsFactory()
        factory.provider = self.provider_class
        return factory

    @pytest.fixture
    def config(self) -> NoConfig:
        return NoConfig()

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return LoginRequest(credential=BasicCredential(username="ann", password=Secret("right")), client=CLIENT)

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        names = ("ann", "nobody")
        return [
            LoginRequest(credential=BasicCredential(username=name, password=Secret("no")), client=CLIENT)
            for name in names
        ]

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return [
            LoginRequest(credential=BearerCredential(token=Secret("t")), client=CLIENT),
            LoginRequest(credential=NoCredential(), client=CLIENT),
        ]


class WrongProviderName(Passwords):
    def identity(self, request: LoginRequest) -> Identity:
        return replace(super().identity(request), provider="somebody-else")


class TestWrongProviderName(TestPasswords):
    provider_class = WrongProviderName
    breaks = ("test_accepted_login_is_complete", "test_refresh_keeps_who_it_is")


class DirtyNames(Passwords):
    def identity(self, request: LoginRequest) -> Identity:
        return replace(super().identity(request), username="ann\u202e")


class TestDirtyNames(TestPasswords):
    provider_class = DirtyNames
    breaks = ("test_names_are_clean",)


class NewPersonEachTime(Passwords):
    counter = 0

    def identity(self, request: LoginRequest) -> Identity:
        type(self).counter += 1
        return replace(super().identity(request), subject=str(self.counter))


class TestNewPersonEachTime(TestPasswords):
    provider_class = NewPersonEachTime
    breaks = ("test_same_login_is_same_person", "test_client_claims_add_nothing")


class TakesEverything(Passwords):
    def authenticate(self, request: LoginRequest) -> Identity | None:
        if isinstance(request.credential, BearerCredential):
            raise InvalidCredentialsError
        return super().authenticate(request)


class TestTakesEverything(TestPasswords):
    provider_class = TakesEverything
    breaks = ("test_foreign_login_is_left_to_others",)


class TellsUsersApart(Passwords):
    def authenticate(self, request: LoginRequest) -> Identity | None:
        if isinstance(request.credential, BasicCredential) and request.credential.username != "ann":
            raise InvalidCredentialsError("no such user")
        return super().authenticate(request)


class TestTellsUsersApart(TestPasswords):
    provider_class = TellsUsersApart
    breaks = ("test_rejected_login_raises_the_constant_text",)


class SilentlyRejects(Passwords):
    def authenticate(self, request: LoginRequest) -> Identity | None:
        try:
            return super().authenticate(request)
        except InvalidCredentialsError:
            return None


class TestSilentlyRejects(TestPasswords):
    provider_class = SilentlyRejects
    breaks = ("test_rejected_login_raises_the_constant_text",)


class BelievesHeaders(Passwords):
    def identity(self, request: LoginRequest) -> Identity:
        return replace(super().identity(request), username=request.client.requested_user or "ann")


class TestBelievesHeaders(TestPasswords):
    provider_class = BelievesHeaders
    breaks = ("test_client_claims_add_nothing",)


class PrintsTokens(Passwords):
    def identity(self, request: LoginRequest) -> Identity:
        return replace(super().identity(request), claims={"raw": "access-5d1f"})


class TestPrintsTokens(TestPasswords):
    provider_class = PrintsTokens
    breaks = ("test_nothing_secret_prints",)


class RefreshesIntoSomebody(Passwords):
    def refresh(self, identity: Identity) -> Identity:
        return replace(super().refresh(identity), subject="2")


class TestRefreshesIntoSomebody(TestPasswords):
    provider_class = RefreshesIntoSomebody
    breaks = ("test_refresh_keeps_who_it_is",)


class TestUndeclaredRefresh(TestPasswords):
    capabilities = frozenset({"rejects"})
    breaks = ("test_refresh_keeps_who_it_is",)


class AlwaysRevoked(Passwords):
    def is_revoked(self, identity: Identity) -> bool:
        return True


class TestAlwaysRevoked(TestPasswords):
    provider_class = AlwaysRevoked
    breaks = ("test_fresh_login_is_not_revoked",)


class UndeclaredBrowser(Passwords, SupportsBrowserLogin):
    def browser_login_url(self, start: Any) -> str:
        return "https://idp"

    def finish_browser_login(self, finish: Any) -> Identity:
        raise InvalidCredentialsError


class TestUndeclaredBrowser(TestPasswords):
    provider_class = UndeclaredBrowser
    breaks = ("test_capabilities_are_declared",)


class ClosesOnce(Passwords):
    closed = False

    def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


class TestClosesOnce(TestPasswords):
    provider_class = ClosesOnce
    breaks = ("test_closes_twice",)


class TestKnownFault(TestPasswords):
    """The way out: a known fault, explained and strict."""

    provider_class = DirtyNames

    @pytest.mark.xfail(reason="issue 7: direction marks are kept", strict=True)
    def test_names_are_clean(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        super().test_names_are_clean(provider, accepted)


class TestMendedFault(TestPasswords):
    """A known fault that is none any more has to be taken off the list."""

    breaks = ("test_names_are_clean",)

    @pytest.mark.xfail(reason="issue 7: direction marks are kept", strict=True)
    def test_names_are_clean(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        super().test_names_are_clean(provider, accepted)


class NotReady(Passwords):
    def check(self) -> None:
        raise StartupError("no key set")


class TestNotReady(TestPasswords):
    provider_class = NotReady
    breaks = ("test_is_a_provider",)


# Factories


@dataclass
class MutableConfig:
    password: str = ""


class TestMutableConfig(TestPasswords):
    breaks = ("test_config_type_is_frozen", "test_config_keys_are_keyword_only", "test_secret_keys_are_secrets")

    @pytest.fixture
    def factory(self) -> PasswordsFactory:
        factory = PasswordsFactory()
        factory.config_type = MutableConfig  # type: ignore[assignment]
        return factory

    @pytest.fixture
    def config(self) -> Any:
        return MutableConfig()


@dataclass(frozen=True, kw_only=True)
class UnresolvableConfig:
    when: NoSuchType = None  # type: ignore[name-defined]  # noqa: F821


class TestUnresolvableConfig(TestPasswords):
    breaks = ("test_config_type_can_be_filled", "test_secret_keys_are_secrets")

    @pytest.fixture
    def factory(self) -> PasswordsFactory:
        factory = PasswordsFactory()
        factory.config_type = UnresolvableConfig  # type: ignore[assignment]
        return factory

    @pytest.fixture
    def config(self) -> Any:
        return UnresolvableConfig()


class TestOddKind(TestPasswords):
    breaks = ("test_kind_is_a_plain_word",)

    @pytest.fixture
    def factory(self) -> PasswordsFactory:
        factory = PasswordsFactory()
        factory.kind = "Odd Kind"
        return factory


# Catalogs


class Listing(CatalogMetadata):
    def list_namespaces(self, parent: tuple[str, ...] = ()) -> Sequence[tuple[str, ...]]:
        return [("hr",)]

    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        self.load_namespace(namespace)
        return ["people"]

    def list_views(self, namespace: tuple[str, ...]) -> Sequence[str]:
        self.load_namespace(namespace)
        return ["names"]

    def load_namespace(self, namespace: tuple[str, ...]) -> dict[str, str]:
        if namespace != ("hr",):
            raise ObjectNotFoundError("no such schema")
        return {}

    def load_table(self, namespace: tuple[str, ...], name: str) -> Any:
        raise ObjectNotFoundError("no such table")


class Rest(CatalogBackend):
    """A catalog that carries the user's token."""

    identity_mode = "user"
    properties: ClassVar[dict[str, str]] = {
        "type": "rest",
        "uri": "https://catalog",
        "cache-enabled": "false",
        "token-refresh-enabled": "false",
    }

    def spark_properties(self, identity: Identity) -> dict[str, str]:
        if identity.access_token is None:
            raise UserError("log in with a token")
        return {**self.properties, "token": identity.access_token.reveal()}

    def quick_metadata(self, identity: Identity) -> CatalogMetadata | None:
        return Listing()


class RestFactory(CatalogFactory[NoConfig]):
    kind = "rest-like"
    config_type = NoConfig
    backend: type[CatalogBackend] = Rest

    def create(self, name: str, config: NoConfig, context: Any) -> CatalogBackend:
        return self.backend()

    def attach(self, request: AttachRequest) -> NoConfig:
        request.check(required=("warehouse",))
        return NoConfig()


class TestRest(CatalogContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"attach", "views", "writes", "per_user", "quick_metadata"})
    backend_class: type[CatalogBackend] = Rest
    factory_class: type[RestFactory] = RestFactory

    @pytest.fixture
    def factory(self) -> RestFactory:
        factory = self.factory_class()
        factory.backend = self.backend_class
        return factory

    @pytest.fixture
    def config(self) -> NoConfig:
        return NoConfig()

    @pytest.fixture
    def attach_request(self) -> AttachRequest:
        return AttachRequest(name="x", location="https://catalog", options={"warehouse": "w"})


class Cached(Rest):
    properties: ClassVar[dict[str, str]] = {**Rest.properties, "cache-enabled": "true"}


class TestCached(TestRest):
    backend_class = Cached
    breaks = ("test_table_cache_is_off",)


class ChoosesTheClass(Rest):
    properties: ClassVar[dict[str, str]] = {**Rest.properties, "": "org.example.Catalog"}


class TestChoosesTheClass(TestRest):
    backend_class = ChoosesTheClass
    breaks = ("test_properties_are_text",)


class Undecided(Rest):
    properties: ClassVar[dict[str, str]] = {**Rest.properties, "catalog-impl": "org.example.Impl"}


class TestUndecided(TestRest):
    backend_class = Undecided
    breaks = ("test_properties_choose_an_implementation",)


class Random(Rest):
    calls = 0

    def spark_properties(self, identity: Identity) -> dict[str, str]:
        type(self).calls += 1
        return {**super().spark_properties(identity), "x": str(self.calls)}


class TestRandom(TestRest):
    backend_class = Random
    breaks = ("test_properties_are_repeatable",)


class SendsTheFirstToken(Rest):
    first: str | None = None

    def spark_properties(self, identity: Identity) -> dict[str, str]:
        properties = super().spark_properties(identity)
        self.first = self.first or properties["token"]
        return {**properties, "token": self.first}


class TestSendsTheFirstToken(TestRest):
    backend_class = SendsTheFirstToken
    breaks = ("test_identity_mode_is_true",)


class ServiceAccount(Rest):
    properties: ClassVar[dict[str, str]] = {**Rest.properties, "credential": "sqe:secret"}


class TestServiceAccount(TestRest):
    backend_class = ServiceAccount
    breaks = ("test_user_token_is_alone",)


class RefreshesItself(Rest):
    properties: ClassVar[dict[str, str]] = {**Rest.properties, "token-refresh-enabled": "true"}


class TestRefreshesItself(TestRest):
    backend_class = RefreshesItself
    breaks = ("test_user_token_is_alone",)


class FallsBack(Rest):
    def spark_properties(self, identity: Identity) -> dict[str, str]:
        return dict(self.properties) if identity.access_token is None else super().spark_properties(identity)


class TestFallsBack(TestRest):
    backend_class = FallsBack
    breaks = ("test_user_without_token_is_refused",)


class ShowsTheToken(Rest):
    def spark_properties(self, identity: Identity) -> dict[str, str]:
        properties = super().spark_properties(identity)
        self.last = properties["token"]
        return properties

    def __repr__(self) -> str:
        return f"ShowsTheToken({self.last})"


class TestShowsTheToken(TestRest):
    backend_class = ShowsTheToken
    breaks = ("test_nothing_secret_prints",)


class TestUndeclaredPerUser(TestRest):
    capabilities = frozenset({"attach", "views", "writes", "quick_metadata"})
    breaks = ("test_identity_mode_is_true",)


class TestUndeclaredViews(TestRest):
    capabilities = frozenset({"attach", "writes", "per_user", "quick_metadata"})
    breaks = ("test_capabilities_are_declared",)


class TestUndeclaredListing(TestRest):
    capabilities = frozenset({"attach", "views", "writes", "per_user"})
    breaks = ("test_quick_metadata_lists",)


class ForgivingListing(Listing):
    def load_namespace(self, namespace: tuple[str, ...]) -> dict[str, str]:
        return {}


class Forgiving(Rest):
    def quick_metadata(self, identity: Identity) -> CatalogMetadata | None:
        return ForgivingListing()


class TestForgiving(TestRest):
    backend_class = Forgiving
    breaks = ("test_quick_metadata_lists",)


class TestUndeclaredAttach(TestRest):
    capabilities = frozenset({"views", "writes", "per_user", "quick_metadata"})
    breaks = ("test_attach",)


class IgnoresOptions(RestFactory):
    def attach(self, request: AttachRequest) -> NoConfig:
        return NoConfig()


class TestIgnoresOptions(TestRest):
    factory_class = IgnoresOptions
    breaks = ("test_attach_refuses_unknown_options",)


class Unreachable(Rest):
    def check(self) -> None:
        raise StartupError("nobody answers")


class TestUnreachable(TestRest):
    backend_class = Unreachable
    breaks = ("test_is_a_backend",)


class RestClosesOnce(Rest):
    closed = False

    def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


class TestRestClosesOnce(TestRest):
    backend_class = RestClosesOnce
    breaks = ("test_closes_twice",)


# Policy engines

SALARIES = ObjectName(catalog="lake", namespace=("hr",), name="salaries")
PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")
NAMES = ObjectName(catalog="lake", namespace=("hr",), name="names")


class Table(PolicyEnforcer, SupportsGrants):
    """Allows `people`, masks `names`, denies the rest."""

    hidden = "id"

    def __init__(self) -> None:
        self.grants: list[Grant] = []

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(decisions=tuple(self.one(access.resource.name) for access in request.accesses))

    def one(self, name: Any) -> Decision:
        if name == NAMES:
            mask = ColumnMask(column="name", mask=NullMask())
            return Decision(effect=Effect.ALLOW, column_masks=(mask,), hidden_columns=frozenset({self.hidden}))
        if name in (PEOPLE, PEOPLE.schema):
            return Decision.allow()
        return Decision.deny("not listed")

    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        self.grants.append(grant)

    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        found = grant in self.grants
        self.grants = [other for other in self.grants if other != grant]
        return found

    def list_grants(self, *, target: Any = None, grantee: Any = None, author: Identity) -> Sequence[Grant]:
        return [grant for grant in self.grants if target in (None, grant.target) and grantee in (None, grant.grantee)]


class TableFactory(PolicyEnforcerFactory[NoConfig]):
    kind = "table"
    config_type = NoConfig
    enforcer: type[PolicyEnforcer] = Table

    def create(self, name: str, config: NoConfig, context: Any) -> PolicyEnforcer:
        return self.enforcer()


class DeadEngine(Table):
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        raise ConnectionError("refused")


class TestTable(PolicyEnforcerContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"denies", "restricts", "remote", "grants"})
    enforcer_class: type[PolicyEnforcer] = Table

    @pytest.fixture
    def factory(self) -> TableFactory:
        factory = TableFactory()
        factory.enforcer = self.enforcer_class
        return factory

    @pytest.fixture
    def config(self) -> NoConfig:
        return NoConfig()

    @pytest.fixture
    def allowed(self) -> PolicyRequest:
        return make_policy_request(PEOPLE)

    @pytest.fixture
    def denied(self) -> PolicyRequest:
        return make_policy_request(SALARIES)

    @pytest.fixture
    def restricted(self) -> PolicyRequest:
        return make_policy_request(NAMES)

    @pytest.fixture
    def broken(self) -> PolicyEnforcer:
        return DeadEngine()

    @pytest.fixture
    def grantee(self) -> Grantee:
        return Grantee(type="role", name="analyst")


class DeniesQuietly(Table):
    def one(self, name: Any) -> Decision:
        decision = super().one(name)
        return replace(decision, reason="") if decision.effect is Effect.DENY else decision


class TestDeniesQuietly(TestTable):
    enforcer_class = DeniesQuietly
    breaks = ("test_denied",)


class AllowsEverything(Table):
    def one(self, name: Any) -> Decision:
        return Decision.allow() if name == SALARIES else super().one(name)


class TestAllowsEverything(TestTable):
    enforcer_class = AllowsEverything
    breaks = ("test_denied", "test_denied_is_invisible")


class HidesUnknownColumns(Table):
    hidden = "ID"


class TestHidesUnknownColumns(TestTable):
    enforcer_class = HidesUnknownColumns
    breaks = ("test_restricted",)


class AnswersSorted(Table):
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        decisions = super().decide(request).decisions
        return PolicyResponse(decisions=tuple(sorted(decisions, key=lambda decision: decision.effect.value)))


class TestAnswersSorted(TestTable):
    enforcer_class = AnswersSorted
    breaks = ("test_answers_in_order",)


class AnswersOnce(Table):
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(decisions=super().decide(request).decisions[:1])


class TestAnswersOnce(TestTable):
    enforcer_class = AnswersOnce
    breaks = ("test_answers_in_order", "test_every_action_is_understood", "test_visible_answers_in_order")


class KnowsSelectOnly(Table):
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        known = [access for access in request.accesses if access.action.value in ("select", "drop", "describe")]
        return super().decide(replace(request, accesses=tuple(known)))


class TestKnowsSelectOnly(TestTable):
    enforcer_class = KnowsSelectOnly
    breaks = ("test_every_action_is_understood",)


class ShowsEverything(Table):
    def visible(self, request: Any) -> Sequence[Effect]:
        return [Effect.ALLOW for _ in request.names]


class TestShowsEverything(TestTable):
    enforcer_class = ShowsEverything
    breaks = ("test_denied_is_invisible",)


class NotEnforcing(Table):
    enforces = False


class TestNotEnforcing(TestTable):
    enforcer_class = NotEnforcing
    breaks = ("test_enforcing_engines_can_deny",)


class TestGenerousSilence(TestTable):
    breaks = ("test_silence_raises",)

    @pytest.fixture
    def broken(self) -> PolicyEnforcer:
        return Table()


class ForgetsGrants(Table):
    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        pass


class TestForgetsGrants(TestTable):
    enforcer_class = ForgetsGrants
    breaks = ("test_grants",)


class TestUndeclaredGrants(TestTable):
    capabilities = frozenset({"denies", "restricts", "remote"})
    breaks = ("test_grants",)


class Governing(Table, SupportsRoles, SupportsPolicies, SupportsOwnership):
    """Keeps roles, policies and owners too."""

    def __init__(self) -> None:
        super().__init__()
        self.roles: dict[str, dict[Grantee, bool]] = {}
        self.policies: dict[str, StoredPolicy] = {}
        self.owners: dict[ObjectName | NamespaceName, Grantee] = {}

    def create_role(self, name: str, *, author: Identity) -> None:
        if name in self.roles:
            raise UserError("exists")
        self.roles[name] = {}

    def drop_role(self, name: str, *, author: Identity) -> bool:
        return self.roles.pop(name, None) is not None

    def grant_role(self, role: str, grantee: Grantee, *, admin_option: bool, author: Identity) -> None:
        if role not in self.roles or grantee.name in self.reached(Grantee(type="role", name=role)) | {role}:
            raise UserError("no")
        self.roles[role][grantee] = admin_option

    def revoke_role(self, role: str, grantee: Grantee, *, author: Identity) -> bool:
        return self.roles[role].pop(grantee, None) is not None

    def list_roles(self, *, author: Identity) -> Sequence[RoleInfo]:
        return [RoleInfo(name=name) for name in sorted(self.roles)]

    def list_role_grants(self, *, author: Identity) -> Sequence[RoleGrant]:
        return [
            RoleGrant(role=role, grantee=grantee, admin_option=option)
            for role, grantees in self.roles.items()
            for grantee, option in grantees.items()
        ]

    def reached(self, grantee: Grantee) -> frozenset[str]:
        held = {role for role, grantees in self.roles.items() if grantee in grantees}
        return frozenset(held).union(*(self.reached(Grantee(type="role", name=role)) for role in held))

    def roles_of(self, principal: Identity) -> frozenset[str]:
        return self.reached(Grantee(type="user", name=principal.username))

    def put_policy(self, policy: StoredPolicy, *, replace: bool, author: Identity) -> None:
        if policy.name.casefold() in self.policies and not replace:
            raise UserError("exists")
        self.policies[policy.name.casefold()] = policy

    def delete_policy(self, name: str, *, author: Identity) -> bool:
        return self.policies.pop(name.casefold(), None) is not None

    def list_policies(self, *, author: Identity) -> Sequence[StoredPolicy]:
        return [self.policies[name] for name in sorted(self.policies)]

    def owner_of(self, name: ObjectName | NamespaceName) -> Grantee | None:
        return self.owners.get(name)

    def set_owner(
        self, name: ObjectName | NamespaceName, owner: Grantee, *, uuid: str | None = None, author: Identity
    ) -> None:
        self.owners[name] = owner

    def object_created(self, name: ObjectName | NamespaceName, *, uuid: str | None, owner: Identity) -> None:
        self.owners[name] = Grantee(type="user", name=owner.username)

    def object_renamed(self, old: ObjectName, new: ObjectName, *, author: Identity) -> None:
        self.owners[new] = self.owners.pop(old)

    def object_dropped(self, name: ObjectName | NamespaceName, *, uuid: str | None, author: Identity) -> None:
        del self.owners[name]


class TestGoverning(TestTable):
    capabilities = frozenset({"denies", "restricts", "remote", "grants", "roles", "policies", "ownership"})
    enforcer_class = Governing


class KnowsDirectRolesOnly(Governing):
    def roles_of(self, principal: Identity) -> frozenset[str]:
        user = Grantee(type="user", name=principal.username)
        return frozenset(role for role, grantees in self.roles.items() if user in grantees)


class TestKnowsDirectRolesOnly(TestGoverning):
    enforcer_class = KnowsDirectRolesOnly
    breaks = ("test_roles",)


class PoliciesDifferByCase(Governing):
    def put_policy(self, policy: StoredPolicy, *, replace: bool, author: Identity) -> None:
        self.policies[policy.name] = policy


class TestPoliciesDifferByCase(TestGoverning):
    enforcer_class = PoliciesDifferByCase
    breaks = ("test_policies",)


class OwnersOutliveTheirTables(Governing):
    def object_dropped(self, name: ObjectName | NamespaceName, *, uuid: str | None, author: Identity) -> None:
        pass


class TestOwnersOutliveTheirTables(TestGoverning):
    enforcer_class = OwnersOutliveTheirTables
    breaks = ("test_ownership",)


class TestUndeclaredGovernance(TestGoverning):
    capabilities = frozenset({"denies", "restricts", "remote", "grants"})
    breaks = ("test_roles", "test_policies", "test_ownership")


class FlushDenies(Table):
    flushed = False

    def flush(self) -> None:
        self.flushed = True

    def one(self, name: Any) -> Decision:
        return Decision.deny("flushed") if self.flushed else super().one(name)


class TestFlushDenies(TestTable):
    enforcer_class = FlushDenies
    breaks = ("test_flush_changes_no_answer",)


class EngineNotReady(Table):
    def check(self) -> None:
        raise StartupError("no policies")


class TestEngineNotReady(TestTable):
    enforcer_class = EngineNotReady
    breaks = ("test_is_an_enforcer",)


class AnswersUnasked(Table):
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return super().decide(request) if request.accesses else PolicyResponse(decisions=(Decision.allow(),))


class TestAnswersUnasked(TestTable):
    enforcer_class = AnswersUnasked
    breaks = ("test_no_question_no_answer",)


class OneAtATime(Table):
    def __init__(self) -> None:
        super().__init__()
        self.busy = threading.Lock()

    def one(self, name: Any) -> Decision:
        if not self.busy.acquire(blocking=False):
            return Decision.deny("busy")
        time.sleep(0.01)
        self.busy.release()
        return super().one(name)


class TestOneAtATime(TestTable):
    enforcer_class = OneAtATime
    breaks = ("test_many_threads",)


class TableClosesOnce(Table):
    closed = False

    def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


class TestTableClosesOnce(TestTable):
    enforcer_class = TableClosesOnce
    breaks = ("test_closes_twice",)


# Grant stores


class Ledger(GrantStore):
    """Grants and roles in memory."""

    restricts = False

    def __init__(self) -> None:
        self.grants: list[Grant] = []
        self.roles: set[str] = set()
        self.members: set[tuple[str, Grantee]] = set()

    def check_name(self, name: str) -> None:
        if not is_clean_name(name) or not set(name).isdisjoint("/%?."):
            raise UserError("a name that is none")

    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        self.check_name(grant.grantee.name)
        if not self.restricts and (grant.columns or grant.row_filter or grant.effect is Effect.DENY):
            raise NotSupportedError("too narrow")
        if grant not in self.grants:
            self.grants.append(grant)

    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        found = grant in self.grants
        self.grants = [one for one in self.grants if one != grant]
        return found

    def list_grants(
        self, *, target: GrantTarget | None = None, grantee: Grantee | None = None, author: Identity
    ) -> Sequence[Grant]:
        return [
            one
            for one in self.grants
            if (target is None or one.target == target) and (grantee is None or one.grantee == grantee)
        ]

    def create_role(self, name: str, *, author: Identity) -> None:
        self.check_name(name)
        if name in self.roles:
            raise UserError("it exists")
        self.roles.add(name)

    def drop_role(self, name: str, *, author: Identity) -> bool:
        if name not in self.roles:
            return False
        self.roles.remove(name)
        self.grants = [one for one in self.grants if one.grantee.name != name]
        return True

    def grant_role(self, role: str, grantee: Grantee, *, admin_option: bool, author: Identity) -> None:
        self.members.add((role, grantee))

    def revoke_role(self, role: str, grantee: Grantee, *, author: Identity) -> bool:
        found = (role, grantee) in self.members
        self.members.discard((role, grantee))
        return found

    def list_roles(self, *, author: Identity) -> Sequence[RoleInfo]:
        return [RoleInfo(name=name) for name in sorted(self.roles)]

    def list_role_grants(self, *, author: Identity) -> Sequence[RoleGrant]:
        return [RoleGrant(role=role, grantee=grantee) for role, grantee in self.members]

    def roles_of(self, principal: Identity) -> frozenset[str]:
        return frozenset()


class LedgerFactory(GrantStoreFactory[NoConfig]):
    kind = "ledger"
    config_type = NoConfig
    store: type[GrantStore] = Ledger

    def create(self, name: str, config: NoConfig, context: Any) -> GrantStore:
        return self.store()


class TestLedger(GrantStoreContract):
    store_class: type[GrantStore] = Ledger

    @pytest.fixture
    def factory(self) -> LedgerFactory:
        factory = LedgerFactory()
        factory.store = self.store_class
        return factory

    @pytest.fixture
    def config(self) -> NoConfig:
        return NoConfig()

    @pytest.fixture
    def admin(self) -> Identity:
        return make_identity("root", token="token-of-root")

    @pytest.fixture
    def table(self) -> GrantTarget:
        return GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="emp")

    @pytest.fixture
    def user(self) -> str:
        return "alice"


class KeepsRestrictions(Ledger):
    restricts = True


class TestKeepsRestrictions(TestLedger):
    capabilities: ClassVar[frozenset[str]] = frozenset({"restricts"})
    store_class = KeepsRestrictions


class TestLeavesRestrictionsOut(TestLedger):
    store_class = KeepsRestrictions
    breaks = ("test_refuses_what_it_cannot_keep",)


class RevokesNothing(Ledger):
    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        return True


class TestRevokesNothing(TestLedger):
    store_class = RevokesNothing
    breaks = ("test_grants",)


class GrantsOutliveTheirRole(Ledger):
    def drop_role(self, name: str, *, author: Identity) -> bool:
        found = name in self.roles
        self.roles.discard(name)
        return found


class TestGrantsOutliveTheirRole(TestLedger):
    store_class = GrantsOutliveTheirRole
    breaks = ("test_roles",)


class TakesAnyName(Ledger):
    def check_name(self, name: str) -> None:
        pass


class TestTakesAnyName(TestLedger):
    store_class = TakesAnyName
    breaks = ("test_odd_names",)


class LedgerIsGone(Ledger):
    def check(self) -> None:
        raise StartupError("nobody is there")


class TestLedgerIsGone(TestLedger):
    store_class = LedgerIsGone
    breaks = ("test_is_a_store",)


class LedgerClosesOnce(Ledger):
    closed = False

    def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


class TestLedgerClosesOnce(TestLedger):
    store_class = LedgerClosesOnce
    breaks = ("test_closes_twice",)


# Lineage sinks

ARRIVED: list[str] = []


class Memory(LineageSink):
    def emit(self, event: LineageEvent) -> None:
        ARRIVED.append(json.dumps(to_run_event(event)))


class MemoryFactory(LineageSinkFactory[NoConfig]):
    kind = "memory"
    config_type = NoConfig
    sink: type[LineageSink] = Memory

    def create(self, name: str, config: NoConfig, context: Any) -> LineageSink:
        ARRIVED.clear()
        return self.sink()


class TestMemory(LineageSinkContract):
    sink_class: type[LineageSink] = Memory

    @pytest.fixture
    def factory(self) -> MemoryFactory:
        factory = MemoryFactory()
        factory.sink = self.sink_class
        return factory

    @pytest.fixture
    def config(self) -> NoConfig:
        return NoConfig()

    @pytest.fixture
    def delivered(self):
        return lambda: [json.loads(text) for text in ARRIVED]


class LosesStart(Memory):
    def emit(self, event: LineageEvent) -> None:
        if event.type.value != "START":
            super().emit(event)


class TestLosesStart(TestMemory):
    sink_class = LosesStart
    breaks = ("test_delivers_in_order", "test_takes_every_event")


class WritesTheToken(Memory):
    def emit(self, event: LineageEvent) -> None:
        document = to_run_event(event)
        document["token"] = event.user_token.reveal() if event.user_token else None
        ARRIVED.append(json.dumps(document))


class TestWritesTheToken(TestMemory):
    sink_class = WritesTheToken
    breaks = ("test_keeps_the_token_out",)


class NoDisk(Memory):
    def check(self) -> None:
        raise StartupError("the disk is full")


class TestNoDisk(TestMemory):
    sink_class = NoDisk
    breaks = ("test_is_a_sink",)


class MemoryClosesOnce(Memory):
    closed = 0

    def close(self) -> None:
        self.closed += 1
        # The kit closes twice by itself where it reads what arrived.
        assert self.closed < 2 or ARRIVED, "closed twice"


class TestMemoryClosesOnce(TestMemory):
    sink_class = MemoryClosesOnce
    breaks = ("test_closes_twice",)


class WantsOutputs(Memory):
    def emit(self, event: LineageEvent) -> None:
        assert event.outputs
        super().emit(event)


class TestWantsOutputs(TestMemory):
    sink_class = WantsOutputs
    breaks = ("test_takes_every_event",)


class Swallows(Memory):
    def emit(self, event: LineageEvent) -> None:
        pass


class TestSwallows(TestMemory):
    capabilities = frozenset({"remote"})
    breaks = ("test_failure_raises",)

    @pytest.fixture
    def broken(self) -> LineageSink:
        return Swallows()


class OneOfTwo(Memory):
    def emit(self, event: LineageEvent) -> None:
        if int(event.run_id[-3:]) % 2 or event.run_id.endswith("000000000001"):
            super().emit(event)


class TestOneOfTwo(TestMemory):
    sink_class = OneOfTwo
    breaks = ("test_many_threads",)


# Distributions


class TestNotInstalled(PluginContract):
    plugin_name = "catalog-nobody-has"
    breaks = ("test_declaration_is_whole", "test_provides_what_it_declares")
