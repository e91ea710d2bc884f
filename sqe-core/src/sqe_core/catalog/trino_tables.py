"""Trino 476's `information_schema` and `system`: the tables that its drivers and tools read, column by column."""

from __future__ import annotations

from sqe_core.catalog.own_tables import OwnTables, table
from sqe_core.catalog.system import TABLES as RUNTIME_TABLES

INFORMATION_SCHEMA = {
    "applicable_roles": table("grantee grantee_type role_name is_grantable"),
    "columns": table(
        "table_catalog table_schema table_name column_name ordinal_position:long column_default is_nullable data_type"
    ),
    "enabled_roles": table("role_name"),
    "roles": table("role_name"),
    "schemata": table("catalog_name schema_name"),
    "table_privileges": table(
        "grantor grantor_type grantee grantee_type table_catalog table_schema table_name privilege_type is_grantable"
        " with_hierarchy"
    ),
    "tables": table("table_catalog table_schema table_name table_type"),
    "views": table("table_catalog table_schema table_name view_definition"),
}

JDBC = {
    "attributes": table(
        "type_cat type_schem type_name attr_name data_type:long attr_type_name attr_size:long decimal_digits:long"
        " num_prec_radix:long nullable:long remarks attr_def sql_data_type:long sql_datetime_sub:long"
        " char_octet_length:long ordinal_position:long is_nullable scope_catalog scope_schema scope_table"
        " source_data_type:long"
    ),
    "catalogs": table("table_cat"),
    "columns": table(
        "table_cat table_schem table_name column_name data_type:long type_name column_size:long buffer_length:long"
        " decimal_digits:long num_prec_radix:long nullable:long remarks column_def sql_data_type:long"
        " sql_datetime_sub:long char_octet_length:long ordinal_position:long is_nullable scope_catalog scope_schema"
        " scope_table source_data_type:long is_autoincrement is_generatedcolumn"
    ),
    "procedure_columns": table(
        "procedure_cat procedure_schem procedure_name column_name column_type:long data_type:long type_name"
        " precision:long length:long scale:long radix:long nullable:long remarks column_def sql_data_type:long"
        " sql_datetime_sub:long char_octet_length:long ordinal_position:long is_nullable specific_name"
    ),
    "procedures": table("procedure_cat procedure_schem procedure_name remarks procedure_type:long specific_name"),
    "pseudo_columns": table(
        "table_cat table_schem table_name column_name data_type:long column_size:long decimal_digits:long"
        " num_prec_radix:long column_usage remarks char_octet_length:long is_nullable:long"
    ),
    "schemas": table("table_schem table_catalog"),
    "super_tables": table("table_cat table_schem table_name supertable_name"),
    "super_types": table("type_cat type_schem type_name supertype_cat supertype_schem supertype_name"),
    "table_types": table("table_type"),
    "tables": table(
        "table_cat table_schem table_name table_type remarks type_cat type_schem type_name self_referencing_col_name"
        " ref_generation"
    ),
    "types": table(
        "type_name data_type:long precision:long literal_prefix literal_suffix create_params nullable:long"
        " case_sensitive:bool searchable:long unsigned_attribute:bool fixed_prec_scale:bool auto_increment:bool"
        " local_type_name minimum_scale:long maximum_scale:long sql_data_type:long sql_datetime_sub:long"
        " num_prec_radix:long"
    ),
    "udts": table("type_cat type_schem type_name class_name data_type remarks base_type"),
}

_PROPERTIES = table("catalog_name property_name default_value type description")
METADATA = {
    "analyze_properties": _PROPERTIES,
    "catalogs": table("catalog_name connector_id connector_name state"),
    "column_properties": _PROPERTIES,
    "materialized_view_properties": _PROPERTIES,
    "materialized_views": table(
        "catalog_name schema_name name storage_catalog storage_schema storage_table freshness last_fresh_time:time"
        " comment definition"
    ),
    "schema_properties": _PROPERTIES,
    "table_comments": table("catalog_name schema_name table_name comment"),
    "table_properties": _PROPERTIES,
}

RUNTIME = {
    "nodes": table("node_id http_uri node_version coordinator:bool state"),
    "optimizer_rule_stats": table(
        "rule_name invocations:long matches:long failures:long average_time:double"
        " time_distribution_percentiles:doubles"
    ),
    "queries": table(
        "query_id state user source query resource_group_id:texts queued_time_ms:long analysis_time_ms:long"
        " planning_time_ms:long created:time started:time last_heartbeat:time end:time error_type error_code"
    ),
    "sessions": RUNTIME_TABLES["sessions"],
    "tasks": table(
        "node_id task_id stage_id query_id state splits:long queued_splits:long running_splits:long"
        " completed_splits:long split_scheduled_time_ms:long split_cpu_time_ms:long split_blocked_time_ms:long"
        " raw_input_bytes:long raw_input_rows:long processed_input_bytes:long processed_input_rows:long"
        " output_bytes:long output_rows:long physical_input_bytes:long physical_written_bytes:long created:time"
        " start:time last_heartbeat:time end:time"
    ),
    "transactions": table(
        "transaction_id isolation_level read_only:bool auto_commit_context:bool create_time:time idle_time_secs:long"
        " written_catalog catalogs:texts"
    ),
}

TRINO_TABLES = OwnTables(
    information_schema=INFORMATION_SCHEMA,
    system={
        "information_schema": INFORMATION_SCHEMA,
        "jdbc": JDBC,
        "metadata": METADATA,
        "runtime": RUNTIME,
    },
    lists_system=True,
    hidden={"columns": table("comment extra_info")},
)
