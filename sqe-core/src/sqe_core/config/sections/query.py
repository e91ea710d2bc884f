"""`[session]`, `[query]`, `[optimizer]`, caches, history and `[engine]`: how statements run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqe_core.config.schema import UNREAD, mapping, secret, size
from sqe_core.spi.factory import setting
from sqe_core.spi.identity import Secret

READER = "Parquet and S3 readers take it where Iceberg has the option"
NO_CACHE = "the cache of results is not built yet"
NO_ADMISSION = "admission by memory is not built yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    idle_timeout_secs: int = setting(900, "A session ends after this long without a statement.", minimum=1)
    absolute_timeout_secs: int = setting(28800, "A session ends after this long in any case.", minimum=1)
    max_sessions: int = setting(10_000, "Sessions at a time; one more is refused.", minimum=1, maximum=100_000)
    max_sessions_per_user: int = setting(
        200,
        "One user's sessions, and as many again of connections; one more ends the longest unused without one.",
        minimum=1,
        maximum=100_000,
    )
    persistence: Literal["memory", "file"] = setting(
        "memory",
        "`file` keeps session metadata, never tokens.",
        unbuilt="sessions that survive a restart are not built yet",
    )
    persistence_path: str = setting("/tmp/sqe-sessions.json", "Where sessions are kept.", no_effect=UNREAD)  # noqa: S108
    secrets_path: str = setting(
        "", "File of mode 0600 that keeps CREATE SECRET entries, encrypted; empty = memory only."
    )
    secrets_key: Secret | None = secret(
        "Key of that file, 32 bytes in base64; unset = secrets.key in the state folder, made at the first start."
    )
    snapshot_interval_secs: int = setting(60, "Time between two writes of that file.", minimum=1, no_effect=UNREAD)
    expiry_sweep_interval_secs: int = setting(60, "Time between two sweeps for expired sessions.", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig:
    default_catalog: str | None = setting(None, "Catalog of names without one.")
    catalog_discovery: Literal["static", "polaris-auto"] = setting(
        "static", "`polaris-auto` tries an unknown first part as a Polaris warehouse."
    )
    timeout_secs: int = setting(300, "Longest statement.", minimum=1)
    role_overrides: Mapping[str, int] = mapping(
        "Role to timeout in seconds; the largest counts.", minimum=1, unbuilt="roles are not built yet"
    )
    max_result_rows: int = setting(100_000_000, "Most rows of a result.", minimum=1)
    max_result_bytes: int = size("10GB", "Most bytes of a result, as Arrow; 0 = unlimited.")
    max_sql_bytes: int = size(1_048_576, "Longest statement text; 0 = unlimited (refused in production).")
    max_concurrent_queries: int = setting(100, "Statements at a time.", minimum=1)
    max_concurrent_per_user: int = setting(20, "Statements of one user at a time.", minimum=1)
    max_queued_queries: int = setting(
        0, "Statements that may wait for one of these slots; 0 = a statement without a slot is refused at once."
    )
    queue_timeout_secs: int = setting(30, "How long they wait at most.", minimum=1)
    max_ingest_bytes: int = size(
        "10GB", "Rows that one bulk ingest may bring, as they are kept on disk until the commit.", minimum=1
    )
    max_ingest_batch_bytes: int = size(
        "256MB", "Largest record batch of it, in memory and decoded; 256MB is the most.", minimum=1
    )
    max_ingest_batch_rows: int = setting(1 << 24, "Most rows of such a batch.", minimum=1)
    max_ingest_columns: int = setting(5000, "Most columns of it.", minimum=1, maximum=20_000)
    ingest_disk_reserve: int = size("1GB", "Room that a bulk ingest leaves on the disk; without it none begins.")
    max_concurrent_sorted_writes: int = setting(
        2, "Sorted writes at a time.", minimum=1, unbuilt="a limit of sorted writes is not built yet"
    )
    per_user_memory_budget: int = size(
        "1GB", 'Memory of all statements of one user; "0" = off.', spark="estimate for admission", unbuilt=NO_ADMISSION
    )
    max_query_memory: int = size(
        "256MB", "Memory of one statement.", spark="estimate for admission, no hard cap", unbuilt=NO_ADMISSION
    )
    slow_query_threshold_secs: int = setting(30, "From here a statement is logged as slow.", minimum=0)
    query_profile: Literal["off", "slow", "all"] = setting(
        "off", "Which statements keep a profile.", unbuilt="query profiles are not built yet"
    )
    stream_idle_timeout_secs: int = setting(300, "A result that nobody reads ends after this long.", minimum=1)
    distribution_threshold: int = size(
        "128MB",
        "Below this a statement runs with one partition.",
        spark="number of shuffle partitions",
        no_effect=UNREAD,
    )
    distribution_file_threshold: int = setting(
        4, "Below this many files too.", minimum=0, spark="number of shuffle partitions", no_effect=UNREAD
    )
    target_task_size: int = size("256MB", "Bytes per task.", above=0, spark="split size", no_effect=UNREAD)
    sort_mode: Literal["adaptive", "partition_only", "strict"] = setting(
        "adaptive", "How far writes sort.", spark="Iceberg's write distribution mode", no_effect=UNREAD
    )
    late_materialization_min_projection_cols: int = setting(
        1, "Columns from which late materialisation pays.", minimum=0, no_effect=READER
    )
    distributed_scan_pushdown: bool = setting(True, "Filters go to the scans.", no_effect="Spark always pushes down")
    star_schema_reorder: bool = setting(
        True, "Reorder joins of star schemas.", spark="star-schema detection", no_effect=UNREAD
    )
    star_schema_min_ratio: int = setting(
        10, "Fact to dimension ratio of a star.", minimum=1, spark="star-schema detection", no_effect=UNREAD
    )
    parallel_probe_scan: bool = setting(
        True, "Scan the probe side in parallel.", spark="adaptive execution", no_effect=UNREAD
    )
    parallel_scan: bool = setting(True, "Scan in parallel.", spark="adaptive execution", no_effect=UNREAD)
    dim_build_swap: bool = setting(
        True, "Build from the smaller side.", spark="cost-based join reorder", no_effect=UNREAD
    )
    runtime_filter_inlist_max_values: int = setting(
        65536, "Most values of a runtime filter's IN list.", minimum=0, spark="runtime filters", no_effect=UNREAD
    )
    runtime_filter_inlist_max_size: int = size(
        "4MB", "Largest IN list of a runtime filter.", spark="runtime filters", no_effect=UNREAD
    )
    fanout_max_open_writers: int = setting(
        0,
        "Open files of a partitioned write; 0 = automatic, 8 to 64.",
        minimum=0,
        spark="Iceberg's fanout writer",
        no_effect=UNREAD,
    )
    fanout_buffer_budget: int = size(
        0, 'Memory of those files; "0" = automatic.', spark="Iceberg's fanout writer", no_effect=UNREAD
    )
    write_buffer_tracking: bool = setting(True, "Count write buffers.", no_effect="Spark counts them itself")
    merge_target_streaming: bool = setting(False, "Stream the target of MERGE.", no_effect="Spark plans MERGE itself")
    merge_cardinality_check: bool = setting(
        True, "MERGE refuses two matches of one row.", unbuilt="MERGE without the check of its matches is not built yet"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    hash_join_memory_threshold: int = size(
        "2GB", "Larger build sides are sorted.", spark="prefers sort-merge join", no_effect=UNREAD
    )
    broadcast_threshold: int = size(
        "64MB",
        "Build sides up to here are broadcast; when not written, less where memory is short for the cores.",
        spark="`spark.sql.autoBroadcastJoinThreshold`",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCacheConfig:
    """`[query_cache]`: results."""

    enabled: bool = setting(True, "Keep results.", no_effect=NO_CACHE)
    max_memory_mb: int = setting(256, "Memory of all results.", minimum=1, no_effect=NO_CACHE)
    max_entry_mb: int = setting(5, "Largest result that is kept.", minimum=1, no_effect=NO_CACHE)
    ttl_secs: int = setting(300, "How long a result is kept.", minimum=1, no_effect=NO_CACHE)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHistoryConfig:
    max_entries: int = setting(10000, "Statements that are remembered.", minimum=1)
    ttl_secs: int = setting(1800, "How long they are.", minimum=1)
    full_text: bool = setting(
        False, "Remember statements with their literals; otherwise, and for observers always, `?` stands for each."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """`[engine]`: Spark itself."""

    master: str = setting(
        "local[*]",
        "`local[*]`, `spark://…` (needs `coordinator.worker_secret`), `k8s://…` or `yarn`.",
        pattern=(
            r"local(\[(\*|\d+)(,\s*\d+)?\])?|spark://[^\s/]+:\d+(,[^\s/]+:\d+)*|k8s://\S+|yarn",
            "`local[*]`, `local[N]`, `spark://host:port`, `k8s://…` or `yarn`",
        ),
    )
    java_home: str | None = setting(None, "A Java 17 or 21, before JAVA_HOME and `java` on the path.")
    cache_dir: str | None = setting(
        None, "Folder for jars and what is made of them; unset = $XDG_CACHE_HOME/sqe, else ~/.cache/sqe."
    )
    jar_dir: str | None = setting(None, "Folder that holds the jars of the lock file, for machines without network.")
    jar_mirror: str | None = setting(
        None, "Maven repository that the jars are fetched from.", url=("https", "http", "file")
    )
    jar_groups: tuple[str, ...] = setting(
        (), "Jars beyond those that configured catalogs need, for catalogs to be attached: `postgresql`, `aws`."
    )
    class_archive: Literal["make", "use", "off"] = setting(
        "make",
        "Archive of loaded classes, which halves the time of a start: `make` it after the first run, in the "
        "background; `use` one that is there; or `off`.",
    )
