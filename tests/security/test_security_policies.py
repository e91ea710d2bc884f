"""Row filters and masks on the plan, met by hostile statements (ENF, POL, DML, META)."""

from __future__ import annotations

import datetime
import hashlib
import hmac

import pytest
from governed import Govern, Governed, allow

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import ErrorCode
from sqe_core.spi.identity import Identity
from sqe_core.spi.policy import (
    ConstantMask,
    Decision,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    RangeMask,
    SqlMask,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression

# Rows outside of the filter, and raw values below masks, are distinctive (TEST-2).
CANARIES = frozenset({"canary", "424242"})


@pytest.fixture(scope="module", autouse=True)
def tables(sqe: EmbeddedSqe) -> None:
    for sql in (
        "CREATE TABLE people (id integer, dept varchar, name varchar, pay integer, born date, divisor integer)",
        "INSERT INTO people VALUES (1, 'eng', 'Ann Lee', 100, DATE '1980-05-06', 1),"
        " (2, 'eng', 'Bo Ek', 250, DATE '1991-02-03', 2), (3, 'hr', 'canary', 424242, DATE '1970-01-01', 0),"
        " (4, NULL, 'canary', 424242, NULL, 0)",
        "CREATE TABLE depts (dept varchar, boss varchar)",
        "INSERT INTO depts VALUES ('eng', 'Zoe'), ('hr', 'canary')",
        "CREATE VIEW engineers AS SELECT id, name, pay FROM people",
    ):
        sqe.execute(sql).close()


@pytest.fixture(scope="module")
def eng(govern: Govern) -> Governed:
    """Sees the rows of one department."""
    return govern({"people": allow("dept = 'eng'"), "depts": allow("dept = 'eng'")}, canaries=CANARIES)


@pytest.mark.rule("ENF-9")
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT id FROM people ORDER BY 1", [[1], [2]]),
        ("SELECT count(*) FROM people", [[2]]),
        ("SELECT max(pay) FROM people", [[250]]),
        ("SELECT name FROM people WHERE pay > 200", [["Bo Ek"]]),
        ("SELECT id FROM people WHERE dept = 'hr' OR dept IS NULL OR true ORDER BY id", [[1], [2]]),
        ("WITH p AS (SELECT * FROM people) SELECT count(*) FROM p a, p b", [[4]]),
        ("SELECT p.id, d.boss FROM people p JOIN depts d USING (dept) ORDER BY 1", [[1, "Zoe"], [2, "Zoe"]]),
        ("SELECT p.id FROM people p FULL JOIN depts d ON p.dept <> d.dept ORDER BY 1 NULLS LAST", [[1], [2], [None]]),
        ("SELECT (SELECT sum(pay) FROM people)", [[350]]),
        ("SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.pay > p.pay)", [[1]]),
        ("SELECT id, sum(pay) OVER (ORDER BY id) FROM people ORDER BY 1", [[1, 100], [2, 350]]),
        ("SELECT id FROM people UNION SELECT -id FROM people ORDER BY 1", [[-2], [-1], [1], [2]]),
        ("SELECT id FROM people EXCEPT SELECT 1", [[2]]),
        ("SELECT name FROM engineers ORDER BY id", [["Ann Lee"], ["Bo Ek"]]),
        ("SELECT id FROM people TABLESAMPLE BERNOULLI (100) ORDER BY 1", [[1], [2]]),
    ],
)
def test_a_filtered_table_is_its_visible_rows_everywhere(eng: Governed, sql: str, rows: list[list[object]]) -> None:
    assert eng.run(sql) == rows


@pytest.mark.rule("ENF-14", "ENF-17")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM people WHERE 1 / divisor > 0 ORDER BY id",
        "SELECT id FROM people WHERE if(divisor = 0, CAST(name AS integer), 1) = 1 ORDER BY id",
        "SELECT id FROM people WHERE CASE WHEN pay = 424242 THEN 1 / 0 ELSE 1 END = 1 ORDER BY id",
        "SELECT p.id FROM people p JOIN depts d ON 1 / p.divisor > -1 AND p.dept = d.dept ORDER BY 1",
        "SELECT id FROM people GROUP BY id HAVING sum(1 / divisor) >= 0 ORDER BY 1",
        "SELECT id FROM (SELECT id, 1 / divisor AS q FROM people) WHERE q >= 0 ORDER BY 1",
        "SELECT id FROM people ORDER BY 1 / divisor DESC",
        "SELECT id FROM people WHERE id IN (SELECT id FROM people WHERE 10 / divisor > 1) ORDER BY 1",
    ],
)
def test_what_raises_on_a_hidden_row_never_meets_it(eng: Governed, sql: str) -> None:
    assert eng.run(sql) in ([[1], [2]], [[1]])


@pytest.mark.rule("META-4")
@pytest.mark.parametrize("kind", ["files", "partitions", "manifests", "snapshots", "history", "refs"])
def test_metadata_tables_of_a_filtered_table_are_not_there(eng: Governed, kind: str) -> None:
    assert eng.refusal(f'SELECT * FROM "people${kind}"').code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.rule("META-5", "ENF-8")
def test_explain_tells_nothing_of_the_filter(eng: Governed) -> None:
    told = repr(eng.run("EXPLAIN SELECT id FROM people WHERE pay > 10"))
    for word in ("eng", "spark_partition_id", "_sqe_", "dept", "physical"):
        assert word not in told, told


@pytest.mark.rule("POL-6")
@pytest.mark.parametrize(
    "text",
    [
        "departement = 'eng'",
        "people.dept = 'eng'",
        "dept = 'eng') OR (true",
        "dept = 'eng', true",
        "dept IN (SELECT dept FROM depts)",
        "EXISTS (SELECT 1)",
        "dept",
        "count(*) > 0",
        "row_number() OVER (ORDER BY id) > 0",
        "rand() < 2",
        "reflect('java.lang.System', 'getenv') IS NOT NULL",
        "raise_error('x') IS NULL",
        "dept = :x",
        "dept = ?",
        "",
        "1",
    ],
)
def test_a_filter_that_cannot_be_applied_refuses_the_statement(govern: Govern, text: str) -> None:
    analyst = govern({"people": allow(text)}, canaries=CANARIES)
    refused = analyst.refusal("SELECT id FROM people")
    assert refused.message == "A policy on what the statement reads cannot be applied"
    assert analyst.run("SELECT count(*) FROM depts") == [[2]]


@pytest.mark.rule("POL-11")
@pytest.mark.parametrize("text", ["10 / divisor > 1", "CAST(name AS integer) = 1", "element_at(array[1], divisor) = 1"])
def test_an_error_in_a_filter_hides_the_row(govern: Govern, text: str) -> None:
    analyst = govern({"people": allow(text)}, canaries=CANARIES)
    assert len(analyst.run("SELECT id FROM people")) <= 2


@pytest.mark.rule("POL-7")
def test_who_asks_enters_as_a_value_and_never_as_text(govern: Govern) -> None:
    who = Identity(
        issuer="test",
        subject="1",
        username="x' OR '1'='1",
        provider="test",
        roles=frozenset({"eng", "it's"}),
        groups=frozenset({"staff"}),
        claims={"dept": "eng", "evil": "x\\' OR 1=1 -- ", "level": 3, "many": ("a",)},
    )
    for text, ids in (
        ("dept = current_user_attr('dept')", [1, 2]),
        ("dept = current_user_attr('evil')", []),
        ("dept = current_user_attr('nothing')", []),
        ("name = current_user OR name = current_user()", []),
        ("is_role_in_session('eng') AND dept = 'eng'", [1, 2]),
        ("is_role_in_session('hr')", []),
        ("is_group_member('staff') AND id = 1", [1]),
        ("contains(current_available_roles(), dept)", [1, 2]),
        ("id < CAST(current_user_attr('level') AS integer)", [1, 2]),
        ("dept = current_user_attr('many')", None),
        ("dept = current_user_attr(name)", None),
    ):
        analyst = govern({"people": allow(text)}, identity=who)
        if ids is None:
            assert analyst.refusal("SELECT id FROM people").code is ErrorCode.EXECUTION_FAILED
        else:
            assert [row[0] for row in analyst.run("SELECT id FROM people ORDER BY id")] == ids, text


@pytest.mark.rule("POL-8")
def test_a_role_that_is_left_out_sheds_no_condition(govern: Govern) -> None:
    who = Identity(
        issuer="test",
        subject="2",
        username="bob",
        provider="test",
        roles=frozenset({"eng"}),
        all_roles=frozenset({"eng", "intern"}),
    )
    analyst = govern({"people": allow("NOT is_role_in_session('intern')")}, identity=who)
    assert analyst.run("SELECT id FROM people") == []
    analyst.policies.decisions["people"] = allow("is_role_in_session('intern')")
    assert analyst.run("SELECT id FROM people") == []
    analyst.policies.decisions["people"] = allow("is_role_in_session('eng') AND id = 1")
    assert analyst.run("SELECT id FROM people") == [[1]]
    analyst.policies.decisions["people"] = allow("current_role NOT LIKE '%intern%'")
    assert analyst.run("SELECT id FROM people") == []
    analyst.policies.decisions["people"] = allow("current_role LIKE 'eng%' AND id = 1")
    assert analyst.run("SELECT id FROM people") == [[1]]


@pytest.mark.rule("POL-12")
def test_masks_keep_the_type_and_stand_before_everything_the_user_writes(govern: Govern) -> None:
    analyst = govern(
        {
            "people": allow(
                name=PartialMask(show_first=1, show_last=2),
                pay=RangeMask(width=100),
                born=YearMask(),
                dept=ConstantMask(value="***"),
            )
        }
    )
    assert analyst.run("SELECT id, dept, name, pay, born FROM people WHERE id < 3 ORDER BY id") == [
        [1, "***", "Axx Xee", 100, datetime.date(1980, 1, 1)],
        [2, "***", "Bx Ek", 200, datetime.date(1991, 1, 1)],
    ]
    assert analyst.run("SELECT count(*) FROM people WHERE dept = 'eng'") == [[0]]
    assert analyst.run("SELECT count(*) FROM people WHERE pay = 250") == [[0]]
    assert analyst.run("SELECT dept, count(*) FROM people GROUP BY dept") == [["***", 4]]
    assert analyst.run("SELECT p.id FROM people p JOIN depts d USING (dept)") == []


@pytest.mark.rule("POL-12")
@pytest.mark.parametrize("column", ["id", "dept", "pay", "born"])
@pytest.mark.parametrize(
    "mask",
    [NullMask(), ConstantMask(), HashMask(), PartialMask(), RangeMask(width=10), YearMask()],
    ids=lambda mask: type(mask).__name__,
)
def test_every_mask_answers_for_every_type(sqe: EmbeddedSqe, govern: Govern, column: str, mask: Mask) -> None:
    analyst = govern({"people": allow(**{column: mask})})
    governed = analyst.sqe.service.execute(analyst.session, f"SELECT {column} FROM people")
    plain = sqe.execute(f"SELECT {column} FROM people")
    assert governed.schema is not None
    assert plain.schema is not None
    assert governed.schema.field(0).type == plain.schema.field(0).type
    values = [value for batch in governed for value in batch.column(0).to_pylist()]
    raw = [value for batch in plain for value in batch.column(0).to_pylist()]
    assert len(values) == len(raw)
    if not isinstance(mask, RangeMask | YearMask | PartialMask):
        assert not set(values) & (set(raw) - {None})


@pytest.mark.rule("POL-12")
def test_a_hash_is_keyed_and_users_cannot_compute_it(govern: Govern) -> None:
    analyst = govern({"people": allow(name=HashMask())})
    expected = hmac.new(b"mask key", b"Ann Lee", hashlib.sha256).hexdigest()
    assert analyst.run("SELECT name FROM people WHERE id = 1") == [[expected]]
    assert analyst.run(f"SELECT id FROM people WHERE name = '{expected}'") == [[1]]


@pytest.mark.rule("POL-11")
def test_an_expression_mask_may_read_the_row_and_never_raises(govern: Govern) -> None:
    analyst = govern(
        {
            "people": allow(
                hidden=frozenset({"divisor"}),
                pay=SqlMask(expression=SqlExpression(text="{col} / divisor")),
                name=SqlMask(expression=SqlExpression(text="upper({col}) || '/' || dept")),
                born=SqlMask(expression=SqlExpression(text="id")),
            )
        },
    )
    # An int is no date: the mask gives no value of the column's type, so the policy cannot be applied.
    assert analyst.refusal("SELECT pay FROM people").code is ErrorCode.EXECUTION_FAILED
    analyst.policies.decisions["people"] = allow(
        hidden=frozenset({"divisor"}),
        pay=SqlMask(expression=SqlExpression(text="{col} / divisor")),
        name=SqlMask(expression=SqlExpression(text="upper({col}) || '/' || dept")),
    )
    assert analyst.run("SELECT pay, name FROM people ORDER BY id") == [
        [100, "ANN LEE/eng"],
        [125, "BO EK/eng"],
        [None, "CANARY/hr"],
        [None, None],
    ]


@pytest.mark.rule("VIEW-2")
def test_policies_of_a_view_hold_besides_those_of_its_tables(govern: Govern) -> None:
    analyst = govern(
        {
            "people": allow("dept = 'eng'"),
            "engineers": allow("id > 1", pay=NullMask()),
        },
        canaries=CANARIES,
    )
    assert analyst.run("SELECT * FROM engineers") == [[2, "Bo Ek", None]]
    assert analyst.run("SELECT a.id FROM engineers a, engineers b WHERE a.pay IS NULL") == [[2]]
    assert analyst.run("SELECT id FROM engineers WHERE 1 / (id - 1) > 0") == [[2]]


@pytest.mark.rule("NAME-5")
def test_todays_policy_holds_for_yesterdays_rows(sqe: EmbeddedSqe, govern: Govern) -> None:
    for sql in (
        "CREATE TABLE moved (id integer, dept varchar)",
        "INSERT INTO moved VALUES (1, 'eng'), (2, 'hr')",
        "ALTER TABLE moved ADD COLUMN level integer",
        "INSERT INTO moved VALUES (3, 'eng', 1), (4, 'hr', 1)",
    ):
        sqe.execute(sql).close()
    first = min(
        (row["committed_at"], row["snapshot_id"])
        for batch in sqe.execute('SELECT committed_at, snapshot_id FROM "moved$snapshots"')
        for row in batch.to_pylist()
    )[1]
    analyst = govern({"moved": allow("dept = 'eng'")})
    assert analyst.run(f"SELECT * FROM moved FOR VERSION AS OF {first}") == [[1, "eng"]]
    assert analyst.run("SELECT * FROM moved ORDER BY id") == [[1, "eng", None], [3, "eng", 1]]
    analyst.policies.decisions["moved"] = allow("level = 1")
    assert analyst.run("SELECT id FROM moved ORDER BY id") == [[3], [4]]
    analyst.refusal(f"SELECT * FROM moved FOR VERSION AS OF {first}")


@pytest.mark.rule("DML-2", "DML-4")
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM people",
        "INSERT OVERWRITE people SELECT * FROM people",
        "TRUNCATE TABLE people",
        "DROP TABLE people",
        "ALTER TABLE people RENAME TO persons",
        "CREATE OR REPLACE TABLE people AS SELECT 1 AS id",
        "CREATE TABLE copied (LIKE people)",
    ],
)
def test_what_is_seen_in_part_is_not_changed_as_a_whole(eng: Governed, sqe: EmbeddedSqe, sql: str) -> None:
    eng.refusal(sql)
    assert sum(batch.num_rows for batch in sqe.execute("SELECT id FROM people")) == 4


@pytest.mark.rule("DML-6")
def test_a_copy_holds_what_the_user_sees(govern: Govern, sqe: EmbeddedSqe) -> None:
    analyst = govern({"people": allow("dept = 'eng'", name=NullMask())}, canaries=CANARIES)
    analyst.run("CREATE TABLE copy_of AS SELECT id, name, pay FROM people")
    rows = [row for batch in sqe.execute("SELECT * FROM copy_of ORDER BY id") for row in batch.to_pylist()]
    assert rows == [{"id": 1, "name": None, "pay": 100}, {"id": 2, "name": None, "pay": 250}]


@pytest.mark.rule("FLT-4")
def test_a_prepared_statement_is_decided_again(govern: Govern) -> None:
    analyst = govern({"people": allow("dept = 'eng'")}, canaries=CANARIES)
    assert analyst.run("SELECT id FROM people WHERE id >= ? ORDER BY id", parameters=[1]) == [[1], [2]]
    analyst.policies.decisions["people"] = allow("id = 2")
    assert analyst.run("SELECT id FROM people WHERE id >= ? ORDER BY id", parameters=[1]) == [[2]]
    analyst.policies.decisions["people"] = Decision.deny("no")
    assert analyst.refusal("SELECT id FROM people").code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.rule("ENF-10")
def test_a_filter_that_is_false_is_an_empty_table(govern: Govern) -> None:
    analyst = govern({"people": allow("false")}, canaries=CANARIES)
    assert analyst.run("SELECT * FROM people") == []
    assert analyst.run("SELECT count(*) FROM people") == [[0]]
    everything_hidden = frozenset({"id", "dept", "name", "pay", "born", "divisor"})
    analyst.policies.decisions["people"] = allow("true", hidden=everything_hidden)
    assert analyst.refusal("SELECT * FROM people").code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.rule("POL-3")
def test_all_tables_are_one_question(govern: Govern) -> None:
    analyst = govern({"people": allow("dept = 'eng'")})
    analyst.policies.asked.clear()
    analyst.run("SELECT count(*) FROM people p JOIN depts d USING (dept) JOIN people q USING (id)")

    assert len(analyst.policies.asked) == 1


@pytest.mark.rule("DML-3")
def test_written_rows_have_to_satisfy_the_policy(govern: Govern, sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE TABLE posts (id integer, dept varchar, text varchar)").close()
    analyst = govern({"posts": allow("dept = 'eng'")}, canaries=CANARIES)
    analyst.run("INSERT INTO posts VALUES (1, 'eng', 'a')")
    analyst.run("INSERT INTO posts (id, dept) SELECT id + 1, dept FROM posts")
    analyst.run("INSERT INTO posts SELECT p.id + 10, p.dept, 'x' FROM posts p JOIN posts q ON p.id = q.id")
    for sql in (
        "INSERT INTO posts VALUES (3, 'hr', 'canary')",
        "INSERT INTO posts VALUES (3, NULL, 'canary')",
        "INSERT INTO posts (id) VALUES (3)",
        "INSERT INTO posts SELECT id, 'h' || 'r', text FROM posts",
        "INSERT INTO posts VALUES (3, 'eng', 'a'), (4, 'hr', 'b')",
    ):
        refused = analyst.refusal(sql)
        assert refused.code is ErrorCode.ACCESS_DENIED
        assert refused.message == "A policy does not allow a row that the statement writes"
    assert analyst.run("SELECT id FROM posts ORDER BY id") == [[1], [2], [11], [12]]
    # Another condition for what is written than for what is read.
    analyst.policies.decisions["posts"] = allow("dept = 'eng'", check=("id > 100",))
    analyst.refusal("INSERT INTO posts VALUES (99, 'eng', 'a')")
    analyst.run("INSERT INTO posts VALUES (101, 'hr', 'a')")
    assert analyst.run("SELECT count(*) FROM posts") == [[4]]
    # Nothing may be written, though everything may be read.
    analyst.policies.decisions["posts"] = allow(check=("false",))
    analyst.refusal("INSERT INTO posts VALUES (102, 'eng', 'a')")
    assert analyst.run("SELECT count(*) FROM posts") == [[5]]


@pytest.mark.rule("DML-2", "ERR-5")
def test_rows_are_inserted_without_the_columns_that_are_kept(govern: Govern, sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE TABLE cards (id integer, owner varchar, number_canary varchar, pin varchar)").close()
    analyst = govern({"cards": allow(hidden=frozenset({"number_canary"}), pin=NullMask())})
    analyst.run("INSERT INTO cards (id, owner) VALUES (1, 'ann')")
    analyst.run("INSERT INTO cards (owner, id) SELECT owner, id + 1 FROM cards")
    for sql, code in (
        ("INSERT INTO cards VALUES (1, 'ann', 'x', 'y')", ErrorCode.NOT_SUPPORTED),
        ("INSERT INTO cards VALUES (1, 'ann')", ErrorCode.NOT_SUPPORTED),
        ("INSERT INTO cards SELECT * FROM cards", ErrorCode.NOT_SUPPORTED),
        ("INSERT INTO cards (id, pin) VALUES (1, 'y')", ErrorCode.NOT_SUPPORTED),
        ("INSERT OVERWRITE cards SELECT * FROM cards", ErrorCode.NOT_SUPPORTED),
    ):
        assert analyst.refusal(sql).code is code
    hidden = analyst.refusal("INSERT INTO cards (id, number_canary) VALUES (1, 'x')")
    missing = analyst.refusal("INSERT INTO cards (id, missing_canar) VALUES (1, 'x')")
    assert (hidden.code, hidden.position, hidden.hint) == (missing.code, missing.position, missing.hint)
    assert hidden.message.replace("number_canary", "x") == missing.message.replace("missing_canar", "x")
    rows = [row for batch in sqe.execute("SELECT * FROM cards ORDER BY id") for row in batch.to_pylist()]
    assert rows == [
        {"id": 1, "owner": "ann", "number_canary": None, "pin": None},
        {"id": 2, "owner": "ann", "number_canary": None, "pin": None},
    ]


@pytest.mark.rule("META-4", "NAME-5")
def test_times_and_names_tell_nothing_of_a_restricted_tables_history(sqe: EmbeddedSqe, eng: Governed) -> None:
    (snapshot,) = sqe.execute('SELECT max(snapshot_id) AS s FROM "people$snapshots"').read_all().column("s").to_pylist()
    sqe.execute("ALTER TABLE people CREATE TAG monday").close()
    travels = [
        "FOR TIMESTAMP AS OF TIMESTAMP '1999-01-01 00:00:00'",
        "FOR TIMESTAMP AS OF TIMESTAMP '2999-01-01 00:00:00'",
        "FOR VERSION AS OF 'main'",
        "FOR VERSION AS OF 'monday'",
        "FOR VERSION AS OF 'tuesday'",
    ]
    told = {eng.refusal(f"SELECT id FROM people {travel}").message for travel in travels}
    assert told == {"A table of which you see a part is read as it is now, or at the id of a snapshot"}
    assert eng.run(f"SELECT id FROM people FOR VERSION AS OF {snapshot} ORDER BY id") == [[1], [2]]
