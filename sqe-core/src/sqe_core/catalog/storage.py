"""From `[storage]` and `[catalog.storage]` to what Iceberg's file access is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqe_core.config.sections.catalog import CatalogStorageConfig

_S3 = ("s3_endpoint", "s3_region", "s3_access_key", "s3_secret_key", "s3_path_style", "s3_allow_http")
# The AWS client looks for a region in the environment and on the network when nobody names one; stores of other makers
# take any.
_ANY_REGION = "us-east-1"
# In the place of keys: those of a table replace it, nothing opens with it, and the machine's own are not looked for. A
# provider of anonymous credentials would not do: Iceberg prefers a provider to the keys of a table.
_NO_KEY = "vended-keys-only"


def file_properties(
    general: CatalogStorageConfig, own: CatalogStorageConfig | None, *, vended_only: bool = False
) -> Mapping[str, str]:
    """Return the properties of Iceberg's `FileIO` for one catalog; they may hold secrets.

    A catalog that names anything of a store of its own gets nothing of that store from `[storage]`: the keys of one
    store are not for the address of another. With `vended_only`, only credentials that the catalog hands out for a
    table may be used, none of the configuration and none of the machine.
    """
    store = own if own is not None and _says(own) else general
    return dict(_s3(store, vended_only=vended_only))


def _says(store: CatalogStorageConfig) -> bool:
    nothing = CatalogStorageConfig()
    return any(getattr(store, key) != getattr(nothing, key) for key in _S3)


def _s3(store: CatalogStorageConfig, *, vended_only: bool) -> Iterator[tuple[str, str]]:
    if store.s3_endpoint:
        yield "s3.endpoint", store.s3_endpoint
    region = store.s3_region or (_ANY_REGION if store.s3_endpoint or vended_only else None)
    if region:
        yield "client.region", region
    if store.s3_path_style:
        yield "s3.path-style-access", "true"
    if vended_only:
        # Where a table brings no credentials, its files cannot be read: not with the machine's own (ISO-7).
        yield "s3.access-key-id", _NO_KEY
        yield "s3.secret-access-key", _NO_KEY
    elif store.s3_access_key and store.s3_secret_key:
        yield "s3.access-key-id", store.s3_access_key
        yield "s3.secret-access-key", store.s3_secret_key.reveal()
