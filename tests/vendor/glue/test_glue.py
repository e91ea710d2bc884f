"""The catalog keeps the contract of SQE, against moto; tests/integration/test_vendor_glue.py mounts two of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed.moto import ACCOUNT, REGION, Moto, running_moto

from acme_glue import Glue, GlueConfig, GlueFactory
from sqe_core.spi import CatalogContext, Secret, StartupError
from sqe_core.testing import CatalogContract, PluginContract, make_identity


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    with running_moto() as moto:
        yield moto


@pytest.fixture
def config(moto: Moto) -> GlueConfig:
    return GlueConfig(
        region=REGION,
        warehouse="s3://lake/tables",
        role_arn=f"arn:aws:iam::{ACCOUNT}:role/lake",
        access_key_id="AKIA0000000000000000",
        secret_access_key=Secret("secret-key-5d1f"),
        endpoint=moto.url,
    )


class TestGluePlugin(PluginContract):
    plugin_name = "acme-glue"


class TestGlue(CatalogContract):
    capabilities = frozenset({"writes"})

    @pytest.fixture
    def factory(self) -> GlueFactory:
        return GlueFactory()

    @pytest.fixture
    def config(self, config: GlueConfig) -> GlueConfig:
        return config


def test_keys_are_the_roles_and_in_no_setting(config: GlueConfig) -> None:
    glue, alice = Glue(config), make_identity()
    keys = glue.aws_keys(alice)
    assert keys.session_token is not None
    assert keys.access_key != config.access_key_id
    assert glue.aws_keys(alice) is keys
    settings = str(dict(glue.spark_properties(alice)))
    assert not [key for key in (config.secret_access_key, keys.secret_key) if key.reveal() in settings]


def test_a_role_that_nobody_gives_stops_the_start(config: GlueConfig, moto: Moto) -> None:
    moto.check_keys()
    try:
        glue = GlueFactory().create("lake", config, CatalogContext())
        with pytest.raises(StartupError, match="AWS gives no keys for arn:aws:iam::123456789012:role/lake"):
            glue.check()
        glue.close()
    finally:
        moto.ignore_keys()
