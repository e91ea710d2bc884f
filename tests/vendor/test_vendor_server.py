"""One server with plugins of many vendors, as its file says: protocols, a catalog, policies, an observer, a sink."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest
from testbed.processes import free_ports

from acme_weekend import Day
from sqe_core.bootstrap.serving import serve
from sqe_core.config.loading import load
from sqe_core.server import Server
from sqe_core.testing.engine import FakeEngine, FakeEngineSession


class AnyMount(FakeEngineSession):
    """Whatever is mounted is the engine's one catalog in memory."""

    def mount(self, alias: str, properties: Any, **more: Any) -> None:
        super().mount(alias, {"fake.catalog": "lake"})


class InMemory(FakeEngine):
    def open_session(self) -> AnyMount:
        return AnyMount(self)


@dataclass
class Running:
    """A started server, and where its plugins write."""

    server: Server
    folder: Path
    wire: int
    statements: int

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(f"host=127.0.0.1 port={self.wire} user=ann password=x sslmode=disable", autocommit=True)


def started(folder: Path, closed: str) -> Running:
    wire, statements = free_ports(2)
    (folder / "sqe.toml").write_text(
        f"""
        [coordinator]
        flight_sql_port = 0
        [protocols.wire]
        port = {wire}
        [protocols.statements]
        port = {statements}
        page_rows = 10
        [catalogs.old]
        type = "metastore"
        file = "{folder / "names.db"}"
        warehouse = "{folder / "data"}"
        [policy]
        engine = ["grants", "weekend"]
        [policy.weekend]
        closed = ["{closed}"]
        [plugins.acme-chronicle]
        path = "{folder / "chronicle.jsonl"}"
        [[lineage.sinks]]
        type = "ledger"
        path = "{folder / "ledger.db"}"
        [metrics]
        prometheus_port = 0
        """
    )
    server = serve(load(folder / "sqe.toml", environ={"XDG_STATE_HOME": str(folder / "state")}), engine=InMemory())
    server.start()
    return Running(server, folder, wire, statements)


@pytest.fixture
def today() -> str:
    return str(get_args(Day)[datetime.now(UTC).weekday()])


@pytest.fixture
def running(tmp_path: Path, today: str) -> Iterator[Running]:
    other = next(day for day in get_args(Day) if day != today)
    running = started(tmp_path, other)
    yield running
    running.server.stop(5)


def test_two_protocols_of_vendors_serve_a_catalog_of_a_third(running: Running) -> None:
    from vendor.statements.test_statements import ALICE, Connection

    from sqe_core.spi import Endpoint

    with running.connect() as one:
        one.execute("CREATE TABLE t (id bigint)")
        one.execute("INSERT INTO t SELECT 7 AS id")
        assert one.execute("SELECT id FROM old.default.t").fetchall() == [(7,)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            one.execute("SELECT 1 FROM nowhere")
    other = Connection(Endpoint(protocol="statements", host="127.0.0.1", port=running.statements), ALICE)
    assert list(other.rows("SELECT id FROM t")) == [{"id": 7}]
    running.server.stop(5)
    lines = [json.loads(line) for line in (running.folder / "chronicle.jsonl").read_text().splitlines()]
    assert {line["phase"] for line in lines} >= {"received", "finished", "failed"}
    with closing(sqlite3.connect(running.folder / "ledger.db")) as ledger:
        assert {row[0] for row in ledger.execute("SELECT type FROM events")} >= {"START", "COMPLETE"}


def test_a_closed_day_is_closed_on_every_door(tmp_path: Path, today: str) -> None:
    running = started(tmp_path, today)
    try:
        with running.connect() as connection, pytest.raises(psycopg.Error):
            connection.execute("CREATE TABLE t AS SELECT 1 AS id")
    finally:
        running.server.stop(5)
