"""What is installed here, for people at their own machine."""

from __future__ import annotations

import functools
from typing import Any

from sqe_core import __version__
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.catalog import CatalogFactory


@functools.cache
def _installed() -> PluginManager:
    return PluginManager(sqe_version=__version__)


def installed_catalog(kind: str) -> CatalogFactory[Any]:
    return _installed().catalog(kind)
