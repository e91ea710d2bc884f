"""Type names as users of the default dialect know them."""

import pytest

from sqe_core.catalog.types import datetime_precision, display_type, nested_type, numeric_precision


@pytest.mark.parametrize(
    ("spark", "shown"),
    [
        ("int", "integer"),
        ("string", "varchar"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("timestamp", "timestamp(6) with time zone"),
        ("timestamp_ntz", "timestamp(6)"),
        ("array<int>", "array(integer)"),
        ("map<string,array<double>>", "map(varchar, array(double))"),
        ("struct<a:int,b:struct<c:decimal(3,1),d:string>>", "row(a integer, b row(c decimal(3,1), d varchar))"),
        ("struct<`a,:<``(`:int,`b c`:string>", 'row("a,:<`(" integer, "b c" varchar)'),
        ("struct<Ab:int NOT NULL,c:int COMMENT 'x>, y'>", "row(Ab integer, c integer)"),
        ("variant", "variant"),
    ],
)
def test_display_type(spark: str, shown: str) -> None:
    assert display_type(spark) == shown


@pytest.mark.parametrize(
    ("type", "kind", "inside"),
    [
        ("int", "int", {}),
        ("decimal(5,1)", "decimal(5,1)", {}),
        ("array<decimal(5,1)>", "array", {"element": "decimal(5,1)"}),
        ("map<string,map<int,int>>", "map", {"key": "string", "value": "map<int,int>"}),
        ("struct<A:int,b:struct<c:int,d:int>>", "struct", {"A": "int", "b": "struct<c:int,d:int>"}),
        ("struct<`a,:<``(`:decimal(5,1),b:int>", "struct", {"a,:<`(": "decimal(5,1)", "b": "int"}),
        ("struct<>", "struct", {}),
    ],
)
def test_what_a_type_has_inside(type: str, kind: str, inside: dict[str, str]) -> None:
    assert (nested_type(type)[0], {each.name: each.type for each in nested_type(type)[1]}) == (kind, inside)


def test_precisions() -> None:
    assert numeric_precision("decimal(10,2)") == (10, 2)
    assert numeric_precision("bigint") == (64, 0)
    assert numeric_precision("string") == (None, None)
    assert datetime_precision("timestamp_ns") == 9
    assert datetime_precision("date") == 0
    assert datetime_precision("string") is None
