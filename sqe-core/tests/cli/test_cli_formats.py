"""What each output format looks like, to the byte."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from cli_fakes import FakeBackend, rows

from sqe_core.cli.shell.formats import CsvWriter, JsonWriter, MarkdownWriter, ResultWriter, TsvWriter, VerticalWriter
from sqe_core.cli.shell.table import TableWriter, fit

TRICKY = pa.table(
    {
        "a": pa.array(["plain", 'quote " inside', "comma, inside", "line\nfeed", "", None, "tab\there", "back\\slash"]),
        "b": pa.array([1, 2, 3, 4, 5, None, 7, 8], pa.int64()),
    }
)


def written(make: Callable[[Callable[[str], None]], ResultWriter], table: pa.Table) -> str:
    out = io.StringIO()
    writer = make(out.write)
    writer.begin(table.schema)
    for batch in table.to_batches(max_chunksize=2):
        writer.rows(batch)
    writer.end()
    return out.getvalue()


def test_a_table_of_one_number(bench: Any) -> None:
    bench.script.run("SELECT 1 AS one", name="")
    assert bench.written == "one\n-----\n  1\n(1 row)\n"
    assert bench.told == ""


def test_table_aligns_and_escapes() -> None:
    assert written(TableWriter, TRICKY.slice(4, 3)).splitlines() == [
        "a          |    b",
        "-----------+------",
        "           |    5",
        "NULL       | NULL",
        "tab\\there  |    7",
    ]


def test_table_shows_the_lines_of_a_value() -> None:
    table = pa.table({"a": ["one\ntwo\r\n\nfour", "x"], "b": ["p", "q\nr"]})
    assert written(TableWriter, table).splitlines() == [
        "a     | b",
        "------+---",
        "one + | p",
        "two + |",
        "    + |",
        "four  |",
        "x     | q+",
        "      | r",
    ]


def test_table_of_one_column_can_be_copied() -> None:
    table = pa.table({"create": ["CREATE TABLE t (\n  a int\n)"]})
    assert written(TableWriter, table) == "create\n------------------\nCREATE TABLE t (\n  a int\n)\n"


def test_numbers_stand_to_the_right() -> None:
    table = pa.table(
        {
            "n": pa.array([1, None, -100]),
            "d": pa.array([Decimal("1.50"), None, Decimal("22.25")]),
            "f": pa.array([0.5, float("nan"), None]),
            "t": ["1", "22", "333"],
        }
    )
    assert written(TableWriter, table).splitlines() == [
        "   n  |     d |    f | t",
        "------+-------+------+-----",
        "   1  |  1.50 |  0.5 | 1",
        "NULL  |  NULL |  NaN | 22",
        "-100  | 22.25 | NULL | 333",
    ]


def test_table_of_nothing_has_its_header() -> None:
    assert written(TableWriter, TRICKY.slice(0, 0)) == "a  | b\n---+---\n"


def test_table_knows_wide_and_combining_characters() -> None:
    table = pa.table({"a": ["日本", "e\u0301", "ab"], "b": ["x", "y", "z"]})
    assert written(TableWriter, table).splitlines()[2:] == ["日本  | x", "e\u0301     | y", "ab    | z"]


def test_table_never_sends_control_characters() -> None:
    table = pa.table({"a\x1b[31m": ["\x1b]0;title\x07", "\x9b2J", "\u202eevil"]})
    text = written(TableWriter, table)
    assert not any(character in text for character in "\x1b\x07\x9b\u202e")
    assert "\\x1b]0;title\\x07" in text


def test_table_sizes_columns_by_the_first_thousand_rows_and_streams_the_rest() -> None:
    out = io.StringIO()
    writer = TableWriter(out.write)
    writer.begin(pa.schema([("n", pa.int64())]))
    writer.rows(pa.record_batch({"n": pa.array(range(999))}))
    assert out.getvalue() == "", "nothing may be written before the widths are known"
    writer.rows(pa.record_batch({"n": pa.array([999])}))
    assert out.getvalue().startswith("  n\n-----\n  0\n")
    writer.rows(pa.record_batch({"n": pa.array([123456789])}))
    assert out.getvalue().endswith("\n999\n123456789\n")


def test_table_is_cut_to_the_terminal_and_says_so() -> None:
    out = io.StringIO()
    writer = TableWriter(out.write, lambda rows: 20)
    writer.begin(pa.schema([("a", pa.string()), ("b", pa.string())]))
    writer.rows(pa.record_batch({"a": ["x" * 50], "b": ["short"]}))
    writer.end()
    assert all(len(line) <= 20 for line in out.getvalue().splitlines())
    assert "xxxxxxxx…" in out.getvalue()
    assert "short" in out.getvalue()
    assert writer.was_cut


@pytest.mark.parametrize(
    ("widths", "available", "expected"),
    [([50, 5], 20, [9, 5]), ([10, 10, 10], 100, [10, 10, 10]), ([30, 30], 26, [10, 10]), ([9] * 20, 10, [3] * 20)],
)
def test_fit_narrows_the_widest(widths: list[int], available: int, expected: list[int]) -> None:
    assert fit(widths, available) == expected


def test_csv_is_rfc_4180() -> None:
    text = written(CsvWriter, TRICKY)
    assert text.startswith('a,b\nplain,1\n"quote "" inside",2\n"comma, inside",3\n"line\nfeed",4\n"",5\n,\n')
    read = list(csv.reader(io.StringIO(text)))
    assert [row[0] for row in read[1:]] == [value or "" for value in TRICKY["a"].to_pylist()]


def test_csv_of_nothing_has_its_header() -> None:
    assert written(CsvWriter, TRICKY.slice(0, 0)) == "a,b\n"


NESTED = pa.table(
    {
        "list": pa.array([[1, None], None]),
        "row": pa.array([{"a": 'say "x"', "at": datetime(2026, 4, 1, 8, 30)}, None]),
        "map": pa.array([[("k", 1.5)], None], pa.map_(pa.string(), pa.float64())),
    }
)


def test_nested_values_are_json_for_programs() -> None:
    """People read SQL's own spelling in a table; a program that reads CSV has a reader for JSON."""
    header, first, second = csv.reader(io.StringIO(written(CsvWriter, NESTED)))
    assert header == ["list", "row", "map"]
    assert [json.loads(field) for field in first] == [
        [1, None],
        {"a": 'say "x"', "at": "2026-04-01 08:30:00"},
        {"k": 1.5},
    ]
    assert second == ["", "", ""]
    fields = written(TsvWriter, NESTED).splitlines()[1].split("\t")
    assert json.loads(fields[1].replace("\\\\", "\\")) == {"a": 'say "x"', "at": "2026-04-01 08:30:00"}


@pytest.mark.parametrize(
    ("writer", "expected"),
    [
        (CsvWriter, 'a\n-\n""\n"-"\n'),
        (TsvWriter, "a\n-\n\n-\n"),
        (MarkdownWriter, "| a |\n| --- |\n| - |\n|  |\n| - |\n"),
        (VerticalWriter, "-[ 1 ]\na | -\n-[ 2 ]\na |\n-[ 3 ]\na | -\n"),
        (TableWriter, "a\n---\n-\n\n-\n"),
    ],
)
def test_null_is_written_as_wanted(writer: Any, expected: str) -> None:
    table = pa.table({"a": [None, "", "-"]})
    assert written(lambda write: writer(write, null="-"), table) == expected


def test_markdown() -> None:
    table = pa.table({"a|b": ["x|y", "two\r\nlines", None], "n": pa.array([1, 22, None])})
    assert written(MarkdownWriter, table).splitlines() == [
        "| a\\|b | n |",
        "| --- | ---: |",
        "| x\\|y | 1 |",
        "| two<br>lines | 22 |",
        "| NULL | NULL |",
    ]


def test_tsv_escapes() -> None:
    assert written(TsvWriter, TRICKY.slice(3)) == ("a\tb\nline\\nfeed\t4\n\t5\n\t\ntab\\there\t7\nback\\\\slash\t8\n")


def test_json_is_one_array_with_exact_values() -> None:
    table = pa.table(
        {
            "d": pa.array([Decimal("12345678901234567890.10"), None], pa.decimal128(38, 2)),
            "s": pa.array(['"\x1b\n', None]),
            "f": pa.array([float("nan"), 1.0]),
            "n": pa.array([9007199254740993, None], pa.int64()),
        }
    )
    text = written(JsonWriter, table)
    assert text.count("\n") == 4
    read = json.loads(text, parse_float=Decimal)
    assert read == [
        {"d": Decimal("12345678901234567890.10"), "s": '"\x1b\n', "f": "NaN", "n": 9007199254740993},
        {"d": None, "s": None, "f": Decimal("1.0"), "n": None},
    ]


def test_json_of_several_batches_is_one_array() -> None:
    assert [row["b"] for row in json.loads(written(JsonWriter, TRICKY))] == TRICKY["b"].to_pylist()


def test_json_of_nothing_is_an_empty_array() -> None:
    assert written(JsonWriter, TRICKY.slice(0, 0)) == "[]\n"


def test_json_keeps_columns_of_the_same_name() -> None:
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "a_2"])
    assert json.loads(written(JsonWriter, table)) == [{"a": 1, "a_2": 2, "a_2_2": 3}]


def test_broken_json_does_not_look_complete(make_bench: Any, backend: FakeBackend) -> None:
    bench = make_bench(format="json")
    bench.executor.backend.cancelled.set()

    def broken() -> Any:
        result = rows({"n": pa.array([1])})
        result.batches = iter([*result.batches, None])
        return result

    backend.answers["x"] = broken
    bench.script.run("x", name="")
    assert bench.written.startswith('[\n{"n": 1}')
    with pytest.raises(json.JSONDecodeError):
        json.loads(bench.written)


def test_vertical_has_a_line_per_value() -> None:
    table = pa.table({"id": [1, 2], "text": ["two\nlines", None]})
    assert written(VerticalWriter, table).splitlines() == [
        "-[ 1 ]-",
        "id   | 1",
        "text | two",
        "     | lines",
        "-[ 2 ]-",
        "id   | 2",
        "text | NULL",
    ]


@pytest.mark.parametrize("format", ["csv", "tsv", "json"])
def test_only_data_is_written_for_machines(make_bench: Any, format: str) -> None:
    bench = make_bench(format=format)
    bench.script.run("CREATE TABLE t; INSERT INTO t; SET SESSION a = 1", name="")
    assert bench.written == ""
    assert bench.told == ""


def test_what_was_done_stands_with_the_tables(bench: Any) -> None:
    bench.script.run("CREATE TABLE t; INSERT INTO t; set session a = 1", name="")
    assert bench.written == "CREATE TABLE\nINSERT: 3 rows\nSET SESSION\n"


def test_a_terminal_gets_no_control_characters_in_any_format(make_bench: Any, backend: FakeBackend) -> None:
    backend.answers["x"] = lambda: rows({"a": pa.array(["\x1b[2J\x9b"])})
    bench = make_bench(format="csv", terminal=True)
    bench.script.run("x", name="")
    assert "\x1b" not in bench.written
    assert "\x9b" not in bench.written
