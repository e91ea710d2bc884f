"""Cedar keeps the contract of policy engines."""

from __future__ import annotations

from typing import Any

import pytest
from contract_variants import given

from sqe_core.spi import ConfigError, ObjectName, PluginContext, PolicyEnforcer
from sqe_core.testing import PluginContract, PolicyEnforcerContract, make_policy_request
from sqe_policy_cedar.config import CedarConfig
from sqe_policy_cedar.plugin import CedarFactory

POLICIES = """
@id("people")
permit(principal, action in [Action::"read", Action::"write", Action::"manage"], resource in Table::"lake.hr.people");
@id("places") permit(principal, action == Action::"describe", resource);
@id("secrets") forbid(principal, action, resource in Table::"lake.hr.secrets");
@id("clients") permit(principal, action in Action::"read", resource in Table::"lake.hr.clients");
@id("no names") forbid(principal, action == Action::"read_column", resource == Column::"lake.hr.clients.name");
@id("hashed ids") @mask("hash")
forbid(principal, action == Action::"read_column_clear", resource == Column::"lake.hr.clients.id");
"""


def table(name: str) -> ObjectName:
    return ObjectName(catalog="lake", namespace=("hr",), name=name)


class TestPlugin(PluginContract):
    plugin_name = "policy-cedar"


class TestCedar(PolicyEnforcerContract):
    capabilities = frozenset({"denies", "restricts", "remote"})

    factory = given(CedarFactory)

    @pytest.fixture
    def config(self, cedar: Any) -> CedarConfig:
        cedar.write(POLICIES)
        return cedar.config()

    allowed = given(lambda: make_policy_request(table("people")))
    denied = given(lambda: make_policy_request(table("secrets")))
    restricted = given(lambda: make_policy_request(table("clients")))

    @pytest.fixture
    def broken(self, factory: CedarFactory, config: CedarConfig, cedar: Any) -> PolicyEnforcer:
        enforcer = factory.create("broken", config, PluginContext())
        cedar.write("permit(principal, action")
        enforcer.flush()
        return enforcer


@pytest.mark.rule("POL-1")
def test_production_wants_to_know_whose_names_they_are(cedar: Any) -> None:
    cedar.write(POLICIES)
    production = PluginContext(production_mode=True)

    with pytest.raises(ConfigError, match="issuer"):
        CedarFactory().create("cedar", cedar.config(), production)
    for settings in ({"issuer": "https://idp"}, {"principal": "issuer_subject"}):
        cedar.settings = settings
        CedarFactory().create("cedar", cedar.config(), production)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "http://c", "policies_path": "/p"}, "asks no Cedar service; url cannot be used"),
        ({"policy_store_id": "s", "policies_path": "/p"}, "policy_store_id cannot be used"),
        ({}, "policies_path is missing"),
        ({"policies_path": "/p", "claims": ("dept",)}, "claims need a schema_path"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CedarConfig(**settings)
