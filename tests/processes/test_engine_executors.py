"""Executors in JVMs of their own, which Spark starts on this machine: they read tables, and rows that are ingested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from sqe_core.bootstrap import open_embedded
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.spi.errors import SqeError
from sqe_core.spi.protocol import IngestMode, IngestRequest


def wide_batches(count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, 20_000):
        values = range(start, start + 20_000)
        yield pa.RecordBatch.from_pydict({"n": list(values), "t": [f"{value:0400d}" for value in values]})


# Two more JVMs take two minutes. That executors must prove themselves and encrypt, test_engine_settings.py sees in CI.
@pytest.mark.long
@pytest.mark.rule("ISO-11")
def test_executors_in_processes_of_their_own_read_tables_and_ingested_rows(tmp_path: Path) -> None:
    options = EngineOptions(master="local-cluster[2,1,1024]", memory_bytes=512 << 20, local_dir=tmp_path / "run")
    sqe = open_embedded(tmp_path / "warehouse", engine_options=options)
    engine = sqe.sqe.engine
    assert isinstance(engine, SparkEngine)
    try:
        sqe.execute("SELECT 1").close()
        conf = engine.context._jsc.sc().getConf()
        for key in ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled"):
            assert conf.get(key) == "true"
        family = psutil.Process(engine.pid).children(recursive=True)
        assert len([process for process in family if "CoarseGrainedExecutorBackend" in str(process.cmdline())]) == 2

        sqe.execute("CREATE TABLE numbers AS SELECT x, x % 3 AS g FROM range(999) AS r(x)").close()
        counted = sqe.execute("SELECT g, count(*) AS n FROM numbers GROUP BY g ORDER BY g").read_all().to_pylist()
        assert counted == [{"g": 0, "n": 333}, {"g": 1, "n": 333}, {"g": 2, "n": 333}]

        schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
        request = IngestRequest(table="far", mode=IngestMode.CREATE)
        result = sqe.sqe.service.ingest(sqe.session, request, schema, wide_batches(400_000))
        assert result.affected_rows == 400_000
        (found,) = (
            sqe.execute("SELECT count(DISTINCT n) AS n, sum(CAST(t AS bigint)) AS t FROM far").read_all().to_pylist()
        )
        assert found == {"n": 400_000, "t": sum(range(400_000))}
        (files,) = sqe.execute('SELECT count(*) AS n FROM "far$files"').read_all().to_pylist()
        assert files["n"] > 1

        append = IngestRequest(table="far", mode=IngestMode.APPEND)
        bad = iter([pa.RecordBatch.from_pydict({"n": [1], "t": [None]}, schema=schema)])
        sqe.execute("CREATE TABLE strict (n bigint, t varchar NOT NULL)").close()
        with pytest.raises(SqeError):
            sqe.sqe.service.ingest(sqe.session, IngestRequest(table="strict", mode=append.mode), schema, bad)
        assert engine.context.bridge.spool.Spools.served() == 0
        assert list((engine.run_dir / "spool").iterdir()) == []
    finally:
        sqe.close()
    psutil.wait_procs(family, 20)
    assert not [process for process in family if process.is_running()]
