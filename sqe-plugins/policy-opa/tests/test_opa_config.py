"""The keys of `[policy.opa]` that contradict each other, or would let somebody between SQE and OPA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqe_core.spi import Secret
from sqe_policy_opa.config import OpaConfig


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize(
    "url",
    [
        "https://opa.example.com",
        "https://opa:8181/some/prefix",
        "http://localhost:8181",
        "http://127.0.0.9:1",
        "http://[::1]:1",
    ],
)
def test_tls_or_this_machine(url: str) -> None:
    assert OpaConfig(url=url).url == url


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize(
    "url", ["http://opa:8181", "http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com"]
)
def test_plain_http_elsewhere_has_to_be_allowed(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        OpaConfig(url=url)
    assert OpaConfig(url=url, allow_insecure_transport=True).url == url


@pytest.mark.parametrize(
    "keys",
    [
        {"url": "https://user:hunter2@opa"},
        {"url": "https://user@opa"},
        {"url": "https://opa/?token=hunter2"},
        {"url": "https://opa/#hunter2"},
        {"url": "https://opa", "client_cert_file": Path("hunter2")},
        {"url": "http://localhost", "ca_file": Path("hunter2")},
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is looked at below
        OpaConfig(**keys)
    assert "hunter2" not in str(raised.value)


def test_the_token_never_prints() -> None:
    assert "hunter2" not in repr(OpaConfig(url="https://opa", token=Secret("hunter2")))
