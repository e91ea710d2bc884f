"""What the tables of a configuration become for the parts of the core."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import sqe_core
from sqe_core.catalog.secret_file import SecretFile, new_key, read_or_make_key
from sqe_core.catalog.secret_store import Secrets
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.origin import KeyPath
from sqe_core.config.places import configured_places
from sqe_core.config.sections.policy import RateLimitConfig
from sqe_core.config.sections.query import EngineConfig, QueryConfig
from sqe_core.config.sections.root import SqeConfig
from sqe_core.engine.spark.engine import ClassArchive, EngineOptions
from sqe_core.engine.spark.jars import check_groups
from sqe_core.engine.spark.java import find_java
from sqe_core.engine.spark.options import default_cache_dir, home_dir
from sqe_core.observe.audit import AuditLog
from sqe_core.query.ingest.rows import IngestLimits
from sqe_core.query.ingest.types import SchemaLimits
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.rate_limits import RateLimits
from sqe_core.spi.errors import StartupError
from sqe_core.spi.factory import Metrics
from sqe_core.spi.protocol import TlsFiles
from sqe_http.listener import ListenError, ListenerTls


def engine_options(engine: EngineConfig) -> EngineOptions:
    """Return what `[engine]` says; the rest has its defaults."""
    options = EngineOptions(
        master=engine.master,
        java_home=Path(engine.java_home) if engine.java_home else None,
        jar_dir=Path(engine.jar_dir) if engine.jar_dir else None,
        jar_mirror=engine.jar_mirror or None,
        jar_groups=frozenset(engine.jar_groups),
        class_archive=ClassArchive(engine.class_archive),
    )
    return replace(options, cache_dir=Path(engine.cache_dir)) if engine.cache_dir else options


# The shuffle's codec wins.
_COMPRESSION = {"spill_compression": "spark.shuffle.spill.compress", "shuffle_compression": "spark.shuffle.compress"}


def spark_settings(loaded: LoadedConfig) -> Mapping[str, str]:
    """Return what the tuning keys become on Spark; what nobody wrote stays as the engine has it."""
    coordinator, sources = loaded.config.coordinator, loaded.sources
    settings: dict[str, str] = {}
    if sources.is_written("optimizer", "broadcast_threshold"):
        # Spark's word for never is -1; a threshold of 0 would still broadcast what is empty.
        settings["spark.sql.autoBroadcastJoinThreshold"] = str(loaded.config.optimizer.broadcast_threshold or -1)
    for key, switch in _COMPRESSION.items():
        if not sources.is_written("coordinator", key):
            continue
        codec = getattr(coordinator, key)
        settings[switch] = "false" if codec == "none" else "true"
        if codec != "none":
            settings["spark.io.compression.codec"] = codec
    return settings


def query_limits(query: QueryConfig) -> QueryLimits:
    return QueryLimits(
        timeout_secs=query.timeout_secs,
        max_result_rows=query.max_result_rows,
        max_result_bytes=query.max_result_bytes,
        max_sql_bytes=query.max_sql_bytes,
        max_concurrent_queries=query.max_concurrent_queries,
        max_concurrent_per_user=query.max_concurrent_per_user,
        max_queued_queries=query.max_queued_queries,
        queue_timeout_secs=query.queue_timeout_secs,
        ingest=ingest_limits(query),
    )


def ingest_limits(query: QueryConfig) -> IngestLimits:
    """Return what `[query]` says about bulk ingests; how the rows are kept meanwhile is nobody's choice."""
    return IngestLimits(
        total_bytes=query.max_ingest_bytes,
        batch_bytes=query.max_ingest_batch_bytes,
        batch_rows=query.max_ingest_batch_rows,
        disk_reserve_bytes=query.ingest_disk_reserve,
        schema=SchemaLimits(columns=query.max_ingest_columns),
    )


def rate_limits(config: RateLimitConfig) -> RateLimits | None:
    """Return the bounds of `[rate_limit]`; None when it is off. Logins have a bound in any case."""
    if not config.enabled:
        return None
    return RateLimits(
        statements_per_user=config.per_user_queries_per_minute,
        statements_of_all=config.global_queries_per_minute,
        metadata_per_user=config.metadata_per_user_per_minute,
    )


def protected_places(loaded: LoadedConfig) -> frozenset[Path]:
    """Return what of this machine cannot be attached: settings, state, caches, and the programs that run here."""
    environ, java = loaded.environ, loaded.config.engine.java_home
    own = (state_dir(environ), default_cache_dir(environ), Path(java) if java else None)
    code = (Path(sqe_core.__file__).parent, Path(sys.prefix), Path(sys.base_prefix))
    return configured_places(loaded) | {path for path in own if path is not None} | frozenset(code)


def secrets_of(loaded: LoadedConfig, *, rehearsal: bool = False) -> Secrets:
    """Return where CREATE SECRET keeps what it is given; a rehearsal makes no key for it.

    Raises:
        StartupError: the file cannot be used.
    """
    session = loaded.config.session
    if not session.secrets_path:
        return Secrets()
    key = session.secrets_key
    if key is None:
        folder = state_dir(loaded.environ)
        if folder is None:
            raise StartupError("session.secrets_path needs session.secrets_key here", hint="this user has no home")
        file = folder / "secrets.key"
        # A new key opens no file that is there.
        key = new_key() if rehearsal and not file.exists() else read_or_make_key(file)
    return Secrets(SecretFile(Path(session.secrets_path).expanduser().absolute(), key))


def audit_log(loaded: LoadedConfig, *, metrics: Metrics | None = None) -> AuditLog | None:
    """Open the audit log of a configuration; None when it has none. Raises StartupError when it cannot be used."""
    config = loaded.config.metrics
    if not config.audit_log_path:
        return None
    path = Path(config.audit_log_path).expanduser()
    return AuditLog(path, refuse=config.audit.on_failure == "refuse", metrics=metrics)


def state_dir(environ: Mapping[str, str]) -> Path | None:
    """Return where a server keeps what it cannot make again: `$XDG_STATE_HOME/sqe`, else `~/.local/state/sqe`."""
    base = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "sqe"
    home = home_dir()
    return home / ".local" / "state" / "sqe" if home else None


def tls_files(config: SqeConfig) -> TlsFiles | None:
    tls = config.coordinator.tls
    if not tls.cert_file or not tls.key_file:
        return None
    return TlsFiles(
        cert_file=Path(tls.cert_file),
        key_file=Path(tls.key_file),
        ca_file=Path(tls.ca_file) if tls.ca_file else None,
    )


def listener_tls(tls: TlsFiles | None, client_ca_file: Path | None = None) -> ListenerTls | None:
    """Return what health and metrics speak TLS with. Raises StartupError when the files are not what they should be."""
    try:
        return ListenerTls(tls.cert_file, tls.key_file, client_ca_file) if tls else None
    except ListenError as error:
        raise StartupError(str(error)) from error


def own_faults(loaded: LoadedConfig) -> Iterator[tuple[KeyPath, StartupError]]:
    """Say what a server could not begin with, of what it opens itself; nothing is made."""
    tls, engine = tls_files(loaded.config), loaded.config.engine
    attempts: Mapping[KeyPath, Callable[[], object]] = {
        ("coordinator", "tls", "cert_file"): lambda: listener_tls(tls, tls.ca_file if tls else None),
        ("session", "secrets_path"): lambda: secrets_of(loaded, rehearsal=True),
        ("metrics", "audit_log_path"): lambda: _check_audit_log(loaded),
        ("engine", "jar_groups"): lambda: check_groups(engine.jar_groups),
        ("engine", "java_home"): lambda: engine.java_home and find_java(Path(engine.java_home)),
    }
    for path, attempt in attempts.items():
        try:
            attempt()
        except StartupError as error:
            yield path, error


def _check_audit_log(loaded: LoadedConfig) -> None:
    written = loaded.config.metrics.audit_log_path
    path = Path(written or os.devnull).expanduser()
    place = path if path.exists() else path.absolute().parent
    if place.is_dir() == path.exists() or not os.access(place, os.W_OK):
        raise StartupError(f"The audit log {path} cannot be written")
