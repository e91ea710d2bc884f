"""Who calls: each style of signing in that clients have, and that nothing is answered without (FLT-1, FLT-2)."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pyarrow.flight as official
import pytest
from raw_flight import USERS, Core, RawClient, Refused, basic, descriptor, packed

from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.auth import BasicCredential, BearerCredential, NoCredential
from sqe_core.spi.protocol import Endpoint

UNAUTHENTICATED = (grpc.StatusCode.UNAUTHENTICATED, "AUTHENTICATION_FAILED", "Authentication failed")
SELECT = sql.CommandStatementQuery(query="SELECT 1 AS one")
EVERY_CALL: list[tuple[str, Any]] = [
    ("Handshake", flight.HandshakeRequest()),
    ("ListFlights", flight.Criteria()),
    ("GetFlightInfo", descriptor(SELECT)),
    ("PollFlightInfo", descriptor(SELECT)),
    ("GetSchema", descriptor(SELECT)),
    ("DoGet", flight.Ticket(ticket=packed(sql.CommandGetCatalogs()))),
    ("DoPut", flight.FlightData(flight_descriptor=descriptor(sql.CommandStatementUpdate(query="update t")))),
    ("DoExchange", flight.FlightData()),
    ("DoAction", flight.Action(type="CloseSession")),
    ("ListActions", flight.Empty()),
]
METADATA = [
    sql.CommandGetSqlInfo(),
    sql.CommandGetXdbcTypeInfo(),
    sql.CommandGetTableTypes(),
    sql.CommandGetPrimaryKeys(table="t"),
]


def outcome(error: Refused) -> tuple[Any, Any, str]:
    return error.status, error.code, error.text


@pytest.mark.rule("FLT-1", "AUTHN-1")
@pytest.mark.parametrize(("name", "request_"), EVERY_CALL, ids=[name for name, _ in EVERY_CALL])
def test_no_call_is_answered_without_a_login(core: Core, nobody: RawClient, name: str, request_: Any) -> None:
    with pytest.raises(Refused) as caught:
        nobody.call(name, request_)
    assert outcome(caught.value) == UNAUTHENTICATED
    assert not core.plans
    assert not core.statements


@pytest.mark.rule("FLT-1")
@pytest.mark.parametrize("command", METADATA, ids=lambda command: type(command).__name__)
@pytest.mark.parametrize("name", ["GetFlightInfo", "GetSchema", "PollFlightInfo", "DoGet"])
def test_no_metadata_is_answered_without_a_login(nobody: RawClient, name: str, command: Any) -> None:
    request = flight.Ticket(ticket=packed(command)) if name == "DoGet" else descriptor(command)
    with pytest.raises(Refused) as caught:
        nobody.call(name, request)
    assert outcome(caught.value) == UNAUTHENTICATED


@pytest.mark.rule("FLT-1")
@pytest.mark.parametrize("action", ["CreatePreparedStatement", "GetSessionOptions", "CancelFlightInfo", "nonsense"])
def test_no_action_is_answered_without_a_login(nobody: RawClient, action: str) -> None:
    with pytest.raises(Refused) as caught:
        nobody.action(action)
    assert outcome(caught.value) == UNAUTHENTICATED


def test_the_service_has_these_ten_calls_and_no_other(alice: RawClient) -> None:
    with pytest.raises(Refused) as caught:
        alice.call("Shutdown", b"")
    assert caught.value.status is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.rule("LIM-2")
@pytest.mark.parametrize("name", [name for name, _ in EVERY_CALL if name != "Handshake"])
def test_the_login_is_judged_before_anything_is_read(nobody: RawClient, name: str) -> None:
    """A client that sends nothing, or very much, is answered at once and holds no thread."""

    def endless() -> Iterator[bytes]:
        while not over.is_set():
            yield b"\x00" * (1 << 20)

    def silent() -> Iterator[bytes]:
        over.wait(20)
        yield from ()

    over = threading.Event()
    for requests in (endless(), silent()):
        with pytest.raises(grpc.RpcError) as caught:
            list(nobody.begin(name, requests, timeout=5))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    over.set()


# Styles


def handshake(client: RawClient, *requests: Any, header: str | None = None) -> tuple[str, dict[str, str]]:
    metadata = (("authorization", header),) if header else ()
    call = client.begin("Handshake", [each.SerializeToString() for each in requests], metadata)
    try:
        (answer,) = list(call)
    except grpc.RpcError as error:
        raise Refused(error) from None
    return flight.HandshakeResponse.FromString(answer).payload.decode(), dict(call.initial_metadata())


@pytest.mark.rule("FLT-2")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("style", ["padded", "unpadded", "lower case", "with a message"])
def test_basic_in_the_handshake(core: Core, nobody: RawClient, user: str, style: str) -> None:
    header = basic(user)
    if style == "unpadded":
        header = header.rstrip("=")
    if style == "lower case":
        header = header.replace("Basic", "basic")
    requests = [flight.HandshakeRequest()] if style == "with a message" else []
    token, headers = handshake(nobody, *requests, header=header)
    assert headers["authorization"] == f"Bearer {token}"
    assert len(token) >= 32
    assert USERS[user] not in token
    client = nobody.signed_in(f"Bearer {token}")
    assert client.query("SELECT 1 AS one").num_rows == 1
    assert core.sessions[-1].identity.username == user


def test_basic_in_the_message_of_the_handshake(core: Core, nobody: RawClient) -> None:
    login = flight.BasicAuth(username="bob", password="builder").SerializeToString()
    token, _ = handshake(nobody, flight.HandshakeRequest(payload=login))
    old = RawClient(nobody.channel, (("auth-token-bin", token.encode()),))
    assert old.query("SELECT 1 AS one").num_rows == 1
    assert isinstance(core.logins[0][0], BasicCredential)
    assert isinstance(core.logins[-1][0], BearerCredential)


def test_basic_with_each_call(core: Core, alice: RawClient) -> None:
    alice.query("SELECT 1 AS one")
    alice.query("SELECT 1 AS one")
    assert len(core.sessions) == 1


def test_each_handshake_is_a_session_of_its_own(core: Core, nobody: RawClient) -> None:
    tokens = {handshake(nobody, header=basic("alice"))[0] for _ in range(3)}
    assert len(tokens) == len(core.sessions) == 3


def test_a_cookie_is_the_session(core: Core, nobody: RawClient) -> None:
    token, headers = handshake(nobody, header=basic("alice"))
    cookie, *flags = headers["set-cookie"].split("; ")
    assert cookie == f"arrow_flight_session_id={token}"
    assert "HttpOnly" in flags
    client = RawClient(nobody.channel, (("cookie", f"other=1; {cookie}"),))
    assert client.query("SELECT 1 AS one").num_rows == 1
    for wrong in ("arrow_flight_session_id=", "arrow_flight_session_id=x", f"session={token}", token, "=", ";;"):
        with pytest.raises(Refused) as caught:
            RawClient(nobody.channel, (("cookie", wrong),)).plan("SELECT 1 AS one")
        assert outcome(caught.value) == UNAUTHENTICATED
    # Who says who it is has said it: the cookie is not looked at.
    both = RawClient(nobody.channel, (("cookie", cookie), ("authorization", basic("bob"))))
    both.query("SELECT 1 AS one")
    assert core.sessions[-1].identity.username == "bob"


def test_anonymous(core: Core, nobody: RawClient) -> None:
    core.anonymous = True
    assert nobody.query("SELECT 1 AS one").num_rows == 1
    assert isinstance(core.logins[-1][0], NoCredential)
    token, _ = handshake(nobody)
    assert nobody.signed_in(f"Bearer {token}").query("SELECT 1 AS one").num_rows == 1


def test_the_official_client_in_both_ways(core: Core, endpoint: Endpoint) -> None:
    location = f"grpc://127.0.0.1:{endpoint.port}"
    with official.FlightClient(location) as client:
        header = client.authenticate_basic_token("alice", "wonderland")
        assert list(client.list_actions(official.FlightCallOptions(headers=[header])))

    class Login(official.ClientAuthHandler):
        def authenticate(self, outgoing: Any, incoming: Any) -> None:
            outgoing.write(official.BasicAuth("bob", "builder").serialize())
            self.token = incoming.read()

        def get_token(self) -> bytes:
            return self.token

    with official.FlightClient(location) as client:
        client.authenticate(Login())
        assert list(client.list_actions())
    assert [session.identity.username for session in core.sessions] == ["alice", "bob"]


# What is refused

BAD_HEADERS = [
    basic("alice", "wrong"),
    basic("nobody", "wonderland"),
    "Basic " + base64.b64encode(b"alice").decode(),
    "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
    "Basic !!!!",
    "Basic YWxp Y2U6",
    "Basic",
    "Basic ",
    "Bearer",
    "Bearer ",
    "Bearer wrong",
    "Bearer " + "x" * 5000,
    "Digest username=alice",
    "wonderland",
    " ",
    "Bearer eyJhbGciOiJub25lIn0.e30.",
]


@pytest.mark.rule("AUTHN-6")
@pytest.mark.parametrize("header", BAD_HEADERS)
def test_bad_logins_read_the_same(core: Core, nobody: RawClient, header: str) -> None:
    core.anonymous = True  # somebody who fails is not taken for somebody who does not try
    for attempt in (
        lambda: handshake(nobody, header=header),
        lambda: nobody.signed_in(header).plan("SELECT 1 AS one"),
    ):
        with pytest.raises(Refused) as caught:
            attempt()
        assert outcome(caught.value) == UNAUTHENTICATED
        assert set(caught.value.trailing) <= {"x-sqe-error-code", "x-sqe-error-kind"}


@pytest.mark.rule("AUTHN-5")
@pytest.mark.parametrize("second", ["Bearer x", "Basic YWxpY2U6d29uZGVybGFuZA=="])
@pytest.mark.parametrize("name", ["authorization", "Authorization"])
def test_two_authorization_headers_are_none(nobody: RawClient, second: str, name: str) -> None:
    for headers in ((basic("alice"), second), (second, basic("alice"))):
        client = RawClient(nobody.channel, tuple(("authorization", each) for each in headers))
        with pytest.raises(Refused) as caught:
            client.call("ListActions", flight.Empty())
        assert outcome(caught.value) == UNAUTHENTICATED
        with pytest.raises(Refused):
            client.call("Handshake")


@pytest.mark.rule("AUTHN-5")
def test_the_kind_comes_from_the_transport(core: Core, nobody: RawClient) -> None:
    """A token in the place of a password is a password, and the other way round."""
    token, _ = handshake(nobody, header=basic("alice"))
    with pytest.raises(Refused):
        nobody.signed_in(basic("alice", token)).plan("SELECT 1 AS one")
    with pytest.raises(Refused):
        nobody.signed_in("Bearer wonderland").plan("SELECT 1 AS one")


@pytest.mark.parametrize("payload", [b"\xff" * 50, b"\x12\x05alice", b"x" * 100_000, b"\x12\x05alice\x1a\x05wrong"])
def test_bad_messages_of_a_handshake(core: Core, nobody: RawClient, payload: bytes) -> None:
    core.anonymous = True
    with pytest.raises(Refused) as caught:
        handshake(nobody, flight.HandshakeRequest(payload=payload))
    assert outcome(caught.value) == UNAUTHENTICATED


@pytest.mark.rule("AUTHN-9")
def test_other_headers_give_no_identity(core: Core, alice: RawClient) -> None:
    names = ("x-trino-user", "x-user", "x-forwarded-user", "user", "x-session-id", "x-sqe-source", "x-sqe-roles")
    alice.metadata += tuple((name, "bob") for name in names)
    alice.query("SELECT 1 AS one")
    assert [session.identity.username for session in core.sessions] == ["alice"]
    _, client = core.logins[-1]
    assert (client.label, client.source, client.requested_user) == ("bob", "bob", None)
    assert client.address == "127.0.0.1"
    assert client.secure is False
    assert "grpc-python" in (client.user_agent or "")


@pytest.mark.parametrize("label", ["a b", "x" * 129, "ü".encode().decode("latin-1"), "a;b", ""])
def test_a_label_that_is_none_is_left_out(core: Core, connect: Callable[..., RawClient], label: str) -> None:
    client = connect(basic("alice"))
    client.metadata += (("x-session-id", label),)
    try:
        client.query("SELECT 1 AS one")
    except (Refused, ValueError):  # the transport takes printable text only
        return
    assert core.logins[-1][1].label is None


@pytest.mark.rule("FLT-2")
def test_logging_out_ends_the_token(core: Core, nobody: RawClient) -> None:
    token, _ = handshake(nobody, header=basic("alice"))
    client = nobody.signed_in(f"Bearer {token}")
    handle = client.prepare("SELECT 1 AS one").prepared_statement_handle
    info = client.plan("SELECT 1 AS one")
    (body,) = client.action("CloseSession", flight.CloseSessionRequest().SerializeToString())
    assert flight.CloseSessionResult.FromString(body).status == flight.CloseSessionResult.CLOSED
    assert core.sessions[0].closed
    assert core.plans[-1].closed
    for attempt in (lambda: client.fetch(info), lambda: client.plan("SELECT 1 AS one")):
        with pytest.raises(Refused) as caught:
            attempt()
        assert outcome(caught.value) == UNAUTHENTICATED
    again = nobody.signed_in(basic("alice"))
    with pytest.raises(Refused) as caught:
        again.info(sql.CommandPreparedStatementQuery(prepared_statement_handle=handle))
    assert caught.value.status is grpc.StatusCode.NOT_FOUND


@pytest.mark.rule("FLT-2")
def test_a_session_goes_on_with_a_new_token(core: Core, alice: RawClient) -> None:
    assert alice.action("RenewLogin", core.bearer.reveal().encode()) == []
    assert core.renewals == [BearerCredential(token=core.bearer)]
    for bad in (b"", b"wrong", b"x" * (33 << 10), "tökén".encode(), b"\xff"):
        with pytest.raises(Refused) as caught:
            alice.action("RenewLogin", bad)
        assert outcome(caught.value) == UNAUTHENTICATED
    assert alice.query("SELECT 1 AS one").num_rows == 1
