"""Nothing that can be configured is silently ignored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqe_core.config import LoadedConfig, load
from sqe_core.config.origin import dotted
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.unbuilt import BUILT, DEFAULT_ON, NO_EFFECT_YET, UNBUILT, check_built, classify, without_effect
from sqe_core.config.walk import keys

EVERY_KEY = sorted({dotted(key.path).replace("catalogs.", "catalog.").replace("*.", "") for key in keys(SqeConfig)})


def loaded(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> LoadedConfig:
    file = tmp_path / "sqe.toml"
    file.write_text(text)
    return load(file, environ=environ or {})


def stops(tmp_path: Path, text: str) -> list[str]:
    """The faults beyond those of an empty file."""
    empty = loaded(tmp_path, "")
    base = {fault.partition(": ")[2] for fault in check_built(empty.config, empty.sources)}
    found = loaded(tmp_path, text)
    faults = [fault.removeprefix(f"{tmp_path}/") for fault in check_built(found.config, found.sources)]
    return [fault for fault in faults if fault.partition(": ")[2] not in base]


@pytest.mark.parametrize("name", EVERY_KEY)
def test_every_key_has_a_place(name: str) -> None:
    assert classify(tuple(name.split("."))) in ("built", "unbuilt", "no effect yet")


@pytest.mark.parametrize("prefix", sorted(BUILT | NO_EFFECT_YET | set(DEFAULT_ON) | {row.prefix for row in UNBUILT}))
def test_every_row_is_about_a_key(prefix: str) -> None:
    assert [name for name in EVERY_KEY if name == prefix or name.startswith(f"{prefix}.")]


def test_no_prefix_stands_twice() -> None:
    prefixes = [*BUILT, *NO_EFFECT_YET, *DEFAULT_ON, *(row.prefix for row in UNBUILT)]

    assert sorted(prefixes) == sorted(set(prefixes))


def test_what_is_called_built_is_read() -> None:
    """Looked at by more than the checks of the configuration."""
    only_checked = {"access_control.grant_authority", "security.allow_unprojected_tags"}  # mean Ranger
    by_another_name = {"auth.ssl_verification"}  # AuthConfig.verify_tls
    described = ("config/sections/", "config/checks/", "config/unbuilt.py", "config/reference.py")
    root = Path(__file__).parents[3]
    sources = [*root.glob("sqe-core/src/**/*.py"), *root.glob("sqe-plugins/*/src/**/*.py")]
    text = "\n".join(file.read_text() for file in sources if not any(part in file.as_posix() for part in described))

    for key in keys(SqeConfig):
        name = dotted(key.path)
        if classify(key.path) == "built" and name not in only_checked | by_another_name:
            assert re.search(rf"\b{key.path[-1]}\b", text), name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[catalog]\ntype = "hms"', "sqe.toml:2: catalog.type: catalogs of type `hms` are not built yet"),
        ('[catalogs.a]\ntype = "glue"', "sqe.toml:2: catalogs.a.type: catalogs of type `glue` are not built yet"),
        (
            '[policy]\nengine = "ranger"\nranger.url = "http://r"\nranger.admin_password = "p"',
            "sqe.toml:2: policy.engine: the policy engine `ranger` is not",
        ),
        ("[query_cache]\nenabled = true", "sqe.toml:2: query_cache.enabled: the cache of results is not built yet"),
        (
            '[metrics]\notlp_endpoint = "http://o"',
            "sqe.toml:2: metrics.otlp_endpoint: sending metrics is not built yet",
        ),
        (
            "[coordinator]\nallow_unauthenticated_workers = true",
            "sqe.toml:2: coordinator.allow_unauthenticated_workers: workers are not built yet",
        ),
        (
            '[metrics.audit]\nformat = "ocsf"',
            "sqe.toml:2: metrics.audit.format: OCSF is not built yet; the audit log has the native form",
        ),
        (
            '[metrics.audit]\ngdpr_tags = ["PII"]',
            "sqe.toml:2: metrics.audit.gdpr_tags: this part of the audit log is not built yet",
        ),
        ('[maintenance]\nmode = "advisory"', "sqe.toml:1: maintenance: maintenance is not built yet"),
        ('[session]\npersistence = "file"', "sqe.toml:2: session.persistence: sessions that survive a restart"),
        ('[storage]\nazure_account = "a"', "sqe.toml:2: storage.azure_account: this store is not built yet"),
        ("[storage.tvf]\nallow_http = true", "sqe.toml:2: storage.tvf.allow_http: file functions on a server are not"),
        (
            '[catalogs.a]\ntype = "sqlite"\ndefault_table_format_version = 3',
            "sqe.toml:3: catalogs.a.default_table_format_version: this default of new tables is not built yet",
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
    found = loaded(tmp_path, text)

    assert not [fault for fault in check_built(found.config, found.sources) if "policy" in fault]


def test_keys_that_change_nothing_are_named(tmp_path: Path) -> None:
    text = "[query]\ntimeout_secs = 5\nstar_schema_min_ratio = 10\nwrite_buffer_tracking = true\n"
    found = loaded(tmp_path, text, {"SQE_STORAGE__PREFETCH_BUFFER": "1MB"})

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
    found = loaded(tmp_path, text)
    taken = frozenset({("query", "star_schema_min_ratio"), ("metrics", "web_ui")})

    said = "".join(without_effect(found.config, found.sources, taken))
    assert "directory" not in said
    assert "catalogs.lake.manifest_concurrency" in said
    assert "query.star_schema_reorder" in said
    assert "star_schema_min_ratio" not in said
    assert "vendors" not in said
    assert not [fault for fault in check_built(found.config, found.sources, taken) if "web_ui" in fault]
    assert [fault for fault in check_built(found.config, found.sources) if "web_ui" in fault]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[worker]\nmemory_limit = "9GB"', "worker.memory_limit: has no effect: workers are not built yet"),
        (
            "[access_control.ranger]\ntimeout_secs = 3",
            "access_control.ranger.timeout_secs: has no effect: writing grants to Apache Ranger is not built yet",
        ),
        ("[metrics.openlineage]\nemit_selects = true", "metrics.openlineage.emit_selects: has no effect: lineage is"),
        (
            "[maintenance.scheduler]\ntick_secs = 5",
            "maintenance.scheduler.tick_secs: has no effect: maintenance is not",
        ),
        (
            "[auth]\ntls_skip_verify = true\n[[auth.providers]]\ntype = 'anonymous'",
            "auth.tls_skip_verify: has no effect: nothing reads it yet",
        ),
        ("[coordinator]\nmode = 'coordinator'", None),
        ("[session]\npersistence = 'memory'\n[metrics.audit_export]\nenabled = false", None),
        ("[auth]\nadmin_roles = ['boss']\n[[auth.providers]]\ntype = 'anonymous'", None),
    ],
)
def test_a_key_of_something_that_is_not_asked_for_is_named(tmp_path: Path, text: str, said: str | None) -> None:
    found = loaded(tmp_path, text)
    notes = without_effect(found.config, found.sources)
    assert [said is not None and said in note for note in notes] == ([True] if said else [])
