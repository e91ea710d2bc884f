"""From a file to providers: every kind, the short forms of `[auth]`, and the examples of the documentation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from oidc_idp import CLIENT, CLIENT_SECRET, FakeIdp, basic, bearer

from sqe_auth_oidc.basic import ClientProvider, PasswordProvider
from sqe_auth_oidc.bearer import BearerProvider
from sqe_auth_oidc.external import ExternalProvider
from sqe_core.bootstrap import login_providers
from sqe_core.bootstrap.instances import configured_instances
from sqe_core.config import load
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.status import unbuilt, without_effect
from sqe_core.plugins.manager import PluginManager

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "docs" / "auth-oidc.md", ROOT / "sqe-plugins" / "auth-oidc" / "README.md")
EXAMPLES = [
    (page.name, text)
    for page in PAGES
    for text in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
]
EXTERNAL = """\
[auth.external]
issuer = "{issuer}"
client_id = "sqe-client"
client_secret = "sqe-secret-4711"
redirect_uri = "http://127.0.0.1:8080/oauth2/callback"
"""


def loaded(folder: Path, text: str) -> LoadedConfig:
    file = folder / "sqe.toml"
    file.write_text(text)
    return load(file, environ={})


def providers(folder: Path, text: str) -> dict[str, Any]:
    return dict(login_providers(loaded(folder, text), PluginManager()))


@pytest.mark.parametrize(("page", "text"), EXAMPLES)
def test_the_examples_of_the_pages_are_right(tmp_path: Path, page: str, text: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    for key in ("cert_file", "key_file"):
        text = re.sub(rf'{key} = "[^"]*"', f'{key} = "{secret}"', text)
    text = text.replace("/run/secrets/sqe-client", str(secret))
    assert tomllib.loads(text)

    found = loaded(tmp_path, text)
    instances = configured_instances(found, PluginManager())

    assert instances.faults == ()
    assert list(unbuilt(found.config, instances.consumed)) == []
    assert without_effect(found.config, found.sources, instances.consumed) == ()


def test_a_server_of_keycloak_in_short(tmp_path: Path, idp: FakeIdp) -> None:
    text = f'[auth]\nkeycloak_url = "{idp.url}"\nrealm = "iceberg"\nclient_id = "{CLIENT}"\n'
    made = providers(tmp_path, text + f'client_secret = "{CLIENT_SECRET}"\n')

    (provider,) = made.values()
    assert isinstance(provider, PasswordProvider)
    alice = provider.authenticate(basic("alice", "alice-password-4711"))
    assert alice is not None
    assert (alice.username, alice.roles, alice.provider) == ("alice", {"data_engineer"}, "oidc_password")
    provider.close()


def test_a_server_of_a_token_endpoint_in_short(tmp_path: Path, idp: FakeIdp) -> None:
    made = providers(tmp_path, f'[auth]\ntoken_endpoint = "{idp.token_url}"\nclient_id = "root"\n')

    (provider,) = made.values()
    assert isinstance(provider, ClientProvider)
    assert provider.authenticate(basic("etl", "etl-secret-4711")) is not None
    provider.close()


def test_the_keys_of_the_auth_table_reach_each_provider(tmp_path: Path, idp: FakeIdp) -> None:
    text = f"""\
[auth]
roles_claim = "groups"
client_secret = "{CLIENT_SECRET}"
[[auth.providers]]
type = "bearer_token"
issuer = "{idp.issuer}"
audience = "{CLIENT}"
[[auth.providers]]
type = "oidc_password"
issuer = "{idp.issuer}"
client_id = "{CLIENT}"
{EXTERNAL.format(issuer=idp.issuer)}"""
    made = providers(tmp_path, text)

    assert [type(provider) for provider in made.values()] == [BearerProvider, PasswordProvider, ExternalProvider]
    logins = (bearer(idp.token()), basic("alice", "alice-password-4711"))
    for provider, login in zip(made.values(), logins, strict=False):
        identity = provider.authenticate(login)
        assert identity is not None
        assert identity.roles == {"engineering"}
    for provider in made.values():
        provider.close()


def test_external_logins_take_keys_of_their_own(tmp_path: Path, idp: FakeIdp) -> None:
    text = EXTERNAL.format(issuer=idp.issuer) + 'groups_claim = "groups"\n[auth.external.device]\n'
    found = loaded(tmp_path, text)

    assert configured_instances(found, PluginManager()).faults == ()
    assert list(unbuilt(found.config)) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('group_claim = "groups"', "auth.external.group_claim: unknown key"),
        ("timeout_secs = 0", "auth.external.timeout_secs"),
        ('scopes = ["profile"]', 'scopes need "openid"'),
        ('authorization_endpoint = "http://idp.example.com/"', "authorization_endpoint has to be https"),
    ],
)
def test_external_logins_refuse_what_they_do_not_know(tmp_path: Path, idp: FakeIdp, line: str, said: str) -> None:
    found = loaded(tmp_path, EXTERNAL.format(issuer=idp.issuer) + line + "\n")

    assert [fault for fault in configured_instances(found, PluginManager()).faults if said in fault]


def test_a_configuration_is_checked_without_cryptography() -> None:
    """`sqe config check` reads keys; it does not wait for what providers stand on."""
    import subprocess
    import sys

    code = "import sys, sqe_auth_oidc.plugin; print([m for m in ('joserfc', 'urllib3', 'authlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
