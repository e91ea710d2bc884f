"""Signing in on another device, over the handshake: for clients on machines without a browser (RFC 8628)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import grpc
import pytest
from raw_flight import Core, RawClient, Refused

from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.auth import BasicCredential, ClientInfo
from sqe_core.spi.errors import InvalidCredentialsError, ResourcesError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import DeviceLoginStart

HEADER = "x-sqe-device-login"


class Devices:
    """Logins that wait until the test says that the user has finished."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.clients: list[ClientInfo] = []
        self.approved = False
        self.full = False

    def begin(self, *, client: ClientInfo) -> DeviceLoginStart:
        if self.full:
            raise ResourcesError("Too many logins are waiting", retry_after_secs=30)
        self.clients.append(client)
        return DeviceLoginStart(
            id=Secret("id-4711"),
            user_code="WDJB-MJHT",
            verification_uri="https://idp.example.com/device",
            verification_uri_complete="https://idp.example.com/device?user_code=WDJB-MJHT",
            expires_at=datetime(2026, 1, 1, tzinfo=UTC),
        )

    def poll(self, id: Secret) -> Secret | None:
        if id != Secret("id-4711"):
            raise InvalidCredentialsError
        if not self.approved:
            return None
        credential = BasicCredential(username="alice", password=Secret("wonderland"))
        return self.core.authenticate(credential, self.clients[0]).token


@pytest.fixture
def devices(core: Core) -> Devices:
    devices = Devices(core)
    core.device_logins = devices
    return devices


def handshake(client: RawClient, asked: str) -> bytes:
    (answer,) = client.call("Handshake", metadata=((HEADER, asked),))
    return flight.HandshakeResponse.FromString(answer).payload


def test_a_login_from_begin_to_query(core: Core, nobody: RawClient, devices: Devices) -> None:
    shown = json.loads(handshake(nobody, "begin"))
    assert shown == {
        "id": "id-4711",
        "user_code": "WDJB-MJHT",
        "verification_uri": "https://idp.example.com/device",
        "verification_uri_complete": "https://idp.example.com/device?user_code=WDJB-MJHT",
        "interval_secs": 5,
        "expires_at": "2026-01-01T00:00:00+00:00",
    }
    assert handshake(nobody, shown["id"]) == b""
    devices.approved = True

    token = handshake(nobody, shown["id"]).decode()

    assert nobody.signed_in(f"Bearer {token}").query("SELECT 1 AS one").to_pydict() == {"one": [1]}
    (client,) = devices.clients
    assert (client.protocol, client.address) == ("flight", "127.0.0.1")


@pytest.mark.rule("FLT-1", "TRI-8")
def test_an_unknown_login_is_a_failed_one(nobody: RawClient, devices: Devices) -> None:
    for asked in ("", "id-4712", "BEGIN", "x" * 8000):
        with pytest.raises(Refused) as caught:
            handshake(nobody, asked)
        assert (caught.value.status, caught.value.text) == (grpc.StatusCode.UNAUTHENTICATED, "Authentication failed")
    assert not devices.clients


@pytest.mark.rule("FLT-1")
def test_a_login_that_waits_opens_nothing(core: Core, nobody: RawClient, devices: Devices) -> None:
    handshake(nobody, "begin")
    for header in ("Bearer id-4711", "Bearer WDJB-MJHT"):
        with pytest.raises(Refused):
            nobody.signed_in(header).query("SELECT 1 AS one")
    with pytest.raises(Refused):
        nobody.call("DoAction", flight.Action(type="CloseSession"), metadata=((HEADER, "begin"),))
    assert not core.statements


def test_a_server_without_them_says_so(nobody: RawClient) -> None:
    with pytest.raises(Refused) as caught:
        handshake(nobody, "begin")
    assert caught.value.status is grpc.StatusCode.UNIMPLEMENTED
    assert "no logins on another device" in caught.value.text


def test_too_many_are_told_to_come_back(nobody: RawClient, devices: Devices) -> None:
    devices.full = True
    with pytest.raises(Refused) as caught:
        handshake(nobody, "begin")
    assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
