"""The two policy engines that let everything pass: `allow_all` for embedded mode, `passthrough` for servers."""

from __future__ import annotations

from collections.abc import Sequence

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
        allowed = Decision(effect=Effect.ALLOW, reason="no policies are enforced", ttl_secs=0)
        return PolicyResponse(decisions=tuple(allowed for _ in request.accesses))

    def visible(self, request: VisibilityRequest) -> Sequence[Effect]:
        return [Effect.ALLOW] * len(request.names)


class AllowAllFactory(PolicyEnforcerFactory[NoConfig]):
    """Makes the engine of embedded mode, where the one user owns process and files."""

    kind = "allow_all"
    config_type = NoConfig

    def create(self, name: str, config: NoConfig, context: PluginContext) -> AllowAllEnforcer:
        """Make an engine; whoever composes a server asks whether that is meant (POL-1)."""
        return AllowAllEnforcer()


class PassthroughFactory(AllowAllFactory):
    """Makes the engine of `[policy] engine = "passthrough"`."""

    kind = "passthrough"
