"""What a statement without rows is called, as Trino calls it."""

from __future__ import annotations

import time

import pytest

from sqe_core.spi import StatementKind
from sqe_protocol_trino.update_type import update_type


@pytest.mark.parametrize(
    ("kind", "sql", "name"),
    [
        (StatementKind.ALTER_TABLE, "ALTER TABLE t ADD COLUMN a integer", "ADD COLUMN"),
        (StatementKind.ALTER_TABLE, "alter table if exists c.s.t add column if not exists a int", "ADD COLUMN"),
        (StatementKind.ALTER_TABLE, 'ALTER TABLE "my table" . "drop" RENAME COLUMN a TO b', "RENAME COLUMN"),
        (StatementKind.ALTER_TABLE, "ALTER TABLE t RENAME TO u", "RENAME TABLE"),
        (StatementKind.ALTER_TABLE, "ALTER TABLE t DROP COLUMN a.b", "DROP COLUMN"),
        (StatementKind.ALTER_TABLE, "ALTER TABLE t ALTER COLUMN a SET DATA TYPE bigint", "SET COLUMN TYPE"),
        (StatementKind.ALTER_TABLE, "ALTER TABLE t ALTER COLUMN a.b DROP NOT NULL", "DROP NOT NULL"),
        (StatementKind.ALTER_TABLE, "ALTER TABLE t SET PROPERTIES x = 1", "SET PROPERTIES"),
        (StatementKind.ALTER_TABLE, "/* dbt */ -- more\nALTER TABLE t RENAME TO u", "RENAME TABLE"),
        (StatementKind.ALTER_TABLE, "ALTER TABLE t WRITE ORDERED BY a", "ALTER TABLE"),
        (StatementKind.ALTER_TABLE, "COMMENT ON COLUMN t.a IS 'x'", "COMMENT"),
        (StatementKind.ALTER_TABLE, "EXECUTE p", "ALTER TABLE"),
        (StatementKind.ALTER_VIEW, "ALTER VIEW v RENAME TO w", "RENAME VIEW"),
        (StatementKind.CALL, "ALTER TABLE t EXECUTE optimize", "ALTER TABLE EXECUTE"),
        (StatementKind.CALL, "CALL lake.system.rollback_to_snapshot('s', 't', 1)", "CALL"),
        (StatementKind.TRANSACTION, "START TRANSACTION", "START TRANSACTION"),
        (StatementKind.TRANSACTION, "COMMIT WORK", "COMMIT"),
        (StatementKind.TRANSACTION, "ROLLBACK", "ROLLBACK"),
        (StatementKind.SESSION, "SET SESSION a = 1", "SET SESSION"),
        (StatementKind.SESSION, "RESET SESSION a", "RESET SESSION"),
        (StatementKind.SESSION, "SET TIME ZONE LOCAL", "SET TIME ZONE"),
        (StatementKind.UTILITY, "ANALYZE t", "ANALYZE"),
        (StatementKind.INSERT, "COMMIT", "INSERT"),  # a word of the text changes nothing for other kinds
        (StatementKind.DROP_TABLE, "DROP TABLE t", "DROP TABLE"),
    ],
)
def test_names(kind: StatementKind, sql: str, name: str) -> None:
    assert update_type(kind.value, sql) == name


def test_a_long_text_is_not_read_to_its_end() -> None:
    for sql in ("/*" * 500_000, "a." * 500_000, "-- x\n" * 200_000, "'" * 1_000_000):
        began = time.monotonic()
        update_type(StatementKind.ALTER_TABLE.value, sql)
        assert time.monotonic() - began < 0.5
