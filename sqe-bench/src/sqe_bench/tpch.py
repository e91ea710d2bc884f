"""The tables and some queries of TPC-H, in an Iceberg warehouse that is written once and kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe, open_embedded
from sqe_core.engine.port import Engine
from sqe_core.engine.spark.options import default_cache_dir
from sqe_core.spi.errors import StartupError
from sqe_core.spi.protocol import IngestMode, IngestRequest

SCHEMA = "tpch"
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_GENERATOR = "tpchgen-cli"
_COMPLETE = "complete"


def default_folder() -> Path:
    """Return where the warehouses are kept between runs."""
    return default_cache_dir().parent / "sqe-bench"


def open_tpch(folder: Path, scale: float, engine: Engine) -> EmbeddedSqe:
    """Open the warehouse of a scale factor; it is written first when it is not there."""
    warehouse = folder / f"tpch-{scale:g}"
    complete = warehouse / _COMPLETE
    if not complete.exists():
        # Iceberg's metadata holds absolute paths: what is written elsewhere could not be moved into place.
        shutil.rmtree(warehouse, ignore_errors=True)
        unfinished = open_embedded(warehouse, engine=engine)
        try:
            _write(unfinished, warehouse, scale)
        finally:
            unfinished.close()
        complete.touch()
    return open_embedded(warehouse, engine=engine)


def _write(sqe: EmbeddedSqe, folder: Path, scale: float) -> None:
    sqe.execute(f"CREATE SCHEMA {SCHEMA}").close()
    session = sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="bench")
    with tempfile.TemporaryDirectory(prefix="tpch-", dir=folder) as parquet:
        _generate(Path(parquet), scale)
        for table in TABLES:
            file = pq.ParquetFile(Path(parquet) / f"{table}.parquet")
            schema = pa.schema([pa.field(field.name, _plain(field.type)) for field in file.schema_arrow])
            print(f"writing {table}: {file.metadata.num_rows} rows", file=sys.stderr)
            request = IngestRequest(table=table, schema=SCHEMA, mode=IngestMode.CREATE)
            sqe.sqe.service.ingest(session, request, schema, _batches(file, schema)).close()
    sqe.sqe.service.close_session(session)


def _batches(file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in file.iter_batches():
        yield pa.RecordBatch.from_arrays(
            [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)], schema=schema
        )


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(kind) else kind


def _generate(folder: Path, scale: float) -> None:
    """The generator is an extra: nobody else needs it, and it makes what TPC's own `dbgen` makes."""
    program = shutil.which(_GENERATOR) or shutil.which(_GENERATOR, path=str(Path(sys.executable).parent))
    if program is None:
        raise StartupError(f"{_GENERATOR} is not installed", hint="pip install sqe-bench[tpch]")
    subprocess.run(
        [program, "parquet", "--scale-factor", f"{scale:g}", "--output-dir", str(folder), "--quiet"], check=True
    )


# With the specification's validation parameters. Q18's threshold is lower: below a row filter no order reaches 300.
QUERIES: Mapping[str, str] = MappingProxyType(
    {
        "Q1": """
            SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
                   sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
                   sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
                   avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
            FROM lineitem
            WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
            GROUP BY l_returnflag, l_linestatus
            ORDER BY l_returnflag, l_linestatus""",
        "Q3": """
            SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
            FROM customer, orders, lineitem
            WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
              AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
            GROUP BY l_orderkey, o_orderdate, o_shippriority
            ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
        "Q5": """
            SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
            FROM customer, orders, lineitem, supplier, nation, region
            WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
              AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
              AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
            GROUP BY n_name ORDER BY revenue DESC""",
        "Q6": """
            SELECT sum(l_extendedprice * l_discount) AS revenue
            FROM lineitem
            WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
              AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        "Q10": """
            SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address,
                   c_phone, c_comment
            FROM customer, orders, lineitem, nation
            WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
              AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey
            GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
            ORDER BY revenue DESC, c_custkey LIMIT 20""",
        "Q12": """
            SELECT l_shipmode,
                   sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
                   sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_line_count
            FROM orders, lineitem
            WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
              AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
              AND l_receiptdate < DATE '1995-01-01'
            GROUP BY l_shipmode ORDER BY l_shipmode""",
        "Q14": """
            SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
                   / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
            FROM lineitem, part
            WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
        "Q18": """
            SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
            FROM customer, orders, lineitem
            WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250)
              AND c_custkey = o_custkey AND o_orderkey = l_orderkey
            GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
            ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
        # No query of TPC-H: what an application asks all day. Most of it is planning.
        "one order": """
            SELECT o_orderdate, o_totalprice, o_clerk, l_linenumber, l_extendedprice, l_comment
            FROM orders JOIN lineitem ON l_orderkey = o_orderkey
            WHERE o_orderkey = 3 AND l_orderkey = 3 ORDER BY l_linenumber""",
        "one customer": "SELECT c_name, c_phone, c_acctbal FROM customer WHERE c_custkey = 12",
    }
)
