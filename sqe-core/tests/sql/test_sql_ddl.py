"""CREATE TABLE and ALTER TABLE as Spark gets them."""

from __future__ import annotations

import pytest

from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits


def statement(sql: str, dialect: str = "sqe") -> EngineStatement:
    found = Reader().read(sql, dialect=dialect, limits=TextLimits())
    assert isinstance(found, EngineStatement)
    return found


TYPES = [
    ("boolean", "BOOLEAN"),
    ("tinyint", "TINYINT"),
    ("smallint", "SMALLINT"),
    ("integer", "INT"),
    ("int", "INT"),
    ("bigint", "BIGINT"),
    ("real", "FLOAT"),
    ("float", "FLOAT"),
    ("double", "DOUBLE"),
    ("double precision", "DOUBLE"),
    ("decimal", "DECIMAL(38, 10)"),
    ("decimal(5)", "DECIMAL(5, 0)"),
    ("numeric(5, 2)", "DECIMAL(5, 2)"),
    ("varchar", "STRING"),
    ("varchar(10)", "STRING"),
    ("char(3)", "STRING"),
    ("character varying(3)", "STRING"),
    ("text", "STRING"),
    ("string", "STRING"),
    ("varbinary", "BINARY"),
    ("date", "DATE"),
    ("time", "TIME(6)"),
    ("time(3)", "TIME(6)"),
    ("timestamp", "TIMESTAMP_NTZ"),
    ("timestamp(6)", "TIMESTAMP_NTZ"),
    ("timestamp without time zone", "TIMESTAMP_NTZ"),
    ("timestamp with time zone", "TIMESTAMP_LTZ"),
    ("timestamp(3) with time zone", "TIMESTAMP_LTZ"),
    ("datetime", "TIMESTAMP_NTZ"),
    ("timestamptz", "TIMESTAMP_LTZ"),
    ("json", "STRING"),
    ("uuid", "STRING"),
    ("ipaddress", "STRING"),
    ("variant", "VARIANT"),
    ("array(integer)", "ARRAY<INT>"),
    ("array<int>", "ARRAY<INT>"),
    ("integer array", "ARRAY<INT>"),
    ("integer[]", "ARRAY<INT>"),
    ("map(varchar, array(date))", "MAP<STRING, ARRAY<DATE>>"),
    ('row(a integer, "B c" varchar)', "STRUCT<`a`: INT, `B c`: STRING>"),
    ("struct<a: int, b: array<double precision>>", "STRUCT<`a`: INT, `b`: ARRAY<DOUBLE>>"),
    ("row(timestamp with time zone, x double)", "STRUCT<`col1`: TIMESTAMP_LTZ, `x`: DOUBLE>"),
    ("row(a array(integer), b array<integer>)", "STRUCT<`a`: ARRAY<INT>, `b`: ARRAY<INT>>"),
    ("row(integer array, date array)", "STRUCT<`col1`: ARRAY<INT>, `col2`: ARRAY<DATE>>"),
    ("row(a integer array, date array(date))", "STRUCT<`a`: ARRAY<INT>, `date`: ARRAY<DATE>>"),
    (
        "row(a row(b array(integer)), m map(varchar, array(row(array array(integer)))))",
        "STRUCT<`a`: STRUCT<`b`: ARRAY<INT>>, `m`: MAP<STRING, ARRAY<STRUCT<`array`: ARRAY<INT>>>>>",
    ),
    ("row(date date, time time(3))", "STRUCT<`date`: DATE, `time`: TIME(6)>"),
    ("geometry", "GEOMETRY(4326)"),
]


@pytest.mark.parametrize(("written", "spark"), TYPES, ids=[one[0] for one in TYPES])
def test_types(written: str, spark: str) -> None:
    assert statement(f"create table t (c {written})").spark_sql == f"CREATE TABLE `t` (`c` {spark})"
    assert statement(f"alter table t add column c {written}").spark_sql == f"ALTER TABLE `t` ADD COLUMNS (`c` {spark})"


# fmt: off
CREATE = [
    ("create table if not exists c.s.t (a int)", "CREATE TABLE IF NOT EXISTS `c`.`s`.`t` (`a` INT)"),
    (
        "create table t (a int not null, b varchar null comment 'it''s', \"C\" date) comment 'x'",
        "CREATE TABLE `t` (`a` INT NOT NULL, `b` STRING COMMENT 'it\\'s', `C` DATE) COMMENT 'x'",
    ),
    (
        "create table t (a int default 5, b date default date '2020-01-01', c varchar default 'x', d int default -1)",
        "CREATE TABLE `t` (`a` INT DEFAULT 5, `b` DATE DEFAULT DATE '2020-01-01', `c` STRING DEFAULT 'x', `d` INT DEFAULT"
        " -1) TBLPROPERTIES ('format-version' = '3')",
    ),
    (
        'create table t (a int, d date, n varchar) partitioned by (year(d), bucket(a, 8), truncate(3, n), a, month("D"))',
        "CREATE TABLE `t` (`a` INT, `d` DATE, `n` STRING) PARTITIONED BY (years(`d`), bucket(8, `a`), truncate(3, `n`), `a`,"
        " months(`D`))",
    ),
    (
        "create table t (a int) with (format = 'PARQUET', partitioning = ARRAY['day(d)', 'bucket(c, 8)', 'a'],"
        " format_version = 2, \"write.delete.mode\" = 'merge-on-read', compression_codec = 'ZSTD')",
        "CREATE TABLE `t` (`a` INT) PARTITIONED BY (days(`d`), bucket(8, `c`), `a`) TBLPROPERTIES ('format-version' = '2',"
        " 'write.delete.mode' = 'merge-on-read', 'write.parquet.compression-codec' = 'ZSTD')",
    ),
    (
        "create table t (a int) tblproperties ('a.b' = 'c''d', write.update.mode = 'x')",
        "CREATE TABLE `t` (`a` INT) TBLPROPERTIES ('a.b' = 'c\\'d', 'write.update.mode' = 'x')",
    ),
    ("create table t (a int) using iceberg", "CREATE TABLE `t` (`a` INT)"),
    ("create table t with (partitioning = ARRAY['a']) as select 1 as a", "CREATE TABLE `t` PARTITIONED BY (`a`) AS SELECT 1 AS `a`"),
    ("create table t as (select 1 as a)", "CREATE TABLE `t` AS (SELECT 1 AS `a`)"),
    ("create table t as with a as (select 1 as x) select * from a", "CREATE TABLE `t` AS WITH `a` AS (SELECT 1 AS `x`) SELECT * FROM `a`"),
    ("create table t as table u", "CREATE TABLE `t` AS SELECT * FROM `u`"),
    ("create table t as select ? as a", "CREATE TABLE `t` AS SELECT :sqe_p1 AS `a`"),
]
# fmt: on


@pytest.mark.parametrize(("sql", "spark"), CREATE, ids=[one[0][:70] for one in CREATE])
def test_create_table(sql: str, spark: str) -> None:
    assert statement(sql).spark_sql == spark


# fmt: off
ALTER = [
    ("add column a int", "ADD COLUMNS (`a` INT)"),
    ("add column a.b int comment 'x' after c", "ADD COLUMNS (`a`.`b` INT COMMENT 'x' AFTER `c`)"),
    ("add columns (a int, b date first)", "ADD COLUMNS (`a` INT, `b` DATE FIRST)"),
    ("drop column a", "DROP COLUMN `a`"),
    ('drop column if exists "A".b', "DROP COLUMN IF EXISTS `A`.`b`"),
    ("drop columns (a, b)", "DROP COLUMNS (`a`, `b`)"),
    ("rename column a.b to c", "RENAME COLUMN `a`.`b` TO `c`"),
    ("alter column a set data type bigint", "ALTER COLUMN `a` TYPE BIGINT"),
    ("alter a type decimal(10, 2)", "ALTER COLUMN `a` TYPE DECIMAL(10, 2)"),
    ("alter column a set not null", "ALTER COLUMN `a` SET NOT NULL"),
    ("alter column a drop not null", "ALTER COLUMN `a` DROP NOT NULL"),
    ("alter column a comment 'x'", "ALTER COLUMN `a` COMMENT 'x'"),
    ("alter column a first", "ALTER COLUMN `a` FIRST"),
    ("alter column a after b", "ALTER COLUMN `a` AFTER `b`"),
    ("set tblproperties ('a' = 'b', c.d = 5)", "SET TBLPROPERTIES ('a' = 'b', 'c.d' = '5')"),
    ("set properties format_version = 2, \"x.y\" = 'z'", "SET TBLPROPERTIES ('format-version' = '2', 'x.y' = 'z')"),
    ("set properties a = default", "UNSET TBLPROPERTIES IF EXISTS ('a')"),
    ("unset tblproperties if exists ('a', b.c)", "UNSET TBLPROPERTIES IF EXISTS ('a', 'b.c')"),
    ("add partition field day(ts) as d", "ADD PARTITION FIELD days(`ts`) AS `d`"),
    ("add partition field bucket(c, 16)", "ADD PARTITION FIELD bucket(16, `c`)"),
    ("drop partition field truncate(2, c)", "DROP PARTITION FIELD truncate(2, `c`)"),
    ("replace partition field a with month(b)", "REPLACE PARTITION FIELD `a` WITH months(`b`)"),
    ("create branch b", "CREATE BRANCH `b`"),
    ("create or replace tag x as of version 5 retain 3 days", "CREATE OR REPLACE TAG `x` AS OF VERSION 5 RETAIN 3 DAYS"),
    ("create branch if not exists b", "CREATE BRANCH IF NOT EXISTS `b`"),
    (
        "create branch b with retention (min_snapshots_to_keep => 3, max_snapshot_age_ms => 86400000, max_ref_age_ms => 120000)",
        "CREATE BRANCH `b` RETAIN 2 MINUTES WITH SNAPSHOT RETENTION 3 SNAPSHOTS 1440 MINUTES",
    ),
    ("drop branch if exists b", "DROP BRANCH IF EXISTS `b`"),
    ("drop tag t", "DROP TAG `t`"),
    ("set identifier fields a, b.c", "SET IDENTIFIER FIELDS `a`, `b`.`c`"),
    ("write ordered by a desc, bucket(4, b)", "WRITE ORDERED BY `a` DESC NULLS LAST, bucket(4, `b`) NULLS LAST"),
    ("write distributed by partition locally ordered by a", "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY `a` NULLS LAST"),
    ("write unordered", "WRITE UNORDERED"),
]
# fmt: on


@pytest.mark.parametrize(("sql", "spark"), ALTER, ids=[one[0] for one in ALTER])
def test_alter_table(sql: str, spark: str) -> None:
    assert statement(f"alter table s.t {sql}").spark_sql == f"ALTER TABLE `s`.`t` {spark}"


def test_if_exists_is_kept_beside_the_text() -> None:
    found = statement("alter table if exists t drop column a")
    assert found.if_exists
    assert found.spark_sql == "ALTER TABLE `t` DROP COLUMN `a`"
    assert not statement("alter table t drop column a").if_exists


def test_comments() -> None:
    assert statement("comment on table t is 'it''s'").spark_sql == "COMMENT ON TABLE `t` IS 'it\\'s'"
    assert statement("comment on table t is null").spark_sql == "COMMENT ON TABLE `t` IS NULL"
    assert (
        statement("comment on column s.t.\"C\" is 'x'").spark_sql == "ALTER TABLE `s`.`t` ALTER COLUMN `C` COMMENT 'x'"
    )
    assert statement("comment on column t.c is null").spark_sql == "ALTER TABLE `t` ALTER COLUMN `c` COMMENT ''"
