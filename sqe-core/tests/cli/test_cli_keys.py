"""`sqe auth`: keys are made, shown once, listed without themselves, and revoked."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sqe_core.auth.api_key import ApiKeyConfig, ApiKeyFactory
from sqe_core.cli.sqe import Surroundings, run
from sqe_core.spi.auth import BearerCredential, ClientInfo, LoginRequest
from sqe_core.spi.errors import InvalidCredentialsError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Identity, Secret


def call(folder: Path, *argv: str) -> tuple[int, list[str], list[str]]:
    output, errors = io.StringIO(), io.StringIO()
    code = run(argv, Surroundings(environ={}, folder=folder, output=output, errors=errors))
    return code, output.getvalue().splitlines(), errors.getvalue().splitlines()


def log_in(file: Path, key: str, prefix: str = "sqe_") -> Identity | None:
    provider = ApiKeyFactory().create(
        "api_key", ApiKeyConfig(keys_file=file, key_prefix=prefix), PluginContext(production_mode=True)
    )
    return provider.authenticate(
        LoginRequest(credential=BearerCredential(token=Secret(key)), client=ClientInfo(protocol="test"))
    )


@pytest.mark.rule("AUTHN-8")
def test_a_key_is_printed_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    options = ("--user", "etl", "--group", "a", "--group", "b", "--role", "r", "--description", "nightly load")
    code, output, notes = call(tmp_path, "auth", "make-key", *options, "--keys-file", "keys.toml")
    file = tmp_path / "keys.toml"

    assert (code, len(output), len(notes)) == (0, 1, 1)
    assert output[0].startswith("sqe_")
    assert output[0] not in file.read_text() + notes[0]
    identity = log_in(file, output[0])
    assert identity is not None
    assert (identity.username, identity.groups, identity.roles) == ("etl", {"a", "b"}, {"r"})

    code, listed, _ = call(tmp_path, "auth", "list-keys", "--keys-file", "keys.toml")
    assert code == 0
    assert listed[0].split() == ["ID", "USER", "GROUPS", "ROLES", "KEPT", "AS", "DESCRIPTION"]
    assert listed[1].split() == [listed[1][:8], "etl", "a,b", "r", "hash", "nightly", "load"]
    assert listed[1][:8] in notes[0]


def test_a_key_is_revoked_by_its_id(tmp_path: Path) -> None:
    keys = [call(tmp_path, "auth", "make-key", "--user", "etl", "--keys-file", "k")[1][0] for _ in range(2)]
    entry = call(tmp_path, "auth", "list-keys", "--keys-file", "k")[1][1][:8]

    assert call(tmp_path, "auth", "revoke-key", entry, "--keys-file", "k")[:2] == (
        0,
        [f"Key {entry} of etl is revoked"],
    )
    with pytest.raises(InvalidCredentialsError):
        log_in(tmp_path / "k", keys[0])
    assert log_in(tmp_path / "k", keys[1]) is not None
    code, output, errors = call(tmp_path, "auth", "revoke-key", entry, "--keys-file", "k")
    assert (code, output, errors) == (2, [], [f"{tmp_path / 'k'} has no key {entry}"])


def test_the_configuration_says_where_the_keys_are(tmp_path: Path) -> None:
    file = tmp_path / "its-keys.toml"
    (tmp_path / "sqe.toml").write_text(
        f'[[auth.providers]]\ntype = "api_key"\nkeys_file = "{file}"\nkey_prefix = "acme-"\n'
    )
    code, output, _ = call(tmp_path, "auth", "make-key", "--user", "etl")
    assert code == 0
    assert output[0].startswith("acme-")
    assert log_in(file, output[0], "acme-") is not None


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("list-keys",), "the configuration has no login provider `api_key`; name the file with --keys-file"),
        (("list-keys", "--keys-file", "missing"), "missing: No such file or directory"),
        (("revoke-key", "x", "--keys-file", "missing"), "missing: No such file or directory"),
        (("make-key", "--user", "", "--keys-file", "k"), "is empty, too long, or holds control characters"),
        (("make-key", "--user", "a\x1b[2J", "--keys-file", "k"), "is empty, too long, or holds control characters"),
        (("make-key", "--user", "a", "--keys-file", "no/such/k"), "cannot open the folder"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    code, output, errors = call(tmp_path, "auth", *argv)
    assert (code, output) == (2, [])
    assert said in "\n".join(errors)
    assert not (tmp_path / "k").exists()
