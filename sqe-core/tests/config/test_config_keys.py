"""What every key says of itself. Names and defaults are kept in docs/configuration.md, which a test compares."""

from __future__ import annotations

from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.walk import keys

SECRETS = {
    "session.secrets_key",
    "coordinator.worker_secret",
    "worker.worker_secret",
    "worker.spill.s3.secret_access_key",
    "auth.client_secret",
    "auth.external.client_secret",
    "storage.s3_secret_key",
    "storage.azure_access_key",
    "storage.azure_sas_token",
    "storage.gcs_service_account_key",
    "policy.mask_key",
    "metrics.scrape_token",
    "access_control.client_secret",
    "metrics.openlineage.api_key",
    "maintenance.principal.client_secret",
}

EVERY = {".".join(map(str, key.path)): key for key in keys(SqeConfig)}


def below(table: str) -> set[str]:
    return {name.removeprefix(table) for name in EVERY if name.startswith(table)}


def test_named_catalogs_have_the_keys_of_the_one_catalog() -> None:
    assert below("catalogs.*.") == below("catalog.")


def test_storage_of_a_catalog_has_the_keys_of_storage() -> None:
    # File functions belong to the server and not to a catalog.
    assert below("catalog.storage.") == {name for name in below("storage.") if not name.startswith("tvf.")}


def test_secrets_are_exactly_the_declared_ones() -> None:
    marked = {name for name, key in EVERY.items() if key.metadata.get("secret")}
    assert {name for name in marked if not name.startswith(("catalogs.", "catalog.storage."))} == SECRETS


def test_every_key_is_described() -> None:
    assert [name for name, key in EVERY.items() if not key.metadata["doc"].strip()] == []
