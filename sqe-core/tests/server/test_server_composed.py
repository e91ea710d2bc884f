"""The server that a configuration file describes: which ports on which addresses, and what it refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqe_core import bootstrap
from sqe_core.bootstrap import options, serving
from sqe_core.bootstrap.checking import check_configuration
from sqe_core.catalog.registry import CatalogRegistry
from sqe_core.config.loading import LoadedConfig, Reading, load
from sqe_core.engine.spark.conf import check_operator_settings
from sqe_core.observe.metrics import PrometheusMetrics
from sqe_core.plugins.discovery import DeclaredPlugin
from sqe_core.plugins.kinds import Kind
from sqe_core.plugins.manager import PluginManager
from sqe_core.query.ingest.rows import IngestLimits
from sqe_core.server import Server, StatusBoard
from sqe_core.session.rate_limits import RateLimits
from sqe_core.session.store import SessionStore
from sqe_core.spi import (
    ConfigError,
    Endpoint,
    ExternalError,
    NoConfig,
    PluginError,
    ProtocolContext,
    ProtocolFactory,
    ProtocolServer,
    QueryGateway,
    SqePlugin,
    StartupContext,
    StartupError,
    hookimpl,
)
from sqe_core.testing.engine import FakeEngine

NO_POLICY = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true\n'
ANYBODY = '[[auth.providers]]\ntype = "anonymous"\n'


class Remembered(ProtocolServer):
    contexts: list[ProtocolContext] = []  # noqa: RUF012 - emptied by the fixture

    def start(self, gateway: QueryGateway) -> Endpoint:
        raise NotImplementedError

    def stop(self, drain_secs: float) -> None:
        raise NotImplementedError


class RememberedFactory(ProtocolFactory[NoConfig]):
    kind = "quack"
    config_type = NoConfig

    def create(self, name: str, config: NoConfig, context: ProtocolContext) -> ProtocolServer:
        Remembered.contexts.append(context)
        return Remembered()


class RememberedPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_protocols(self, context: StartupContext) -> tuple[ProtocolFactory[NoConfig], ...]:
        return (RememberedFactory(),)


@pytest.fixture(autouse=True)
def _forget() -> None:
    Remembered.contexts.clear()


def plugins() -> PluginManager:
    known = [each for each in PluginManager().declared if each.distribution == "sqe-core" and each.name == "core"]
    here = DeclaredPlugin(
        name="remembered",
        distribution="sqe-remembered",
        version="1",
        target=f"{__name__}:RememberedPlugin",
        kinds=frozenset({Kind.parse(f"protocol.{RememberedFactory.kind}")}),
        spi="1.0",
    )
    manager = PluginManager([*known, here])
    manager._load = _loading(manager._load, here, manager)  # type: ignore[method-assign]
    return manager


def _loading(load_other, here: DeclaredPlugin, manager: PluginManager):  # type: ignore[no-untyped-def]
    """A test module cannot be imported by its name: its plugin is handed over."""

    def load_plugin(declared: DeclaredPlugin) -> SqePlugin:
        if declared is not here or here in manager._loaded:
            return load_other(declared)  # type: ignore[no-any-return]
        plugin = manager._loaded[here] = RememberedPlugin()
        manager.calls.register(plugin, declared.label)
        manager._factories.update(manager._provided(declared))
        return plugin

    return load_plugin


def configured(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> LoadedConfig:
    file = tmp_path / "sqe.toml"
    file.write_text(NO_POLICY + text)
    return load(file, environ=environ or {})


def serve(tmp_path: Path, text: str, **environ: str) -> Server:
    return bootstrap.serve(configured(tmp_path, text, environ), plugins(), engine=FakeEngine())


def test_what_fails_late_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    def fail(*args: object, **named: object) -> None:
        raise PluginError("the last part cannot be made")

    monkeypatch.setattr(SessionStore, "close", lambda store: closed.append("sessions"))
    monkeypatch.setattr(CatalogRegistry, "close", lambda catalogs: closed.append("catalogs"))
    monkeypatch.setattr(serving, "_listeners", fail)
    with pytest.raises(PluginError):
        serve(tmp_path, "[coordinator]\nquack_port = 9494\n")
    assert closed == ["sessions", "catalogs"]
    closed.clear()
    monkeypatch.undo()
    monkeypatch.setattr(CatalogRegistry, "close", lambda catalogs: closed.append("catalogs"))
    monkeypatch.setattr(serving, "session_store", fail)
    with pytest.raises(PluginError):
        serve(tmp_path, "[coordinator]\nquack_port = 9494\n")
    assert closed == ["catalogs"]


def test_without_a_login_everything_is_on_loopback(tmp_path: Path) -> None:
    server = serve(tmp_path, "[coordinator]\nquack_port = 9494\n")
    assert [context.bind_host for context in Remembered.contexts] == ["127.0.0.1"]
    assert [(each.name, each.host, each.port) for each in server._parts.listeners] == [
        ("health", "127.0.0.1", 9091),
        ("metrics", "127.0.0.1", 9090),
    ]


def test_with_a_login_the_network_may_come(tmp_path: Path) -> None:
    server = serve(tmp_path, ANYBODY + "[coordinator]\nquack_port = 9494\n[security]\ntrusted_proxies = ['10.0.0.1']\n")
    (context,) = Remembered.contexts
    assert (context.bind_host, context.port) == ("0.0.0.0", 9494)
    assert context.trusted_proxies == ("10.0.0.1",)
    assert context.tls is None
    assert {each.host for each in server._parts.listeners} == {"0.0.0.0"}


def test_each_listener_binds_where_it_is_told(tmp_path: Path) -> None:
    text = '[coordinator]\nquack_port = 9494\nbind_address = "127.0.0.2"\n[metrics]\n'
    server = serve(tmp_path, ANYBODY + text + 'bind_address = "127.0.0.3"\nhealth_bind_address = "::1"\n')
    assert [context.bind_host for context in Remembered.contexts] == ["127.0.0.2"]
    assert [(each.name, each.host) for each in server._parts.listeners] == [("health", "::1"), ("metrics", "127.0.0.3")]
    Remembered.contexts.clear()
    server = serve(tmp_path, ANYBODY + text)
    assert {each.host for each in server._parts.listeners} == {"127.0.0.2"}


def test_a_port_that_nobody_wrote_is_off_and_said(tmp_path: Path) -> None:
    server = serve(tmp_path, "")
    assert server._parts.protocols == []
    assert list(server._parts.off) == [
        "the protocol 'flight' is off: nobody provides it",
        "the protocol 'trino' is off: it is not installed (pip install sqe-protocol-trino)",
    ]


@pytest.mark.parametrize("in_environment", [True, False])
def test_a_port_that_somebody_wrote_needs_its_plugin(tmp_path: Path, in_environment: bool) -> None:
    text = "" if in_environment else "[coordinator]\ntrino_http_port = 8081\n"
    environ = {"SQE_COORDINATOR__TRINO_HTTP_PORT": "8081"} if in_environment else {}
    told = r"coordinator\.trino_http_port: The protocol 'trino' is not installed \(pip install sqe-protocol-trino\)"
    with pytest.raises(ConfigError, match=told):
        serve(tmp_path, text, **environ)


def test_any_kind_can_be_served(tmp_path: Path) -> None:
    text = (
        '[protocols.quack]\nport = 9495\nbind_address = "127.0.0.7"\npublic_url = "https://sqe.example.com"\n'
        "[coordinator]\nbind_address = '127.0.0.1'\n"
    )
    server = serve(tmp_path, text)
    (context,) = Remembered.contexts
    assert (context.bind_host, context.port, context.public_url) == ("127.0.0.7", 9495, "https://sqe.example.com")
    assert [kind for kind, _ in server._parts.protocols] == ["quack"]


def test_a_protocol_without_a_port_has_that_of_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RememberedFactory, "kind", "remembered")
    monkeypatch.setattr(RememberedFactory, "default_port", 5433)
    serve(tmp_path, "[protocols.remembered]\n")
    monkeypatch.setattr(RememberedFactory, "default_port", 0)
    with pytest.raises(ConfigError, match=r"protocols\.remembered\.port: is missing; this protocol has no port of its"):
        serve(tmp_path, "[protocols.remembered]\n")
    assert [context.port for context in Remembered.contexts] == [5433]


def test_a_port_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"protocols\.quack\.port: is given twice, here and as coordinator\.quack"):
        serve(tmp_path, "[coordinator]\nquack_port = 9494\n[protocols.quack]\nport = 9495\n")


def test_the_keys_of_a_protocol_are_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"protocols\.quack\.feathers: unknown key"):
        serve(tmp_path, "[protocols.quack]\nport = 9495\nfeathers = 3\n")


class Unwilling:
    """Raises whatever it is asked for."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *args: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("[protocols.quack]\nport = 9495\n", (RememberedFactory, "create"), "protocol quack"),
        ("[plugins.remembered]\n", (RememberedPlugin, "start"), "plugin remembered"),
    ],
)
def test_whatever_a_plugin_raises_is_told_with_its_place(
    tmp_path: Path,
    text: str,
    place: tuple[type, str],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "[metrics]\nprometheus_port = 0\n" + text
    for error, told in (
        (ConfigError(("no feathers",)), "no feathers"),
        (StartupError("no pond", hint="dig one"), "no pond (dig one)"),
        (ValueError("login=hunter2"), f"the {what} cannot be made: ValueError (the log has the cause)"),
    ):
        monkeypatch.setattr(*place, Unwilling(error))
        loaded = configured(tmp_path, text)
        (fault,) = check_configuration(Reading(loaded=loaded, faults=()), plugins()).faults
        assert "sqe.toml:" in fault
        assert fault.endswith(f": {told}")
        with pytest.raises((ConfigError, StartupError)) as caught:
            serve(tmp_path, text)._parts.components[-1].start()
        assert told.partition(" (")[0] in str(caught.value)
        assert "sqe.toml:" in str(caught.value)
        assert "hunter2" not in str(caught.value)
    assert "hunter2" in caplog.text


def test_a_port_of_zero_is_off_and_not_worth_a_word(tmp_path: Path) -> None:
    server = serve(
        tmp_path, "[coordinator]\nflight_sql_port = 0\ntrino_http_port = 0\n[metrics]\nprometheus_port = 0\n"
    )
    assert list(server._parts.off) == []
    assert server._parts.listeners == ()


def test_tls_reaches_protocols_and_listeners(tmp_path: Path, tls_files: tuple[str, str]) -> None:
    cert, key = tls_files
    text = f'[coordinator]\nquack_port = 9494\n[coordinator.tls]\ncert_file = "{cert}"\nkey_file = "{key}"\n'
    server = serve(tmp_path, text + f'ca_file = "{cert}"\n')
    (context,) = Remembered.contexts
    assert context.tls is not None
    assert (context.tls.cert_file, context.tls.key_file, context.tls.ca_file) == (Path(cert), Path(key), Path(cert))
    assert server._parts.needs_tls
    assert all(each.secure for each in server._parts.listeners)


@pytest.mark.rule("OBS-6")
@pytest.mark.parametrize(
    ("more", "host"), [("", "127.0.0.1"), ("[metrics]\nscrape_token = 'kRp29-long-enough'\n", "0.0.0.0")]
)
def test_in_production_metrics_are_protected(tmp_path: Path, tls_files: tuple[str, str], more: str, host: str) -> None:
    text = f'{ANYBODY}[coordinator.tls]\ncert_file = "{tls_files[0]}"\nkey_file = "{tls_files[1]}"\n{more}'
    # Production refuses other things of this file, which belong to other tests.
    loaded = configured(tmp_path, text)
    coordinator = replace(loaded.config.coordinator, production_mode=True)
    loaded = replace(loaded, config=replace(loaded.config, coordinator=coordinator))
    sqe = bootstrap.compose(configured(tmp_path, text), plugins(), engine=FakeEngine())
    status = StatusBoard(sqe.engine, "1")
    health, metrics = serving._listeners(loaded, sqe, status, PrometheusMetrics())
    assert (health.host, metrics.host) == ("0.0.0.0", host)


def test_the_bounds_of_bulk_ingests_are_those_of_the_file(tmp_path: Path) -> None:
    text = (
        "[query]\nmax_ingest_bytes = '1MB'\nmax_ingest_batch_bytes = '2KB'\nmax_ingest_batch_rows = 3\n"
        "max_ingest_columns = 4\ningest_disk_reserve = 5\n"
    )
    limits = options.ingest_limits(configured(tmp_path, text).config.query)
    assert (limits.total_bytes, limits.batch_bytes, limits.batch_rows) == (1 << 20, 2048, 3)
    assert (limits.schema.columns, limits.disk_reserve_bytes) == (4, 5)


def test_without_a_word_they_are_the_built_in_ones(tmp_path: Path) -> None:
    assert options.ingest_limits(configured(tmp_path, "").config.query) == IngestLimits()


def test_rates_count_only_where_they_are_wanted(tmp_path: Path) -> None:
    text = "[rate_limit]\nenabled = true\nper_user_queries_per_minute = 7\nmetadata_per_user_per_minute = 8\n"
    assert options.rate_limits(configured(tmp_path, "").config.rate_limit) is None
    assert options.rate_limits(configured(tmp_path, text).config.rate_limit) == RateLimits(
        statements_per_user=7, statements_of_all=1000, metadata_per_user=8
    )


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("[optimizer]\nbroadcast_threshold = '1MB'", {"spark.sql.autoBroadcastJoinThreshold": "1048576"}),
        ("[optimizer]\nbroadcast_threshold = 0", {"spark.sql.autoBroadcastJoinThreshold": "-1"}),
        (
            "[coordinator]\nspill_compression = 'none'\nshuffle_compression = 'zstd'",
            {
                "spark.shuffle.spill.compress": "false",
                "spark.shuffle.compress": "true",
                "spark.io.compression.codec": "zstd",
            },
        ),
        (
            "[coordinator]\nspill_compression = 'lz4'\nshuffle_compression = 'none'",
            {
                "spark.shuffle.spill.compress": "true",
                "spark.shuffle.compress": "false",
                "spark.io.compression.codec": "lz4",
            },
        ),
    ],
)
def test_tuning_keys_become_settings_of_the_engine(tmp_path: Path, text: str, settings: dict[str, str]) -> None:
    found = options.spark_settings(configured(tmp_path, text))
    assert found == settings
    check_operator_settings(found)


class Checked:
    """A catalog or an engine that says how it is."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.check = act


def test_what_will_not_work_stops_the_start_and_what_is_down_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "_CHECK_SECS", 0.3)
    gate = threading.Event()

    def raises(error: Exception) -> Callable[[], None]:
        def act() -> None:
            raise error

        return act

    def checked(*acts: Callable[[], None]) -> Any:
        mounts = [SimpleNamespace(name=f"c{index}", backend=Checked(act)) for index, act in enumerate(acts)]
        return SimpleNamespace(catalogs=SimpleNamespace(mounts=lambda: mounts), enforcers=())

    down = ExternalError("the catalog did not answer")
    serving._check(checked(raises(down), raises(ValueError("canary")), lambda: gate.wait(20) and None))
    gate.set()
    assert "catalog c0 cannot be used: the catalog did not answer" in caplog.text
    assert "catalog c1 cannot be used: ValueError" in caplog.text
    assert "catalog c2 cannot be used: no answer in 0.3 s" in caplog.text
    assert "canary" not in caplog.text
    with pytest.raises(ConfigError, match="no such folder"):
        serving._check(checked(raises(down), raises(ConfigError(("no such folder",)))))
