"""OPA keeps the contract of policy engines, in both forms of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from contract_variants import given

from sqe_core.spi import Grantee, ObjectName, PluginContext, PolicyEnforcer
from sqe_core.testing import PluginContract, PolicyEnforcerContract, make_policy_request
from sqe_policy_opa.config import OpaConfig
from sqe_policy_opa.plugin import OpaFactory


def table(name: str) -> ObjectName:
    return ObjectName(catalog="lake", namespace=("hr",), name=name)


class TestPlugin(PluginContract):
    plugin_name = "policy-opa"


class TestOneTablePerRequest(PolicyEnforcerContract):
    capabilities = frozenset({"denies", "restricts", "remote", "grants"})

    factory = given(OpaFactory)
    config = given(lambda opa: opa.config())
    allowed = given(lambda: make_policy_request(table("people")))
    denied = given(lambda: make_policy_request(table("secrets")))
    restricted = given(lambda: make_policy_request(table("clients")))

    @pytest.fixture
    def broken(self, factory: OpaFactory, config: OpaConfig, opa: Any) -> Iterator[PolicyEnforcer]:
        enforcer = factory.create("broken", config, PluginContext())
        opa.stop()
        yield enforcer
        enforcer.close()

    grantee = given(lambda: Grantee(type="role", name="analyst"))


class TestAllTablesAtOnce(TestOneTablePerRequest):
    config = given(lambda opa: opa.config(authz_path="sqe/authz"))
