"""What this distribution brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_auth_aws.config import AwsConfig
from sqe_core.spi import AuthProvider, AuthProviderFactory, PluginContext, SqePlugin, StartupContext, hookimpl


class AwsFactory(AuthProviderFactory[AwsConfig]):
    kind = "aws_iam"
    config_type = AwsConfig

    def create(self, name: str, config: AwsConfig, context: PluginContext) -> AuthProvider:
        from sqe_auth_aws.provider import AwsProvider  # `sqe config check` needs the keys and not botocore

        return AwsProvider(name, config, context)


class AwsPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_auth_providers(self, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
        return (AwsFactory(),)
