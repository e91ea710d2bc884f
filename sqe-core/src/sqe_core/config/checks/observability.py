"""Lineage and audit export that have nowhere to go."""

from __future__ import annotations

from collections.abc import Iterator

from sqe_core.config.origin import Fault
from sqe_core.config.sections.root import SqeConfig

_SMALLEST_SPOOL = 1 << 20


def check_lineage(config: SqeConfig) -> Iterator[Fault]:
    """Enabled lineage has a sink, a login has its key, and a spool has something to wait for."""
    lineage = config.metrics.openlineage
    path = ("metrics", "openlineage")
    if lineage.enabled and not (lineage.file_path or lineage.http_endpoint):
        yield Fault((*path, "enabled"), "needs a sink: `file_path` or `http_endpoint`")
    if lineage.auth_mode == "bearer" and not lineage.api_key:
        yield Fault((*path, "api_key"), 'is missing; auth_mode "bearer" needs it')
    if lineage.spool_path and not lineage.http_endpoint:
        yield Fault((*path, "http_endpoint"), "is missing; a spool waits for an HTTP sink")
    if lineage.spool_path and lineage.spool_max_bytes < _SMALLEST_SPOOL:
        yield Fault((*path, "spool_max_bytes"), "must be at least 1MB")


def check_audit(config: SqeConfig) -> Iterator[Fault]:
    """Refusing what cannot be recorded needs a record."""
    if config.metrics.audit.on_failure == "refuse" and not config.metrics.audit_log_path:
        yield Fault(("metrics", "audit_log_path"), 'is missing; on_failure "refuse" needs it')


def check_audit_export(config: SqeConfig) -> Iterator[Fault]:
    """Enabled export has a collector."""
    export = config.metrics.audit_export
    if export.enabled and not export.otlp_endpoint:
        yield Fault(("metrics", "audit_export", "otlp_endpoint"), "is missing; the export needs a collector")
