"""Real distributions, made of files: `.dist-info` folders and packages on `sys.path`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PLUGIN = """
from dataclasses import dataclass
from sqe_core.spi import CatalogBackend, CatalogFactory, NoConfig, SqePlugin, hookimpl

class Backend(CatalogBackend):
    def spark_properties(self, identity):
        return {"type": "hadoop", "warehouse": "/data", "cache-enabled": "false"}

class Factory(CatalogFactory):
    kind = "folder"
    config_type = NoConfig
    def create(self, name, config, context):
        return Backend()

class Plugin(SqePlugin):
    @hookimpl
    def sqe_provide_catalogs(self, context):
        return (Factory(),)
"""


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def path(self) -> list[str]:
        return [str(self.folder)]

    def install(
        self,
        name: str,
        *,
        version: str = "1.2.3",
        entry_points: str | None = None,
        files: Mapping[str, str] | None = None,
        metadata: str | None = None,
    ) -> None:
        """Put a distribution there, as an installer would."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if metadata:
            (info / "METADATA").write_text(metadata)
        if entry_points is not None:
            (info / "entry_points.txt").write_text(entry_points)
        for file, text in (files or {}).items():
            target = self.folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        importlib.invalidate_caches()

    def install_plugin(
        self,
        name: str = "sqe-catalog-folder",
        *,
        package: str = "sqe_catalog_folder",
        code: str | None = PLUGIN,
        kinds: tuple[str, ...] = ("catalog.folder",),
        spi: str | None = "1.0",
        plugin: str = "",
        version: str = "1.2.3",
    ) -> None:
        """Put a plugin there that is whole, but for what the arguments change."""
        target = f"{package}.plugin:Plugin"
        lines = ["[sqe.plugins]", f"{plugin or name.removeprefix('sqe-')} = {target}", "", "[sqe.plugins.kinds]"]
        lines += [f"{kind} = {target}" for kind in kinds]
        if spi is not None:
            lines += ["", "[sqe.plugins.spi]", f"{spi} = {target}"]
        files = {} if code is None else {f"{package}/__init__.py": "", f"{package}/plugin.py": code}
        self.install(name, version=version, entry_points="\n".join(lines) + "\n", files=files)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder on `sys.path`; modules imported from it are forgotten afterwards."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield Site(folder)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(folder)):
            del sys.modules[name]
