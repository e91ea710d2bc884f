"""Grants at Polaris, against a stand-in that takes only what its management API has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contract_variants import given
from testbed.polaris import CLIENT, SERVICE_TOKEN, StandInPolaris

from sqe_catalog_polaris.config import PolarisConfig, PolarisGrantsConfig, RestAuth, RestConfig
from sqe_catalog_polaris.grants import PolarisGrants
from sqe_catalog_polaris.grants_plugin import PolarisGrantsFactory
from sqe_catalog_polaris.kinds import RestBackend, make_backend
from sqe_core.bootstrap.instances import configured_instances
from sqe_core.cli.doctor.examinations import Level
from sqe_core.cli.doctor.reachability import examine_servers
from sqe_core.config.binder import bind
from sqe_core.config.loading import load
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi import (
    AccessDeniedError,
    CatalogContext,
    CommitConflictError,
    ConfigError,
    Effect,
    ErrorCode,
    ExternalError,
    Grant,
    Grantee,
    GrantStoreContext,
    GrantTarget,
    NotSupportedError,
    Privilege,
    ResourcesError,
    RoleGrant,
    Secret,
    SqeError,
    SqlExpression,
    UserError,
)
from sqe_core.testing import GrantStoreContract, PluginContract, make_identity

ROOT = make_identity("root", token="token-of-root-31fa")
ALICE = make_identity("alice", token="token-of-alice-5d1f")
EMP = GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="emp")
NESTED = GrantTarget(scope="table", catalog="lake", namespace=("hr", "pay"), name="salaries")
NAMES = GrantTarget(scope="view", catalog="lake", namespace=("hr",), name="names")
HR = GrantTarget(scope="schema", catalog="lake", namespace=("hr",))
LAKE = GrantTarget(scope="catalog", catalog="lake")
ANALYST = Grantee(type="role", name="analyst")
BOB = Grantee(type="user", name="bob")


@pytest.fixture
def polaris() -> Iterator[StandInPolaris]:
    with StandInPolaris() as server:
        server.people |= {"token-of-root-31fa": "root", "token-of-alice-5d1f": "alice"}
        server.admins.add("root")
        server.principals |= {"root": {"service_admin"}, "alice": set(), "bob": set()}
        server.roles |= {"analyst": {}, "other": {}}
        server.add_catalog("the-lake")
        server.objects["the-lake"] = {
            ("namespace", ("hr",), None),
            ("table", ("hr",), "emp"),
            ("table", ("hr", "pay"), "salaries"),
            ("view", ("hr",), "names"),
        }
        yield server
        assert server.violations == []


Make = Callable[..., PolarisGrants]


@pytest.fixture
def backends(polaris: StandInPolaris) -> Iterator[dict[str, RestBackend]]:
    config = PolarisConfig(catalog_url=f"{polaris.url}/api/catalog", warehouse="the-lake")
    made = {"lake": make_backend("lake", config, CatalogContext())}
    yield made
    for backend in made.values():
        backend.close()


@pytest.fixture
def make(polaris: StandInPolaris, backends: dict[str, RestBackend]) -> Iterator[Make]:
    made: list[PolarisGrants] = []

    def create(*, production: bool = False, **keys: Any) -> PolarisGrants:
        config = PolarisGrantsConfig(**{"url": polaris.url, "timeout_secs": 10, **keys})
        context = GrantStoreContext(catalogs=lambda: backends, production_mode=production)
        store = PolarisGrantsFactory().create("polaris", config, context)
        assert isinstance(store, PolarisGrants)
        made.append(store)
        return store

    yield create
    for store in made:
        store.close()
        store.close()


@pytest.fixture
def store(make: Make) -> PolarisGrants:
    return make()


def service(**keys: Any) -> dict[str, Any]:
    return {"client_id": CLIENT[0], "client_secret": Secret(CLIENT[1]), **keys}


def grant(*words: Privilege, on: GrantTarget = EMP, to: Grantee = ANALYST, **more: Any) -> Grant:
    return Grant(privileges=frozenset(words), target=on, grantee=to, **more)


def privileges(server: StandInPolaris, role: str = "analyst", catalog: str = "the-lake") -> set[str]:
    return {right[1] for right in server.rights_of(role, catalog)}


def listed(store: PolarisGrants, **by: Any) -> set[tuple[str, str, str]]:
    found = store.list_grants(author=ROOT, **by)
    return {
        (word.value, f"{each.target.scope} {'.'.join(each.target.namespace)} {each.target.name}", each.grantee.name)
        for each in found
        for word in each.privileges
    }


class TestPlugin(PluginContract):
    plugin_name = "grants-polaris"


class TestContract(GrantStoreContract):
    factory = given(PolarisGrantsFactory)
    config = given(lambda polaris: PolarisGrantsConfig(url=polaris.url, **service()))
    context = given(lambda backends: GrantStoreContext(catalogs=lambda: backends))
    admin = given(lambda: ALICE)
    table = given(lambda: EMP)
    user = given(lambda: "bob")


# Grants


def test_a_grant_reaches_the_role_and_nobody_else(polaris: StandInPolaris, store: PolarisGrants) -> None:
    store.put_grant(grant(Privilege.SELECT), author=ROOT)

    assert polaris.rights_of("analyst", "the-lake") == {("table", "TABLE_READ_DATA", ("hr",), "emp")}
    assert polaris.rights_of("other", "the-lake") == set()
    assert polaris.assigned["analyst", "the-lake"] == {"sqe_analyst"}
    assert polaris.catalogs["the-lake"]["sqe_analyst"].properties == {"sqe.principal-role": "analyst"}
    assert listed(store, target=EMP) == {("SELECT", "table hr emp", "analyst")}
    assert listed(store, grantee=ANALYST) == {("SELECT", "table hr emp", "analyst")}
    assert store.delete_grant(grant(Privilege.SELECT), author=ROOT) is True
    assert polaris.rights_of("analyst", "the-lake") == set()
    assert store.delete_grant(grant(Privilege.SELECT), author=ROOT) is False
    assert not listed(store, target=EMP)


def test_a_role_has_its_catalog_role_before_anything_is_granted_to_it(
    polaris: StandInPolaris, store: PolarisGrants
) -> None:
    """Otherwise two servers could not tell what another one is about to give from what a dropped role left over."""
    store.put_grant(grant(Privilege.SELECT, Privilege.DROP), author=ROOT)
    changes = [what for what in polaris.asked() if not what.startswith("GET")]
    assert changes == [
        "POST catalogs/the-lake/catalog-roles",
        "PUT principal-roles/analyst/catalog-roles/the-lake",
        "PUT catalogs/the-lake/catalog-roles/sqe_analyst/grants",
        "PUT catalogs/the-lake/catalog-roles/sqe_analyst/grants",
    ]


@pytest.mark.parametrize(
    ("words", "on", "expected"),
    [
        ((Privilege.SELECT,), NESTED, {"TABLE_READ_DATA"}),
        ((Privilege.SELECT, Privilege.MODIFY, Privilege.ALTER), EMP, None),
        ((Privilege.ALTER,), EMP, {"TABLE_WRITE_PROPERTIES"}),
        ((Privilege.DROP,), EMP, {"TABLE_DROP"}),
        ((Privilege.MONITOR,), EMP, {"TABLE_LIST", "TABLE_READ_PROPERTIES"}),
        ((Privilege.ALL,), EMP, {"TABLE_FULL_METADATA", "TABLE_READ_DATA", "TABLE_WRITE_DATA"}),
        ((Privilege.SELECT,), NAMES, {"VIEW_READ_PROPERTIES"}),
        ((Privilege.DROP_VIEW,), NAMES, {"VIEW_DROP"}),
        ((Privilege.ALTER, Privilege.SELECT_VIEW), NAMES, {"VIEW_READ_PROPERTIES", "VIEW_WRITE_PROPERTIES"}),
        ((Privilege.ALL,), NAMES, {"VIEW_FULL_METADATA"}),
        ((Privilege.USE,), HR, {"NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES"}),
        ((Privilege.SELECT,), HR, {"TABLE_READ_DATA", "VIEW_READ_PROPERTIES"}),
        ((Privilege.CREATE, Privilege.CREATE_VIEW), HR, {"TABLE_CREATE", "VIEW_CREATE"}),
        ((Privilege.CREATE_NAMESPACE,), LAKE, {"NAMESPACE_CREATE"}),
        ((Privilege.DROP,), LAKE, {"NAMESPACE_DROP", "TABLE_DROP", "VIEW_DROP"}),
        ((Privilege.ALL,), LAKE, {"CATALOG_MANAGE_CONTENT"}),
        ((Privilege.SELECT, Privilege.MODIFY, Privilege.ALTER), HR, None),
    ],
)
def test_every_privilege_and_back(
    polaris: StandInPolaris,
    store: PolarisGrants,
    words: tuple[Privilege, ...],
    on: GrantTarget,
    expected: set[str] | None,
) -> None:
    store.put_grant(grant(*words, on=on), author=ROOT)

    if expected is not None:
        assert privileges(polaris) == expected
    shown = {word for word, _, _ in listed(store, target=on)}
    one_of = {"SELECT VIEW": {"SELECT VIEW", "SELECT"}, "DROP VIEW": {"DROP VIEW", "DROP"}}
    assert all(shown & one_of.get(word.value, {word.value}) for word in words)
    assert store.delete_grant(grant(*words, on=on), author=ROOT) is True
    assert privileges(polaris) == set()


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize(
    ("words", "on", "hint"),
    [
        ((Privilege.MODIFY,), EMP, "GRANT SELECT, MODIFY, ALTER says so"),
        ((Privilege.SELECT, Privilege.MODIFY), EMP, "GRANT SELECT, MODIFY, ALTER says so"),
        ((Privilege.MODIFY,), HR, "GRANT SELECT, MODIFY, ALTER says so"),
        ((Privilege.ALTER,), HR, "GRANT ALTER, SELECT VIEW says so"),
        ((Privilege.ALTER,), NAMES, "GRANT SELECT, ALTER says so"),
        ((Privilege.INSERT,), EMP, "GRANT SELECT, MODIFY, ALTER"),
        ((Privilege.MANAGE,), EMP, "privileges"),
        ((Privilege.APPLY_POLICY,), LAKE, "privileges"),
        ((Privilege.USE,), EMP, "privileges"),
    ],
)
def test_what_would_give_more_than_it_says_is_refused(
    polaris: StandInPolaris, store: PolarisGrants, words: tuple[Privilege, ...], on: GrantTarget, hint: str
) -> None:
    with pytest.raises(NotSupportedError) as caught:
        store.put_grant(grant(*words, on=on), author=ROOT)
    assert hint in (caught.value.hint or "")
    assert polaris.asked() == []


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize(
    "more",
    [
        {"columns": ("id",)},
        {"row_filter": SqlExpression(text="id > 1")},
        {"with_grant_option": True},
        {"effect": Effect.DENY},
        {"on": GrantTarget(scope="all_tables", catalog="lake", namespace=("hr",))},
        {"on": GrantTarget(scope="future_views", catalog="lake", namespace=("hr",))},
        {"to": Grantee(type="user", name="bob")},
        {"to": Grantee(type="group", name="staff")},
        {"to": Grantee(type="public")},
        {"on": replace(EMP, catalog="elsewhere")},
        {"to": Grantee(type="role", name="service_admin")},
    ],
)
@pytest.mark.parametrize("operation", ["put_grant", "delete_grant"])
def test_what_polaris_does_not_have_is_refused_and_says_what_to_do(
    polaris: StandInPolaris, store: PolarisGrants, operation: str, more: dict[str, Any]
) -> None:
    with pytest.raises(NotSupportedError) as caught:
        getattr(store, operation)(grant(Privilege.SELECT, **more), author=ROOT)
    assert caught.value.hint
    assert not [what for what in polaris.asked() if not what.startswith("GET")]


def test_a_revoke_that_leaves_it_is_refused(polaris: StandInPolaris, store: PolarisGrants) -> None:
    write = (Privilege.SELECT, Privilege.MODIFY, Privilege.ALTER)
    store.put_grant(grant(*write), author=ROOT)
    before = privileges(polaris)

    with pytest.raises(NotSupportedError, match=r"MODIFY.* still brings SELECT"):
        store.delete_grant(grant(Privilege.SELECT), author=ROOT)
    assert privileges(polaris) == before
    assert store.delete_grant(grant(Privilege.MODIFY), author=ROOT) is True
    assert {word for word, _, _ in listed(store, target=EMP)} == {"SELECT", "ALTER"}
    assert store.delete_grant(grant(Privilege.ALL), author=ROOT) is True
    assert privileges(polaris) == set()


def test_a_revoke_of_what_another_catalog_role_gives_is_refused(polaris: StandInPolaris, store: PolarisGrants) -> None:
    from testbed.polaris import CatalogRole

    right = ("table", "TABLE_WRITE_DATA", ("hr",), "emp")
    polaris.catalogs["the-lake"]["readers"] = CatalogRole(rights={right})
    polaris.assigned["analyst", "the-lake"] = {"readers"}

    assert listed(store, grantee=ANALYST) >= {("SELECT", "table hr emp", "analyst")}
    with pytest.raises(NotSupportedError, match="the catalog role readers"):
        store.delete_grant(grant(Privilege.SELECT), author=ROOT)
    with pytest.raises(NotSupportedError, match="the catalog role readers"):
        store.delete_grant(grant(Privilege.ALL), author=ROOT)
    assert polaris.rights_of("analyst", "the-lake") == {right}


def test_nobody_else_gains_by_a_grant(polaris: StandInPolaris, store: PolarisGrants) -> None:
    """Somebody gave our catalog role to another principal role."""
    store.put_grant(grant(Privilege.MONITOR), author=ROOT)
    polaris.assigned["other", "the-lake"] = {"sqe_analyst"}
    with pytest.raises(UserError, match="belongs to other roles too"):
        store.put_grant(grant(Privilege.SELECT), author=ROOT)
    assert "TABLE_READ_DATA" not in privileges(polaris, "other")


def test_a_catalog_role_that_somebody_made_is_left_alone(polaris: StandInPolaris, store: PolarisGrants) -> None:
    from testbed.polaris import CatalogRole

    polaris.catalogs["the-lake"]["sqe_analyst"] = CatalogRole()
    with pytest.raises(UserError, match="SQE did not make it"):
        store.put_grant(grant(Privilege.SELECT), author=ROOT)


def test_rights_of_a_dropped_role_do_not_come_back(polaris: StandInPolaris, store: PolarisGrants) -> None:
    store.put_grant(grant(Privilege.ALL), author=ROOT)
    # Dropped at Polaris, where its catalog roles stay.
    del polaris.roles["analyst"]
    polaris.assigned.pop(("analyst", "the-lake"))
    store.create_role("analyst", author=ROOT)
    store.put_grant(grant(Privilege.MONITOR), author=ROOT)
    assert privileges(polaris) == {"TABLE_LIST", "TABLE_READ_PROPERTIES"}


def test_a_grant_that_fails_halfway_leaves_nothing_new(polaris: StandInPolaris, store: PolarisGrants) -> None:
    store.put_grant(grant(Privilege.DROP), author=ROOT)
    seen: list[str] = []

    def fail(request: Any) -> tuple[int, Any] | None:
        if request.method == "PUT" and request.path.endswith("/grants"):
            seen.append(request.what)
            return (500, {}) if len(seen) == 2 else None
        return None

    polaris.intercept = fail
    with pytest.raises(ExternalError):
        store.put_grant(grant(Privilege.SELECT, Privilege.MODIFY, Privilege.ALTER), author=ROOT)
    assert privileges(polaris) == {"TABLE_DROP"}


def test_a_revoke_that_polaris_did_not_make_is_an_error(polaris: StandInPolaris, store: PolarisGrants) -> None:
    store.put_grant(grant(Privilege.SELECT), author=ROOT)
    polaris.intercept = lambda request: (201, None) if request.method == "POST" else None
    with pytest.raises(ExternalError, match="did not revoke all"):
        store.delete_grant(grant(Privilege.SELECT), author=ROOT)


def test_two_administrators_at_once(polaris: StandInPolaris, make: Make) -> None:
    stores = [make(), make()]
    targets = [EMP, NESTED, NAMES, HR]
    errors: list[SqeError] = []

    def work(index: int) -> None:
        try:
            stores[index % 2].put_grant(grant(Privilege.SELECT, on=targets[index]), author=ROOT)
        except SqeError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    # Whoever was overtaken was told so; whoever was not, got what was asked for.
    assert all(isinstance(error, CommitConflictError) for error in errors)
    assert len({on for _, on, _ in listed(stores[0], grantee=ANALYST)}) >= len(targets) - len(errors)


def test_what_is_listed(polaris: StandInPolaris, store: PolarisGrants) -> None:
    store.put_grant(grant(Privilege.SELECT), author=ROOT)
    store.put_grant(grant(Privilege.USE, on=HR), author=ROOT)
    store.put_grant(grant(Privilege.ALL, on=LAKE, to=Grantee(type="role", name="other")), author=ROOT)

    assert listed(store) == {
        ("SELECT", "table hr emp", "analyst"),
        ("USE", "schema hr None", "analyst"),
        ("ALL", "catalog  None", "other"),
    }
    assert listed(store, target=HR) == {("USE", "schema hr None", "analyst")}
    assert listed(store, target=HR, grantee=Grantee(type="role", name="other")) == set()
    assert store.list_grants(grantee=BOB, author=ROOT) == ()
    polaris.principals["bob"] = {"analyst", "other"}
    bob = make_identity("bob")
    effective = store.effective_grants(bob, author=ROOT)
    assert {each.grantee.name for each in effective} == {"analyst", "other"}
    mine = replace(ROOT, roles=frozenset({"analyst", "only-in-the-token", "/staff/analyst", "x" * 300}))
    assert {each.grantee.name for each in store.effective_grants(mine, author=mine)} == {"analyst"}


# Roles


def test_roles(polaris: StandInPolaris, store: PolarisGrants) -> None:
    store.create_role("reader", author=ROOT)
    with pytest.raises(UserError, match="Role reader exists"):
        store.create_role("reader", author=ROOT)
    store.grant_role("reader", BOB, admin_option=False, author=ROOT)
    assert polaris.principals["bob"] == {"reader"}
    assert RoleGrant(role="reader", grantee=BOB) in store.list_role_grants(author=ROOT)
    assert [role.name for role in store.list_roles(author=ROOT)] == ["analyst", "other", "reader", "service_admin"]
    assert store.roles_of(make_identity("bob")) == frozenset()
    assert store.revoke_role("reader", BOB, author=ROOT) is True
    assert store.revoke_role("reader", BOB, author=ROOT) is False
    store.put_grant(grant(Privilege.SELECT, to=Grantee(type="role", name="reader")), author=ROOT)
    assert store.drop_role("reader", author=ROOT) is True
    assert store.drop_role("reader", author=ROOT) is False
    assert set(polaris.catalogs["the-lake"]) == {"catalog_admin"}


def test_a_lost_answer_makes_no_second_role(polaris: StandInPolaris, store: PolarisGrants) -> None:
    polaris.lost = lambda request: request.method == "POST"
    with pytest.raises(ExternalError):
        store.create_role("reader", author=ROOT)
    assert [what for what in polaris.asked() if what.startswith("POST")] == ["POST principal-roles"]


@pytest.mark.parametrize("grantee", [Grantee(type="role", name="other"), Grantee(type="group", name="staff")])
def test_roles_are_for_users(store: PolarisGrants, grantee: Grantee) -> None:
    with pytest.raises(NotSupportedError):
        store.grant_role("analyst", grantee, admin_option=False, author=ROOT)
    with pytest.raises(NotSupportedError):
        store.revoke_role("analyst", grantee, author=ROOT)
    with pytest.raises(NotSupportedError, match="ADMIN OPTION"):
        store.grant_role("analyst", BOB, admin_option=True, author=ROOT)


def test_the_roles_of_polaris_itself_are_out_of_reach(polaris: StandInPolaris, make: Make) -> None:
    """An administrator of SQE does not become one of Polaris by way of SQE's service account."""
    store = make(**service())
    for role in ("service_admin", "catalog_admin", "Service_Admin", "catalog_admin "):
        for change in (
            lambda role=role: store.grant_role(role, BOB, admin_option=False, author=ALICE),
            lambda role=role: store.revoke_role(role, BOB, author=ALICE),
            lambda role=role: store.drop_role(role, author=ALICE),
            lambda role=role: store.create_role(role, author=ALICE),
        ):
            with pytest.raises(NotSupportedError):
                change()
    assert polaris.asked() == []


def test_a_federated_role_is_the_identity_providers(polaris: StandInPolaris, store: PolarisGrants) -> None:
    polaris.roles["staff"] = {"federated": True}
    with pytest.raises(UserError) as caught:
        store.grant_role("staff", BOB, admin_option=False, author=ROOT)
    assert "identity provider" in (caught.value.hint or "")
    polaris.violations.clear()


# Whose rights


@pytest.mark.rule("ERR-5")
def test_without_a_service_account_polaris_sees_the_user(polaris: StandInPolaris, store: PolarisGrants) -> None:
    store.put_grant(grant(Privilege.SELECT), author=ROOT)
    assert {request.headers["authorization"] for request in polaris.requests} == {"Bearer token-of-root-31fa"}
    with pytest.raises(AccessDeniedError) as denied:
        store.put_grant(grant(Privilege.SELECT), author=ALICE)
    missing_role = grant(Privilege.SELECT, to=Grantee(type="role", name="nobody"))
    with pytest.raises(AccessDeniedError) as missing:
        store.put_grant(missing_role, author=ROOT)
    # Only the name that was written is another.
    assert denied.value.message.replace("analyst", "nobody") == missing.value.message
    assert denied.value.hint == missing.value.hint
    with pytest.raises(UserError) as nobody:
        store.put_grant(grant(Privilege.SELECT), author=make_identity("carol"))
    assert nobody.value.code is ErrorCode.AUTHENTICATION_FAILED


def test_who_is_denied_and_who_is_not_there_look_the_same(store: PolarisGrants) -> None:
    with pytest.raises(AccessDeniedError) as denied:
        store.grant_role("analyst", BOB, admin_option=False, author=ALICE)
    with pytest.raises(AccessDeniedError) as missing:
        store.grant_role("analyst", Grantee(type="user", name="zoe"), admin_option=False, author=ROOT)
    assert denied.value.message.replace("bob", "zoe") == missing.value.message


def test_with_a_service_account_polaris_sees_that_one(polaris: StandInPolaris, make: Make) -> None:
    store = make(**service())
    store.put_grant(grant(Privilege.SELECT), author=ALICE)
    store.put_grant(grant(Privilege.DROP), author=ALICE)
    logins = [request for request in polaris.requests if request.path.endswith("/oauth/tokens")]
    assert len(logins) == 1
    assert "token-of-alice-5d1f" not in str([request.headers for request in polaris.requests])
    assert privileges(polaris) == {"TABLE_READ_DATA", "TABLE_DROP"}


def test_a_wrong_service_account_is_told_without_its_secret(polaris: StandInPolaris, make: Make) -> None:
    store = make(**service(client_secret=Secret("wr0ng-s3cret")))
    with pytest.raises(SqeError) as caught:
        store.check()
    assert "wr0ng" not in f"{caught.value} {caught.value.hint} {caught.value.__cause__}"


def test_check(polaris: StandInPolaris, make: Make) -> None:
    make().check()
    make(**service()).check()
    polaris.admins.remove("sqe-service")
    with pytest.raises(AccessDeniedError):
        make(**service()).check()
    polaris.intercept = lambda request: (404, None)
    with pytest.raises(ExternalError, match="status 404"):
        make().check()


def test_the_realm_goes_with_every_request(polaris: StandInPolaris, make: Make, backends: dict[str, Any]) -> None:
    polaris.realm = "east"
    store = make(**service(realm="east"))
    with pytest.raises(NotSupportedError, match="not at the Polaris"):
        store.put_grant(grant(Privilege.SELECT), author=ROOT)
    config = PolarisConfig(catalog_url=f"{polaris.url}/api/catalog", warehouse="the-lake", realm="east")
    backends["lake"].close()
    backends["lake"] = make_backend("lake", config, CatalogContext())
    store.put_grant(grant(Privilege.SELECT), author=ROOT)
    assert privileges(polaris) == {"TABLE_READ_DATA"}
    with pytest.raises(NotSupportedError, match="not at the Polaris"):
        make(**service()).put_grant(grant(Privilege.SELECT), author=ROOT)


def test_other_catalogs_are_not_at_this_polaris(make: Make, backends: dict[str, Any], polaris: StandInPolaris) -> None:
    elsewhere = {
        "port": RestConfig(catalog_url="http://127.0.0.1:9/api/catalog", warehouse="the-lake"),
        "path": RestConfig(catalog_url=f"{polaris.url}/other/api/catalog", warehouse="the-lake"),
        "nameless": RestConfig(catalog_url=f"{polaris.url}/api/catalog"),
        "realm": RestConfig(
            catalog_url=f"{polaris.url}/api/catalog", warehouse="the-lake", headers={"polaris-realm": "west"}
        ),
    }
    for name, config in elsewhere.items():
        backends[name] = make_backend(name, config, CatalogContext())
        with pytest.raises(NotSupportedError, match="not at the Polaris"):
            make().put_grant(grant(Privilege.SELECT, on=replace(EMP, catalog=name)), author=ROOT)
    same = RestConfig(catalog_url=f"{polaris.url}/api/catalog/", warehouse="the-lake", auth=RestAuth(type="anonymous"))
    backends["rest"] = make_backend("rest", same, CatalogContext())
    make().put_grant(grant(Privilege.SELECT, on=replace(EMP, catalog="rest")), author=ROOT)


# Attacks, faults


@pytest.mark.rule("AUTHN-10")
@pytest.mark.parametrize(
    "name",
    [
        "analyst/../../catalogs",
        "a/b",
        "a%2fb",
        "%2e%2e",
        ".",
        "..",
        "a\\b",
        "a;b=c",
        "a?cascade=true",
        "a#b",
        "hr\x1fpay",
        "a\nb",
        "a\x00b",
        "a\u202eb",
        "\ud800",
        "system$root",
        " SYSTEM$x",
        "",
        "x" * 257,
    ],
)
def test_a_name_never_becomes_another_path(polaris: StandInPolaris, store: PolarisGrants, name: str) -> None:
    role, user = Grantee(type="role", name=name), Grantee(type="user", name=name)
    somebody = make_identity("x")
    for change in (
        lambda: store.put_grant(grant(Privilege.SELECT, to=role), author=ROOT),
        lambda: store.delete_grant(grant(Privilege.SELECT, to=role), author=ROOT),
        lambda: store.list_grants(grantee=role, author=ROOT),
        lambda: store.create_role(name, author=ROOT),
        lambda: store.drop_role(name, author=ROOT),
        lambda: store.grant_role(name, BOB, admin_option=False, author=ROOT),
        lambda: store.revoke_role(name, BOB, author=ROOT),
        lambda: store.grant_role("analyst", user, admin_option=False, author=ROOT),
        lambda: store.revoke_role("analyst", user, author=ROOT),
        lambda: store.effective_grants(replace(somebody, username=name), author=ROOT),
    ):
        with pytest.raises(UserError):
            change()
    assert polaris.asked() == []


def test_odd_names_arrive_as_they_are(polaris: StandInPolaris, store: PolarisGrants) -> None:
    for role in ("röle & co", "a+b", "it's", '"q"', "a:b,c=d", "x" * 252):
        store.create_role(role, author=ROOT)
        store.put_grant(grant(Privilege.SELECT, to=Grantee(type="role", name=role)), author=ROOT)
        assert privileges(polaris, role) == {"TABLE_READ_DATA"}
        assert store.drop_role(role, author=ROOT) is True


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 418, 429, 500, 503])
def test_what_polaris_says_of_an_error_is_for_nobody(
    polaris: StandInPolaris, store: PolarisGrants, status: int
) -> None:
    said = {"error": {"message": "canary-of-polaris at 10.1.2.3", "type": "Canary", "code": status}}
    polaris.intercept = lambda request: (status, said)
    calls = (
        lambda: store.put_grant(grant(Privilege.SELECT), author=ROOT),
        lambda: store.create_role("r", author=ROOT),
        lambda: store.list_roles(author=ROOT),
    )
    for call in calls:
        with pytest.raises(SqeError) as caught:
            call()
        assert "canary" not in f"{caught.value} {caught.value.hint}".lower()
        assert "10.1.2.3" not in str(caught.value)


def test_a_busy_polaris_says_when_to_come_again(polaris: StandInPolaris, store: PolarisGrants) -> None:
    polaris.intercept = lambda request: (429, None)
    with pytest.raises(ResourcesError):
        store.list_roles(author=ROOT)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"grants": None},
        {"grants": [{}]},
        {"grants": [{"type": "table", "namespace": ["hr"], "tableName": "emp"}]},
        {"grants": [{"type": "table", "namespace": "hr", "tableName": "emp", "privilege": "TABLE_READ_DATA"}]},
        {"grants": [{"type": "planet", "privilege": "X"}]},
    ],
)
def test_grants_that_cannot_be_read_are_an_error(polaris: StandInPolaris, store: PolarisGrants, body: Any) -> None:
    """What is not seen could not be revoked."""
    store.put_grant(grant(Privilege.SELECT), author=ROOT)
    polaris.intercept = lambda request: (200, body) if request.what.startswith("GET catalogs") else None
    with pytest.raises(ExternalError):
        store.delete_grant(grant(Privilege.SELECT), author=ROOT)


def test_a_hanging_polaris_ends_in_time(polaris: StandInPolaris, make: Make) -> None:
    ending = threading.Event()
    polaris.intercept = lambda request: (200, None) if ending.wait(20) else None
    store = make(timeout_secs=1)
    try:
        with pytest.raises(ExternalError):
            store.put_grant(grant(Privilege.SELECT), author=ROOT)
    finally:
        ending.set()


# Settings


def doctor(folder: Path, polaris: StandInPolaris, more: str = "") -> list[tuple[Level, str]]:
    (folder / "sqe.toml").write_text(
        '[catalogs.lake]\ntype = "polaris"\nwarehouse = "the-lake"\n'
        f'catalog_url = "{polaris.url}/api/catalog"\n'
        f'[access_control]\nbackend = "polaris"\nurl = "{polaris.url}"\n{more}'
    )
    found = examine_servers(load(folder / "sqe.toml", environ={}))
    return [(finding.level, finding.text) for finding in found if finding.subject == "grants"]


def test_sqe_doctor_asks_the_management_api(polaris: StandInPolaris, tmp_path: Path) -> None:
    login = f'client_id = "{CLIENT[0]}"\nclient_secret = "{CLIENT[1]}"\n'
    good = [(Level.OK, "store of grants polaris can be used")]

    assert doctor(tmp_path, polaris) == good
    assert doctor(tmp_path, polaris, login) == good
    assert "GET catalogs/the-lake/catalog-roles" in polaris.asked()
    polaris.admins.clear()
    ((level, text),) = doctor(tmp_path, polaris, login)
    assert level is Level.PROBLEM
    assert "does not let SQE list the roles" in text
    ((level, text),) = doctor(tmp_path, polaris, login.replace(CLIENT[1], "wr0ng-s3cret"))
    assert level is Level.PROBLEM
    assert "wr0ng" not in text


def test_the_settings_reach_the_store(tmp_path: Path) -> None:
    text = '[access_control]\nbackend = "polaris"\nurl = "https://p"\n{}[access_control.polaris]\nrealm = "east"\n{}'
    (tmp_path / "sqe.toml").write_text(text.format("timeout_secs = 7\n", ""))
    settings, faults = bind(
        load(tmp_path / "sqe.toml", environ={}).part("access_control", "polaris"), PolarisGrantsConfig
    )
    assert (settings, faults) == (PolarisGrantsConfig(url="https://p", timeout_secs=7, realm="east"), ())
    (tmp_path / "sqe.toml").write_text(text.format("", "relm = 1\n"))
    assert "relm" in str(configured_instances(load(tmp_path / "sqe.toml", environ={}), PluginManager()).faults)
    (tmp_path / "sqe.toml").write_text('[access_control]\nbackend = "acme"\n')
    faults = configured_instances(load(tmp_path / "sqe.toml", environ={}), PluginManager()).faults
    assert "store of grants 'acme' is not known" in str(faults)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"url": "https://p/api/management/v1"}, "before /api"),
        ({"url": "https://p/api"}, "before /api"),
        ({"url": "https://p", "client_id": "x"}, "belong together"),
    ],
)
def test_settings_that_contradict_each_other(keys: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        PolarisGrantsConfig(**keys)


def test_tokens_do_not_go_in_clear_in_production(make: Make) -> None:
    with pytest.raises(ConfigError, match="access_control: url has to be https"):
        make(production=True, url="http://polaris.example.com")
    make(production=True)  # this machine
    make(production=True, url="https://polaris.example.com/at/a/path")


def test_rights_changed_is_seen_by_the_next_listing(
    polaris: StandInPolaris, backends: dict[str, Any], store: PolarisGrants
) -> None:
    """Verdicts about namespaces are kept for long; what changed rights makes catalogs forget them."""
    backend = backends["lake"]
    answers = {"namespace": (403, {"error": {"type": "ForbiddenException", "message": "no", "code": 403}})}

    def catalog(request: Any) -> tuple[int, Any] | None:
        if request.path.endswith("/config"):
            return 200, {"defaults": {}, "overrides": {"prefix": "the-lake"}}
        if request.path.endswith("/namespaces"):
            return 200, {"namespaces": [["hr"]]}
        return answers["namespace"] if request.path.endswith("/hr") else None

    polaris.intercept = catalog
    assert list(backend.quick_metadata(ALICE).list_namespaces()) == []
    answers["namespace"] = (200, {"namespace": ["hr"], "properties": {}})
    assert list(backend.quick_metadata(ALICE).list_namespaces()) == []
    backend.flush()
    assert list(backend.quick_metadata(ALICE).list_namespaces()) == [("hr",)]


def test_nothing_secret_prints(make: Make) -> None:
    config = PolarisGrantsConfig(url="https://p", **service())
    assert CLIENT[1] not in repr(config)
    assert CLIENT[1] not in repr(config.server)
    assert SERVICE_TOKEN not in repr(make(**service()))
