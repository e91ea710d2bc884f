"""Sessions of Trino's clients: their properties, time zones and transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from handler_lake import ALICE, BOB, ROOT

from sqe_core.engine.port import TIME_ZONE
from sqe_core.query.judge.judge import Judge
from sqe_core.session import transactions
from sqe_core.session.session import SessionState
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.identity import Identity

if TYPE_CHECKING:
    from conftest import Trino


class Client:
    """A client that keeps its state itself, and sends it with each statement."""

    def __init__(self, trino: Trino, who: Identity) -> None:
        self.trino, self.who = trino, who
        self.state = SessionState(catalog="lake", schema=("default",))

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        seen = StatementSession(self.trino.lake.session(self.who), kept=self.state)
        try:
            return self.trino.ask(self.who, sql, at=seen)[1]
        finally:
            self.state = seen.state()

    def refusal(self, sql: str) -> ErrorCode:
        with pytest.raises(SqeError) as caught:
            self.run(sql)
        return caught.value.code


@pytest.fixture
def client(trino: Trino) -> Client:
    return Client(trino, ALICE)


def test_properties_that_mean_something(client: Client) -> None:
    client.run("SET SESSION query_max_execution_time = '5m'")
    client.run("SET SESSION lake.compression_codec = 'SNAPPY'")
    client.run("SET SESSION time_zone_id = 'europe/amsterdam'")
    shown = {row[0]: row[1] for row in client.run("SHOW SESSION")}
    assert shown["query_max_run_time"] == "5m"
    assert shown["iceberg.compression_codec"] == "snappy"
    assert shown["time_zone"] == "Europe/Amsterdam"
    client.run("RESET SESSION lake.compression_codec")
    assert client.state.properties["iceberg.compression_codec"] == "zstd"


@pytest.mark.parametrize(
    "name",
    ["nosuch", "lake.nosuch", "nocatalog.compression_codec", "join_distribution_type", "lake.orc_max_buffer_size"],
)
def test_properties_that_mean_nothing(client: Client, name: str) -> None:
    assert client.refusal(f"SET SESSION {name} = 'x'") is ErrorCode.INVALID_SESSION_PROPERTY
    assert client.refusal(f"RESET SESSION {name}") is ErrorCode.INVALID_SESSION_PROPERTY


def test_the_reason_is_told(client: Client) -> None:
    error = client.trino.refusal(ALICE, "SET SESSION join_distribution_type = 'BROADCAST'")
    assert error.message == (
        "Session property join_distribution_type has no meaning here: the engine plans queries by itself"
    )


@pytest.mark.rule("ERR-5")
def test_a_hidden_catalog_has_no_properties(trino: Trino, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqe_core.catalog.visible import VisibleCatalogs

    told = trino.refusal(BOB, "SET SESSION nothing.compression_codec = 'ZSTD'").message
    monkeypatch.setattr(VisibleCatalogs, "shows", lambda self, mount, namespace=(): mount.name != "other")
    hidden = trino.refusal(BOB, "SET SESSION other.compression_codec = 'ZSTD'").message
    assert hidden == told.replace("nothing", "other")


ZONES = {
    "SET TIME ZONE 'Europe/Amsterdam'": "Europe/Amsterdam",
    "SET TIME ZONE 'europe/amsterdam'": "Europe/Amsterdam",
    "SET TIME ZONE '+02:00'": "+02:00",
    "SET TIME ZONE -3": "-03:00",
    "SET TIME ZONE INTERVAL '2' HOUR": "+02:00",
    "SET TIME ZONE INTERVAL -'05:30' HOUR TO MINUTE": "-05:30",
    "SET TIME ZONE 'GMT'": "UTC",
    "SET TIME ZONE LOCAL": "Asia/Tokyo",
}


@pytest.mark.parametrize("sql", ZONES)
def test_time_zones(client: Client, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[str] = []
    made = Judge._settings

    def noting(judge: Judge, *arguments: Any) -> Any:
        found = made(judge, *arguments)
        settings.append(found[TIME_ZONE])
        return found

    monkeypatch.setattr(Judge, "_settings", noting)
    client.state = replace(client.state, zone="Asia/Tokyo")
    client.run("SET TIME ZONE 'America/New_York'")
    client.run(sql)
    client.run("SELECT id FROM people")
    assert settings == [ZONES[sql]]


@pytest.mark.parametrize("zone", ["'Nowhere/Land'", "'+15:00'", "'+01:75'", "'Factory'", "''", "'../etc'", "15"])
def test_zones_that_are_none(client: Client, zone: str) -> None:
    assert client.refusal(f"SET TIME ZONE {zone}") is ErrorCode.NOT_SUPPORTED


def test_a_path_is_told_back(client: Client) -> None:
    client.run('SET PATH lake.default, "other"')
    assert client.state.path == 'lake.default, "other"'


def test_a_transaction_reads(client: Client) -> None:
    client.run("START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE")
    assert client.state.transaction
    assert client.run("SELECT id FROM people") == [(1,), (2,)]
    client.run("SET SESSION query_max_run_time = '1m'")
    client.run("PREPARE p FROM SELECT 1 AS one")
    client.run("USE other.default")
    assert client.run("SHOW TABLES FROM lake.hr") == [("pay",)]
    client.run("COMMIT WORK")
    assert client.state.transaction is None


WRITES = [
    "INSERT INTO people SELECT 3 AS id, 'cy' AS name, 'Bonn' AS city",
    "DELETE FROM people WHERE id = 1",
    "CREATE TABLE more AS SELECT id FROM people",
    "TRUNCATE TABLE people",
    "DROP TABLE people",
    "CREATE SCHEMA s",
    "CREATE VIEW v AS SELECT id FROM people",
    "EXECUTE IMMEDIATE 'DROP TABLE people'",
    "CREATE ROLE r",
    "GRANT SELECT ON people TO USER bob",
]


@pytest.mark.parametrize("sql", WRITES)
def test_a_transaction_writes_nothing(trino: Trino, sql: str) -> None:
    for mode, code in (
        ("READ WRITE", ErrorCode.AUTOCOMMIT_WRITE_CONFLICT),
        ("READ ONLY", ErrorCode.READ_ONLY_VIOLATION),
    ):
        client = Client(trino, ROOT)
        client.run(f"START TRANSACTION {mode}")
        assert client.refusal(sql) is code
        client.run("ROLLBACK")
        assert client.run("SELECT id FROM people") == [(1,), (2,)]
    assert ("default",) in trino.rows(ROOT, "SHOW SCHEMAS")


def test_transactions_that_are_not_there(trino: Trino, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for sql in ("COMMIT", "ROLLBACK"):
        assert client.refusal(sql) is ErrorCode.NOT_IN_TRANSACTION
    client.run("START TRANSACTION")
    mine = client.state
    other = Client(trino, BOB)
    foreign = []
    for id in (mine.transaction, "made-up", ""):
        other.state = replace(other.state, transaction=id)
        foreign.append(other.refusal("SELECT 1 AS one"))
    assert foreign == [ErrorCode.UNKNOWN_TRANSACTION] * 3
    assert client.refusal("START TRANSACTION") is ErrorCode.NOT_SUPPORTED
    monkeypatch.setattr(transactions, "_IDLE_SECS", -1.0)
    assert client.refusal("SELECT 1 AS one") is ErrorCode.UNKNOWN_TRANSACTION


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_levels_that_would_not_be_true(client: Client, level: str) -> None:
    assert client.refusal(f"START TRANSACTION ISOLATION LEVEL {level}") is ErrorCode.NOT_SUPPORTED


@pytest.mark.rule("LIM-1")
def test_transactions_are_bounded(client: Client) -> None:
    for _ in range(100):
        client.run("START TRANSACTION")
        client.state = replace(client.state, transaction=None)
    assert client.refusal("START TRANSACTION") is ErrorCode.RESOURCE_EXHAUSTED


def test_a_session_of_the_server_has_no_transaction(trino: Trino) -> None:
    for sql in ("START TRANSACTION", "COMMIT", "ROLLBACK", "BEGIN"):
        trino.rows(ALICE, sql)
    trino.rows(ALICE, "CREATE SCHEMA made")
