"""Flag over environment over file over default, for every key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from config_files import faults, written

from sqe_core.bootstrap.instances import configured_instances
from sqe_core.config import load, locate
from sqe_core.config.origin import KeyPath, dotted
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.values import Share
from sqe_core.config.walk import Key, keys, leaves
from sqe_core.plugins.kinds import ExtensionPoint
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.errors import ConfigError
from sqe_core.spi.identity import Secret

PLAIN = [key for key in keys(SqeConfig) if "*" not in key.path and key.path[0] != "plugins"]


def variable(path: KeyPath) -> str:
    return "SQE_" + "__".join(str(part).upper() for part in path)


def another_value(key: Key) -> tuple[str, Any]:
    """A value other than the default: as words of the environment, and as it must arrive."""
    hint = key.hint
    if get_origin(hint) is Literal:
        choice = next((choice for choice in get_args(hint) if choice != key.default), key.default)
        return str(choice), choice
    if key.metadata.get("unit") == "bytes":
        return "3GB", 3 << 30
    if key.metadata.get("unit") == "duration":
        return "2h", 7200.0
    if hint is Share:
        return "7%", Share(percent=7)
    if hint is Secret:
        return "hidden", Secret("hidden")
    if hint is bool:
        return ("no", False) if key.default else ("yes", True)
    if hint is int:
        return "7", 7
    if hint is float:
        return "0.5", 0.5
    if get_origin(hint) is tuple:
        items = ("https://localhost:1", "https://localhost:2") if "url" in key.metadata else ("10.0.0.1", "10.0.0.2")
        return ", ".join(items), items
    if hint is str:
        text = "http://localhost:1/x" if "url" in key.metadata else "other"
        text = "yarn" if "pattern" in key.metadata else text
        text = "5 4 * * *" if key.path[-1] == "schedule" else text
        return text, text
    return '{ admin = "9" }' if "one_or_many" in key.metadata else "{ admin = 9 }", None


def bound_alone(path: KeyPath, words: str) -> Any:
    """Bind one variable without the checks, which would miss the keys that belong to it."""
    from sqe_core.config.binder import Binder
    from sqe_core.config.environment import environment_layer

    layer, unknown = environment_layer({variable(path): words}, [str(path[0])])
    assert not unknown
    binder = Binder({})
    value: Any = binder.bind_table(layer, SqeConfig, ())
    assert [fault for fault in binder.faults if fault.message != "is missing"] == []
    assert binder.origins[path].name == variable(path)
    for part in path:
        value = getattr(value, str(part), None)
    return value


@pytest.mark.parametrize("key", PLAIN, ids=lambda key: dotted(key.path))
def test_every_key_can_be_set_by_the_environment(key: Key) -> None:
    words, expected = another_value(key)

    value = bound_alone(key.path, words)

    if key.path[:2] == ("auth", "external"):
        return  # the table needs two keys at once; that the name is known is seen above
    if expected is not None:
        assert value == expected
    if get_args(key.hint) != (key.default,):
        assert value != key.default


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    text = "[query]\ntimeout_secs = 10\n"
    environ = {"SQE_QUERY__TIMEOUT_SECS": "20"}

    assert load(None, environ={}).config.query.timeout_secs == 300
    assert written(tmp_path, text).config.query.timeout_secs == 10
    assert written(tmp_path, text, environ).config.query.timeout_secs == 20
    assert written(tmp_path, text, environ, query__timeout_secs=30).config.query.timeout_secs == 30


def test_the_origin_of_each_layer_is_kept(tmp_path: Path) -> None:
    text = "[query]\n\ntimeout_secs = 10\nmax_result_rows = 5\n"
    loaded = written(tmp_path, text, {"SQE_QUERY__MAX_RESULT_ROWS": "6"}, coordinator__mode="local")

    def origin(*path: str) -> str:
        return str(loaded.sources.origin(*path))

    assert origin("query", "timeout_secs") == f"{tmp_path / 'sqe.toml'}:3"
    assert origin("query", "max_result_rows") == "environment variable SQE_QUERY__MAX_RESULT_ROWS"
    assert origin("coordinator", "mode") == "command line coordinator.mode"
    assert origin("query", "max_sql_bytes") == "default"


def test_every_key_has_an_origin() -> None:
    loaded = load(None, environ={"SQE_CATALOG__TYPE": "sqlite"})

    assert [leaf.path for leaf in leaves(loaded.config) if leaf.path not in loaded.sources.origins] == []


def test_a_flag_that_was_not_given_changes_nothing() -> None:
    assert load(None, environ={}, flags={"coordinator.mode": None}).config.coordinator.mode == "hybrid"


@pytest.mark.parametrize("word", ["true", "1", "yes", "TRUE", "Yes"])
def test_words_for_true(word: str) -> None:
    assert load(None, environ={"SQE_COORDINATOR__DEBUG": word}).config.coordinator.debug


@pytest.mark.parametrize("word", ["false", "0", "no", "NO"])
def test_words_for_false(tmp_path: Path, word: str) -> None:
    loaded = written(tmp_path, "[coordinator]\ndebug = true", {"SQE_COORDINATOR__DEBUG": word})

    assert not loaded.config.coordinator.debug


@pytest.mark.parametrize("word", ["", "on", "2", "truth"])
def test_other_words_are_no_truth_value(tmp_path: Path, word: str) -> None:
    (fault,) = faults(tmp_path, "", {"SQE_COORDINATOR__DEBUG": word})

    assert fault.startswith("environment variable SQE_COORDINATOR__DEBUG: coordinator.debug: expected true, 1, yes")


def test_words_of_the_environment_are_no_truth_value_in_a_file(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, '[coordinator]\ndebug = "true"')

    assert fault.endswith('sqe.toml:2: coordinator.debug: expected true or false, not the text "true"')


def test_an_array_entry_is_set_by_its_index(tmp_path: Path) -> None:
    text = '[[auth.providers]]\ntype = "a"\n[[auth.providers]]\ntype = "b"\nclient_id = "x"\n'
    loaded = written(tmp_path, text, {"SQE_AUTH__PROVIDERS__1__CLIENT_SECRET": "s"})
    assert loaded.config.auth is not None

    first, second = loaded.config.auth.providers
    assert "client_secret" not in first.options
    assert second.options.get("client_secret") == "s"
    assert second.options.get("client_id") == "x"


def test_the_next_index_appends_and_a_gap_is_a_fault(tmp_path: Path) -> None:
    text = '[[auth.providers]]\ntype = "a"\n'

    appended = written(tmp_path, text, {"SQE_AUTH__PROVIDERS__1__TYPE": "b"}).config.auth
    assert appended is not None
    assert [provider.type for provider in appended.providers] == ["a", "b"]

    (fault,) = faults(tmp_path, text, {"SQE_AUTH__PROVIDERS__2__TYPE": "b"})
    assert "SQE_AUTH__PROVIDERS__2__TYPE" in fault
    assert "counted from 0 without a gap" in fault


def test_entries_can_come_from_the_environment_alone() -> None:
    auth = load(None, environ={"SQE_AUTH__PROVIDERS__0__TYPE": "anonymous"}).config.auth

    assert auth is not None
    assert [provider.type for provider in auth.providers] == ["anonymous"]


@pytest.mark.parametrize("words", ["admin,operator", "admin, operator", '["admin", "operator"]', "admin,operator,"])
def test_arrays_in_one_variable(words: str) -> None:
    environ = {"SQE_STORAGE__TVF__OBJECT_STORE_ADMIN_ROLES": words}

    assert load(None, environ=environ).config.storage.tvf.object_store_admin_roles == ("admin", "operator")


def test_an_empty_variable_is_an_empty_array(tmp_path: Path) -> None:
    text = '[auth]\ntoken_endpoint = "http://localhost/t"\n'
    auth = written(tmp_path, text, {"SQE_AUTH__ADMIN_ROLES": ""}).config.auth

    assert auth is not None
    assert auth.admin_roles == ()


def test_a_table_with_free_names_in_one_variable() -> None:
    environ = {"SQE_QUERY__ROLE_OVERRIDES": "{ etl = 3600, bi = 60 }"}

    assert load(None, environ=environ).config.query.role_overrides == {"etl": 3600, "bi": 60}


def test_a_value_cannot_smuggle_other_keys(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, "", {"SQE_QUERY__ROLE_OVERRIDES": "{}\nother = 1"})

    assert "cannot be read as a TOML value" in fault


def test_named_catalogs_are_found_whatever_their_case(tmp_path: Path) -> None:
    text = '[catalogs.My-Lake]\ntype = "sqlite"\n'
    loaded = written(tmp_path, text, {"SQE_CATALOGS__MY_LAKE__WAREHOUSE": "w"})

    assert {name: catalog.warehouse for name, catalog in loaded.config.catalogs.items()} == {"My-Lake": "w"}


def test_an_alias_in_the_environment_beats_the_key_in_the_file(tmp_path: Path) -> None:
    loaded = written(tmp_path, '[catalog]\ncatalog_url = "http://a"\n', {"SQE_CATALOG__POLARIS_URL": "http://b"})

    (catalog,) = configured_instances(loaded, PluginManager()).of(ExtensionPoint.CATALOG)
    assert catalog.settings.catalog_url == "http://b"


def test_a_backend_key_in_the_environment_beats_the_flat_key_in_the_file(tmp_path: Path) -> None:
    text = '[catalog]\ntype = "sqlite"\nwarehouse = "a"\n'
    loaded = written(tmp_path, text, {"SQE_CATALOG__BACKEND__WAREHOUSE": "b"})

    assert loaded.config.catalog is not None
    assert loaded.config.catalog.warehouse == "b"


def test_tls_names_mean_the_coordinator(tmp_path: Path) -> None:
    for name in ("cert", "key", "ca"):
        (tmp_path / name).touch()
    environ = {f"SQE_TLS__{name.upper()}_FILE": str(tmp_path / name) for name in ("cert", "key", "ca")}

    tls = load(None, environ=environ).config.coordinator.tls
    assert (tls.cert_file, tls.key_file, tls.ca_file) == tuple(environ.values())


@pytest.mark.parametrize(
    ("name", "words", "path", "value"),
    [
        ("SQE_MODE", "local", ("coordinator", "mode"), "local"),
        ("SQE_PRODUCTION_MODE", "0", ("coordinator", "production_mode"), False),
        ("SQE_MEMORY_LIMIT", "3GB", ("coordinator", "memory_limit"), 3 << 30),
        ("SQE_MEMORY_POOL", "fair", ("coordinator", "memory_pool"), "fair"),
    ],
)
def test_short_names(tmp_path: Path, name: str, words: str, path: tuple[str, str], value: Any) -> None:
    loaded = written(tmp_path, "[coordinator]\nproduction_mode = true\n" if value is False else "", {name: words})

    assert getattr(loaded.config.coordinator, path[1]) == value
    assert str(loaded.sources.origin(*path)) == f"environment variable {name}"


def test_the_memory_limit_of_a_worker() -> None:
    environ = {
        "SQE_MODE": "worker",
        "SQE_MEMORY_LIMIT": "6GB",
        "SQE_WORKER__COORDINATOR_URL": "http://localhost:50051",
        "SQE_WORKER__WORKER_SECRET": "s",
    }

    loaded = load(None, environ=environ).config
    assert (loaded.worker.memory_limit, loaded.coordinator.memory_limit) == (6 << 30, 8 << 30)


def test_the_long_name_of_the_memory_limit_wins() -> None:
    environ = {"SQE_MEMORY_LIMIT": "6GB", "SQE_COORDINATOR__MEMORY_LIMIT": "5GB"}

    assert load(None, environ=environ).config.coordinator.memory_limit == 5 << 30


def test_a_long_and_a_short_name_that_disagree(tmp_path: Path) -> None:
    assert faults(tmp_path, "", {"SQE_MODE": "local", "SQE_COORDINATOR__MODE": "hybrid"}) == (
        "environment variable SQE_MODE: coordinator.mode: contradicts environment variable SQE_COORDINATOR__MODE",
    )


def test_log_level() -> None:
    assert load(None, environ={}).log_level == "info"
    assert load(None, environ={"SQE_LOG": "WARN"}).log_level == "warning"
    with pytest.raises(ConfigError, match="SQE_LOG: expected one of trace, debug"):
        load(None, environ={"SQE_LOG": "loud"})


def test_unknown_sections_and_keys_of_the_environment_are_faults(tmp_path: Path) -> None:
    section, *others = faults(
        tmp_path, "", {"SQE_QUERRY__X": "1", "SQE_QUERY__TIMEOUT": "1", "SQE_METRICS__AUDIT__FROMAT": "1"}
    )

    assert section.startswith('environment variable SQE_QUERRY__X: unknown section; did you mean "query"?')
    query, metrics = sorted(others, reverse=True)
    assert query.startswith(
        'environment variable SQE_QUERY__TIMEOUT: query.timeout: unknown key; did you mean "timeout_secs"?'
    )
    assert 'metrics.audit.fromat: unknown key; did you mean "format"?' in metrics


def test_what_kubernetes_makes_of_services_is_left_alone() -> None:
    environ = {
        "SQE_COORDINATOR_SERVICE_HOST": "10.0.0.1",
        "SQE_COORDINATOR_PORT_50051_TCP": "tcp://10.0.0.1:50051",
        "SQE_USER": "alice",
        "SQE_PASSWORD": "p",
    }

    assert load(None, environ=environ).config == load(None, environ={}).config


def test_a_flag_of_an_unknown_key_is_a_fault() -> None:
    with pytest.raises(ConfigError, match=r"command line query.tiemout_secs: query.tiemout_secs: unknown key"):
        load(None, environ={}, flags={"query.tiemout_secs": 1})


def test_the_file_is_located_in_order(tmp_path: Path) -> None:
    environ = {"SQE_CONFIG": "/from/environment.toml"}

    assert locate(None, {}, tmp_path) is None
    (tmp_path / "sqe.toml").touch()
    assert locate(None, {}, tmp_path) == tmp_path / "sqe.toml"
    assert locate(None, environ, tmp_path) == Path("/from/environment.toml")
    assert locate("given.toml", environ, tmp_path) == Path("given.toml")


def test_nothing_of_the_process_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SQE_QUERY__TIMEOUT_SECS", "1")
    monkeypatch.setenv("HIDDEN", "from the process")

    assert load(None, environ={}).config.query.timeout_secs == 300
    (fault,) = faults(tmp_path, '[policy]\nmask_key = { env = "HIDDEN" }')
    assert "HIDDEN is not set" in fault
