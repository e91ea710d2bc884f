"""What the tests of this plugin share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from oidc_idp import FakeIdp
from testbed.clocks import TurnedClock
from testbed.making import each_ended

from sqe_auth_oidc.provider import Surroundings
from sqe_core.spi import PluginContext
from sqe_core.testing import RecordingMetrics
from sqe_http.testing import make_certificate


@pytest.fixture
def idp() -> Iterator[FakeIdp]:
    """The identity provider."""
    fake = FakeIdp()
    yield fake
    fake.stop()


@pytest.fixture
def ticks() -> TurnedClock:
    """The clock of ages."""
    return TurnedClock()


@pytest.fixture
def metrics() -> RecordingMetrics:
    """What was counted."""
    return RecordingMetrics()


@pytest.fixture
def make(ticks: TurnedClock, metrics: RecordingMetrics) -> Iterator[Callable[..., Any]]:
    """Make a provider of a class, with a clock that the test turns; closed at the end."""

    def make(kind: type[Any], config: Any, *, name: str = "idp", **context: Any) -> Any:
        surroundings = Surroundings(
            name=name, context=PluginContext(**{"metrics": metrics, **context}), monotonic=ticks
        )
        return kind(config, surroundings)

    yield from each_ended(make)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[str, str]]:
    """Two servers' certificates that nobody else vouches for: of this machine, and of another one."""
    folder = tmp_path_factory.mktemp("tls")
    names = {"here": "IP:127.0.0.1", "elsewhere": "DNS:idp.example.com"}
    return {name: make_certificate(folder, names[name], subject=name) for name in names}
