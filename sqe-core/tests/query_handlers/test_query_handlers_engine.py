"""What the engine in memory can do: enough that a statement goes all nine steps."""

from __future__ import annotations

from handler_lake import ALICE, ROOT, Lake


def test_a_query(lake: Lake) -> None:
    assert lake.run(ALICE, "SELECT name, id FROM people WHERE city = 'Oslo'") == [("ben", 2)]
    assert lake.run(ALICE, "SELECT * FROM people") == [(1, "ann", "Rome"), (2, "ben", "Oslo")]
    assert lake.run(ALICE, "SELECT 1 AS one") == [(1,)]


def test_writes(lake: Lake) -> None:
    lake.run(ALICE, "CREATE TABLE more AS SELECT id, name FROM people")
    lake.run(ALICE, "INSERT INTO more SELECT 3 AS id, 'cy' AS name")
    lake.run(ALICE, "DELETE FROM more WHERE id = 1")
    assert lake.run(ALICE, "SELECT * FROM more") == [(2, "ben"), (3, "cy")]
    lake.run(ALICE, "TRUNCATE TABLE more")
    assert lake.run(ALICE, "SELECT * FROM more") == []


def test_policies(lake: Lake) -> None:
    lake.root(
        "GRANT SELECT ON people TO USER bob",
        "GRANT ROWS WHERE city = 'Rome' ON people TO USER alice",
        "GRANT SELECT ON people TO USER alice",
    )
    assert lake.run(ALICE, "SELECT id, name FROM people") == [(1, "ann")]
    assert lake.run(ROOT, "SELECT 1 AS one") == [(1,)]
