"""From the command line to what the engine may use; a backend that opens in the background."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from cli_fakes import NAMES, FakeBackend

from sqe_core.cli.arguments import parse
from sqe_core.cli.embedded import LateBackend, engine_options
from sqe_core.spi.errors import ConfigError


def test_memory_limit() -> None:
    assert engine_options(parse(["--memory-limit", "1.5GB"]), {}).memory_bytes == 3 << 29
    assert engine_options(parse([]), {}).memory_bytes == 1 << 30


def test_the_environment_says_where_the_engine_is() -> None:
    environment = {
        "SQE_ENGINE__JAR_DIR": "/jars",
        "SQE_ENGINE__CACHE_DIR": "/cache",
        "SQE_ENGINE__JAR_MIRROR": "https://mirror.example.com/maven",
        "SQE_POLICY__ENGINE": "no business of the command line",
    }
    engine = engine_options(parse([]), environment)
    assert (engine.jar_dir, engine.cache_dir) == (Path("/jars"), Path("/cache"))
    assert engine.jar_mirror == "https://mirror.example.com/maven"


def test_a_wrong_key_of_the_environment_is_told() -> None:
    with pytest.raises(ConfigError, match="jar_folder"):
        engine_options(parse([]), {"SQE_ENGINE__JAR_FOLDER": "/jars"})


def test_a_late_backend_decorates_at_once_and_works_when_it_is_open(backend: FakeBackend) -> None:
    gate = threading.Event()

    def open_slowly() -> FakeBackend:
        gate.wait(10)
        return backend

    late = LateBackend(open_slowly)
    steps: list[str] = []
    late.on_engine_progress(lambda what, share: steps.append(what))
    late.start()
    assert (late.state_name, late.current, late.progress()) == ("starting", ("", ""), None)
    assert late.completions().tables == {}
    late.cancel()
    gate.set()
    assert late.execute("SELECT 1").read_all().to_pylist() == [{"n": 1}]
    assert (late.state_name, late.current) == ("ready", ("iceberg", "default"))
    assert late.completions() is NAMES
    assert steps == ["fetching the engine"]
    late.close()
    assert backend.closed


def test_a_late_backend_that_was_never_used_opens_nothing() -> None:
    LateBackend(lambda: pytest.fail("opened")).close()


def test_a_late_backend_that_cannot_be_opened_says_why() -> None:
    def fail() -> FakeBackend:
        raise ConfigError(("no such warehouse",))

    late = LateBackend(fail)
    with pytest.raises(ConfigError, match="no such warehouse"):
        late.split("SELECT 1")
    assert late.state_name == "failed"
    assert isinstance(late.error, ConfigError)
    late.close()
