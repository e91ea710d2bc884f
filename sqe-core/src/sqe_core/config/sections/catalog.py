"""`[catalog]`, `[catalogs.<name>]` and `[storage]`: where the tables are."""

# ruff: noqa: RUF009  # `setting` and its kind return a dataclass field

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.schema import HTTP, remainder, secret, section, setting, size
from sqe_core.spi.identity import Secret

READER = "Parquet and S3 readers take it where Iceberg has the option"


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
    azure_account: str | None = setting(None, "Storage account.")
    azure_access_key: Secret | None = secret("Account key.")
    azure_sas_token: Secret | None = secret("Shared access signature.")
    azure_use_emulator: bool = setting(False, "Azurite instead of Azure.")
    gcs_service_account_path: str | None = setting(None, "File of a service account key.")
    gcs_service_account_key: Secret | None = secret("Service account key, as JSON text.")
    coalesce_threshold: int = size("1MB", "Gap below which two reads become one.", no_effect=READER)
    footer_cache_size: int = size("256MB", "Cache of Parquet footers.", no_effect=READER)
    concurrent_requests_per_file: int = setting(4, "Requests per file.", minimum=1, no_effect=READER)
    max_concurrent_files: int = setting(8, "Files read at a time.", minimum=1, no_effect=READER)
    prefetch_buffer: int = size("32MB", "Buffer of reading ahead.", no_effect=READER)
    prefetch_concurrency: int = setting(4, "Requests of reading ahead.", minimum=1, no_effect=READER)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig(CatalogStorageConfig):
    """`[storage]`."""

    tvf: FileFunctionsConfig = section(FileFunctionsConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFiltersConfig:
    """`[catalog.runtime_filters]`."""

    clustering_skip_enabled: bool = setting(False, "Skip filters that the clustering makes useless.")
    uniform_threshold: float = setting(0.8, "From which share values count as uniform.", minimum=0, maximum=1)
    wait_ms: int = setting(100, "How long a scan waits for a filter.", minimum=0)
    bloom_probe: bool = setting(True, "Bloom filters of the build side.", spark="runtime bloom filters")
    bloom_max_values: int = setting(65536, "Most values of such a filter.", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAuthConfig:
    """`[catalog.auth]`: how SQE logs in to this catalog."""

    type: Literal["session_bearer", "token_exchange", "static", "anonymous", "client_credentials", "aws"] = setting(
        "session_bearer", "`session_bearer` sends the user's own token, `token_exchange` one that was made of it."
    )
    token: Secret | None = secret("`static`: the token of everybody.")
    token_endpoint: str | None = setting(
        None, "`client_credentials`, `token_exchange`: where the token is from.", url=HTTP
    )
    client_id: str | None = setting(None, "`client_credentials`: the service account; `token_exchange`: SQE's client.")
    client_secret: Secret | None = secret("Its secret.")
    scope: str = setting(
        "PRINCIPAL_ROLE:ALL", "The scope to ask for; the default is for `client_credentials` at Polaris only."
    )
    audience: str | None = setting(None, "`token_exchange`: whom the token is for.")
    region: str | None = setting(None, "`aws`: the region in the signature.")
    service: str = setting("execute-api", "`aws`: the service in the signature.")
    access_key: str | None = setting(None, "`aws`: access key; unset = the machine's own.")
    secret_key: Secret | None = secret("`aws`: its secret.")
    session_token: Secret | None = secret("`aws`: session token.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogConfig:
    """`[catalog]` and `[catalogs.<name>]`.

    The keys of the kind stand beside `type`, or together with it in `[catalog.backend]`.
    """

    type: str | None = setting(None, 'Kind of the catalog; unset = "rest".', inlinable=True)
    catalog_url: str | None = setting(
        None, "Address of a REST catalog.", url=HTTP, aliases=("polaris_url",), inlinable=True
    )
    warehouse: str | None = setting(None, "Warehouse at the catalog.", inlinable=True)
    metadata_cache_ttl_secs: int = setting(30, "How long table metadata is served from the cache.", minimum=0)
    default_table_format_version: Literal[2, 3] = setting(
        2, "Iceberg format of new tables.", spark="table property at CREATE"
    )
    trust_sort_order: bool = setting(False, "Believe the sort order that a table declares.")
    namespace_visibility_filter: bool = setting(True, "Hide namespaces that the caller may not list.")
    small_file_threshold_mb: int = setting(3, "Below this a data file counts as small; 0 = off.", minimum=0)
    parquet_compression: Literal["zstd", "lz4", "snappy", "none"] = setting(
        "zstd", "Compression of new data files (zstd: level 3).", spark="table property at CREATE"
    )
    manifest_concurrency: int = setting(64, "Manifests read at a time.", minimum=1, spark="Iceberg planning threads")
    scan_fetch_ahead: int | None = setting(
        None, "Files planned ahead; unset = 3 × CPU, 0 = off.", minimum=0, spark="Iceberg planning threads"
    )
    require_vended_credentials: bool = setting(
        False, "Use only storage credentials that the catalog hands out for the table."
    )
    runtime_filters: RuntimeFiltersConfig = section(RuntimeFiltersConfig)
    auth: CatalogAuthConfig = setting(CatalogAuthConfig(), "How SQE logs in to this catalog.", inlinable=True)
    storage: CatalogStorageConfig | None = setting(None, "The keys of `[storage]`, for this catalog.")
    options: PluginTable = remainder("The keys of the kind.", inlined="backend")

    @property
    def kind(self) -> str:
        """The kind in effect."""
        return self.type or "rest"
