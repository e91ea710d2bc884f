"""The limits of a server, each met by a client of a real process: rates, time, size, idleness; and production mode."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from raw_flight import RawClient, Refused, basic
from testbed.clocks import PROMPT_SECS
from testbed.sqe_server import NO_POLICY, SqeServer, api_keys

from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_http.testing import make_certificate

# A policy engine of somebody else's: whoever has the group may read everything.
POLICY_ENGINE = """
from dataclasses import dataclass
from sqe_core.spi import (
    Decision, Effect, PolicyEnforcer, PolicyEnforcerFactory, PolicyResponse, SqePlugin, hookimpl,
)

@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    group: str
    cache_ttl_secs: int = 0

class Engine(PolicyEnforcer):
    def __init__(self, config):
        self.config = config
    def _knows(self, principal):
        return self.config.group in principal.groups
    def decide(self, request):
        knows = self._knows(request.principal)
        decision = Decision.allow("in the group") if knows else Decision.deny("not in the group")
        return PolicyResponse(decisions=tuple(decision for _ in request.accesses))
    def visible(self, request):
        return [Effect.ALLOW if self._knows(request.principal) else Effect.DENY] * len(request.names)

class Factory(PolicyEnforcerFactory):
    kind = "groups"
    config_type = Config
    def create(self, name, config, context):
        return Engine(config)

class Plugin(SqePlugin):
    @hookimpl
    def sqe_provide_policy_enforcers(self, context):
        return (Factory(),)
"""
ENTRY_POINTS = """
[sqe.plugins]
policy-groups = policy_groups:Plugin
[sqe.plugins.kinds]
policy.groups = policy_groups:Plugin
[sqe.plugins.spi]
1.0 = policy_groups:Plugin
"""
SLOW = "SELECT count(*) AS n FROM range(40000) AS a(x) JOIN range(9000000000) AS b(y) ON x <> y"


class Limited(SqeServer):
    """A server with users, and the channels to it."""

    def __init__(self, folder: Path, text: str, *users: str, certificate: bytes | None = None, **environ: str) -> None:
        self.keys, provider = api_keys(folder, *users, more='groups = ["readers"]\n')
        self.certificate = certificate
        self.channels: list[grpc.Channel] = []
        super().__init__(folder, f"{text}\n{provider}", **environ)

    def __exit__(self, *_: object) -> None:
        for channel in self.channels:
            channel.close()
        super().__exit__()

    def channel(self) -> grpc.Channel:
        address = f"localhost:{self.port}"
        if self.certificate is None:
            made = grpc.insecure_channel(address)
        else:
            made = grpc.secure_channel(address, grpc.ssl_channel_credentials(self.certificate))
        self.channels.append(made)
        return made

    def client(self, user: str) -> RawClient:
        """Somebody with a session of their own."""
        return RawClient(self.channel()).signed_in(f"Bearer {self.keys[user]}")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    """A server whose limits are small."""
    text = (
        f"{NO_POLICY}[query]\ntimeout_secs = 6\nmax_result_rows = 10000\nmax_result_bytes = '32MB'\n"
        "max_sql_bytes = 500\nmax_concurrent_per_user = 1\nstream_idle_timeout_secs = 2\nmax_ingest_columns = 2\n"
        "[session]\nidle_timeout_secs = 9\nexpiry_sweep_interval_secs = 1\n"
        '[auth.role_mappings]\nroot = "catalog_admin"\n'
    )
    with Limited(tmp_path_factory.mktemp("limited"), text, "alice", "bob", "carol", "root") as running:
        yield running


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    """A server with everything that production mode demands."""
    folder = tmp_path_factory.mktemp("production")
    certificate, key = make_certificate(folder, "DNS:localhost", "IP:127.0.0.1")
    info = folder / "site" / "sqe_policy_groups-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sqe-policy-groups\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "site" / "policy_groups.py").write_text(POLICY_ENGINE)
    text = (
        "[coordinator]\nproduction_mode = true\n"
        f'[coordinator.tls]\ncert_file = "{certificate}"\nkey_file = "{key}"\n'
        '[policy]\nengine = "groups"\ncache_ttl_secs = 5\n[policy.groups]\ngroup = "readers"\n'
        "[security]\nallow_unkeyed_hash_masks = true\nallow_shared_service_identity = true\n"
        "[rate_limit]\nenabled = true\nper_user_queries_per_minute = 6\nglobal_queries_per_minute = 10\n"
        "auth_attempts_per_minute = 3\nmetadata_per_user_per_minute = 2\n"
    )
    site = os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")])
    users = ("alice", "bob", "carol", "dan")
    with Limited(folder, text, *users, certificate=Path(certificate).read_bytes(), PYTHONPATH=site) as running:
        yield running


@contextmanager
def slow_statement(server: Limited, user: str) -> Iterator[tuple[str, list[Refused]]]:
    """A statement of the user runs; yields its session, and how it will have ended."""
    client, root = server.client(user), server.client("root")
    # What runs from here on is the fetching: a ticket that nobody fetches is just gone with its session.
    info = client.plan(SLOW)
    ended: list[Refused] = []

    def fetch() -> None:
        with pytest.raises(Refused) as caught:
            client.fetch(info)
        ended.append(caught.value)

    fetching = threading.Thread(target=fetch)
    began = time.monotonic()
    fetching.start()
    try:
        while True:
            rows = root.query("SHOW SESSIONS").to_pylist()
            if found := [row["session_id"] for row in rows if (row["user"], row["state"]) == (user, "RUNNING")]:
                break
            assert time.monotonic() - began < PROMPT_SECS
        yield found[0], ended
    finally:
        fetching.join(30)


def refused(client: RawClient, text: str) -> Refused:
    with pytest.raises(Refused) as caught:
        client.query(text)
    return caught.value


@pytest.mark.rule("OBS-8")
def test_production_mode_starts_with_what_it_demands(production: Limited) -> None:
    assert production.client("carol").query("SELECT 1 AS one").to_pylist() == [{"one": 1}]
    # Nothing in the file is without effect: what plugins take is theirs.
    assert not [entry for entry in production.log if "has no effect" in entry["message"]]


@pytest.mark.rule("LIM-1")
def test_statements_above_the_rate_are_refused_with_a_time_to_wait(production: Limited) -> None:
    alice = production.client("alice")
    for number in range(6):
        alice.query(f"SELECT {number} AS n")
    error = refused(alice, "SELECT 7 AS n")
    assert (error.status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
    assert "6 per minute are allowed for one user" in error.text
    assert 1 <= int(error.trailing["retry-after"]) <= 10
    # Another session of hers is hers; Bob has his own, up to what all have together.
    assert refused(production.client("alice"), "SELECT 8 AS n").status is grpc.StatusCode.RESOURCE_EXHAUSTED
    bob = production.client("bob")
    texts = []
    for number in range(6):
        try:
            bob.query(f"SELECT {number} AS n")
        except Refused as limit:
            texts.append(limit.text)
    assert texts
    assert all("10 per minute are allowed for all users together" in text for text in texts)


@pytest.mark.rule("LIM-1")
def test_metadata_above_the_rate_is_refused(production: Limited) -> None:
    dan = production.client("dan")
    for _ in range(2):
        dan.fetch(dan.info(sql.CommandGetCatalogs()))
    with pytest.raises(Refused) as caught:
        dan.fetch(dan.info(sql.CommandGetCatalogs()))
    assert "2 per minute" in caught.value.text
    # What the server says of itself is no metadata of anybody's.
    assert dan.info(sql.CommandGetSqlInfo()).endpoint


@pytest.mark.rule("AUTHN-7")
def test_sign_ins_above_the_rate_are_refused(production: Limited) -> None:
    guest = RawClient(production.channel()).signed_in(basic("mallory", "wrong"))
    for _ in range(3):
        assert refused(guest, "SELECT 1").status is grpc.StatusCode.UNAUTHENTICATED
    error = refused(guest, "SELECT 1")
    assert error.status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert int(error.trailing["retry-after"]) > 0


def test_a_statement_ends_at_its_time(limited: Limited) -> None:
    began = time.monotonic()
    error = refused(limited.client("alice"), SLOW)
    assert error.status is grpc.StatusCode.DEADLINE_EXCEEDED
    assert error.code == "QUERY_TIMEOUT"
    assert 5 < time.monotonic() - began < 5 + PROMPT_SECS


@pytest.mark.rule("LIM-8")
def test_a_result_has_a_most_of_rows(limited: Limited) -> None:
    alice = limited.client("alice")
    assert alice.query("SELECT x FROM range(10000) AS r(x)").num_rows == 10000
    error = refused(alice, "SELECT x FROM range(10001) AS r(x)")
    assert (error.status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
    assert "more than 10000 rows" in error.text


@pytest.mark.rule("LIM-8")
def test_a_result_has_a_most_of_bytes(limited: Limited) -> None:
    alice = limited.client("alice")
    assert alice.query("SELECT x, rpad('', 1000, 'y') AS t FROM range(10000) AS r(x)").num_rows == 10000
    error = refused(alice, "SELECT x, rpad('', 5000, 'y') AS t FROM range(10000) AS r(x)")
    assert error.status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "more than 33554432 bytes" in error.text


@pytest.mark.rule("LIM-3")
def test_a_statement_has_a_most_of_bytes(limited: Limited) -> None:
    error = refused(limited.client("alice"), "SELECT 1 AS one " + " " * 500)
    assert error.status is not grpc.StatusCode.INTERNAL
    assert "500 bytes" in error.text


@pytest.mark.rule("LIM-7")
def test_a_user_has_a_most_of_statements_at_once(limited: Limited) -> None:
    with slow_statement(limited, "bob"):
        error = refused(limited.client("bob"), "SELECT 1")
        assert error.status is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "Too many concurrent queries" in error.text
        assert limited.client("carol").query("SELECT 1 AS one").num_rows == 1


@pytest.mark.rule("TRI-9")
def test_an_administrator_ends_a_session_and_what_runs_in_it(limited: Limited) -> None:
    with slow_statement(limited, "bob") as (session, ended):
        assert {row["user"] for row in limited.client("alice").query("SHOW SESSIONS").to_pylist()} == {"alice"}
        limited.client("root").update(sql.CommandStatementUpdate(query=f"KILL SESSION '{session}'"))
    assert (ended[0].status, ended[0].code) == (grpc.StatusCode.UNAUTHENTICATED, "SESSION_EXPIRED")
    assert "ended by its user or by an administrator" in ended[0].text
    assert limited.client("bob").query("SELECT 1 AS one").num_rows == 1


def test_an_ingest_has_a_most_of_columns(limited: Limited) -> None:
    import pyarrow as pa

    command = sql.CommandStatementIngest(
        table="wide",
        catalog="lake",
        schema="default",
        table_definition_options=sql.CommandStatementIngest.TableDefinitionOptions(
            if_not_exist=sql.CommandStatementIngest.TableDefinitionOptions.TABLE_NOT_EXIST_OPTION_CREATE
        ),
    )
    with pytest.raises(Refused) as caught:
        limited.client("alice").put(command, pa.table({"a": [1], "b": [1], "c": [1]}))
    assert "3 columns; 2 are allowed" in caught.value.text


@pytest.mark.rule("SESS-6")
def test_a_session_ends_when_nobody_uses_it(limited: Limited) -> None:
    channel = limited.channel()
    login = RawClient(channel).signed_in(f"Bearer {limited.keys['carol']}")
    call = login.begin("Handshake", [b""])
    list(call)
    (token,) = [value for key, value in call.initial_metadata() or () if key == "authorization"]
    session = RawClient(channel).signed_in(token)
    assert session.query("SELECT 1 AS one").num_rows == 1
    time.sleep(10.5)
    error = refused(session, "SELECT 1")
    assert (error.status, error.code) == (grpc.StatusCode.UNAUTHENTICATED, "SESSION_EXPIRED")
    # Its key still opens another one.
    assert login.query("SELECT 1 AS one").num_rows == 1


@pytest.mark.rule("LIM-8")
def test_a_result_that_nobody_reads_is_ended(limited: Limited) -> None:
    carol = limited.client("carol")
    info = carol.plan("SELECT x, rpad('', 5000, 'y') AS t FROM range(6000) AS r(x)")
    call = carol.begin("DoGet", [info.endpoint[0].ticket.SerializeToString()])
    messages = iter(call)
    next(messages)
    began = time.monotonic()
    while limited.samples()[("sqe_active_queries", ())]:
        assert time.monotonic() - began < 5.5, "only its time ended it"
        time.sleep(0.1)
    assert time.monotonic() - began > 1
    with pytest.raises(grpc.RpcError):
        list(messages)
    assert carol.query("SELECT 1 AS one").num_rows == 1
