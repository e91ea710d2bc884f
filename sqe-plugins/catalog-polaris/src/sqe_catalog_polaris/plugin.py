"""What this distribution brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqe_catalog_polaris.config import HorizonConfig, NessieConfig, PolarisConfig, RestAuth, RestConfig, UnityConfig
from sqe_core.spi import (
    AttachRequest,
    CatalogBackend,
    CatalogContext,
    CatalogFactory,
    ErrorCode,
    Secret,
    SqePlugin,
    StartupContext,
    UserError,
    hookimpl,
)


class _Factory(CatalogFactory[RestConfig]):
    def __init__(self, kind: str, config_type: type[RestConfig]) -> None:
        self.kind = kind
        self.config_type = config_type

    def create(self, name: str, config: RestConfig, context: CatalogContext) -> CatalogBackend:
        from sqe_catalog_polaris.kinds import make_backend  # `sqe config check` needs the keys and not the HTTP client

        return make_backend(name, config, context)

    def attach(self, request: AttachRequest) -> RestConfig:
        """`ATTACH 'https://…' AS x (TYPE iceberg_rest, WAREHOUSE '…', SECRET s)`.

        Without a secret each user's own token is sent; with one, everybody is the owner of that token.
        """
        request.check(required=("warehouse",), optional=("store",), secrets=("bearer",))
        if not request.location.startswith(("https://", "http://")):
            raise UserError("ATTACH of this type needs an http address in quotes", code=ErrorCode.INVALID_ARGUMENTS)
        store: Any = request.options.get("store", "s3")
        if store not in ("s3", "local"):
            raise UserError("STORE is 's3' or 'local'", code=ErrorCode.INVALID_ARGUMENTS)
        auth = RestAuth()
        if request.secret is not None:
            auth = RestAuth(type="static", token=request.secret.values.get("token", Secret("")))
        try:
            return self.config_type(
                catalog_url=request.location, warehouse=request.options["warehouse"], auth=auth, store=store
            )
        except ValueError as error:
            raise UserError(str(error), code=ErrorCode.INVALID_ARGUMENTS) from error


_KINDS: Mapping[str, type[RestConfig]] = {
    "rest": RestConfig,
    "iceberg_rest": RestConfig,
    "polaris": PolarisConfig,
    "nessie": NessieConfig,
    "unity": UnityConfig,
    "horizon": HorizonConfig,
}
FACTORIES = {kind: _Factory(kind, config_type) for kind, config_type in _KINDS.items()}


class RestCatalogsPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
        return tuple(FACTORIES.values())
