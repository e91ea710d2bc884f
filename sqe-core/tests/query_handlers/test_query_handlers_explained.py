"""EXPLAIN ACCESS says what execution does: random rights, random statements, no JVM.

SQE_EXPLAINED_SEED=417   pytest …     that case alone
SQE_EXPLAINED_CASES=3000 pytest …     more of them
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from handler_lake import BOB, ROOT, Lake, open_lake

from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.identity import Identity

_CASES = int(os.environ.get("SQE_EXPLAINED_CASES", "250"))
_ONLY = os.environ.get("SQE_EXPLAINED_SEED")

_TABLES = ("mine.t", "mine.u", "default.people")
_VIEWS = ("mine.v", "mine.w")
_OBJECTS = (*_TABLES, *_VIEWS)
_SCHEMAS = ("mine", "default")
_ON_TABLES = ("SELECT", "INSERT", "MODIFY", "ALTER", "DROP", "MONITOR", "ALL PRIVILEGES")
_ON_VIEWS = ("SELECT", "SELECT VIEW", "DROP VIEW", "ALTER", "MONITOR")
_ON_SCHEMAS = ("CREATE", "CREATE VIEW", "USE", "DROP", "ALTER", "SELECT", "INSERT", "ALL PRIVILEGES")
# What may be wrong beside rights; the last is what the engine in memory makes of columns without values.
_NO_MATTER_OF_RIGHTS = frozenset(
    {ErrorCode.DUPLICATE_TABLE, ErrorCode.SEMANTIC_ERROR, ErrorCode.GENERIC_INTERNAL_ERROR}
)


def rights(dice: random.Random) -> list[str]:
    """What root gives to Bob and takes from him."""
    found = []
    for _ in range(dice.randint(2, 8)):
        table, view, schema = dice.choice(_TABLES), dice.choice(_VIEWS), dice.choice(_SCHEMAS)
        found.append(
            dice.choice(
                (
                    f"GRANT {dice.choice(_ON_TABLES)} ON {table} TO USER bob",
                    f"GRANT {dice.choice(_ON_TABLES)} ON {table} TO USER bob",
                    f"GRANT {dice.choice(_ON_VIEWS)} ON VIEW {view} TO USER bob",
                    f"GRANT {dice.choice(_ON_SCHEMAS)} ON SCHEMA {schema} TO USER bob",
                    f"GRANT {dice.choice(_ON_SCHEMAS)} ON SCHEMA {schema} TO USER bob",
                    f"GRANT ALL PRIVILEGES ON SCHEMA {schema} TO USER bob",
                    "GRANT SELECT ON DATABASE lake TO USER bob",
                    "GRANT CREATE NAMESPACE ON DATABASE lake TO USER bob",
                    f"GRANT SELECT (id) ON {table} TO USER bob",
                    "GRANT SELECT (id, name MASKED WITH 'REDACT') ON default.people TO USER bob",
                    f"GRANT SELECT ON {table} TO USER bob ROWS WHERE id = 1",
                    f"DENY {dice.choice(('SELECT', 'INSERT', 'ALTER', 'DROP'))} ON {table} TO USER bob",
                    f"ALTER TABLE {table} OWNER TO USER bob",
                    f"ALTER SCHEMA {schema} OWNER TO USER bob",
                )
            )
        )
    return found


def statement(dice: random.Random) -> str:
    """What Bob says."""
    table, other, view, schema = dice.choice(_TABLES), dice.choice(_OBJECTS), dice.choice(_VIEWS), dice.choice(_SCHEMAS)
    return dice.choice(
        (
            f"SELECT * FROM {other}",
            f"INSERT INTO {table} (id) SELECT id FROM {other}",
            f"DELETE FROM {table}",
            f"TRUNCATE TABLE {table}",
            f"CREATE TABLE {schema}.new (id integer)",
            f"CREATE TABLE {schema}.new AS SELECT id FROM {other}",
            f"CREATE OR REPLACE TABLE {table} AS SELECT id FROM {other}",
            f"CREATE OR REPLACE TABLE {table} (id integer)",
            f"CREATE TABLE {schema}.new (LIKE {table})",
            f"CREATE VIEW {schema}.new AS SELECT id FROM {other}",
            f"CREATE OR REPLACE VIEW {view} AS SELECT id FROM {other}",
            f"ALTER TABLE {table} RENAME TO renamed",
            f"ALTER TABLE {table} ADD COLUMN age int DEFAULT 7",
            f"ALTER VIEW {view} RENAME TO renamed",
            f"COMMENT ON VIEW {view} IS 'x'",
            f"COMMENT ON SCHEMA {schema} IS 'x'",
            f"DROP TABLE {table}",
            f"DROP VIEW {view}",
            "CREATE SCHEMA more",
            f"DROP SCHEMA {schema} CASCADE",
        )
    )


def explained(lake: Lake, who: Identity, sql: str) -> bool:
    """Whether all of it is allowed; a name that means nothing is none that one may use."""
    try:
        return all(row[2] for row in lake.run(who, sql))
    except SqeError:
        return False


def case(seed: int, tally: Counter[str]) -> str | None:
    dice = random.Random(f"explained.{seed}")
    lake = open_lake()
    try:
        lake.root(
            "CREATE SCHEMA mine",
            "CREATE TABLE mine.t AS SELECT id, name FROM default.people",
            "CREATE TABLE mine.u AS SELECT id FROM default.people",
            "CREATE VIEW mine.v AS SELECT id FROM mine.t",
            "CREATE VIEW mine.w AS SELECT id FROM mine.v",
            # From now on nothing is left to the catalog.
            "GRANT SELECT ON DATABASE lake TO ROLE somebody",
        )
        given, sql = rights(dice), statement(dice)
        lake.root(*given)
        said, of_bob = (
            explained(lake, BOB, f"EXPLAIN ACCESS {sql}"),
            explained(lake, ROOT, f"EXPLAIN ACCESS {sql} FOR USER bob"),
        )
        try:
            lake.run(BOB, sql)
            done = "done"
        except SqeError as error:
            done = error.code.name
            if said and error.code in _NO_MATTER_OF_RIGHTS:
                return None
        tally[f"{said} {done}"] += 1
        if said == (done == "done") == of_bob:
            return None
        return f"SQE_EXPLAINED_SEED={seed}\n  {'; '.join(given)}\n  {sql}\n  said {said}, of Bob {of_bob}, {done}"
    finally:
        lake.sqe.close()


@pytest.mark.rule("META-3")
def test_explain_access_says_what_execution_does() -> None:
    tally: Counter[str] = Counter()
    seeds = range(_CASES) if _ONLY is None else [int(_ONLY)]
    found = [each for each in (case(seed, tally) for seed in seeds) if each is not None]
    print(tally)
    assert not found, f"{len(found)} of {len(seeds)}\n" + "\n\n".join(found[:30])
    assert _ONLY or tally["True done"] > len(seeds) / 6
