"""Scripts: semicolons outside strings, comments and quoted names; what goes on is not terminated."""

from __future__ import annotations

import pytest

from sqe_core.sql.reader import Reader


def split(script: str) -> list[tuple[str, bool]]:
    return [(one.text, one.terminated) for one in Reader().split(script)]


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        ("  \n", []),
        (";;", []),
        ("-- only a comment\n", []),
        ("select 1", [("select 1", False)]),
        ("select 1;", [("select 1", True)]),
        ("select 1; select 2", [("select 1", True), ("select 2", False)]),
        ("select ';' ; select 2;", [("select ';'", True), ("select 2", True)]),
        ('select ";" ; x', [('select ";"', True), ("x", False)]),
        ("select 1 -- ;\n + 2;", [("select 1 -- ;\n + 2", True)]),
        ("select /* ; */ 1;", [("select /* ; */ 1", True)]),
        ("select $$a;b$$;", [("select $$a;b$$", True)]),
        ("select $x$a;$$;b$x$; y", [("select $x$a;$$;b$x$", True), ("y", False)]),
        ("select 'it''s;';", [("select 'it''s;'", True)]),
        ("select 'open ; ", [("select 'open ;", False)]),
        ('select "open ; ', [('select "open ;', False)]),
        ("select /* open ; ", [("select /* open ;", False)]),
        ("select $$open ; ", [("select $$open ;", False)]),
        ("a; 'open", [("a", True), ("'open", False)]),
        ("a; /* c */", [("a", True)]),
        ("select `a`; b", [("select `a`", True), ("b", False)]),
        ("select 1€; b", [("select 1€", True), ("b", False)]),
        ("select 1a; b;", [("select 1a", True), ("b", True)]),
    ],
)
def test_splits_at_semicolons_only(script: str, statements: list[tuple[str, bool]]) -> None:
    assert split(script) == statements


def test_offsets_point_into_the_script() -> None:
    script = "  select 1;\n-- x\nselect 'ä;' ;"
    for one in Reader().split(script):
        assert script[one.offset :].startswith(one.text)
    assert [one.offset for one in Reader().split(script)] == [2, 17]
