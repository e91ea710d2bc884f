"""The Spark settings of the engine: which are fixed, why, and which an operator may choose."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.errors import StartupError

# Set in each session and compared before each statement (CONF-1); every one of them decides what a statement means,
# what it may reach or how much it may cost.
PINNED_SESSION_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # What a statement means.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.ansi.enforceReservedKeywords": "false",
        "spark.sql.ansi.relationPrecedence": "false",
        "spark.sql.caseSensitive": "false",
        "spark.sql.chunkBase64String.enabled": "false",  # no other engine breaks base64 into lines
        "spark.sql.geospatial.enabled": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        # What it may reach: no files as tables, no substituted text (ENF-2), no scripts. An unqualified name that
        # nobody replaced finds nothing (ENF-8), not the shared session catalog (ISO-3).
        "spark.sql.catalog._sqe_none": "sqe.bridge.catalog.EmptyCatalog",
        "spark.sql.defaultCatalog": "_sqe_none",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.scripting.enabled": "false",
        "spark.sql.variable.substitute": "false",
        # Row filters and masks stand on the plan: no rule may be switched off.
        "spark.sql.adaptive.optimizer.excludedRules": "",
        "spark.sql.optimizer.excludedRules": "",
        # What it may cost.
        # Spark folds a constant for the data source in a loop that never ends if it cannot be folded, such as 1/0 in
        # max(if(name = 'q', 1/0, 0)).
        "spark.sql.optimizer.datasourceV2ExprFolding": "false",
        # A chain of common table expressions takes one round for each; a statement may have 256 levels (LIM-5).
        "spark.sql.analyzer.maxIterations": "400",
        "spark.sql.cteRecursionLevelLimit": "1000",
        "spark.sql.cteRecursionRowLimit": "1000000",
        "spark.sql.debug.maxToStringFields": "25",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
        "spark.sql.maxPlanStringLength": "8192",  # plans are kept for the status store, and nobody may read them
        # Nobody can add jars (ISO-6), so no session needs a class loader of its own; they would also defeat the cache
        # of generated code.
        "spark.sql.artifact.isolation.enabled": "false",
        # The formatted mode renders the whole plan for every execution.
        "spark.sql.ui.explainMode": "simple",
    }
)

# For each mounted catalog unless its backend says otherwise.
CATALOG_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        # Manifests never change; reading them again is most of a point query's time.
        "io.manifest.cache-enabled": "true",
    }
)

_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,sqe.bridge.boot.Extensions"

_STATIC_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.app.name": "sqe",
        "spark.submit.deployMode": "client",
        "spark.sql.extensions": _EXTENSIONS,
        # LIM-7: a cancelled task is interrupted again and again, and its executor ended when that does not help. Local
        # tasks have a watchdog for that.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        "spark.task.reaper.threadDump": "false",
        # ISO-10: nothing that shows queries or settings to whoever asks.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.master.rest.enabled": "false",
        "spark.metrics.staticSources.enabled": "false",
        "spark.metrics.appStatusSource.enabled": "false",
        # ISO-3: no Hive, and a session catalog that has no tables and takes none.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.catalog.spark_catalog": "sqe.bridge.catalog.EmptyCatalog",
        # ISO-11: the driver's ports deserialise Java objects, also for other users of this machine.
        "spark.authenticate": "true",
        # Settings in logs. Catalog properties hold URLs with passwords and headers with tokens, which Spark's own
        # expression does not know.
        "spark.redaction.regex": "(?i)secret|password|token|key|credential|authorization|header|uri|url|sas",
        # LIM-11: an equal share for each pool, and a pool for each user.
        "spark.scheduler.mode": "FAIR",
        # Tasks do not wait for a better place: a short query is over by then.
        "spark.locality.wait": "0",
        # The status store answers system.runtime.*; with Spark's own limits it grows to hundreds of megabytes.
        "spark.ui.retainedJobs": "200",
        "spark.ui.retainedStages": "200",
        "spark.ui.retainedTasks": "20000",
        "spark.sql.ui.retainedExecutions": "50",
        # One entry for each generated class of all users; compiling one again costs 20 ms and more.
        "spark.sql.codegen.cache.maxEntries": "500",
    }
)

# With tasks in the driver's own JVM.
_LOCAL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # LIM-9: by default a task that runs out of memory ends the JVM, here everybody's.
        "spark.executor.killOnFatalError.depth": "0",
        # The manifests are read where the tasks would run, so a job to plan a scan only adds its overhead.
        "spark.sql.iceberg.data-planning-mode": "local",
        "spark.sql.iceberg.delete-planning-mode": "local",
    }
)

# What an operator may replace. A filter on one side of a join is passed on to a scan of the other one for far less than
# Spark's 10 GB.
_LOCAL_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "1MB",
        "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": "64MB",
    }
)

# With executors elsewhere (ISO-11).
_REMOTE_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.io.encryption.enabled": "true",
    }
)

_MOST_BROADCAST_BYTES = 64 << 20
# Rows of a broadcast take up to five times their size in the heap, and no budget counts them. One task may hold one.
_BROADCAST_SHARE = 8
_BROADCASTS_BESIDE_TASKS = 2
_BROADCAST_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
_GUESSED_TOO_LOW = 4

_FIXED_PREFIXES = (
    "sqe.",
    "spark.sqe.",
    "spark.task.reaper.",
    "spark.jars",
    "spark.plugins",
    "spark.extraListeners",
    "spark.archives",
    "spark.files",
    "spark.submit.",
    "spark.ui.",
    "spark.metrics.",
    "spark.authenticate",
    "spark.redaction.",
    "spark.driver.extra",
    "spark.driver.defaultJavaOptions",
    "spark.driver.memory",
    "spark.local.dir",
    "spark.python.",
    "spark.pyspark.",
    "spark.repl.",
    "spark.connect.",
    "spark.sql.catalog.",
    "spark.sql.catalogImplementation",
    "spark.sql.defaultCatalog",
    "spark.sql.extensions",
    "spark.sql.globalTempDatabase",
    "spark.sql.hive.",
    "spark.sql.legacy.",
    "spark.sql.queryExecutionListeners",
    "spark.sql.streaming.",
    "spark.sql.warehouse.dir",
)

_LOCAL_MASTER = re.compile(r"local(\[(\*|[0-9]+)\s*(,\s*(\*|[0-9]+))?\])?")


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own JVM. `local-cluster[…]` starts executors and is not local."""
    return _LOCAL_MASTER.fullmatch(master.strip()) is not None


def local_cores(master: str) -> int:
    """How many tasks a local master runs at once."""
    match = _LOCAL_MASTER.fullmatch(master.strip())
    count = match.group(2) if match else None
    if count == "*":
        return os.cpu_count() or 1
    return int(count) if count else 1


def check_operator_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings that would open what CONF-1 and ISO close."""
    fixed = {**PINNED_SESSION_SETTINGS, **_STATIC_SETTINGS}
    refused = sorted(key for key in settings if key in fixed or key.startswith(_FIXED_PREFIXES))
    if refused:
        raise StartupError(
            f"[engine] settings cannot contain {', '.join(refused)}", hint="SQE fixes these settings; remove the keys"
        )
    malformed = sorted(key for key in settings if not key.startswith("spark."))
    if malformed:
        raise StartupError(f"[engine] settings must begin with spark.: {', '.join(malformed)}")


def engine_settings(options: EngineOptions, run_dir: Path, executor_jars: Sequence[Path]) -> dict[str, str]:
    """Return every Spark setting of a new JVM."""
    check_operator_settings(options.settings)
    local = is_local(options.master)
    # Defaults that an operator may replace.
    settings = {
        # Results stream past the driver; what still comes as a whole is small or an error (LIM-8, LIM-9).
        "spark.driver.maxResultSize": str(max(options.memory_bytes // 4, 64 << 20)),
        **_broadcasts(options),
    }
    if local:
        settings |= _LOCAL_DEFAULTS
        # Partitions beyond the cores only cost; each user's share is smaller still.
        settings["spark.sql.shuffle.partitions"] = str(max(2 * local_cores(options.master), 4))
    else:
        settings["spark.sql.adaptive.coalescePartitions.parallelismFirst"] = "false"
    settings |= options.settings
    settings |= {**_STATIC_SETTINGS, **PINNED_SESSION_SETTINGS}
    settings |= _LOCAL_SETTINGS if local else _REMOTE_SETTINGS
    settings |= {
        "spark.master": options.master,
        "spark.local.dir": str(run_dir / "local"),
        "spark.sql.warehouse.dir": (run_dir / "warehouse").as_uri(),
        "spark.sqe.watchdog.slots": str(local_cores(options.master) if local else 0),
        "spark.sqe.watchdog.millis": str(int(options.stuck_secs * 1000)),
        # ISO-4: a name that nobody can say.
        "spark.sql.globalTempDatabase": f"_sqe_{secrets.token_hex(16)}",
    }
    if not local:
        settings["spark.jars"] = ",".join(jar.as_uri() for jar in executor_jars)
        settings |= _authentication(options)
    return settings


def _broadcasts(options: EngineOptions) -> dict[str, str]:
    """How big a side of a join may be that every task gets as a whole: a few of them at once must fit (LIM-9)."""
    tasks = local_cores(options.master) if is_local(options.master) else 1
    most = max(options.memory_bytes // (_BROADCAST_SHARE * (tasks + _BROADCASTS_BESIDE_TASKS)), 16 << 20)
    # Sizes are guessed before a join is planned; what was guessed too low runs once more, without this (Exec.java).
    chosen = options.settings.get(_BROADCAST_THRESHOLD, "")
    guessed = int(chosen) if chosen.isdecimal() else min(most // _GUESSED_TOO_LOW, _MOST_BROADCAST_BYTES)
    return {
        "spark.sql.maxBroadcastTableSize": str(max(most, _GUESSED_TOO_LOW * guessed)),
        _BROADCAST_THRESHOLD: str(guessed),
    }


def _authentication(options: EngineOptions) -> dict[str, str]:
    """YARN and Kubernetes make and spread a secret of their own; a standalone master must be told the same one."""
    if options.auth_secret:
        return {"spark.authenticate.secret": options.auth_secret}
    if options.master.startswith("local-cluster"):
        return {"spark.authenticate.secret": secrets.token_hex(32)}
    if options.master.startswith("spark:"):
        raise StartupError(
            f"[engine] master = {options.master!r} needs a secret",
            hint="set coordinator.worker_secret to the master's own spark.authenticate.secret",
        )
    return {}
