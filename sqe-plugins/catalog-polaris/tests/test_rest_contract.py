"""The REST catalogs keep the contract of catalogs."""

from __future__ import annotations

from typing import Any

import pytest
from contract_variants import given

from sqe_catalog_polaris.config import PolarisConfig, RestAuth, RestConfig, UnityConfig
from sqe_catalog_polaris.plugin import FACTORIES
from sqe_core.spi import AttachRequest, AttachSecret, Secret
from sqe_core.testing import CatalogContract, PluginContract

USER = frozenset({"attach", "views", "writes", "per_user", "quick_metadata", "discovery"})
SHARED = USER - {"per_user"}


class TestPlugin(PluginContract):
    plugin_name = "catalog-polaris"


class TestRest(CatalogContract):
    capabilities = USER
    kind = "rest"

    factory = given(lambda self: FACTORIES[self.kind])
    keys = given(lambda catalog: {"catalog_url": catalog.url, "warehouse": "lake"})
    config = given(lambda factory, keys: factory.config_type(**keys))
    attach_request = given(
        lambda catalog: AttachRequest(name="partner", location=catalog.url, options={"warehouse": "lake"})
    )


class TestIcebergRest(TestRest):
    kind = "iceberg_rest"


class TestPolaris(TestRest):
    kind = "polaris"

    @pytest.fixture
    def config(self, catalog: Any, keys: dict[str, Any]) -> Any:
        catalog.realm = "east"
        return PolarisConfig(**keys, realm="east")


class TestNessie(TestRest):
    kind = "nessie"


class TestUnity(TestRest):
    capabilities = USER - {"views", "writes"}
    kind = "unity"

    @pytest.fixture
    def config(self, catalog: Any, keys: dict[str, Any]) -> Any:
        catalog.config = {"defaults": {}, "overrides": {"prefix": "lake"}}
        return UnityConfig(**keys)


class TestHorizon(TestRest):
    kind = "horizon"


class TestServicePrincipal(TestRest):
    capabilities = SHARED

    @pytest.fixture
    def config(self, catalog: Any, keys: dict[str, Any]) -> Any:
        secret = Secret("s3cr3t")
        auth = RestAuth(
            type="client_credentials", token_endpoint=catalog.token_endpoint, client_id="root", client_secret=secret
        )
        return RestConfig(**keys, auth=auth)


class TestTokenOfEverybody(TestRest):
    capabilities = SHARED

    config = given(lambda keys: RestConfig(**keys, auth=RestAuth(type="static", token=Secret("service-token"))))

    @pytest.fixture
    def attach_request(self, catalog: Any) -> AttachRequest:
        secret = AttachSecret(name="s", type="bearer", values={"token": Secret("service-token")})
        return AttachRequest(name="partner", location=catalog.url, options={"warehouse": "lake"}, secret=secret)


class TestNobodyAsks(TestRest):
    capabilities = SHARED

    @pytest.fixture
    def config(self, catalog: Any, keys: dict[str, Any]) -> Any:
        catalog.anonymous = True
        return RestConfig(**keys, auth=RestAuth(type="anonymous"))


class TestExchange(TestRest):
    @pytest.fixture
    def config(self, catalog: Any, keys: dict[str, Any]) -> Any:
        auth = RestAuth(
            type="token_exchange", token_endpoint=catalog.token_endpoint, client_id="sqe", audience="catalog"
        )
        return RestConfig(**keys, auth=auth)
