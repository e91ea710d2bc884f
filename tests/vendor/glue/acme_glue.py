"""Tables of the AWS Glue Data Catalog; each catalog has a role of its own, whose keys end and are renewed."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from sqe_core.spi import (
    AccessDeniedError,
    AwsKeys,
    CatalogBackend,
    CatalogContext,
    CatalogFactory,
    CatalogFailure,
    ExternalError,
    Identity,
    Secret,
    SqeError,
    SqePlugin,
    StartupContext,
    StartupError,
    hookimpl,
    required,
    setting,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueConfig:
    """`[catalogs.<name>]` with `type = "acme-glue"`."""

    region: str = required("the region of the catalog")
    warehouse: str = required("where data files go, s3://bucket/path")
    role_arn: str = required("the role whose temporary keys are used")
    access_key_id: str = required("who takes the role")
    secret_access_key: Secret = required("its key", secret=True)
    endpoint: str | None = setting(None, "another address of AWS, for tests")
    session_secs: int = setting(3600, "how long keys last", minimum=900, maximum=43200)


class Role:
    """The temporary keys of one role, taken again before they end."""

    def __init__(self, config: GlueConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._keys: AwsKeys | None = None
        self._good_until = 0.0
        self._sts = boto3.client(
            "sts",
            region_name=config.region,
            endpoint_url=config.endpoint,
            aws_access_key_id=config.access_key_id,
            aws_secret_access_key=config.secret_access_key.reveal(),
        )

    def keys(self) -> AwsKeys:
        """Return keys that are good for half of their time at least."""
        with self._lock:
            if self._keys is None or time.monotonic() > self._good_until:
                self._keys = self._take()
                self._good_until = time.monotonic() + self._config.session_secs / 2
            return self._keys

    def _take(self) -> AwsKeys:
        try:
            keys = self._sts.assume_role(
                RoleArn=self._config.role_arn, RoleSessionName="sqe", DurationSeconds=self._config.session_secs
            )["Credentials"]
        except (BotoCoreError, ClientError) as error:
            raise ExternalError(f"AWS gives no keys for {self._config.role_arn}") from error
        return AwsKeys(
            access_key=keys["AccessKeyId"],
            secret_key=Secret(keys["SecretAccessKey"]),
            session_token=Secret(keys["SessionToken"]),
        )


class Glue(CatalogBackend):
    """One Glue catalog, with the keys of one role for everybody."""

    supports_views = False

    def __init__(self, config: GlueConfig) -> None:
        self.uri = f"glue://{config.region}"
        self._role = Role(config)
        self._mount = {
            "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "warehouse": config.warehouse,
            "client.region": config.region,
            "cache-enabled": "false",
        }
        if config.endpoint is not None:
            self._mount |= {
                "glue.endpoint": config.endpoint,
                "s3.endpoint": config.endpoint,
                "s3.path-style-access": "true",
            }

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Say where it is; keys are in no setting."""
        return self._mount

    def aws_keys(self, identity: Identity) -> AwsKeys:
        """Return the role's keys."""
        return self._role.keys()

    def required_jars(self) -> Sequence[str]:
        """AWS's SDK."""
        return ("aws",)

    def translate(self, failure: CatalogFailure) -> SqeError | None:
        """What the role may not do is no fault of the server."""
        services = {"AccessDeniedException", "GlueException", "S3Exception"}
        if services & set(failure.classes) and "denied" in failure.text.lower():
            return AccessDeniedError("The role of this catalog may not do that")
        return None

    def check(self) -> None:
        """Take the role once."""
        try:
            self._role.keys()
        except ExternalError as error:
            raise StartupError(error.message) from error


class GlueFactory(CatalogFactory[GlueConfig]):
    """Makes catalogs of `type = "acme-glue"`."""

    kind = "acme-glue"
    config_type = GlueConfig

    def create(self, name: str, config: GlueConfig, context: CatalogContext) -> Glue:
        """Make one."""
        return Glue(config)


class GluePlugin(SqePlugin):
    """Registers it."""

    @hookimpl
    def sqe_provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
        """Contribute `acme-glue`."""
        return (GlueFactory(),)
