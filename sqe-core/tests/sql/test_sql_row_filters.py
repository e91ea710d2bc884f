"""Row filters that look into mapping tables: what is run before them, and what is no such query."""

from __future__ import annotations

import pytest

from sqe_core.spi.errors import NotSupportedError, UserError
from sqe_core.sql.reader import Reader

FILTER = "a = 1 AND region NOT IN (SELECT m.r FROM c.n.m AS m WHERE m.u = current_user) OR b IN (SELECT x FROM c.n.o)"


@pytest.mark.rule("POL-5")
def test_values_stand_in_the_place_of_a_query() -> None:
    written, queries = Reader().translate_filter(FILTER, dialect="sqe", sizes=[2, 1])
    assert written == (
        "(`a` = 1 AND (`region` NOT IN (:_sqe_mapping_0_0, :_sqe_mapping_0_1))) OR `b` IN (:_sqe_mapping_1_0)"
    )
    assert queries == (
        "SELECT `m`.`r` FROM `c`.`n`.`m` AS `m` WHERE _sqe_eq(`m`.`u`, :_sqe_current_user)",
        "SELECT `x` FROM `c`.`n`.`o`",
    )


@pytest.mark.rule("POL-5")
def test_no_value_is_in_nothing() -> None:
    written, _ = Reader().translate_filter(FILTER, dialect="sqe", sizes=[0, 0])
    assert written == "(`a` = 1 AND (true)) OR false"


@pytest.mark.rule("POL-5")
@pytest.mark.parametrize("sizes", [None, [0, 2, 3], [1, 0, 1]])
def test_queries_have_the_same_numbers_whatever_others_find(sizes: list[int] | None) -> None:
    text = "(a IN (SELECT b FROM c.n.q0)) NOT IN (SELECT b FROM c.n.q1) AND region IN (SELECT r FROM c.n.q2)"
    written, queries = Reader().translate_filter(text, dialect="sqe", sizes=sizes)
    assert queries == Reader().translate_filter(text, dialect="sqe", sizes=None)[1]
    assert [query[-4:-1] for query in queries] == ["`q0", "`q1", "`q2"]
    assert written.endswith("`region` IN (:_sqe_mapping_2_0, :_sqe_mapping_2_1, :_sqe_mapping_2_2)") == (
        sizes == [0, 2, 3]
    )


@pytest.mark.rule("POL-5")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, b FROM c.n.t",
        "SELECT a FROM c.n.t ORDER BY a LIMIT 1",
        "SELECT a FROM c.n.t GROUP BY a",
        "SELECT a FROM c.n.t, c.n.u",
        "SELECT a FROM c.n.t JOIN c.n.u ON true",
        "SELECT a FROM c.n.t UNION SELECT b FROM c.n.u",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "SELECT a FROM c.n.t WHERE a IN (SELECT b FROM c.n.u)",
        "SELECT a FROM c.n.t QUALIFY row_number() OVER (ORDER BY a) = 1",
        "SELECT a FROM c.n.t FOR VERSION AS OF 3",
        "SELECT a FROM (SELECT 1 AS a)",
        "SELECT a FROM UNNEST(ARRAY[1]) AS u (a)",
        "SELECT 1",
        "VALUES 1",
    ],
)
def test_other_queries_look_nothing_up(query: str) -> None:
    with pytest.raises((NotSupportedError, UserError)):
        Reader().translate_filter(f"x IN ({query})", dialect="sqe", sizes=None)


@pytest.mark.rule("POL-5")
def test_other_places_of_queries_are_left_to_be_refused() -> None:
    reader = Reader()
    assert reader.translate_filter("x = (SELECT max(a) FROM c.n.t)", dialect="sqe", sizes=None)[1] == ()
    text = "x IN (SELECT a FROM c.n.t)"
    assert reader.translate_filter(text, dialect="spark", sizes=None) == ("x in (select a from c.n.t)", ())
    assert "SELECT" in reader.translate_expression(text, dialect="sqe")


@pytest.mark.rule("POL-5")
@pytest.mark.parametrize(
    ("text", "written", "none", "query"),
    [
        (
            "EXISTS (SELECT 1 FROM c.n.m AS m WHERE m.u = current_user AND m.r = region)",
            "coalesce(`region` IN (:_sqe_mapping_0_0), false)",
            "false",
            "SELECT `m`.`r` FROM `c`.`n`.`m` AS `m` WHERE _sqe_eq(`m`.`u`, :_sqe_current_user)",
        ),
        (
            "NOT EXISTS (SELECT * FROM c.n.m m WHERE upper(region) = m.r)",
            "NOT coalesce(_sqe_upper(`region`) IN (:_sqe_mapping_0_0), false)",
            "NOT false",
            "SELECT `m`.`r` FROM `c`.`n`.`m` AS `m`",
        ),
        (
            "EXISTS (SELECT x FROM c.n.m WHERE u = current_user)",
            "true",
            "false",
            "SELECT 1 FROM `c`.`n`.`m` WHERE _sqe_eq(`u`, :_sqe_current_user)",
        ),
    ],
)
def test_what_exists_is_looked_up(text: str, written: str, none: str, query: str) -> None:
    assert Reader().translate_filter(text, dialect="sqe", sizes=[1]) == (written, (query,))
    assert Reader().translate_filter(text, dialect="sqe", sizes=[0])[0] == none


@pytest.mark.rule("POL-5")
@pytest.mark.parametrize(
    "where",
    [
        "m.r = region AND m.level < level",
        "m.r = region AND m.s = state",
        "m.r = region OR m.u = current_user",
        "m.r = m.s || region",
        "m.r IN (SELECT 1)",
        "level > 3",
    ],
)
def test_other_forms_of_exists_are_refused(where: str) -> None:
    with pytest.raises((NotSupportedError, UserError)):
        Reader().translate_filter(f"EXISTS (SELECT 1 FROM c.n.m AS m WHERE {where})", dialect="sqe", sizes=None)


@pytest.mark.rule("POL-5")
def test_a_marker_of_ours_cannot_be_written() -> None:
    for text in ("x IN (:_sqe_mapping_0_0)", "x = _sqe_mapping_0_0", "x IN (?)"):
        with pytest.raises(UserError):
            Reader().translate_filter(text, dialect="sqe", sizes=[1])


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize(
    ("dialect", "text", "stored"),
    [
        ("sqe", "region   = 'EU' -- why\n ", "region = 'EU'"),
        ("sqe", "owner=current_user", "owner=current_user"),
        ("trino", "a /* x */ =\n 'b  -- c' || \"Q\"", "a = 'b  -- c' || \"Q\""),
        ("spark", '`a b`  = "x -- y" and current_user() = u -- z', '`a b` = "x -- y" and current_user() = u'),
        ("sqe", "x IN ( SELECT a\n FROM c.n.t )", "x IN ( SELECT a FROM c.n.t )"),
        ("sqe", "a = - /* */ -1", "a = - -1"),
    ],
)
def test_expressions_are_stored_without_comments_and_layout(dialect: str, text: str, stored: str) -> None:
    assert Reader().canonical(text, dialect=dialect) == stored
    assert Reader().canonical(stored, dialect=dialect) == stored
