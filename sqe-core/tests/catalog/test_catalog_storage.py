"""What `[storage]` and `[catalog.storage]` become for Iceberg."""

from __future__ import annotations

from typing import Any

import pytest

from sqe_core.catalog.storage import file_properties
from sqe_core.config.sections.catalog import CatalogStorageConfig
from sqe_core.spi.identity import Secret

NOTHING = CatalogStorageConfig()


def store(**keys: Any) -> CatalogStorageConfig:
    return CatalogStorageConfig(**keys)


OURS = store(
    s3_endpoint="https://store", s3_region="eu", s3_access_key="id", s3_secret_key=Secret("hunter2"), s3_path_style=True
)


def test_nothing_is_nothing() -> None:
    assert file_properties(NOTHING, None) == {}


def test_each_key_has_its_property() -> None:
    assert file_properties(OURS, None) == {
        "s3.endpoint": "https://store",
        "client.region": "eu",
        "s3.path-style-access": "true",
        "s3.access-key-id": "id",
        "s3.secret-access-key": "hunter2",
    }


def test_stores_of_other_makers_need_no_region() -> None:
    """The AWS client would look for one around itself."""
    assert file_properties(store(s3_endpoint="http://localhost:9000"), None)["client.region"] == "us-east-1"


def test_keys_of_one_store_are_not_for_another() -> None:
    theirs = file_properties(OURS, store(s3_endpoint="https://partner"))

    assert theirs == {"s3.endpoint": "https://partner", "client.region": "us-east-1"}
    assert file_properties(OURS, NOTHING) == file_properties(OURS, None)


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("own", [None, OURS])
def test_vended_only_leaves_no_other_key(own: CatalogStorageConfig | None) -> None:
    found = file_properties(OURS, own, vended_only=True)

    assert "hunter2" not in str(found)
    # A placeholder: with no key at all the AWS client would look around the machine, and a provider of credentials
    # would win over the keys of a table.
    assert found["s3.access-key-id"] == found["s3.secret-access-key"] == "vended-keys-only"
    assert "client.credentials-provider" not in found
    assert file_properties(NOTHING, None, vended_only=True)["client.region"]
