"""What this distribution brings beside catalogs: grants at Polaris."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_catalog_polaris.config import PolarisGrantsConfig
from sqe_core.spi import GrantStore, GrantStoreContext, GrantStoreFactory, SqePlugin, StartupContext, hookimpl


class PolarisGrantsFactory(GrantStoreFactory[PolarisGrantsConfig]):
    kind = "polaris"
    config_type = PolarisGrantsConfig

    def create(self, name: str, config: PolarisGrantsConfig, context: GrantStoreContext) -> GrantStore:
        from sqe_catalog_polaris.grants import (
            PolarisGrants,
        )  # `sqe config check` needs the keys and not the HTTP client

        return PolarisGrants(config, context)


class PolarisGrantsPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_grant_stores(self, context: StartupContext) -> Sequence[GrantStoreFactory[Any]]:
        return (PolarisGrantsFactory(),)
