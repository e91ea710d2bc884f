"""The contract kit: tests that every plugin of a kind has to pass, ours too, and fakes of the core.

Subclass the contract of your kind in a test module, give it a name that begins with `Test`, supply the fixtures that
it asks for and declare your capabilities. Everything else is inherited:

    class TestGuests(AuthProviderContract):
        capabilities = frozenset()

        @pytest.fixture
        def factory(self):
            return GuestsFactory()

        ...

A test of the kit cannot be overridden. Where your plugin has a known fault, say so and why:

        @pytest.mark.xfail(reason="https://…/issues/7: refresh loses the groups", strict=True)
        def test_refresh_keeps_who_it_is(self, provider, accepted):
            super().test_refresh_keeps_who_it_is(provider, accepted)

Needs pytest: install `sqe-core[testing]`.
"""

from sqe_core.testing.auth import AuthProviderContract
from sqe_core.testing.catalog import CatalogContract
from sqe_core.testing.contract import ConfigContract, Contract, FactoryContract
from sqe_core.testing.fakes import FakeAnswer, FakeGateway, FixedClock, RecordingMetrics, make_identity
from sqe_core.testing.grants import GrantStoreContract
from sqe_core.testing.lineage import LineageSinkContract, make_lineage_event
from sqe_core.testing.observer import ObserverContract, make_query_event
from sqe_core.testing.plugin import PluginContract
from sqe_core.testing.policy import PolicyEnforcerContract, make_policy_request
from sqe_core.testing.protocol import ClientConnection, ProtocolClient, ProtocolContract

__all__ = [
    "AuthProviderContract",
    "CatalogContract",
    "ClientConnection",
    "ConfigContract",
    "Contract",
    "FactoryContract",
    "FakeAnswer",
    "FakeGateway",
    "FixedClock",
    "GrantStoreContract",
    "LineageSinkContract",
    "ObserverContract",
    "PluginContract",
    "PolicyEnforcerContract",
    "ProtocolClient",
    "ProtocolContract",
    "RecordingMetrics",
    "make_identity",
    "make_lineage_event",
    "make_policy_request",
    "make_query_event",
]
