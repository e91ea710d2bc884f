"""Logins with AWS keys, from the configuration file to the identity, against moto's IAM and STS.

What moto does not look at, the clock and the end of a session, is in the tests of the distribution.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.moto import ACCOUNT, REGION, Moto, running_moto

from sqe_core.bootstrap import login_providers
from sqe_core.bootstrap.checking import check_configuration
from sqe_core.config.loading import load, read
from sqe_core.plugins.manager import PluginManager
from sqe_core.session.login import LoginChain
from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    ClientInfo,
    Credential,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    LoginRequest,
    Secret,
)

ROLE = f"arn:aws:iam::{ACCOUNT}:role/teams/analyst"
ROLE_HERE = f"arn:aws:iam::{ACCOUNT}:role/analyst"  # what AWS calls it in a session
ALICE = f"arn:aws:iam::{ACCOUNT}:user/teams/alice"
CONFIG = f"""
[policy]
engine = "passthrough"
i_understand_no_enforcement = true
[auth]
[auth.role_mappings]
"{ALICE}" = ["data_engineer", "admin"]
"{ROLE_HERE}" = "analyst"
[[auth.providers]]
type = "aws_iam"
region = "{REGION}"
accounts = ["{ACCOUNT}"]
endpoint_url = "URL"
web_identity_role_arn = "{ROLE}"
web_identity_issuer = "https://idp.example.com"
"""
Login = Callable[[Credential], Identity]


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    """AWS."""
    with running_moto() as running:
        yield running


@pytest.fixture(scope="module")
def user(moto: Moto) -> dict[str, str]:
    """Alice's access key."""
    iam = moto.client("iam")
    iam.create_user(UserName="alice", Path="/teams/")
    return iam.create_access_key(UserName="alice")["AccessKey"]


@pytest.fixture(scope="module")
def session(moto: Moto, user: dict[str, str]) -> dict[str, str]:
    """Keys of a session of a role, which somebody called `bob`."""
    moto.client("iam").create_role(RoleName="analyst", Path="/teams/", AssumeRolePolicyDocument="{}")
    assumed = moto.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="bob")
    return assumed["Credentials"]


@pytest.fixture
def chain(moto: Moto, session: dict[str, str], tmp_path: Path) -> Iterator[LoginChain]:
    """The login providers of the configuration file, with an AWS that checks."""
    file = tmp_path / "sqe.toml"
    file.write_text(CONFIG.replace("URL", moto.url))
    loaded = load(file, environ={})
    assert loaded.config.auth is not None
    providers = login_providers(loaded, PluginManager())
    chain = LoginChain(providers, role_mappings=loaded.config.auth.role_mappings)
    moto.check_keys()
    yield chain
    moto.ignore_keys()
    chain.close()


@pytest.fixture
def login(chain: LoginChain) -> Login:
    """Logs in as a client of Flight SQL does."""
    client = ClientInfo(protocol="flight", address="127.0.0.1")
    return lambda credential: chain.authenticate(LoginRequest(credential=credential, client=client))


def basic(username: str, *password: str) -> BasicCredential:
    return BasicCredential(username=username, password=Secret(":".join(password)))


def test_a_user_logs_in_with_an_access_key(login: Login, user: dict[str, str]) -> None:
    alice = login(basic(user["AccessKeyId"], user["SecretAccessKey"]))
    assert (alice.username, alice.roles) == (ALICE, {ALICE, "data_engineer", "admin"})


def test_a_session_of_a_role_logs_in_as_the_role(login: Login, session: dict[str, str]) -> None:
    keys = (session["SecretAccessKey"], session["SessionToken"])
    analyst = login(basic(session["AccessKeyId"], *keys))

    assert (analyst.username, analyst.roles) == (ROLE_HERE, {ROLE_HERE, "analyst"})
    assert analyst.actor == f"arn:aws:sts::{ACCOUNT}:assumed-role/analyst/bob"


@pytest.mark.rule("AUTHN-6")
def test_everything_that_is_wrong_reads_the_same(login: Login, user: dict[str, str], session: dict[str, str]) -> None:
    key_id, secret = user["AccessKeyId"], user["SecretAccessKey"]
    wrong = [
        basic(key_id, secret[:-1] + ("a" if secret[-1] != "a" else "b")),
        basic("AKIANOBODY0000000001", secret),
        basic(key_id, session["SecretAccessKey"]),
        basic(key_id, secret, session["SessionToken"]),
        basic(session["AccessKeyId"], session["SecretAccessKey"]),
        basic(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"][:-4] + "AAAA"),
        basic(session["AccessKeyId"], secret, session["SessionToken"]),
    ]
    texts = set()
    for credential in wrong:
        with pytest.raises(InvalidCredentialsError) as caught:
            login(credential)
        texts.add(str(caught.value))
    assert texts == {str(InvalidCredentialsError())}


def test_a_key_that_is_deleted_ends_its_session(moto: Moto, chain: LoginChain, login: Login) -> None:
    moto.ignore_keys()
    iam = moto.client("iam")
    iam.create_user(UserName="carol")
    key = iam.create_access_key(UserName="carol")["AccessKey"]
    moto.check_keys()
    carol = login(basic(key["AccessKeyId"], key["SecretAccessKey"]))
    renewed = chain.refresh(carol)
    assert renewed is not None
    assert renewed.key == carol.key

    moto.ignore_keys()
    iam.delete_access_key(UserName="carol", AccessKeyId=key["AccessKeyId"])
    moto.check_keys()
    with pytest.raises(InvalidCredentialsError):
        chain.refresh(carol)


def test_a_web_identity_is_the_subject_of_the_token(moto: Moto, login: Login) -> None:
    moto.ignore_keys()  # moto takes any token then, and answers with an error of its own when it checks
    user = login(BearerCredential(token=Secret(token(sub="user-17"))))
    assert (user.key, user.roles) == (("https://idp.example.com", "user-17"), {ROLE_HERE, "analyst"})

    moto.check_keys()
    with pytest.raises(ExternalError):
        login(BearerCredential(token=Secret(token(sub="user-17"))))


def token(**claims: Any) -> str:
    everything = {"iss": "https://idp.example.com", "exp": int(time.time()) + 600, **claims}
    parts = (json.dumps(part).encode() for part in ({"alg": "RS256"}, everything))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "c2ln"])


@pytest.mark.rule("AUTHN-2")
def test_production_refuses_keys_that_nobody_checks(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    text = CONFIG.replace("URL", "http://127.0.0.1:1").replace("region =", "validate_with_sts = false\nregion =")
    file.write_text(text + "[coordinator]\nproduction_mode = true\n")
    faults = check_configuration(read(file, environ={})).faults
    assert any("checks no key (`validate_with_sts` is false)" in fault for fault in faults), faults
