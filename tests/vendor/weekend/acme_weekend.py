"""A policy engine for `[policy] engine = ["grants", "weekend"]`: nobody works on closed days.

It only objects: on open days it abstains, so that somebody else has to allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from sqe_core.spi import (
    Decision,
    PluginContext,
    PolicyEnforcer,
    PolicyEnforcerFactory,
    PolicyRequest,
    PolicyResponse,
    SqePlugin,
    StartupContext,
    hookimpl,
    setting,
)

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekendConfig:
    """`[policy.weekend]`."""

    closed: tuple[Day, ...] = setting(("saturday", "sunday"), "the days without work, in UTC")
    on_call: tuple[str, ...] = setting((), "roles that may work on them")


class Weekend(PolicyEnforcer):
    """Objects on closed days."""

    def __init__(self, config: WeekendConfig) -> None:
        self._closed = {get_args(Day).index(day) for day in config.closed}
        self._on_call = frozenset(config.on_call)

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        """Give every access the same answer; it holds until midnight."""
        now = request.context.now
        objects = now.weekday() in self._closed and not request.principal.roles & self._on_call
        until_midnight = int((_next_day(now) - now).total_seconds())
        decision = Decision.deny("closed today") if objects else Decision.abstain()
        lasting = Decision(effect=decision.effect, reason=decision.reason, ttl_secs=until_midnight)
        return PolicyResponse(decisions=tuple(lasting for _ in request.accesses))


def _next_day(now: datetime) -> datetime:
    return (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)


class WeekendFactory(PolicyEnforcerFactory[WeekendConfig]):
    """Makes the engine `weekend`."""

    kind = "weekend"
    config_type = WeekendConfig

    def create(self, name: str, config: WeekendConfig, context: PluginContext) -> Weekend:
        """Make it."""
        return Weekend(config)


class WeekendPlugin(SqePlugin):
    """Registers it."""

    @hookimpl
    def sqe_provide_policy_enforcers(self, context: StartupContext) -> Sequence[PolicyEnforcerFactory[Any]]:
        """Contribute `weekend`."""
        return (WeekendFactory(),)
