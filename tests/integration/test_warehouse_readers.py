"""The embedded warehouse is a plain Iceberg catalog: others read it, and two processes write it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

from sqe_core.bootstrap import EmbeddedSqe


def pyiceberg(warehouse: Path) -> SqlCatalog:
    return SqlCatalog("iceberg", uri=f"sqlite:///{warehouse / 'sqe.db'}", warehouse=f"file://{warehouse}")


def test_pyiceberg_reads_what_sqe_wrote_and_the_other_way_round(sqe: EmbeddedSqe, warehouse: Path) -> None:
    sqe.execute("CREATE TABLE both_ways AS SELECT 1 AS id, 'sqe' AS writer").close()
    table = pyiceberg(warehouse).load_table("default.both_ways")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "writer": "sqe"}]
    import pyarrow as pa

    table.append(pa.table({"id": pa.array([2], pa.int32()), "writer": ["pyiceberg"]}))
    assert sqe.execute("SELECT writer FROM both_ways ORDER BY id").read_all().column(0).to_pylist() == [
        "sqe",
        "pyiceberg",
    ]
    pyiceberg(warehouse).create_namespace("made_elsewhere")
    assert "made_elsewhere" in sqe.execute("SHOW SCHEMAS").read_all().column(0).to_pylist()


def test_plain_spark_reads_what_sqe_wrote(sqe: EmbeddedSqe, warehouse: Path) -> None:
    """A catalog mounted as Iceberg's manual says, without any class of ours, by its stored name."""
    sqe.execute("CREATE TABLE for_spark AS SELECT 42 AS answer").close()
    engine = sqe.sqe.engine
    spark = engine.context.root.newSession()
    for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{warehouse / 'sqe.db'}",
        ".warehouse": f"file://{warehouse}",
        ".jdbc.schema-version": "V1",
    }.items():
        spark.conf.set(f"spark.sql.catalog.iceberg{key}", value)
    assert spark.sql("SELECT answer FROM iceberg.default.for_spark WHERE answer = 42").count() == 1


_WRITER = """
import sys
from pathlib import Path
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
warehouse = Path(sys.argv[1])
catalog = SqlCatalog("iceberg", uri=f"sqlite:///{warehouse / 'sqe.db'}", warehouse=f"file://{warehouse}")
done = 0
for number in range(10):
    for attempt in range(50):
        try:
            catalog.load_table("default.contended").append(pa.table({"n": pa.array([number], pa.int64())}))
            done += 1
            break
        except CommitFailedException:
            continue
print(done)
"""


def test_two_processes_on_one_warehouse_lose_nothing(sqe: EmbeddedSqe, warehouse: Path) -> None:
    sqe.execute("CREATE TABLE contended (n bigint)").close()
    other = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _WRITER, str(warehouse)], stdout=subprocess.PIPE, text=True
    )
    own = 0
    for number in range(10):
        sqe.execute(f"INSERT INTO contended VALUES {100 + number}").close()
        own += 1
    output, _ = other.communicate(timeout=120)
    assert other.returncode == 0
    (count,) = sqe.execute("SELECT count(*) FROM contended").read_all().column(0).to_pylist()
    assert count == own + int(output)
    assert int(output) == 10
