"""`[worker]`: a node that runs tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqe_core.config.schema import HTTP, PEER, port, secret, section, size
from sqe_core.config.values import Share
from sqe_core.spi.factory import setting
from sqe_core.spi.identity import Secret

FRACTION = "part of `spark.memory.fraction`"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMemoryConfig:
    """`[worker.memory]`: how a worker divides its limit. Shares are of the limit less `process_headroom`."""

    process_headroom: Share = setting(
        Share(bytes=2 << 30), "Memory that is no budget's.", spark="executor memory overhead"
    )
    scan_budget: Share = setting(Share(percent=20), "Memory of scans.", spark=FRACTION)
    flight_budget: Share = setting(Share(percent=10), "Memory of transfers.", spark=FRACTION)
    operator_budget: Share = setting(Share(percent=40), "Memory of joins, sorts, aggregations.", spark=FRACTION)
    shuffle_memory_budget: Share = setting(Share(percent=20), "Memory of shuffles.", spark=FRACTION)
    spill_io_budget: Share | None = setting(None, "Buffers of spilling; unset = the rest (10%).", spark=FRACTION)
    budget_granularity: int = size(
        "64KB", "Step in which budgets are handed out.", above=0, no_effect="Spark's memory manager has its own pages"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillS3Config:
    """`[worker.spill.s3]`: the second tier of spilling."""

    bucket: str | None = setting(None, "Bucket of spilled segments.")
    prefix: str = setting("sqe-spill/", "Prefix of their keys.")
    region: str | None = setting(None, "Region of the bucket.")
    endpoint: str | None = setting(None, "Address of the store, when it is not AWS.", url=HTTP)
    access_key_id: str | None = setting(None, "Access key.")
    secret_access_key: Secret | None = secret("Secret key.")
    allow_http: bool = setting(False, "Allow an endpoint without TLS.")
    path_style: bool = setting(True, "Bucket in the path, not in the host name.")
    max_objects: int = setting(1_000_000, "Most objects at a time.", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillConfig:
    enabled: bool = setting(True, "Spill when memory is short.", spark="Spark always spills")
    backend: Literal["local", "tiered"] = setting(
        "local",
        "`tiered` moves old segments to S3.",
        refused={"s3": "spilling straight to S3 is not offered; use `tiered`, which spills to disk first"},
    )
    directory: str = setting("", "Where spilled data goes; empty = `worker.spill_dir`.", spark="`spark.local.dir`")
    max_bytes: int = size("1TB", "Most bytes on disk.", above=0)
    min_free_bytes: int = size("1GB", "Free space that spilling leaves.")
    segment_target_size: int = size("256MB", "Size of one segment.", above=0, no_effect="Spark sizes its spill files")
    max_concurrent_writes: int = setting(4, "Segments written at a time.", minimum=1, no_effect="one writer per task")
    max_concurrent_reads: int = setting(4, "Segments read at a time.", minimum=1, no_effect="one reader per task")
    cleanup_on_start: bool = setting(True, "Delete what a crashed worker left.")
    orphan_age: float = setting(86400.0, "Age from which a foreign segment is garbage.", unit="duration", above=0)
    s3: SpillS3Config = section(SpillS3Config)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    coordinator_url: str = setting(
        "", "Address of the coordinator.", url=PEER, optional=True, spark="master address of the standalone worker"
    )
    flight_port: int = port(50052, "Data and control between nodes.")
    advertise_url: str = setting(
        "",
        "Address that others use for this worker; empty = found from POD_IP, HOSTNAME or the interfaces.",
        url=PEER,
        optional=True,
    )
    heartbeat_interval_secs: int = setting(5, "Time between two heartbeats.", minimum=1)
    memory_limit: int = size("8GB", "Memory of a worker.", above=0, spark="executor memory")
    spill_to_disk: bool = setting(True, "Spill when memory is short.", spark="Spark always spills; `false` only warns")
    spill_dir: str = setting("/tmp/sqe-spill", "Older name of `worker.spill.directory`.", spark="`spark.local.dir`")  # noqa: S108
    scan_timeout_secs: int = setting(600, "Longest scan; 0 = off.", minimum=0, spark="limit of a task")
    worker_secret: Secret | None = secret(
        "Shared secret of coordinator and workers.", spark="also `spark.authenticate.secret`"
    )
    allow_unauthenticated: bool = setting(False, "Work without a secret (development).")
    memory: WorkerMemoryConfig = section(WorkerMemoryConfig)
    spill: SpillConfig = section(SpillConfig)

    @property
    def spill_directory(self) -> str:
        """The folder in effect, whichever of its two names was used."""
        return self.spill.directory or self.spill_dir
