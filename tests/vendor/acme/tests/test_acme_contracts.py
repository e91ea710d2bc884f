"""Acme's kinds pass SQE's contracts. Fixtures and capabilities are all that a vendor writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from acme_sqe.badge import BadgeFactory, sign_badge
from acme_sqe.config import BadgeConfig, FolderConfig
from acme_sqe.folder import FolderFactory
from sqe_core.spi import AttachRequest, BasicCredential, BearerCredential, ClientInfo, LoginRequest, Secret
from sqe_core.testing import AuthProviderContract, CatalogContract, PluginContract

KEY = Secret("a key that nobody guesses")
CLIENT = ClientInfo(protocol="test", address="127.0.0.1")


def bearer(token: Secret) -> LoginRequest:
    """Present a token."""
    return LoginRequest(credential=BearerCredential(token=token), client=CLIENT)


class TestAcme(PluginContract):
    plugin_name = "acme"


class TestBadge(AuthProviderContract):
    capabilities = frozenset({"rejects"})

    @pytest.fixture
    def factory(self) -> BadgeFactory:
        return BadgeFactory()

    @pytest.fixture
    def config(self) -> BadgeConfig:
        return BadgeConfig(key=KEY)

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return bearer(sign_badge(KEY, "ann", "analyst"))

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        forged = sign_badge(Secret("another key, as long"), "ann", "admin")
        promoted = sign_badge(KEY, "ann").reveal().replace("ann:", "ann:admin", 1)
        return [bearer(forged), bearer(Secret(promoted))]

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        password = BasicCredential(username="ann", password=Secret("ann:analyst:0"))
        return [LoginRequest(credential=password, client=CLIENT), bearer(Secret("eyJhbGciOiJSUzI1NiJ9.e30.c2ln"))]


class TestFolder(CatalogContract):
    capabilities = frozenset({"attach"})

    @pytest.fixture
    def factory(self) -> FolderFactory:
        return FolderFactory()

    @pytest.fixture
    def config(self, tmp_path: Path) -> FolderConfig:
        return FolderConfig(path=tmp_path)

    @pytest.fixture
    def attach_request(self, tmp_path: Path) -> AttachRequest:
        return AttachRequest(name="files", location=str(tmp_path), options={"writable": "true"})


class TestWritableFolder(TestFolder):
    capabilities = frozenset({"attach", "writes"})

    @pytest.fixture
    def config(self, tmp_path: Path) -> FolderConfig:
        return FolderConfig(path=tmp_path, writable=True)
