"""Liveness and readiness: checks that hang, fail and recover, and how little is said about them."""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import UTC, datetime

import pytest
from testbed.clocks import wait_for

from sqe_core.observe.health import Probe, Readiness, health_routes
from sqe_core.spi.errors import ConfigError, ExternalError
from sqe_core.spi.protocol import ServerState, ServerStatus
from sqe_http.listener import HttpRequest

CANARY = "https://user:canary-pass@catalog.internal/v1"


class Backend:
    """A catalog whose check can fail and hang."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0

    def check(self) -> None:
        self.calls += 1
        self.gate.wait(10)
        if self.error:
            raise self.error


@pytest.fixture
def backend() -> Backend:
    return Backend()


def readiness(*probes: Probe, engine: bool = True, draining: bool = False) -> Readiness:
    return Readiness(engine_ready=lambda: engine, draining=lambda: draining, catalogs=probes)


def test_everything_passes(backend: Backend) -> None:
    assert readiness(Probe("catalog a", backend.check)).failed() == ()


def test_an_engine_that_starts_is_not_ready(backend: Backend) -> None:
    assert readiness(Probe("catalog a", backend.check), engine=False).failed() == ("engine",)


def test_who_drains_asks_nobody(backend: Backend) -> None:
    assert readiness(Probe("catalog a", backend.check), draining=True).failed() == ("draining",)
    assert backend.calls == 0


def test_a_failing_catalog_and_its_recovery(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    asked = readiness(Probe("catalog a", backend.check, fresh_secs=0))
    backend.error = ExternalError("the catalog does not answer")
    assert asked.failed() == ("catalogs",)
    assert asked.failed() == ("catalogs",)
    backend.error = None
    assert asked.failed() == ()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    assert said == ["catalog a cannot be used: the catalog does not answer", "catalog a can be used again"]


@pytest.mark.rule("OBS-2")
def test_a_librarys_text_is_not_logged(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    backend.error = OSError(f"cannot open {CANARY}")
    assert readiness(Probe("catalog a", backend.check)).failed() == ("catalogs",)
    assert "catalog a cannot be used: OSError" in caplog.text
    assert "canary" not in caplog.text


def test_a_hanging_catalog_fails_in_time_and_is_not_asked_twice(backend: Backend) -> None:
    probe = Probe("catalog a", backend.check, timeout_secs=0.2, fresh_secs=0)
    backend.gate.clear()
    began = time.monotonic()
    assert readiness(probe).failed() == ("catalogs",)
    assert time.monotonic() - began < 2
    for _ in range(5):
        assert readiness(probe).failed() == ("catalogs",)
    assert backend.calls == 1
    backend.gate.set()
    wait_for(lambda: not readiness(probe).failed(), 5)


def test_catalogs_are_asked_side_by_side() -> None:
    backends = [Backend() for _ in range(8)]
    for each in backends:
        each.gate.clear()
    asked = readiness(*(Probe(f"catalog {n}", each.check, timeout_secs=0.3) for n, each in enumerate(backends)))
    began = time.monotonic()
    assert asked.failed() == ("catalogs",)
    assert time.monotonic() - began < 1.5
    for each in backends:
        each.gate.set()


def test_many_questions_are_one_check(backend: Backend) -> None:
    asked = readiness(Probe("catalog a", backend.check, fresh_secs=60))
    threads = [threading.Thread(target=asked.failed) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert backend.calls == 1


@pytest.mark.rule("OBS-6")
def test_health_reveals_nothing(backend: Backend) -> None:
    backend.error = ConfigError((f"secret-catalog-name at {CANARY}",))
    status = ServerStatus(state=ServerState.STARTING, version="1.2.3", started_at=datetime(2026, 1, 1, tzinfo=UTC))
    asked = readiness(Probe("catalog secret-catalog-name", backend.check), engine=False)
    routes = health_routes(asked, lambda: status)
    assert set(routes) == {"/healthz", "/readyz", "/api/v1/status"}
    answers = {path: route(HttpRequest(path=path, query="", headers={})) for path, route in routes.items()}
    assert (answers["/healthz"].status, answers["/healthz"].body) == (200, b"ok\n")
    assert answers["/readyz"].status == 503
    assert json.loads(answers["/readyz"].body) == {"status": "unavailable", "failed": ["engine", "catalogs"]}
    assert json.loads(answers["/api/v1/status"].body) == {"version": "1.2.3", "state": "starting"}
    assert all(b"secret" not in answer.body and b"canary" not in answer.body for answer in answers.values())
