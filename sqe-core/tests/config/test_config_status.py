"""Nothing that can be configured is silently ignored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from config_files import written

from sqe_core.bootstrap.instances import configured_instances
from sqe_core.config import load
from sqe_core.config.origin import dotted
from sqe_core.config.schema import UNREAD
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.status import unbuilt, without_effect
from sqe_core.config.walk import keys
from sqe_core.plugins.manager import PluginManager


def stops(tmp_path: Path, text: str) -> list[str]:
    """What a server would be asked for and cannot do."""
    return [str(fault) for fault in unbuilt(written(tmp_path, text).config)]


def test_what_does_not_say_otherwise_is_read() -> None:
    """Looked at by more than the checks of the configuration."""
    only_checked = {"policy.enabled", "security.allow_password_grant"}  # a waiver, which its plugin names
    by_another_name = {"auth.ssl_verification"}  # AuthConfig.verify_tls
    described = ("config/sections/", "config/checks/", "config/reference.py")
    root = Path(__file__).parents[3]
    sources = [*root.glob("sqe-core/src/**/*.py"), *root.glob("sqe-plugins/*/src/**/*.py")]
    text = "\n".join(file.read_text() for file in sources if not any(part in file.as_posix() for part in described))

    for key in keys(SqeConfig):
        name = dotted(key.path)
        if {"unbuilt", "no_effect", "protocol", "sink"} & set(key.metadata) or name in only_checked | by_another_name:
            continue
        assert re.search(rf"\b{key.path[-1]}\b", text), name


def test_what_nothing_reads_is_not_read() -> None:
    """A key that says so is not read by its section's attribute anywhere."""
    root = Path(__file__).parents[3] / "sqe-core" / "src"
    checks = ("config/sections/", "config/checks/", "config/reference.py")
    text = "\n".join(file.read_text() for file in root.glob("**/*.py") if not any(part in str(file) for part in checks))
    for key in keys(SqeConfig):
        if key.path[-1] == "persistence_path":  # a place that nobody attaches
            continue
        if key.metadata.get("no_effect") == UNREAD and len(key.path) > 1 and "*" not in key.path:
            assert f"{key.path[-2]}.{key.path[-1]}" not in text, dotted(key.path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[metrics]\notlp_endpoint = "http://o"',
            "metrics.otlp_endpoint: sending metrics is not built yet",
        ),
        (
            "[coordinator]\nallow_unauthenticated_workers = true",
            "coordinator.allow_unauthenticated_workers: workers are not built yet",
        ),
        (
            '[metrics.audit]\nformat = "ocsf"',
            "metrics.audit.format: OCSF is not built yet; the audit log has the native form",
        ),
        (
            '[metrics.audit]\ngdpr_tags = ["PII"]',
            "metrics.audit.gdpr_tags: this part of the audit log is not built yet",
        ),
        ('[maintenance]\nmode = "advisory"', "maintenance: maintenance is not built yet"),
        ('[session]\npersistence = "file"', "session.persistence: sessions that survive a restart"),
        ('[storage]\nazure_account = "a"', "storage.azure_account: this store is not built yet"),
        ("[storage.tvf]\nallow_http = true", "storage.tvf.allow_http: file functions on a server are not"),
        (
            '[catalogs.a]\ntype = "sqlite"\ndefault_table_format_version = 3',
            "catalogs.a.default_table_format_version: this default of new tables is not built yet",
        ),
        ("[query.role_overrides]\netl = 9", "query.role_overrides: roles are not built yet"),
    ],
)
def test_using_what_is_not_built_stops(tmp_path: Path, text: str, expected: str) -> None:
    found = stops(tmp_path, text)

    assert [fault for fault in found if expected in fault], found


@pytest.mark.parametrize(
    "text",
    [
        "[query]\ntimeout_secs = 5\nmax_result_rows = 10\nmax_sql_bytes = 100\nmax_concurrent_queries = 1",
        '[catalogs.a]\ntype = "sqlite"\nwarehouse = "/w"\n[catalogs.b]\ntype = "jdbc"',
        '[engine]\nmaster = "local[2]"\njar_dir = "/jars"',
        '[coordinator]\nmemory_limit = "2GB"\nspill_dir = "/spill"\nshutdown_drain_secs = 5\ntrino_http_port = 8081',
        "[metrics]\nprometheus_port = 9191\nscrape_token = 'x'\n[query_history]\nmax_entries = 5",
        "[query]\nslow_query_threshold_secs = 5",
        "[coordinator]\ntrino_http_port = 0\n[metrics]\nprometheus_port = 0\n[query_cache]\nenabled = false",
        "[rate_limit]\nenabled = true\nglobal_queries_per_minute = 5",
        '[[auth.providers]]\ntype = "anonymous"\nuser = "me"',
        '[[auth.providers]]\ntype = "api_key"\nkeys_file = "keys.toml"\n[[auth.providers]]\ntype = "mtls"',
        "[session]\nidle_timeout_secs = 60\nabsolute_timeout_secs = 600\nexpiry_sweep_interval_secs = 5",
        "[coordinator]\nauth_handshake_timeout_secs = 5\n[rate_limit]\nauth_attempts_per_minute = 3",
        "[query]\nstar_schema_min_ratio = 3\n[catalog]\ntype = 'sqlite'\nmanifest_concurrency = 3",
        "[metrics.openlineage]\nenabled = false\nemit_selects = true",
        '[[auth.providers]]\ntype = "ldap"\n[catalogs.a]\ntype = "vendors"\n[policy]\nengine = "vendors"',
    ],
)
def test_what_is_built_or_switched_off_does_not_stop(tmp_path: Path, text: str) -> None:
    assert stops(tmp_path, text) == []


def test_passthrough_is_the_built_engine(tmp_path: Path) -> None:
    text = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true\n'
    assert stops(tmp_path, text) == []


def test_keys_that_change_nothing_are_named(tmp_path: Path) -> None:
    text = "[query]\ntimeout_secs = 5\nstar_schema_min_ratio = 10\nwrite_buffer_tracking = true\n"
    found = written(tmp_path, text, {"SQE_STORAGE__PREFETCH_BUFFER": "1MB"})

    assert [fault.removeprefix(f"{tmp_path}/") for fault in without_effect(found.config, found.sources)] == [
        "environment variable SQE_STORAGE__PREFETCH_BUFFER: storage.prefetch_buffer: has no effect: "
        "Parquet and S3 readers take it where Iceberg has the option",
        "sqe.toml:3: query.star_schema_min_ratio: has no effect: nothing reads it yet",
        "sqe.toml:4: query.write_buffer_tracking: has no effect: Spark counts them itself",
    ]


def test_defaults_are_nobodys_wish() -> None:
    found = load(None, environ={})

    assert without_effect(found.config, found.sources) == ()


def test_what_a_plugin_takes_is_not_judged_by_the_core(tmp_path: Path) -> None:
    text = (
        '[catalogs.lake]\ntype = "sqlite"\ndirectory = "d"\nfile = "f"\nmanifest_concurrency = 3\n'
        '[policy]\nengine = "vendors"\n[policy.vendors]\nurl = "u"\n'
        "[query]\nstar_schema_min_ratio = 3\nstar_schema_reorder = false\n"
        "[metrics]\nweb_ui = true\n[[auth.providers]]\ntype = 'vendors'\n"
    )
    found = written(tmp_path, text)
    taken = frozenset({("query", "star_schema_min_ratio"), ("metrics", "web_ui")})

    said = "".join(without_effect(found.config, found.sources, taken))
    assert "directory" not in said
    assert "catalogs.lake.manifest_concurrency" in said
    assert "query.star_schema_reorder" in said
    assert "star_schema_min_ratio" not in said
    assert "vendors" not in said
    assert not list(unbuilt(found.config, taken))
    assert [str(fault) for fault in unbuilt(found.config)] == ["metrics.web_ui: the web UI is not built yet"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[worker]\nmemory_limit = "9GB"', "worker.memory_limit: has no effect: workers are not built yet"),
        (
            "[metrics.openlineage]\nspool_path = '/x'\nhttp_endpoint = 'http://o'",
            "metrics.openlineage.spool_path: has no effect: only the sink `openlineage` reads it",
        ),
        (
            "[maintenance.scheduler]\ntick_secs = 5",
            "maintenance.scheduler.tick_secs: has no effect: maintenance is not",
        ),
        (
            "[auth]\ntls_skip_verify = true\n[[auth.providers]]\ntype = 'anonymous'",
            "auth.tls_skip_verify: has no effect: nothing reads it yet",
        ),
        ("[coordinator]\nmode = 'coordinator'", None),
        ("[query_cache]\nenabled = true", "query_cache.enabled: has no effect: the cache of results is not built yet"),
        ("[session]\npersistence = 'memory'\n[metrics.audit_export]\nenabled = false", None),
        ("[auth]\nadmin_roles = ['boss']\n[[auth.providers]]\ntype = 'anonymous'", None),
    ],
)
def test_a_key_of_something_that_is_not_asked_for_is_named(tmp_path: Path, text: str, said: str | None) -> None:
    found = written(tmp_path, text)
    notes = without_effect(found.config, found.sources)
    assert [said is not None and said in note for note in notes] == ([True] if said else [])


@pytest.mark.parametrize(
    ("engine", "idle"), [('"opa"', True), ('["cedar", "opa"]', True), ('["grants", "opa"]', False), ('"grants"', False)]
)
def test_an_engine_that_leaves_nothing_to_the_catalog_is_told_in_vain_whose_it_is(
    tmp_path: Path, engine: str, idle: bool
) -> None:
    found = written(
        tmp_path, f'[policy]\nengine = {engine}\nuncovered = "maker"\n[policy.opa]\nurl = "http://127.0.0.1:1"\n'
    )
    consumed = configured_instances(found, PluginManager()).consumed
    notes = [note for note in without_effect(found.config, found.sources, consumed) if "policy.uncovered" in note]
    assert [note.partition("has no effect: ")[2] for note in notes] == [
        "with engines other than `grants`, which decide about every table by policies of their own"
    ] * idle
