"""What EXECUTE … USING takes: the values that drivers write, and no expression."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from sqe_core.query.statements.execute_values import parameters
from sqe_core.spi.errors import NotSupportedError, SqeError, UserError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statements.prepared import Execute
from sqe_core.sql.text.limits import TextLimits


def given(text: str) -> Any:
    statement = Reader().read(f"EXECUTE p USING {text}", dialect="trino", limits=TextLimits())
    assert isinstance(statement, Execute)
    (value,) = parameters(statement.values)
    return value


AT = datetime.datetime(2026, 2, 3, 4, 5, 6, 7)
VALUES: dict[str, Any] = {
    "5": 5,
    "-1.5": Decimal("-1.5"),
    "'o''neil'": "o'neil",
    "X'00FF'": b"\0\xff",
    "TRUE": True,
    "BOOLEAN 'false'": False,
    "NULL": None,
    "CAST(NULL AS BIGINT)": None,
    "cast(null as row(a decimal(10,2), b array(varchar(5))))": None,
    "TINYINT '-128'": pa.scalar(-128, pa.int8()),
    "SMALLINT '7'": pa.scalar(7, pa.int16()),
    "INTEGER '7'": pa.scalar(7, pa.int32()),
    "BIGINT '7'": pa.scalar(7, pa.int64()),
    "REAL '1.5'": pa.scalar(1.5, pa.float32()),
    "DOUBLE '1.5'": 1.5,
    "infinity()": math.inf,
    "-infinity()": -math.inf,
    "DECIMAL '1.25'": Decimal("1.25"),
    "DATE '2026-02-03'": datetime.date(2026, 2, 3),
    "TIME '04:05:06.000007'": AT.time(),
    "TIMESTAMP '2026-02-03 04:05:06.000007'": AT,
    "TIMESTAMP '2026-02-03 04:05:06.000007 UTC'": AT.replace(tzinfo=datetime.UTC),
    "TIMESTAMP '2026-02-03 04:05:06.000007 Europe/Berlin'": AT.replace(tzinfo=ZoneInfo("Europe/Berlin")),
    "TIMESTAMP '2026-02-03 04:05:06.000007 UTC+02:00'": AT.replace(
        tzinfo=datetime.timezone(datetime.timedelta(hours=2))
    ),
    "TIMESTAMP '2026-02-03 04:05:06.000007 -02:30'": AT.replace(
        tzinfo=datetime.timezone(-datetime.timedelta(hours=2, minutes=30))
    ),
    "ARRAY[1, NULL, 3]": pa.scalar([1, None, 3], pa.list_(pa.int32())),
    "ARRAY[1, 5000000000]": pa.scalar([1, 5_000_000_000], pa.list_(pa.int64())),
    "ARRAY[1.5, 10.25]": pa.scalar([Decimal("1.5"), Decimal("10.25")], pa.list_(pa.decimal128(4, 2))),
    "ARRAY[]": pa.scalar([], pa.list_(pa.null())),
    "ARRAY[ARRAY['a']]": pa.scalar([["a"]], pa.list_(pa.list_(pa.string()))),
    "MAP(ARRAY['a'], ARRAY[1])": pa.scalar([("a", 1)], pa.map_(pa.string(), pa.int32())),
    "ROW(1, 'x')": pa.scalar({"col1": 1, "col2": "x"}, pa.struct([("col1", pa.int32()), ("col2", pa.string())])),
}


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str) -> None:
    expected = VALUES[text]
    found = given(text)
    assert type(found) is type(expected)
    assert found == expected
    if isinstance(expected, pa.Scalar):
        assert found.type == expected.type


def test_no_number() -> None:
    assert math.isnan(given("nan()"))


@pytest.mark.parametrize(
    "text",
    [
        "city",
        "1 + 1",
        "now()",
        "CAST('1' AS bigint)",
        "CAST((SELECT max(id) FROM t) AS bigint)",
        "ARRAY[city]",
        "ROW((SELECT 1))",
        "MAP(1, 2)",
        "-row(1)",
        "TIME '04:05:06 +02:00'",
        "INTERVAL '1' DAY",
    ],
)
def test_no_expression(text: str) -> None:
    with pytest.raises(SqeError):
        given(text)


@pytest.mark.parametrize(
    "text",
    [
        "TINYINT '128'",
        "BIGINT '1.5'",
        "BOOLEAN 'maybe'",
        "TIMESTAMP '2026-02-03 04:05:06 Nowhere/Else'",
        "TIMESTAMP '2026-02-03 04:05:06 ../../etc/passwd'",
        "TIMESTAMP '2026-02-03 04:05:06 +99:00'",
        "ARRAY[1, 'a']",
        "MAP(ARRAY[1], ARRAY[])",
        "ARRAY[1" + "0" * 90 + "]",
    ],
)
def test_faults_are_told(text: str) -> None:
    with pytest.raises(UserError) as raised:
        given(text)
    assert not isinstance(raised.value, NotSupportedError)


def test_depth_is_bounded() -> None:
    with pytest.raises(SqeError, match="nested"):
        given("ARRAY[" * 50 + "1" + "]" * 50)
