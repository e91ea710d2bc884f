"""Segments in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
import trino.dbapi
from pyarrow import fs
from testbed.moto import Moto
from trino_client import Serve

from sqe_core.spi import ProtocolContext, Secret, StartupError
from sqe_core.testing import FakeGateway
from sqe_core.testing.protocol import soon
from sqe_protocol_trino.config import SpoolingConfig
from sqe_protocol_trino.spooling import bucket
from sqe_protocol_trino.spooling.opening import open_segments
from sqe_protocol_trino.spooling.segments import Segments


@pytest.fixture(scope="module")
def endpoint_url() -> Iterator[str]:
    server = Moto()
    yield server.url
    server.stop()


@pytest.fixture
def config(endpoint_url: str) -> SpoolingConfig:
    return SpoolingConfig(
        location="s3://results/sqe",
        s3_endpoint=endpoint_url,
        s3_region="us-east-1",
        s3_access_key=Secret("key"),
        s3_secret_key=Secret("secret"),
        inline_bytes=1 << 15,
        first_segment_bytes=1 << 17,
        segment_bytes=1 << 18,
    )


@pytest.fixture
def store(endpoint_url: str) -> Any:
    files = fs.S3FileSystem(
        endpoint_override=endpoint_url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
        access_key="key",
        secret_key="secret",
        allow_bucket_creation=True,
    )
    files.create_dir("results")
    files.delete_dir_contents("results")
    return files


def names(store: Any) -> list[str]:
    found = store.get_file_info(fs.FileSelector("results", recursive=True))
    return [each.path for each in found if each.is_file]


def test_python_reads_segments_that_lie_in_a_bucket(
    serve: Serve, gateway: FakeGateway, config: SpoolingConfig, store: Any
) -> None:
    table = pa.table({"n": range(60_000), "text": [f"zeile {n}" for n in range(60_000)]})
    gateway.answers["large"] = table
    endpoint = serve(spooling=config)
    cursor = trino.dbapi.connect(
        host=endpoint.host,
        port=endpoint.port,
        user="alice",
        auth=trino.auth.BasicAuthentication("alice", "wonderland"),
        allow_insecure_auth=True,
        http_scheme="http",
        encoding="json",
    ).cursor()
    cursor.execute("large")
    assert soon(lambda: bool(names(store)))
    for name in names(store):
        with store.open_input_stream(name) as file:
            assert b"zeile" not in file.read()
    assert [row[0] for row in cursor.fetchall()] == list(range(60_000))
    assert soon(lambda: not names(store))


def test_a_stop_leaves_nothing_and_old_leftovers_go_at_start(
    config: SpoolingConfig, store: Any, monkeypatch: Any
) -> None:
    context = ProtocolContext()
    first = open_segments(config, context)
    assert isinstance(first, Segments)
    assert first.store(first.open(("a", "b"), Secret("t")), b"rows") is not None
    second = open_segments(config, context)
    assert isinstance(second, Segments)
    assert len(names(store)) == 1, "another server's, and young"

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) + timedelta(days=2)

    monkeypatch.setattr(bucket, "datetime", Later)
    third = open_segments(config, context)
    assert isinstance(third, Segments)
    assert not names(store)
    assert second.store(second.open(("a", "b"), Secret("t")), b"rows") is not None
    for each in (first, second, third):
        each.close()
    assert not names(store)


def test_a_bucket_that_is_not_there_stops_the_start(config: SpoolingConfig, store: Any) -> None:
    with pytest.raises(StartupError, match="Results cannot be spooled to s3://nothing"):
        open_segments(replace(config, location="s3://nothing/here"), ProtocolContext())
