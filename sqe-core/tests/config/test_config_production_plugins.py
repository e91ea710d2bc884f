"""What production_mode refuses of plugins' kinds: they say it themselves, and the core knows none of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqe_core.bootstrap.checking import check_configuration
from sqe_core.config.loading import read

REST = '[catalog]\ncatalog_url = "https://c.example.com"\n'
SERVICE = (
    '[[auth.providers]]\ntype = "client_credentials"\ntoken_endpoint = "https://t"\nclient_id = "x"\n'
    'client_secret = "7hR9long"\n'
)
BEARER = '[[auth.providers]]\ntype = "bearer_token"\njwks_url = "https://k"\n'
ISSUED = BEARER + 'issuer = "https://i"\naudience = "a"\n'
PASSWORD = '[auth]\nkeycloak_url = "https://k"\nrealm = "r"\nclient_id = "x"\n'
EXTERNAL = '[auth.external]\nissuer = "https://i"\nclient_id = "x"\nchallenge_timeout_secs = 200\n'
PASSTHROUGH = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true'


def refused(tmp_path: Path, text: str) -> list[str]:
    """The faults that production_mode adds, without their file."""
    for name, mode in (("PUBLIC", 0o644), ("PRIVATE", 0o600)):
        (tmp_path / name).touch(mode)
        os.chmod(tmp_path / name, mode)
        text = text.replace(f'"{name}"', f'"{tmp_path / name}"')
    file = tmp_path / "sqe.toml"
    file.write_text(text)
    before, after = (
        check_configuration(read(file, environ={"SQE_PRODUCTION_MODE": mode})).faults for mode in ("false", "true")
    )
    assert list(before) == []
    return [fault.partition(": ")[2] for fault in after]


@pytest.mark.rule("OBS-8")
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            '[[auth.providers]]\ntype = "anonymous"',
            "auth.providers[0].type: {}the login provider 'anonymous' lets",
        ),
        (
            '[[auth.providers]]\ntype = "bearer_passthrough"\nuser = "u"',
            "auth.providers[0].type: {}the login provider 'bearer_passthrough' lets everybody in",
        ),
        (
            '[[auth.providers]]\ntype = "aws_iam"\nvalidate_with_sts = false',
            "auth.providers[0].type: {}the login provider 'aws_iam' checks no key",
        ),
        (PASSTHROUGH, "policy.engine: {}no policy is enforced"),
        (PASSWORD, "auth: {}people's passwords would pass through this server; security.allow_password_grant waives"),
        (BEARER + 'audience = "a"', "auth.providers[0].type: {}`bearer_token` needs the issuer of its tokens"),
        (
            BEARER + "allow_unbounded_audience = true",
            "auth.providers[0].type: {}`bearer_token` needs the issuer and audience of its tokens",
        ),
        (
            ISSUED + "allow_insecure_jwks = true",
            "auth.providers[0].allow_insecure_jwks: {}the certificate of the",
        ),
        (ISSUED + "tls_skip_verify = true", "auth.providers[0].tls_skip_verify: {}the certificate of the other side"),
        (EXTERNAL + "tls_skip_verify = true", "auth.external.tls_skip_verify: {}the certificate of the other side"),
        (SERVICE, "auth.providers[0].type: {}all users would be one identity; security.allow_shared_service_identity"),
        (REST, "catalog.require_vended_credentials: {}must be true for a catalog that hands out credentials"),
        (
            f'{REST}[catalog.auth]\ntype = "static"\ntoken = "9hR-long-enough"',
            "catalog.type: {}everybody is one identity at this catalog; security.allow_shared_service_identity waives",
        ),
        ('[catalogs.a]\ntype = "hadoop"\nwarehouse = "/"', "catalogs.a.type: {}everybody is one identity"),
        (
            '[[auth.providers]]\ntype = "api_key"\nkeys_file = "PUBLIC"',
            "auth.providers[0].type: The login provider 'api_key' cannot use its keys: everybody",
        ),
    ],
)
def test_production_refuses(tmp_path: Path, text: str, fault: str) -> None:
    found = refused(tmp_path, text)
    assert [each for each in found if each.startswith(fault.format("refused by production_mode: "))], found


@pytest.mark.parametrize(
    "text",
    [
        f"{PASSWORD}[security]\nallow_password_grant = true",
        f"{SERVICE}[security]\nallow_shared_service_identity = true",
        '[auth]\ntoken_endpoint = "https://t"',
        ISSUED,
        f"{REST}require_vended_credentials = true",
        '[catalogs.a]\ntype = "hadoop"\nwarehouse = "/"\n[security]\nallow_shared_service_identity = true',
        '[[auth.providers]]\ntype = "api_key"\nkeys_file = "PRIVATE"',
    ],
)
def test_production_takes(tmp_path: Path, text: str) -> None:
    places = ("auth.", "catalog", "auth: refused by production_mode: people")
    assert [fault for fault in refused(tmp_path, text) if fault.startswith(places)] == []
