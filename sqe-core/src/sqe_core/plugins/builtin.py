"""The plugin of the core itself: kinds that need no further dependency, registered like everybody else's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_core.auth.anonymous import AnonymousFactory
from sqe_core.auth.api_key import ApiKeyFactory
from sqe_core.auth.mtls import MtlsFactory
from sqe_core.catalog.factories import HadoopFactory, JdbcFactory, SqliteFactory
from sqe_core.observe.lineage_file import FileLineageFactory
from sqe_core.policy.builtin import AllowAllFactory, PassthroughFactory
from sqe_core.policy.grants.factory import GrantsFactory, MemoryFactory
from sqe_core.spi.auth import AuthProviderFactory
from sqe_core.spi.catalog import CatalogFactory
from sqe_core.spi.hooks import SqePlugin, StartupContext, hookimpl
from sqe_core.spi.lineage import LineageSinkFactory
from sqe_core.spi.policy import PolicyEnforcerFactory


class CorePlugin(SqePlugin):
    """Brings what is built in. The protocol `flight` is a plugin class of its own, beside its server."""

    @hookimpl
    def sqe_provide_auth_providers(self, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
        return (AnonymousFactory(), ApiKeyFactory(), MtlsFactory())

    @hookimpl
    def sqe_provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
        return (SqliteFactory(), JdbcFactory(), HadoopFactory())

    @hookimpl
    def sqe_provide_policy_enforcers(self, context: StartupContext) -> Sequence[PolicyEnforcerFactory[Any]]:
        return (GrantsFactory(), MemoryFactory(), AllowAllFactory(), PassthroughFactory())

    @hookimpl
    def sqe_provide_lineage_sinks(self, context: StartupContext) -> Sequence[LineageSinkFactory[Any]]:
        return (FileLineageFactory(),)
