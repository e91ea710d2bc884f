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
NEVER = ErrorCode.NOT_SUPPORTED

# (who may, the statement; who may not, the statement, what they read). `t`, `v` and the schema mine are root's.
CASES: list[tuple[Identity, str, Identity, str, ErrorCode]] = [
    (ROOT, "SELECT * FROM mine.t", BOB, "SELECT * FROM mine.t", TABLE),
    (ROOT, "DESCRIBE SELECT id FROM mine.t", BOB, "DESCRIBE SELECT id FROM mine.t", TABLE),
    (ROOT, "EXPLAIN SELECT id FROM mine.t", BOB, "EXPLAIN SELECT id FROM mine.t", TABLE),
    (BOB, "SHOW CATALOGS", BOB, "SHOW CATALOGS LIKE", ErrorCode.SYNTAX_ERROR),
    (BOB, "SHOW SCHEMAS FROM other", BOB, "SHOW SCHEMAS FROM none", ErrorCode.CATALOG_NOT_FOUND),
    (BOB, "SHOW TABLES FROM hr", BOB, "SHOW TABLES FROM none", SCHEMA),
    (ROOT, "SHOW COLUMNS FROM mine.t", BOB, "SHOW COLUMNS FROM mine.t", TABLE),
    (ROOT, "SHOW CREATE TABLE mine.t", BOB, "SHOW CREATE TABLE mine.t", TABLE),
    (BOB, "SHOW FUNCTIONS LIKE 'upper'", BOB, "SHOW FUNCTIONS upper", ErrorCode.SYNTAX_ERROR),
    (BOB, "SHOW SESSION", BOB, "SHOW SESSION x", ErrorCode.SYNTAX_ERROR),
    (BOB, "USE hr", BOB, "USE none", SCHEMA),
    (BOB, "SET SESSION query_max_run_time = '1m'", BOB, "SET SESSION nothing = 1", ARGUMENTS),
    (BOB, "RESET SESSION query_max_run_time", BOB, "RESET SESSION nothing", ARGUMENTS),
    (BOB, "START TRANSACTION", BOB, "BEGIN SELECT 1", NEVER),
    (ROOT, "ANALYZE mine.t", BOB, "ANALYZE mine.t", TABLE),
    (ROOT, "CREATE SCHEMA more", BOB, "CREATE SCHEMA mine", ErrorCode.DUPLICATE_TABLE),
    (ROOT, "DROP SCHEMA empty", BOB, "DROP SCHEMA none", SCHEMA),
    (ROOT, "DROP TABLE mine.t", BOB, "DROP TABLE mine.t", TABLE),
    (ROOT, "ALTER TABLE mine.t RENAME TO u", BOB, "ALTER TABLE mine.t RENAME TO u", TABLE),
    (ROOT, "CREATE TABLE mine.u (LIKE mine.t)", BOB, "CREATE TABLE u (LIKE mine.t)", TABLE),
    (
        ROOT,
        "ALTER TABLE mine.t ADD COLUMN n int DEFAULT 1",
        BOB,
        "ALTER TABLE mine.t ADD COLUMN n int DEFAULT 1",
        TABLE,
    ),
    (ROOT, "CREATE VIEW mine.w AS SELECT id FROM mine.t", BOB, "CREATE VIEW w AS SELECT id FROM mine.t", TABLE),
    (ROOT, "DROP VIEW mine.v", BOB, "DROP VIEW mine.v", VIEW),
    (ROOT, "ALTER VIEW mine.v RENAME TO w", BOB, "ALTER VIEW mine.v RENAME TO w", VIEW),
    (
        ROOT,
        "ALTER VIEW mine.v SET TBLPROPERTIES ('comment' = 'x')",
        BOB,
        "ALTER VIEW mine.v SET TBLPROPERTIES ('comment' = 'x')",
        VIEW,
    ),
    (ROOT, "COMMENT ON VIEW mine.v IS 'x'", BOB, "COMMENT ON VIEW mine.v IS 'x'", VIEW),
    (BOB, "SHOW SESSIONS", BOB, "SHOW SESSIONS x", ErrorCode.SYNTAX_ERROR),
    (BOB, "SHOW QUERIES", BOB, "SHOW QUERIES x", ErrorCode.SYNTAX_ERROR),
    (ROOT, "GRANT SELECT ON mine.t TO USER bob", BOB, "GRANT SELECT ON mine.t TO USER bob", DENIED),
    (ROOT, "REVOKE SELECT ON mine.t FROM USER bob", BOB, "REVOKE SELECT ON mine.t FROM USER root", DENIED),
    (ROOT, "SHOW GRANTS ON mine.t", BOB, "SHOW GRANTS TO USER root", DENIED),
    (BOB, "SHOW EFFECTIVE GRANTS", BOB, "SHOW EFFECTIVE GRANTS FOR USER root", DENIED),
    (BOB, "CHECK ACCESS SELECT ON mine.t", BOB, "CHECK ACCESS SELECT ON mine.t FOR USER root", DENIED),
    (ROOT, "EXPLAIN ACCESS SELECT * FROM mine.t", BOB, "EXPLAIN ACCESS SELECT 1 FOR USER root", DENIED),
    (ROOT, "SHOW EFFECTIVE POLICY ON mine.t", BOB, "SHOW EFFECTIVE POLICY ON mine.t", TABLE),
    (BOB, "SHOW CURRENT ROLES", BOB, "SHOW ROLES x", ErrorCode.SYNTAX_ERROR),
    (ROOT, "CREATE ROLE made", BOB, "CREATE ROLE made", DENIED),
    (ROOT, "DROP ROLE reader", BOB, "DROP ROLE reader", DENIED),
    (ROOT, "GRANT ROLE reader TO USER bob", BOB, "GRANT ROLE reader TO USER bob", DENIED),
    (ROOT, "REVOKE ROLE reader FROM USER bob", BOB, "REVOKE ROLE reader FROM USER bob", DENIED),
    (ALICE, "SET ROLE analyst", BOB, "SET ROLE reader", DENIED),
    (
        ROOT,
        "CREATE POLICY p ON TABLE mine.t ROW FILTER TO ROLE reader USING (id = 1)",
        BOB,
        "CREATE POLICY p ON TABLE mine.t ROW FILTER TO ROLE reader USING (id = 1)",
        DENIED,
    ),
    (ROOT, "DROP POLICY IF EXISTS p", BOB, "DROP POLICY p", DENIED),
    (ROOT, "SHOW MASKING POLICIES", BOB, "SHOW MASKING POLICIES", DENIED),
    (
        ROOT,
        "ALTER TABLE mine.t ALTER COLUMN name UNSET MASKING POLICY",
        BOB,
        "ALTER TABLE mine.t ALTER COLUMN name UNSET MASKING POLICY",
        DENIED,
    ),
    (ROOT, "ALTER TABLE mine.t OWNER TO USER bob", BOB, "ALTER TABLE mine.t OWNER TO USER bob", DENIED),
    (ROOT, "SHOW TAGS ON mine.t", BOB, "SHOW TAGS ON mine.t", TABLE),
    (
        ROOT,
        "ALTER TABLE mine.t SET TAGS (name = 'pii')",
        BOB,
        "ALTER TABLE mine.t SET TAGS (name = 'pii')",
        DENIED,
    ),
    (
        ROOT,
        "ALTER TABLE mine.t UNSET TAGS (name)",
        BOB,
        "ALTER TABLE mine.t UNSET TAGS (name)",
        DENIED,
    ),
    (ROOT, "CREATE SECRET s (TYPE bearer, TOKEN 'x')", BOB, "CREATE SECRET s (TYPE s3)", DENIED),
    (ROOT, "DROP SECRET IF EXISTS s", BOB, "DROP SECRET s", DENIED),
    (ROOT, "SHOW SECRETS", BOB, "SHOW SECRETS", DENIED),
    (ROOT, "DETACH IF EXISTS guest", BOB, "DETACH other", DENIED),
]
# Where the one or the other is a test of its own, or needs what is not here.
ELSEWHERE = {
    "Attach": "sqe-core/tests/query/test_query_attach.py",
    "KillQuery": "sqe-core/tests/session/test_session_control.py",
    "KillSession": "sqe-core/tests/session/test_session_control.py",
    "ShowStats": "tests/integration/test_sql_writes.py",
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
