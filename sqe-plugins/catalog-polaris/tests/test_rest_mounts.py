"""What the engine is told: how it logs in, and with whose keys it reads files."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sqe_catalog_polaris.config import HorizonConfig, NessieConfig, PolarisConfig, RestAuth, RestConfig
from sqe_catalog_polaris.plugin import FACTORIES
from sqe_catalog_polaris.tokens import TokenEndpoint
from sqe_core.spi import (
    AttachRequest,
    CatalogContext,
    ConfigError,
    ErrorCode,
    ExternalError,
    Secret,
    SqeError,
    UserError,
)
from sqe_core.testing.contract import in_threads
from sqe_core.testing.fakes import make_identity
from sqe_http.testing import Reply

ALICE = make_identity("alice", token="token-of-alice-5d1f")
BOB = make_identity("bob", token="token-of-bob-77c3")
STORE = {"s3.endpoint": "http://127.0.0.1:9", "client.region": "eu", "s3.path-style-access": "true"}


def test_a_mount_of_a_user(catalog: Any, make: Any) -> None:
    found = make(context=CatalogContext(storage=STORE)).spark_properties(ALICE)

    assert found["type"] == "rest"
    assert found["uri"] == catalog.url
    assert found["token"] == "token-of-alice-5d1f"
    assert found["header.X-Iceberg-Access-Delegation"] == "vended-credentials"
    assert found["rest-metrics-reporting-enabled"] == "false"  # reports hold the filters of policies
    assert STORE.items() <= found.items()
    assert "credential" not in found
    assert make().required_jars() == ("aws",)


@pytest.mark.rule("ISO-7")
def test_with_vended_credentials_only_there_is_no_other_key(make: Any) -> None:
    keys = {"s3.access-key-id": "ours", "s3.secret-access-key": "hunter2"}
    context = CatalogContext(storage=STORE | keys, require_vended_credentials=True)
    found = make(context=context, access_delegation="none").spark_properties(ALICE)

    assert "hunter2" not in str(found)
    assert found["s3.access-key-id"] == found["s3.secret-access-key"] == "vended-keys-only"
    assert "client.credentials-provider" not in found
    assert found["header.X-Iceberg-Access-Delegation"] == "vended-credentials"


def test_what_is_asked_of_the_catalog_for_files(make: Any) -> None:
    signing = make(access_delegation="remote-signing").spark_properties(ALICE)
    assert signing["header.X-Iceberg-Access-Delegation"] == "remote-signing"
    assert "header.X-Iceberg-Access-Delegation" not in make(access_delegation="none").spark_properties(ALICE)


def test_polaris_has_realms(catalog: Any, make: Any) -> None:
    catalog.realm = "east"
    backend = make(PolarisConfig, realm="east")

    assert backend.spark_properties(ALICE)["header.Polaris-Realm"] == "east"
    assert backend.quick_metadata(ALICE).list_namespaces()


def test_a_service_principal_is_an_explicit_choice(catalog: Any, make: Any) -> None:
    auth = {
        "type": "client_credentials",
        "token_endpoint": catalog.token_endpoint,
        "client_id": "root",
        "client_secret": Secret("s3cr3t"),
    }
    backend = make(auth=auth)

    assert backend.identity_mode == "shared"
    assert backend.spark_properties(ALICE)["token"] == "service-token"
    assert backend.spark_properties(BOB)["token"] == "service-token"
    assert [path for path in catalog.paths() if path == "oauth/tokens"] == ["oauth/tokens"]
    assert catalog.requests[0].form["scope"] == "PRINCIPAL_ROLE:ALL"
    make(auth=auth | {"scope": "PRINCIPAL_ROLE:reader"}).spark_properties(ALICE)
    assert catalog.requests[-1].form["scope"] == "PRINCIPAL_ROLE:reader"


@pytest.mark.rule("AUTHN-3")
def test_an_exchanged_token_stays_its_users(catalog: Any, make: Any) -> None:
    auth = {"type": "token_exchange", "token_endpoint": catalog.token_endpoint, "client_id": "sqe", "audience": "lake"}
    backend = make(auth=auth)

    assert backend.identity_mode == "user"
    assert backend.spark_properties(ALICE)["token"] == "exchanged-token-of-alice-5d1f"
    assert backend.spark_properties(BOB)["token"] == "exchanged-token-of-bob-77c3"
    assert backend.spark_properties(ALICE)["token"] == "exchanged-token-of-alice-5d1f"
    forms = [request.form for request in catalog.requests]
    assert [form["audience"] for form in forms] == ["lake", "lake"]
    assert backend.quick_metadata(ALICE).list_namespaces() == [("hr",), ("fin",)]
    assert {request.bearer for request in catalog.requests[2:]} == {"exchanged-token-of-alice-5d1f"}


def held_by(thing: Any) -> Iterator[str]:
    """Every text in an object of this distribution, and in those that it holds; secrets revealed."""
    if isinstance(thing, str):
        yield thing
    elif isinstance(thing, Secret):
        yield thing.reveal()
    elif isinstance(thing, Mapping):
        yield from held_by([*thing.keys(), *thing.values()])
    elif isinstance(thing, list | tuple | set):
        for each in thing:
            yield from held_by(each)
    elif type(thing).__module__.startswith("sqe_catalog_polaris"):
        for kept in (vars(thing) if hasattr(thing, "__dict__") else {}).values():
            yield from held_by(kept)


EXCHANGE = {"type": "token_exchange", "client_id": "sqe"}


@pytest.mark.rule("SESS-6")
def test_an_exchanged_token_is_gone_when_its_session_ends(catalog: Any, make: Any) -> None:
    backend = make(auth={**EXCHANGE, "token_endpoint": catalog.token_endpoint})
    for each in (ALICE, BOB):
        backend.spark_properties(each)
        backend.quick_metadata(each).list_namespaces()
    backend.forget_login(ALICE)
    backend.forget_login(make_identity("carol"))

    held = set(held_by(backend))
    assert "exchanged-token-of-alice-5d1f" not in held
    assert "exchanged-token-of-bob-77c3" in held
    catalog.requests.clear()
    backend.spark_properties(BOB)
    assert catalog.requests == []
    assert backend.spark_properties(ALICE)["token"] == "exchanged-token-of-alice-5d1f"
    assert catalog.paths() == ["oauth/tokens"]
    backend.quick_metadata(ALICE).list_namespaces()
    assert "config" in catalog.paths()[1]


@pytest.mark.rule("SESS-6")
def test_a_token_that_comes_after_the_end_of_its_session_is_not_kept(catalog: Any, make: Any) -> None:
    backend = make(auth={**EXCHANGE, "token_endpoint": catalog.token_endpoint})

    def end_meanwhile(request: Any) -> None:
        backend.forget_login(ALICE)

    catalog.reply = end_meanwhile
    assert backend.spark_properties(ALICE)["token"] == "exchanged-token-of-alice-5d1f"
    catalog.reply = None
    assert "exchanged-token-of-alice-5d1f" not in held_by(backend)
    backend.spark_properties(ALICE)
    assert "exchanged-token-of-alice-5d1f" in held_by(backend)


def test_tokens_that_ended_are_not_kept(catalog: Any) -> None:
    now = [0.0]
    auth = RestAuth(type="token_exchange", client_id="sqe", token_endpoint=catalog.token_endpoint)
    endpoint = TokenEndpoint(RestConfig(catalog_url=catalog.url, auth=auth), CatalogContext(), monotonic=lambda: now[0])
    catalog.misbehave(body={"access_token": "short", "expires_in": 300})
    endpoint.token("a", {})
    now[0] = 239.0  # a minute before its end it is as good as ended
    endpoint.forget("b")
    assert "short" in held_by(endpoint)
    now[0] = 240.0
    endpoint.forget("b")
    assert "short" not in held_by(endpoint)
    endpoint.close()


def test_the_token_of_a_service_outlives_sessions(catalog: Any, make: Any) -> None:
    auth = {"type": "client_credentials", "client_id": "root", "client_secret": Secret("s3cr3t")}
    backend = make(auth={**auth, "token_endpoint": catalog.token_endpoint})
    backend.spark_properties(ALICE)
    backend.forget_login(ALICE)
    backend.spark_properties(BOB)
    assert len(catalog.requests) == 1


def test_a_refused_exchange_is_a_refused_login(catalog: Any, make: Any) -> None:
    auth = {"type": "token_exchange", "token_endpoint": catalog.token_endpoint, "client_id": "nobody"}
    with pytest.raises(UserError) as caught:
        make(auth=auth).spark_properties(ALICE)

    assert caught.value.code is ErrorCode.AUTHENTICATION_FAILED
    assert "token-of-alice" not in repr(caught.value)


def test_many_who_need_a_token_ask_once(catalog: Any, make: Any) -> None:
    auth = {"type": "token_exchange", "token_endpoint": catalog.token_endpoint, "client_id": "sqe"}
    backend = make(auth=auth)
    tokens = in_threads(lambda: backend.spark_properties(ALICE)["token"])

    assert set(tokens) == {"exchanged-token-of-alice-5d1f"}
    assert len(catalog.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"access_token": ""},
        {"access_token": 5},
        {"access_token": "a\nb"},
        {"access_token": "ä"},
        {"access_token": "x" * 100_000},
        {"access_token": "t", "token_type": "mac"},
        [],
    ],
)
def test_an_answer_without_a_token_is_none(catalog: Any, make: Any, body: Any) -> None:
    catalog.misbehave(body=body)
    auth = {"type": "token_exchange", "token_endpoint": catalog.token_endpoint, "client_id": "sqe"}
    with pytest.raises(SqeError, match="does not answer as expected"):
        make(auth=auth).spark_properties(ALICE)


@pytest.mark.parametrize("reply", [{"status": 503}, {"raw": b""}])
def test_a_token_is_asked_for_once(catalog: Any, make: Any, reply: dict[str, Any]) -> None:
    """The first one may have been given out, and a refresh token is good for one."""
    catalog.misbehave(**reply)
    auth = {**EXCHANGE, "token_endpoint": catalog.token_endpoint}
    with pytest.raises(SqeError):
        make(auth=auth, max_retries=3).spark_properties(ALICE)
    assert len(catalog.requests) == 1


def test_signed_requests(catalog: Any, make: Any) -> None:
    auth = {
        "type": "aws",
        "region": "eu-central-1",
        "service": "s3tables",
        "access_key": "AKIDEXAMPLE",
        "secret_key": Secret("hunter2"),
        "session_token": Secret("hunter3"),
    }
    backend = make(auth=auth)
    found = backend.spark_properties(ALICE)

    assert found["rest.auth.type"] == "sigv4"
    assert found["rest.auth.sigv4.delegate-auth-type"] == "none"
    assert (found["rest.signing-region"], found["rest.signing-name"]) == ("eu-central-1", "s3tables")
    assert "token-of-alice" not in str(found)
    catalog.misbehave(body={"overrides": {}})
    backend.check()
    header = catalog.requests[-1].headers["authorization"]
    assert header.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert catalog.requests[-1].headers["x-amz-security-token"] == "hunter3"


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("group", ["defaults", "overrides"])
@pytest.mark.parametrize("said", [{"rest.sigv4-enabled": "true"}, {"rest.auth.type": "sigv4"}])
def test_requests_are_signed_where_keys_are_configured_and_not_because_a_catalog_asks(
    catalog: Any, make: Any, monkeypatch: pytest.MonkeyPatch, group: str, said: dict[str, str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDMACHINE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    catalog.config = {**catalog.config, group: {**catalog.config[group], **said}}
    with pytest.raises(ExternalError) as caught:
        make().quick_metadata(ALICE).list_namespaces()
    assert caught.value.hint == 'set auth.type = "aws" and its keys in [catalog.auth]'
    assert [request.bearer for request in catalog.requests] == ["token-of-alice-5d1f"]

    catalog.requests.clear()
    catalog.reply = lambda request: Reply(
        body=catalog.config if request.path.endswith("config") else {"namespaces": []}
    )
    auth = {"type": "aws", "region": "eu-central-1", "access_key": "AKIDEXAMPLE", "secret_key": Secret("hunter3")}
    assert make(auth=auth).quick_metadata(ALICE).list_namespaces() == []
    assert all("Credential=AKIDEXAMPLE/" in request.headers["authorization"] for request in catalog.requests)


def test_the_keys_of_the_machine_are_for_the_engine(make: Any) -> None:
    backend = make(auth={"type": "aws", "region": "eu-central-1"})

    assert backend.quick_metadata(ALICE) is None
    assert not backend.lists_without_engine
    assert "rest.access-key-id" not in backend.spark_properties(ALICE)


def test_plain_http_to_elsewhere_is_warned_of_and_refused_in_production(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="sqe_core"):
        make(catalog_url="http://catalog.example/api")
    assert "plain http" in caplog.text
    with pytest.raises(ConfigError, match="https"):
        make(catalog_url="http://catalog.example/api", context=CatalogContext(production_mode=True))


@pytest.mark.parametrize(
    "auth",
    [{"type": "token_exchange"}, {"type": "client_credentials", "client_secret": Secret("s")}],
    ids=["token_exchange", "client_credentials"],
)
def test_tokens_are_not_fetched_over_plain_http_in_production(make: Any, auth: dict[str, Any]) -> None:
    """The request for one holds the user's own token, or the secret of the service."""
    auth = {"token_endpoint": "HTTP://login.example/token", "client_id": "sqe", **auth}
    make(catalog_url="https://catalog.example/api", auth=auth)
    with pytest.raises(ConfigError, match=r"auth\.token_endpoint has to be https"):
        make(catalog_url="https://catalog.example/api", auth=auth, context=CatalogContext(production_mode=True))


def test_local_files_are_for_development(make: Any) -> None:
    assert make(store="local").required_jars() == ()
    with pytest.raises(ConfigError, match="local"):
        make(store="local", context=CatalogContext(production_mode=True))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"catalog_url": "https://user:pw@host/x"}, "catalog_url"),
        ({"catalog_url": "https://host/x?token=1"}, "catalog_url"),
        ({"catalog_url": "https://host/x/v1/"}, "/v1"),
        ({"headers": {"Authorization": "x"}}, "Authorization"),
        ({"headers": {"X-Iceberg-Access-Delegation": "x"}}, "X-Iceberg"),
    ],
)
def test_settings_that_cannot_be_meant(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RestConfig(**{"catalog_url": "https://host/x", **keys})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"type": "static"}, "token"),
        ({"type": "client_credentials", "client_id": "x"}, "token_endpoint, client_secret"),
        ({"type": "token_exchange"}, "token_endpoint, client_id"),
        ({"type": "aws"}, "region"),
        ({"type": "aws", "region": "x", "access_key": "k"}, "belong together"),
    ],
)
def test_logins_that_are_not_complete(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RestAuth(**keys)


def test_scopes_of_polaris_are_for_polaris() -> None:
    assert RestConfig(catalog_url="https://x").scope == "PRINCIPAL_ROLE:ALL"
    for kind in (NessieConfig, HorizonConfig):
        assert kind(catalog_url="https://x").scope == ""
        assert kind(catalog_url="https://x", auth=RestAuth(scope="catalog")).scope == "catalog"


def test_attach_takes_addresses_of_servers_only() -> None:
    for location in ("", "file:///etc", "ftp://x", "https://user:pw@host/x"):
        with pytest.raises(UserError):
            FACTORIES["rest"].attach(AttachRequest(name="x", location=location, options={"warehouse": "w"}))
    request = AttachRequest(name="x", location="https://host", options={"warehouse": "w", "store": "ftp"})
    with pytest.raises(UserError, match="STORE"):
        FACTORIES["polaris"].attach(request)
