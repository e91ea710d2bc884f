"""An ingest across processes: executors in JVMs of their own, and a server that is killed while rows come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from sqe_core.bootstrap import open_embedded
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.spi.errors import SqeError
from sqe_core.spi.protocol import IngestMode, IngestRequest

_SERVER = """
import pathlib, sys, time
import pyarrow as pa
from sqe_core.bootstrap import open_embedded
from sqe_core.engine.spark.engine import EngineOptions
from sqe_core.spi.protocol import IngestMode, IngestRequest
folder = pathlib.Path(sys.argv[1])
sqe = open_embedded(folder / "warehouse", engine_options=EngineOptions(local_dir=folder / "run", memory_bytes=1 << 29))
sqe.execute("CREATE TABLE kept (n bigint)").close()

def batches():
    yield pa.RecordBatch.from_pydict({"n": list(range(1000))})
    print(sqe.sqe.engine.pid, flush=True)
    time.sleep(600)

request = IngestRequest(table="kept", mode=IngestMode.APPEND)
sqe.sqe.service.ingest(sqe.session, request, pa.schema([("n", pa.int64())]), batches())
"""


def wide_batches(count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, 20_000):
        values = range(start, start + 20_000)
        yield pa.RecordBatch.from_pydict({"n": list(values), "t": [f"{value:0400d}" for value in values]})


@pytest.mark.rule("ISO-11")
def test_executors_in_processes_of_their_own_read_the_rows(tmp_path: Path) -> None:
    options = EngineOptions(master="local-cluster[2,1,1024]", memory_bytes=512 << 20, local_dir=tmp_path / "run")
    sqe = open_embedded(tmp_path / "warehouse", engine_options=options)
    engine = sqe.sqe.engine
    assert isinstance(engine, SparkEngine)
    try:
        sqe.execute("SELECT 1").close()
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
        assert engine.gateway.jvm.sqe.bridge.Spools.served() == 0
        assert list((engine.run_dir / "spool").iterdir()) == []
    finally:
        sqe.close()


@pytest.mark.rule("DML-7")
def test_a_server_that_is_killed_leaves_no_rows_behind(tmp_path: Path) -> None:
    server = subprocess.Popen([sys.executable, "-c", _SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        jvm = psutil.Process(int(server.stdout.readline()))
        (spool,) = tmp_path.glob("run/sqe-engine-*/spool/rows-*")
        assert list(spool.iterdir())
        os.kill(server.pid, signal.SIGKILL)
        jvm.wait(20)
        deadline = time.monotonic() + 10
        while list((tmp_path / "run").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert list((tmp_path / "run").iterdir()) == []
    finally:
        server.kill()
        server.communicate()
    # The table is as it was: no metadata and no data file was written.
    assert not list((tmp_path / "warehouse").rglob("*.parquet"))
