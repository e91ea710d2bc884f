"""UPDATE, DELETE and MERGE below a row filter do what they would do if there were no hidden rows (DML-3, DML-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from governed import Govern, Governed, allow, own

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import SqeError
from sqe_core.spi.policy import Decision, NullMask

CANARIES = frozenset({"canary", "424242"})
COLUMNS = "id integer, dept varchar, name varchar, divisor integer, number varchar, pay integer"
VISIBLE = "(1, 'eng', 'Ann', 2, '17', 10), (2, 'eng', 'Bo', 5, '-3', 20), (3, 'eng', NULL, 1, '0', NULL)"
# Each raises when it is touched; the keys of the first two occur among the visible rows and in the source.
HIDDEN = (
    "(1, 'hr', 'canary', 0, 'canary', 424242), (9, 'hr', 'canary', 0, 'canary', 424242),"
    " (4, NULL, 'canary', 0, '', 424242)"
)

FORMS: Mapping[str, Decision] = {
    "a comparison": allow("dept = 'eng'"),
    "what could raise": allow("CAST(substring(dept, 1, 0) || '1' AS integer) = 1 AND reverse(dept) = 'gne'"),
}

# What the statement is, and how many rows of the visible ones it changes.
CHANGES: Mapping[str, int] = {
    "UPDATE {t} SET pay = 10 / divisor": 3,
    "UPDATE {t} SET pay = pay + 1 WHERE 10 / divisor > 2": 2,
    "UPDATE {t} SET name = upper(name), number = CAST(CAST(number AS integer) + 1 AS varchar) WHERE id = 1": 1,
    "UPDATE {t} AS x SET pay = (SELECT max(x) FROM other) WHERE x.id IN (SELECT id FROM {t} WHERE 4 / divisor > 1)": 2,
    "UPDATE {t} SET pay = 0 WHERE name = 'canary' OR pay = 424242": 0,
    "DELETE FROM {t} WHERE 10 / divisor < 10": 2,
    "DELETE FROM {t} WHERE id IN (1, 9)": 1,
    "DELETE FROM {t} WHERE dept = 'hr' OR dept IS NULL OR dept = 'eng'": 3,
    "DELETE FROM {t} WHERE EXISTS (SELECT 1 FROM other o WHERE o.id = {t}.id AND 10 / divisor > 0)": 2,
    "DELETE FROM {t} WHERE CAST(number AS integer) > 5": 1,
    "MERGE INTO {t} t USING other s ON t.id = s.id AND 10 / t.divisor > 0"
    " WHEN MATCHED AND CAST(t.number AS integer) > 0 THEN UPDATE SET pay = 100 / t.divisor"
    " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, dept, pay) VALUES (s.id, 'eng', s.x)": 4,
    # A hidden row has the key 9 as well: it is no match.
    "MERGE INTO {t} t USING other s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, dept) VALUES (s.id, 'eng')": 2,
    # No row is written, so none is refused.
    "MERGE INTO {t} t USING (SELECT * FROM other WHERE id < 3) s ON t.id = s.id"
    " WHEN NOT MATCHED THEN INSERT (id, dept) VALUES (s.id, 'hr')": 0,
    "MERGE INTO {t} t USING (SELECT * FROM other WHERE id < 3) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET pay = s.x"
    " WHEN NOT MATCHED BY SOURCE AND 10 / t.divisor > 0 THEN DELETE": 3,
    "MERGE INTO {t} t USING {t} s ON t.id = s.id AND s.divisor > 1 WHEN MATCHED THEN UPDATE SET pay = 9 / s.divisor": 2,
}

CASES = [(sql, form) for place, sql in enumerate(CHANGES) for form in FORMS if form == "a comparison" or place % 4 == 1]
ROW_TEXT = "A policy does not allow a row that the statement writes"


def new_table(sqe: EmbeddedSqe, name: str, values: str, more: str = "") -> None:
    sqe.execute(f"CREATE OR REPLACE TABLE {name} ({COLUMNS}){more}").close()
    sqe.execute(f"INSERT INTO {name} VALUES {values}").close()


@pytest.fixture(scope="module", autouse=True)
def source(sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE TABLE other (id integer, x integer)").close()
    sqe.execute("INSERT INTO other VALUES (1, 7), (2, 8), (9, 9), (11, 12)").close()


@pytest.fixture(scope="module")
def analyst(govern: Govern) -> Governed:
    return govern({}, canaries=CANARIES)


def changed(execute: Any, sql: str) -> int | None:
    result = execute(sql)
    result.close()
    return result.affected_rows


@pytest.mark.rule("DML-3", "DML-5", "ENF-17")
@pytest.mark.parametrize(("sql", "form"), CASES)
def test_hidden_rows_are_neither_touched_nor_counted(analyst: Governed, sqe: EmbeddedSqe, sql: str, form: str) -> None:
    new_table(sqe, "trapped", f"{VISIBLE}, {HIDDEN}")
    new_table(sqe, "free", VISIBLE)
    hidden = own(sqe, "SELECT * FROM trapped WHERE dept IS DISTINCT FROM 'eng' ORDER BY id")
    analyst.policies.decisions["trapped"] = FORMS[form]

    told = changed(lambda text: analyst.sqe.service.execute(analyst.session, text), sql.format(t="trapped"))

    assert told == CHANGES[sql] == changed(sqe.execute, sql.format(t="free"))
    everything = "SELECT * FROM {} WHERE dept = 'eng' ORDER BY id, pay"
    assert own(sqe, everything.format("trapped")) == own(sqe, everything.format("free"))
    assert own(sqe, "SELECT * FROM trapped WHERE dept IS DISTINCT FROM 'eng' ORDER BY id") == hidden


@pytest.mark.rule("DML-3")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE trapped SET dept = 'hr' WHERE id = 2",
        "UPDATE trapped SET dept = NULL",
        "MERGE INTO trapped t USING other s ON t.id = s.id WHEN MATCHED THEN UPDATE SET dept = 'canary'",
        "MERGE INTO trapped t USING other s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, dept) VALUES (s.id, 'hr')",
        "MERGE INTO trapped t USING other s ON t.id = s.id WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    ],
)
def test_a_row_that_would_be_hidden_is_not_written(analyst: Governed, sqe: EmbeddedSqe, sql: str) -> None:
    new_table(sqe, "trapped", f"{VISIBLE}, {HIDDEN}")
    before = own(sqe, "SELECT * FROM trapped ORDER BY id, dept")
    analyst.policies.decisions["trapped"] = allow("dept = 'eng'")

    error = analyst.refusal(sql)

    assert error.message == ROW_TEXT
    assert own(sqe, "SELECT * FROM trapped ORDER BY id, dept") == before


@pytest.mark.rule("DML-3")
def test_a_check_of_its_own_says_what_may_be_written(analyst: Governed, sqe: EmbeddedSqe) -> None:
    new_table(sqe, "trapped", f"{VISIBLE}, {HIDDEN}")
    analyst.policies.decisions["trapped"] = allow("dept = 'eng'", check=("pay < 50",))
    # Rows that do not satisfy it stay as they are, and may go.
    assert changed(lambda text: analyst.sqe.service.execute(analyst.session, text), "DELETE FROM trapped WHERE id = 3")
    analyst.run("UPDATE trapped SET dept = 'hr' WHERE id = 1")
    analyst.refusal("UPDATE trapped SET pay = 60 WHERE id = 2")
    assert own(sqe, "SELECT id, dept, pay FROM trapped WHERE divisor > 0 ORDER BY id") == [
        [1, "hr", 10],
        [2, "eng", 20],
    ]


@pytest.mark.rule("DML-5")
def test_two_matches_of_a_hidden_row_are_no_error(analyst: Governed, sqe: EmbeddedSqe) -> None:
    new_table(sqe, "trapped", f"{VISIBLE}, {HIDDEN}")
    analyst.policies.decisions["trapped"] = allow("dept = 'eng'")
    twice = "(SELECT * FROM (VALUES (9, 1), (9, 2)) AS v(id, x))"
    sql = f"MERGE INTO trapped t USING {twice} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET pay = s.x"
    assert changed(lambda text: analyst.sqe.service.execute(analyst.session, text), sql) == 0
    analyst.refusal(sql.replace("9", "2"))


@pytest.mark.rule("DML-2", "DML-4")
@pytest.mark.parametrize(
    ("decision", "sql"),
    [
        (allow("dept = 'eng'"), "DELETE FROM trapped"),
        (allow("dept = 'eng'"), "DELETE FROM trapped WHERE true"),
        (allow("dept = 'eng'"), "TRUNCATE TABLE trapped"),
        (allow("dept = 'eng'", pay=NullMask()), "UPDATE trapped SET id = 1"),
        (allow("dept = 'eng'", hidden=frozenset({"pay"})), "DELETE FROM trapped WHERE id = 1"),
        (allow(pay=NullMask()), "MERGE INTO trapped t USING other s ON t.id = s.id WHEN MATCHED THEN DELETE"),
    ],
)
def test_what_needs_the_whole_table_is_refused(
    analyst: Governed, sqe: EmbeddedSqe, decision: Decision, sql: str
) -> None:
    new_table(sqe, "trapped", f"{VISIBLE}, {HIDDEN}")
    analyst.policies.decisions["trapped"] = decision
    assert "restricted for you" in analyst.refusal(sql).message
    assert own(sqe, "SELECT count(*) FROM trapped") == [[6]]


@pytest.mark.rule("DML-3")
def test_whole_files_of_visible_rows_are_dropped(analyst: Governed, sqe: EmbeddedSqe) -> None:
    new_table(sqe, "trapped", VISIBLE, " WITH (partitioning = ARRAY['dept'])")
    sqe.execute(f"INSERT INTO trapped VALUES {HIDDEN}").close()
    analyst.policies.decisions["trapped"] = allow("dept = 'eng'")
    run = lambda text: analyst.sqe.service.execute(analyst.session, text)  # noqa: E731
    assert changed(run, "DELETE FROM trapped WHERE dept IN ('hr', 'eng')") == 3
    assert own(sqe, "SELECT count(*) FROM trapped") == [[3]]
    # A condition that every file of hidden rows satisfies.
    assert changed(run, "DELETE FROM trapped WHERE dept = 'hr'") == 0
    assert own(sqe, "SELECT count(*) FROM trapped") == [[3]]


@pytest.mark.rule("DML-3")
@pytest.mark.parametrize("condition", ["dept <> 'hr'", "dept < 'f'", "NOT dept >= 'f'", "dept = 'eng' OR dept < 'f'"])
@pytest.mark.parametrize("more", ["", " WITH (partitioning = ARRAY['dept'])"])
def test_a_file_of_rows_that_are_hidden_for_their_null_is_not_dropped(
    analyst: Governed, sqe: EmbeddedSqe, condition: str, more: str
) -> None:
    new_table(sqe, "trapped", VISIBLE, more)
    sqe.execute(f"INSERT INTO trapped VALUES {VISIBLE}, (4, NULL, 'canary', 1, '', 424242)").close()
    sqe.execute("INSERT INTO trapped VALUES (5, NULL, 'canary', 1, '', 424242)").close()
    analyst.policies.decisions["trapped"] = allow(condition)
    run = lambda text: analyst.sqe.service.execute(analyst.session, text)  # noqa: E731
    assert analyst.run("SELECT count(*) FROM trapped") == [[6]]
    assert changed(run, "DELETE FROM trapped WHERE id > 0") == 6
    assert own(sqe, "SELECT id FROM trapped ORDER BY id") == [[4], [5]]


@pytest.mark.rule("DML-5", "META-4")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE trapped SET pay = CAST(_pos AS integer)",
        "UPDATE trapped SET pay = 1 WHERE trapped._POS > 1",
        "DELETE FROM trapped WHERE _file LIKE '%a%'",
        'DELETE FROM trapped WHERE "_pos" > 1',
        "MERGE INTO trapped t USING other s ON t.id = s.id AND t._pos > 0 WHEN MATCHED THEN DELETE",
        "MERGE INTO trapped t USING other s ON t.id = s.id WHEN MATCHED THEN UPDATE SET pay = CAST(t._pos AS integer)",
    ],
)
def test_where_a_row_lies_is_not_told(analyst: Governed, sqe: EmbeddedSqe, sql: str) -> None:
    new_table(sqe, "trapped", f"{HIDDEN}, {VISIBLE}")
    analyst.policies.decisions["trapped"] = allow("dept = 'eng'")
    before = own(sqe, "SELECT * FROM trapped ORDER BY id, dept")
    analyst.refusal(sql)
    assert own(sqe, "SELECT * FROM trapped ORDER BY id, dept") == before


@pytest.mark.rule("META-5")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE trapped SET pay = 1 WHERE id = 2",
        "DELETE FROM trapped WHERE id = 2",
        "MERGE INTO trapped t USING other s ON t.id = s.id WHEN MATCHED THEN UPDATE SET pay = s.x",
        "MERGE INTO trapped t USING other s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "INSERT INTO trapped (id, dept) SELECT id, dept FROM trapped WHERE id > 1",
    ],
)
def test_a_plan_tells_nothing_of_the_policy(analyst: Governed, sqe: EmbeddedSqe, sql: str) -> None:
    new_table(sqe, "trapped", VISIBLE)
    analyst.policies.decisions["trapped"] = allow("dept = 'eng'")
    shown = repr(analyst.run(f"EXPLAIN {sql}"))
    assert "trapped" in shown
    assert not [word for word in ("eng", "_sqe", "sqe.", "partition_id", "raise", "_pos =") if word in shown], shown


@pytest.mark.rule("DML-3", "DML-6")
def test_a_table_of_ones_own_is_changed_by_what_one_sees_of_another(analyst: Governed, sqe: EmbeddedSqe) -> None:
    new_table(sqe, "trapped", f"{VISIBLE}, {HIDDEN}")
    sqe.execute("CREATE OR REPLACE VIEW over_trapped AS SELECT id FROM trapped").close()
    for table in ("trapped", "over_trapped"):
        sqe.execute("CREATE OR REPLACE TABLE own AS SELECT id, x FROM other").close()
        analyst.policies.decisions["trapped"] = allow("dept = 'eng' AND id = 2")
        analyst.run(f"DELETE FROM own WHERE id IN (SELECT id FROM {table})")
        assert own(sqe, "SELECT id FROM own ORDER BY id") == [[1], [9], [11]]
        analyst.run(f"UPDATE own SET x = 0 WHERE NOT EXISTS (SELECT 1 FROM {table} t WHERE t.id = own.id) AND id > 1")
        assert own(sqe, "SELECT id, x FROM own ORDER BY id") == [[1, 7], [9, 0], [11, 0]]


@pytest.mark.rule("DML-3")
def test_a_table_without_lists_of_deleted_rows_is_refused(analyst: Governed, sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE OR REPLACE TABLE oldest (id integer, dept varchar) WITH (format_version = 1)").close()
    sqe.execute("INSERT INTO oldest VALUES (1, 'eng'), (2, 'hr')").close()
    analyst.policies.decisions["oldest"] = allow("dept = 'eng'")
    for sql in ("UPDATE oldest SET id = 3", "DELETE FROM oldest WHERE id = 1"):
        with pytest.raises(SqeError):
            analyst.run(sql)
    assert own(sqe, "SELECT count(*) FROM oldest") == [[2]]
