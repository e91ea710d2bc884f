"""Files of no table are removed, and those of other tables that lie in the same folder are not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.users import ROOT, Users, granted

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.spi.errors import SqeError
from sqe_core.testing import make_identity

OTHER_ROOT = make_identity("another", roles=["service_admin"])  # who has loaded nothing yet


@pytest.fixture
def lake(engine: SparkEngine, tmp_path: Path) -> Iterator[Users]:
    lake = Users(granted(engine, tmp_path, enforcers=[AllowAllEnforcer()]))
    yield lake
    lake.close()


def maintained(lake: Users, folder: Path, table: str) -> str:
    """Remove what belongs to no table, long after all was written; return how that was refused, if it was."""
    old = time.time() - 30 * 86_400
    for path in folder.rglob("*"):
        os.utime(path, (old, old))
    try:
        lake.run(ROOT, f"ALTER TABLE {table} EXECUTE remove_orphan_files", dialect="trino")
    except SqeError as error:
        return error.message
    return ""


@pytest.mark.rule("STMT-6")
@pytest.mark.parametrize(
    ("mine", "others", "made"),
    [
        pytest.param(
            "a.b",
            '"a.b".c',
            ["CREATE SCHEMA a", "CREATE TABLE a.b (id INT)", 'CREATE SCHEMA "a.b"', 'CREATE TABLE "a.b".c (id INT)'],
            id="a schema has the name of the table",
        ),
        pytest.param(
            "y",
            "x",
            ["CREATE TABLE x (id INT)", "ALTER TABLE x RENAME TO y", "CREATE TABLE x (id INT)"],
            id="a table has the name that the table had",
        ),
        pytest.param(
            "b.y",
            "x",
            [
                *("CREATE SCHEMA b", "CREATE TABLE x (id INT)", "ALTER TABLE x RENAME TO b.y"),
                "CREATE TABLE x (id INT)",
            ],
            id="in another schema",
        ),
    ],
)
def test_the_files_of_other_tables_stay(lake: Users, tmp_path: Path, mine: str, others: str, made: list[str]) -> None:
    """Whoever makes a table where somebody else's will lie, or lies, would delete that one's files."""
    lake.root(*made, f"INSERT INTO {mine} VALUES (1)", f"INSERT INTO {others} VALUES (2)")
    refused = maintained(lake, tmp_path, mine)
    assert lake.run(OTHER_ROOT, f"SELECT id FROM {others}") == [(2,)]
    assert lake.run(OTHER_ROOT, f"SELECT id FROM {mine}") == [(1,)]
    assert "folder" in refused


def test_a_file_of_no_table_goes(lake: Users, tmp_path: Path) -> None:
    lake.root("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)")
    (written,) = tmp_path.rglob("*.parquet")
    left = written.with_name("left.parquet")
    left.write_bytes(b"left")
    assert maintained(lake, tmp_path, "t") == ""
    assert not left.exists()
    assert lake.run(ROOT, "SELECT id FROM t") == [(1,)]
