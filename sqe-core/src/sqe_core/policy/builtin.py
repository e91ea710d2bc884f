"""The two policy engines that let everything pass: `allow_all` for embedded mode, `passthrough` for servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqe_core.spi.errors import ConfigError
from sqe_core.spi.factory import NoConfig, PluginContext
from sqe_core.spi.policy import (
    Decision,
    Effect,
    PolicyEnforcer,
    PolicyEnforcerFactory,
    PolicyRequest,
    PolicyResponse,
    VisibilityRequest,
)


class AllowAllEnforcer(PolicyEnforcer):
    """Allows every access, without restrictions."""

    enforces = False

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        """Allow."""
        allowed = Decision(effect=Effect.ALLOW, reason="no policies are enforced", ttl_secs=0)
        return PolicyResponse(decisions=tuple(allowed for _ in request.accesses))

    def visible(self, request: VisibilityRequest) -> Sequence[Effect]:
        """Show everything."""
        return [Effect.ALLOW] * len(request.names)


class AllowAllFactory(PolicyEnforcerFactory[NoConfig]):
    """Makes the engine of embedded mode, where the one user owns process and files."""

    kind = "allow_all"
    config_type = NoConfig

    def create(self, name: str, config: NoConfig, context: PluginContext) -> AllowAllEnforcer:
        """Make an engine; a server that wants this has to say `passthrough`."""
        if context.production_mode:
            raise ConfigError((f"policy engine '{name}': allow_all is for embedded mode, not for production_mode",))
        return AllowAllEnforcer()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassthroughConfig:
    """The keys of `[policy]` that passthrough needs."""

    i_understand_no_enforcement: bool = field(
        default=False, metadata={"doc": "has to be true: the catalog alone decides, nothing is filtered or masked"}
    )


class PassthroughFactory(PolicyEnforcerFactory[PassthroughConfig]):
    """Makes the engine of `[policy] engine = "passthrough"` (POL-1)."""

    kind = "passthrough"
    config_type = PassthroughConfig

    def create(self, name: str, config: PassthroughConfig, context: PluginContext) -> AllowAllEnforcer:
        """Make an engine, if that is really wanted."""
        if config.i_understand_no_enforcement is not True:
            raise ConfigError(
                (
                    "policy engine 'passthrough' enforces nothing;"
                    " if that is meant, set [policy] i_understand_no_enforcement = true",
                )
            )
        if context.production_mode:
            raise ConfigError(("policy engine 'passthrough' enforces nothing and is refused in production_mode",))
        return AllowAllEnforcer()
