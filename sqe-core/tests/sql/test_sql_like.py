"""LIKE over names: what it means, and that no pattern takes long."""

from __future__ import annotations

import random

import pytest

from sqe_core.spi.errors import UserError
from sqe_core.sql.text.like import like_filter


def by_the_book(pattern: list[str], name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "%":
        return any(by_the_book(pattern[1:], name[start:]) for start in range(len(name) + 1))
    return bool(name) and pattern[0] in ("_", name[0]) and by_the_book(pattern[1:], name[1:])


def test_it_means_what_the_standard_says() -> None:
    chance = random.Random(1)
    matched = 0
    for _ in range(20_000):
        pattern = [chance.choice("ab%_") for _ in range(chance.randint(0, 7))]
        name = "".join(chance.choice("ab") for _ in range(chance.randint(0, 8)))
        expected = by_the_book(pattern, name)
        assert like_filter("".join(pattern))(name) is expected, (pattern, name)
        matched += expected
    assert matched > 2_000


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (None, "anything", True),
        ("%", "", True),
        ("%", "two\nlines", True),
        ("a\\_b", "a_b", True),
        ("a\\_b", "axb", False),
        ("100\\%", "100%", True),
        ("a\\", "a\\", True),
        ("a_c", "abbc", False),
        ("a.c", "abc", False),
        ("(", "(", True),
        ("(x)%", "(x)y", True),
        ("T%", "t", False),
    ],
)
def test_escapes_and_the_rest(pattern: str | None, name: str, matches: bool) -> None:
    assert like_filter(pattern)(name) is matches


@pytest.mark.rule("LIM-2")
@pytest.mark.parametrize("pattern", ["%_" * 40 + "!", "%a" * 40 + "%b", "%a%" * 100 + "b", "_%" * 300 + "c"])
def test_no_pattern_takes_long(pattern: str) -> None:
    # Each step more would double the time, in which nobody else's statement goes on.
    assert not like_filter(pattern)("a" * 250)


def test_a_pattern_has_a_length() -> None:
    with pytest.raises(UserError, match="1000 characters"):
        like_filter("%" * 1001)
