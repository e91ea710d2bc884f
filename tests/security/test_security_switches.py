"""Protections whose absence no other test notices: each of these fails when one is switched off (tests/mutations)."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

import pytest
from governed import Govern, allow

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.query.judge import judge as secured
from sqe_core.spi.errors import ErrorCode, SqeError, UserError
from sqe_core.spi.policy import Decision, NullMask, PartialMask

CANARY = "canary"


@pytest.fixture(scope="module", autouse=True)
def tables(sqe: EmbeddedSqe) -> None:
    for sql in (
        "CREATE TABLE staff (id integer, dept varchar, pay integer)",
        "INSERT INTO staff VALUES (1, 'eng', 100), (2, 'eng', 250), (3, 'hr', 300)",
        "CREATE VIEW salaries AS SELECT id, pay FROM staff",
        f"CREATE TABLE vault_{CANARY} (a integer)",
        f"CREATE VIEW entry AS SELECT * FROM vault_{CANARY}",
    ):
        sqe.execute(sql).close()


# Names


@pytest.mark.rule("ENF-8")
def test_no_two_sessions_know_a_catalog_by_the_same_name(sqe: EmbeddedSqe) -> None:
    mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    other = sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")
    try:
        aliases = [session.alias_of(mount) for session in (sqe.session, other)]
    finally:
        sqe.sqe.service.close_session(other)
    assert aliases[0] != aliases[1]
    assert all(re.fullmatch("_sqe_c_[0-9a-f]{32}", alias) for alias in aliases)


# Rows and columns


@pytest.mark.rule("ENF-9")
def test_a_filter_beside_hidden_columns_hides_them(govern: Govern) -> None:
    analyst = govern({"staff": allow("dept = 'eng'", hidden=frozenset({"pay"}))})
    assert analyst.table("SELECT * FROM staff ORDER BY id") == [{"id": 1, "dept": "eng"}, {"id": 2, "dept": "eng"}]
    assert analyst.refusal("SELECT pay FROM staff").code is ErrorCode.COLUMN_NOT_FOUND


@pytest.mark.rule("ENF-15")
def test_a_condition_on_a_masked_column_is_not_copied_below_the_mask(govern: Govern) -> None:
    analyst = govern({"staff": allow("dept = 'eng'", pay=NullMask())})
    assert analyst.run("SELECT id FROM staff WHERE pay = 250") == []
    assert analyst.run("SELECT id FROM staff WHERE pay IS NULL ORDER BY id") == [[1], [2]]


@pytest.mark.rule("POL-6")
def test_a_policy_on_a_column_that_a_version_lacks_denies_it(sqe: EmbeddedSqe, govern: Govern) -> None:
    for sql in (
        "CREATE TABLE grown (id integer, dept varchar)",
        "INSERT INTO grown VALUES (1, 'eng')",
        "ALTER TABLE grown ADD COLUMN level integer",
        "INSERT INTO grown VALUES (2, 'eng', 1)",
    ):
        sqe.execute(sql).close()
    listed = sqe.execute('SELECT snapshot_id FROM "grown$snapshots" ORDER BY committed_at').read_all()
    first = listed.column(0).to_pylist()[0]
    for decision in (
        allow("dept = 'eng'", hidden=frozenset({"level"})),
        allow(level=NullMask()),
        allow(hidden=frozenset({"level"})),
    ):
        analyst = govern({"grown": decision})
        assert len(analyst.run("SELECT id FROM grown")) == 2
        analyst.refusal(f"SELECT id FROM grown FOR VERSION AS OF {first}")


@pytest.mark.rule("POL-12")
def test_a_text_too_short_for_its_partial_mask_is_masked_whole(govern: Govern) -> None:
    analyst = govern({"staff": allow(dept=PartialMask(show_first=2, show_last=2))})
    for (shown,) in analyst.run("SELECT DISTINCT dept FROM staff"):
        assert not set(shown) & set("enghr"), shown


@pytest.mark.rule("DML-4")
def test_what_is_seen_in_part_is_not_overwritten(sqe: EmbeddedSqe, govern: Govern) -> None:
    analyst = govern({"staff": allow("dept = 'eng'")})
    refused = analyst.refusal("INSERT OVERWRITE staff SELECT * FROM staff")
    assert refused.code is ErrorCode.NOT_SUPPORTED
    assert refused.message.endswith("is restricted for you and cannot be changed or copied")
    assert sqe.execute("SELECT id FROM staff").read_all().num_rows == 3


# Views


@pytest.mark.rule("VIEW-1")
def test_views_are_nested_so_deep_and_no_deeper(sqe: EmbeddedSqe, govern: Govern) -> None:
    sqe.execute("CREATE VIEW nested_0 AS SELECT id FROM staff").close()
    for number in range(1, 11):
        sqe.execute(f"CREATE VIEW nested_{number} AS SELECT id FROM nested_{number - 1}").close()
    analyst = govern({})
    assert len(analyst.run("SELECT id FROM nested_9")) == 3
    analyst.refusal("SELECT id FROM nested_10")


@pytest.mark.rule("VIEW-2")
def test_a_view_keeps_its_hidden_columns(govern: Govern) -> None:
    analyst = govern({"salaries": allow(hidden=frozenset({"pay"}))})
    assert analyst.table("SELECT * FROM salaries ORDER BY id") == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert analyst.refusal("SELECT pay FROM salaries").code is ErrorCode.COLUMN_NOT_FOUND


@pytest.mark.rule("VIEW-3")
def test_a_stored_view_does_not_see_the_session_views_of_its_reader(govern: Govern) -> None:
    analyst = govern({})
    analyst.run("CREATE TEMPORARY VIEW staff AS SELECT 7 AS id, 8 AS pay")
    try:
        assert analyst.run("SELECT id FROM staff") == [[7]]
        assert analyst.run("SELECT id FROM salaries ORDER BY id") == [[1], [2], [3]]
    finally:
        analyst.run("DROP VIEW staff")


@pytest.mark.rule("VIEW-4")
def test_what_is_wrong_in_a_view_is_not_told(govern: Govern) -> None:
    analyst = govern({f"vault_{CANARY}": Decision.deny("no")}, canaries=frozenset({CANARY}))
    assert "out of date" in analyst.refusal("SELECT * FROM entry").message


@pytest.mark.rule("VIEW-5")
def test_a_view_is_made_of_what_its_creator_may_read(govern: Govern) -> None:
    analyst = govern({"staff": Decision.deny("no")})
    for sql in (
        "CREATE VIEW mine AS SELECT id FROM staff",
        "CREATE VIEW mine AS SELECT 1 AS x WHERE 1 IN (TABLE staff)",
    ):
        assert analyst.refusal(sql).code is ErrorCode.TABLE_NOT_FOUND
    assert ["mine"] not in analyst.run("SHOW TABLES")


# Errors


@pytest.mark.rule("ERR-1")
def test_a_fault_of_ours_is_told_in_no_words_of_its_own(govern: Govern, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **named: object) -> None:
        raise RuntimeError(f"/srv/{CANARY}/file")

    analyst = govern({}, canaries=frozenset({CANARY}))
    monkeypatch.setattr(secured, "verify", fail)
    with pytest.raises(SqeError, match=r"^Query failed \(query id ") as caught:
        analyst.run("SELECT 1")
    analyst.check(f"{caught.value} {caught.value.hint}", "SELECT 1")


@pytest.mark.rule("ERR-6")
def test_an_error_with_a_secret_is_scrubbed(sqe: EmbeddedSqe, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    alias = sqe.session.alias_of(mount)

    def fail(*args: object, **named: object) -> None:
        raise UserError(f"no column in {alias}.default.staff", hint=f"look into {alias}")

    monkeypatch.setattr(secured, "verify", fail)
    with pytest.raises(SqeError) as caught:
        sqe.execute("SELECT 1")
    assert alias not in f"{caught.value} {caught.value.message} {caught.value.hint}"


# The engine


@pytest.mark.rule("ISO-3")
def test_the_engines_own_catalog_is_empty_and_stays_so(engine: SparkEngine) -> None:
    root = engine.context.root._jsparkSession
    for name in ("spark_catalog.default.t", "t"):
        with pytest.raises(Exception, match="no tables here"):
            root.sql(f"CREATE TABLE {name} (a INT) USING parquet").collectAsList()


@pytest.mark.rule("ISO-11")
@pytest.mark.parametrize("greeting", [b"", b"A\nwrong\n"])
def test_the_gateway_answers_nobody_without_the_token(engine: SparkEngine, greeting: bytes) -> None:
    port = engine.context._gateway.java_parameters.port
    answer = b""
    # Hanging up is an answer, too.
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, suppress(OSError):
        connection.sendall(greeting + b"c\nz:java.lang.System\ncurrentTimeMillis\ne\n")
        connection.shutdown(socket.SHUT_WR)
        while more := connection.recv(4096):
            answer += more
    assert b"!y" not in answer
