"""What is refused, and what the message tells to do instead."""

from __future__ import annotations

import pytest

from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.sql.reader import Reader
from sqe_core.sql.spark import functions
from sqe_core.sql.statement import TextLimits


def refusal(sql: str, dialect: str = "sqe") -> UserError:
    with pytest.raises(UserError) as caught:
        Reader().read(sql, dialect=dialect, limits=TextLimits())
    return caught.value


# fmt: off
NOT_SUPPORTED = [
    # Other engines' statements
    ("PRAGMA table_info(t)", "PRAGMA is not supported", "use DESCRIBE t, SHOW SESSION or SET SESSION name = value"),
    ("SHOW ENGINES", "SHOW ENGINES is not supported", "SQE has one kind of table, Iceberg"),
    ("SHOW STATUS", "SHOW STATUS is not supported", "use SHOW SESSIONS and SHOW QUERIES"),
    ("CALL system.runtime.kill_everybody()", "There is no procedure system.runtime.kill_everybody", "there are kill_query and kill_session"),
    ("SHOW PARTITIONS t", "SHOW PARTITIONS is not supported", 'query the table\'s partitions, as in SELECT * FROM "t$partitions"'),
    ("SHOW FULL TABLES", "SHOW FULL is not supported", "leave FULL out"),
    ("CREATE INDEX i ON t (a)", "CREATE INDEX is not supported", "Iceberg tables have no indexes; partition the table or write it sorted"),
    ("CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE is not supported", "Iceberg tables have no indexes; partition the table or write it sorted"),
    ("CREATE FUNCTION f() RETURNS int RETURN 1", "CREATE FUNCTION is not supported", "SQE has no functions of users; write the expression in a view"),
    ("CREATE SEQUENCE s", "CREATE SEQUENCE is not supported", "SQE has no sequences; use row_number() or uuid()"),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1", "SQE has no materialized views", "create a table with CREATE TABLE … AS SELECT"),
    ("CREATE TEMP TABLE t (a int)", "SQE has no temporary tables", "use CREATE TEMPORARY VIEW"),
    ("CREATE EXTERNAL TABLE t (a int)", "CREATE EXTERNAL is not supported", "every table is an Iceberg table; leave EXTERNAL out"),
    ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1", "CREATE GLOBAL is not supported", "use CREATE TEMPORARY VIEW"),
    ("SUMMARIZE t", "SUMMARIZE is not supported", "use SHOW STATS FOR t, or aggregate functions; sqe-cli does it with .summarize t"),
    ("COPY t TO 'x.csv'", "COPY is not supported", "create a table and INSERT into it"),
    ("VACUUM t", "VACUUM is not supported", "expiring snapshots is a procedure; it comes with a later release"),
    ("REPLACE INTO t VALUES (1)", "REPLACE is not supported", "write CREATE OR REPLACE TABLE … AS, or MERGE"),
    ("LOCK TABLES t", "LOCK is not supported", "tables need no locks: each statement commits by itself"),
    ("EXEC p", "EXEC is not supported", "SQE has no stored procedures"),
    ("exit", "EXIT is not supported", "the shell is left with .quit"),
    # What Spark would run (STMT-3)
    ("ADD JAR '/x.jar'", "ADD is not supported", "SQE loads no code and no files for users"),
    ("LIST JAR", "LIST JAR is not supported", "SQE loads no code and no files for users"),
    ("CACHE TABLE t", "CACHE is not supported", "SQE caches what it needs by itself"),
    ("UNCACHE TABLE t", "UNCACHE is not supported", "SQE caches what it needs by itself"),
    ("CLEAR CACHE", "CLEAR is not supported", "SQE caches what it needs by itself"),
    ("REFRESH TABLE t", "REFRESH is not supported", "tables are always up to date"),
    ("LOAD DATA INPATH 'x' INTO TABLE t", "LOAD is not supported", "create a table and INSERT into it"),
    ("DECLARE x INT", "DECLARE is not supported", "send values as parameters"),
    ("SET spark.sql.ansi.enabled = false", "SET is not supported", "session properties are set with SET SESSION name = value; SHOW SESSION lists them"),
    ("SET -v", "SET is not supported", "session properties are set with SET SESSION name = value; SHOW SESSION lists them"),
    ("RESET", "RESET is not supported", "write RESET SESSION name, or RESET SESSION for all properties"),
    ("MSCK REPAIR TABLE t", "MSCK is not supported", "Iceberg tables need no repair"),
    ("BEGIN SELECT 1; END", "Only one statement at a time", "send the statements one by one"),
    ("BEGIN SELECT 1", "Scripts between BEGIN and END are not supported", "send the statements one by one"),
    ("INSERT OVERWRITE DIRECTORY '/x' SELECT 1", "INSERT OVERWRITE DIRECTORY is not supported", None),
    ("INSERT OVERWRITE LOCAL DIRECTORY '/x' SELECT 1", "INSERT OVERWRITE DIRECTORY is not supported", None),
    ("MAP a USING 'cat'", "MAP is not supported", None),
    # DDL
    ("CREATE TABLE t (a int PRIMARY KEY)", "PRIMARY is not supported: Iceberg tables have no constraints but NOT NULL", "leave it out"),
    ("CREATE TABLE t (a int, PRIMARY KEY (a))", "PRIMARY is not supported: Iceberg tables have no constraints but NOT NULL", "leave it out"),
    ("CREATE TABLE t (a int CHECK (a > 1))", "CHECK is not supported: Iceberg tables have no constraints but NOT NULL", "leave it out"),
    ("CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY)", "GENERATED is not supported: Iceberg tables have no constraints but NOT NULL", "leave it out"),
    ("CREATE TABLE t (a int) USING csv", "USING CSV is not supported: every table is an Iceberg table", "leave USING out"),
    ("CREATE TABLE t (a int) LOCATION 's3://x'", "LOCATION is not supported: the catalog chooses where a table's files lie", None),
    ("CREATE TABLE t (a int) WITH (format = 'ORC')", "Tables are stored as Parquet", "leave format out"),
    ("CREATE TABLE t (a int) WITH (location = 's3://x')", "The table property location is not supported", "the catalog chooses where a table's files lie"),
    ("CREATE TABLE t (a int) WITH (nonsense = 1)", "Unknown table property nonsense", "the table properties are listed in docs/sql.md"),
    ("CREATE TABLE t (a int DEFAULT now())", "A default must be a literal", "such as 0, 'text', TRUE or DATE '2026-01-01'"),
    ("CREATE TABLE t (a int DEFAULT 1 + 1)", "A default must be a literal", "such as 0, 'text', TRUE or DATE '2026-01-01'"),
    ("CREATE TABLE t (a int DEFAULT 1) WITH (format_version = 2)", "DEFAULT needs format version 3", "leave format_version out"),
    ("CREATE TABLE t (a interval day to second)", "A column cannot have the type INTERVAL DAY TO SECOND", None),
    ("CREATE TABLE t (a timestamp_ns)", "A column cannot have the type TIMESTAMP_NS", None),
    ("CREATE TABLE t (a int) PARTITIONED BY (void(a))", "The transform void cannot be chosen", "leave the column out of the partitioning"),
    (
        "CREATE TABLE t (a int) PARTITIONED BY (hash(a))",
        "Unknown partition transform hash",
        "the transforms are year, month, day, hour, bucket(n, column) and truncate(n, column)",
    ),
    ("CREATE TABLE t (a int) PARTITIONED BY (bucket(4, a, b))", "A partition transform takes one column", None),
    ("CREATE TABLE t (a int) AS SELECT 1", "Columns with types and AS exclude each other", "name the columns without types, or cast"),
    ("CREATE OR REPLACE TABLE IF NOT EXISTS t AS SELECT 1", "OR REPLACE and IF NOT EXISTS exclude each other", None),
    ("CREATE SCHEMA s AUTHORIZATION u", "CREATE SCHEMA … AUTHORIZATION is not supported", "the schema belongs to its creator"),
    ("CREATE VIEW v TBLPROPERTIES ('a' = 'b') AS SELECT 1", "TBLPROPERTIES is not supported in CREATE VIEW", None),
    ("CREATE VIEW v AS SELECT ?", "A view cannot hold parameters", "write the values into its query"),
    ("ALTER SCHEMA s RENAME TO r", "ALTER SCHEMA is not supported", "create a new schema and move the tables"),
    ("ALTER TABLE t ALTER COLUMN a SET DEFAULT 1", "The default of an existing column cannot be changed", "add a column with the new default"),
    ("ALTER TABLE t SET LOCATION 'x'", "SET LOCATION is not supported: the catalog chooses where a table's files lie", None),
    ("ALTER TABLE t EXECUTE optimize WHERE a = 1", "EXECUTE … WHERE is not supported", "leave it out: the whole table is maintained"),
    ("ALTER VIEW v AS SELECT 1", "ALTER VIEW … AS is not supported", "use CREATE OR REPLACE VIEW"),
    ("TRUNCATE TABLE t PARTITION (a = 1)", "TRUNCATE … PARTITION is not supported", "use DELETE FROM t WHERE …"),
    ("DROP TABLE a, b", "One DROP takes one name", "send one statement for each"),
    ("DROP TABLE a CASCADE", "DROP TABLE … CASCADE is not supported", "views that use the table stay; drop them one by one"),
    ("DROP MATERIALIZED VIEW v", "SQE has no materialized views", None),
    ("DESCRIBE EXTENDED t", "DESCRIBE EXTENDED is not supported", "use DESCRIBE t and SHOW CREATE TABLE t"),
    ("EXPLAIN SHOW TABLES", "EXPLAIN takes a query, INSERT, UPDATE, DELETE, MERGE or CREATE TABLE", None),
    # Clauses of queries and DML (STMT-8)
    ("SELECT TOP 5 a FROM t", "SELECT TOP is not supported", "write LIMIT n at the end of the query"),
    ("SELECT TOP (5) * FROM t", "SELECT TOP is not supported", "write LIMIT n at the end of the query"),
    ("SELECT DISTINCT ON (a) b FROM t", "SELECT DISTINCT ON is not supported", "use QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1"),
    ("SELECT a FROM t FOR UPDATE", "SQE has no row locks", "leave FOR UPDATE out"),
    *(
        (f"SELECT * FROM t TABLESAMPLE {clause}", "TABLESAMPLE takes numbers only", "write the number itself")
        for clause in ("BERNOULLI (?)", "SYSTEM (1 + 1)", "BERNOULLI (-1)", "BERNOULLI (5) REPEATABLE (:seed)")
    ),
    ("SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM t", "EXCLUDE in a window frame is not supported", None),
    ("SELECT 1 FROM t ASOF JOIN u ON t.a = u.a", "ASOF JOIN is not supported", "join with <= and keep one row of each: QUALIFY row_number() OVER (PARTITION BY …) = 1"),
    ("SELECT 1 FROM t ASOF LEFT JOIN u ON t.a = u.a", "ASOF JOIN is not supported", "join with <= and keep one row of each: QUALIFY row_number() OVER (PARTITION BY …) = 1"),
    ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS TRUE)", "MATCH_RECOGNIZE is not supported", None),
    ("SELECT a FROM t LATERAL VIEW explode(b) c AS d", None, None),
    ("SELECT * REPLACE (1 AS a) FROM t", "* REPLACE is not supported", "name the columns"),
    ("SELECT a COLLATE x FROM t", "COLLATE is not supported", None),
    ("SELECT * FROM 'file.parquet'", "Files cannot be queried by name", "load the file into a table first"),
    ("SELECT * FROM read_csv('x')", "read_csv is not supported yet", "it comes with a later release"),
    ("SELECT a FROM t UNION CORRESPONDING SELECT b FROM u", "BY NAME is not supported here", None),
    ("SELECT a BETWEEN SYMMETRIC 1 AND 2", "SYMMETRIC is not supported here", None),
    ("SELECT a FROM t GROUP BY DISTINCT a", "GROUP BY DISTINCT is not supported", None),
    ("SELECT a LIKE ANY ('x', 'y')", "LIKE ANY and LIKE ALL are not supported", "join the patterns with OR"),
    ("SELECT listagg(a, ',' ON OVERFLOW TRUNCATE) WITHIN GROUP (ORDER BY a) FROM t", "ON OVERFLOW TRUNCATE is not supported", None),
    ("SELECT word_stem('x')", "The function word_stem is not supported", functions.refused()["word_stem"]),
    ("SELECT timezone_hour(a)", "Timestamps do not keep their time zone", None),
    ("SET WRITE_BRANCH = 'b'", "SET WRITE_BRANCH is not supported", "it comes with a later release"),
    ("SELECT extract(TIMEZONE_HOUR FROM a)", "Timestamps do not keep their time zone", None),
    ("WITH FUNCTION f() RETURNS int RETURN 1 SELECT 1", "Functions cannot be defined in SQL", "write the expression in the query"),
    ("SELECT * FROM t FOR VERSION AS OF ?", "A version must be a number or a name in single quotes", "parameters are not possible"),
    ("SELECT * FROM t FOR TIMESTAMP AS OF now()", "The time must be a literal", "such as TIMESTAMP '2026-01-01 00:00:00' or milliseconds since 1970"),
    ("SELECT * FROM t FOR TIMESTAMP AS OF (SELECT max(a) FROM u)", "The time must be a literal", "such as TIMESTAMP '2026-01-01 00:00:00' or milliseconds since 1970"),
    ("SELECT * FROM t FOR INCREMENTAL BETWEEN SNAPSHOT 1 AND SNAPSHOT 2", "Change ranges are not supported yet", None),
    ("INSERT INTO t FOR VERSION AS OF 1 VALUES (1)", "An older version of a table cannot be changed", None),
    ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "ON CONFLICT is not supported", "use MERGE"),
    ("INSERT INTO t VALUES (1) RETURNING a", "RETURNING is not supported", None),
    ("INSERT OR REPLACE INTO t VALUES (1)", "INSERT OR … is not supported", "use MERGE"),
    ("INSERT INTO t DEFAULT VALUES", "INSERT … DEFAULT VALUES is not supported", "write VALUES (DEFAULT, …)"),
    ("UPDATE t SET a = 1 LIMIT 5", "ORDER BY and LIMIT are not supported here", "choose the rows with WHERE"),
    ("UPDATE t SET (a, b) = (1, 2)", "SET (a, b) = (…) is not supported", "write SET a = …, b = …"),
    ("UPDATE t SET a = 1 FROM b JOIN c ON b.x = c.x", "UPDATE … FROM takes one table", "put the join into a subquery: FROM (SELECT … FROM a JOIN b …) AS s"),
    (
        "MERGE INTO t USING s ON a = b WHEN MATCHED THEN UPDATE SET a = 1 DELETE WHERE a = 2",
        "WHERE and DELETE WHERE in a branch of MERGE are not supported",
        "write WHEN … AND condition",
    ),
    ("MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT VALUES (1)", "INSERT in a MERGE needs the names of the columns", "write INSERT (a, b) VALUES (…)"),
    (
        "SELECT sum(a) OVER (ORDER BY b GROUPS 1 PRECEDING) FROM t JOIN u USING (x)",
        "A GROUPS frame is supported over one table or subquery without GROUP BY",
        "put the joins and the grouping into a subquery",
    ),
    ("SELECT * FROM t RIGHT JOIN UNNEST(a) AS u(x) ON TRUE", "UNNEST can only be joined with CROSS, INNER or LEFT JOIN", None),
    ("SELECT try(f) FROM (SELECT date_parse(a, 'b') AS f) t WHERE try(date_parse(a, 'b')) IS NULL", "try(date_parse(…)) is not supported", "test the text first"),
    ("SELECT CAST(a AS hyperloglog)", "The type HYPERLOGLOG is not supported", "use approx_distinct"),
    ("SELECT CAST(a AS time with time zone)", "TIME WITH TIME ZONE is not supported", None),
    ("SELECT CAST(a AS timestamp(9))", "Times hold 6 digits of a second at most", None),
]
# fmt: on


@pytest.mark.rule("STMT-8")
@pytest.mark.parametrize(("sql", "message", "hint"), NOT_SUPPORTED, ids=[one[0][:70] for one in NOT_SUPPORTED])
def test_not_supported(sql: str, message: str | None, hint: str | None) -> None:
    error = refusal(sql)
    if message is None:
        return
    assert error.message == message
    assert error.hint == hint
    if message != "Only one statement at a time":
        assert isinstance(error, NotSupportedError) or error.code is ErrorCode.NOT_SUPPORTED
    assert error.position is not None


# fmt: off
SYNTAX = [
    ("", "1:1: The statement is empty", "write SQL, for example SELECT 1"),
    (";;", "1:1: The statement is empty", "write SQL, for example SELECT 1"),
    ("selct 1", "1:1: Unexpected selct, expected a statement such as SELECT, INSERT, CREATE or SHOW", "did you mean SELECT?"),
    ("select 1; select 2", "1:11: Only one statement at a time", "send the statements one by one"),
    ("select 1 select 2", "1:10: Unexpected select", None),
    ("select a b c from t", "1:12: Unexpected c", None),
    ("from t", "1:1: Unexpected from, expected SELECT", "begin with SELECT, as in SELECT * FROM t"),
    ("select", "1:7: The statement ends too early, expected a column or an expression", None),
    ("select unnest(a) from t", "1:8: Unexpected unnest, expected a column or an expression", "UNNEST stands in FROM: SELECT x FROM UNNEST(…) AS t(x)"),
    ("select * exclude b from t", '1:18: Unexpected b, expected "("', "write * EXCLUDE (b)"),
    ("select from t", "1:8: Unexpected from, expected a column or an expression", None),
    ("select a,, b", "1:10: Unexpected ,, expected a column or an expression", None),
    ("select a, from t", "1:11: Unexpected from, expected a column or an expression", None),
    ("select f(a,, b)", "1:12: Unexpected ,, expected an expression", None),
    ("select (a", '1:10: The statement ends too early, expected ")"', None),
    ("select a)", "1:9: Unexpected )", None),
    ("select [1, 2]", "1:8: Unexpected [, expected a column or an expression", None),
    ("select a[1:2]", '1:11: Unexpected :, expected "]"', "parts of arrays are written slice(array, start, length)"),
    ("select a & b", "1:10: Unexpected &", "use bitwise_and(a, b)"),
    ("select {'a': 1}", "1:8: Unexpected {", "maps and rows are written MAP(ARRAY[…], ARRAY[…]) and ROW(…)"),
    ("select 'a' 'b'", "1:12: Unexpected 'b'", "join strings with ||; a quote inside a string is written twice"),
    ("select a as 'x'", "1:13: Unexpected 'x', expected a name", 'column names stand in double quotes, as in AS "my column"'),
    ("select 1 between 2 3", "1:20: Unexpected 3, expected AND", None),
    ("select case when a then 1", "1:26: The statement ends too early, expected END", None),
    ("select case a end", "1:15: Unexpected end, expected WHEN", None),
    ("select count(*) filter (a) from t", "1:25: Unexpected a, expected WHERE", None),
    ("select a in b", '1:13: Unexpected b, expected "("', "to look into an array, write contains(array, value)"),
    ("select a in ()", "1:14: Unexpected ), expected an expression", None),
    ("select a = any (array[1])", "1:16: Unexpected (, expected a subquery", "to look into an array, write contains(array, value)"),
    ("select a is 5", "1:13: Unexpected 5, expected NULL, TRUE, FALSE or DISTINCT FROM", None),
    ("select * from a join b", "1:23: The statement ends too early, expected ON or USING", "a join without a condition is written CROSS JOIN"),
    ("select * from a left b", "1:22: Unexpected b, expected JOIN", None),
    ("select * from t limit 1, 2", "1:24: Unexpected ,", "write LIMIT n OFFSET m"),
    ("select * from t limit 1 limit 2", "1:25: Unexpected limit", None),
    ("select * from t fetch first 5 only", "1:31: Unexpected only, expected ROWS", None),
    ("select a from t group by", "1:25: The statement ends too early, expected an expression", None),
    ("select a from t where", "1:22: The statement ends too early, expected an expression", None),
    ("select * from a.b.c.d", "1:15: A name has at most 3 parts", 'a nested schema is one quoted part, as in catalog."a.b".t'),
    ("select sum(a) over (rows between 1 and 2) from t", "1:36: Unexpected and, expected PRECEDING or FOLLOWING", None),
    ("select * from (values (1) (2)) t", '1:27: Unexpected (, expected "," or the end of the rows', "put each row in brackets"),
    ("select * from (values (1) + 2, (3)) t", '1:27: Unexpected +, expected "," or the end of the rows', "put each row in brackets"),
    ("with a as select 1 select 2", '1:11: Unexpected select, expected "("', None),
    ("insert t values (1)", "1:8: Unexpected t, expected INTO", None),
    ("insert into t", "1:14: The statement ends too early, expected VALUES or SELECT", None),
    ("delete t", "1:8: Unexpected t, expected FROM", None),
    ("update t where a = 1", "1:10: Unexpected where, expected SET", None),
    ("merge into t using s on a = b", "1:30: The statement ends too early, expected WHEN", None),
    ("create table t", "1:15: The statement ends too early, expected the columns in brackets, or AS and a query", None),
    ("create table t (a)", "1:19: The statement ends too early, expected AS and a query", None),
    ("create table t (a int b int)", '1:23: Unexpected b, expected "," or ")"', None),
    ("create view v select 1", "1:15: Unexpected select, expected AS", None),
    ("drop t", "1:6: Unexpected t, expected TABLE, VIEW or SCHEMA", None),
    ("alter table t", "1:14: The statement ends too early, expected ADD, DROP, RENAME, ALTER COLUMN, SET or UNSET", None),
    ("show tables from", "1:17: The statement ends too early, expected the name of a schema", None),
    ("show tables like a", "1:18: Unexpected a, expected a pattern in single quotes", None),
    ("show catalogs extra", "1:15: Unexpected extra", None),
    ("describe", "1:9: The statement ends too early, expected the name of a table", "SHOW TABLES lists the tables"),
    ("use", "1:4: The statement ends too early, expected the name of a catalog or a schema", None),
    ("explain", "1:8: The statement ends too early, expected a statement to explain", None),
    ("set session a", '1:14: The statement ends too early, expected "="', None),
    ("set session a = b", "1:17: Unexpected b, expected a literal", "strings stand in single quotes"),
    ("truncate", "1:9: The statement ends too early, expected the name of a table", None),
    ("comment on t is 'x'", "1:12: Unexpected t, expected TABLE, COLUMN, VIEW or SCHEMA", None),
    ("select a\n  , (b", '2:7: The statement ends too early, expected ")"', None),
]
# fmt: on


@pytest.mark.parametrize(("sql", "message", "hint"), SYNTAX, ids=[one[0][:70] or "empty" for one in SYNTAX])
def test_syntax_errors_name_the_place_and_the_way_out(sql: str, message: str, hint: str | None) -> None:
    error = refusal(sql)
    assert str(error) == "line " + message
    assert error.hint == hint
    assert error.code is ErrorCode.SYNTAX_ERROR


# fmt: off
OTHERS = [
    (
        "SELECT DISTINCT a FROM t ORDER BY b",
        ErrorCode.SEMANTIC_ERROR,
        "line 1:35: Column b is not in the SELECT list: with DISTINCT, ORDER BY takes only what is selected",
        "select the column too, or use GROUP BY",
    ),
    ("select nope(1)", ErrorCode.FUNCTION_NOT_FOUND, "line 1:8: Function nope does not exist", "SHOW FUNCTIONS lists the functions"),
    ("select lenght('a')", ErrorCode.FUNCTION_NOT_FOUND, "line 1:8: Function lenght does not exist", "did you mean length?"),
    (
        "select * from nope(1)",
        ErrorCode.FUNCTION_NOT_FOUND,
        "line 1:15: Table function nope does not exist",
        "the table functions are unnest, sequence, generate_series, range and table_snapshots",
    ),
    ("select year()", ErrorCode.INVALID_ARGUMENTS, "line 1:8: year does not take 0 arguments", "it is year(x) -> bigint"),
    (
        "select greatest()",
        ErrorCode.INVALID_ARGUMENTS,
        "line 1:8: greatest does not take 0 arguments",
        "it is greatest(a, b, ...) -> any",
    ),
    (
        "select json_extract_scalar('a', 'b', 'c', 'd', 'e') + if(1)",
        ErrorCode.INVALID_ARGUMENTS,
        "line 1:55: if does not take 1 arguments",
        "it is if(condition, then[, else]) -> any",
    ),
    (
        "select date_add('fortnight', 1, a)",
        ErrorCode.INVALID_ARGUMENTS,
        "line 1:8: date_add needs a unit in single quotes",
        "'second', 'minute', 'hour', 'day', 'week', 'month' or 'year'",
    ),
    ("select lower(distinct a)", ErrorCode.INVALID_ARGUMENTS, "line 1:8: lower is no aggregate: OVER, FILTER and DISTINCT do not belong to it", None),
    ("select rank()", ErrorCode.INVALID_ARGUMENTS, "line 1:8: rank needs OVER (…)", "as in rank() OVER (ORDER BY …)"),
    ("select stddev(a order by b)", ErrorCode.INVALID_ARGUMENTS, "line 1:8: ORDER BY does not belong to the arguments of stddev", None),
    ("select sum(a) ignore nulls over ()", ErrorCode.INVALID_ARGUMENTS, "line 1:8: IGNORE NULLS does not belong to sum", None),
    ("select cast(a as nonsense)", ErrorCode.SEMANTIC_ERROR, "line 1:18: Unknown type nonsense", "the types are listed in docs/sql.md"),
    ("select cast(a as decimal(50))", ErrorCode.SEMANTIC_ERROR, "line 1:18: DECIMAL takes a precision from 1 to 38 and a smaller scale", None),
    ("select ? + :a", ErrorCode.SEMANTIC_ERROR, "line 1:12: Parameters are either all ?, all numbered or all named", "use one kind"),
]
# fmt: on


@pytest.mark.parametrize(("sql", "code", "message", "hint"), OTHERS, ids=[one[0][:60] for one in OTHERS])
def test_other_errors(sql: str, code: ErrorCode, message: str, hint: str | None) -> None:
    error = refusal(sql)
    assert (error.code, str(error), error.hint) == (code, message, hint)


@pytest.mark.rule("NAME-6")
@pytest.mark.parametrize(
    "sql",
    [
        "select _sqe_x",
        'select "_SQE_x"',
        "select __sqe",
        "select 1 as _sqe_a",
        "drop table _sqe_t",
        "select _sqe_div(1, 2)",
        "select :_sqe_x",
    ],
)
@pytest.mark.parametrize("dialect", ["sqe", "trino", "spark"])
def test_reserved_names(sql: str, dialect: str) -> None:
    if dialect == "spark":
        sql = sql.replace('"', "`")
    error = refusal(sql, dialect)
    assert error.message == "Names that begin with _sqe_ are reserved"


@pytest.mark.parametrize(
    ("sql", "hint"),
    [("select a == b", "use ="), ("select a ~ 'b'", "use bitwise_not(a), or regexp_like(text, pattern)")],
)
def test_the_trino_dialect_is_stricter(sql: str, hint: str) -> None:
    Reader().read(sql, dialect="sqe", limits=TextLimits())
    assert refusal(sql, "trino").hint == hint


def test_an_unknown_dialect() -> None:
    error = refusal("select 1", "klingon")
    assert error.hint == "the dialects are sqe, trino, spark"


@pytest.mark.parametrize(
    ("sql", "place", "word"),
    [
        ("SELECT * FORM t", 10, "FROM"),
        ("SELECT a FORM t WHERE x", 15, "FROM"),
        ("SELECT 1 FRM t", 14, "FROM"),
        ("SELECT * FROM t WHER a = 1", 22, "WHERE"),
        ("SELECT * FROM t GRUOP BY a", 23, "GROUP"),
        ("SHOW TABELS", 6, "TABLES"),
        ("CREATE TABEL t (a int)", 8, "TABLE"),
        ("DROP TABEL t", 6, "TABLE"),
        ("DELETE FORM t", 8, "FROM"),
        ("INSERT INOT t VALUES (1)", 8, "INTO"),
        ("INSERT INTO t VALES (1)", 15, "VALUES"),
        ("CREATE TABLE t (a integr)", 19, "INTEGER"),
        ("SELECT CAST(a AS varchr) FROM t", 18, "VARCHAR"),
        ("SELEC 1", 1, "SELECT"),
    ],
)
def test_a_word_that_is_misspelt_is_offered(sql: str, place: int, word: str) -> None:
    error = refusal(sql)
    assert error.hint == f"did you mean {word}?"
    assert str(error.position) == f"line 1:{place}"


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize("sql", ["SELECT a b c FROM secret_table", 'SELECT "form" x y', "SELECT frm_x y z", "DROP t"])
def test_only_words_of_the_language_are_offered(sql: str) -> None:
    """What is offered comes from a list of ours: no name of anybody's data can be among it."""
    assert refusal(sql).hint is None
