"""Texts that readers take apart differently (TEST-6): where a string, a name, a comment ends."""

from __future__ import annotations

import pytest

from sqe_core.spi.errors import UserError
from sqe_core.sql.text.tokens import Kind, Lexicon, Text, fold, tokenize


def tokens(sql: str, lexicon: Lexicon = Lexicon.ANSI) -> list[tuple[Kind, str]]:
    return [(token.kind, token.value) for token in tokenize(Text(sql), lexicon)[:-1]]


@pytest.mark.rule("TEST-6")
@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'it''s'", "it's"),
        ("''", ""),
        ("''''", "'"),
        (r"'a\'", "a\\"),
        (r"'a\nb'", r"a\nb"),
        ("'a;b'", "a;b"),
        ("'-- no comment'", "-- no comment"),
        ("'/*'", "/*"),
        ("'a\nb'", "a\nb"),
        ("U&'\\0041'", "A"),
        ("u&'\\+01F600'", "😀"),
        ("U&'a\\\\b'", "a\\b"),
        ("$$a'b$$", "a'b"),
        ("$x$a$$b$x$", "a$$b"),
        ("'\u00a0'", "\u00a0"),
    ],
)
def test_ansi_strings(sql: str, value: str) -> None:
    assert tokens(sql) == [(Kind.STRING, value)]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ('"a""b"', 'a"b'),
        ('"A b"', "A b"),
        ('"a\'b"', "a'b"),
        ('"t$files"', "t$files"),
        ('U&"\\0041"', "A"),
        ('"--"', "--"),
    ],
)
def test_quoted_names_keep_case_and_everything_else(sql: str, value: str) -> None:
    assert tokens(sql) == [(Kind.QUOTED, value)]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("a -- b\n c", ["a", "c"]),
        ("a -- b\r c", ["a", "c"]),
        ("a -- b \\\n c", ["a", "c"]),
        ("a /* b */ c", ["a", "c"]),
        ("a /* /* b */ c", ["a", "c"]),
        ("a /*+ hint */ c", ["a", "c"]),
        ("a/**/b", ["a", "b"]),
        ("a--", ["a"]),
        ("a\t\r\n\f\vb", ["a", "b"]),
        ("a/*;*/b", ["a", "b"]),
    ],
)
def test_ansi_comments(sql: str, values: list[str]) -> None:
    assert [value for _, value in tokens(sql)] == values


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (r"'a\'b' c", ["a'b", "c"]),
        (r"'a''b' c", ["a'b", "c"]),
        (r"r'a\' b", ["a\\", "b"]),
        (r'"a\"b" c', ['a"b', "c"]),
        ("`a``b` c", ["a`b", "c"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("a -- b \\\n c\n d", ["a", "d"]),
        ("a /*+ x */ b", ["a", "/*+", "x", "*/", "b"]),
        ("1L 2.0BD a1 1a", ["1l", "2.0bd", "a1", "1a"]),
    ],
)
def test_spark_lexicon(sql: str, values: list[str]) -> None:
    assert [value for _, value in tokens(sql, Lexicon.SPARK)] == values


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("1", "1"),
        ("1.", "1."),
        (".5", ".5"),
        ("1.5e-3", "1.5e-3"),
        ("1_000", "1000"),
        ("0x1F", "31"),
        ("0b101", "5"),
        ("0o17", "15"),
    ],
)
def test_numbers_become_decimal(sql: str, value: str) -> None:
    assert tokens(sql) == [(Kind.NUMBER, value)]


def test_parameters_are_no_casts() -> None:
    assert tokens("?::int, :name, a::int") == [
        (Kind.PARAMETER, "?"),
        (Kind.SYMBOL, "::"),
        (Kind.WORD, "int"),
        (Kind.SYMBOL, ","),
        (Kind.PARAMETER, ":name"),
        (Kind.SYMBOL, ","),
        (Kind.WORD, "a"),
        (Kind.SYMBOL, "::"),
        (Kind.WORD, "int"),
    ]


@pytest.mark.rule("TEST-6")
@pytest.mark.parametrize(
    ("sql", "text", "hint"),
    [
        (
            "select 'x",
            "line 1:8: This string has no end",
            "close it with a single quote; a quote inside is written twice",
        ),
        ('select "x', "line 1:8: This quoted name has no end", "close it with a double quote"),
        ("select /* x", "line 1:8: This comment has no end", "close it with */"),
        ("select `a`", "line 1:8: Backticks do not quote names here", 'use double quotes, as in "my table"'),
        ("select a\u00a0b", "line 1:9: Invisible character U+00A0", "replace it with an ordinary space"),
        ("select a\u200bb", "line 1:9: Invisible character U+200B", "replace it with an ordinary space"),
        ("\ufeffselect 1", "line 1:1: Invisible character U+FEFF", "replace it with an ordinary space"),
        ("select \u2018a\u2019", "line 1:8: Typographic quote \u2018", "use ' for strings and \" for names"),
        (
            "select\n1abc",
            "line 2:1: A name cannot begin with a digit: 1abc",
            'put the name in double quotes, as in "2024_sales"',
        ),
        (
            "select t$files",
            'line 1:9: Unexpected "$"',
            'parameters are written ?, $1 or :name; names with $ need double quotes, as in "t$snapshots"',
        ),
        ("\\d", "line 1:1: Unexpected backslash", "commands that begin with a backslash belong to the sqe-cli shell"),
        ('select ""', "line 1:8: A quoted name is empty", None),
        ("select X'abc'", "line 1:8: A binary string needs an even number of hexadecimal digits", None),
        ("select 1__0", "line 1:8: Misplaced underscore in the number 1__0", None),
        ("select U&'\\D800'", "line 1:8: \\D800 is no character", None),
        ("select U&'\\12'", "line 1:8: Incomplete escape in a U& string; write \\0041, \\+000041 or \\\\", None),
    ],
)
def test_unreadable_text_is_named_with_its_place(sql: str, text: str, hint: str | None) -> None:
    with pytest.raises(UserError) as caught:
        tokens(sql)
    assert str(caught.value) == text
    assert caught.value.hint == hint


def test_positions_count_code_points_and_know_all_line_ends() -> None:
    text = Text("a\r\nb\rc\n😀d")
    places = [text.position(token.start) for token in tokenize(Text("a\r\nb\rc\nd"), Lexicon.ANSI)[:-1]]
    assert [(place.line, place.column) for place in places] == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert (text.position(8).line, text.position(8).column) == (4, 2)


def test_folding_never_changes_the_length() -> None:
    assert fold("ABCİÄ") == "abcİä"
