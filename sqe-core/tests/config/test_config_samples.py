"""The sample files of features §1.17, each exactly as it is written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqe_core.config import SqeConfig, load
from sqe_core.config.catalog_names import mounted_catalogs
from sqe_core.config.login_chain import login_chain

ONE_MACHINE = """\
[auth]
token_endpoint = "http://localhost:18181/api/catalog/v1/oauth/tokens"
client_id = "root"
[catalog]
polaris_url = "http://localhost:18181/api/catalog"
warehouse = "test_warehouse"
[storage]
s3_endpoint = "http://localhost:19000"
s3_region = "us-east-1"
s3_path_style = true
"""

S3_TABLES = """\
[catalog]
type = "s3tables"
table_bucket_arn = "arn:aws:s3tables:us-east-1:ACCOUNT:bucket/sales"
"""

LONG_FORM = """\
[auth]
token_endpoint = "http://localhost:18181/api/catalog/v1/oauth/tokens"
client_id = "root"

[catalogs.s3tables.backend]
type = "s3tables"
table_bucket_arn = "arn:aws:s3tables:us-east-1:ACCOUNT:bucket/sales"

[catalogs.lake]
catalog_url = "http://localhost:18181/api/catalog"
warehouse = "test_warehouse"

[query]
default_catalog = "lake"

[policy]
engine = "opa"
cache_ttl_secs = 60
cache_max_entries = 10000

[policy.opa]
url = "http://localhost:8181"
data_prefix = "sqe/grants"
authz_path = "sqe/authz"
"""

ARN = "arn:aws:s3tables:us-east-1:ACCOUNT:bucket/sales"


def sample(folder: Path, text: str) -> SqeConfig:
    file = folder / "sqe.toml"
    file.write_text(text)
    return load(file, environ={}).config


@pytest.mark.parametrize("text", [ONE_MACHINE, S3_TABLES, LONG_FORM])
def test_each_sample_loads(tmp_path: Path, text: str) -> None:
    sample(tmp_path, text)


def test_one_machine(tmp_path: Path) -> None:
    config = sample(tmp_path, ONE_MACHINE)

    (mount,) = mounted_catalogs(config)
    assert mount.name == "test_warehouse"
    assert mount.aliases == {"iceberg", "rest"}
    assert mount.config.options.get("polaris_url") == "http://localhost:18181/api/catalog"
    assert config.storage.s3_path_style
    (login,) = login_chain(config)
    assert login.kind == "client_credentials_passthrough"
    assert login.options.get("token_url") == "http://localhost:18181/api/catalog/v1/oauth/tokens"
    assert login.options.get("scope") == "PRINCIPAL_ROLE:ALL"  # Polaris gives nobody a token without one


def test_s3_tables(tmp_path: Path) -> None:
    (mount,) = mounted_catalogs(sample(tmp_path, S3_TABLES))

    assert (mount.name, mount.kind, mount.aliases) == ("s3tables", "s3tables", {"iceberg"})
    assert mount.config.options.get("table_bucket_arn") == ARN


def test_long_form(tmp_path: Path) -> None:
    config = sample(tmp_path, LONG_FORM)

    lake, s3tables = mounted_catalogs(config)
    assert (lake.name, lake.kind, lake.default) == ("lake", "rest", True)
    assert (s3tables.name, s3tables.kind, s3tables.default) == ("s3tables", "s3tables", False)
    assert s3tables.config.options.get("table_bucket_arn") == ARN
    assert config.policy.engines == ("opa",)
    opa = config.policy.options.get("opa")
    assert opa == {"url": "http://localhost:8181", "data_prefix": "sqe/grants", "authz_path": "sqe/authz"}


def test_both_forms_of_a_backend_mean_the_same(tmp_path: Path) -> None:
    (long_form,) = mounted_catalogs(sample(tmp_path, S3_TABLES.replace("[catalog]", "[catalog.backend]")))
    (flat,) = mounted_catalogs(sample(tmp_path, S3_TABLES))

    assert (long_form.name, long_form.kind, long_form.aliases) == (flat.name, flat.kind, flat.aliases)
    assert long_form.config.options.get("table_bucket_arn") == flat.config.options.get("table_bucket_arn") == ARN
