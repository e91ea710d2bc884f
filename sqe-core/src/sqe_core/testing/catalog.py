"""The contract of catalogs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from sqe_core.spi.catalog import (
    AttachRequest,
    CatalogBackend,
    CatalogContext,
    CatalogFactory,
    SupportsDiscovery,
)
from sqe_core.spi.errors import NotSupportedError, ObjectNotFoundError, SqeError, UserError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Secret
from sqe_core.spi.policy import SupportsGrants
from sqe_core.testing.contract import ProductContract, assert_no_secret, in_threads
from sqe_core.testing.fakes import make_identity

ALICE = make_identity("alice", token="token-of-alice-5d1f")  # noqa: S106 - no real token
BOB = make_identity("bob", token="token-of-bob-77c3")  # noqa: S106 - no real token


class CatalogContract(ProductContract):
    """What every catalog promises, without an engine.

    Fixtures to supply: `factory`, `config`, and with the capability `attach` also `attach_request`.

    Capabilities: `attach` (ATTACH works), `views`, `writes`, `per_user` (each request carries the user's own token),
    `quick_metadata` (listings before the engine is up), `discovery`, `grants`.
    """

    CONTEXT: ClassVar[type[PluginContext]] = CatalogContext
    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset(
        {"attach", "views", "writes", "per_user", "quick_metadata", "discovery", "grants"}
    )

    @pytest.fixture
    def attach_request(self) -> AttachRequest:
        """An ATTACH statement that works."""
        raise NotImplementedError("supply the fixture 'attach_request', or do not declare 'attach'")

    @pytest.fixture
    def backend(self, product: CatalogBackend) -> CatalogBackend:
        """The catalog under test."""
        return product

    def test_is_a_backend(self, backend: CatalogBackend) -> None:
        """The factory makes a CatalogBackend that can be used."""
        assert isinstance(backend, CatalogBackend)
        backend.check()

    def test_properties_are_text(self, backend: CatalogBackend) -> None:
        """The engine takes text only, and the empty key, the class of the mount, belongs to it."""
        properties = backend.spark_properties(ALICE)
        assert properties
        assert all(isinstance(key, str) and isinstance(value, str) for key, value in properties.items())
        assert all(properties)

    def test_properties_choose_an_implementation(self, backend: CatalogBackend) -> None:
        """Iceberg wants `type` or `catalog-impl`, and refuses both."""
        assert len({"type", "catalog-impl"} & backend.spark_properties(ALICE).keys()) == 1

    def test_table_cache_is_off(self, backend: CatalogBackend) -> None:
        """With Iceberg's table cache sessions do not see each other's commits."""
        assert backend.spark_properties(ALICE)["cache-enabled"] == "false"

    def test_properties_are_repeatable(self, backend: CatalogBackend) -> None:
        """The same user gets the same mount, from any thread."""
        answers = in_threads(lambda: dict(backend.spark_properties(ALICE)))
        assert all(answer == answers[0] for answer in answers)

    def test_identity_mode_is_true(self, backend: CatalogBackend) -> None:
        """`user` sends the user's own token and nobody else's; `shared` sends none (AUTHN-3)."""
        for_alice, for_bob = backend.spark_properties(ALICE), backend.spark_properties(BOB)
        assert backend.identity_mode == ("user" if self.can("per_user") else "shared")
        if not self.can("per_user"):
            assert for_alice == for_bob
            assert_no_secret(str(dict(for_alice)), ALICE.access_token)
            return
        assert _contains(for_alice, ALICE.access_token)
        assert not _contains(for_alice, BOB.access_token)
        assert _contains(for_bob, BOB.access_token)

    def test_user_token_is_alone(self, backend: CatalogBackend) -> None:
        """With `credential` beside `token`, Iceberg's REST client becomes the service account; SQE refreshes."""
        self.need("per_user")
        properties = backend.spark_properties(ALICE)
        assert "credential" not in properties
        if "token" in properties:
            assert properties.get("token-refresh-enabled") == "false"

    def test_user_without_token_is_refused(self, backend: CatalogBackend) -> None:
        """A session without a token does not quietly become somebody else."""
        self.need("per_user")
        with pytest.raises(SqeError):
            backend.spark_properties(replace(ALICE, access_token=None))

    def test_nothing_secret_prints(self, backend: CatalogBackend, config: Any) -> None:
        """Neither the catalog, nor its settings, nor its address shows a secret (SESS-7)."""
        backend.spark_properties(ALICE)
        secrets = [value for value in vars_of(config).values() if isinstance(value, Secret)]
        for shown in (repr(backend), repr(config), str(backend.uri)):
            assert_no_secret(shown, ALICE.access_token, *secrets)

    def test_capabilities_are_declared(self, backend: CatalogBackend) -> None:
        """What the catalog says about itself is what was declared."""
        assert backend.supports_views == self.can("views")
        assert backend.read_only != self.can("writes")
        assert isinstance(backend, SupportsDiscovery) == self.can("discovery")
        assert isinstance(backend, SupportsGrants) == self.can("grants")

    def test_quick_metadata_lists(self, backend: CatalogBackend) -> None:
        """Early listings work and raise for what is missing; without the capability there are none."""
        metadata = backend.quick_metadata(ALICE)
        assert (metadata is not None) == self.can("quick_metadata")
        if metadata is None:
            return
        for namespace in metadata.list_namespaces():
            assert namespace
            metadata.load_namespace(namespace)
            assert not set(metadata.list_tables(namespace)) & set(metadata.list_views(namespace))
        for look in (metadata.list_tables, metadata.list_views, metadata.load_namespace):
            with pytest.raises(ObjectNotFoundError):
                look(("no_such_namespace_5d1f",))

    def test_attach(
        self, factory: CatalogFactory[Any], context: CatalogContext, request: pytest.FixtureRequest
    ) -> None:
        """ATTACH makes settings that work; without the capability it is refused."""
        if not self.can("attach"):
            with pytest.raises(NotSupportedError):
                factory.attach(AttachRequest(name="x", location="x"))
            return
        attach_request: AttachRequest = request.getfixturevalue("attach_request")
        config = factory.attach(attach_request)
        assert type(config) is factory.config_type
        backend = factory.create(attach_request.name, config, context)
        assert backend.spark_properties(ALICE)
        backend.close()

    def test_attach_refuses_unknown_options(self, factory: CatalogFactory[Any], request: pytest.FixtureRequest) -> None:
        """A mistyped option is a fault of the statement, never ignored."""
        self.need("attach")
        attach_request: AttachRequest = request.getfixturevalue("attach_request")
        with pytest.raises(UserError):
            factory.attach(replace(attach_request, options={**attach_request.options, "no_such_option": "1"}))


def vars_of(config: Any) -> dict[str, Any]:
    """Return the fields of a dataclass instance, with or without slots."""
    return {name: getattr(config, name) for name in config.__dataclass_fields__}


def _contains(properties: Any, secret: Secret | None) -> bool:
    assert secret is not None
    return any(secret.reveal() in value for value in properties.values())
