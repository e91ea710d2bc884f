"""Large results as segments: what clients read, and what nobody else gets."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lz4.block
import pyarrow as pa
import pytest
import trino.auth
import trino.dbapi
import zstandard
from trino_client import ALICE, Connection, HttpRefused

from sqe_core.spi import BasicCredential, Endpoint, NoCredential, ProtocolContext, Secret, StartupError, TlsFiles
from sqe_core.testing.fakes import FakeAnswer, FakeGateway
from sqe_core.testing.protocol import soon
from sqe_protocol_trino.config import SpoolingConfig, TrinoConfig
from sqe_protocol_trino.plugin import TrinoFactory
from sqe_protocol_trino.server import TrinoServer
from sqe_protocol_trino.spooling.opening import open_segments
from sqe_protocol_trino.spooling.writer import KEY_HEADER

ROWS = 60_000
TABLE = pa.table({"n": range(ROWS), "text": [f"zeile ü {n}" for n in range(ROWS)]})
SMALL = {"inline_bytes": 1 << 15, "first_segment_bytes": 1 << 17, "segment_bytes": 1 << 18, "min_free_bytes": 0}


class TwoUsers(FakeGateway):
    """A core that knows mallory, too."""

    def __init__(self) -> None:
        super().__init__()
        self.other = FakeGateway(username="mallory", password="mischief")
        self.other.answers = self.answers

    def authenticate(self, credential: Any, client: Any) -> Any:
        if isinstance(credential, BasicCredential) and credential.username == "mallory":
            return self.other.authenticate(credential, client)
        return super().authenticate(credential, client)


@pytest.fixture
def gateway() -> TwoUsers:
    gateway = TwoUsers()
    gateway.answers["large"] = TABLE
    gateway.answers["small"] = TABLE.slice(0, 100)
    gateway.answers["endless"] = FakeAnswer(table=TABLE, batches=endless)
    return gateway


def endless() -> Iterator[pa.RecordBatch]:
    while True:
        yield from TABLE.to_batches()
        time.sleep(0.05)


@pytest.fixture
def context(tmp_path: Path) -> ProtocolContext:
    return ProtocolContext(state_dir=tmp_path, stream_idle_secs=30)


@pytest.fixture
def spooling() -> dict[str, Any]:
    return {}


@pytest.fixture
def server(context: ProtocolContext, spooling: dict[str, Any]) -> Iterator[TrinoServer]:
    config = TrinoConfig(spooling=SpoolingConfig(**{**SMALL, **spooling}))
    made = TrinoFactory().create("trino", config, context)
    assert isinstance(made, TrinoServer)
    yield made
    made.stop(0)


@pytest.fixture
def endpoint(server: TrinoServer, gateway: TwoUsers) -> Endpoint:
    return server.start(gateway)


class Reader(Connection):
    """A client that asks for segments, and remembers what it was told of them."""

    def __init__(self, endpoint: Endpoint, encoding: str = "json+zstd", **more: Any) -> None:
        super().__init__(endpoint, **more)
        self.headers["X-Trino-Query-Data-Encoding"] = encoding

    def told(self, sql: str) -> Iterator[dict[str, Any]]:
        """Run a statement; each segment as it was told."""
        page = self.ask("POST", "/v1/statement", sql.encode())
        assert "segments" not in page.get("data", ()), "python's client does not look there"
        while True:
            if data := page.get("data"):
                yield from data["segments"]
            if self.next is None:
                return
            page = self.ask("GET", self.next)

    def fetch(self, segment: dict[str, Any], *, what: str = "uri", **headers: str) -> tuple[int, bytes]:
        """Fetch as Trino's clients do: without a login, with the headers that were told."""
        stranger = Connection(self.endpoint, NoCredential())
        stranger.headers = {name: values[0] for name, values in segment["headers"].items()}
        return stranger.send("GET", segment[what], **headers)[:2]

    def text(self, segment: dict[str, Any]) -> bytes:
        if segment["type"] == "inline":
            return base64.b64decode(segment["data"])
        status, body = self.fetch(segment)
        assert status == 200
        return body


def opened(data: bytes, metadata: dict[str, Any], encoding: str) -> list[Any]:
    assert len(data) == metadata["segmentSize"]
    if "uncompressedSize" in metadata:
        if encoding == "json+lz4":
            data = lz4.block.decompress(data, uncompressed_size=metadata["uncompressedSize"])
        else:
            data = zstandard.ZstdDecompressor().decompress(data)
        assert len(data) == metadata["uncompressedSize"]
    rows: list[Any] = json.loads(data)
    assert len(rows) == metadata["rowsCount"]
    return rows


def spooled(reader: Reader, sql: str = "large") -> list[dict[str, Any]]:
    """Run a statement to its end, and return its spooled segments."""
    return [segment for segment in reader.told(sql) if segment["type"] == "spooled"]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("encoding", ["json", "json+lz4", "json+zstd"])
def test_each_encoding_has_the_rows_in_order(endpoint: Endpoint, encoding: str) -> None:
    reader = Reader(endpoint, encoding)
    rows: list[Any] = []
    kinds = []
    for segment in reader.told("large"):
        kinds.append(segment["type"])
        assert segment["metadata"]["rowOffset"] == len(rows)
        rows += opened(reader.text(segment), segment["metadata"], encoding)
    assert rows == [[n, f"zeile ü {n}"] for n in range(ROWS)]
    assert kinds[0] == "inline", "the first rows are there at once"
    assert "spooled" in kinds
    page = next(page for page in reader.pages if page.get("data"))
    assert page["data"]["encoding"] == encoding
    assert page["data"]["metadata"] == {}, "Java's client wants it"


def test_the_first_encoding_that_is_known_is_taken(endpoint: Endpoint) -> None:
    reader = Reader(endpoint, "arrow+zstd, json+lz4, json")
    list(reader.told("large"))
    assert {page["data"]["encoding"] for page in reader.pages if page.get("data")} == {"json+lz4"}


@pytest.mark.parametrize(
    ("agent", "segments"),
    [
        ("Trino JDBC Driver/465", False),  # a private authority's certificate breaks its downloads
        ("Trino JDBC Driver/468", False),
        ("StatementClientV1/467", False),
        ("Trino JDBC Driver/469", True),
        ("Trino JDBC Driver/483", True),
        ("trino-python-client/0.340.0", True),
        ("Trino JDBC Driver/99999999999999", True),
    ],
)
def test_clients_that_cannot_fetch_segments_get_none(endpoint: Endpoint, agent: str, segments: bool) -> None:
    reader = Reader(endpoint)
    reader.headers["User-Agent"] = agent
    if segments:
        assert spooled(reader)
    else:
        assert len(list(reader.rows("large"))) == ROWS


def test_unknown_encodings_are_as_none(endpoint: Endpoint) -> None:
    reader = Reader(endpoint, "arrow")
    assert len(list(reader.rows("large"))) == ROWS


def test_small_results_come_in_pages(endpoint: Endpoint, tmp_path: Path) -> None:
    reader = Reader(endpoint)
    assert [row["n"] for row in reader.rows("small")] == list(range(100))
    assert not files(tmp_path)


def test_who_does_not_ask_gets_pages(endpoint: Endpoint, tmp_path: Path) -> None:
    assert len(list(Connection(endpoint).rows("large"))) == ROWS
    assert not files(tmp_path)


def test_acknowledged_segments_are_gone(endpoint: Endpoint, tmp_path: Path, server: TrinoServer) -> None:
    reader = Reader(endpoint)
    segments = spooled(reader)
    assert len(files(tmp_path)) == len(segments) > 1
    for segment in segments:
        assert reader.fetch(segment, what="ackUri")[0] == 200
    assert soon(lambda: not files(tmp_path))
    assert server._listener is not None
    assert soon(lambda: server._listener._segments.used == 0)
    assert reader.fetch(segments[0])[0] == 404, "it cannot be had again"
    assert reader.fetch(segments[0], what="ackUri")[0] == 404


def test_what_lies_on_the_disk_says_nothing(endpoint: Endpoint, tmp_path: Path) -> None:
    reader = Reader(endpoint, "json")
    segments = spooled(reader)
    found = files(tmp_path)
    assert found
    for path in found:
        assert b"zeile" not in path.read_bytes()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.name not in json.dumps(segments), "clients know no names of files"


@pytest.mark.rule("TRI-1")
def test_a_segment_needs_its_own_key(endpoint: Endpoint) -> None:
    reader = Reader(endpoint)
    first, second, *_ = spooled(reader)
    for key in ("", "A" * 44, second["headers"][KEY_HEADER][0], first["headers"][KEY_HEADER][0][:-2], "ü", "*" * 44):
        assert reader.fetch({**first, "headers": {KEY_HEADER: [key]}})[0] == 404, key
        assert reader.fetch({**first, "headers": {KEY_HEADER: [key]}}, what="ackUri")[0] == 404, key
    assert reader.fetch({**first, "headers": {}})[0] == 404
    # A login in place of the key is not enough: who has the session does not have to have the segment.
    assert Connection(endpoint).send("GET", first["uri"])[0] == 404
    answer = Connection(endpoint, NoCredential())
    assert answer.send("GET", first["uri"], **{KEY_HEADER: first["headers"][KEY_HEADER][0]})[0] == 200
    assert answer.answered["Server"] == "SQE"
    assert answer.answered["Cache-Control"] == "no-store"


@pytest.mark.parametrize("guess", ["", "x", "../../etc/passwd", "%2e%2e%2fx", "A" * 32, "a" * 4000])
def test_guessed_segments_are_not_there(endpoint: Endpoint, guess: str) -> None:
    reader = Reader(endpoint)
    first = spooled(reader)[0]
    base = first["uri"].rpartition("/")[0]
    assert reader.fetch({**first, "uri": f"{base}/{guess}"})[0] == 404


@pytest.mark.rule("TRI-3")
def test_another_user_cannot_have_or_delete_a_segment(endpoint: Endpoint) -> None:
    reader = Reader(endpoint)
    first = spooled(reader)[0]
    mallory = Connection(endpoint, BasicCredential(username="mallory", password=Secret("mischief")))
    key = {KEY_HEADER: first["headers"][KEY_HEADER][0]}
    for what in ("uri", "ackUri"):
        assert mallory.send("GET", first[what])[0] == 404
        # Even the key helps nobody who says to be somebody else.
        assert mallory.send("GET", first[what], **key)[0] == 404
    nobody = Connection(endpoint, BasicCredential(username="alice", password=Secret("wrong")))
    assert nobody.send("GET", first["uri"], **key)[0] == 401
    assert Connection(endpoint, ALICE).send("GET", first["uri"], **key)[0] == 200


@pytest.mark.rule("TRI-1")
def test_segments_end_with_the_session(endpoint: Endpoint, gateway: TwoUsers, tmp_path: Path) -> None:
    reader = Reader(endpoint)
    first, second, *_ = spooled(reader)
    assert reader.fetch(first)[0] == 200
    gateway.sessions[0].close()
    assert reader.fetch(second)[0] == 404
    assert soon(lambda: not files(tmp_path)), "all of them, with the first that was asked for"
    list(Reader(endpoint).rows("small"))
    assert reader.fetch(second)[0] == 404, "nor does a new session bring them back"


def test_segments_go_on_with_a_new_session_of_their_owner(endpoint: Endpoint, gateway: TwoUsers) -> None:
    reader = Reader(endpoint)
    page = reader.ask("POST", "/v1/statement", b"large")
    segments = []
    while reader.next is not None:
        page = reader.ask("GET", reader.next)
        segments += [each for each in page.get("data", {}).get("segments", ()) if each["type"] == "spooled"]
        if len(segments) == 1:
            gateway.sessions[-1].close()  # as when a token ends, and the client comes with the next one
    assert reader.fetch(segments[0])[0] == 200
    assert reader.fetch(segments[-1])[0] == 200


def test_cancelled_statements_leave_nothing(endpoint: Endpoint, tmp_path: Path) -> None:
    reader = Reader(endpoint)
    segments = reader.told("endless")
    first = next(each for each in segments if each["type"] == "spooled")
    assert reader.fetch(first)[0] == 200
    assert reader.send("DELETE", str(reader.next))[0] == 204
    assert soon(lambda: not files(tmp_path))
    assert reader.fetch(first)[0] == 404


def test_abandoned_statements_leave_nothing(gateway: TwoUsers, tmp_path: Path) -> None:
    context = ProtocolContext(state_dir=tmp_path, stream_idle_secs=1)
    server = TrinoFactory().create("trino", TrinoConfig(spooling=SpoolingConfig(**SMALL)), context)
    try:
        reader = Reader(server.start(gateway))
        next(each for each in reader.told("endless") if each["type"] == "spooled")
        assert files(tmp_path)
        assert soon(lambda: not files(tmp_path))
    finally:
        server.stop(0)


def test_who_fetches_segments_or_beats_has_not_abandoned(gateway: TwoUsers, tmp_path: Path) -> None:
    context = ProtocolContext(state_dir=tmp_path, stream_idle_secs=1)
    server = TrinoFactory().create("trino", TrinoConfig(spooling=SpoolingConfig(**SMALL)), context)
    try:
        reader = Reader(server.start(gateway))
        rest = reader.told("endless")
        first = next(each for each in rest if each["type"] == "spooled")
        for _ in range(4):
            time.sleep(0.4)
            assert reader.fetch(first)[0] == 200
        for _ in range(4):
            time.sleep(0.4)
            assert reader.send("HEAD", str(reader.next))[:2] == (200, b"")
        assert next(rest)
    finally:
        server.stop(0)


@pytest.mark.parametrize("spooling", [{"ttl_secs": 1}])
def test_segments_that_nobody_fetches_expire(endpoint: Endpoint, tmp_path: Path) -> None:
    first = spooled(Reader(endpoint))[0]
    assert files(tmp_path)
    assert soon(lambda: not files(tmp_path))
    assert Reader(endpoint).fetch(first)[0] == 404


@pytest.mark.parametrize(
    "spooling", [{"max_bytes": 300_000}, {"max_statement_bytes": 300_000}, {"min_free_bytes": 1 << 60}]
)
def test_without_room_rows_go_into_pages(endpoint: Endpoint, spooling: dict[str, Any], tmp_path: Path) -> None:
    reader = Reader(endpoint, "json")
    rows: list[Any] = []
    kinds = set()
    for segment in reader.told("large"):
        kinds.add(segment["type"])
        rows += opened(reader.text(segment), segment["metadata"], "json")
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 300_000
    assert [row[0] for row in rows] == list(range(ROWS))
    assert kinds == ({"inline"} if "min_free_bytes" in spooling else {"inline", "spooled"})


def test_a_disk_that_breaks_loses_no_rows(endpoint: Endpoint, server: TrinoServer, monkeypatch: Any) -> None:
    assert server._listener is not None
    written = []

    def full(name: str, frames: Iterator[bytes]) -> None:
        written.append(name)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server._listener._segments._storage, "write", full)
    reader = Reader(endpoint)
    rows = [row for each in reader.told("large") for row in opened(reader.text(each), each["metadata"], "json+zstd")]
    assert [row[0] for row in rows] == list(range(ROWS))
    assert written
    assert server._listener._segments.used == 0


def test_changed_files_are_not_handed_out(endpoint: Endpoint, tmp_path: Path) -> None:
    reader = Reader(endpoint, "json")
    segments = spooled(reader)
    for path in files(tmp_path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    for segment in segments:
        with pytest.raises(Exception, match=r"IncompleteRead|Connection"):
            assert reader.fetch(segment)[0] != 200


def test_a_link_in_place_of_a_segment_is_not_followed(endpoint: Endpoint, tmp_path: Path) -> None:
    reader = Reader(endpoint, "json")
    segments = spooled(reader)
    secret = tmp_path / "secret"
    secret.write_bytes(b"root:x:0:0")
    for path in files(tmp_path / "trino-segments"):
        path.unlink()
        path.symlink_to(secret)
    for segment in segments:
        assert reader.fetch(segment)[0] == 404
        reader.fetch(segment, what="ackUri")
    assert secret.exists()


def test_nothing_is_left_when_the_server_stops(server: TrinoServer, gateway: TwoUsers, tmp_path: Path) -> None:
    spooled(Reader(server.start(gateway)))
    assert files(tmp_path)
    server.stop(0)
    assert not files(tmp_path)
    assert not list((tmp_path / "trino-segments").iterdir())


def test_leftovers_go_at_start_and_those_of_others_stay(tmp_path: Path, gateway: TwoUsers) -> None:
    parent = tmp_path / "trino-segments"
    dead = parent / ("0" * 32)
    dead.mkdir(parents=True)
    (dead / "x").write_bytes(b"left")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_bytes(b"kept")
    (parent / ("1" * 32)).symlink_to(elsewhere)
    (parent / "notes").mkdir()
    context = ProtocolContext(state_dir=tmp_path)
    first = open_segments(SpoolingConfig(), context)
    assert first is not None
    spool = first.open(("a", "b"), Secret("t"))
    assert first.store(spool, b"rows") is not None
    second = open_segments(SpoolingConfig(), context)
    assert second is not None
    assert not dead.exists()
    assert (elsewhere / "kept").exists(), "a link is nobody's leftover"
    assert (parent / "notes").exists()
    assert first.used == 4 + 16
    assert len(files(parent)) == 1, "the other server lives"
    first.close()
    second.close()


def test_a_folder_that_others_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    context = ProtocolContext()
    with pytest.raises(StartupError, match="others must not write there"):
        open_segments(SpoolingConfig(location=str(tmp_path)), context)
    link = tmp_path / "link"
    (tmp_path / "real").mkdir(mode=0o700)
    link.symlink_to(tmp_path / "real")
    with pytest.raises(StartupError, match="Results cannot be spooled"):
        open_segments(SpoolingConfig(location=str(link)), context)


def test_without_a_state_folder_nothing_stays(gateway: TwoUsers, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server = TrinoFactory().create("trino", TrinoConfig(spooling=SpoolingConfig(**SMALL)), ProtocolContext())
    try:
        spooled(Reader(server.start(gateway)))
        assert files(tmp_path)
    finally:
        server.stop(0)
    assert not os.listdir(tmp_path)


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    context = ProtocolContext(state_dir=tmp_path)
    assert open_segments(SpoolingConfig(enabled=False), context) is None
    tls = TlsFiles(cert_file=tmp_path, key_file=tmp_path, ca_file=tmp_path)
    assert open_segments(SpoolingConfig(), ProtocolContext(tls=tls)) is None, "segments are fetched without certificate"


@pytest.mark.parametrize("spooling", [{"max_downloads": 1, "download_idle_secs": 1, "segment_bytes": 64 << 20}])
def test_who_does_not_read_keeps_nobody_waiting_for_long(endpoint: Endpoint, gateway: TwoUsers) -> None:
    wide = pa.record_batch({"text": [os.urandom(500).hex() for _ in range(20_000)]})
    gateway.answers["wide"] = FakeAnswer(table=pa.Table.from_batches([wide]), batches=lambda: iter([wide] * 4))
    reader = Reader(endpoint, "json")
    *_, last = spooled(reader, "wide")
    import http.client

    slow = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=30)
    slow.request("GET", last["uri"], headers={name: values[0] for name, values in last["headers"].items()})
    answer = slow.getresponse()
    began = time.monotonic()
    assert reader.fetch(last)[0] == 200
    assert time.monotonic() - began < 10
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        answer.read()
    slow.close()


def test_a_failing_statement_fails(endpoint: Endpoint, gateway: TwoUsers) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise RuntimeError("the engine is gone")

    gateway.answers["broken"] = FakeAnswer(table=TABLE, batches=batches)
    reader = Reader(endpoint)
    with pytest.raises(Exception, match="Internal error"):
        list(reader.told("broken"))


def test_a_plain_error_is_plain(endpoint: Endpoint) -> None:
    with pytest.raises(HttpRefused):
        Reader(endpoint).ask("GET", "/v1/spooled/other/x")


@pytest.mark.parametrize("encoding", ["json", "json+lz4", "json+zstd", None])
def test_python_reads_them(endpoint: Endpoint, encoding: str | None, tmp_path: Path) -> None:
    cursor = trino.dbapi.connect(
        host=endpoint.host,
        port=endpoint.port,
        user="alice",
        auth=trino.auth.BasicAuthentication("alice", "wonderland"),
        allow_insecure_auth=True,
        http_scheme="http",
        encoding=encoding,
    ).cursor()
    assert cursor.execute("small").fetchall() == [[n, f"zeile ü {n}"] for n in range(100)]
    assert cursor.execute("large").fetchall() == [[n, f"zeile ü {n}"] for n in range(ROWS)]
    assert soon(lambda: not files(tmp_path)), "it acknowledges what it read"
