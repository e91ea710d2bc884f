"""The properties that tables and schemas may have, in the rows of Trino's `system.metadata`."""

from __future__ import annotations

TABLE_PROPERTIES: tuple[tuple[str, str, str, str], ...] = (
    ("format", "PARQUET", "varchar", "File format for the table"),
    ("format_version", "2", "integer", "Iceberg table format version"),
    ("partitioning", "[]", "array(varchar)", "Partition transforms"),
    ("sorted_by", "[]", "array(varchar)", "Sorted columns"),
    ("compression_codec", "", "varchar", "Write compression codec for the table"),
    ("max_commit_retry", "", "integer", "Number of times to retry a commit before failing"),
    ("delete_after_commit_enabled", "", "boolean", "Whether to delete old metadata files after each commit"),
    ("max_previous_versions", "", "integer", "The number of old metadata files to keep"),
    ("parquet_bloom_filter_columns", "[]", "array(varchar)", "Parquet Bloom filter index columns"),
    ("target_max_file_size", "", "varchar", "Target maximum size of written files; the actual size may be larger"),
    ("parquet_writer_row_group_size", "", "varchar", "Parquet writer row group size"),
    ("extra_properties", "", "map(varchar, varchar)", "Properties by the names that Iceberg has for them"),
)
"""Name, default, type and description of what CREATE TABLE takes; what it refuses is not among them."""

SCHEMA_PROPERTIES: tuple[tuple[str, str, str, str], ...] = ()
