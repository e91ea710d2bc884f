"""Record batches of somebody who may not: nothing is written, nothing is received, and nothing is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from governed import Govern, allow
from testbed.joined_engine import spooled

from sqe_core.bootstrap import EMBEDDED_CATALOG, EmbeddedSqe, Sqe
from sqe_core.engine.port import InlinedSpool, Replacement
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.query.ingest.rows import IngestLimits
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action, Decision, PolicyEnforcer, PolicyRequest, PolicyResponse
from sqe_core.spi.protocol import IngestMode, IngestRequest

WRITER = Identity(issuer="test", subject="writer", username="writer", provider="test", personal=False)
HIDDEN = "salary_canary"
DENIED = "vault_canary"
DENIED_AND_MISSING = "vault_nobody"
SEEN_ONLY = "ledger_canary"


class WriterEnforcer(PolicyEnforcer):
    """Denies `vault_canary` and a name of nothing, lets `ledger_canary` be read, and hides a column of `pay`."""

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(
            decisions=tuple(self._decision(access.resource.name, access.action) for access in request.accesses)
        )

    @staticmethod
    def _decision(name: object, action: Action) -> Decision:
        table = name.name if isinstance(name, ObjectName) else ""
        if table in (DENIED, DENIED_AND_MISSING) or (
            table == SEEN_ONLY and action not in (Action.SELECT, Action.DESCRIBE)
        ):
            return Decision.deny("a secret")
        return allow(hidden=frozenset({HIDDEN}) if table == "pay" else frozenset())


@dataclass
class Writer:
    sqe: Sqe
    session: Session
    owner: EmbeddedSqe

    def refusal(self, mode: IngestMode, name: str, table: pa.Table) -> SqeError:
        def batches() -> Iterator[pa.RecordBatch]:
            raise AssertionError("rows were asked for before the statement was judged")
            yield

        with pytest.raises(SqeError) as caught:
            self.sqe.service.ingest(self.session, IngestRequest(table=name, mode=mode), table.schema, batches())
        error = caught.value
        assert "ended before it was complete" not in error.message
        assert HIDDEN not in (error.hint or "")
        return error

    def count(self, name: str) -> int:
        return int(self.owner.execute(f"SELECT count(*) AS n FROM {name}").read_all().to_pylist()[0]["n"])


@pytest.fixture(scope="module")
def writer(sqe: EmbeddedSqe, govern: Govern) -> Writer:
    for sql in (
        f"CREATE TABLE pay (id integer, {HIDDEN} integer, name varchar)",
        f"CREATE TABLE {DENIED} (id integer)",
        f"CREATE TABLE {SEEN_ONLY} (id integer)",
        f"INSERT INTO {SEEN_ONLY} VALUES (1)",
    ):
        sqe.execute(sql).close()
    limits = QueryLimits(timeout_secs=60, ingest=IngestLimits(total_bytes=1 << 20))
    restricted = govern(WriterEnforcer(), identity=WRITER, limits=limits)
    return Writer(restricted.sqe, restricted.session, sqe)


IDS = pa.table({"id": pa.array([1, 2], pa.int32())})


@pytest.mark.rule("DML-1", "ERR-5", "ERR-7")
@pytest.mark.parametrize("mode", list(IngestMode))
def test_a_denied_table_is_like_a_missing_one(writer: Writer, mode: IngestMode) -> None:
    before = writer.count(DENIED)
    denied = writer.refusal(mode, DENIED, IDS)
    missing = writer.refusal(mode, DENIED_AND_MISSING, IDS)
    assert denied.code is missing.code
    assert denied.message.replace(DENIED, DENIED_AND_MISSING) == missing.message
    assert denied.hint == missing.hint
    assert writer.count(DENIED) == before
    if mode is IngestMode.APPEND:
        never = writer.refusal(mode, "xault_canary", IDS)
        assert (never.code, never.message.replace("xault_canary", DENIED)) == (denied.code, denied.message)


@pytest.mark.rule("DML-1")
@pytest.mark.parametrize("mode", list(IngestMode))
def test_who_may_only_read_is_told_so(writer: Writer, mode: IngestMode) -> None:
    before = writer.count(SEEN_ONLY)
    assert writer.refusal(mode, SEEN_ONLY, IDS).code in (ErrorCode.ACCESS_DENIED, ErrorCode.DUPLICATE_TABLE)
    assert writer.count(SEEN_ONLY) == before


@pytest.mark.rule("DML-2")
@pytest.mark.parametrize("mode", [IngestMode.CREATE, IngestMode.REPLACE])
def test_a_table_with_hidden_columns_is_not_replaced(writer: Writer, mode: IngestMode) -> None:
    for columns in ({"id": [1]}, {"id": [1], "name": ["eve"]}):
        error = writer.refusal(mode, "pay", pa.table(columns))
        assert HIDDEN not in error.message
    assert writer.count("pay") == 0


@pytest.mark.rule("DML-2")
@pytest.mark.parametrize("mode", [IngestMode.APPEND, IngestMode.CREATE_APPEND])
def test_rows_come_without_the_columns_that_are_hidden(writer: Writer, mode: IngestMode) -> None:
    rows = pa.table({"id": pa.array([1], pa.int32()), "name": ["eve"]})
    request = IngestRequest(table="pay", mode=mode)
    writer.sqe.service.ingest(writer.session, request, rows.schema, iter(rows.to_batches()))
    written = writer.owner.execute(f"SELECT id, {HIDDEN}, name FROM pay").read_all().to_pylist()
    assert written == [{"id": 1, HIDDEN: None, "name": "eve"}]
    writer.owner.execute("DELETE FROM pay").close()


@pytest.mark.rule("DML-2", "ERR-5")
def test_a_hidden_column_is_like_a_missing_one(writer: Writer) -> None:
    hidden = writer.refusal(IngestMode.APPEND, "pay", pa.table({HIDDEN: [1]}))
    missing = writer.refusal(IngestMode.APPEND, "pay", pa.table({"salary_canarx": [1]}))
    assert hidden.code is missing.code is ErrorCode.DUPLICATE_TABLE
    assert hidden.message.replace(HIDDEN, "salary_canarx") == missing.message
    assert hidden.hint == missing.hint


@pytest.mark.rule("FLT-7", "LIM-8")
def test_more_rows_than_allowed_are_not_written(writer: Writer, engine: SparkEngine) -> None:
    schema = pa.schema([("id", pa.int64())])
    batches = (pa.RecordBatch.from_pydict({"id": list(range(50_000))}, schema=schema) for _ in range(100))
    with pytest.raises(SqeError) as caught:
        writer.sqe.service.ingest(writer.session, IngestRequest(table="flood", mode=IngestMode.CREATE), schema, batches)
    assert caught.value.code is ErrorCode.RESOURCE_EXHAUSTED
    assert spooled(engine) == []
    assert writer.owner.execute("SHOW TABLES LIKE 'flood'").read_all().num_rows == 0


@pytest.mark.rule("NAME-6")
@pytest.mark.parametrize(
    "sql",
    [
        'SELECT * FROM "_sqe_i_{n}"',
        'INSERT INTO own SELECT id FROM "_sqe_i_{n}"',
        'WITH "_sqe_i_{n}" AS (SELECT 1 AS id) SELECT * FROM other."_sqe_i_{n}"',
        'CREATE TEMPORARY VIEW "_sqe_i_{n}" AS SELECT 1 AS id',
        'CREATE TABLE "_sqe_i_{n}" (id integer)',
    ],
)
def test_rows_of_a_client_have_no_name_for_others(writer: Writer, engine: SparkEngine, sql: str) -> None:
    """While rows wait in files, no other statement can name them, whatever it knows of the name."""
    writer.owner.execute("CREATE TABLE IF NOT EXISTS own (id integer)").close()
    other = writer.sqe.open_session(WRITER, catalog=EMBEDDED_CATALOG, protocol="test")
    refused: list[SqeError] = []

    def batches() -> Iterator[pa.RecordBatch]:
        yield from IDS.to_batches()
        (folder,) = spooled(engine)
        for session in (writer.session, other):
            for nonce in ("0" * 32, folder.name):
                with pytest.raises(SqeError) as caught:
                    writer.sqe.service.execute(session, sql.format(n=nonce)).close()
                refused.append(caught.value)

    request = IngestRequest(table="own", mode=IngestMode.APPEND)
    result = writer.sqe.service.ingest(writer.session, request, IDS.schema, batches())
    assert result.affected_rows == 2
    assert len(refused) == 4
    assert all(error.code is not ErrorCode.GENERIC_INTERNAL_ERROR for error in refused)
    writer.sqe.service.close_session(other)


@pytest.mark.rule("ENF-11")
def test_rows_that_a_rewrite_exchanged_do_not_run(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer.owner.execute("CREATE TABLE IF NOT EXISTS own (id integer)").close()
    session_type: Any = type(writer.session.engine_session())
    encode = session_type._encode
    before = writer.count("own")

    def other_rows(session: Any, replacement: Replacement) -> Any:
        request = encode(session, replacement)
        return request | {"token": "f" * 32} if isinstance(replacement, InlinedSpool) else request

    monkeypatch.setattr(session_type, "_encode", other_rows)
    with pytest.raises(SqeError, match="could not be secured"):
        writer.sqe.service.ingest(
            writer.session, IngestRequest(table="own", mode=IngestMode.APPEND), IDS.schema, iter(IDS.to_batches())
        )
    assert "did not bring" in caplog.text
    assert writer.count("own") == before


@pytest.mark.rule("ENF-13")
def test_rights_are_those_when_the_rows_are_there(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.owner.execute("CREATE TABLE revoked (id integer)").close()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from IDS.to_batches()
        monkeypatch.setitem(globals(), "DENIED", "revoked")

    with pytest.raises(SqeError) as caught:
        writer.sqe.service.ingest(
            writer.session, IngestRequest(table="revoked", mode=IngestMode.APPEND), IDS.schema, batches()
        )
    assert caught.value.code is ErrorCode.TABLE_NOT_FOUND
    monkeypatch.undo()
    assert writer.count("revoked") == 0


@pytest.mark.rule("OBS-3")
def test_history_holds_no_rows(writer: Writer) -> None:
    writer.owner.execute("CREATE TABLE IF NOT EXISTS own (id integer)").close()
    request = IngestRequest(table="own", mode=IngestMode.APPEND)
    secret = pa.table({"id": pa.array([31337], pa.int32())})
    result = writer.sqe.service.ingest(writer.session, request, secret.schema, iter(secret.to_batches()))
    entry = next(entry for entry in writer.sqe.history.entries() if entry.query_id == result.query_id)
    assert "31337" not in json.dumps(str(entry))
