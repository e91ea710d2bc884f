"""A real OPA: the policies of the package, the store of grants, and SQE from its file to the rows (TEST-1)."""

from __future__ import annotations

import importlib.resources
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from contract_variants import given
from testbed.making import each_ended
from testbed.opa import Opa, opa_binary, running_opa
from testbed.users import Users

from sqe_core.bootstrap import compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import (
    Action,
    ConstantMask,
    Effect,
    ExternalError,
    Grant,
    Grantee,
    GrantTarget,
    Identity,
    NamespaceName,
    ObjectName,
    PluginContext,
    PolicyEnforcer,
    PolicyRequest,
    Privilege,
    Secret,
    SqeError,
    StartupError,
    VisibilityRequest,
)
from sqe_core.testing import PolicyEnforcerContract, make_identity, make_policy_request
from sqe_policy_opa.config import OpaConfig
from sqe_policy_opa.enforcer import OpaEnforcer
from sqe_policy_opa.plugin import OpaFactory

REGO = Path(str(importlib.resources.files("sqe_policy_opa"))) / "rego"
ANALYST = make_identity("alice", roles=["analyst"])
STRANGER = make_identity("mallory", roles=["intern"])
ADMIN = make_identity("root", roles=["admin"])

# One table per request, deciding about the same grants.
EVALUATE = """
package sqe.policy
import rego.v1
restricted := {"allow": true, "row_filters": ["id > 0"], "column_masks": {"name": "hash"}}
evaluate := object.union(restricted, {"hidden_columns": ["ssn"]}) if {
    input.resource.name == "clients"
    "analyst" in input.user.roles
} else := {"allow": true} if {
    input.resource.catalog == "lake"
    input.resource.namespace == ["hr"]
    not input.resource.name == "secrets"
    "analyst" in input.user.roles
} else := {"allow": false}
"""


@pytest.fixture(scope="module")
def opa() -> Iterator[Opa]:
    """An OPA with the package's policy, and some grants."""
    with running_opa(REGO / "authz.rego", options=["--set", "decision_logs.console=true"]) as opa:
        opa.put_policy("evaluate", EVALUATE)
        opa.put("sqe/grants/lake.hr.people/analyst", {})
        opa.put(
            "sqe/grants/lake.hr.clients/analyst",
            {"columns": ["id", "name"], "masks": {"name": "redact:x"}, "row_filter": "id > 0"},
        )
        yield opa


@pytest.fixture
def make() -> Iterator[Callable[..., OpaEnforcer]]:
    """Make enforcers that are closed afterwards."""
    yield from each_ended(lambda opa, **keys: OpaEnforcer(OpaConfig(url=opa.url, **keys), PluginContext()))


def table(name: str) -> ObjectName:
    return ObjectName(catalog="lake", namespace=("hr",), name=name)


def test_the_policies_of_the_package_pass_their_tests() -> None:
    done = subprocess.run(
        [opa_binary(), "test", REGO, "--format", "json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
    assert len(json.loads(done.stdout)) >= 10
    checked = subprocess.run([opa_binary(), "check", "--strict", REGO], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr


class TestAllTablesAtOnce(PolicyEnforcerContract):
    capabilities = frozenset({"denies", "restricts", "remote", "grants"})

    factory = given(OpaFactory)
    config = given(lambda opa: OpaConfig(url=opa.url, authz_path="sqe/authz"))
    allowed = given(lambda: make_policy_request(table("people"), principal=ANALYST))
    denied = given(lambda: make_policy_request(table("secrets"), principal=ANALYST))
    restricted = given(lambda: make_policy_request(table("clients"), principal=ANALYST, columns=("id", "name", "ssn")))

    @pytest.fixture
    def broken(self, factory: OpaFactory) -> Iterator[PolicyEnforcer]:
        with running_opa(REGO / "authz.rego") as opa:
            enforcer = factory.create("gone", OpaConfig(url=opa.url, authz_path="sqe/authz"), PluginContext())
        yield enforcer
        enforcer.close()

    grantee = given(lambda: Grantee(type="role", name="auditor"))


class TestOneTablePerRequest(TestAllTablesAtOnce):
    config = given(lambda opa: OpaConfig(url=opa.url))


def test_a_decision_has_the_id_of_opas_log(opa: Opa, make: Callable[..., OpaEnforcer]) -> None:
    response = make(opa, authz_path="sqe/authz").decide(make_policy_request(table("people"), principal=ANALYST))
    assert response.decision_id
    assert len(response.decision_id) == 36


@pytest.mark.parametrize("role", ["123", "a.b", "Ärzte & co", 'x"y', "a b", "%2e%2e", "?q=1#f", "true", "-"])
@pytest.mark.parametrize("name", ["people2", "1", 'we"ird.t %41', "ä?#&"])
def test_grants_keep_every_name(opa: Opa, make: Callable[..., OpaEnforcer], role: str, name: str) -> None:
    store = make(opa, authz_path="sqe/authz")
    grant = Grant(
        privileges=frozenset({Privilege.SELECT}),
        target=GrantTarget(scope="table", catalog="lake", namespace=("a", "b"), name=name),
        grantee=Grantee(type="role", name=role),
        columns=("id",),
    )
    asked = make_policy_request(
        ObjectName(catalog="lake", namespace=("a", "b"), name=name), principal=make_identity("u", roles=[role])
    )
    assert store.decide(asked).decisions[0].effect is Effect.DENY
    store.put_grant(grant, author=ADMIN)
    (found,) = store.list_grants(target=grant.target, author=ADMIN)
    assert (found.target, found.grantee, found.columns) == (grant.target, grant.grantee, ("id",))
    assert found in store.list_grants(grantee=grant.grantee, author=ADMIN)
    (decision,) = store.decide(asked).decisions
    assert (decision.effect, decision.hidden_columns) == (Effect.ALLOW, {"name"})
    assert store.delete_grant(grant, author=ADMIN)
    assert store.decide(asked).decisions[0].effect is Effect.DENY


def test_opa_that_asks_who_calls(make: Callable[..., OpaEnforcer], tmp_path: Path) -> None:
    guard = tmp_path / "guard.rego"
    guard.write_text(
        'package system.authz\nimport rego.v1\ndefault allow := false\nallow if input.identity == "letmein"\n'
        'allow if input.path == ["health"]\n'
    )
    with running_opa(REGO / "authz.rego", guard, options=["--authentication=token", "--authorization=basic"]) as opa:
        make(opa, authz_path="sqe/authz", token=Secret("letmein")).check()
        with pytest.raises(StartupError, match="another token") as raised:
            make(opa, authz_path="sqe/authz", token=Secret("letmeout")).check()
        assert "letmeout" not in f"{raised.value}{raised.value.hint}{raised.value.__cause__}"


def test_a_policy_that_contradicts_itself_locks_nobody_out(make: Callable[..., OpaEnforcer], tmp_path: Path) -> None:
    policy = tmp_path / "conflict.rego"
    policy.write_text(
        'package sqe.policy\nimport rego.v1\nevaluate := {"allow": true} if input.table.name != ""\n'
        'evaluate := {"allow": false} if input.table.name == "clients"\n'
    )
    with running_opa(policy) as opa:
        enforcer = make(opa, breaker_failure_threshold=1)
        for _ in range(3):
            with pytest.raises(ExternalError, match="status 500"):
                enforcer.decide(make_policy_request(table("clients")))
        assert enforcer.decide(make_policy_request(table("people"))).decisions[0].effect is Effect.ALLOW


def test_a_policy_that_is_not_loaded_stops_the_start() -> None:
    with running_opa() as opa, pytest.raises(StartupError, match="not defined") as raised:
        OpaFactory().create("opa", OpaConfig(url=opa.url), PluginContext())
    assert "sqe/policy/evaluate" in str(raised.value.hint)


PAGE = Path(__file__).parents[2] / "docs" / "policy-opa.md"


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    """An OPA with the policy of the documentation's example."""
    (rego,) = re.findall(r'^```rego title="authz.rego"\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    policy = tmp_path_factory.mktemp("page") / "authz.rego"
    policy.write_text(rego)
    subprocess.run([opa_binary(), "check", "--strict", policy], check=True, capture_output=True, timeout=60)
    with running_opa(policy) as opa:
        yield opa


def of_tenant(tenant: object, *roles: str) -> Identity:
    return replace(make_identity("alice", roles=roles), claims={} if tenant is None else {"tenant": tenant})


def tickets(who: Identity, *actions: Action, schema: str = "app") -> PolicyRequest:
    name = ObjectName(catalog="lake", namespace=(schema,), name="tickets")
    columns = ("id", "tenant_id", "customer_email", "body", "internal_score")
    (access,) = make_policy_request(name, principal=who, columns=columns).accesses
    asked = tuple(replace(access, action=action) for action in actions or (Action.SELECT,))
    return replace(make_policy_request(principal=who), accesses=asked)


def test_the_example_of_the_page_keeps_tenants_apart(tenants: Opa, make: Callable[..., OpaEnforcer]) -> None:
    enforcer = make(tenants, authz_path="sqe/authz")
    enforcer.check()
    (alice,) = enforcer.decide(tickets(of_tenant("acme"))).decisions
    assert [one.text for one in alice.row_filters] == ["tenant_id = 'acme'"]
    assert alice.hidden_columns == {"internal_score"}
    assert [(mask.column, mask.mask) for mask in alice.column_masks] == [("customer_email", ConstantMask(value="***"))]
    (carol,) = enforcer.decide(tickets(of_tenant("acme", "support_lead"))).decisions
    assert (carol.column_masks, carol.row_filters) == ((), alice.row_filters)
    operator = enforcer.decide(tickets(of_tenant(None, "operator"), *Action)).decisions
    assert {(one.effect, one.restricted) for one in operator} == {(Effect.ALLOW, False)}


@pytest.mark.rule("POL-7")
@pytest.mark.parametrize("tenant", [None, "", "acme' OR 'a' = 'a", "acme\\'", "Acme", ["acme"], 5, "a\nb", "x" * 41])
def test_the_example_of_the_page_refuses_odd_claims(
    tenants: Opa, make: Callable[..., OpaEnforcer], tenant: object
) -> None:
    (decision,) = make(tenants, authz_path="sqe/authz").decide(tickets(of_tenant(tenant))).decisions
    assert decision.effect is Effect.DENY


def test_the_example_of_the_page_lets_tenants_read_only(tenants: Opa, make: Callable[..., OpaEnforcer]) -> None:
    enforcer = make(tenants, authz_path="sqe/authz")
    for actions in ([Action.DELETE], [Action.SELECT, Action.UPDATE], [Action.DROP], [Action.CREATE]):
        decisions = enforcer.decide(tickets(of_tenant("acme"), *actions)).decisions
        assert {decision.effect for decision in decisions} == {Effect.DENY}
    assert enforcer.decide(tickets(of_tenant("acme"), schema="ops")).decisions[0].effect is Effect.DENY
    table = ObjectName(catalog="lake", namespace=("app",), name="tickets")
    other = replace(table, namespace=("ops",))
    names = (table, table.schema, NamespaceName(catalog="lake", namespace=()), other, other.schema)
    context = make_policy_request().context
    shown = enforcer.visible(VisibilityRequest(principal=of_tenant("acme"), names=names, context=context))
    assert list(shown) == [Effect.ALLOW] * 3 + [Effect.DENY] * 2


@pytest.fixture(scope="module")
def example(engine: SparkEngine, tenants: Opa, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    """The page's example: its policy, its file, its rows."""
    folder = tmp_path_factory.mktemp("tenants")
    (toml,) = re.findall(r'^```toml title="sqe.toml"\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    file = folder / "sqe.toml"
    file.write_text(toml.replace("/srv/lake", f"{folder}/lake").replace("http://localhost:8181", tenants.url))
    server = Users(compose(load(file, environ={}), engine=engine))
    operator = of_tenant(None, "operator")
    for sql in (
        "CREATE SCHEMA app",
        "CREATE SCHEMA ops",
        "CREATE TABLE app.tickets"
        " (id integer, tenant_id varchar, customer_email varchar, body varchar, internal_score integer)",
        "INSERT INTO app.tickets VALUES (1, 'acme', 'kim@acme.example', 'the export hangs', 7),"
        " (2, 'acme', 'lee@acme.example', 'wrong total', 3), (3, 'globex', 'max@globex.example', 'cannot log in', 9)",
    ):
        server.run(operator, sql)
    yield server
    server.close()


@pytest.mark.rule("TEST-1")
def test_the_example_of_the_page_shows_what_it_says(example: Users) -> None:
    alice, carol = of_tenant("acme"), of_tenant("acme", "support_lead")
    assert example.run(alice, "SELECT * FROM app.tickets ORDER BY id") == [
        (1, "acme", "***", "the export hangs"),
        (2, "acme", "***", "wrong total"),
    ]
    assert example.run(alice, "SELECT count(*) FROM app.tickets") == [(2,)]
    assert example.run(alice, "SELECT id FROM app.tickets WHERE customer_email LIKE 'kim%'") == []
    assert example.run(of_tenant("globex"), "SELECT id FROM app.tickets") == [(3,)]
    assert example.run(carol, "SELECT customer_email FROM app.tickets WHERE id < 9 ORDER BY 1") == [
        ("kim@acme.example",),
        ("lee@acme.example",),
    ]
    assert example.run(of_tenant(None, "operator"), "SELECT sum(internal_score) FROM app.tickets") == [(19,)]
    for who in (alice, carol):
        missing = example.refusal(who, "SELECT no_such_score FROM app.tickets").message
        assert example.refusal(who, "SELECT internal_score FROM app.tickets").message == missing.replace(
            "no_such_score", "internal_score"
        )
        for sql in ("DELETE FROM app.tickets", "UPDATE app.tickets SET body = ''", "DROP TABLE app.tickets"):
            example.refusal(who, sql)
        assert ("ops",) not in example.run(who, "SHOW SCHEMAS")
        assert ("app",) in example.run(who, "SHOW SCHEMAS")
    for tenant in (None, "acme' OR 'a' = 'a"):
        example.refusal(of_tenant(tenant), "SELECT * FROM app.tickets")


@pytest.fixture(scope="module")
def server(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Users, Opa, Path]]:
    """SQE from a file, with an OPA of its own that a test may stop."""
    folder = tmp_path_factory.mktemp("opa-server")
    with running_opa(REGO / "authz.rego") as opa:
        file = folder / "sqe.toml"
        file.write_text(
            f"""
            [auth]
            admin_roles = ["admin"]
            [[auth.providers]]
            type = "anonymous"
            [catalogs.lake]
            type = "sqlite"
            directory = "{folder}/lake"
            [policy]
            engine = "opa"
            [policy.opa]
            url = "{opa.url}"
            authz_path = "sqe/authz"
            timeout_secs = 5
            cache_ttl_secs = 0
            max_retries = 0
            """
        )
        server = Users(compose(load(file, environ={}), engine=engine))
        for sql in (
            "CREATE TABLE people (id integer, name varchar, salary_canary integer)",
            "INSERT INTO people VALUES (1, 'ann', 424242), (2, 'bob', 434343)",
            "CREATE TABLE vault_canary (id integer)",
        ):
            server.run(ADMIN, sql)
        opa.put("sqe/grants/lake.default.people/analyst", {"columns": ["id", "name"]})
        yield server, opa, file


@pytest.mark.rule("TEST-1")
def test_the_engine_of_the_file_decides(server: tuple[Users, Opa, Path]) -> None:
    sqe, _, _ = server
    assert sqe.run(ADMIN, "SELECT * FROM people ORDER BY id") == [(1, "ann", 424242), (2, "bob", 434343)]
    assert sqe.run(ANALYST, "SELECT * FROM people ORDER BY id") == [(1, "ann"), (2, "bob")]
    missing = sqe.refusal(ANALYST, "SELECT no_such_column FROM people").message
    assert sqe.refusal(ANALYST, "SELECT salary_canary FROM people").message == missing.replace(
        "no_such_column", "salary_canary"
    )
    nothing = sqe.refusal(ANALYST, "SELECT * FROM nothing_here").message
    assert sqe.refusal(ANALYST, "SELECT * FROM vault_canary").message == nothing.replace("nothing_here", "vault_canary")
    assert sqe.refusal(STRANGER, "SELECT * FROM people").message == nothing.replace("nothing_here", "people")


@pytest.mark.rule("TEST-1")
def test_listings_and_writes_follow_the_same_policy(server: tuple[Users, Opa, Path]) -> None:
    sqe, _, _ = server
    assert sqe.run(ADMIN, "SHOW TABLES") == [("people",), ("vault_canary",)]
    assert sqe.run(ANALYST, "SHOW TABLES") == [("people",)]
    assert sqe.run(STRANGER, "SHOW CATALOGS") == []
    described = {row[0] for row in sqe.run(ANALYST, "DESCRIBE people")}
    assert described == {"id", "name"}
    for sql in (
        "INSERT INTO people VALUES (3, 'eve', 1)",
        "DELETE FROM people",
        "UPDATE people SET name = 'x'",
        "DROP TABLE people",
        "ALTER TABLE people ADD COLUMN x integer",
        "CREATE TABLE mine AS SELECT * FROM people",
    ):
        with pytest.raises(SqeError):
            sqe.run(ANALYST, sql)
    assert sqe.run(ADMIN, "SELECT count(*) FROM people") == [(2,)]


@pytest.mark.rule("POL-9")
def test_a_grant_shows_on_the_next_statement(server: tuple[Users, Opa, Path]) -> None:
    sqe, opa, _ = server
    assert "vault_canary" in sqe.refusal(STRANGER, "SELECT * FROM vault_canary").message
    opa.put("sqe/grants/lake.default.vault_canary/intern", {})
    assert sqe.run(STRANGER, "SELECT count(*) FROM vault_canary") == [(0,)]


@pytest.mark.rule("POL-15")
def test_grants_of_sql_are_documents_of_opa(server: tuple[Users, Opa, Path]) -> None:
    sqe, opa, _ = server
    auditor = make_identity("ada", roles=["auditor"])
    sqe.refusal(auditor, "SELECT * FROM people")
    sqe.run(ADMIN, "GRANT SELECT (id, name MASKED WITH 'REDACT') ROWS WHERE id < 2 ON people TO ROLE auditor")
    document = opa.get("sqe/grants/lake.default.people/auditor")
    assert (document["columns"], document["masks"]) == (["id", "name"], {"name": "redact:***"})
    assert document["granted_by"] == "root"
    assert sqe.run(auditor, "SELECT * FROM people") == [(1, "***")]
    for sql in ("GRANT INSERT ON people TO ROLE auditor", "GRANT SELECT ON people TO USER ada"):
        assert "opa stores" in sqe.refusal(ADMIN, sql).message
    sqe.refusal(auditor, "GRANT SELECT ON people TO ROLE auditor")
    sqe.run(ADMIN, "REVOKE SELECT ON people FROM ROLE auditor")
    sqe.refusal(auditor, "SELECT * FROM people")
    assert opa.get("sqe/grants/lake.default.people/auditor") is None


@pytest.mark.rule("POL-2", "TEST-9")
def test_without_opa_nobody_reads_anything(engine: SparkEngine, server: tuple[Users, Opa, Path]) -> None:
    """Last in the file: it stops the server's OPA."""
    sqe, opa, file = server
    opa.stop()
    for who in (ADMIN, ANALYST):
        for sql in ("SELECT * FROM people", "SHOW TABLES", "INSERT INTO people VALUES (3, 'eve', 1)"):
            with pytest.raises(ExternalError) as raised:
                sqe.run(who, sql)
            assert opa.url not in f"{raised.value}{raised.value.hint}"
    with pytest.raises(StartupError, match="cannot be reached"):
        compose(load(file, environ={}), engine=engine)
