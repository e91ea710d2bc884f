"""What this distribution brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_core.spi import (
    ConfigError,
    PluginContext,
    PolicyEnforcer,
    PolicyEnforcerFactory,
    SqePlugin,
    StartupContext,
    hookimpl,
)
from sqe_policy_cedar.config import CedarConfig


class CedarFactory(PolicyEnforcerFactory[CedarConfig]):
    kind = "cedar"
    config_type = CedarConfig

    def create(self, name: str, config: CedarConfig, context: PluginContext) -> PolicyEnforcer:
        """Make an engine whose policies have been read and checked (POL-1)."""
        from sqe_policy_cedar.enforcer import CedarEnforcer  # `sqe config check` needs the keys and not Cedar

        if context.production_mode and config.issuer is None and not config.names_issuers:
            raise ConfigError(
                (
                    f'policy.cedar: principal = "{config.principal}" tells users of two issuers apart only with'
                    ' `issuer`; set it, or principal = "issuer_subject"',
                )
            )
        return CedarEnforcer(config)


class CedarPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_policy_enforcers(self, context: StartupContext) -> Sequence[PolicyEnforcerFactory[Any]]:
        return (CedarFactory(),)
