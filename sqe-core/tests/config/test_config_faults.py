"""What is wrong is said at once, with its place, and in words that help."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from config_files import faults

from sqe_core.bootstrap.checking import check_configuration
from sqe_core.config import load
from sqe_core.config.loading import read
from sqe_core.spi.errors import ConfigError


def test_every_fault_is_reported_at_once(tmp_path: Path) -> None:
    text = """\
[coordinator]
mode = "both"
memory_limit = "lots"
flight_sql_port = 70000
[querry]
timeout_secs = 1
[query]
timeout_secs = "5 minutes"
per_user_memory_budget = "1MB"
[metrics]
prometheus_port = 8080
trace_sample_rate = 2
"""
    found = faults(tmp_path, text, {"SQE_SESSION__IDLE_TIMEOUT_SECS": "never"})

    assert len(found) == 9
    for beginning in (
        "sqe.toml:2: coordinator.mode: expected one of coordinator, worker, hybrid, local, distributed",
        "sqe.toml:3: coordinator.memory_limit: expected a byte size such as",
        "sqe.toml:4: coordinator.flight_sql_port: must be at most 65535, not 70000",
        'sqe.toml:5: querry: unknown key; did you mean "query"?',
        'sqe.toml:8: query.timeout_secs: expected a whole number, not the text "5 minutes"',
        "sqe.toml:9: query.per_user_memory_budget: must be at least query.max_query_memory (256MB)",
        "sqe.toml:11: metrics.prometheus_port: port 8080 is taken by coordinator.trino_http_port already",
        "sqe.toml:12: metrics.trace_sample_rate: must be at most 1, not 2",
        "environment variable SQE_SESSION__IDLE_TIMEOUT_SECS: session.idle_timeout_secs: expected a whole number",
    ):
        assert [fault for fault in found if fault.startswith(beginning)], beginning


def test_the_message_of_the_error_is_all_faults(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text("[query]\na = 1\nb = 2\n")

    with pytest.raises(ConfigError) as caught:
        load(file, environ={})
    assert str(caught.value).splitlines() == list(caught.value.faults)


def every_fault(folder: Path, text: str) -> list[str]:
    """The faults of the file and of the plugins that it names."""
    file = folder / "sqe.toml"
    file.write_text(text)
    return [fault.replace(f"{folder}/", "") for fault in check_configuration(read(file, environ={})).faults]


@pytest.mark.parametrize(
    ("judge", "text", "fault"),
    [
        (
            faults,
            "[query_history]\nmax_entires = 5\n",
            'sqe.toml:2: query_history.max_entires: unknown key; did you mean "max_entries"? '
            "Known keys: full_text, max_entries, ttl_secs",
        ),
        (
            faults,
            "[query_history]\nzzz = 5\n",
            "sqe.toml:2: query_history.zzz: unknown key. Known keys: full_text, max_entries, ttl_secs",
        ),
        (faults, "[query]\ntimeout-secs = 5\n", '…query.timeout-secs: unknown key; did you mean "timeout_secs"?…'),
        (
            every_fault,
            '[catalog]\ncatalog_url = "http://a"\npolaris_url = "http://b"\n',
            'sqe.toml:3: catalog.catalog_url: given twice, as "catalog_url" and as "polaris_url"',
        ),
        (
            faults,
            '[catalog]\ntype = "sqlite"\n[catalog.backend]\ntype = "glue"\n',
            'sqe.toml:4: catalog.type: given twice, as "type" and as "backend.type"',
        ),
        (
            faults,
            '[catalog.backend]\ntype = "sqlite"\nmetadata_cache_ttl_secs = 5\n',
            '…"metadata_cache_ttl_secs" belongs to catalog itself',
        ),
        (every_fault, "# a catalog\n\n[catalog]\nwarehouse = 'w'\n", "sqe.toml:3: catalog.catalog_url: is missing"),
        (faults, "[query]\ntimeout_secs 5\n", "sqe.toml: this is no TOML: …line 2, column 14…"),
        (faults, b"# Caf\xe9\n", "sqe.toml: this is not UTF-8 text (byte 5)"),
    ],
)
def test_one_fault(tmp_path: Path, judge: Callable[..., Sequence[str]], text: str | bytes, fault: str) -> None:
    (found,) = judge(tmp_path, text)

    assert re.fullmatch(".*".join(map(re.escape, fault.split("…"))), found, re.DOTALL), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[query]\ntimeout_secs = true", "query.timeout_secs: expected a whole number, not true"),
        ("[query]\ntimeout_secs = 1.5", "query.timeout_secs: expected a whole number, not the number 1.5"),
        ("[query]\ntimeout_secs = 0", "query.timeout_secs: must be at least 1, not 0"),
        ("[query]\ntimeout_secs = 1979-05-27", "query.timeout_secs: expected a whole number, not a date"),
        ("[query]\ndefault_catalog = 5", "query.default_catalog: expected text, not the number 5"),
        ("[query]\ndefault_catalog = ['a']", "query.default_catalog: expected text, not an array"),
        ("query = 5", "query: expected a table, not the number 5"),
        ("[[query]]\ntimeout_secs = 5", "query: expected a table, not an array"),
        ("[auth.providers]\ntype = 'a'", "auth.providers: expected an array of tables, [[auth."),
        ("[[auth.providers]]\nuser = 'a'", "auth.providers[0].type: is missing"),
        ("[auth]\nproviders = ['anonymous']", 'auth.providers[0]: expected a table, not the text "anonymous"'),
        ("[auth]\nadmin_roles = 'admin'", 'auth.admin_roles: expected an array, not the text "admin"'),
        ("[auth]\nadmin_roles = ['a', 5]", "auth.admin_roles[1]: expected text, not the number 5"),
        ("[auth.external]\nissuer = 'http://localhost'", "auth.external.client_id: is missing"),
        (
            "[query.role_overrides]\netl = 'long'",
            'query.role_overrides.etl: expected a whole number, not the text "long"',
        ),
        ("[query.role_overrides]\netl = 0", "query.role_overrides.etl: must be at least 1, not 0"),
        ("[coordinator]\nmemory_limit = -5", "coordinator.memory_limit: a byte size cannot be negative"),
        ("[coordinator]\nmemory_limit = '0'", "coordinator.memory_limit: must be above 0, not 0"),
        ("[worker.memory]\nscan_budget = '120%'", "worker.memory.scan_budget: a percentage cannot be above 100%"),
        ("[worker.memory]\nscan_budget = 'some'", "worker.memory.scan_budget: expected a percentage such as"),
        ("[worker.spill]\norphan_age = 'old'", "worker.spill.orphan_age: expected a duration such as"),
        ("[worker.spill]\nbackend = 's3'", "worker.spill.backend: spilling straight to S3 is not offered"),
        ("[maintenance.scheduler]\nlease = 'kubernetes'", "maintenance.scheduler.lease: leases of Kubernetes"),
        ("[coordinator]\nspill_compression = 'gzip'", 'expected one of none, lz4, zstd, not the text "gzip"'),
        ("[coordinator]\nspill_compression = 'lz5'", 'did you mean "lz4"?'),
        ("[catalog]\ntype = 'sqlite'\ndefault_table_format_version = 4", "expected one of 2, 3, not the number 4"),
        ("[engine]\nmaster = 'standalone'", "engine.master: expected `local[*]`, `local[N]`"),
        ("[coordinator]\nhealth_check_interval_secs = 0", "coordinator.health_check_interval_secs: must be at least 1"),
        ("[policy]\nmask_key = 5", "policy.mask_key: expected text, {"),
        ("[metrics]\ntrace_sample_rate = nan", "metrics.trace_sample_rate: expected a number"),
    ],
)
def test_wrong_values(tmp_path: Path, text: str, expected: str) -> None:
    found = faults(tmp_path, text)

    assert [fault for fault in found if expected in fault], found
    assert all(fault.startswith("sqe.toml") for fault in found)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("localhost:8181", "catalog.catalog_url: expected a URL such as https://host"),
        ("http://", "catalog.catalog_url: expected a URL such as"),
        ("http://h:port/", "catalog.catalog_url: expected a URL such as"),
        ("ftp://h/", "the scheme is one of https, http"),
        ("http://a b/", "without blanks"),
    ],
)
def test_wrong_addresses(tmp_path: Path, url: str, expected: str) -> None:
    found = every_fault(tmp_path, f"[catalog]\ncatalog_url = '{url}'")

    assert [fault for fault in found if expected in fault], found
    assert all(fault.startswith("sqe.toml") for fault in found)


def test_a_wrong_value_is_not_followed_by_faults_of_its_absence(tmp_path: Path) -> None:
    assert len(every_fault(tmp_path, "[catalog]\ncatalog_url = 'localhost'")) == 1
    assert len(faults(tmp_path, "[[auth.providers]]\nuser = 'a'")) == 1


def test_faults_of_the_environment_are_seen_beside_broken_toml(tmp_path: Path) -> None:
    found = faults(tmp_path, "[query", {"SQE_QUERY__TIMEOUT_SECS": "x", "SQE_NO__KEY": ""})

    assert len(found) == 3


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("sqe.toml", r"sqe\.toml: there is no such file"),
        ("", "this is a directory; name the file"),
        ("file/sqe.toml", "cannot be read: Not a directory"),
    ],
)
def test_a_path_of_no_file(tmp_path: Path, path: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=said):
        load(tmp_path / path, environ={})


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sqe.toml"
    file.touch()

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    # Tests may run as root, whom no file mode stops.
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=r"sqe\.toml: cannot be read: Permission denied"):
        load(file, environ={})


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_bytes(b"\xef\xbb\xbf[query]\r\ntimeout_secs = 7\r\n")

    assert load(file, environ={}).config.query.timeout_secs == 7


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.touch()

    assert load(file, environ={}).config == load(None, environ={}).config


def test_faults_of_the_core_and_of_plugins_are_told_together(tmp_path: Path) -> None:
    text = (
        "[query]\ntimeout_secs = 0\n[metrics]\nweb_ui = true\n[catalogs.a]\ntype = 'sqlite'\n"
        "[catalogs.b]\ntype = 'glue'\n[policy]\nengine = 'opaa'\n[policy.opa]\nurl = 'http://o'\n"
        "[policy.zz]\na = 1\n[protocols.gopher]\nport = 70\n[plugins.watcher]\n"
    )
    found = every_fault(tmp_path, text)

    for expected in (
        "sqe.toml:2: query.timeout_secs: must be at least 1, not 0",
        "sqe.toml:4: metrics.web_ui: the web UI is not built yet",
        "sqe.toml:5: catalogs.a.directory: is missing",
        "sqe.toml:8: catalogs.b.type: The catalog type 'glue' is not known, and no installed plugin provides it",
        "sqe.toml:10: policy.engine: The policy engine 'opaa' is not known, and no installed plugin provides it",
        "sqe.toml:13: policy.zz: unknown key",
        "sqe.toml:16: protocols.gopher.port: The protocol 'gopher' is not known, and no installed plugin provides it",
        "sqe.toml:17: plugins.watcher: No plugin is called 'watcher'",
    ):
        assert [fault for fault in found if fault.startswith(expected)], (expected, found)
    assert len(found) == 8
