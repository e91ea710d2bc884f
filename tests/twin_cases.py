"""Random statements about something that the user may not know of, for tests that compare them with their twins.

`{t}` stands for the name of a table or view, `{s}` for that of a schema, `{c}` for that of a column. Whatever else is
in a statement may be wrong as well: that is what the tests are about (ERR-7).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

# Whatever is hidden has a twin of the same length that does not exist. The digits occur in no name that is visible, so
# that both are equally close to every one of those.
HIDDEN, MISSING = "7", "8"

_VISIBLE = ("orders_1", "people", "view_1", "temp_1", "information_schema.tables")
_WRONG = (
    "nothing_3",
    "default.nothing_3",
    "area_3.x",
    "nowhere.default.x",
    "information_schema.nope",
    '"people$files"',
)
_COLUMNS = ("id", "*", "nope", "count(*)", "nofunc(id)", "id + name", "1 / 0", "id, id AS b", "sum(id)", "x.id", "name")
_CONDITIONS = ("id = 1", "nope = 2", "id = 'x'", "1", "name LIKE 'a%'", "id IN (SELECT 1, 2)", "nofunc(1)")
_TABLES = ("orders_{}", "view_{}", "empty_{}", "default.orders_{}", "iceberg.default.orders_{}", "area_{}.x")
_TRAVELS = (
    "",
    "",
    "",
    " FOR VERSION AS OF 1",
    " FOR TIMESTAMP AS OF TIMESTAMP '2020-01-01 00:00:00'",
    " AS z",
    " y (a, b)",
)


@dataclass(frozen=True, kw_only=True)
class Twins:
    """A statement about what is hidden, and the same about what never was there."""

    hidden: str
    missing: str


class TwinWriter:
    """Writes pairs; the same dice write the same pairs."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def twins(self) -> Twins:
        """Write a pair."""
        form = self._dice.choice((self._of_tables, self._of_tables, self._of_columns, self._of_schemas))()
        return Twins(hidden=form.replace("{}", HIDDEN), missing=form.replace("{}", MISSING))

    def _pick(self, among: Sequence[str]) -> str:
        return self._dice.choice(among)

    # Tables and views

    def _of_tables(self) -> str:
        dice = self._dice
        name = self._pick(_TABLES)
        if dice.random() < 0.35:
            return self._change(name)
        return self._around(self._query(name), name)

    def _query(self, name: str) -> str:
        """Write a query with the name somewhere among others."""
        dice = self._dice
        others = [self._pick((*_VISIBLE, *_WRONG)) for _ in range(dice.randint(0, 2))]
        name += self._pick(_TRAVELS)
        columns, condition = self._pick(_COLUMNS), self._pick(_CONDITIONS)
        match dice.randint(0, 6):
            case 0 | 1:
                relations = [name, *others]
                dice.shuffle(relations)
                return f"SELECT {columns} FROM {', '.join(relations)}" + dice.choice(("", f" WHERE {condition}"))
            case 2:
                first, second = dice.sample([name, self._pick((*_VISIBLE, *_WRONG))], 2)
                return f"SELECT {columns} FROM {first} JOIN {second} ON {condition}"
            case 3:
                inner = f"SELECT {columns} FROM {name}"
                outer = self._pick((*_VISIBLE, *_WRONG))
                return f"SELECT {self._pick(_COLUMNS)} FROM {outer} WHERE id IN ({inner})"
            case 4:
                sides = [f"SELECT {columns} FROM {name}", f"SELECT id FROM {self._pick((*_VISIBLE, *_WRONG))}"]
                dice.shuffle(sides)
                return f" {self._pick(('UNION ALL', 'EXCEPT', 'INTERSECT'))} ".join(sides)
            case 5:
                used = self._pick(("q", "q", "people", "nothing_3"))
                return f"WITH q AS (SELECT {columns} FROM {name}) SELECT * FROM {used}"
            case _:
                other = self._pick((*_VISIBLE, *_WRONG))
                return f"SELECT (SELECT max(id) FROM {name}) AS m, {columns} FROM {other} ORDER BY {condition}"

    def _around(self, query: str, name: str) -> str:
        written = self._pick(("orders_1", "people", "nothing_3", "view_1", "area_3.x", "information_schema.tables"))
        return self._pick(
            (
                query,
                query,
                query,
                f"EXPLAIN {query}",
                f"EXPLAIN ACCESS {query}",
                f"DESCRIBE {query}",
                f"CREATE TABLE made_3 AS {query}",
                f"CREATE TABLE area_3.made_3 AS {query}",
                f"CREATE OR REPLACE TABLE nothing_3 AS {query}",
                f"CREATE TABLE IF NOT EXISTS made_3 AS {query}",
                f"CREATE VIEW made_3 AS {query}",
                f"CREATE OR REPLACE VIEW view_1 AS {query}",
                f"CREATE TEMPORARY VIEW made_3 AS {query}",
                f"INSERT INTO {written} {query}",
                f"INSERT INTO {written} (id, nope) {query}",
                f"INSERT INTO {name} {query}",
                f"INSERT OVERWRITE {written} {query}",
                f"MERGE INTO {written} t USING ({query}) s ON t.id = s.id WHEN MATCHED THEN DELETE",
                f"UPDATE {written} SET name = 'x' WHERE id IN ({query})",
                f"DELETE FROM {written} WHERE id IN ({query})",
            )
        )

    def _change(self, name: str) -> str:
        other = self._pick((*_VISIBLE, *_WRONG))
        condition = self._pick(_CONDITIONS)
        bare = name.rpartition(".")[2]
        return self._pick(
            (
                f"INSERT INTO {name} VALUES (1)",
                f"INSERT INTO {name} (id, nope) VALUES (1)",
                f"INSERT INTO {name} SELECT * FROM {other}",
                f"INSERT OVERWRITE {name} SELECT 1",
                f"UPDATE {name} SET id = 1 WHERE {condition}",
                f"UPDATE {name} SET nope = 1",
                f"DELETE FROM {name}",
                f"DELETE FROM {name} WHERE {condition}",
                f"MERGE INTO {name} t USING {other} s ON t.id = s.id WHEN MATCHED THEN DELETE",
                f"MERGE INTO {other} t USING {name} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
                f"EXPLAIN INSERT INTO {name} SELECT 1",
                f"EXPLAIN ACCESS DELETE FROM {name}",
                f"EXPLAIN ACCESS DROP TABLE {name}",
                f"EXPLAIN CREATE TABLE {name} AS {self._query('orders_1')}",
                f"EXPLAIN CREATE OR REPLACE TABLE {name} AS {self._query('orders_1')}",
                f"EXPLAIN ACCESS CREATE TABLE IF NOT EXISTS {name} (a integer)",
                f"EXPLAIN ACCESS CREATE OR REPLACE TABLE {name} AS SELECT * FROM {other}",
                f"EXPLAIN ACCESS CREATE OR REPLACE VIEW {name} AS SELECT * FROM {other}",
                f"EXPLAIN ACCESS MERGE INTO {name} t USING {other} s ON t.id = s.id WHEN MATCHED THEN DELETE",
                f"TRUNCATE TABLE {name}",
                f"DROP TABLE {name}",
                f"DROP TABLE IF EXISTS {name}",
                f"DROP VIEW {name}",
                f"DROP VIEW IF EXISTS {name}",
                f"ALTER TABLE {name} ADD COLUMN b integer",
                f"ALTER TABLE {name} ADD COLUMN b integer DEFAULT 3",
                f"ALTER TABLE {name} ADD COLUMN id varchar",
                f"ALTER TABLE IF EXISTS {name} ADD COLUMN b integer",
                f"ALTER TABLE {name} DROP COLUMN id",
                f"ALTER TABLE {name} RENAME COLUMN id TO name",
                f"ALTER TABLE {name} ALTER COLUMN id SET DATA TYPE bigint",
                f"ALTER TABLE {name} SET PROPERTIES nope = 1",
                f"ALTER TABLE {name} RENAME TO made_3",
                f"ALTER TABLE {name} RENAME TO people",
                f"ALTER TABLE {name} RENAME TO area_3.x",
                f"ALTER VIEW {name} RENAME TO made_3",
                f"ALTER VIEW {name} RENAME TO people",
                f"ALTER TABLE {name} SET AUTHORIZATION bob",
                f"ALTER TABLE {name} SET TAGS (id = 'a')",
                f"COMMENT ON TABLE {name} IS 'x'",
                f"COMMENT ON COLUMN {name}.id IS 'x'",
                f"COMMENT ON VIEW {name} IS 'x'",
                f"CREATE TABLE made_3 (LIKE {name})",
                f"CREATE TABLE people (LIKE {name})",
                f"CREATE TABLE area_3.made_3 (LIKE {name})",
                f"DESCRIBE {name}",
                f"SHOW COLUMNS FROM {name}",
                f"SHOW CREATE TABLE {name}",
                f"SHOW CREATE VIEW {name}",
                f"SHOW STATS FOR {name}",
                f"SHOW TAGS ON {name}",
                f"SHOW GRANTS ON {name}",
                f"SHOW EFFECTIVE POLICY ON {name}",
                f"CHECK ACCESS SELECT ON {name}",
                f"CHECK ACCESS INSERT ON {name}",
                f"GRANT SELECT ON {name} TO bob",
                f"ANALYZE {name}",
                f'SELECT * FROM default."{bare}$files"',
                f'SELECT * FROM default."{bare}$nope"',
                f'DESCRIBE default."{bare}$snapshots"',
                f'SHOW CREATE TABLE default."{bare}$files"',
            )
        )

    # Schemas

    def _of_schemas(self) -> str:
        schema = self._pick(("area_{}", "area_{}", "iceberg.area_{}", "area_{}.inner"))
        query = self._query(f"{schema}.x" if "inner" not in schema else '"area_{}.inner".x')
        return self._pick(
            (
                query,
                f"USE {schema}",
                f"SHOW TABLES FROM {schema}",
                f"SHOW CREATE SCHEMA {schema}",
                f"DROP SCHEMA {schema}",
                f"DROP SCHEMA IF EXISTS {schema}",
                f"DROP SCHEMA {schema} CASCADE",
                f"COMMENT ON SCHEMA {schema} IS 'x'",
                f"CREATE TABLE {schema}.made_3 (a integer)",
                f"CREATE TABLE {schema}.made_3 AS SELECT * FROM {self._pick((*_VISIBLE, *_WRONG))}",
                f"CREATE VIEW {schema}.made_3 AS {query}",
                f"EXPLAIN ACCESS DROP SCHEMA {schema}",
                f"EXPLAIN ACCESS {query}",
                f"ALTER TABLE orders_1 RENAME TO {schema}.orders_1",
                f"GRANT USE ON SCHEMA {schema} TO bob",
            )
        )

    # Columns

    def _of_columns(self) -> str:
        column = self._pick(("pay_{}", "pay_{}", "p.pay_{}", "PAY_{}"))
        bare = column.rpartition(".")[2]
        other = self._pick(("orders_1 o", "nothing_3 o", "view_1 o", "people o"))
        condition = self._pick(_CONDITIONS)
        query = self._pick(
            (
                f"SELECT {column} FROM people p",
                f"SELECT nope, {column} FROM people p",
                f"SELECT {column}, nofunc(1) FROM people p",
                f"SELECT id FROM people p WHERE {column} > 1 AND {condition}",
                f"SELECT id FROM people p, {other} WHERE {column} = o.id",
                f"SELECT p.id FROM people p JOIN {other} USING ({bare})",
                f"SELECT id, count(*) FROM people p GROUP BY {column}",
                f"SELECT id FROM people p ORDER BY {column}, {condition}",
                f"SELECT sum(id) OVER (PARTITION BY {column}) FROM people p",
                f"SELECT id FROM {other} WHERE EXISTS (SELECT 1 FROM people p WHERE {column} = o.id)",
                f"SELECT {bare} FROM (SELECT * FROM people p) q",
                f"WITH q AS (SELECT * FROM people) SELECT {bare} FROM q, {other}",
            )
        )
        return self._pick(
            (
                query,
                query,
                query,
                f"EXPLAIN {query}",
                f"CREATE VIEW made_3 AS {query}",
                f"CREATE TABLE made_3 AS {query}",
                f"INSERT INTO orders_1 {query}",
                f"INSERT INTO people (id, {bare}) VALUES (1, 2)",
                f"INSERT INTO people ({bare}, id) VALUES (1)",
                f"INSERT INTO people ({bare}, {bare}) SELECT * FROM {other}",
                f"INSERT INTO people (nope, {bare}) SELECT 1, 2",
                f"INSERT INTO people ({bare}, nope) SELECT nofunc(1)",
                f"UPDATE people SET {bare} = 1 WHERE {condition}",
                f"DELETE FROM people WHERE {bare} = 1",
                f"MERGE INTO people p USING {other} ON {column} = o.id WHEN MATCHED THEN DELETE",
                f"MERGE INTO orders_1 t USING people p ON t.id = {column} WHEN MATCHED THEN DELETE",
                f"ALTER TABLE people DROP COLUMN {bare}",
                f"ALTER TABLE people RENAME COLUMN {bare} TO id",
                f"ALTER TABLE people ADD COLUMN {bare} integer DEFAULT 1",
                f"COMMENT ON COLUMN people.{bare} IS 'x'",
                f"ALTER TABLE people SET TAGS ({bare} = 'a')",
                f"GRANT SELECT ({bare}) ON people TO bob",
            )
        )
