"""Keys that contradict each other, or would let in whoever has AWS keys."""

from __future__ import annotations

from typing import Any

import pytest

from sqe_auth_aws.config import AwsConfig

ROLE = "arn:aws:iam::123456789012:role/analyst"
GOOD: dict[str, Any] = {"region": "eu-west-1", "accounts": ("123456789012",)}


def test_the_accounts_are_those_of_the_key_or_of_the_role() -> None:
    assert AwsConfig(**GOOD).allowed_accounts == {"123456789012"}
    web = AwsConfig(region="eu-west-1", web_identity_role_arn=ROLE, web_identity_issuer="https://i")
    assert web.allowed_accounts == {"123456789012"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"accounts": ()}, "nobody could log in"),
        ({"region": None}, "region is missing"),
        ({"web_identity_role_arn": ROLE}, "belong together"),
        ({"web_identity_issuer": "https://i"}, "belong together"),
        ({"web_identity_role_arn": "arn:aws:iam::123456789012:user/a", "web_identity_issuer": "i"}, "ARNs of roles"),
        ({"personal_roles": ("analyst",)}, "ARNs of roles"),
        ({"endpoint_url": "http://sts.example.com"}, "https"),
        ({"endpoint_url": "http://127.0.0.1.example.com"}, "https"),
        ({"endpoint_url": "https://user:hunter2@sts"}, "host and a port"),
        ({"endpoint_url": "https://sts/path"}, "host and a port"),
        ({"endpoint_url": "https://sts/?token=hunter2"}, "host and a port"),
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        AwsConfig(**{**GOOD, **keys})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://vpce-1.sts.example.com", "https://sts:8443/", "http://localhost:15000"])
def test_endpoints(url: str) -> None:
    assert AwsConfig(**GOOD, endpoint_url=url).endpoint_url == url


def test_without_sts_nothing_is_needed() -> None:
    assert AwsConfig(validate_with_sts=False).region is None
