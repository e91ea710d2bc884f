"""What the core knows of kinds without importing their plugins."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqe_core.config.sections.catalog import CatalogConfig

REST_CATALOGS = frozenset({"rest", "iceberg_rest", "polaris", "nessie", "unity", "horizon"})
# These log in once for everybody, or not at all (features §5.1).
SHARED_IDENTITY_CATALOGS = frozenset({"glue", "s3tables", "hms", "hive", "jdbc", "sqlite", "hadoop"})
# The key of a port in `[coordinator]`, and the protocol that is served there.
LISTENERS: Mapping[str, str] = MappingProxyType(
    {"flight_sql_port": "flight", "trino_http_port": "trino", "quack_port": "quack"}
)
POLICY_ENGINES = ("grants", "opa", "cedar", "ranger", "in-memory", "passthrough")


def shares_identity(catalog: CatalogConfig) -> bool:
    """Whether everybody is the same to this catalog, whoever runs the statement."""
    if catalog.kind in SHARED_IDENTITY_CATALOGS:
        return True
    return catalog.kind in REST_CATALOGS and catalog.auth.type not in ("session_bearer", "token_exchange")
