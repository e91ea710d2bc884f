"""Headers: what clients keep arrives at the core, and what a statement changed goes back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from trino_client import ALICE, Connection, HttpRefused, Serve, StatementFailed

from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    Endpoint,
    InvalidCredentialsError,
    NoCredential,
    ProtocolContext,
    RequestLimits,
    SessionChanges,
    UserError,
)
from sqe_core.testing import FakeGateway
from sqe_protocol_trino.client_headers import ClientHeaders, change_headers, credential
from sqe_protocol_trino.prepared_text import packed, unpacked


def headers(*pairs: tuple[str, str]) -> ClientHeaders:
    return ClientHeaders(CIMultiDictProxy(CIMultiDict([(f"X-Trino-{name}", value) for name, value in pairs])))


@pytest.mark.rule("TRI-6")
def test_state_arrives(endpoint: Endpoint, gateway: FakeGateway) -> None:
    connection = Connection(
        endpoint,
        **{
            "X-Trino-Catalog": "lake",
            "X-Trino-Schema": "sales",
            "X-Trino-Session": "query_max_run_time=5m, iceberg.compression_codec=zstd%2Clz4",
            "X-Trino-Prepared-Statement": "p=SELECT+1%2B%3F",
            "X-Trino-Role": "system=ROLE{analyst}",
            "X-Trino-Source": "superset",
            "X-Trino-Trace-Token": "t-1",
            "X-Trino-User": "alice",
            "X-Trino-Extra-Credential": "key=secret",
            "X-Trino-Client-Tags": "a,b",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        },
    )
    list(connection.rows("SELECT 1 AS one"))
    request = gateway.statements[-1]
    state = request.state
    assert state is not None
    assert (state.catalog, state.schema, state.roles) == ("lake", ("sales",), ("analyst",))
    assert dict(state.properties) == {"query_max_run_time": "5m", "iceberg.compression_codec": "zstd,lz4"}
    assert dict(state.prepared) == {"p": "SELECT 1+?"}
    assert (request.dialect, request.source, request.request_id) == ("trino", "superset", "t-1")
    assert request.trace_parent is not None
    _, client = gateway.logins[-1]
    assert (client.requested_user, client.protocol, client.source) == ("alice", "trino", "superset")
    assert "secret" not in repr((request, client))


def test_without_headers_nothing_is_chosen() -> None:
    state = headers().state()
    assert (state.catalog, state.schema, state.roles, dict(state.properties)) == (None, None, None, {})


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("system=ALL", None),
        ("system=NONE", ()),
        ("system=ROLE{a}", ("a",)),
        ("system=ROLE%7Ba+b%7D", ("a b",)),
        ("lake=ROLE{a},other=ROLE{b}", ("a", "b")),
        ("lake=ROLE{a},other=ALL", None),
        ("lake=ALL,system=NONE", ()),
    ],
)
def test_roles(role: str, expected: tuple[str, ...] | None) -> None:
    assert headers(("Role", role)).state().roles == expected


@pytest.mark.parametrize(
    "pair",
    [
        ("Session", "a"),
        ("Session", "=b"),
        ("Role", "system=admin"),
        ("Role", "system=ROLE"),
        ("Prepared-Statement", "p"),
    ],
)
def test_what_cannot_be_read_is_refused(pair: tuple[str, str]) -> None:
    """Rather than left out: a client would go on with other settings than it thinks."""
    with pytest.raises(UserError, match=pair[0]):
        headers(pair).state()


def test_a_bad_header_is_an_error_of_the_statement(endpoint: Endpoint, gateway: FakeGateway) -> None:
    with pytest.raises(StatementFailed, match="X-Trino-Session"):
        list(Connection(endpoint, **{"X-Trino-Session": "a"}).rows("SELECT 1 AS one"))
    assert not gateway.statements


@pytest.mark.rule("TRI-6")
def test_changes_go_back() -> None:
    changes = SessionChanges(
        catalog="lä ke",
        schema=("a", "b"),
        set_properties={"time_zone": "Europe/Rome", "x": "a,b=c\r\nX-Evil: 1"},
        reset_properties=("y",),
        added_prepared={"p": "SELECT\n1"},
        removed_prepared=("q r",),
        roles=("boss",),
    )
    assert change_headers(changes, "X-Trino-") == [
        ("X-Trino-Set-Catalog", "l%C3%A4+ke"),
        ("X-Trino-Set-Schema", "a.b"),
        ("X-Trino-Set-Session", "time_zone=Europe%2FRome"),
        ("X-Trino-Set-Session", "x=a%2Cb%3Dc%0D%0AX-Evil%3A+1"),
        ("X-Trino-Clear-Session", "y"),
        ("X-Trino-Set-Role", "system=ROLE%7Bboss%7D"),
        ("X-Trino-Added-Prepare", "p=SELECT%0A1"),
        ("X-Trino-Deallocated-Prepare", "q+r"),
    ]


@pytest.mark.parametrize(
    ("changes", "role"), [(SessionChanges(all_roles=True), "system=ALL"), (SessionChanges(roles=()), "system=NONE")]
)
def test_roles_go_back(changes: SessionChanges, role: str) -> None:
    assert change_headers(changes, "X-Trino-") == [("X-Trino-Set-Role", role)]


def test_long_prepared_texts_are_compressed() -> None:
    text = "SELECT " + ", ".join(f"column_{n}" for n in range(1000))
    kept = packed(text)
    assert kept.startswith("$zstd:")
    assert len(kept) < len(text) / 2
    assert unpacked(kept) == text
    assert unpacked(packed("SELECT 1")) == "SELECT 1"


@pytest.mark.rule("TRI-6", "LIM-2")
def test_a_bomb_of_a_prepared_text_is_refused() -> None:
    import base64

    import zstandard

    bomb = zstandard.ZstdCompressor(write_content_size=True).compress(b"x" * (64 << 20))
    nameless = zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * (64 << 20))
    for data in (bomb, nameless, b"no", b""):
        with pytest.raises(UserError, match="prepared"):
            unpacked("$zstd:" + base64.urlsafe_b64encode(data).decode())


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (None, NoCredential),
        ("Bearer abc", BearerCredential),
        ("Basic YTpi", BasicCredential),
        ("basic YTpiYw", BasicCredential),
    ],
)
def test_credentials(header: str | None, kind: type) -> None:
    assert isinstance(credential(header), kind)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic !!", "Basic YQ==", "Negotiate abc", "Basic"])
def test_credentials_that_cannot_be_read(header: str) -> None:
    with pytest.raises(InvalidCredentialsError):
        credential(header)


@pytest.mark.rule("AUTHN-5")
def test_two_logins_in_one_request_are_none(endpoint: Endpoint, gateway: FakeGateway) -> None:
    """Whichever a proxy before us believed, we might believe the other (AUTHN-5)."""
    import http.client

    raw = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=10)
    raw.putrequest("POST", "/v1/statement")
    for header in Connection(endpoint, ALICE).headers["Authorization"], "Bearer x":
        raw.putheader("Authorization", header)
    raw.putheader("Content-Length", "8")
    raw.endheaders(b"SELECT 1")
    assert raw.getresponse().status == 401
    raw.close()
    assert not gateway.statements


def test_old_clients_say_presto(endpoint: Endpoint, gateway: FakeGateway) -> None:
    list(Connection(endpoint, **{"X-Presto-User": "alice", "X-Presto-Catalog": "lake"}).rows("SELECT 1 AS one"))
    state = gateway.statements[-1].state
    assert state is not None
    assert state.catalog == "lake"
    assert gateway.logins[-1][1].requested_user == "alice"


@pytest.mark.rule("TRI-6", "LIM-2")
def test_headers_are_bounded(serve: Serve, gateway: FakeGateway) -> None:
    """One long header, many short ones, and a long address (TRI-6)."""
    endpoint = serve(context=ProtocolContext(limits=RequestLimits(header_bytes=8 << 10)))
    bombs: list[Mapping[str, str]] = [
        {"X-Trino-Session": "a=" + "b" * (64 << 10)},
        {f"X-Trino-{n}": "x" * 200 for n in range(100)},
        {f"X-{n}": "" for n in range(5000)},
    ]
    for bomb in bombs:
        with pytest.raises((HttpRefused, OSError)) as caught:
            Connection(endpoint, **bomb).ask("POST", "/v1/statement", b"SELECT 1 AS one")
        if isinstance(caught.value, HttpRefused):
            assert caught.value.status in (400, 431)
    status, _, _ = Connection(endpoint).send("GET", "/v1/" + "x" * (64 << 10))
    assert status in (400, 414)
    assert not gateway.statements
    assert list(Connection(endpoint).rows("SELECT 1 AS one")) == [{"one": 1}]
