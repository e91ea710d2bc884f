"""What `sqe config show` and docs/configuration.md say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import sqe_core.config.reference as reference
from sqe_core.config import load
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.show import render
from sqe_core.config.walk import keys

TEXT = """\
[coordinator]
memory_limit = "3GB"
worker_secret = "hidden"
[catalogs.lake]
type = "acme"
warehouse = "w"
bucket = "b"
flags = { a = true, at = 2026-01-01 }
[[auth.providers]]
type = "x"
client_secret = { env = "S" }
[worker.memory]
scan_budget = "15%"
[worker.spill]
orphan_age = "90s"
"""


def shown(tmp_path: Path, *, with_sources: bool) -> dict[str, str]:
    file = tmp_path / "sqe.toml"
    file.write_text(TEXT)
    loaded = load(file, environ={"SQE_QUERY__TIMEOUT_SECS": "5"})
    lines = [line.replace(f"{tmp_path}/", "") for line in render(loaded, with_sources=with_sources)]
    return dict(line.split(" = ", 1) for line in lines)


def test_values(tmp_path: Path) -> None:
    found = shown(tmp_path, with_sources=False)

    assert found["coordinator.memory_limit"] == '"3GB"'
    assert found["coordinator.worker_secret"] == "[redacted]"
    assert found["coordinator.tls.cert_file"] == "(unset)"
    assert found["coordinator.debug"] == "false"
    assert found["catalogs.lake.type"] == '"acme"'
    assert found["catalogs.lake.bucket"] == '"b"'
    assert found["catalogs.lake.flags"] == '{ "a" = true, "at" = 2026-01-01 }'
    assert found["auth.providers[0].client_secret"] == '{ "env" = "S" }'
    assert found["worker.memory.scan_budget"] == '"15%"'
    assert found["worker.spill.orphan_age"] == '"90s"'
    assert found["policy.engine"] == '["grants"]'
    assert found["query.timeout_secs"] == "5"


def test_sources(tmp_path: Path) -> None:
    found = {key: value.split("  # ")[1] for key, value in shown(tmp_path, with_sources=True).items()}

    assert found["coordinator.memory_limit"] == "sqe.toml:2"
    assert found["coordinator.worker_secret"] == "sqe.toml:3"
    assert found["catalogs.lake.bucket"] == "sqe.toml:7"
    assert found["auth.providers[0].client_secret"] == "sqe.toml:11"
    assert found["query.timeout_secs"] == "environment variable SQE_QUERY__TIMEOUT_SECS"
    assert found["query.max_sql_bytes"] == "default"


def test_every_key_is_shown() -> None:
    found = {line.split(" = ")[0] for line in render(load(None, environ={}), with_sources=False)}

    always = {
        ".".join(map(str, key.path))
        for key in keys(SqeConfig)
        if key.path[0] not in ("auth", "catalog", "catalogs", "protocols") and "*" not in key.path
    }
    assert always <= found


def test_shown_values_can_be_written_into_a_file(tmp_path: Path) -> None:
    found = shown(tmp_path, with_sources=False)

    for key, value in found.items():
        if value not in ("(unset)", "[redacted]"):
            tomllib.loads(f"value = {value}"), key


PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_of_the_configuration_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert text == reference.page(text), "run: python -m sqe_core.config.reference docs/configuration.md"


def test_the_page_has_every_key() -> None:
    page = PAGE.read_text(encoding="utf-8")

    for key in keys(SqeConfig):
        assert f"| `{key.path[-1]}` |" in page
