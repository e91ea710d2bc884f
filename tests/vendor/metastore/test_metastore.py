"""The catalog keeps SQE's contract; tests/integration/test_catalog_contract.py mounts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from acme_metastore import MetastoreConfig, MetastoreFactory
from sqe_core.spi import AttachRequest, CatalogContext, StartupError
from sqe_core.testing import CatalogContract, PluginContract


class TestMetastorePlugin(PluginContract):
    plugin_name = "acme-metastore"


class TestMetastore(CatalogContract):
    capabilities = frozenset({"attach", "writes", "quick_metadata"})

    @pytest.fixture
    def factory(self) -> MetastoreFactory:
        return MetastoreFactory()

    @pytest.fixture
    def config(self, tmp_path: Path) -> MetastoreConfig:
        return MetastoreConfig(file=tmp_path / "names.db", warehouse=str(tmp_path / "data"))

    @pytest.fixture
    def attach_request(self, config: MetastoreConfig) -> AttachRequest:
        return AttachRequest(name="old", location=str(config.file), options={"warehouse": config.warehouse})


def test_a_file_that_is_no_metastore_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "names.db").write_text("x" * 5000)
    config = MetastoreConfig(file=tmp_path / "names.db", warehouse="/data")
    with pytest.raises(StartupError, match=r"names\.db cannot be opened: file is not a database"):
        MetastoreFactory().create("old", config, CatalogContext())
