"""Policy engines that would not decide anything, or cannot be asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.kinds import POLICY_ENGINES
from sqe_core.config.origin import Fault, unknown_key
from sqe_core.config.sections.policy import AccessControlConfig, PolicyConfig
from sqe_core.config.sections.root import SqeConfig

PASSTHROUGH = "passthrough"
EMBEDDED_ONLY = "allow_all"


def check_engine_names(config: SqeConfig) -> Iterator[Fault]:
    """At least one engine, none twice, no engine beside `passthrough`, no table that belongs to none."""
    policy = config.policy
    if not policy.engine:
        yield Fault(("policy", "engine"), 'is empty; without an engine nothing is decided (write "passthrough")')
    if EMBEDDED_ONLY in policy.engine:
        # It asks for no confirmation, because in embedded mode the one user owns the files.
        yield Fault(("policy", "engine"), f"names `{EMBEDDED_ONLY}`, which is for embedded mode; see `passthrough`")
    for name in sorted({name for name in policy.engine if policy.engine.count(name) > 1}):
        yield Fault(("policy", "engine"), f'names "{name}" twice')
    if PASSTHROUGH in policy.engine and len(set(policy.engine)) > 1:
        yield Fault(("policy", "engine"), "names `passthrough` beside an engine; it would decide nothing")
    known = [field.name for field in fields(PolicyConfig) if field.name != "options"]
    for key, node in policy.options.entries.items():
        # The table of an engine that a plugin brings stands under that engine's name; its keys are the plugin's.
        if key not in {*policy.engine, *POLICY_ENGINES} or not isinstance(node.value, dict):
            yield Fault(("policy", key), unknown_key(key, known), node.origin)


def check_passthrough_is_confirmed(config: SqeConfig) -> Iterator[Fault]:
    """Nobody switches enforcement off by accident (POL-1)."""
    policy = config.policy
    if PASSTHROUGH in policy.engines and not policy.i_understand_no_enforcement:
        key = "engine" if policy.enabled else "enabled"
        yield Fault(
            ("policy", key), "means that no policy is enforced; confirm it with i_understand_no_enforcement = true"
        )


def check_engine_settings(config: SqeConfig) -> Iterator[Fault]:
    """Each engine that is used has what it needs."""
    policy = config.policy
    engines = policy.engines
    if "ranger" in engines and not (policy.ranger and policy.ranger.url):
        yield Fault(("policy", "ranger", "url"), "is missing; the engine `ranger` needs it")
    if "ranger" in engines and not (policy.ranger and policy.ranger.admin_password):
        yield Fault(("policy", "ranger", "admin_password"), "is missing; the engine `ranger` needs it")


def check_metadata_cache_for_policies(config: SqeConfig) -> Iterator[Fault]:
    """Deciding for a table needs its columns more than once per statement."""
    if config.policy.engines == (PASSTHROUGH,):
        return
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
    if control.backend in ("polaris", "ranger") and not control.url:
        yield Fault(("access_control", "url"), f'is missing; backend "{control.backend}" needs it')
    if control.backend == "ranger" and not control.ranger.admin_password:
        yield Fault(("access_control", "ranger", "admin_password"), 'is missing; backend "ranger" needs it')
    if control.grant_authority == "ranger-delegate" and control.backend != "ranger":
        yield Fault(("access_control", "grant_authority"), 'needs backend "ranger"')
    if control.client_id and not control.client_secret:
        yield Fault(("access_control", "client_secret"), "is missing; `client_id` needs it")
    if control.client_secret and not control.client_id:
        yield Fault(("access_control", "client_id"), "is missing; `client_secret` needs it")
