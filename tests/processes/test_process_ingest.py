"""An ingest across processes: a server that is killed while rows come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

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
