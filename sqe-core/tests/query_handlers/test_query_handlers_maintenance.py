"""ALTER TABLE … EXECUTE: what reaches the engine, and who may."""

from __future__ import annotations

import pytest
from handler_lake import ALICE, BOB, ROOT, Lake

from sqe_core.spi.errors import ErrorCode

DAY = 86_400_000
ACTIONS = {
    "optimize": {"threshold": str(100 << 20)},
    "optimize(file_size_threshold => '1.5GB')": {"threshold": str(3 << 29)},
    "optimize_manifests": {},
    "expire_snapshots": {"retention": str(7 * DAY)},
    "expire_snapshots(retention_threshold => '240h')": {"retention": str(10 * DAY)},
    "remove_orphan_files(retention_threshold => '8d')": {"retention": str(8 * DAY)},
    "drop_extended_stats": {},
}


@pytest.mark.parametrize("action", ACTIONS)
def test_what_is_done(lake: Lake, action: str) -> None:
    lake.run(ALICE, f"ALTER TABLE people EXECUTE {action}")
    assert lake.engine.maintained == [("people", action.partition("(")[0], ACTIONS[action])]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("nothing", ErrorCode.NOT_SUPPORTED),
        ("add_files(location => 's3://x')", ErrorCode.NOT_SUPPORTED),
        ("optimize(nothing => 1)", ErrorCode.INVALID_ARGUMENTS),
        ("optimize(file_size_threshold => 5)", ErrorCode.INVALID_ARGUMENTS),
        ("optimize(file_size_threshold => '0MB')", ErrorCode.INVALID_ARGUMENTS),
        ("optimize WHERE id = 1", ErrorCode.NOT_SUPPORTED),
        ("expire_snapshots(retention_threshold => '6d')", ErrorCode.INVALID_ARGUMENTS),
        ("expire_snapshots(retention_threshold => '-7d')", ErrorCode.INVALID_ARGUMENTS),
        ("remove_orphan_files(retention_threshold => '0s')", ErrorCode.INVALID_ARGUMENTS),
        ("remove_orphan_files(location => '/')", ErrorCode.INVALID_ARGUMENTS),
        ("drop_extended_stats(x => 1)", ErrorCode.INVALID_ARGUMENTS),
    ],
)
def test_what_is_refused(lake: Lake, action: str, code: ErrorCode) -> None:
    assert lake.refusal(ALICE, f"ALTER TABLE people EXECUTE {action}").code is code
    assert lake.engine.maintained == []


@pytest.mark.rule("STMT-6", "DML-4")
def test_who_may(lake: Lake) -> None:
    sql = "ALTER TABLE people EXECUTE optimize"
    lake.root("GRANT SELECT ON people TO USER alice")
    assert lake.refusal(ALICE, sql).code is ErrorCode.ACCESS_DENIED
    assert lake.refusal(BOB, sql).code is ErrorCode.TABLE_NOT_FOUND
    lake.root("GRANT MODIFY ON people TO USER alice", "GRANT SELECT, MODIFY ON people TO USER bob ROWS WHERE id = 1")
    lake.run(ALICE, sql)
    assert "restricted" in lake.refusal(BOB, sql).message
    assert len(lake.engine.maintained) == 1
    lake.run(ROOT, "ALTER TABLE IF EXISTS nothing EXECUTE optimize")
