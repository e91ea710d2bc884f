"""OPA keeps the contract of policy engines, in both forms of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sqe_core.spi import Grantee, ObjectName, PluginContext, PolicyEnforcer, PolicyRequest
from sqe_core.testing import PluginContract, PolicyEnforcerContract, make_policy_request
from sqe_policy_opa.config import OpaConfig
from sqe_policy_opa.plugin import OpaFactory


def table(name: str) -> ObjectName:
    return ObjectName(catalog="lake", namespace=("hr",), name=name)


class TestPlugin(PluginContract):
    plugin_name = "policy-opa"


class TestOneTablePerRequest(PolicyEnforcerContract):
    capabilities = frozenset({"denies", "restricts", "remote", "grants"})

    @pytest.fixture
    def factory(self) -> OpaFactory:
        return OpaFactory()

    @pytest.fixture
    def config(self, opa: Any) -> OpaConfig:
        config: OpaConfig = opa.config()
        return config

    @pytest.fixture
    def allowed(self) -> PolicyRequest:
        return make_policy_request(table("people"))

    @pytest.fixture
    def denied(self) -> PolicyRequest:
        return make_policy_request(table("secrets"))

    @pytest.fixture
    def restricted(self) -> PolicyRequest:
        return make_policy_request(table("clients"))

    @pytest.fixture
    def broken(self, factory: OpaFactory, config: OpaConfig, opa: Any) -> Iterator[PolicyEnforcer]:
        enforcer = factory.create("broken", config, PluginContext())
        opa.stop()
        yield enforcer
        enforcer.close()

    @pytest.fixture
    def grantee(self) -> Grantee:
        return Grantee(type="role", name="analyst")


class TestAllTablesAtOnce(TestOneTablePerRequest):
    @pytest.fixture
    def config(self, opa: Any) -> OpaConfig:
        config: OpaConfig = opa.config(authz_path="sqe/authz")
        return config
