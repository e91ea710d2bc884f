"""Statements without their literals: parsable or not, in each way of writing quotes."""

from __future__ import annotations

import random

import pytest

from sqe_core.sql.text.redact import redact, without_secrets

CANARY = "kanarienvogel"


@pytest.mark.rule("OBS-3")
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t WHERE b = 'x' AND c > 12.5e3", "SELECT a FROM t WHERE b = ? AND c > ?"),
        ("SELECT 'it''s', X'CAFE', U&'\\0041', $$raw$$, $q$a $$ b$q$", "SELECT ?, ?, ?, ?, ?"),
        ('SELECT "a b", U&"c" FROM "d"."e$snapshots"', 'SELECT "a b", U&"c" FROM "d"."e$snapshots"'),
        ("SELECT DATE '2020-01-02', INTERVAL '3' DAY, 0xFF, 1_000", "SELECT DATE ?, INTERVAL ? DAY, ?, ?"),
        ("SELECT ?, :name, a::int /* 'hidden' */ -- gone\n, b", "SELECT ?, :name, a::int , b"),
        ("  SELECT\n\t1  ", "SELECT ?"),
        ("SELECT t1.c2 FROM t1", "SELECT t1.c2 FROM t1"),
        ("SELECT TRUE, NULL", "SELECT TRUE, NULL"),
        ("SELECT 12abc, 'a'bc", "SELECT ??, ??"),
        ("", ""),
    ],
)
def test_ansi(sql: str, expected: str) -> None:
    assert redact(sql).text == expected


@pytest.mark.rule("OBS-3")
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT \"text\", 'it\\'s mine', r'raw\\', `a b`", "SELECT ?, ?, ?, `a b`"),
        ("SELECT /* a /* 'b' */ 'c' */ 1L, 2.5BD", "SELECT ?, ?"),
        ("SELECT /*+ BROADCAST(t) */ a FROM t", "SELECT /*+ BROADCAST(t) */ a FROM t"),
    ],
)
def test_spark(sql: str, expected: str) -> None:
    assert redact(sql, "spark").text == expected


@pytest.mark.rule("OBS-3")
@pytest.mark.parametrize("dialect", ["sqe", "trino", "spark"])
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT '{CANARY}",
        f"SELECT 1 /* {CANARY}",
        f"SELECT $${CANARY}",
        f"SELECT \u2018{CANARY}\u2019 FROM t",
        f"SELEKT FORM '{CANARY}' WHERE (((",
        f"SELECT 'a'{CANARY}",
        f"SELECT x -- {CANARY}",
        f"SELECT '{CANARY}' '{CANARY}'",
        f"\x00 {CANARY}",
        f'CREATE SECRET s (TYPE s3, SECRET "{CANARY}")',
        f"CREATE SECRET s (TYPE s3, TOKEN = '{CANARY}')",
    ],
)
def test_what_nobody_can_parse_keeps_nothing_either(sql: str, dialect: str) -> None:
    assert CANARY not in redact(sql, dialect).text


@pytest.mark.rule("OBS-3")
def test_a_redacted_text_is_one_printable_line() -> None:
    text = redact('SELECT\r\n"a\nb\u202e" FROM\x0bt').text
    assert text == 'SELECT "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}" FROM t'
    assert text.isprintable()


@pytest.mark.rule("OBS-3")
@pytest.mark.parametrize("seed", range(20))
def test_a_string_is_gone_wherever_it_stands(seed: int) -> None:
    chosen = random.Random(seed)
    pieces = ["SELECT", " ", "\n", "''", "'x''y'", "a", '"n"', "1", "(", ")", "--c\n", "/*c*/", ",", "$$z$$", "x.y"]
    before = "".join(chosen.choices(pieces, k=20))
    after = "".join(chosen.choices(pieces, k=20))
    # Whatever stands around it: inside a comment it is one, outside it is a string.
    assert CANARY not in redact(f"{before} '{CANARY}' {after}").text


def test_the_values_are_taken_out_of_messages_too() -> None:
    redacted = redact("SELECT CAST('abc-def' AS int), 20240131, 'it''s' FROM t LIMIT 5")
    assert redacted.hide("The value 'abc-def' cannot be cast to int") == "The value ? cannot be cast to int"
    assert redacted.hide("20240131 is no date; at most 5 columns") == "? is no date; at most 5 columns"
    assert redacted.hide("cannot read it's") == "cannot read ?"
    assert redacted.hide("120240131 abc-definite") == "120240131 abc-definite"


@pytest.mark.rule("OBS-2")
def test_the_full_text_has_no_secrets() -> None:
    assert without_secrets("SELECT 'a', 5 /* why */ FROM t") == "SELECT 'a', 5 FROM t"
    assert without_secrets("SET x.client_secret = 'abc'") == "SET x.client_secret = ?"
    assert without_secrets("f(password => 'abc', id => 'x')") == "f(password => ?, id => 'x')"
    assert without_secrets("create secret s (type s3, key_id 'AKIA', region 'eu')") == (
        "create secret s (type ?, ? ?, region ?)"
    )


def test_much_text_takes_little_time() -> None:
    sql = "SELECT " + ", ".join(f"'value {number}'" for number in range(3000))
    assert redact(sql).text.count("?") == 3000
    assert len(redact(sql).values) <= 1010
