"""A session on a server: the real Flight server on a fake core, in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from testbed.clocks import wait_for
from testbed.making import each_ended

from sqe_core.cli import logs
from sqe_core.cli.arguments import ServerOptions
from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.remote.backend import RemoteBackend, open_remote
from sqe_core.cli.remote.client import FlightClient
from sqe_core.protocols.flight.server import FlightConfig, FlightServer
from sqe_core.query.run.result import StatementResult
from sqe_core.spi.auth import BasicCredential, BearerCredential, NoCredential
from sqe_core.spi.catalog import ObjectType
from sqe_core.spi.errors import (
    ErrorCode,
    ErrorKind,
    ExternalError,
    InternalError,
    ObjectNotFoundError,
    Position,
    QueryCancelledError,
    ResourcesError,
    SqeError,
    StartupError,
    UserError,
)
from sqe_core.spi.names import ObjectName
from sqe_core.spi.protocol import ProtocolContext, QueryProgress, StatementState, TableListing, TlsFiles
from sqe_core.sql.statement import StatementKind
from sqe_core.testing import FakeAnswer, FakeGateway
from sqe_http.testing import make_certificate

PASSWORD = {"SQE_PASSWORD": "wonderland"}

OpenSession = Callable[..., RemoteBackend]


class Server:
    """A Flight server that can be stopped and started anew on its port."""

    def __init__(self, gateway: FakeGateway, tls: TlsFiles | None = None) -> None:
        self.gateway = gateway
        self._tls = tls
        self.port = 0
        self._server: FlightServer | None = None

    def start(self) -> None:
        self._server = FlightServer(FlightConfig(), ProtocolContext(port=self.port, tls=self._tls))
        self.port = self._server.start(self.gateway).port

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(0)


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
def server(gateway: FakeGateway) -> Iterator[Server]:
    server = Server(gateway)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def tls_server(gateway: FakeGateway, tls_files: tuple[str, str]) -> Iterator[Server]:
    server = Server(gateway, TlsFiles(cert_file=Path(tls_files[0]), key_file=Path(tls_files[1])))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenSession]:
    monkeypatch.setattr(logs, "configure", lambda environ, file: None)

    def connect(server: Server, *, interactive: bool = False, **options: object) -> RemoteBackend:
        wanted = {"host": "127.0.0.1", "port": server.port, "user": "alice", **options}
        return open_remote(ServerOptions(**wanted), PASSWORD, interactive=interactive)

    yield from each_ended(connect)


@pytest.fixture
def session(server: Server, connect: OpenSession) -> RemoteBackend:
    return connect(server)


def in_background(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Run something in a thread; its outcome, or its error, comes into the list."""
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


# Statements


def test_rows(session: RemoteBackend, gateway: FakeGateway) -> None:
    table = pa.table(
        {
            "n": pa.array([1, None], pa.int64()),
            "text": pa.array(["ä", None]),
            "amount": pa.array(["1.50", None]).cast(pa.decimal128(10, 2)),
            "tags": pa.array([["a", None], None], pa.list_(pa.string())),
        }
    )
    gateway.answers["SELECT * FROM t"] = table
    with session.execute("SELECT * FROM t") as result:
        assert (result.kind, result.affected_rows) == (StatementKind.QUERY, None)
        assert result.schema == table.schema
        assert result.query_id == gateway.results[0].query_id
        assert result.read_all().equals(table)


def test_no_rows_keep_their_columns(session: RemoteBackend, gateway: FakeGateway) -> None:
    gateway.answers["SELECT 1 WHERE false"] = pa.table({"one": pa.array([], pa.int32())})
    assert session.execute("SELECT 1 WHERE false").read_all().schema == pa.schema([("one", pa.int32())])


def test_dictionaries(session: RemoteBackend, gateway: FakeGateway) -> None:
    gateway.answers["SELECT d"] = pa.table({"d": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert session.execute("SELECT d").read_all().column("d").to_pylist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("kind", "affected", "expected"),
    [("insert", 3, StatementKind.INSERT), ("create_table", None, StatementKind.CREATE_TABLE), ("delete", 0, None)],
)
def test_a_statement_without_rows_says_what_it_did(
    session: RemoteBackend, gateway: FakeGateway, kind: str, affected: int | None, expected: StatementKind | None
) -> None:
    gateway.answers["CHANGE"] = FakeAnswer(kind=kind, affected_rows=affected)
    with session.execute("CHANGE") as result:
        assert (result.kind, result.schema) == (expected or StatementKind(kind), None)
        assert result.affected_rows == affected
        assert list(result) == []
    assert len(gateway.statements) == 1


def test_a_change_is_told_with_what_is_to_be_noted(session: RemoteBackend, gateway: FakeGateway) -> None:
    gateway.answers["GRANT"] = FakeAnswer(kind="utility", warnings=("nobody has the role", "nor that one"))
    assert session.execute("GRANT").warnings == ["nobody has the role", "nor that one"]
    gateway.answers["GRANT"] = FakeAnswer(kind="utility")
    assert session.execute("GRANT").warnings == ()


def test_a_thousand_changes_leave_no_ticket_behind(session: RemoteBackend, gateway: FakeGateway) -> None:
    gateway.answers["CHANGE"] = FakeAnswer(kind="insert", affected_rows=1)
    for _ in range(1010):  # a session may hold 1000 tickets
        assert session.execute("CHANGE").affected_rows == 1


def test_a_big_result_is_not_read_before_it_is_wanted(session: RemoteBackend, gateway: FakeGateway) -> None:
    batch = pa.record_batch({"n": pa.array(range(125_000), pa.int64())})  # 1 MB
    made = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal made
        for _ in range(400):
            made += 1
            yield batch

    gateway.answers["SELECT big"] = FakeAnswer(table=pa.Table.from_batches([batch]), batches=batches)
    result = session.execute("SELECT big")
    rows = iter(result)
    assert next(rows).num_rows == batch.num_rows
    time.sleep(1)
    assert made < 100
    assert sum(each.num_rows for each in rows) == 399 * batch.num_rows


def test_a_reader_that_stops_early_ends_the_statement(session: RemoteBackend, gateway: FakeGateway) -> None:
    batch = pa.record_batch({"n": pa.array(range(125_000), pa.int64())})

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            yield batch

    gateway.answers["SELECT endless"] = FakeAnswer(table=pa.Table.from_batches([batch]), batches=batches)
    with session.execute("SELECT endless") as result:
        next(iter(result))
    wait_for(lambda: gateway.results[0].closed)
    assert session.execute("SELECT 1 AS one").read_all().num_rows == 1


# Errors


def fail_with(session: RemoteBackend, gateway: FakeGateway, error: SqeError) -> SqeError:
    gateway.answers["FAIL"] = error
    with pytest.raises(SqeError) as raised:
        session.execute("FAIL")
    return raised.value


def test_an_error_keeps_its_parts(session: RemoteBackend, gateway: FakeGateway) -> None:
    error = ObjectNotFoundError(
        "Table 'orderz' does not exist", hint='did you mean "orders"?', position=Position(3, 15)
    )
    error.query_id = "20260401_x"
    got = fail_with(session, gateway, error)
    assert (got.message, got.hint, got.position) == (error.message, error.hint, error.position)
    assert (got.kind, got.code, got.query_id) == (ErrorKind.USER, ErrorCode.TABLE_NOT_FOUND, "20260401_x")


@pytest.mark.parametrize(
    "error",
    [
        UserError("f(x) has no such argument (see the list)"),
        UserError("Bäh: 'ß' (x)", hint="schöner (y)"),
        ResourcesError("Too many concurrent queries"),
        ExternalError("The catalog does not answer", code=ErrorCode.CATALOG_UNAVAILABLE),
        ExternalError("The policy engine gave no answer", code=ErrorCode.EXECUTION_FAILED),
        InternalError("The server failed", code=ErrorCode.EXECUTION_FAILED),
        UserError("many\nlines", hint="h" * 2000),
    ],
)
def test_kinds_codes_and_brackets(session: RemoteBackend, gateway: FakeGateway, error: SqeError) -> None:
    got = fail_with(session, gateway, error)
    assert (got.kind, got.code, got.position) == (error.kind, error.code, None)
    if error.hint is not None and len(error.hint) > 1000:
        assert got.message == f"{error.message} ({error.hint})"  # too long for a header of its own
    else:
        assert (got.message, got.hint) == (error.message, error.hint)


def test_an_error_of_the_server_itself_is_not_ours(session: RemoteBackend) -> None:
    with pytest.raises(SqeError, match="The server failed") as raised:
        session.execute("nobody knows this text")
    assert raised.value.kind is ErrorKind.INTERNAL


def test_an_error_in_the_middle_of_the_rows(session: RemoteBackend, gateway: FakeGateway) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1, 2]})
        raise UserError("Division by zero", code=ErrorCode.DIVISION_BY_ZERO, position=Position(1, 8))

    gateway.answers["SELECT n"] = FakeAnswer(table=pa.table({"n": pa.array([], pa.int64())}), batches=batches)
    rows = iter(session.execute("SELECT n"))
    assert next(rows).num_rows == 2
    with pytest.raises(SqeError, match="Division by zero") as raised:
        next(rows)
    assert (raised.value.code, raised.value.position) == (ErrorCode.DIVISION_BY_ZERO, Position(1, 8))
    assert session.execute("SELECT 1 AS one").read_all().num_rows == 1


# Cancelling, progress


@pytest.mark.parametrize("ends", ["a query is cancelled", "a change is cancelled", "the session is closed"])
def test_what_waits_is_ended_on_the_server(session: RemoteBackend, gateway: FakeGateway, ends: str) -> None:
    change = FakeAnswer(kind="insert", waits=True)
    gateway.answers["slow"] = change if "change" in ends else FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    thread, outcome = in_background(lambda: session.execute("slow"))
    wait_for(lambda: bool(gateway.results))
    began = time.monotonic()
    session.close() if "closed" in ends else session.cancel()
    thread.join(10)
    assert isinstance(outcome[0], QueryCancelledError)
    assert time.monotonic() - began < 5
    wait_for(gateway.results[0].cancelled.is_set)
    if "closed" in ends:
        assert [one.closed for one in gateway.sessions] == [True]
        session.close()  # twice does no harm
    else:
        assert ("look whether" in str(outcome[0].hint)) == ("change" in ends)
        assert session.execute("SELECT 1 AS one").read_all().num_rows == 1


def test_cancelling_while_rows_come(session: RemoteBackend, gateway: FakeGateway) -> None:
    batch = pa.record_batch({"n": pa.array(range(1000), pa.int64())})

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            time.sleep(0.01)
            yield batch

    gateway.answers["SELECT endless"] = FakeAnswer(table=pa.Table.from_batches([batch]), batches=batches)
    result = session.execute("SELECT endless")
    rows = iter(result)
    next(rows)
    session.cancel()
    with pytest.raises(QueryCancelledError):
        for _ in rows:
            pass
    wait_for(lambda: gateway.results[0].closed)


def test_cancelling_nothing(session: RemoteBackend) -> None:
    session.cancel()
    session.execute("SELECT 1 AS one").read_all()
    session.cancel()
    assert session.execute("SELECT 1 AS one").read_all().num_rows == 1


def test_progress_comes_from_the_server(session: RemoteBackend, gateway: FakeGateway) -> None:
    told = QueryProgress(state=StatementState.RUNNING, tasks=10, tasks_done=4, tasks_active=2, rows=1234)
    gateway.answers["SELECT slow"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True, progress=told)
    thread, _ = in_background(lambda: session.execute("SELECT slow"))

    def tasks() -> tuple[int, int, int, int]:
        now = session.progress()
        return (now.tasks, now.tasks_done, now.tasks_active, now.rows) if now is not None else (0, 0, 0, 0)

    wait_for(lambda: tasks() == (10, 4, 2, 1234))
    session.cancel()
    thread.join(10)
    assert session.progress() is None


# The session


def test_the_current_names_follow_use(session: RemoteBackend, gateway: FakeGateway) -> None:
    assert session.current == ("iceberg", "default")
    gateway.answers["USE other.sales"] = FakeAnswer(kind="use", on_run=lambda one: one.use("other", ("a", "b")))
    session.execute("USE other.sales")
    assert session.current == ("other", "a.b")


def test_the_command_line_says_where_to_begin(gateway: FakeGateway, server: Server, connect: OpenSession) -> None:
    gateway.answers['USE "lake"."sales"'] = FakeAnswer(kind="use", on_run=lambda one: one.use("lake", ("sales",)))
    assert connect(server, catalog="Lake", schema="sales").current == ("lake", "sales")
    gateway.answers['USE "sales"'] = gateway.answers['USE "lake"."sales"']
    assert connect(server, schema="sales").current == ("lake", "sales")
    # A single name may be a schema of the current catalog: then the catalog was not meant.
    with pytest.raises(StartupError, match="add --schema"):
        connect(server, catalog="sales")
    gateway.answers['USE "nope"'] = UserError("Schema nope does not exist", hint="h")
    with pytest.raises(StartupError, match=r"Schema nope does not exist \(h\)"):
        connect(server, schema="nope")
    gateway.answers['USE "nope"'] = UserError("Schema lake.nope does not exist", code=ErrorCode.SCHEMA_NOT_FOUND)
    with pytest.raises(StartupError, match="Catalog nope does not exist"):
        connect(server, catalog="nope")
    with pytest.raises(UsageError, match="is no name"):
        connect(server, schema="a b")


def test_the_end_comes_though_the_server_hangs(session: RemoteBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(FlightClient, "action", lambda *args, **options: stuck.wait(60))
    monkeypatch.setattr("sqe_core.cli.remote.backend._END_SECS", 0.2)
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < 5
    stuck.set()


def test_names_for_completion(gateway: FakeGateway, server: Server, connect: OpenSession) -> None:
    def listing(schema: str, table: str, kind: ObjectType) -> TableListing:
        name = ObjectName(catalog="iceberg", namespace=(schema,), name=table)
        return TableListing(name=name, type=kind, columns=pa.schema([("id", pa.int64()), (f"of_{table}", pa.string())]))

    gateway.tables = [
        listing("default", "orders", ObjectType.TABLE),
        listing("default", "late", ObjectType.VIEW),
        listing("sales", "regions", ObjectType.TABLE),
    ]
    session = connect(server, interactive=True)
    wait_for(lambda: bool(session.completions().tables))
    names = session.completions()
    assert names.catalogs == ("iceberg",)
    assert names.schemas == {"iceberg": ("default",)}
    assert names.tables == {("iceberg", "default"): ("orders", "late"), ("iceberg", "sales"): ("regions",)}
    assert session.columns(("iceberg", "default", "orders")) == ("id", "of_orders")
    assert session.columns(("iceberg", "sales", "regions")) == ("id", "of_regions")
    assert session.columns(("iceberg", "default", "nothing")) == ()
    # What a statement makes is there soon after.
    gateway.tables.append(listing("default", "fresh", ObjectType.TABLE))
    gateway.answers["CREATE TABLE fresh (id bigint)"] = FakeAnswer(kind="create_table")
    session.execute("CREATE TABLE fresh (id bigint)")
    wait_for(lambda: "fresh" in session.completions().tables[("iceberg", "default")])


def test_name_of_the_server(session: RemoteBackend) -> None:
    assert session.server_name() == "SQE Coordinator 0"
    assert session.signed_in == "as alice"


# Signing in


def test_password_token_and_nobody(server: Server, gateway: FakeGateway, connect: OpenSession) -> None:
    connect(server)
    assert isinstance(gateway.logins[0][0], BasicCredential)
    connect(server, user=None, token=gateway.bearer.reveal()).execute("SELECT 1 AS one").close()
    handshake = [login for login in gateway.logins if login[0] == BearerCredential(token=gateway.bearer)]
    assert len(handshake) == 1, "later calls come with the session's token"
    with pytest.raises(StartupError, match="Authentication failed"):
        connect(server, user=None)
    assert isinstance(gateway.logins[-1][0], NoCredential)
    assert {client.source for _, client in gateway.logins[1:2]} == {"sqe-cli"}


def test_nobody_where_nobody_has_to_sign_in(connect: OpenSession) -> None:
    server = Server(FakeGateway(anonymous=True))
    server.start()
    try:
        assert connect(server, user=None).execute("SELECT 1 AS one").read_all().num_rows == 1
    finally:
        server.stop()


def test_a_refused_login_says_what_the_server_says(server: Server, connect: OpenSession) -> None:
    with pytest.raises(StartupError, match=rf"^127.0.0.1:{server.port}: Authentication failed$"):
        connect(server, user="mallory")


def test_a_script_ends_with_its_session(session: RemoteBackend, gateway: FakeGateway) -> None:
    gateway.sessions.clear()
    for _ in range(2):
        with pytest.raises(SqeError, match="session on the server has ended") as raised:
            session.execute("SELECT 1 AS one")
        assert raised.value.code is ErrorCode.SESSION_EXPIRED
    assert gateway.sessions == []


def test_a_change_that_is_done_does_not_fail_with_its_session(session: RemoteBackend, gateway: FakeGateway) -> None:
    gateway.answers["CHANGE"] = FakeAnswer(kind="insert", affected_rows=3, on_run=lambda one: gateway.sessions.clear())
    assert session.execute("CHANGE").affected_rows == 3
    with pytest.raises(SqeError, match="has ended"):
        session.execute("CHANGE")
    assert len(gateway.statements) == 1


def test_a_person_is_signed_in_again_where_he_was(server: Server, gateway: FakeGateway, connect: OpenSession) -> None:
    session = connect(server, interactive=True)
    for text in ("USE lake.sales", 'USE "lake"."sales"'):
        gateway.answers[text] = FakeAnswer(kind="use", on_run=lambda one: one.use("lake", ("sales",)))
    session.execute("USE lake.sales")
    gateway.sessions.clear()
    with pytest.raises(SqeError, match="has ended") as raised:
        session.execute("SELECT 1 AS one")
    assert "in lake.sales; settings and temporary views are gone" in str(raised.value.hint)
    assert gateway.statements[-1].sql == 'USE "lake"."sales"'
    assert session.execute("SELECT 1 AS one").read_all().num_rows == 1
    # A schema that is gone is not pretended to.
    gateway.answers['USE "lake"."sales"'] = UserError("Schema sales does not exist")
    gateway.sessions.clear()
    with pytest.raises(SqeError, match="has ended") as raised:
        session.execute("SELECT 1 AS one")
    assert "in iceberg.default;" in str(raised.value.hint)
    assert session.current == ("iceberg", "default")
    # When the password does not count any more, that is said.
    gateway._username = "bob"
    gateway.sessions.clear()
    with pytest.raises(SqeError, match="a new one cannot be had: Authentication failed"):
        session.execute("SELECT 1 AS one")


def test_a_server_that_goes_away_and_comes_back(server: Server, session: RemoteBackend) -> None:
    server.stop()
    with pytest.raises(ExternalError, match=r"127\.0\.0\.1:\d+ does not answer"):
        session.execute("SELECT 1 AS one")
    server.start()

    def answers() -> StatementResult | None:
        try:
            return session.execute("SELECT 1 AS one")
        except ExternalError:
            return None

    wait_for(lambda: answers() is not None)


def test_a_server_that_goes_away_in_the_middle(server: Server, session: RemoteBackend, gateway: FakeGateway) -> None:
    gateway.answers["INSERT slow"] = FakeAnswer(kind="insert", waits=True)
    thread, outcome = in_background(lambda: session.execute("INSERT slow"))
    wait_for(lambda: bool(gateway.results))
    server.stop()
    gateway.results[0].cancel()
    thread.join(10)
    assert isinstance(outcome[0], SqeError)
    assert not isinstance(outcome[0], InternalError)


# Where nothing listens, and TLS


def test_nothing_listens(server: Server, connect: OpenSession) -> None:
    server.stop()
    with pytest.raises(StartupError, match=rf"^cannot connect to 127.0.0.1:{server.port}: nothing listens there$"):
        connect(server)


def test_an_unknown_host(server: Server, connect: OpenSession) -> None:
    with pytest.raises(StartupError, match=r"the host 'nobody\.invalid' is not known"):
        connect(server, host="nobody.invalid")


def test_tls_with_the_authority(tls_server: Server, tls_files: tuple[str, str], connect: OpenSession) -> None:
    session = connect(tls_server, host="localhost", tls=True, ca_file=Path(tls_files[0]))
    assert session.execute("SELECT 1 AS one").read_all().num_rows == 1


def test_tls_with_an_unknown_authority(tls_server: Server, connect: OpenSession) -> None:
    with pytest.raises(StartupError, match="its certificate is not to be trusted: self-signed certificate"):
        connect(tls_server, host="localhost", tls=True)


@pytest.fixture
def strange_server(gateway: FakeGateway, tmp_path: Path) -> Iterator[Server]:
    """Its certificate is for another host."""
    cert, key = map(Path, make_certificate(tmp_path, "DNS:elsewhere.example", subject="cert"))
    server = Server(gateway, TlsFiles(cert_file=cert, key_file=key))
    server.start()
    yield server
    server.stop()


def test_tls_with_a_certificate_for_another_host(strange_server: Server, tmp_path: Path, connect: OpenSession) -> None:
    with pytest.raises(StartupError, match="certificate is not valid for 'localhost'") as raised:
        connect(strange_server, host="localhost", tls=True, ca_file=tmp_path / "cert.pem")
    assert "--tls-ca" not in raised.value.message


def test_tls_without_a_look(strange_server: Server, gateway: FakeGateway, connect: OpenSession) -> None:
    session = connect(strange_server, tls=True, check_certificate=False)
    table = pa.table({"n": pa.array(range(500_000), pa.int64())})
    gateway.answers["SELECT big"] = table
    assert session.execute("SELECT big").read_all().equals(table)
    assert all(client.secure for _, client in gateway.logins)
    strange_server.stop()
    with pytest.raises(ExternalError, match="does not answer"):
        session.execute("SELECT 1 AS one")


def test_tls_where_there_is_none_and_none_where_there_is(
    server: Server, tls_server: Server, connect: OpenSession
) -> None:
    with pytest.raises(StartupError, match="it does not speak TLS; leave out --tls"):
        connect(server, tls=True)
    with pytest.raises(StartupError, match="it wants an encrypted connection; add --tls"):
        connect(tls_server)


def test_an_authority_that_is_none(server: Server, connect: OpenSession, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with pytest.raises(UsageError, match="No such file"):
        connect(server, tls=True, ca_file=file)
    file.write_text("nothing")
    with pytest.raises(UsageError, match="it holds no certificate"):
        connect(server, tls=True, ca_file=file)


def test_a_certificate_of_the_client(gateway: FakeGateway, tls_files: tuple[str, str], connect: OpenSession) -> None:
    cert, key = map(Path, tls_files)
    server = Server(gateway, TlsFiles(cert_file=cert, key_file=key, ca_file=cert))
    server.start()
    try:
        for how in ({"ca_file": cert}, {"check_certificate": False}):
            session = connect(server, host="localhost", tls=True, cert_file=cert, key_file=key, **how)
            assert session.execute("SELECT 1 AS one").read_all().num_rows == 1
        with pytest.raises(StartupError, match="want a client certificate; --tls-cert shows one"):
            connect(server, host="localhost", tls=True, ca_file=cert)
        for wrong in ({"cert_file": cert}, {"cert_file": key, "key_file": key}):
            with pytest.raises(UsageError, match="no certificate with its private key"):
                connect(server, host="localhost", tls=True, **wrong)
        with pytest.raises(UsageError, match="No such file"):
            connect(server, host="localhost", check_certificate=False, tls=True, cert_file=cert.with_name("no.pem"))
    finally:
        server.stop()
