"""Maintenance that would never run, run twice, or run as somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.origin import Fault
from sqe_core.config.sections.root import SqeConfig

_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_CRON_ITEM = re.compile(r"(\*|(\d+)(?:-(\d+))?)(?:/(\d+))?")


def check_scheduler(config: SqeConfig) -> Iterator[Fault]:
    """A scheduler that is on has a mode that does something, and a schedule that can be read."""
    maintenance = config.maintenance
    path = ("maintenance", "scheduler")
    if maintenance.scheduler.enabled and maintenance.mode == "off":
        yield Fault((*path, "enabled"), 'does nothing while maintenance.mode is "off"')
    if not is_cron(maintenance.scheduler.schedule):
        yield Fault((*path, "schedule"), 'expected five cron fields such as "0 2 * * *"')
    if maintenance.scheduler.lease_ttl_secs <= maintenance.scheduler.tick_secs:
        yield Fault((*path, "lease_ttl_secs"), "must be longer than tick_secs, else a lease ends before it is renewed")


def is_cron(schedule: str) -> bool:
    """Whether a text is five cron fields of numbers, ranges, lists and steps."""
    parts = schedule.split()
    return len(parts) == len(_CRON_RANGES) and all(
        _is_cron_field(part, low, high) for part, (low, high) in zip(parts, _CRON_RANGES, strict=True)
    )


def _is_cron_field(text: str, low: int, high: int) -> bool:
    for item in text.split(","):
        match = _CRON_ITEM.fullmatch(item)
        if match is None or match[4] == "0":
            return False
        numbers = [int(number) for number in (match[2], match[3]) if number]
        if any(not low <= number <= high for number in numbers) or numbers != sorted(numbers):
            return False
    return True


def check_lease(config: SqeConfig) -> Iterator[Fault]:
    """Without a lease somebody promises that there is one scheduler only."""
    scheduler = config.maintenance.scheduler
    if scheduler.enabled and scheduler.lease == "none" and not scheduler.single_scheduler_acknowledged:
        yield Fault(
            ("maintenance", "scheduler", "lease"), 'is "none"; confirm it with single_scheduler_acknowledged = true'
        )


def check_principal(config: SqeConfig) -> Iterator[Fault]:
    """Whoever rewrites tables by itself is a principal of its own."""
    principal = config.maintenance.principal
    path = ("maintenance", "principal")
    if config.maintenance.mode == "active":
        for key in ("token_endpoint", "client_id", "client_secret"):
            if not getattr(principal, key):
                yield Fault((*path, key), 'is missing; mode "active" needs it')
    if principal.client_id and principal.client_id in _other_clients(config):
        yield Fault((*path, "client_id"), "is used elsewhere in this file; maintenance needs a principal of its own")


def _other_clients(config: SqeConfig) -> set[object]:
    clients: set[object] = set()
    for _, catalog in configured_catalogs(config):
        login = catalog.options.get("auth")
        clients.add(login.get("client_id") if isinstance(login, dict) else None)
    clients.add(config.access_control.client_id)
    if config.auth is not None:
        clients.add(config.auth.client_id)
        clients.add(config.auth.external.client_id if config.auth.external else None)
        clients.update(provider.options.get("client_id") for provider in config.auth.providers)
    return clients


def check_distribution(config: SqeConfig) -> Iterator[Fault]:
    """A group is given up for silence before it is given up for time."""
    distribution = config.maintenance.distribution
    if distribution.group_heartbeat_timeout_secs >= distribution.group_timeout_secs:
        yield Fault(
            ("maintenance", "distribution", "group_heartbeat_timeout_secs"), "must be shorter than group_timeout_secs"
        )
