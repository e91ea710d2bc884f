"""What a translator gets wrong silently (sql-surface §6): the text that Spark gets, for each.

What these texts answer is measured by tests/integration/test_sql_semantics.py.
"""

from __future__ import annotations

import re

import pytest

from sqe_core.spi.errors import ResourcesError, UserError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits


def spark(sql: str, dialect: str = "sqe") -> str:
    statement = Reader().read(sql, dialect=dialect, limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    return statement.spark_sql


def expression(sql: str, dialect: str = "sqe") -> str:
    """One expression, without the name that it gets."""
    written = spark(f"select {sql} as x", dialect)
    return written.removeprefix("SELECT ").removesuffix(" AS `x`")


MEMBER = (
    "_sqe_member(`a` IN (SELECT `b` FROM `t`), `a`, (SELECT named_struct('n', count(*), 't', count(*) = count(`_sqe_v`))"
    " FROM (SELECT `b` FROM `t`) AS `_sqe_q`(`_sqe_v`)))"
)

EXPRESSIONS = [
    ("1/2", "_sqe_div(1, 2)"),
    ("date_add('hour', 2, ts)", "_sqe_time_add('hour', 2, `ts`)"),
    ("date_add('month', 2, ts)", "_sqe_date_add('month', 2, `ts`)"),
    ("date_diff('month', a, b)", "_sqe_months_between(`a`, `b`)"),
    ("day_of_week(d)", "CAST(weekday(`d`) + 1 AS BIGINT)"),
    ("extract(dow from d)", "CAST(weekday(`d`) + 1 AS BIGINT)"),
    ("a[i]", "_sqe_subscript(`a`, `i`)"),
    ("m[1]", "_sqe_subscript(`m`, 1)"),
    ("x AT TIME ZONE 'UTC'", "_sqe_at_zone(`x`, 'UTC')"),
    ("extract(hour from x AT TIME ZONE 'z')", "CAST(extract(HOUR FROM _sqe_local_time(`x`, 'z')) AS BIGINT)"),
    (
        "max(x, 2)",
        "if(count(`x`) = 0, NULL, slice(_sqe_descending(collect_list(`x`)), 1, CAST(_sqe_positive(2) AS INT)))",
    ),
    ("percentile_cont(0.5) within group (order by x)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY `x`)"),
    ("random(10)", "_sqe_random(10)"),
    ("substr('hello', 0)", "_sqe_substring('hello', 0)"),
    ("substr(a, 2)", "substring(`a`, 2)"),
    ("strpos(s, x, 2)", "_sqe_strpos(`s`, `x`, 2)"),
    ("split(s, d, 2)", "_sqe_split(`s`, `d`, CAST(_sqe_positive(2) AS INT))"),
    ("split_part(s, d, 9)", "_sqe_split_part(`s`, `d`, 9)"),
    ("regexp_extract(s, 'p')", "_sqe_regexp_extract(`s`, 'p', 0)"),
    ("truncate(x, 2)", "_sqe_truncate(`x`, 2)"),
    ("greatest(1, NULL)", "_sqe_greatest(1, NULL)"),
    ("ln(0)", "_sqe_ln(0)"),
    ("CAST(2.5 AS integer)", "_sqe_to_integer(2.5)"),
    ("TRY_CAST(x AS bigint)", "_sqe_try_to_bigint(`x`)"),
    ("CAST('hello' AS varchar(2))", "'he'"),
    ("CAST(x AS varchar(2))", "_sqe_to_varchar_n(`x`, 2)"),
    ("CAST(x AS char(3))", "_sqe_to_char_n(`x`, 3)"),
    ("CAST(1e0 AS varchar)", "_sqe_to_varchar(1e0D)"),
    ("CAST(x AS double)", "CAST(`x` AS DOUBLE)"),
    ("CAST(x AS timestamp)", "CAST(`x` AS TIMESTAMP_NTZ)"),
    ("CAST(x AS timestamp with time zone)", "CAST(`x` AS TIMESTAMP_LTZ)"),
    ("CAST(x AS time)", "_sqe_to_time(`x`)"),
    ("CAST(x AS json)", "_sqe_to_json(`x`)"),
    ("CAST(x AS decimal)", "CAST(`x` AS DECIMAL(38, 10))"),
    (
        'CAST(x AS row(a integer, "B" array(varchar)))',
        """CAST(_sqe_shaped(`x`, '["row", ["a", null], ["B", null]]') AS STRUCT<`a`: INT, `B`: ARRAY<STRING>>)""",
    ),
    ("IPADDRESS '2001:DB8:0:0::1'", "'2001:db8::1'"),
    ("CAST(x AS ipaddress) < y", "_sqe_address_bytes(_sqe_to_address(`x`)) < _sqe_address_bytes(`y`)"),
    ("TRY_CAST(x AS array(double))", "_sqe_whole(`x`, TRY_CAST(`x` AS ARRAY<DOUBLE>))"),
    ("to_hex(sha256(b))", "hex(_sqe_sha2(`b`, 256))"),
    ("xxhash64(b)", "_sqe_xxhash64(`b`)"),
    ("json_extract_scalar(j, '$.a')", "_sqe_json_extract_scalar(`j`, '$.a')"),
    ("json_query(j, 'lax $.a')", "_sqe_json_query(`j`, 'lax $.a', 0, FALSE)"),
    ("JSON '{}'", "_sqe_json_parse('{}')"),
    ("TIME '10:20:30'", "TIME '10:20:30'"),
    ("TIMESTAMP '2020-01-01 10:00:00'", "TIMESTAMP_NTZ '2020-01-01 10:00:00'"),
    ("TIMESTAMP '2020-01-01 10:00:00 Europe/Amsterdam'", "TIMESTAMP_LTZ '2020-01-01 10:00:00 Europe/Amsterdam'"),
    ("TIMESTAMP '2020-01-01 10:00:00+02:00'", "TIMESTAMP_LTZ '2020-01-01 10:00:00+02:00'"),
    ("DECIMAL '12345678901234567890.5'", "12345678901234567890.5BD"),
    ("12345678901234567890", "12345678901234567890BD"),
    ("to_timestamp(s, 'yyyy-mm-dd')", "_sqe_parse_teradata(`s`, 'yyyy-mm-dd')"),
    ("date_format(ts, '%v')", "_sqe_format_mysql(`ts`, '%v')"),
    ("from_unixtime(1.5)", "_sqe_from_unixtime(1.5)"),
    ("TRY(a / b)", "_sqe_div(`a`, nullif(`b`, 0))"),
    ("TRY(CAST(a AS integer) + 1)", "_sqe_try_add(_sqe_try_to_integer(`a`), 1)"),
    ("a || b || c", "_sqe_concat(`a`, `b`, `c`)"),
    ("a LIKE 'x%'", "`a` LIKE 'x%'"),
    (r"a LIKE 'x\y'", r"`a` LIKE 'x\\\\y'"),
    ("a LIKE b", "`a` LIKE `b` ESCAPE '\\u0000'"),
    ("a LIKE 'x$%' ESCAPE '$'", "`a` LIKE 'x$%' ESCAPE '$'"),
    ("a ~ 'b'", "rlike(`a`, 'b')"),
    ("a !~* 'b'", "NOT (rlike(`a`, concat('(?i)', 'b')))"),
    ("a IS NOT DISTINCT FROM b", "_sqe_same(`a`, `b`)"),
    ("a IS DISTINCT FROM b", "NOT (_sqe_same(`a`, `b`))"),
    ("a = ANY (SELECT b FROM t)", MEMBER),
    ("a <> ALL (SELECT b FROM t)", f"NOT {MEMBER}"),
    ("a IN (SELECT b FROM t)", MEMBER),
    (
        "CASE WHEN a NOT IN (SELECT b FROM t) OR c THEN 1 END",
        "CASE WHEN (`a` NOT IN (SELECT `b` FROM `t`)) OR `c` THEN 1 END",
    ),
    ("CASE WHEN (a NOT IN (SELECT b FROM t)) IS NULL THEN 1 END", f"CASE WHEN (NOT {MEMBER}) IS NULL THEN 1 END"),
    ("any_match(a, x -> x > 1)", "exists(`a`, `x` -> _sqe_gt(`x`, 1))"),
    ("none_match(a, x -> x > 1)", "(NOT exists(`a`, `x` -> _sqe_gt(`x`, 1)))"),
    ("reduce(a, 0, (s, x) -> s + x, s -> s)", "aggregate(`a`, 0, (`s`, `x`) -> _sqe_add(`s`, `x`), `s` -> `s`)"),
    ("element_at(a, 5)", "_sqe_element_at(`a`, 5)"),
    ("approx_distinct(x)", "approx_count_distinct(`x`)"),
    ("grouping(a, b)", "CAST(grouping(`a`) * 2 + grouping(`b`) * 1 AS INT)"),
    ("INTERVAL '3' DAY", "INTERVAL '3' DAY"),
    ("INTERVAL -'1-2' YEAR TO MONTH", "INTERVAL -'1-2' YEAR TO MONTH"),
    ("INTERVAL '2' QUARTER", "INTERVAL '6' MONTH"),
    ("INTERVAL '5 days'", "INTERVAL '5 days'"),
    ("position('a' IN b)", "CAST(instr(`b`, 'a') AS BIGINT)"),
    ("trim(LEADING 'x' FROM a)", "trim(LEADING 'x' FROM `a`)"),
    ("row(1, 'a')", "named_struct('col1', 1, 'col2', 'a')"),
    ("MAP(ARRAY[1], ARRAY[2])", "map_from_arrays(array(1), array(2))"),
    ("X'0aff'", "X'0AFF'"),
    ("a.b.c", "`a`.`b`.`c`"),
    ("(a).b", "(`a`).`b`"),
    ("-a + - 5", "_sqe_add(-`a`, -5)"),
    ("a - (b - c)", "_sqe_sub(`a`, (_sqe_sub(`b`, `c`)))"),
    ("a - b + c", "_sqe_chain('-+', `a`, `b`, `c`)"),
    ("a * b * c - d", "_sqe_sub(_sqe_chain('**', `a`, `b`, `c`), `d`)"),
    ("1 + 2 - 3", "1 + 2 - 3"),
    ("NOT a = b AND c OR d", "((NOT (_sqe_eq(`a`, `b`))) AND `c`) OR `d`"),
    ("a = 1 OR 2 > a OR a < 3", "`a` = 1 OR 2 > `a` OR `a` < 3"),
    ("a = 1.5", "_sqe_eq(`a`, 1.5)"),
    ("a >= 1", "_sqe_ge(`a`, 1)"),
    ("a <> 'x'", "`a` <> 'x'"),
    ("a > DATE '2020-01-01'", "`a` > DATE '2020-01-01'"),
    ("a IN (1, 'b')", "`a` IN (1, 'b')"),
    ("a NOT IN (b, 1)", "NOT _sqe_in(`a`, `b`, 1)"),
    ("(a, b) IN ((1, 2))", "_sqe_in((`a`, `b`), (1, 2))"),
    ("a BETWEEN 1 AND 2", "`a` BETWEEN 1 AND 2"),
    ("a BETWEEN b AND 2", "_sqe_between(`a`, `b`, 2)"),
    ("CAST(a AS char(3)) = b", "rtrim(_sqe_to_char_n(`a`, 3)) = rtrim(`b`)"),
    ("CASE WHEN NULL THEN 1 END", "CASE WHEN CAST(NULL AS BOOLEAN) THEN 1 END"),
    ("a = b IS NULL", None),
    ("CASE a WHEN 1 THEN 2 ELSE 3 END", "CASE `a` WHEN 1 THEN 2 ELSE 3 END"),
    ("sum(a) FILTER (WHERE b)", "_sqe_sum(sum(`a`) FILTER (WHERE `b`), `a`)"),
    ("count(*) FILTER (WHERE b) OVER ()", "count(if(`b`, 1, NULL)) OVER ()"),
    ("row_number() OVER ()", "CAST(row_number() OVER (ORDER BY NULL) AS BIGINT)"),
    ("rank() OVER (PARTITION BY a)", "CAST(rank() OVER (PARTITION BY `a` ORDER BY NULL) AS BIGINT)"),
    ("lag(a) IGNORE NULLS OVER ()", "lag(`a`) IGNORE NULLS OVER (ORDER BY NULL)"),
    ("row_number() OVER (ORDER BY b)", "CAST(row_number() OVER (ORDER BY `b` ASC NULLS LAST) AS BIGINT)"),
    ("lag(a) IGNORE NULLS OVER (ORDER BY b)", "lag(`a`) IGNORE NULLS OVER (ORDER BY `b` ASC NULLS LAST)"),
    ("current_timestamp(3)", "current_timestamp()"),
    ("localtime", "current_time()"),
]


@pytest.mark.parametrize(("sql", "expected"), EXPRESSIONS, ids=[one[0] for one in EXPRESSIONS])
def test_expressions(sql: str, expected: str | None) -> None:
    if expected is not None:
        assert expression(sql) == expected


# fmt: off
QUERIES = [
    ("select 1 where 1 in (values 1, 2)", "SELECT 1 AS `1` WHERE 1 IN (SELECT * FROM VALUES (1), (2))"),
    ("select a from t where a = any (values 1)", "SELECT `a` FROM `t` WHERE `a` IN (SELECT * FROM VALUES (1))"),
    ("select count(*) from t group by ()", "SELECT count(*) AS `count(*)` FROM `t`"),
    ("select 1 as x from t group by ()", "SELECT 1 AS `x` FROM `t` GROUP BY GROUPING SETS (())"),
    ("select a from t group by (a), ()", "SELECT `a` FROM `t` GROUP BY (`a`)"),
    ("select a from t where null", "SELECT `a` FROM `t` WHERE CAST(NULL AS BOOLEAN)"),
    ("select a from t join u on (null)", "SELECT `a` FROM `t` JOIN `u` ON CAST(NULL AS BOOLEAN)"),
    ("select count(*) filter (where null) as x from t", "SELECT count(*) FILTER (WHERE CAST(NULL AS BOOLEAN)) AS `x` FROM `t`"),
    ("select distinct a as b from t order by a", "SELECT DISTINCT `a` AS `b` FROM `t` ORDER BY `b` ASC NULLS LAST"),
    (
        "select distinct date_trunc('day', a) from t order by date_trunc('day', a) desc, date_trunc('week', a)",
        "SELECT DISTINCT _sqe_date_trunc('day', `a`) AS `date_trunc('day', a)` FROM `t`"
        " ORDER BY `date_trunc('day', a)` DESC NULLS LAST, _sqe_date_trunc('week', `a`) ASC NULLS LAST",
    ),
    ("select row(1).x, r.a from t", "SELECT named_struct('col1', 1).`x` AS `x`, `r`.`a` FROM `t`"),
    ("select * from unnest(a) with ordinality as t(x, o)", "SELECT * FROM _sqe_unnest(TRUE, `a`) AS `t`(`x`, `o`)"),
    ("select * from t left join unnest(a) as u(x) on true", "SELECT * FROM `t` LEFT JOIN LATERAL _sqe_unnest(FALSE, `a`) AS `u`(`x`) ON TRUE"),
    (
        "select a from t order by a fetch first 1 row with ties",
        "SELECT * EXCEPT (`_sqe_rank`) FROM (SELECT *, CAST(rank() OVER (ORDER BY `a` ASC NULLS LAST) AS BIGINT) AS `_sqe_rank` FROM"
        " (SELECT `a` FROM `t`) AS `_sqe_i`) AS `_sqe_j` WHERE `_sqe_rank` <= 1 ORDER BY `a` ASC NULLS LAST",
    ),
    (
        "select a from t qualify rank() over (order by b) = 1 limit 1",
        "SELECT * EXCEPT (`_sqe_q`) FROM (SELECT `a`, (CAST(rank() OVER (ORDER BY `b` ASC NULLS LAST) AS BIGINT)) = 1 AS `_sqe_q` FROM"
        " `t`) AS `_sqe_i` WHERE `_sqe_q` LIMIT 1",
    ),
    ("select a from t order by a", "SELECT `a` FROM `t` ORDER BY `a` ASC NULLS LAST"),
    ("select a from t order by a desc nulls first", "SELECT `a` FROM `t` ORDER BY `a` DESC NULLS FIRST"),
    ("select a from t offset 2 limit 3", "SELECT `a` FROM `t` LIMIT 3 OFFSET 2"),
    ("select a from t limit all", "SELECT `a` FROM `t`"),
    ('select * from s."t$files"', "SELECT * FROM `s`.`t$files`"),
    ("select * from table_snapshots('s', 't')", "SELECT * FROM `s`.`t$snapshots`"),
    ("select * from t for version as of 5 as x", "SELECT * FROM `t` VERSION AS OF 5 AS `x`"),
    ("select * from t version as of 'tag'", "SELECT * FROM `t` VERSION AS OF 'tag'"),
    ("select * from t for system_time as of date '2026-04-01'", "SELECT * FROM `t` TIMESTAMP AS OF '2026-04-01'"),
    ("select * from t for timestamp as of 1000000000000", "SELECT * FROM `t` TIMESTAMP AS OF '2001-09-09 01:46:40.000'"),
    ("select * from t tablesample bernoulli (10)", "SELECT * FROM `t` TABLESAMPLE (10 PERCENT)"),
    ("select 1 except all select 2", "SELECT 1 AS `1` EXCEPT ALL SELECT 2 AS `2`"),
    ("select 1 union all select 2 intersect select 3", "SELECT 1 AS `1` UNION ALL (SELECT 2 AS `2` INTERSECT SELECT 3 AS `3`)"),
    ("select * exclude (a) from t", "SELECT * EXCEPT (`a`) FROM `t`"),
    ("select t.* from t", "SELECT `t`.* FROM `t`"),
    ("select * from a, b join c on x = y", "SELECT * FROM `a` INNER JOIN `b` JOIN `c` ON _sqe_eq(`x`, `y`)"),
    ("select * from a, b join c using (x)", "SELECT * FROM `a` INNER JOIN (`b` JOIN `c` USING (`x`))"),
    ("select * from a join b join c on x = y on z = w", "SELECT * FROM `a` JOIN (`b` JOIN `c` ON _sqe_eq(`x`, `y`)) ON _sqe_eq(`z`, `w`)"),
    ("with a(x) as (select 1) select * from a", "WITH `a`(`x`) AS (SELECT 1 AS `1`) SELECT * FROM `a`"),
    ("update t set a = default where b", "UPDATE `t` SET `a` = DEFAULT WHERE `b`"),
    ("delete from t using u, v where t.a = u.a", "DELETE FROM `t` WHERE EXISTS (SELECT 1 FROM `u` INNER JOIN `v` WHERE _sqe_eq(`t`.`a`, `u`.`a`))"),
    ("update t as x set a = s.b from s where s.i = x.i", "MERGE INTO `t` AS `x` USING `s` ON _sqe_eq(`s`.`i`, `x`.`i`) WHEN MATCHED THEN UPDATE SET `a` = `s`.`b`"),
    ("with x as (select 1 as a) delete from t where a in (select a from x)", "WITH `x` AS (SELECT 1 AS `a`) DELETE FROM `t` WHERE `a` IN (SELECT `a` FROM `x`)"),
    ("with x as (select 1 as a) update t set b = x.a from x", "WITH `x` AS (SELECT 1 AS `a`) MERGE INTO `t` USING `x` ON TRUE WHEN MATCHED THEN UPDATE SET `b` = `x`.`a`"),
    ("insert into t partition (a = 1.5) select 2", "INSERT INTO `t` PARTITION (`a` = 1.5) SELECT 2 AS `2`"),
    ("insert overwrite t select 1", "INSERT OVERWRITE `t` SELECT 1 AS `1`"),
    ("insert into t partition (a = 1) select 2", "INSERT INTO `t` PARTITION (`a` = 1) SELECT 2 AS `2`"),
    ("insert into t (a, b) values (1, default), (2, 3)", "INSERT INTO `t` (`a`, `b`) VALUES (1, DEFAULT), (2, 3)"),
    ("insert into t values 1, 2", "INSERT INTO `t` VALUES (1), (2)"),
    ("create table t as select 1 as a with no data", "CREATE TABLE `t` AS SELECT * FROM (SELECT 1 AS `a`) AS `_sqe_source` WHERE FALSE"),
    ("create table t (x) as select 1", "CREATE TABLE `t` AS SELECT * FROM (SELECT 1 AS `1`) AS `_sqe_source`(`x`)"),
    ("create or replace table t as select 1 as a with data", "CREATE OR REPLACE TABLE `t` AS SELECT 1 AS `a`"),
    (
        "select a from t group by a having max(b) > 1 order by min(b)",
        "SELECT * EXCEPT (`_sqe_o1`) FROM (SELECT `a`, min(`b`) AS `_sqe_o1` FROM `t` GROUP BY `a` HAVING"
        " _sqe_gt(_sqe_maximum(max(_sqe_number(`b`)), max(`b`), `b`), 1)) AS `_sqe_i` ORDER BY `_sqe_o1` ASC NULLS LAST",
    ),
]
# fmt: on


@pytest.mark.parametrize(("sql", "expected"), QUERIES, ids=[one[0] for one in QUERIES])
def test_statements(sql: str, expected: str) -> None:
    assert spark(sql) == expected


@pytest.mark.parametrize(
    ("sql", "sqe", "trino"),
    [
        ("select count(*)", "count(*)", "_col0"),
        ("select A + 1", "a + 1", "_col0"),
        ("select Sum( X )  /* c */ -1", "sum( x ) -1", "_col0"),
        ("select a, 'It''s'", "'It''s'", "_col1"),
        ("select cast(a as int)", "cast(a as int)", "_col0"),
        ("select '" + "x" * 80 + "'", "_col0", "_col0"),
        ("select (select 1)", "(select 1)", "_col0"),
    ],
)
def test_names_of_unnamed_columns(sql: str, sqe: str, trino: str) -> None:
    assert spark(sql).endswith(f"AS `{sqe}`")
    assert spark(sql, "trino").endswith(f"AS `{trino}`")


def test_what_follows_the_dialect() -> None:
    assert spark("values (1, 2)", "trino") == "SELECT * FROM (VALUES (1, 2)) AS `_sqe_v`(`_col0`, `_col1`)"
    assert spark("values (1, 2)") == "VALUES (1, 2)"
    assert expression("cast(a as decimal)", "trino") == "CAST(`a` AS DECIMAL(38, 0))"
    assert expression("repeat('a', 2)") == "_sqe_repeat('a', 2)"
    assert expression("repeat('a', 2)", "trino") == "_sqe_array_repeat('a', 2)"


@pytest.mark.rule("TEST-6")
@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a'b", r"'a\'b'"),
        ("a\\", r"'a\\'"),
        ("\\'", r"'\\\''"),
        ("a\nb", "'a\nb'"),
        ("-- x", "'-- x'"),
        ("${x}", "'${x}'"),
        ("`", "'`'"),
        ('"', "'\"'"),
        ("é😀", "'é😀'"),
    ],
)
def test_string_literals_cannot_end_early(value: str, written: str) -> None:
    assert expression("'" + value.replace("'", "''") + "'") == written


def test_control_characters_are_escaped() -> None:
    assert expression("U&'\\0001\\001b'") == "'\\u0001\\u001b'"


@pytest.mark.rule("TEST-6")
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('"a`b"', "`a``b`"),
        ('"A B"', "`A B`"),
        ('"a.b"', "`a.b`"),
        ('"select"', "`select`"),
        ("Select_", "`select_`"),
        ('"a""b"', '`a"b`'),
    ],
)
def test_names_cannot_end_early(name: str, written: str) -> None:
    assert spark(f"select 1 from {name}") == f"SELECT 1 AS `1` FROM {written}"


WORDS = """
    date time timestamp interval limit offset fetch desc asc all first last if row map array filter over window
    partition range rows groups set update merge show tables schema view index comment start commit replace
    lateral semi anti pivot ilike default value data type key uuid json double zone at year month day hour no
    only ties ordinality sample include explain analyze truncate use session catalog function language system
    position length left_ user_ top qualify_ grouping sets
"""


@pytest.mark.rule("TEST-6")
@pytest.mark.parametrize("word", WORDS.split())
def test_keywords_as_names(word: str) -> None:
    assert spark(f"select {word}, t.{word}, {word} + 1 as {word} from {word} where {word} > 0 order by {word}") == (
        f"SELECT `{word}`, `t`.`{word}`, _sqe_add(`{word}`, 1) AS `{word}` FROM `{word}` WHERE _sqe_gt(`{word}`, 0)"
        f" ORDER BY `{word}` ASC NULLS LAST"
    )


@pytest.mark.rule("TEST-6")
def test_comments_do_not_reach_the_engine() -> None:
    assert spark("select /* a -- */ 1 as x -- ' \n from t /* ; */") == "SELECT 1 AS `x` FROM `t`"
    assert spark("select /*+ BROADCAST(t) */ a from t") == "SELECT `a` FROM `t`"


def test_a_window_with_a_name() -> None:
    assert spark("select sum(a) over w, sum(a) over (w rows 1 preceding) from t window w as (order by b)") == (
        "SELECT _sqe_sum(sum(`a`) OVER `w`, `a`) AS `sum(a) over w`, _sqe_sum(sum(`a`) OVER (`w` ROWS 1 PRECEDING), `a`) AS"
        " `sum(a) over (w rows 1 preceding)` FROM `t` WINDOW `w` AS (ORDER BY `b` ASC NULLS LAST)"
    )


def test_the_smallest_bigint_is_one() -> None:
    assert expression("-9223372036854775808") == "-9223372036854775808L"
    assert expression("- 9223372036854775807") == "-9223372036854775807"
    assert expression("9223372036854775808") == "9223372036854775808BD"
    assert expression("-9223372036854775809") == "-9223372036854775809BD"


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("timestamp with time zone '2026-01-01 00:00:00 +02:00'", "TIMESTAMP_LTZ '2026-01-01 00:00:00 +02:00'"),
        ("timestamp with time zone '2026-01-01'", "TIMESTAMP_LTZ '2026-01-01'"),
        ("timestamp '2026-01-01 00:00:00 +02:00'", "TIMESTAMP_LTZ '2026-01-01 00:00:00 +02:00'"),
        ("timestamp without time zone '2026-01-01'", "TIMESTAMP_NTZ '2026-01-01'"),
        ("double precision '1.5'", "CAST('1.5' AS DOUBLE)"),
    ],
)
def test_literals_whose_type_has_several_words(sql: str, written: str) -> None:
    assert expression(sql) == written


@pytest.mark.parametrize("dialect", ["sqe", "spark"])
def test_numbered_parameters(dialect: str) -> None:
    statement = Reader().read("SELECT $2, $1, $2", dialect=dialect, limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    assert (statement.parameters, statement.positional) == (("sqe_p1", "sqe_p2"), True)
    assert re.findall(r":\w+", statement.spark_sql) == [":sqe_p2", ":sqe_p1", ":sqe_p2"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT $2", "Parameter $2 stands here, and one below it nowhere"),
        ("SELECT $1, $3", "Parameter $3 stands here, and one below it nowhere"),
        ("SELECT $1, ?", "Parameters are either all ?, all numbered or all named"),
        ("SELECT $1, :a", "Parameters are either all ?, all numbered or all named"),
        ("SELECT $0", 'Unexpected "$"'),
        ("SELECT $1a", 'Unexpected "$"'),
        ("SELECT $999999", 'Unexpected "$"'),
    ],
)
def test_numbered_parameters_have_no_gap(sql: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        Reader().read(sql, dialect="sqe", limits=TextLimits())
    assert refused.value.message == message
    assert refused.value.position is not None


def test_quotes_of_dollars_are_no_parameters() -> None:
    assert expression("$a$1 $2$a$") == "'1 $2'"
    assert expression("$$x$$") == "'x'"


@pytest.mark.rule("LIM-4")
@pytest.mark.parametrize(
    "call",
    [
        "{} in (select b from t)",
        "{} = any (select b from t)",
        "approx_percentile(a, {})",
        "approx_percentile(a, array[{}])",
        "histogram({})",
        "map_agg({}, a)",
        "multimap_agg(a, {})",
        "map_union({})",
        "approx_most_frequent(3, {}, 10)",
        "max_by(a, {})",
        "max_by(a, {}, 3)",
    ],
)
def test_calls_that_are_written_several_times_do_not_multiply(call: str) -> None:
    text = "a"
    for _ in range(14):
        text = call.format(f"({text})")
    with pytest.raises(ResourcesError, match="nest too deeply"):
        spark(f"select {text} as b from t")


def test_membership_inside_of_membership_does_not_multiply() -> None:
    text = "select a in (select b from t) as b from t"
    for _ in range(20):
        text = f"select a in ({text}) as b from t"
    with pytest.raises(ResourcesError, match="nest too deeply"):
        spark(text)
