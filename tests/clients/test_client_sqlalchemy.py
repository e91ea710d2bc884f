"""SQLAlchemy 2 over ADBC, by the dialect of sqlalchemy-adbc; docs/clients.md tells what it lacks."""

from __future__ import annotations

import datetime
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas
import pytest
import sqlalchemy as sa

# SQLAlchemy leaves some cursors to the garbage collector, of which ADBC complains where pytest runs.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@pytest.fixture
def alchemy(server: Any) -> Iterator[sa.Engine]:
    address = f"adbc+flightsql://etl:{server.keys['etl']}@127.0.0.1:{server.port}?tls=false"
    made = sa.create_engine(address, connect_args={"autocommit": True})
    yield made
    made.dispose()


def table_named(name: str) -> sa.Table:
    return sa.Table(
        name,
        sa.MetaData(),
        sa.Column("id", sa.BigInteger),
        sa.Column("name", sa.String),
        sa.Column("at", sa.DateTime),
        sa.Column("day", sa.Date),
        sa.Column("ratio", sa.Double),
    )


def test_tables_rows_and_expressions(alchemy: sa.Engine, table: str) -> None:
    people = table_named(table)
    first = (1, "ada", datetime.datetime(2026, 1, 1), datetime.date(2026, 1, 1), 0.5)
    with alchemy.begin() as connection:
        people.create(connection)
        names = [column.name for column in people.columns]
        connection.execute(people.insert(), [dict(zip(names, first, strict=True)), {**dict.fromkeys(names), "id": 2}])
        query = sa.select(people).where(people.c.id < 5).order_by(people.c.id).limit(10)
        assert connection.execute(query).all() == [first, (2, None, None, None, None)]
        connection.execute(people.update().where(people.c.id == 2).values(name="eve"))
        asked = sa.text(f"SELECT name FROM {table} WHERE id = :id")
        assert connection.execute(asked, {"id": 2}).scalar_one() == "eve"
        connection.execute(people.delete())
        assert connection.execute(sa.select(sa.func.count()).select_from(people)).scalar_one() == 0


def test_a_pool_under_load_loses_nothing_when_connections_close(server: Any) -> None:
    """All of them send one token: what one of them chose, or ends, is nothing to the others."""
    address = f"adbc+flightsql://etl:{server.keys['etl']}@127.0.0.1:{server.port}?tls=false"
    pool = sa.create_engine(address, connect_args={"autocommit": True}, pool_size=10, max_overflow=0)
    schemas = [f"pool_{secrets.token_hex(4)}" for _ in range(10)]
    begun = threading.Barrier(10)

    def work(schema: str) -> None:
        begun.wait(60)
        for turn in range(4):
            with pool.connect() as connection:
                connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS iceberg.{schema}"))
                connection.execute(sa.text(f"USE iceberg.{schema}"))
                made = f"CREATE TABLE made_{turn} AS SELECT id, id % 7 AS day FROM range(20000) AS r(id)"
                connection.execute(sa.text(made))
                assert connection.execute(sa.text("SELECT current_schema")).scalar_one() == schema
                assert connection.execute(sa.text(f"SELECT count(*) FROM made_{turn}")).scalar_one() == 20_000
                if turn % 2:
                    connection.invalidate()  # closes it; ADBC tells the server to end its session

    try:
        with ThreadPoolExecutor(10) as threads:
            list(threads.map(work, schemas))
        with pool.connect() as connection:
            for schema in schemas:
                connection.execute(sa.text(f"DROP SCHEMA iceberg.{schema} CASCADE"))
    finally:
        pool.dispose()


def test_decimals_are_bound_as_doubles(alchemy: sa.Engine, table: str) -> None:
    """As docs/clients.md says: the dialect makes floats of them, which do not fit."""
    prices = sa.Table(table, sa.MetaData(), sa.Column("price", sa.Numeric(10, 2)))
    with alchemy.connect() as connection:
        prices.create(connection)
        with pytest.raises(sa.exc.ProgrammingError, match="cannot take double"):
            connection.execute(prices.insert().values(price=1.25))
        connection.execute(sa.text(f"INSERT INTO {table} VALUES (CAST(:price AS decimal(10,2)))"), {"price": "1.25"})
        assert str(connection.execute(sa.select(prices.c.price)).scalar_one()) == "1.25"


def test_reflection(alchemy: sa.Engine, cursor: Any, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} (id bigint NOT NULL, name varchar, at timestamp)")
    inspector = sa.inspect(alchemy)
    assert "default" in inspector.get_schema_names()
    assert inspector.has_table(table)
    assert not inspector.has_table(f"{table}_none")
    columns = inspector.get_columns(table)
    assert [(each["name"], type(each["type"])) for each in columns] == [
        ("id", sa.BigInteger),
        ("name", sa.String),
        ("at", sa.DateTime),
    ]
    assert inspector.get_pk_constraint(table)["constrained_columns"] == []
    assert inspector.get_table_names() == []  # the dialect looks for the type "table"; the word of Flight SQL is TABLE


def test_pandas(alchemy: sa.Engine, table: str) -> None:
    pandas.DataFrame({"id": [1, 2], "name": ["ada", None]}).to_sql(table, alchemy, index=False)
    query = sa.text(f"SELECT * FROM {table} WHERE id < :most ORDER BY id")
    assert pandas.read_sql(query, alchemy, params={"most": 9})["id"].tolist() == [1, 2]


def test_nothing_is_rolled_back(alchemy: sa.Engine, table: str) -> None:
    people = table_named(table)
    with alchemy.connect() as connection:
        people.create(connection)
        connection.execute(people.insert().values(id=9))
        connection.rollback()
        assert connection.execute(sa.select(people.c.id)).scalars().all() == [9]


def test_a_wrong_key(server: Any) -> None:
    made = sa.create_engine(
        f"adbc+flightsql://etl:sqe_wrong@127.0.0.1:{server.port}?tls=false", connect_args={"autocommit": True}
    )
    with made.connect() as connection, pytest.raises(sa.exc.ProgrammingError, match="Authentication failed"):
        connection.execute(sa.text("SELECT 1"))
    made.dispose()
