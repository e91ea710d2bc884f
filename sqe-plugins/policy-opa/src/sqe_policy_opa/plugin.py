"""What this distribution brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_core.spi import (
    PluginContext,
    PolicyEnforcer,
    PolicyEnforcerFactory,
    SqePlugin,
    StartupContext,
    hookimpl,
)
from sqe_policy_opa.config import OpaConfig


class OpaFactory(PolicyEnforcerFactory[OpaConfig]):
    kind = "opa"
    config_type = OpaConfig

    def create(self, name: str, config: OpaConfig, context: PluginContext) -> PolicyEnforcer:
        """Make an engine that has just answered (POL-1)."""
        from sqe_policy_opa.enforcer import OpaEnforcer  # `sqe config check` needs the keys and not the HTTP client

        enforcer = OpaEnforcer(config, context)
        try:
            enforcer.check()
        except BaseException:
            enforcer.close()
            raise
        return enforcer


class OpaPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_policy_enforcers(self, context: StartupContext) -> Sequence[PolicyEnforcerFactory[Any]]:
        return (OpaFactory(),)
