"""PREPARE, EXECUTE and their like: text that is judged as if it had been sent, and what an attacker may try with it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from handler_lake import ALICE, BOB, ROOT, Lake

from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError


def test_values_are_values(lake: Lake) -> None:
    lake.run(ALICE, "PREPARE p FROM SELECT name FROM people WHERE city = ?")
    assert lake.run(ALICE, "EXECUTE p USING 'Oslo'") == [("ben",)]
    assert lake.run(ALICE, "EXECUTE p USING 'Oslo'' OR city = ''Rome'") == []
    assert lake.refusal(ALICE, "EXECUTE p").message == "The statement has 1 parameter, 0 given"
    assert lake.refusal(ALICE, "EXECUTE p USING 'a', 'b'").code is ErrorCode.INVALID_ARGUMENTS
    assert lake.refusal(ALICE, "EXECUTE p USING city").message.endswith("A value of EXECUTE must be a literal")
    assert lake.refusal(ALICE, "EXECUTE p USING 'a'", "b").message == "This statement takes no parameters"


def test_a_name_is_taken_over_and_given_back(lake: Lake) -> None:
    lake.run(ALICE, "PREPARE p FROM SELECT 1 AS one")
    lake.run(ALICE, "PREPARE p FROM SELECT 2 AS two")
    assert lake.run(ALICE, "EXECUTE p") == [(2,)]
    lake.run(ALICE, "DEALLOCATE PREPARE p")
    assert lake.events[-1].statement_kind == "deallocate"
    for sql in ("EXECUTE p", "DEALLOCATE PREPARE p", "DESCRIBE INPUT p", "DESCRIBE OUTPUT p"):
        assert lake.refusal(ALICE, sql).message == "Prepared statement p does not exist"


def test_immediately(lake: Lake) -> None:
    assert lake.run(ALICE, "EXECUTE IMMEDIATE 'SELECT name FROM people WHERE city = ?' USING 'Rome'") == [("ann",)]
    assert lake.run(ALICE, "EXECUTE IMMEDIATE 'SHOW CATALOGS'") == [("lake",), ("other",)]


def test_statements_that_change_something(lake: Lake) -> None:
    lake.run(ALICE, "PREPARE p FROM INSERT INTO people SELECT ? AS id, 'cy' AS name, 'Bonn' AS city")
    for number in (3, 4):
        lake.run(ALICE, f"EXECUTE p USING {number}")
    assert lake.run(ALICE, "SELECT id FROM people WHERE city = 'Bonn'") == [(3,), (4,)]
    lake.run(ALICE, "PREPARE d FROM CREATE SCHEMA made")
    lake.run(ALICE, "EXECUTE d")
    assert ("made",) in lake.run(ALICE, "SHOW SCHEMAS")


def test_descriptions(lake: Lake) -> None:
    lake.run(ALICE, "PREPARE p FROM SELECT id, name AS who FROM people WHERE city = ?")
    assert lake.run(ALICE, "DESCRIBE OUTPUT p") == [
        ("id", "", "", "", "integer", 0, False),
        ("who", "", "", "", "varchar", 0, False),
    ]
    assert [row[0] for row in lake.run(ALICE, "DESCRIBE INPUT p")] == [0]
    lake.run(ALICE, "PREPARE s FROM SHOW CATALOGS")
    assert lake.run(ALICE, "DESCRIBE INPUT s") == []
    assert lake.run(ALICE, "DESCRIBE OUTPUT s") == [("catalog", "", "", "", "varchar", 0, False)]
    lake.run(ALICE, "PREPARE w FROM TRUNCATE TABLE people")
    assert lake.run(ALICE, "DESCRIBE OUTPUT w") == []


@pytest.mark.parametrize("sql", ["DESCRIBE OUTPUT p", "DESCRIBE INPUT p", "EXECUTE p USING 1"])
def test_the_dialect_of_the_request_counts(lake: Lake, sql: str) -> None:
    session, service = lake.session(ALICE), lake.sqe.service
    service.execute(session, "PREPARE p FROM SELECT `id` FROM people WHERE id = ?", dialect="spark").close()
    assert service.execute(session, sql, dialect="spark").read_all().num_rows == 1
    assert lake.refusal(ALICE, sql).message.startswith("Backticks")


def test_what_is_planned_and_described(lake: Lake) -> None:
    session, service = lake.session(ALICE), lake.sqe.service
    lake.run(ALICE, "PREPARE p FROM SELECT name FROM people WHERE city = ?")
    plan = service.plan(session, "EXECUTE p USING 'Oslo'")
    assert plan.schema == pa.schema([("name", pa.string())])
    assert plan.start().read_all().to_pylist() == [{"name": "ben"}]
    described = service.describe(session, "EXECUTE p USING 'Oslo'")
    assert (described.schema, len(described.parameters)) == (plan.schema, 0)


@pytest.mark.rule("TRI-6")
@pytest.mark.parametrize(
    "sql",
    [
        "PREPARE p FROM PREPARE q FROM SELECT 1",
        "PREPARE p FROM EXECUTE q",
        "PREPARE p FROM EXECUTE IMMEDIATE 'SELECT 1'",
        "PREPARE p FROM DEALLOCATE PREPARE q",
        "PREPARE p FROM DESCRIBE INPUT q",
        "PREPARE p FROM CREATE SECRET s (TYPE s3, secret_access_key 'x')",
        "PREPARE p FROM SELECT 1; SELECT 2",
        "PREPARE p FROM SELEC 1",
        "PREPARE p FROM",
        "PREPARE _sqe_p FROM SELECT 1",
        "EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''SELECT 1'''",
        "EXECUTE IMMEDIATE 'EXECUTE p'",
        "EXECUTE IMMEDIATE 'PREPARE p FROM EXECUTE q'",
        "EXECUTE IMMEDIATE 'SELECT 1; DROP TABLE people'",
        "EXECUTE IMMEDIATE 'ADD JAR ''x.jar'''",
        "EXECUTE IMMEDIATE 'SELECT 1' || ''",
        "EXECUTE IMMEDIATE p",
        "EXPLAIN EXECUTE p",
        "CREATE VIEW v AS EXECUTE p",
    ],
)
def test_nothing_is_nested_or_hidden(lake: Lake, sql: str) -> None:
    lake.run(ALICE, "PREPARE q FROM SELECT 1 AS one")
    assert isinstance(lake.refusal(ALICE, sql), UserError | NotSupportedError)
    assert lake.refusal(ALICE, "EXECUTE p").message == "Prepared statement p does not exist"
    assert lake.run(ALICE, "EXECUTE q") == [(1,)]


@pytest.mark.rule("TRI-6", "ERR-5")
def test_prepared_text_is_judged_when_it_is_executed(lake: Lake) -> None:
    lake.root(
        "CREATE SCHEMA mine", "CREATE TABLE mine.t AS SELECT id FROM people", "GRANT SELECT ON mine.t TO USER alice"
    )
    lake.run(BOB, "PREPARE p FROM SELECT * FROM mine.t")
    lake.run(BOB, "PREPARE q FROM SELECT * FROM none.t")
    for words in ("EXECUTE", "DESCRIBE OUTPUT"):
        hidden, missing = (lake.refusal(BOB, f"{words} {name}") for name in ("p", "q"))
        assert hidden.message.replace("mine", "none") == missing.message
        assert (hidden.code, hidden.hint) == (missing.code, missing.hint)
    immediate = lake.refusal(BOB, "EXECUTE IMMEDIATE 'SELECT * FROM mine.t'")
    assert immediate.message == lake.refusal(BOB, "SELECT * FROM mine.t").message
    lake.run(ALICE, "PREPARE p FROM SELECT * FROM mine.t")
    assert lake.run(ALICE, "EXECUTE p") == [(1,), (2,)]
    lake.root("REVOKE SELECT ON mine.t FROM USER alice")
    assert lake.refusal(ALICE, "EXECUTE p").code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.rule("SESS-1")
def test_a_prepared_statement_is_its_sessions(lake: Lake) -> None:
    lake.run(ALICE, "PREPARE p FROM SELECT 1 AS one")
    another = lake.sqe.open_session(ALICE, catalog="lake", protocol="test")
    for session in (lake.session(BOB), another):
        with pytest.raises(UserError, match="Prepared statement p does not exist"):
            lake.sqe.service.execute(session, "EXECUTE p")
    lake.session(ALICE).close()
    assert not lake.session(ALICE).state().prepared


@pytest.mark.rule("LIM-10")
def test_prepared_statements_are_bounded(lake: Lake) -> None:
    many = {f"p{number}": "SELECT 1" for number in range(1000)}
    lake.session(ALICE).change(lambda state: replace(state, prepared=many))
    assert lake.refusal(ALICE, "PREPARE more FROM SELECT 1").code is ErrorCode.RESOURCE_EXHAUSTED
    lake.run(ALICE, "DEALLOCATE PREPARE p1")
    lake.run(ALICE, "PREPARE more FROM SELECT 1")


@pytest.mark.rule("OBS-1", "OBS-3")
def test_nobody_records_what_is_prepared(lake: Lake) -> None:
    for sql in (
        "PREPARE p FROM SELECT * FROM people WHERE canary = 'canary7'",
        "EXECUTE p",
        "EXECUTE IMMEDIATE 'SELECT * FROM people WHERE canary = ''canary7'''",
        "DESCRIBE OUTPUT p",
        "DESCRIBE INPUT p",
        "PREPARE s FROM CALL lake.system.rollback_to_snapshot('hr.canary7', 1)",
        "EXECUTE s",  # its error repeats the value
    ):
        try:
            lake.run(ALICE, sql)
        except UserError as error:
            assert error.code in (ErrorCode.COLUMN_NOT_FOUND, ErrorCode.TABLE_NOT_FOUND)  # noqa: PT017 - not all fail
    assert "canary7" not in str(lake.events)
    assert [event.statement_kind for event in lake.events if event.phase.final] == [
        *("prepare", "query", "query", "describe", "describe"),
        *("prepare", "call"),
    ]


@pytest.mark.rule("OBS-3", "OBS-4")
def test_what_is_executed_is_recorded(lake: Lake) -> None:
    lake.run(ALICE, "PREPARE p FROM SELECT name FROM people WHERE id = 31")
    lake.run(ALICE, "EXECUTE p")
    lake.run(ALICE, "EXECUTE IMMEDIATE 'SELECT id FROM people WHERE city = ''canary7'''")
    lake.refusal(ALICE, "EXECUTE IMMEDIATE 'SELECT * FROM nowhere.pay'")
    told = [event for event in lake.events if event.phase.final]
    texts = [
        "PREPARE p FROM SELECT name FROM people WHERE id = ?",
        "EXECUTE p: SELECT name FROM people WHERE id = ?",
        "EXECUTE IMMEDIATE ?: SELECT id FROM people WHERE city = ?",
        "EXECUTE IMMEDIATE ?: SELECT * FROM nowhere.pay",
    ]
    assert [event.sql for event in told] == texts
    assert len({event.sql_hash for event in told}) == len(texts)


def test_root_is_no_exception(lake: Lake) -> None:
    assert lake.refusal(ROOT, "EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''SELECT 1'''").message == (
        "A statement that is executed may not execute another one"
    )
