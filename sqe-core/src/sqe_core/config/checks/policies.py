"""Policy engines that would not decide anything, or cannot be asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.origin import Fault, unknown_key
from sqe_core.config.sections.policy import AccessControlConfig, PolicyConfig
from sqe_core.config.sections.root import SqeConfig


def check_engine_names(config: SqeConfig) -> Iterator[Fault]:
    """At least one engine, none twice, no key that is none."""
    policy = config.policy
    if not policy.engine:
        yield Fault(("policy", "engine"), "is empty; without an engine nothing is decided")
    for name in sorted({name for name in policy.engine if policy.engine.count(name) > 1}):
        yield Fault(("policy", "engine"), f'names "{name}" twice')
    for key, node in policy.options.entries.items():
        if not isinstance(node.value, dict):
            known = [field.name for field in fields(PolicyConfig) if field.name != "options"]
            yield Fault(("policy", key), unknown_key(key, known), node.origin)


def check_metadata_cache_for_policies(config: SqeConfig) -> Iterator[Fault]:
    """Deciding for a table needs its columns more than once per statement."""
    if config.policy.i_understand_no_enforcement:
        return  # nothing else than `passthrough` wants that
    for path, catalog in configured_catalogs(config):
        if catalog.metadata_cache_ttl_secs < 1:
            yield Fault(
                (*path, "metadata_cache_ttl_secs"), "must be at least 1 with a policy engine other than `passthrough`"
            )


def check_grant_store(config: SqeConfig) -> Iterator[Fault]:
    """Where GRANT writes can be reached."""
    control = config.access_control
    known = [field.name for field in fields(AccessControlConfig) if field.name != "options"]
    for key, node in control.options.entries.items():
        if key != control.backend or key == "none" or not isinstance(node.value, dict):
            yield Fault(("access_control", key), unknown_key(key, known), node.origin)
    if control.client_id and not control.client_secret:
        yield Fault(("access_control", "client_secret"), "is missing; `client_id` needs it")
    if control.client_secret and not control.client_id:
        yield Fault(("access_control", "client_id"), "is missing; `client_secret` needs it")
