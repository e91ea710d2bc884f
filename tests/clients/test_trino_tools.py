"""What Grafana and Metabase send, statement by statement, over plain HTTP: tool_requests.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from testbed.trino_client import TrinoClient

REQUESTS = tomllib.loads((Path(__file__).parent / "tool_requests.toml").read_text(encoding="utf-8"))
SENSORS = (
    "CREATE TABLE sensors"
    " (at timestamp(6), room varchar COMMENT 'where it is', degrees double, epoch bigint, day date)",
    "INSERT INTO sensors VALUES"
    " (TIMESTAMP '2026-02-03 04:05:06', 'hall', 20, 1770091506, DATE '2026-02-03'),"
    " (TIMESTAMP '2026-02-03 04:05:30', 'hall', 21, 1770091530, DATE '2026-02-03'),"
    " (TIMESTAMP '2026-02-03 05:00:00', 'attic', 10, 1770094800, DATE '2026-02-03')",
)


@pytest.fixture(scope="module")
def client(server: Any) -> TrinoClient:
    made = TrinoClient(f"http://127.0.0.1:{server.trino_port}", "me", catalog="iceberg", schema="tools")
    for sql in ("CREATE SCHEMA iceberg.tools", *SENSORS):
        answer = made(sql)
        assert answer.error is None, answer
    return made


@pytest.mark.parametrize(
    "request_", [each for tool in REQUESTS for each in REQUESTS[tool]], ids=lambda each: str(each["what"])
)
def test_a_request(client: TrinoClient, request_: dict[str, Any]) -> None:
    answer = client(request_["sql"].strip())
    assert answer.error is None, answer.message
    assert answer.columns is not None
    if "columns" in request_:
        assert [name for name, _ in answer.columns] == request_["columns"]
    if "types" in request_:
        assert [type for _, type in answer.columns] == request_["types"]
    assert list(answer.rows) == request_["rows"]
