"""SQLAlchemy 2 with the dialect of trino-python-client, and what Superset asks through it."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pandas
import pytest
import sqlalchemy as sa
from testbed.clocks import wait_for
from trino.sqlalchemy.datatype import MAP, ROW

COLUMNS = (
    "id bigint NOT NULL COMMENT 'the key', name varchar, price decimal(10,2), day date, at timestamp(6), "
    "zoned timestamp(6) with time zone, ok boolean, raw varbinary, ratio double, some array(integer), "
    "named map(varchar, integer), both row(a integer, b varchar)"
)


@pytest.fixture
def alchemy(tls_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[sa.Engine]:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    address = f"trino://etl:{tls_server.keys['etl']}@localhost:{tls_server.trino_port}/iceberg/default"
    arguments = {"http_scheme": "https", "verify": str(tls_server.authority)}
    made = sa.create_engine(address, connect_args=arguments)
    yield made
    made.dispose()


@pytest.fixture
def run(alchemy: sa.Engine) -> Callable[[str], list[Any]]:
    def answered(sql: str) -> list[Any]:
        with alchemy.connect() as connection:
            result = connection.execute(sa.text(sql))
            return list(result.all()) if result.returns_rows else []

    return answered


def test_tables_rows_and_expressions(alchemy: sa.Engine, table: str) -> None:
    people = sa.Table(
        table,
        sa.MetaData(),
        sa.Column("id", sa.BigInteger),
        sa.Column("name", sa.String, comment="who"),
        sa.Column("at", sa.DateTime),
        sa.Column("day", sa.Date),
        sa.Column("price", sa.Numeric(10, 2)),
        sa.Column("ok", sa.Boolean),
        sa.Column("raw", sa.LargeBinary),
        sa.Column("ratio", sa.Double),
        comment="people",
    )
    at = datetime.datetime(2026, 1, 1, 2, 3, 4, 5)
    first = (1, "o'neil ü", at, at.date(), Decimal("1.25"), True, b"\0\xff", 0.5)
    names = [column.name for column in people.columns]
    with alchemy.begin() as connection:
        people.create(connection)
        connection.execute(people.insert(), [dict(zip(names, first, strict=True)), {**dict.fromkeys(names), "id": 2}])
        assert connection.execute(people.insert().values([{"id": 3}, {"id": 4}])).rowcount == 2
        query = sa.select(people).where(people.c.id < 3).order_by(people.c.id).limit(10)
        assert connection.execute(query).all() == [first, (2, *[None] * 7)]
        assert connection.execute(query.offset(1)).scalars().all() == [2]
        by_parts = sa.select(sa.func.count(), sa.func.max(people.c.price)).where(people.c.name.like("o''%"))
        assert connection.execute(by_parts).one() == (0, None)
        counted = sa.select(sa.func.year(people.c.at), sa.func.count()).group_by(sa.func.year(people.c.at))
        assert sorted(connection.execute(counted).all(), key=str) == [(2026, 1), (None, 3)]
        assert connection.execute(people.update().where(people.c.id > 1).values(name="eve")).rowcount == 3
        asked = sa.text(f"SELECT name FROM {table} WHERE id = :id")
        assert connection.execute(asked, {"id": 2}).scalar_one() == "eve"
        assert connection.execute(people.delete()).rowcount == 4
        people.drop(connection)
        assert not sa.inspect(connection).has_table(table)


def test_reflection(alchemy: sa.Engine, run: Callable[[str], list[Any]], table: str) -> None:
    run(f"CREATE TABLE {table} ({COLUMNS}) COMMENT 'a table'")
    run(f"CREATE VIEW {table}_view AS SELECT id, name FROM {table}")
    inspector = sa.inspect(alchemy)
    assert {"default", "information_schema"} <= set(inspector.get_schema_names())
    assert table in inspector.get_table_names()
    assert f"{table}_view" not in inspector.get_table_names()
    assert f"{table}_view" in inspector.get_view_names(schema="default")
    assert inspector.has_table(table)
    assert not inspector.has_table(f"{table}_none")
    columns = {each["name"]: each for each in inspector.get_columns(table)}
    assert [repr(each["type"]) for each in columns.values()][:8] == [
        *("BIGINT()", "VARCHAR()", "DECIMAL(precision=10, scale=2)", "DATE()", "TIMESTAMP(precision=6)"),
        *("TIMESTAMP(precision=6, timezone=True)", "BOOLEAN()", "VARBINARY()"),
    ]
    assert (columns["id"]["nullable"], columns["id"]["comment"]) == (False, "the key")
    assert (columns["name"]["nullable"], columns["name"]["comment"]) == (True, None)
    assert isinstance(columns["named"]["type"], MAP)
    assert isinstance(both := columns["both"]["type"], ROW)
    assert [name for name, _ in both.attr_types] == ["a", "b"]
    assert inspector.get_table_comment(table) == {"text": "a table"}
    assert inspector.get_pk_constraint(table)["constrained_columns"] == []
    assert inspector.get_foreign_keys(table) == inspector.get_unique_constraints(table) == []
    assert inspector.get_view_definition(f"{table}_view") == f"SELECT id, name FROM {table}"
    assert [each["name"] for each in inspector.get_columns(f"{table}_view")] == ["id", "name"]
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns(f"{table}_none")


# The dialect takes the columns of a table's "$partitions" for those of an index, at Trino as well.
@pytest.mark.filterwarnings("ignore:index key:sqlalchemy.exc.SAWarning")
def test_a_reflected_table_is_used(alchemy: sa.Engine, run: Callable[[str], list[Any]], table: str) -> None:
    run(f"CREATE TABLE {table} AS SELECT 1 AS id, 'ada' AS name")
    found = sa.Table(table, sa.MetaData(), autoload_with=alchemy, schema="default")
    with alchemy.connect() as connection:
        assert connection.execute(sa.select(found.c.name).where(found.c.id == 1)).scalar_one() == "ada"


def test_pandas(alchemy: sa.Engine, table: str) -> None:
    frame = pandas.DataFrame({"id": [1, 2], "name": ["ada", None], "ratio": [0.5, 1.5]})
    frame.to_sql(table, alchemy, index=False, method="multi")
    query = sa.text(f"SELECT * FROM {table} WHERE id < :most ORDER BY id")
    read = pandas.read_sql(query, alchemy, params={"most": 9})
    assert read["id"].tolist() == [1, 2]
    assert read["name"][0] == "ada"
    assert pandas.isna(read["name"][1])


# Superset's engine for Trino (superset/db_engine_specs/trino.py and presto_base.py)

GRAINS = {
    "date_trunc('second', CAST(at AS TIMESTAMP))": "2026-02-04 03:04:05",
    "date_trunc('minute', CAST(at AS TIMESTAMP))": "2026-02-04 03:04:00",
    "date_trunc('hour', CAST(at AS TIMESTAMP))": "2026-02-04 03:00:00",
    "date_trunc('day', CAST(at AS TIMESTAMP))": "2026-02-04 00:00:00",
    "date_trunc('week', CAST(at AS TIMESTAMP))": "2026-02-02 00:00:00",
    "date_trunc('month', CAST(at AS TIMESTAMP))": "2026-02-01 00:00:00",
    "date_trunc('quarter', CAST(at AS TIMESTAMP))": "2026-01-01 00:00:00",
    "date_trunc('year', CAST(at AS TIMESTAMP))": "2026-01-01 00:00:00",
    "date_trunc('week', CAST(at AS TIMESTAMP) + interval '1' day) - interval '1' day": "2026-02-01 00:00:00",
    "date_trunc('week', CAST(at AS TIMESTAMP) + interval '1' day) + interval '5' day": "2026-02-07 00:00:00",
    "date_trunc('week', CAST(at AS TIMESTAMP)) + interval '6' day": "2026-02-08 00:00:00",
}


def test_supersets_charts(run: Callable[[str], list[Any]], table: str) -> None:
    run(f"CREATE TABLE {table} AS SELECT TIMESTAMP '2026-02-04 03:04:05' AS at, 1770174245 AS epoch, 2.5 AS price")
    (found,) = run(f"SELECT {', '.join(GRAINS)} FROM {table}")
    assert [str(value) for value in found] == list(GRAINS.values())
    dataset = (
        "SELECT date_trunc('day', CAST(at AS TIMESTAMP)) AS __timestamp, sum(price) AS \"SUM(price)\""
        f" FROM default.{table}"
        " WHERE at >= TIMESTAMP '2026-02-01 00:00:00.000000' AND at < TIMESTAMP '2026-03-01 00:00:00.000000'"
        " GROUP BY date_trunc('day', CAST(at AS TIMESTAMP)) ORDER BY \"SUM(price)\" DESC\nLIMIT 10000"
    )
    assert [tuple(row) for row in run(dataset)] == [(datetime.datetime(2026, 2, 4), Decimal("2.5"))]
    (epoch,) = run(f"SELECT from_unixtime(epoch) FROM {table}")
    assert epoch[0] == datetime.datetime(2026, 2, 4, 3, 4, 5, tzinfo=datetime.UTC)


def test_supersets_lists(alchemy: sa.Engine, run: Callable[[str], list[Any]], table: str) -> None:
    run(f"CREATE VIEW {table} AS SELECT 1 AS one")
    assert [row[0] for row in run("SHOW CATALOGS")] == ["iceberg", "system"]
    with alchemy.connect() as connection:
        functions = connection.execute(sa.text("SHOW FUNCTIONS")).mappings().all()
        assert {"date_trunc", "approx_distinct", "json_extract_scalar"} <= {row["Function"] for row in functions}
        assert connection.dialect.get_catalog_names(connection) == ["iceberg", "system"]
        assert connection.dialect.server_version_info
    (created,) = run(f"SHOW CREATE VIEW default.{table}")
    assert created[0].startswith("CREATE VIEW iceberg.default.")


def test_superset_follows_and_kills_a_query(alchemy: sa.Engine, run: Callable[[str], list[Any]]) -> None:
    raw = alchemy.raw_connection()
    cursor: Any = raw.cursor()
    long = "SELECT count(*) FROM UNNEST(sequence(1, 100000)) a(x) CROSS JOIN UNNEST(sequence(1, 100000)) b(y)"
    failed: list[Exception] = []

    def follow() -> None:
        try:
            cursor.execute(f"{long} CROSS JOIN UNNEST(sequence(1, 100000)) c(z) WHERE x * y % 7 = z")
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    wait_for(lambda: (cursor.stats or {}).get("state") == "RUNNING", 30)
    assert cursor.info_uri.endswith(cursor.stats["queryId"])
    id = cursor.stats["queryId"]
    run(f"CALL system.runtime.kill_query(query_id => '{id}',message => 'Query cancelled by Superset')")
    thread.join(20)
    assert failed
    raw.close()


def test_superset_estimates(run: Callable[[str], list[Any]], table: str) -> None:
    run(f"CREATE TABLE {table} AS SELECT 1 AS one")
    ((estimate,),) = run(f"EXPLAIN (TYPE IO, FORMAT JSON) SELECT * FROM {table}")
    assert {"outputRowCount", "outputSizeInBytes", "cpuCost"} <= json.loads(estimate)["estimate"].keys()
