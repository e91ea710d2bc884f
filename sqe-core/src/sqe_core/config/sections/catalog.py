"""`[catalog]`, `[catalogs.<name>]` and `[storage]`: where the tables are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.schema import HTTP, UNREAD, remainder, secret, section, size
from sqe_core.spi.factory import setting
from sqe_core.spi.identity import Secret

READER = "Parquet and S3 readers take it where Iceberg has the option"
NO_STORE = "this store is not built yet"
NO_DEFAULT = "this default of new tables is not built yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFunctionsConfig:
    """`[storage.tvf]`: what file functions may read on a server, with the server's own rights. Default: nothing."""

    allow_local_paths: bool = setting(False, "Local files.")
    allow_http: bool = setting(False, "Files behind http and https.")
    allowed_http_hosts: tuple[str, ...] = setting((), "Hosts of such files, and of `endpoint =>`.")
    allowed_object_store_prefixes: tuple[str, ...] = setting(
        (), "Prefixes of objects; `{user}` is the caller; matched on whole path segments."
    )
    object_store_admin_roles: tuple[str, ...] = setting((), "Roles that may read any object.")
    allow_inline_credentials: bool = setting(True, "Credentials as arguments of the function.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStorageConfig:
    """`[catalog.storage]`: where one catalog's files are."""

    s3_endpoint: str | None = setting(None, "Address of the store, when it is not AWS.", url=HTTP)
    s3_region: str | None = setting(None, "Region.")
    s3_access_key: str | None = setting(None, "Access key.")
    s3_secret_key: Secret | None = secret("Secret key.")
    s3_path_style: bool = setting(False, "Bucket in the path, not in the host name.")
    s3_allow_http: bool = setting(False, "Allow an endpoint without TLS.")
    azure_account: str | None = setting(None, "Storage account.", unbuilt=NO_STORE)
    azure_access_key: Secret | None = secret("Account key.", unbuilt=NO_STORE)
    azure_sas_token: Secret | None = secret("Shared access signature.", unbuilt=NO_STORE)
    azure_use_emulator: bool = setting(False, "Azurite instead of Azure.", unbuilt=NO_STORE)
    gcs_service_account_path: str | None = setting(None, "File of a service account key.", unbuilt=NO_STORE)
    gcs_service_account_key: Secret | None = secret("Service account key, as JSON text.", unbuilt=NO_STORE)
    coalesce_threshold: int = size("1MB", "Gap below which two reads become one.", no_effect=READER)
    footer_cache_size: int = size("256MB", "Cache of Parquet footers.", no_effect=READER)
    concurrent_requests_per_file: int = setting(4, "Requests per file.", minimum=1, no_effect=READER)
    max_concurrent_files: int = setting(8, "Files read at a time.", minimum=1, no_effect=READER)
    prefetch_buffer: int = size("32MB", "Buffer of reading ahead.", no_effect=READER)
    prefetch_concurrency: int = setting(4, "Requests of reading ahead.", minimum=1, no_effect=READER)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig(CatalogStorageConfig):
    tvf: FileFunctionsConfig = section(FileFunctionsConfig, unbuilt="file functions on a server are not built yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFiltersConfig:
    clustering_skip_enabled: bool = setting(False, "Skip filters that the clustering makes useless.", no_effect=UNREAD)
    uniform_threshold: float = setting(
        0.8, "From which share values count as uniform.", minimum=0, maximum=1, no_effect=UNREAD
    )
    wait_ms: int = setting(100, "How long a scan waits for a filter.", minimum=0, no_effect=UNREAD)
    bloom_probe: bool = setting(
        True, "Bloom filters of the build side.", spark="runtime bloom filters", no_effect=UNREAD
    )
    bloom_max_values: int = setting(65536, "Most values of such a filter.", minimum=1, no_effect=UNREAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogConfig:
    """`[catalog]` and `[catalogs.<name>]`.

    The keys of the kind stand beside `type`, or together with it in `[catalog.backend]`; so do tables of the kind, such
    as `[catalog.auth]`.
    """

    type: str | None = setting(None, 'Kind of the catalog; unset = "rest".', inlinable=True)
    warehouse: str | None = setting(None, "Warehouse at the catalog.", inlinable=True)
    metadata_cache_ttl_secs: int = setting(
        30, "How long table metadata is served from the cache.", minimum=0, no_effect=UNREAD
    )
    default_table_format_version: Literal[2, 3] = setting(
        2, "Iceberg format of new tables.", spark="table property at CREATE", unbuilt=NO_DEFAULT
    )
    trust_sort_order: bool = setting(False, "Believe the sort order that a table declares.", no_effect=UNREAD)
    small_file_threshold_mb: int = setting(
        3, "Below this a data file counts as small; 0 = off.", minimum=0, no_effect=UNREAD
    )
    parquet_compression: Literal["zstd", "lz4", "snappy", "none"] = setting(
        "zstd", "Compression of new data files (zstd: level 3).", spark="table property at CREATE", unbuilt=NO_DEFAULT
    )
    manifest_concurrency: int = setting(
        64, "Manifests read at a time.", minimum=1, spark="Iceberg planning threads", no_effect=UNREAD
    )
    scan_fetch_ahead: int | None = setting(
        None,
        "Files planned ahead; unset = 3 × CPU, 0 = off.",
        minimum=0,
        spark="Iceberg planning threads",
        no_effect=UNREAD,
    )
    require_vended_credentials: bool = setting(
        False, "Use only storage credentials that the catalog hands out for the table."
    )
    runtime_filters: RuntimeFiltersConfig = section(RuntimeFiltersConfig)
    storage: CatalogStorageConfig | None = setting(None, "The keys of `[storage]`, for this catalog.")
    options: PluginTable = remainder("The keys of the kind.", inlined="backend")

    @property
    def kind(self) -> str:
        """The kind in effect. What the file leaves out is a REST catalog, whoever provides it."""
        return self.type or "rest"
