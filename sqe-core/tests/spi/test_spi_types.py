"""Types of columns as values: what Arrow has no word for is in them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sqe_core.spi import ColumnType, ResultColumn, column_type, result_columns


@pytest.mark.parametrize(
    ("text", "type", "name", "arguments"),
    [
        ("bigint", pa.int64(), "bigint", ()),
        ("char(3)", pa.string(), "char", (3,)),
        ("timestamp(3)", pa.timestamp("us"), "timestamp", (3,)),
        ("timestamp(3) with time zone", pa.timestamp("us", "UTC"), "timestamp with time zone", (3,)),
        ("timestamp with time zone", pa.timestamp("us", "UTC"), "timestamp with time zone", ()),
        ("decimal(10,2)", pa.decimal128(10, 2), "decimal", (10, 2)),
        ("decimal(10, 2)", pa.decimal128(10, 2), "decimal", (10, 2)),
        ("interval day to second", pa.duration("us"), "interval day to second", ()),
        ("something (else", pa.string(), "something (else", ()),
    ],
)
def test_words_and_numbers(text: str, type: pa.DataType, name: str, arguments: tuple[int, ...]) -> None:
    assert column_type(text, type) == ColumnType(text=text, name=name, arguments=arguments)


def test_nested_types_whatever_their_fields_are_called() -> None:
    inner = pa.struct({"a, b (c": pa.int64(), "d": pa.list_(pa.string())})
    found = column_type("map(varchar, row(a, b (c bigint, d array(char(3))))", pa.map_(pa.string(), inner))
    (_, key), (_, value) = found.fields
    assert (found.name, key.name, value.name) == ("map", "varchar", "row")
    assert [(name, field.name) for name, field in value.fields] == [("a, b (c", "bigint"), ("d", "array")]
    assert value.fields[1][1].fields == (("element", ColumnType(text="char(3)", name="char", arguments=(3,))),)


def test_columns_of_a_result() -> None:
    field = pa.field("n", pa.string(), nullable=False, metadata={"sql_type": "char(3)", "comment": "a name"})
    assert result_columns(pa.schema([field])) == (
        ResultColumn(
            name="n", type=ColumnType(text="char(3)", name="char", arguments=(3,)), nullable=False, comment="a name"
        ),
    )
    assert result_columns(None) == ()


def test_columns_that_tell_no_type() -> None:
    types = [pa.int64(), pa.float32(), pa.timestamp("us", "UTC"), pa.list_(pa.int32()), pa.map_(pa.string(), pa.null())]
    found = result_columns(pa.schema([("c", type) for type in types]))
    assert [column.type.text for column in found] == [
        "bigint",
        "real",
        "timestamp(6) with time zone",
        "array(integer)",
        "map(varchar, unknown)",
    ]


def test_types_inside_of_a_text_are_read_of_the_name() -> None:
    """Values with JSON inside are one text each, which has no parts in Arrow."""
    found = column_type('row(a json, "b ""c" map(varchar, array(json)))', pa.string())
    assert [name for name, _ in found.fields] == ["a", 'b "c']
    assert [inner.name for _, inner in found.fields] == ["json", "map"]
    assert [inner.name for _, inner in found.fields[1][1].fields] == ["varchar", "array"]
    assert column_type("array(json)", pa.string()).fields[0][1].name == "json"
    assert column_type("row(a-b json)", pa.string()).fields == ()
