"""`[maintenance]`: compaction that SQE does by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqe_core.config.schema import HTTP, secret, section, size
from sqe_core.spi.factory import setting
from sqe_core.spi.identity import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalConfig:
    """`[maintenance.principal]`: the only identity in SQE that is no user; a principal of its own."""

    token_endpoint: str | None = setting(None, "Where its token is from.", url=HTTP)
    client_id: str | None = setting(None, "Its client id.")
    client_secret: Secret | None = secret("Its secret.")
    scope: str | None = setting(None, "Scope of the token.")
    user_id: str | None = setting(None, "Name under which policies and audit know it.")
    roles: tuple[str, ...] = setting((), "Its roles.")
    refresh_skew_secs: int = setting(60, "How long before its end the token is renewed.", minimum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    enabled: bool = setting(False, "Run by schedule.")
    tick_secs: int = setting(60, "Time between two looks at the schedule.", minimum=1)
    schedule: str = setting("0 2 * * *", "Five cron fields, UTC.")
    jitter_secs: int = setting(900, "Most that a start is put off.", minimum=0)
    max_concurrent_jobs: int = setting(1, "Jobs at a time.", minimum=1)
    lease: Literal["catalog", "none"] = setting(
        "catalog",
        "Who may run, when several servers look at one catalog.",
        refused={"kubernetes": "leases of Kubernetes are not offered; use `catalog`"},
    )
    lease_ttl_secs: int = setting(300, "How long a lease holds.", minimum=1)
    state_table: str = setting("sqe_system.maintenance_log", "Table of leases and results.")
    single_scheduler_acknowledged: bool = setting(False, "Required with lease `none`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionConfig:
    target_file_size_bytes: int = size(536_870_912, "Size of the files that are written.", above=0)
    min_input_files: int = setting(5, "Files from which a group is rewritten.", minimum=1)
    delete_file_threshold: int = setting(2, "Delete files from which a data file is rewritten.", minimum=1)
    strategy: Literal["binpack", "sort", "zorder"] = setting("binpack", "How rows are arranged.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionConfig:
    mode: Literal["auto", "local", "require"] = setting("auto", "Where groups are rewritten.")
    min_workers: int = setting(2, "Workers from which work is distributed.", minimum=1)
    max_inflight_groups_per_worker: int = setting(1, "Groups of one worker at a time.", minimum=1)
    group_attempts: int = setting(2, "Attempts per group.", minimum=1)
    group_timeout_secs: int = setting(3600, "Longest rewrite of a group.", minimum=1)
    group_heartbeat_timeout_secs: int = setting(120, "Silence after which a group is given up.", minimum=1)
    partial_progress: bool = setting(False, "Commit per batch, not once.")
    partial_progress_batch: int = setting(10, "Groups per commit.", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceConfig:
    mode: Literal["off", "advisory", "active"] = setting("off", "`advisory` measures, `active` rewrites.")
    principal: PrincipalConfig = section(PrincipalConfig)
    scheduler: SchedulerConfig = section(SchedulerConfig)
    compaction: CompactionConfig = section(CompactionConfig)
    distribution: DistributionConfig = section(DistributionConfig)
