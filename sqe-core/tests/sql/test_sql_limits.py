"""Limits before any parser (LIM-3, LIM-4): one clean error, quickly, whatever nests."""

from __future__ import annotations

import contextlib
import time

import pytest

from sqe_core.spi.errors import ErrorCode, ResourcesError, SqeError, UserError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits


def read(sql: str, dialect: str = "sqe", limits: TextLimits | None = None) -> str:
    statement = Reader().read(sql, dialect=dialect, limits=limits or TextLimits())
    assert isinstance(statement, EngineStatement)
    return statement.spark_sql


@pytest.mark.rule("LIM-3")
def test_ten_megabytes_are_refused_at_once() -> None:
    started = time.process_time()
    with pytest.raises(ResourcesError, match="longer than 1,048,576 bytes") as caught:
        read("select " + "1," * 5_000_000 + "1")
    assert time.process_time() - started < 0.5
    assert caught.value.code is ErrorCode.RESOURCE_EXHAUSTED
    assert caught.value.hint == "load the data from a file, or ask the administrator to raise query.max_sql_bytes"


@pytest.mark.rule("LIM-3")
def test_the_limit_counts_bytes() -> None:
    limits = TextLimits(max_bytes=20)
    assert read("select 'aaaaaaaaaa'", limits=limits)
    with pytest.raises(ResourcesError):
        read("select 'ääääääääää'", limits=limits)


@pytest.mark.rule("LIM-3")
@pytest.mark.parametrize("character", ["\x00", "\x01", "\x1b", "\x7f", "\ud800", "\ufffe"])
@pytest.mark.parametrize("dialect", ["sqe", "trino", "spark"])
def test_what_is_no_text_is_refused_everywhere(character: str, dialect: str) -> None:
    for sql in (f"select {character}", f"select '{character}'", f"select 1 -- {character}"):
        with pytest.raises(UserError, match="which is not text") as caught:
            read(sql, dialect)
        assert caught.value.code is ErrorCode.SYNTAX_ERROR
        assert caught.value.position is not None


@pytest.mark.rule("LIM-4")
def test_too_many_tokens() -> None:
    with pytest.raises(ResourcesError, match="more than 200,000 words and symbols"):
        read("select " + "1," * 120_000 + "1")


_NESTED = {
    "brackets": ("select ", "(", "1", ")"),
    "row": ("select ", "row(", "1", ")"),
    "cast": ("select ", "cast(", "1", " as int)"),
    "subquery": ("select ", "(select ", "1", ")"),
    "from": ("select * from ", "(select * from ", "t", ") x"),
    "bracketed tables": ("select * from ", "(", "t", ")"),
    "bracketed joins": ("select * from ", "(", "t", " join u on a = b)"),
    "query then join": ("select * from ", "((select * from ", "t", ") x join y on 1 = 1)"),
    "array": ("select ", "array[", "1", "]"),
    "case": ("select ", "case when a then ", "1", " end"),
    "not": ("select ", "not ", "true", ""),
    "minus": ("select ", "- ", "1", ""),
    "lambda": ("select ", "transform(a, x -> ", "x", ")"),
    "in": ("select ", "1 in (", "1", ")"),
    "exists": ("select ", "exists (select * from t where ", "true", ")"),
    "with": ("with a as (", "with a as (", "select 1", ") select * from a"),
    "set operations": ("", "(", "select 1", ") union select 1"),
    "type": ("select cast(a as ", "array(", "int", ")"),
}


@pytest.mark.rule("LIM-4")
@pytest.mark.parametrize("name", _NESTED)
def test_nesting_works_up_to_the_limit_and_is_refused_beyond(name: str) -> None:
    start, opening, middle, closing = _NESTED[name]
    end = {"with": ") select * from a", "type": ")"}.get(name, "")
    per_level = max(1, opening.count("(") + opening.count("["))
    fits = 250 // per_level
    started = time.process_time()
    assert read(start + opening * fits + middle + closing * fits + end)
    with pytest.raises(ResourcesError, match="nests deeper than 256 levels") as caught:
        read(start + opening * 5_000 + middle + closing * 5_000 + end)
    assert caught.value.position is not None
    assert time.process_time() - started < 5


@pytest.mark.rule("LIM-4")
@pytest.mark.parametrize("operator", ["+", "*", "/", "||", "=", "-"])
def test_long_chains_work_and_longer_ones_fail_cleanly(operator: str) -> None:
    assert read("select " + operator.join(["a"] * 500))
    with pytest.raises(ResourcesError):
        read("select " + operator.join(["a"] * 10_000))


@pytest.mark.rule("LIM-4")
@pytest.mark.parametrize("suffix", ["[1]", "::int", ".b", " is null", " at time zone 'UTC'"])
def test_what_follows_again_and_again(suffix: str) -> None:
    assert read("select a" + suffix * 100)
    with pytest.raises(SqeError):
        read("select a" + suffix * 20_000)


@pytest.mark.rule("LIM-4")
def test_an_or_of_twenty_thousand_terms() -> None:
    sql = read("select * from t where " + " or ".join(f"a = {number}" for number in range(20_000)))
    assert sql.count(" OR ") == 19_999


@pytest.mark.rule("LIM-4")
def test_the_depth_can_be_configured() -> None:
    limits = TextLimits(max_depth=3)
    assert read("select ((1))", limits=limits)
    with pytest.raises(ResourcesError, match="deeper than 3 levels"):
        read("select ((((1))))", limits=limits)


@pytest.mark.rule("LIM-4")
def test_functions_that_repeat_their_arguments_cannot_be_piled_up() -> None:
    assert read("select greatest(greatest(greatest(a, b), c), d)")
    with pytest.raises(ResourcesError, match="Calls of greatest nest too deeply"):
        read("select " + "greatest(" * 30 + "a" + ", b)" * 30)


def test_brackets_inside_strings_do_not_count() -> None:
    assert read("select '" + "(" * 1_000 + "'")


@pytest.mark.rule("LIM-5")
@pytest.mark.parametrize("dialect", ["sqe", "trino", "spark"])
def test_a_cube_is_bounded_before_any_parser(dialect: str) -> None:
    read("SELECT 1 FROM t GROUP BY CUBE (" + ", ".join(f"(a{i}, b{i})" for i in range(12)) + ")", dialect)
    for cube in ("CUBE", "Cube", "GROUPING SETS (CUBE"):
        with pytest.raises(ResourcesError, match=r"CUBE of 25 expressions makes 2\^25 groupings") as caught:
            read(f"SELECT 1 FROM t GROUP BY {cube} (" + ", ".join(f"f(a{i}, 1)" for i in range(25)) + "))", dialect)
        assert caught.value.position is not None


@pytest.mark.rule("LIM-3")
@pytest.mark.parametrize(
    "literal",
    [
        "TIMESTAMP '2026-01-01 {}!'",
        "TIME '{}!'",
        "DATE '{}'",
        "INTERVAL '{}' DAY",
        "window(TIMESTAMP '2026-01-01 00:00:00', '{}')",
        "DECIMAL '{}x'",
        "CAST('{}' AS uuid)",
    ],
)
@pytest.mark.parametrize("text", ["a", " ", "1", "1 ", "a/", "1 day "])
def test_no_literal_is_read_again_and_again(literal: str, text: str) -> None:
    # Hours, if each of its places were a beginning: the time is that of a longer text, and no test could wait for it.
    with contextlib.suppress(SqeError):
        read(f"select {literal.format(text * (400_000 // len(text)))} as x")
