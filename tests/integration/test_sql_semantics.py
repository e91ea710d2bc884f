"""The dialect's meaning on the real engine: each line of tests/sql/semantics.txt, translated and executed."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqe_core.engine.port import EngineExecutionError, EngineSession
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi.errors import SqeError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits

_CASES = Path(__file__).parent.parent / "sql" / "semantics.txt"
_QUERY = re.compile(r"(?i)\(?(select|with|values|table)\b")


def _cases() -> Iterator[Any]:
    for number, line in enumerate(_CASES.read_text("utf-8").splitlines(), 1):
        if " --> " in line and not line.startswith("#"):
            sql, expected = line.rsplit(" --> ", 1)
            yield pytest.param(sql, expected, id=f"{number}: {sql[:60]}")


@pytest.fixture(scope="module")
def session(engine: SparkEngine) -> Iterator[EngineSession]:
    opened = engine.open_session()
    yield opened
    opened.close()


@pytest.mark.parametrize(("sql", "expected"), tuple(_cases()))
def test_answers_what_the_dialect_means(session: EngineSession, sql: str, expected: str) -> None:
    assert answer(session, sql) == expectation(expected)


def answer(session: EngineSession, sql: str) -> Any:
    """Run a query or an expression; return its rows or its value, or the condition of its error behind "!"."""
    query = _QUERY.match(sql) is not None
    try:
        statement = Reader().read(sql if query else f"SELECT {sql} AS x", dialect="sqe", limits=TextLimits())
        assert isinstance(statement, EngineStatement)
        plan = session.analyse(session.parse(statement.spark_sql), tag="semantics")
        with session.execute(plan, tag="semantics") as stream:
            rows = [list(map(_plain, row.values())) for batch in stream for row in _rows(batch)]
    except EngineExecutionError as error:
        return "!" + error.failure.condition.split(".")[0]
    except SqeError as error:
        return "!" + error.code.name
    return rows if query else rows[0][0]


def _rows(batch: Any) -> list[dict[str, Any]]:
    """The rows with columns by position: names may occur twice."""
    columns = [column.to_pylist() for column in batch.columns]
    return [dict(enumerate(values)) for values in zip(*columns, strict=True)]


def expectation(text: str) -> Any:
    """Read what stands behind the arrow."""
    return text if text.startswith("!") else json.loads(text)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal | datetime.date | datetime.time):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(one, tuple) for one in value)
        if pairs and all(isinstance(key, str) for key, _ in value):
            return {key: _plain(one) for key, one in value}
        return [_plain(one) for one in value]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value
