"""A composed server: what its file says of logins elsewhere is what protocols are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from oidc_idp import ALICE, CLIENT, CLIENT_SECRET, FakeIdp

from sqe_core import bootstrap
from sqe_core.config import load
from sqe_core.engine.port import EngineState
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi import BearerCredential, ClientInfo, InvalidCredentialsError, QueryGateway, Secret

REDIRECT = "https://sqe.example.com/oauth2/callback"
HERE = ClientInfo(protocol="flight", address="127.0.0.1")


class NoEngine:
    """An engine that is never asked for anything."""

    state = EngineState.STOPPED
    failure = None

    def open_session(self, *args: object, **kwargs: object) -> object:
        """No statement comes."""
        raise NotImplementedError

    def stop(self) -> None:
        """Nothing runs."""


@pytest.fixture
def compose(tmp_path: Path, idp: FakeIdp) -> Iterator[Any]:
    """Make a server and return what protocols get of it."""
    servers: list[Any] = []

    def compose(device: str) -> QueryGateway:
        file = tmp_path / "sqe.toml"
        file.write_text(f"""\
[catalogs.lake]
type = "sqlite"
directory = "{tmp_path}/lake"
[policy]
engine = "passthrough"
i_understand_no_enforcement = true
[metrics]
prometheus_port = 0
[auth]
admin_roles = ["data_engineer"]
role_mappings = {{ data_engineer = "mapped" }}
[auth.external]
issuer = "{idp.issuer}"
client_id = "{CLIENT}"
client_secret = "{CLIENT_SECRET}"
redirect_uri = "{REDIRECT}"
challenge_timeout_secs = 120
{device}""")
        server = bootstrap.serve(load(file, environ={}), PluginManager(), engine=NoEngine())  # type: ignore[arg-type]
        servers.append(server)
        return server._parts.gateway

    yield compose
    for server in servers:
        server.stop()


def test_a_login_in_a_browser_opens_a_session(compose: Any, idp: FakeIdp) -> None:
    gateway = compose("")
    logins = gateway.browser_logins
    assert logins is not None
    assert logins.redirect_uri == REDIRECT
    begun = logins.begin(redirect_uri=REDIRECT, client=HERE)
    state = parse_qs(urlsplit(begun.url).query)["state"][0]
    logins.finish(state=state, code=Secret(idp.approve(begun.url, "alice")))
    token = logins.poll(begun.id)
    assert token is not None

    session = gateway.authenticate(BearerCredential(token=token), HERE)

    assert session.identity.key == (idp.issuer, ALICE)
    assert session.identity.roles == {"data_engineer", "mapped"}
    assert session.identity.access_token is None  # the protocol has no business with it
    session.close()


def test_the_tokens_of_the_identity_provider_open_nothing_by_themselves(compose: Any, idp: FakeIdp) -> None:
    """Without a `bearer_token` provider nobody checks what a client brings."""
    gateway = compose("")
    with pytest.raises(InvalidCredentialsError):
        gateway.authenticate(BearerCredential(token=Secret(idp.token())), HERE)


def test_logins_on_another_device_are_asked_for_by_their_table(compose: Any) -> None:
    assert compose("").device_logins is None
    logins = compose("[auth.external.device]\n").device_logins
    assert logins is not None
    begun = logins.begin(client=HERE)
    assert begun.user_code == "WDJB-MJHT"
    assert logins.poll(begun.id) is None
