"""STS down, slow, broken or lying: nobody comes in, nobody waits for long, and no word of it reaches a client."""

from __future__ import annotations

import logging
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from sqe_auth_aws.config import AwsConfig
from sqe_auth_aws.provider import AwsProvider
from sqe_auth_aws.sts import SecurityTokenService
from sqe_core.spi import ConfigError, ExternalError, InvalidCredentialsError, PluginContext, StartupError
from sqe_http.testing import Reply

CANARY = "canary-of-the-body"


def ask(sts: Any, **keys: Any) -> ExternalError:
    provider = AwsProvider("aws", sts.config(timeout_secs=1, **keys), PluginContext())
    with pytest.raises(ExternalError) as caught:
        provider.authenticate(sts.basic(*sts.ALICE))
    for text in (CANARY, sts.ALICE[0], sts.ALICE[1], "127.0.0.1"):
        assert text not in str(caught.value)
    return caught.value


@pytest.mark.rule("TEST-9")
@pytest.mark.parametrize(
    "reply",
    [
        {"status": 200, "body": b""},
        {"status": 200, "body": CANARY.encode()},
        {"status": 200, "body": b"<html><p>" + CANARY.encode()},
        {"status": 200, "body": b'{"GetCallerIdentityResponse": {}}'},
        {"status": 200, "body": b"\xff\xfe\x00"},
        {"status": 200, "body": b"<GetCallerIdentityResponse/>"},
        {"status": 200, "body": b"<x><GetCallerIdentityResult><Arn>a</Arn></GetCallerIdentityResult></x>"},
        {"status": 200, "body": b"<a>" * 20000},
        {"status": 200, "body": b" " * 100_000},
        {"status": 200, "body": b"", "headers": {"Content-Length": "100000000000"}},
        {"status": 301, "headers": {"Location": "http://127.0.0.1:1/"}},
        {"status": 307, "headers": {"Location": "http://127.0.0.1:1/"}},
        {"status": 400, "body": CANARY.encode()},
        {"status": 403, "body": b"<html></html>"},
        {"status": 500, "body": CANARY.encode()},
        {"status": 503, "body": b"<ErrorResponse><Error><Code>InvalidClientTokenId</Code></Error></ErrorResponse>"},
        {"raw": CANARY.encode() + b"\r\n\r\n"},
        {"raw": b""},
        {"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n<a>"},
    ],
)
def test_answers_that_are_none(sts: Any, reply: dict[str, Any]) -> None:
    sts.reply = lambda request: Reply(**reply)
    ask(sts)
    assert len(sts.requests) == 1


def test_entities_are_not_expanded(sts: Any) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    sts.reply = lambda request: Reply(body=f"{bomb}<a>&b;</a>".encode())
    assert "no answer of STS" in str(ask(sts))


@pytest.mark.parametrize("fields", [{"Account": "1"}, {"Arn": "a"}, {"Arn": "a", "UserId": "b", "Account": ""}])
def test_answers_with_something_missing(sts: Any, fields: dict[str, str]) -> None:
    sts.reply = lambda request: sts.answer("GetCallerIdentity", **fields)
    ask(sts)


def test_a_field_that_stands_twice_is_no_answer(sts: Any) -> None:
    honest = sts.honest

    def twice(request: Any) -> Any:
        body = honest(request).body
        return Reply(body=body.replace(b"<Account>", b"<Account>999999999999</Account><Account>"))

    sts.reply = twice
    ask(sts)


def test_an_answer_that_drips_is_given_up(sts: Any) -> None:
    sts.reply = lambda request: Reply(body=b" " * 500, drip_secs=0.1)
    began = time.monotonic()
    assert "in time" in str(ask(sts))
    assert time.monotonic() - began < 5


def test_headers_that_drip_are_given_up(sts: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Accepted by the system, and never answered.
        began = time.monotonic()
        assert "in time" in str(ask(sts, endpoint_url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
    assert time.monotonic() - began < 5


def test_nobody_listens(sts: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "cannot be reached" in str(ask(sts, endpoint_url=f"http://127.0.0.1:{port}"))


def test_tls_that_is_none(sts: Any) -> None:
    assert "certificate" in str(ask(sts, endpoint_url=sts.url.replace("http:", "https:")))


@pytest.mark.parametrize("code", ["Throttling", "ThrottlingException", "InternalFailure", "Something", ""])
def test_what_is_not_about_the_key_is_not_held_against_it(sts: Any, code: str) -> None:
    """Otherwise a busy AWS would lock users out for failed logins."""
    sts.reply = lambda request: sts.refusal(code, 400)
    ask(sts)


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_wrong_clock_is_nobodys_bad_key(sts: Any, seconds: float) -> None:
    sts.skew_secs = seconds
    sts.reply = lambda request: sts.refusal("SignatureDoesNotMatch")
    assert "clock" in str(ask(sts))
    # A little is what AWS allows, and no excuse.
    sts.skew_secs = seconds / 60
    with pytest.raises(InvalidCredentialsError):
        AwsProvider("aws", sts.config(), PluginContext()).authenticate(sts.basic(*sts.ALICE))


def test_the_check_sees_who_answers_and_what_time_it_is_there(sts: Any) -> None:
    provider = AwsProvider("aws", sts.config(timeout_secs=1), PluginContext())
    provider.check()
    assert "authorization" not in sts.requests[0].headers
    AwsProvider("aws", sts.config(validate_with_sts=False), PluginContext()).check()
    sts.skew_secs = 3600
    with pytest.raises(ExternalError, match="clock"):
        provider.check()
    sts.skew_secs = 0
    for reply in ({"body": CANARY.encode()}, {"status": 301}, {"status": 403, "body": b"<html/>"}, {"status": 500}):
        sts.reply = lambda request, reply=reply: Reply(**reply)
        with pytest.raises(ExternalError):
            provider.check()


@pytest.mark.rule("OBS-2")
def test_logs_hold_no_keys(sts: Any, caplog: pytest.LogCaptureFixture) -> None:
    provider = AwsProvider("aws", sts.config(), PluginContext())
    with caplog.at_level(logging.DEBUG):
        provider.authenticate(sts.basic(sts.SESSION[0], ":".join(sts.SESSION[1:])))
        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(sts.basic(sts.ALICE[0], "wrong-secret-of-alice"))
    for text in (*sts.SESSION[1:], "wrong-secret-of-alice"):
        assert text not in caplog.text


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "https://sts.eu-west-1.amazonaws.com/"),
        ("us-east-1", "https://sts.us-east-1.amazonaws.com/"),
        ("cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn/"),
        ("us-gov-west-1", "https://sts.us-gov-west-1.amazonaws.com/"),
    ],
)
def test_the_host_is_that_of_the_region(region: str, host: str) -> None:
    """Pinned: not the environment, a profile or a user says whom the signature is sent to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        patch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        service = SecurityTokenService(AwsConfig(region=region, accounts=("123456789012",)))
    assert service._url == host


def test_a_region_that_is_none() -> None:
    with pytest.raises(ConfigError, match="no region of AWS"):
        SecurityTokenService(AwsConfig(region="moon", accounts=("123456789012",)))


def test_authorities_that_cannot_be_read(sts: Any, tmp_path: Path) -> None:
    config = sts.config(endpoint_url="https://sts.example.com", ca_file=tmp_path / "missing.pem")
    with pytest.raises(StartupError, match="ca_file"):
        SecurityTokenService(config)
