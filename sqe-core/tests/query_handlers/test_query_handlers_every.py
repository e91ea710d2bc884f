"""Every handler once allowed and once refused, and that none is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from handler_lake import ALICE, BOB, ROOT, Lake

from sqe_core.query.statements.registry import HANDLERS
from sqe_core.spi.errors import ErrorCode
from sqe_core.spi.identity import Identity
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import TextLimits

TABLE = ErrorCode.TABLE_NOT_FOUND
VIEW = ErrorCode.VIEW_NOT_FOUND
SCHEMA = ErrorCode.SCHEMA_NOT_FOUND
DENIED = ErrorCode.ACCESS_DENIED
ARGUMENTS = ErrorCode.INVALID_ARGUMENTS
PROPERTY = ErrorCode.INVALID_SESSION_PROPERTY
NEVER = ErrorCode.NOT_SUPPORTED

# What root may and bob may not, and what bob reads. `t`, `v` and the schema mine are root's.
ROOTS: dict[str, ErrorCode] = {
    "SELECT * FROM mine.t": TABLE,
    "DESCRIBE SELECT id FROM mine.t": TABLE,
    "EXPLAIN SELECT id FROM mine.t": TABLE,
    "SHOW COLUMNS FROM mine.t": TABLE,
    "SHOW CREATE TABLE mine.t": TABLE,
    "ANALYZE mine.t": TABLE,
    "ALTER TABLE mine.t EXECUTE optimize": TABLE,
    "ALTER TABLE mine.t SET PROPERTIES partitioning = ARRAY['id']": TABLE,
    "DROP TABLE mine.t": TABLE,
    "ALTER TABLE mine.t RENAME TO u": TABLE,
    "ALTER TABLE mine.t ADD COLUMN n int DEFAULT 1": TABLE,
    "SHOW EFFECTIVE POLICY ON mine.t": TABLE,
    "SHOW TAGS ON mine.t": TABLE,
    "DROP VIEW mine.v": VIEW,
    "ALTER VIEW mine.v RENAME TO w": VIEW,
    "ALTER VIEW mine.v SET TBLPROPERTIES ('comment' = 'x')": VIEW,
    "COMMENT ON VIEW mine.v IS 'x'": VIEW,
    "GRANT SELECT ON mine.t TO USER bob": DENIED,
    "CREATE ROLE made": DENIED,
    "DROP ROLE reader": DENIED,
    "GRANT ROLE reader TO USER bob": DENIED,
    "REVOKE ROLE reader FROM USER bob": DENIED,
    "CREATE POLICY p ON TABLE mine.t ROW FILTER TO ROLE reader USING (id = 1)": DENIED,
    "SHOW MASKING POLICIES": DENIED,
    "ALTER TABLE mine.t ALTER COLUMN name UNSET MASKING POLICY": DENIED,
    "ALTER TABLE mine.t OWNER TO USER bob": DENIED,
    "ALTER TABLE mine.t SET TAGS (name = 'pii')": DENIED,
    "ALTER TABLE mine.t UNSET TAGS (name)": DENIED,
    "SHOW SECRETS": DENIED,
}
# (who may, the statement; who may not, the statement, what they read).
CASES: list[tuple[Identity, str, Identity, str, ErrorCode]] = [
    *((ROOT, sql, BOB, sql, code) for sql, code in ROOTS.items()),
    (BOB, "SHOW CATALOGS", BOB, "SHOW CATALOGS LIKE", ErrorCode.SYNTAX_ERROR),
    (BOB, "SHOW SCHEMAS FROM other", BOB, "SHOW SCHEMAS FROM none", ErrorCode.CATALOG_NOT_FOUND),
    (BOB, "SHOW TABLES FROM hr", BOB, "SHOW TABLES FROM none", SCHEMA),
    (BOB, "SHOW FUNCTIONS LIKE 'upper'", BOB, "SHOW FUNCTIONS upper", ErrorCode.SYNTAX_ERROR),
    (BOB, "SHOW SESSION", BOB, "SHOW SESSION x", ErrorCode.SYNTAX_ERROR),
    (BOB, "USE hr", BOB, "USE none", SCHEMA),
    (BOB, "SET SESSION query_max_run_time = '1m'", BOB, "SET SESSION nothing = 1", PROPERTY),
    (BOB, "RESET SESSION query_max_run_time", BOB, "RESET SESSION nothing", PROPERTY),
    (BOB, "SET TIME ZONE 'Europe/Amsterdam'", BOB, "SET TIME ZONE 'Nowhere/Land'", NEVER),
    (BOB, "SET PATH lake.default", BOB, "SET PATH 'lake'", ErrorCode.SYNTAX_ERROR),
    (BOB, "START TRANSACTION", BOB, "BEGIN SELECT 1", NEVER),
    (ROOT, "CREATE SCHEMA more", BOB, "CREATE SCHEMA mine", ErrorCode.DUPLICATE_TABLE),
    (ROOT, "DROP SCHEMA empty", BOB, "DROP SCHEMA none", SCHEMA),
    (ROOT, "CREATE TABLE mine.u (LIKE mine.t)", BOB, "CREATE TABLE u (LIKE mine.t)", TABLE),
    (ROOT, "CREATE VIEW mine.w AS SELECT id FROM mine.t", BOB, "CREATE VIEW w AS SELECT id FROM mine.t", TABLE),
    (BOB, "SHOW SESSIONS", BOB, "SHOW SESSIONS x", ErrorCode.SYNTAX_ERROR),
    (BOB, "SHOW QUERIES", BOB, "SHOW QUERIES x", ErrorCode.SYNTAX_ERROR),
    (ROOT, "REVOKE SELECT ON mine.t FROM USER bob", BOB, "REVOKE SELECT ON mine.t FROM USER root", DENIED),
    (ROOT, "SHOW GRANTS ON mine.t", BOB, "SHOW GRANTS TO USER root", DENIED),
    (BOB, "SHOW EFFECTIVE GRANTS", BOB, "SHOW EFFECTIVE GRANTS FOR USER root", DENIED),
    (BOB, "CHECK ACCESS SELECT ON mine.t", BOB, "CHECK ACCESS SELECT ON mine.t FOR USER root", DENIED),
    (ROOT, "EXPLAIN ACCESS SELECT * FROM mine.t", BOB, "EXPLAIN ACCESS SELECT 1 FOR USER root", DENIED),
    (BOB, "SHOW CURRENT ROLES", BOB, "SHOW ROLES x", ErrorCode.SYNTAX_ERROR),
    (ALICE, "SET ROLE analyst", BOB, "SET ROLE reader", DENIED),
    (ROOT, "DROP POLICY IF EXISTS p", BOB, "DROP POLICY p", DENIED),
    (ROOT, "CREATE SECRET s (TYPE bearer, TOKEN 'x')", BOB, "CREATE SECRET s (TYPE s3)", DENIED),
    (ROOT, "DROP SECRET IF EXISTS s", BOB, "DROP SECRET s", DENIED),
    (ROOT, "DETACH IF EXISTS guest", BOB, "DETACH other", DENIED),
]
# Where the one or the other is a test of its own, or needs what is not here.
ELSEWHERE = {
    "Attach": "sqe-core/tests/query/test_query_attach.py",
    "KillQuery": "sqe-core/tests/session/test_session_control.py",
    "KillSession": "sqe-core/tests/session/test_session_control.py",
    "ShowStats": "tests/integration/test_sql_writes.py",
    "ExplainPlan": "test_query_handlers_trino.py",
    "ExplainValidate": "test_query_handlers_trino.py",
    "Prepare": "test_query_handlers_prepared.py",
    "Execute": "test_query_handlers_prepared.py",
    "ExecuteImmediate": "test_query_handlers_prepared.py",
    "Deallocate": "test_query_handlers_prepared.py",
    "DescribePrepared": "test_query_handlers_prepared.py",
    "Call": "test_query_handlers_call.py",
}


@pytest.fixture
def governed(lake: Lake) -> Lake:
    lake.root(
        "CREATE SCHEMA mine",
        "CREATE SCHEMA empty",
        "CREATE TABLE mine.t AS SELECT id, name FROM lake.default.people",
        "CREATE VIEW mine.v AS SELECT id FROM mine.t",
        "CREATE ROLE reader",
        # What is granted to somebody is no longer everybody's.
        "GRANT SELECT ON mine.t TO ROLE reader",
        "GRANT SELECT ON mine.v TO ROLE reader",
    )
    return lake


@pytest.mark.parametrize("case", CASES, ids=[case[1] for case in CASES])
def test_allowed_and_refused(governed: Lake, case: tuple[Identity, str, Identity, str, ErrorCode]) -> None:
    may, allowed, may_not, refused, code = case
    error = governed.refusal(may_not, refused)
    assert error.code is code, error
    governed.run(may, allowed)


def test_no_handler_is_forgotten() -> None:
    limits = TextLimits()
    tried = {type(Reader().read(sql, dialect="sqe", limits=limits)).__name__ for _, sql, *_ in CASES}
    assert tried | ELSEWHERE.keys() == {each.__name__ for each in HANDLERS.classes}
    assert not tried & ELSEWHERE.keys()
    folder = Path(__file__).parent
    for place in ELSEWHERE.values():
        assert (folder / place).exists() or (folder.parents[2] / place).exists(), place
