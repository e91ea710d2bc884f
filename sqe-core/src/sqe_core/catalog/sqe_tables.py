"""SQE's own `information_schema`, and with `system.runtime` all that is nobody's but SQE's."""

from __future__ import annotations

from sqe_core.catalog.own_tables import OwnTables, Tables, table
from sqe_core.catalog.system import TABLES

SCHEMAS: Tables = {
    "schemata": table("catalog_name schema_name"),
    "tables": table("table_catalog table_schema table_name table_type"),
    "views": table("table_catalog table_schema table_name view_definition"),
    "columns": table(
        "table_catalog table_schema table_name column_name ordinal_position:long is_nullable data_type"
        " character_maximum_length:long numeric_precision:long numeric_scale:long datetime_precision:long"
        " column_default udt_name"
    ),
    "df_settings": table("name value"),
}

SQE_TABLES = OwnTables(information_schema=SCHEMAS, system={"runtime": TABLES})
