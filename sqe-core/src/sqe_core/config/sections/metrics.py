"""`[metrics]` and `[lineage]`: metrics, tracing, audit, lineage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.schema import HTTP, remainder, secret, section, size
from sqe_core.spi.factory import required, setting
from sqe_core.spi.identity import Secret

OF_SINK = "only the sink `openlineage` reads it"
NO_PART = "this part of the audit log is not built yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    format: Literal["native", "ocsf", "both"] = setting(
        "native", "Form of the events.", unbuilt="OCSF is not built yet; the audit log has the native form"
    )
    on_failure: Literal["alert", "refuse"] = setting(
        "alert",
        "What an audit log that cannot be written means: `alert` logs and counts it; with `refuse` nothing is done "
        "that cannot be recorded.",
    )
    gdpr_tags: tuple[str, ...] = setting((), "Tags of columns that hold personal data.", unbuilt=NO_PART)
    gdpr_identifier_mode: Literal["tokenize", "drop", "keep"] = setting(
        "tokenize", "What happens to identifiers.", unbuilt=NO_PART
    )
    superdebug_log_results: bool = setting(False, "Results in the log (development).", unbuilt=NO_PART)
    dashboard_access_audit_window_secs: int = setting(
        300, "One event per reader of the web UI and this long.", minimum=1, unbuilt=NO_PART
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExportConfig:
    enabled: bool = setting(False, "Send the audit log.")
    target: Literal["otlp"] = setting("otlp", "Where to.")
    otlp_endpoint: str | None = setting(None, "Address of the collector.", url=HTTP)
    spool_path: str | None = setting(None, "Where events wait.")
    batch_max: int = setting(512, "Events per request.", minimum=1)
    flush_interval_ms: int = setting(2000, "Time between two requests.", minimum=1)
    max_spool_bytes: int = size("1GB", "Largest spool.", above=0)
    start_at: Literal["now", "beginning"] = setting("now", "Where the first run begins.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLineageConfig:
    enabled: bool = setting(False, "Write lineage events to the sinks named here; those of `[lineage]` are on anyway.")
    job_namespace: str = setting("sqe", "Namespace of the jobs.")
    producer: str = setting("", "Producer of the events; empty = the project's URL with the version.")
    emit_selects: bool = setting(False, "Events for queries too.")
    file_path: str | None = setting(None, "Sink `file`: the file.", sink="file")
    http_endpoint: str | None = setting(
        None, "Sink `openlineage`: an HTTP service; a plugin brings it.", url=HTTP, sink="openlineage"
    )
    auth_mode: Literal["none", "bearer", "user_token"] = setting("none", "How SQE logs in there.", no_effect=OF_SINK)
    api_key: Secret | None = secret("Token of `bearer`.", no_effect=OF_SINK)
    http_timeout_ms: int = setting(5000, "Time of one request.", minimum=1, no_effect=OF_SINK)
    http_retry_attempts: int = setting(1, "Repetitions of a failed request.", minimum=0, no_effect=OF_SINK)
    spool_path: str | None = setting(None, "Where events wait during an outage.", no_effect=OF_SINK)
    spool_max_bytes: int = size("100MB", "Largest spool, at least 1MB.", above=0, no_effect=OF_SINK)
    replay_interval_secs: int = setting(30, "Time between two looks at the spool.", minimum=1, no_effect=OF_SINK)
    channel_capacity: int = setting(10000, "Events that wait in memory, for each sink.", minimum=1)

    @property
    def named_sinks(self) -> Sequence[tuple[str, str]]:
        """The keys that are there, each with the kind of sink that it means."""
        kinds = {key.name: key.metadata["sink"] for key in fields(self) if "sink" in key.metadata}
        return [(key, kind) for key, kind in kinds.items() if self.enabled and getattr(self, key)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    prometheus_port: int = setting(
        9090, "`/metrics`; health, admin API and web UI are on the next port; 0 = off.", minimum=0, maximum=65534
    )
    bind_address: str = setting("", "IP address of `/metrics`; empty = the coordinator's.")
    health_bind_address: str = setting("", "IP address of health, admin API and web UI; empty = the coordinator's.")
    scrape_token: Secret | None = secret(
        "Bearer token that `/metrics` asks for; in production, without one and without `coordinator.tls.ca_file`, "
        "`/metrics` listens on loopback only."
    )
    otlp_endpoint: str | None = setting(
        None, "Collector of metrics.", url=HTTP, unbuilt="sending metrics is not built yet; `/metrics` can be scraped"
    )
    traces_otlp_endpoint: str | None = setting(
        None, "Collector of traces.", url=HTTP, unbuilt="tracing is not built yet"
    )
    audit_log_path: str | None = setting(None, "File of the audit log.")
    trace_sample_rate: float = setting(
        0.01, "Share of statements that are traced.", minimum=0, maximum=1, unbuilt="tracing is not built yet"
    )
    web_ui: bool = setting(False, "Pages for admins.", unbuilt="the web UI is not built yet")
    audit: AuditConfig = section(AuditConfig)
    audit_export: AuditExportConfig = section(
        AuditExportConfig, unbuilt="sending the audit log is not built yet", asked=lambda export: export.enabled
    )
    openlineage: OpenLineageConfig = section(OpenLineageConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSinkConfig:
    """One entry of `[[lineage.sinks]]`: the kind, and that kind's own keys."""

    type: str = required("Kind of the sink, for example `file`.")
    options: PluginTable = remainder("The keys of that kind.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageConfig:
    """`[lineage]`: where lineage events go. What they hold is said in `[metrics.openlineage]`."""

    sinks: tuple[LineageSinkConfig, ...] = setting((), "Sinks of lineage events.")
