"""A catalog that is a local folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from acme_sqe.config import FolderConfig
from sqe_core.spi import (
    AttachRequest,
    CatalogBackend,
    CatalogContext,
    CatalogFactory,
    Identity,
    StartupError,
)


class FolderBackend(CatalogBackend):
    """Iceberg's Hadoop catalog on a folder."""

    supports_views = False

    def __init__(self, config: FolderConfig) -> None:
        self._path = config.path.expanduser().absolute()
        self.read_only = not config.writable
        self.uri = f"file://{self._path}"

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Mount the folder, the same for everybody."""
        return {"type": "hadoop", "warehouse": f"file://{self._path}", "cache-enabled": "false"}

    def check(self) -> None:
        """Look for the folder."""
        if not self._path.is_dir():
            raise StartupError(f"The folder {self._path} does not exist")


class FolderFactory(CatalogFactory[FolderConfig]):
    """Makes the catalogs of `type = "folder"`."""

    kind = "folder"
    config_type = FolderConfig

    def create(self, name: str, config: FolderConfig, context: CatalogContext) -> FolderBackend:
        """Remember the folder."""
        return FolderBackend(config)

    def attach(self, request: AttachRequest) -> FolderConfig:
        """`ATTACH '<folder>' AS x (TYPE folder, WRITABLE true)`."""
        request.check(optional=("writable",))
        return FolderConfig(
            path=Path(request.location), writable=request.options.get("writable", "false").lower() == "true"
        )
