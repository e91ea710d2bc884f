"""Secrets come from three places and print in none."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_files import faults, written

from sqe_core.config import load
from sqe_core.config.login_chain import login_chain
from sqe_core.config.show import render
from sqe_core.spi.identity import Secret

HIDDEN = "h1dden-value"


def test_text(tmp_path: Path) -> None:
    assert written(tmp_path, f'[policy]\nmask_key = "{HIDDEN}"').config.policy.mask_key == Secret(HIDDEN)


def test_environment(tmp_path: Path) -> None:
    found = written(tmp_path, '[policy]\nmask_key = { env = "KEY" }', {"KEY": HIDDEN}).config

    assert found.policy.mask_key == Secret(HIDDEN)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_file(tmp_path: Path, ending: str) -> None:
    (tmp_path / "key").write_bytes(f" {HIDDEN} {ending}".encode())

    found = written(tmp_path, f'[policy]\nmask_key = {{ file = "{tmp_path}/key" }}').config
    assert found.policy.mask_key == Secret(f" {HIDDEN} ")


def test_override(tmp_path: Path) -> None:
    found = written(tmp_path, '[policy]\nmask_key = "file"', {"SQE_POLICY__MASK_KEY": HIDDEN}).config

    assert found.policy.mask_key == Secret(HIDDEN)


def test_override_of_a_place(tmp_path: Path) -> None:
    """The environment names a file although the file names a variable."""
    (tmp_path / "key").write_text(HIDDEN)
    environ = {"SQE_POLICY__MASK_KEY__FILE": str(tmp_path / "key")}

    found = written(tmp_path, '[policy]\nmask_key = { env = "UNSET" }', environ).config
    assert found.policy.mask_key == Secret(HIDDEN)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{ env = "UNSET" }', "the environment variable UNSET is not set"),
        ('{ env = "EMPTY" }', "the environment variable EMPTY is empty"),
        ('{ file = "/does/not/exist" }', "cannot read /does/not/exist: No such file or directory"),
        ('{ file = "/" }', "cannot read /: Is a directory"),
        ("{ file = 5 }", 'expected text, { env = "NAME" } or { file = "/path" }'),
        ('{ vault = "x" }', 'expected text, { env = "NAME" } or { file = "/path" }'),
        ('{ env = "A", file = "b" }', 'expected text, { env = "NAME" } or { file = "/path" }'),
        ("true", 'expected text, { env = "NAME" } or { file = "/path" }'),
    ],
)
def test_what_is_no_secret(tmp_path: Path, value: str, expected: str) -> None:
    text = faults(tmp_path, f"[policy]\nmask_key = {value}", {"EMPTY": ""})[0]

    assert text.endswith(f"sqe.toml:2: policy.mask_key: {expected}")


def test_files_without_a_secret(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    assert faults(tmp_path, f'[policy]\nmask_key = {{ file = "{tmp_path}/empty" }}')[0].endswith("empty is empty")
    assert faults(tmp_path, f'[policy]\nmask_key = {{ file = "{tmp_path}/binary" }}')[0].endswith("is not UTF-8 text")


def test_no_secret_is_ever_printed(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(HIDDEN)
    text = f"""
[auth]
keycloak_url = "http://localhost:8081"
realm = "main"
client_id = "sqe"
client_secret = "{HIDDEN}"
[catalog]
type = "jdbc"
url = "postgres://sqe:{HIDDEN}@db/catalog?password={HIDDEN}"
password = "{HIDDEN}"
access_token = "{HIDDEN}"
[storage]
s3_access_key = "id"
s3_secret_key = {{ file = "{tmp_path}/key" }}
[policy]
mask_key = {{ env = "KEY" }}
[plugins.ldap]
bind_password = "{HIDDEN}"
nested = {{ api_key = "{HIDDEN}" }}
"""
    file = tmp_path / "sqe.toml"
    file.write_text(text)
    loaded = load(file, environ={"KEY": HIDDEN})

    shown = "\n".join(render(loaded, with_sources=True))
    assert HIDDEN not in shown
    assert HIDDEN not in repr(loaded.config)
    assert HIDDEN not in repr(loaded)
    assert 'catalog.url = "postgres://[redacted]@db/catalog?password=[redacted]"' in shown


def test_passwords_inside_urls_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text(f'[metrics]\notlp_endpoint = "http://sqe:{HIDDEN}@collector:4317"\n')

    shown = "\n".join(render(load(file, environ={}), with_sources=False))
    assert 'metrics.otlp_endpoint = "http://[redacted]@collector:4317"' in shown


def test_faults_do_not_print_secrets(tmp_path: Path) -> None:
    """The text of a key that should be a table, or of a table that should be text."""
    text = f'[policy]\nmask_key = {{ value = "{HIDDEN}" }}\n[engine]\njar_mirror = "x://u:{HIDDEN}@h"\n'

    found = faults(tmp_path, text)
    assert len(found) == 2
    assert HIDDEN not in str(found)


def test_a_password_provider_takes_the_secret_of_the_auth_table(tmp_path: Path) -> None:
    text = """
[auth]
client_secret = "shared"
[[auth.providers]]
type = "oidc_password"
[[auth.providers]]
type = "oidc_password"
client_secret = "own"
[[auth.providers]]
type = "token_exchange"
"""
    chain = login_chain(written(tmp_path, text).config)

    assert [str(provider.options.get("client_secret")) for provider in chain][1:] == ["own", "None"]
    first = chain[0].options.get("client_secret")
    assert isinstance(first, Secret)
    assert first.reveal() == "shared"
