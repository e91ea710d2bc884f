"""ATTACH and DETACH with the real engine: catalogs side by side, gone and back, and other people's sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.users import ROOT, Users, granted, refusal, rows

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.catalog.attaching import AttachRules
from sqe_core.catalog.local_places import LocalPlaces
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.errors import ErrorCode
from sqe_core.testing import make_identity

ALICE = make_identity("alice", roles=["analyst"])
BOB = make_identity("bob")
CANARY = "kanarienvogel7"


@pytest.fixture(scope="module")
def hadoop(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables, as Spark itself writes them."""
    folder = tmp_path_factory.mktemp("hadoop")
    session = engine.open_session()
    session.mount("_sqe_c_maker", {"type": "hadoop", "warehouse": f"file://{folder}"})
    session.spark._jsparkSession.sql(  # type: ignore[attr-defined]
        "CREATE TABLE _sqe_c_maker.sales.orders USING iceberg AS SELECT 1 AS id, 10 AS amount UNION ALL SELECT 2, 20"
    )
    session.close()
    return folder


def test_catalogs_of_three_kinds_in_one_query(sqe: EmbeddedSqe, hadoop: Path, tmp_path: Path) -> None:
    rows(sqe, "CREATE TABLE home AS SELECT 1 AS id, 'ann' AS name UNION ALL SELECT 2, 'bob'")
    rows(sqe, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
    rows(sqe, f"ATTACH '{hadoop}' AS sales_files (TYPE hadoop)")
    rows(sqe, f"ATTACH 'sqlite:{tmp_path}/more.db' AS more (TYPE jdbc, WAREHOUSE '{tmp_path}/more')")
    assert rows(sqe, "SHOW CATALOGS") == [("guest",), ("iceberg",), ("more",), ("sales_files",)]
    assert rows(sqe, "SHOW SCHEMAS FROM sales_files") == [("information_schema",), ("sales",)]
    rows(sqe, "CREATE TABLE guest.default.rates AS SELECT 1 AS id, 0.5e0 AS rate UNION ALL SELECT 2, 0.25e0")
    rows(sqe, "CREATE SCHEMA more.s")
    rows(sqe, "CREATE TABLE more.s.t AS SELECT 2 AS id")
    joined = """
        SELECT name, amount * rate FROM home JOIN sales_files.sales.orders USING (id)
        JOIN guest.default.rates USING (id) JOIN more.s.t USING (id)"""
    assert rows(sqe, joined) == [("bob", 5.0)]
    assert refusal(sqe, "INSERT INTO sales_files.sales.orders VALUES (3, 30)").code is ErrorCode.NOT_SUPPORTED
    rows(sqe, "INSERT INTO guest.default.rates SELECT id, 1.0e0 FROM sales_files.sales.orders")

    rows(sqe, "DETACH guest")
    missing = refusal(sqe, joined)
    assert missing.code is ErrorCode.TABLE_NOT_FOUND
    assert "guest" in missing.message
    rows(sqe, f"ATTACH '{tmp_path}/guest' AS again (TYPE sqlite)")
    assert rows(sqe, "SELECT count(*) FROM again.default.rates") == [(4,)]
    # The same name may mean another catalog.
    rows(sqe, f"ATTACH '{tmp_path}/other' AS guest (TYPE sqlite)")
    assert refusal(sqe, "SELECT * FROM guest.default.rates").code is ErrorCode.TABLE_NOT_FOUND
    rows(sqe, "DETACH again")
    rows(sqe, f"ATTACH OR REPLACE '{tmp_path}/guest' AS guest (TYPE sqlite)")
    assert rows(sqe, "SELECT count(*) FROM guest.default.rates") == [(4,)]
    for name in ("guest", "more", "sales_files"):
        rows(sqe, f"DETACH {name}")
    assert rows(sqe, "SHOW CATALOGS") == [("iceberg",)]


@pytest.mark.rule("SESS-7")
def test_nothing_of_a_detached_catalog_stays_in_the_engine(sqe: EmbeddedSqe, tmp_path: Path) -> None:
    rows(sqe, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
    rows(sqe, "CREATE TABLE guest.default.t AS SELECT 1 AS a")
    session: Any = sqe.session.engine_session()
    assert str(tmp_path) in "".join(
        map(str, session.spark._jsparkSession.conf().getAll().values().toSeq().mkString(" "))
    )
    rows(sqe, "DETACH guest")
    assert str(tmp_path) not in "".join(
        map(str, session.spark._jsparkSession.conf().getAll().values().toSeq().mkString(" "))
    )


def test_a_result_that_is_being_read_goes_on(sqe: EmbeddedSqe, tmp_path: Path) -> None:
    rows(sqe, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
    rows(sqe, "CREATE TABLE guest.default.t AS SELECT * FROM UNNEST(sequence(1, 200000)) AS u(n)")
    batches = iter(sqe.execute("SELECT n FROM guest.default.t"))
    read = next(batches).num_rows
    rows(sqe, "DETACH guest")
    assert refusal(sqe, "SELECT 1 FROM guest.default.t").code is ErrorCode.TABLE_NOT_FOUND
    assert read + sum(batch.num_rows for batch in batches) == 200000


def test_what_does_not_answer_leaves_nothing(sqe: EmbeddedSqe, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, " * 100)
    error = refusal(sqe, f"ATTACH 'sqlite:{tmp_path}/text.db' AS x (TYPE jdbc, WAREHOUSE '{tmp_path}')")
    assert "does not answer" in error.message
    assert "_sqe_c_" not in error.message
    rows(sqe, f"CREATE SECRET pg (TYPE basic, USERNAME 'me', PASSWORD '{CANARY}')")
    error = refusal(sqe, f"ATTACH 'postgresql://127.0.0.1:1/db' AS x (TYPE jdbc, WAREHOUSE '{tmp_path}', SECRET pg)")
    assert error.message == "The engine runs without the jars of postgresql, which this catalog needs"
    rows(sqe, "DROP SECRET pg")
    assert rows(sqe, "SHOW CATALOGS") == [("iceberg",)]
    assert set(sqe.session.catalog_names().values()) <= {"iceberg"}


@pytest.fixture
def lake(engine: SparkEngine, tmp_path: Path) -> Iterator[Users]:
    """A server's SQE, with grants."""
    rules = AttachRules(factory_of=PluginManager().catalog, places=LocalPlaces())
    lake = Users(granted(engine, tmp_path / "lake", attach=rules))
    yield lake
    lake.close()


@pytest.mark.rule("POL-9")
def test_policies_hold_on_what_is_attached(lake: Users, tmp_path: Path) -> None:
    lake.run(ROOT, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
    lake.run(ROOT, "CREATE TABLE guest.default.people AS SELECT 1 AS id, 'ann' AS name UNION ALL SELECT 2, 'bob'")
    # Nobody has granted anything: the catalog decides, for everybody who is connected.
    assert lake.run(ALICE, "SELECT count(*) FROM guest.default.people") == [(2,)]
    lake.run(ROOT, "GRANT SELECT ON guest.default.people TO ROLE analyst ROWS WHERE (id = 1)")
    assert lake.run(ALICE, "SELECT name FROM guest.default.people") == [("ann",)]
    assert lake.refusal(BOB, "SELECT name FROM guest.default.people").code is ErrorCode.TABLE_NOT_FOUND
    lake.run(ROOT, "DETACH guest")
    for who in (ALICE, BOB):
        assert lake.refusal(who, "SELECT name FROM guest.default.people").code is ErrorCode.TABLE_NOT_FOUND
    # Grants belong to names, as everywhere: they are there again with the name, and were not gone meanwhile.
    lake.run(ROOT, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
    assert lake.run(ALICE, "SELECT name FROM guest.default.people") == [("ann",)]
    assert lake.refusal(BOB, "SELECT name FROM guest.default.people").code is ErrorCode.TABLE_NOT_FOUND


def test_policies_are_not_walked_around(lake: Users, tmp_path: Path) -> None:
    lake.run(ROOT, "CREATE TABLE people AS SELECT 1 AS id")
    for sql in (
        f"ATTACH '{tmp_path}/lake' AS twin (TYPE sqlite)",
        f"ATTACH 'sqlite:{tmp_path}/lake/sqe.db' AS twin (TYPE jdbc, WAREHOUSE 's3://b/w')",
        f"ATTACH '{tmp_path}/lake/warehouse' AS twin (TYPE hadoop)",
    ):
        assert lake.refusal(ROOT, sql).code is ErrorCode.ACCESS_DENIED
        assert lake.refusal(ALICE, sql).message == "You may not attach catalogs"
    error = lake.refusal(ROOT, f"ATTACH '{tmp_path}/nothing' AS x (TYPE hadoop)")
    assert error.message == "There is no catalog of this type at this location, or it does not answer"


@pytest.mark.rule("POL-9")
def test_a_catalog_that_is_replaced_while_a_statement_is_judged(
    lake: Users, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables were found in one catalog, and would be judged as those of another."""
    lake.run(ROOT, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
    lake.run(ROOT, "CREATE TABLE guest.default.t AS SELECT 1 AS a")
    authorizer: Any = lake.sqe.service._parts.authorizer
    decide = authorizer.decide

    def late(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(authorizer, "decide", decide)
        lake.run(ROOT, f"ATTACH OR REPLACE '{tmp_path}/other' AS guest (TYPE sqlite)")
        return decide(*arguments, **more)

    lake.run(ALICE, "SELECT a FROM guest.default.t")
    monkeypatch.setattr(authorizer, "decide", late)
    assert lake.refusal(ALICE, "SELECT a FROM guest.default.t").code is ErrorCode.CATALOG_NOT_FOUND
