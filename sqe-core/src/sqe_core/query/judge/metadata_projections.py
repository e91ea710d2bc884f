"""Which columns of Iceberg's metadata tables are shown, as expressions over the table `r`.

`{partition}` is a partition in words, and is left out with its column where a table has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqe_core.spi.catalog import TableMetadata

_SQE: Mapping[str, tuple[str, ...]] = {
    "snapshots": (
        "r.committed_at",
        "r.snapshot_id",
        "r.parent_id",
        "r.operation",
        "r.manifest_list",
        "to_json(r.summary) AS summary",
    ),
    "history": ("r.made_current_at", "r.snapshot_id", "r.parent_id", "r.is_current_ancestor"),
    "refs": ("r.name", "r.type", "r.snapshot_id", "r.max_reference_age_in_ms"),
    "manifests": (
        "r.path AS manifest_path",
        "r.length AS manifest_length",
        "r.partition_spec_id",
        "r.added_snapshot_id",
        "r.added_data_files_count",
        "r.existing_data_files_count",
        "r.deleted_data_files_count",
    ),
    "files": (
        "r.file_path",
        "r.file_format",
        "r.record_count",
        "r.file_size_in_bytes",
        "to_json(r.column_sizes) AS column_sizes",
        "to_json(r.value_counts) AS value_counts",
        "to_json(r.null_value_counts) AS null_value_counts",
        "{partition} AS partition",
        "to_json(r.lower_bounds) AS lower_bounds",
        "to_json(r.upper_bounds) AS upper_bounds",
    ),
    "partitions": (
        "{partition} AS partition",
        "r.record_count",
        "r.file_count",
        "r.total_data_file_size_in_bytes AS total_size",
    ),
}


def _plain(names: str) -> tuple[str, ...]:
    return tuple(f"r.{name}" for name in names.split())


_ENTRIES = (
    *_plain("status snapshot_id sequence_number file_sequence_number data_file"),
    "to_json(r.readable_metrics) AS readable_metrics",
)
_MANIFESTS = "path length partition_spec_id added_snapshot_id added_data_files_count"
_TRINO: Mapping[str, tuple[str, ...]] = {
    "snapshots": _plain("committed_at snapshot_id parent_id operation manifest_list summary"),
    "history": _SQE["history"],
    "refs": _plain("name type snapshot_id max_reference_age_in_ms min_snapshots_to_keep max_snapshot_age_in_ms"),
    "metadata_log_entries": _plain("timestamp file latest_snapshot_id latest_schema_id latest_sequence_number"),
    "manifests": (
        *_plain(_MANIFESTS),
        "CAST(NULL AS BIGINT) AS added_rows_count",
        "r.existing_data_files_count",
        "CAST(NULL AS BIGINT) AS existing_rows_count",
        "r.deleted_data_files_count",
        "CAST(NULL AS BIGINT) AS deleted_rows_count",
        "r.partition_summaries",
    ),
    "all_manifests": _plain(
        f"{_MANIFESTS} existing_data_files_count deleted_data_files_count added_delete_files_count"
        " existing_delete_files_count deleted_delete_files_count partition_summaries reference_snapshot_id"
    ),
    "files": (
        *_plain(
            "content file_path file_format spec_id partition record_count file_size_in_bytes column_sizes value_counts"
            " null_value_counts nan_value_counts lower_bounds upper_bounds key_metadata split_offsets equality_ids"
            " sort_order_id"
        ),
        "to_json(r.readable_metrics) AS readable_metrics",
    ),
    "partitions": (
        *_plain("partition record_count"),
        "CAST(r.file_count AS BIGINT) AS file_count",
        "r.total_data_file_size_in_bytes AS total_size",
    ),
    "entries": _ENTRIES,
    "all_entries": _ENTRIES,
}
PROPERTIES = "properties"
"""The one of Trino's that Iceberg has not: the properties of the table."""

METADATA_TABLES = frozenset((*_TRINO, PROPERTIES))


def metadata_projection(kind: str, table: TableMetadata, *, trino: bool) -> tuple[str, ...]:
    """Return the columns of a metadata table; what SQE has no shape of its own for has Trino's."""
    if not trino and kind in _SQE:
        return _SQE[kind]
    return tuple(each for each in _TRINO[kind] if each != "r.partition" or table.partitioning)
