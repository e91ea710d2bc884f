"""What Acme brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acme_sqe.badge import BadgeFactory
from acme_sqe.folder import FolderFactory
from sqe_core.spi import AuthProviderFactory, CatalogFactory, SqePlugin, StartupContext, hookimpl


class AcmePlugin(SqePlugin):
    """Badges and folders."""

    @hookimpl
    def sqe_provide_auth_providers(self, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
        """Contribute `badge`."""
        return (BadgeFactory(),)

    @hookimpl
    def sqe_provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
        """Contribute `folder`."""
        return (FolderFactory(),)
