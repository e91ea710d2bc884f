"""What a client reads about failures of the engine: our text, the user's words, nothing of the engine's."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from string import Formatter
from typing import Any

import pytest

from sqe_core.engine.port import EngineExecutionError, EngineFailure
from sqe_core.query.errors.scrubber import Scrubber
from sqe_core.query.errors.suggestions import closest, did_you_mean
from sqe_core.query.errors.templates import templates
from sqe_core.query.errors.translate import ASK_OPERATOR, MentionableNames, report, translate
from sqe_core.spi.errors import (
    CommitConflictError,
    ErrorCode,
    ExternalError,
    InternalError,
    NotSupportedError,
    ObjectNotFoundError,
    Position,
    QueryTimeoutError,
    ResourcesError,
    SqeError,
    UserError,
)
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, StatementKind, TextLimits

ALIAS = "_sqe_c_0123456789abcdef0123456789abcdef"
_NOWHERE = "from any of the providers"
MARKER = "_sqe_r_0123456789abcdef0123456789abcdef"
RAW = f"org.apache.spark.SparkException: secret at sqe.Bridge /warehouse/hr {ALIAS} Caused by"


class Places:
    def locate(self, start: int | None, fragment: str | None) -> Position | None:
        return None if start is None else Position(2, start)


def fail(condition: str, sql_state: str | None = "42000", raw: str = RAW, **more: Any) -> EngineFailure:
    parameters: Mapping[str, str] = more.pop("parameters", {})
    return EngineFailure(condition=condition, sql_state=sql_state, parameters=parameters, raw=raw, **more)


def told(failure: EngineFailure, kind: StatementKind = StatementKind.QUERY, **more: Any) -> SqeError:
    return translate(failure, kind=kind, positions=Places(), query_id="q1", **more)


def message(condition: str, **parameters: str) -> str:
    return told(fail(condition, parameters=parameters)).message


@pytest.mark.rule("ERR-2")
@pytest.mark.parametrize(
    ("condition", "parameters", "code", "text"),
    [
        (
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": "`nope`", "proposal": "`hidden`"},
            ErrorCode.COLUMN_NOT_FOUND,
            "Column nope does not exist",
        ),
        (
            "TABLE_OR_VIEW_NOT_FOUND",
            {"relationName": f"`{ALIAS}`.`hr`.`pay`"},
            ErrorCode.TABLE_NOT_FOUND,
            "Table hr.pay does not exist or you may not see it",
        ),
        (
            "UNRESOLVED_ROUTINE",
            {"routineName": "`nofn`", "searchPath": "[`system`.`builtin`, `spark_catalog`.`default`]"},
            ErrorCode.FUNCTION_NOT_FOUND,
            "Function nofn does not exist",
        ),
        (
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            {"functionName": "`_sqe_substr`", "expectedNum": "[2, 3]", "actualNum": "4"},
            ErrorCode.INVALID_ARGUMENTS,
            "The number of arguments of substr is 4; it must be 2 or 3",
        ),
        (
            "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
            {"left": '"ARRAY<INT>"', "right": '"STRUCT<a: STRING, b: DECIMAL(3,1)>"', "sqlExpr": '"(secret + 1)"'},
            ErrorCode.TYPE_MISMATCH,
            "An operator cannot take array(integer) and row(a varchar, b decimal(3,1))",
        ),
        (
            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            {"paramIndex": "first", "inputType": '"INT"', "requiredType": '("ARRAY" or "MAP")'},
            ErrorCode.TYPE_MISMATCH,
            "The first argument is integer; it must be array or map",
        ),
        ("DATATYPE_MISMATCH.NULL_TYPE", {}, ErrorCode.TYPE_MISMATCH, "The types of an expression do not fit"),
        ("PARSE_SYNTAX_ERROR", {"error": "'selec'", "hint": ""}, ErrorCode.SYNTAX_ERROR, "Syntax error near 'selec'"),
        (
            "AMBIGUOUS_REFERENCE",
            {"name": "`a`", "referenceNames": f"[`q`.`a`, `w`.`a`, `{MARKER}`.`a`]"},
            ErrorCode.SEMANTIC_ERROR,
            "Column a is ambiguous: it may be q.a or w.a or a",
        ),
        ("MISSING_AGGREGATION", {"expression": "secret"}, ErrorCode.SEMANTIC_ERROR, None),
        (
            "GROUP_BY_POS_OUT_OF_RANGE",
            {"index": "2", "size": "1"},
            ErrorCode.SEMANTIC_ERROR,
            "GROUP BY 2 is out of range: positions are 1 to 1",
        ),
        (
            "NUM_COLUMNS_MISMATCH",
            {"operator": "UNION", "firstNumColumns": "1", "invalidOrdinalNum": "second", "invalidNumColumns": "2"},
            ErrorCode.SEMANTIC_ERROR,
            "UNION: the number of columns is 1 in the first query and 2 in the second",
        ),
        ("DIVIDE_BY_ZERO", {"config": '"spark.sql.ansi.enabled"'}, ErrorCode.DIVISION_BY_ZERO, "Division by zero"),
        (
            "CAST_INVALID_INPUT",
            {"expression": "'abc'", "targetType": '"INT"'},
            ErrorCode.INVALID_CAST,
            "'abc' cannot be cast to integer",
        ),
        (
            "CAST_OVERFLOW",
            {"value": "99999999999L", "targetType": '"INT"'},
            ErrorCode.INVALID_CAST,
            "99999999999 is too big for integer",
        ),
        ("ARITHMETIC_OVERFLOW", {"message": "secret"}, ErrorCode.INVALID_ARGUMENTS, "A number is too big for its type"),
        (
            "INVALID_ARRAY_INDEX",
            {"indexValue": "5", "arraySize": "2"},
            ErrorCode.INVALID_ARGUMENTS,
            "Index 5 is out of bounds: the length of the array is 2",
        ),
        (
            "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
            {"tableName": "`t`", "tableColumns": "`a`, `b`, `c`.`d`", "dataColumns": "`1`"},
            ErrorCode.SEMANTIC_ERROR,
            "The number of columns of INSERT is 1; the table takes 3",
        ),
        (
            "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
            {"tableName": "``", "colName": "`a`", "srcType": '"STRING"', "targetType": '"INT"'},
            ErrorCode.TYPE_MISMATCH,
            "Column a is integer and cannot take varchar",
        ),
        ("NOT_NULL_ASSERT_VIOLATION", {"walkedTypePath": "secret"}, ErrorCode.SEMANTIC_ERROR, None),
        ("MERGE_CARDINALITY_VIOLATION", {}, ErrorCode.SEMANTIC_ERROR, None),
        ("SCALAR_SUBQUERY_TOO_MANY_ROWS", {}, ErrorCode.SEMANTIC_ERROR, None),
        (
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            {"relationName": "`n`.`t`"},
            ErrorCode.DUPLICATE_TABLE,
            "n.t already exists",
        ),
        ("SCHEMA_NOT_FOUND", {"schemaName": "`n`"}, ErrorCode.SCHEMA_NOT_FOUND, None),
        ("COLUMN_ALREADY_EXISTS", {"columnName": "`a`"}, ErrorCode.DUPLICATE_COLUMN, None),
        ("UNSUPPORTED_FEATURE.LATERAL_JOIN_USING", {}, ErrorCode.NOT_SUPPORTED, None),
        ("CommitFailedException", {}, ErrorCode.COMMIT_CONFLICT, "Another statement changed the table first"),
        ("NoSuchTableException", {}, ErrorCode.TABLE_NOT_FOUND, None),
        ("NoSuchNamespaceException", {}, ErrorCode.SCHEMA_NOT_FOUND, None),
        ("AlreadyExistsException", {}, ErrorCode.DUPLICATE_TABLE, None),
        ("NotFoundException", {}, ErrorCode.STORAGE_ERROR, "A file of a table is missing"),
        ("OutOfMemoryError", {}, ErrorCode.RESOURCE_EXHAUSTED, None),
        ("StackOverflowError", {}, ErrorCode.RESOURCE_EXHAUSTED, None),
        ("ServiceUnavailableException", {}, ErrorCode.CATALOG_UNAVAILABLE, None),
        ("ForbiddenException", {}, ErrorCode.ACCESS_DENIED, None),
        ("SQE_PLANNING_TIMEOUT", {}, ErrorCode.QUERY_TIMEOUT, None),
        (
            "SQE_FUNCTION_TYPES",
            {"function": "_sqe_date_add", "types": "int"},
            ErrorCode.TYPE_MISMATCH,
            "Function date_add does not take arguments of these types",
        ),
    ],
)
def test_a_condition_is_told_in_our_words(
    condition: str, parameters: Mapping[str, str], code: ErrorCode, text: str | None
) -> None:
    error = told(fail(condition, parameters=parameters, start=5))
    assert error.code is code
    assert text is None or error.message == text
    assert error.position == Position(2, 5)
    shown = f"{error} {error.hint}"
    for never in ("secret", "spark", "_sqe_", "hidden", "org.apache", "Caused by", "/warehouse"):
        assert never not in shown


@pytest.mark.rule("ERR-1")
def test_no_template_tells_more_than_its_parameters() -> None:
    """Whatever the engine puts into a parameter, the text stays one short line without internal names."""
    nasty = f"/etc/passwd\n`{ALIAS}`.`x` org.apache.spark.X at sqe.Y(Z.java:1) " + "a" * 5000
    for condition, template in {**templates().spark, **templates().java}.items():
        names = [name for _, name, _, _ in Formatter().parse(template.text) if name]
        for value in (f"`{ALIAS}`.`{MARKER}`", f"`{ALIAS}`.`hr`.`t`", "`a\nb`", nasty, ""):
            error = told(fail(condition, parameters=dict.fromkeys(names, value)))
            shown = str(error)
            assert ALIAS not in Scrubber([ALIAS]).visible_text(shown)
            if value is not nasty:
                assert "_sqe_" not in shown, condition
            assert shown.isprintable(), condition
            assert len(shown) < 1200, condition


@pytest.mark.rule("ERR-2")
def test_an_unlisted_condition_says_only_that_the_query_failed(caplog: pytest.LogCaptureFixture) -> None:
    for condition, state, code, kind in (
        ("NOVEL_CONDITION", "42K99", ErrorCode.SEMANTIC_ERROR, UserError),
        ("NOVEL_CONDITION", "22999", ErrorCode.INVALID_ARGUMENTS, UserError),
        ("NOVEL_CONDITION", "0A000", ErrorCode.NOT_SUPPORTED, NotSupportedError),
        ("INTERNAL_ERROR", "XX000", ErrorCode.EXECUTION_FAILED, InternalError),
        ("SomeException", None, ErrorCode.EXECUTION_FAILED, InternalError),
        ("_LEGACY_ERROR_TEMP_2500", None, ErrorCode.EXECUTION_FAILED, InternalError),
    ):
        error = told(fail(condition, state, parameters={"a": "secret"}))
        assert error.message == "Query failed (query id q1)"
        assert (error.code, error.hint) == (code, ASK_OPERATOR if kind is InternalError else None)
        assert isinstance(error, kind)
    assert "q1" in caplog.text
    assert "/warehouse" not in "\n".join(r.message for r in caplog.records if r.levelno > logging.DEBUG)
    assert translate(fail("NOVEL"), kind=StatementKind.QUERY).message == "Query failed"


@pytest.mark.rule("ERR-1", "OBS-2")
@pytest.mark.parametrize(
    ("condition", "raw", "code", "text"),
    [
        (
            "SdkClientException",
            "Unable to load region from any of the providers",
            ErrorCode.STORAGE_ERROR,
            "region",
        ),
        (
            "SdkClientException",
            "Unable to load credentials from any of the providers",
            ErrorCode.STORAGE_ERROR,
            "no keys",
        ),
        ("S3Exception", "The AWS Access Key Id … (InvalidAccessKeyId)", ErrorCode.CATALOG_ERROR, "keys"),
        ("GlueException", "UnrecognizedClientException", ErrorCode.CATALOG_ERROR, "keys"),
        ("GlueException", "", ErrorCode.CATALOG_ERROR, "service of AWS"),
        ("NoSuchBucketException", "", ErrorCode.STORAGE_ERROR, "bucket"),
        ("ThrottlingException", "", ErrorCode.RESOURCE_EXHAUSTED, "too often"),
        ("RuntimeMetaException", "", ErrorCode.CATALOG_UNAVAILABLE, "metastore"),
        ("TTransportException", "", ErrorCode.CATALOG_UNAVAILABLE, "metastore"),
        ("SSLHandshakeException", "", ErrorCode.CATALOG_UNAVAILABLE, "does not answer"),
        ("SomeException", "", ErrorCode.EXECUTION_FAILED, "Query failed"),
    ],
)
def test_operators_find_the_cause_of_what_is_theirs_and_clients_learn_whom_to_ask(
    caplog: pytest.LogCaptureFixture, condition: str, raw: str, code: ErrorCode, text: str
) -> None:
    causes = ("a.b.Wrapper at a.b.C.d(C.java:1)", "software.amazon.awssdk.X: no\nregion for bucket-1")
    error = told(replace(fail(condition, None), raw=f"{raw}\nsecret", causes=causes))
    assert error.code is code
    assert text in error.message
    assert error.hint
    assert "bucket-1" not in f"{error} {error.hint}"
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.message.startswith("Query q1 failed with ")
    assert f"{condition}, caused by a.b.Wrapper at a.b.C.d(C.java:1), caused by " in record.message
    assert "software.amazon.awssdk.X: no\N{REPLACEMENT CHARACTER}region for bucket-1" in record.message
    assert "secret" not in record.message


@pytest.mark.rule("OBS-2")
def test_the_log_has_what_is_behind_the_error_of_a_plugin(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        try:
            try:
                raise ConnectionError("https://user:secret@catalog")
            except ConnectionError as error:
                failure = replace(fail("GlueException"), causes=("a.B: no such bucket",))
                raise EngineExecutionError(failure) from error
        except EngineExecutionError as error:
            raise ExternalError("The catalog lake does not answer") from error

    with pytest.raises(ExternalError) as raised:
        fails()
    shown = report(raised.value, "q1")
    assert (shown, shown.hint) == (raised.value, ASK_OPERATOR)
    (record,) = caplog.records
    assert re.fullmatch(
        r"Query q1 failed with ExternalError: The catalog lake does not answer, caused by GlueException, caused by "
        r"a\.B: no such bucket, caused by ConnectionError at test_query_judge_errors\.py:\d+",
        record.message,
    )


def test_an_error_of_the_user_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    error = UserError("Table t does not exist")
    assert report(error, "q1").hint is None
    assert not caplog.records


@pytest.mark.rule("ERR-3")
def test_places_in_our_own_text_are_not_told() -> None:
    failure = fail(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION", parameters={"objectName": "`nme`", "proposal": "`name`"}, start=3
    )
    assert told(failure).position == Position(2, 3)
    # A view's text names what its reader may not know.
    hidden = told(replace(failure, generated=True))
    assert (hidden.position, hidden.hint) == (None, None)
    assert hidden.message == "A view of the statement is out of date, or needs what you may not see"
    ours = told(replace(fail("DIVIDE_BY_ZERO", start=3), generated=True))
    assert (ours.message, ours.position) == ("Division by zero", None)
    assert told(replace(failure, start=None)).position is None
    assert translate(failure, kind=StatementKind.QUERY).position is None


@pytest.mark.rule("ERR-4")
def test_values_are_repeated_only_where_that_is_safe() -> None:
    failure = fail("CAST_INVALID_INPUT", "22018", parameters={"expression": "'4111-1111'", "targetType": '"INT"'})
    assert told(failure).message == "'4111-1111' cannot be cast to integer"
    for error in (told(failure, echo_values=False), told(replace(failure, generated=True))):
        assert error.message == "… cannot be cast to integer"
    raised = fail("USER_RAISED_EXCEPTION", parameters={"errorMessage": "salary is 100"})
    assert told(raised).message == "salary is 100"
    assert told(raised, echo_values=False).message == "…"


@pytest.mark.rule("ERR-4")
def test_values_are_bounded_and_on_one_line() -> None:
    text = message("USER_RAISED_EXCEPTION", errorMessage="a\n\x1b[31m\u202e" + "b" * 1000)
    assert text.isprintable()
    assert len(text) <= 100


@pytest.mark.rule("ERR-5")
def test_suggestions_come_from_visible_names() -> None:
    failure = fail("UNRESOLVED_COLUMN.WITH_SUGGESTION", parameters={"objectName": "`salry`", "proposal": "`salary`"})
    assert told(failure).hint == 'did you mean "salary"?'
    # Where the engine sees the raw table, its proposals may be hidden columns.
    for kind in (StatementKind.UPDATE, StatementKind.ALTER_TABLE, StatementKind.INSERT, StatementKind.MERGE):
        assert told(failure, kind).hint is None
    names = MentionableNames(columns=lambda: ["name", "salesarea"])
    assert told(failure, StatementKind.UPDATE, names=names).hint is None
    names = MentionableNames(columns=lambda: ["salry_2"])
    assert told(failure, StatementKind.UPDATE, names=names).hint == 'did you mean "salry_2"?'
    routine = fail("UNRESOLVED_ROUTINE", parameters={"routineName": "`substing`"})
    assert told(routine).hint == 'did you mean "substring"?'
    assert told(routine, names=MentionableNames(functions=lambda: ["subs_ting"])).hint == 'did you mean "subs_ting"?'


def test_catalogs_have_their_users_names() -> None:
    failure = fail("EXPECT_TABLE_NOT_VIEW", parameters={"viewName": f"`{ALIAS}`.`hr`.`v`"})
    assert (
        told(failure, names=MentionableNames(catalogs={ALIAS: "sales"})).message == "sales.hr.v is a view, not a table"
    )
    assert told(failure).message == "hr.v is a view, not a table"


@pytest.mark.parametrize(
    ("raw", "code", "text"),
    [
        ("Cannot find snapshot with ID 12345", ErrorCode.INVALID_ARGUMENTS, "Snapshot 12345 does not exist"),
        (
            "Cannot find matching snapshot ID or reference name for version nope\n  at x",
            ErrorCode.INVALID_ARGUMENTS,
            "The table has no snapshot, branch or tag nope",
        ),
        ("Cannot find a snapshot older than 1999", ErrorCode.INVALID_ARGUMENTS, "The table has no snapshot that old"),
        ("Cannot use branch (does not exist): b\n", ErrorCode.INVALID_ARGUMENTS, "Branch b does not exist"),
        ("Branch does not exist: b2", ErrorCode.INVALID_ARGUMENTS, "Branch b2 does not exist"),
        ("Ref main already exists", ErrorCode.SEMANTIC_ERROR, "A branch or tag main already exists"),
        (
            "Cannot change column type: a: int -> array<string>",
            ErrorCode.TYPE_MISMATCH,
            "Column a cannot change from integer to array(varchar)",
        ),
        ("Not a supported type: time(6)", ErrorCode.TYPE_MISMATCH, "Type time(6) cannot be stored"),
        ("Cannot downgrade v2 table to v1", ErrorCode.NOT_SUPPORTED, "format-version cannot be lowered"),
        (
            "Cannot find field 'nope' in struct: struct<1: salary>",
            ErrorCode.COLUMN_NOT_FOUND,
            "Column nope does not exist",
        ),
        (
            "Cannot bind: hour cannot transform int values from 'a'",
            ErrorCode.TYPE_MISMATCH,
            "A column of type integer cannot be partitioned this way",
        ),
        (
            "Invalid source type int for transform: hour",
            ErrorCode.TYPE_MISMATCH,
            "A column of type integer cannot be partitioned this way",
        ),
        (
            "Invalid schema for v2: - Invalid type for x: unknown is not supported until v3",
            ErrorCode.NOT_SUPPORTED,
            "Column x: type unknown needs format-version 3",
        ),
        (
            "Cannot create required field with unknown type: key",
            ErrorCode.NOT_SUPPORTED,
            "The keys of a map have no type, and cannot be stored",
        ),
        (
            "Found conflicting files that can contain records matching true: [s3://secret]",
            ErrorCode.COMMIT_CONFLICT,
            None,
        ),
        ("java.io.IOException: No space left on device", ErrorCode.RESOURCE_EXHAUSTED, None),
        ("Max iterations (100) reached for batch Resolution, set 'secret'", ErrorCode.RESOURCE_EXHAUSTED, None),
        ("java.lang.OutOfMemoryError: Java heap space", ErrorCode.RESOURCE_EXHAUSTED, None),
    ],
)
def test_texts_of_iceberg_become_ours(raw: str, code: ErrorCode, text: str | None) -> None:
    for condition in ("IllegalArgumentException", "ValidationException", "_LEGACY_ERROR_TEMP_2045"):
        error = told(fail(condition, None, raw=f"java.lang.X: {raw}"))
        assert error.code is code
        assert text is None or error.message == text
        assert "secret" not in str(error)


def test_the_condition_counts_before_the_text() -> None:
    raised = fail("USER_RAISED_EXCEPTION", raw="No space left on device", parameters={"errorMessage": "x"})
    assert told(raised).code is ErrorCode.INVALID_ARGUMENTS


def test_whose_fault_it_is_stays_visible() -> None:
    for condition, kind in (
        ("DIVIDE_BY_ZERO", UserError),
        ("TABLE_OR_VIEW_NOT_FOUND", ObjectNotFoundError),
        ("CommitFailedException", CommitConflictError),
        ("S3Exception", ExternalError),
        ("UNABLE_TO_ACQUIRE_MEMORY", ResourcesError),
        ("SQE_PLANNING_TIMEOUT", QueryTimeoutError),
    ):
        assert type(told(fail(condition))) is kind


def test_every_text_and_pattern_is_used_by_one_template_each() -> None:
    for _, template in templates().texts:
        assert Formatter().parse(template.text)
    for template in (*templates().spark.values(), *templates().java.values()):
        assert not template.text.endswith(".")


# Suggestions


def test_the_closest_name_is_found() -> None:
    names = ["orders", "customers", "order_items", "ORDERS_OLD"]
    assert closest("oders", names) == "orders"
    assert closest("Orders", names) == "orders"
    assert closest("custmers", names) == "customers"
    assert closest("orders_ol", names) == "ORDERS_OLD"
    assert closest("xyz", names) is None
    assert closest("", names) is None
    assert closest("a" * 200, ["a" * 200 + "b"]) is None
    assert closest("orders", ["orders"]) is None
    assert did_you_mean("oders", names) == 'did you mean "orders"?'
    assert did_you_mean("oders", ["orders\n"]) is None
    assert did_you_mean("xyz", names) is None


def test_suggestions_take_little_time_for_many_names() -> None:
    import time

    names = [f"column_{number}_{'x' * (number % 60)}" for number in range(20_000)]
    start = time.perf_counter()
    closest("colunm_17_xxxxxxxxxxxxxxxxx", names)
    assert time.perf_counter() - start < 5


# The last line


@pytest.mark.rule("ERR-6", "ENF-8")
def test_the_scrubber_replaces_secrets_and_alarms(caplog: pytest.LogCaptureFixture) -> None:
    scrubber = Scrubber([ALIAS, "eyJtoken.with.dots", "abc"])
    assert scrubber.clean("Table hr.t is missing") == "Table hr.t is missing"
    assert not caplog.records
    for text, clean in (
        (f"Table `{ALIAS}`.`hr`.t is missing", "Table `hr`.t is missing"),
        (f"Table {ALIAS.upper()}.hr.t is missing", "Table hr.t is missing"),
        (f"Column {MARKER}.a", "Column a"),
        ("Bearer eyJtoken.with.dots is bad", "Bearer … is bad"),
        ("function _sqe_date_add and __sqe_x", "function date_add and x"),
    ):
        assert scrubber.clean(text) == clean
    assert len(caplog.records) == 3
    assert "held a secret" in caplog.text
    assert ALIAS not in caplog.text
    # A secret that short would spoil every text.
    assert scrubber.clean("abc") == "abc"
    assert scrubber.clean("my_sqe_column") == "my_sqe_column"
    assert scrubber.clean("Names that begin with _sqe_ are reserved") == "Names that begin with _sqe_ are reserved"


@pytest.mark.rule("ERR-6")
def test_an_error_is_scrubbed_in_place() -> None:
    error = UserError(f"Table {ALIAS}.t", hint=f"did you mean {MARKER}?", position=Position(1, 2))
    assert Scrubber([]).scrub(error) is error
    assert str(error) == "line 1:2: Table t"
    assert error.args == ("Table t",)
    assert error.hint == "did you mean ?"


@pytest.mark.rule("ENF-8")
def test_expected_internal_names_are_hidden_without_an_alarm(caplog: pytest.LogCaptureFixture) -> None:
    text = f"RelationV2[a#1] {ALIAS}.hr.t, SubqueryAlias {MARKER}"
    assert Scrubber([ALIAS]).visible_text(text) == "RelationV2[a#1] hr.t, SubqueryAlias "
    assert not caplog.records


@pytest.mark.parametrize(
    ("sql", "dialect", "hint"),
    [
        ('SELECT a\nFROM t WHERE a = "text"', "sqe", "text is written in single quotes; double quotes are for names"),
        ("SELECT a\nFROM t WHERE a = text", "sqe", None),
        ("SELECT a\nFROM t WHERE a = `text`", "spark", None),
    ],
)
def test_text_in_double_quotes_is_told_from_a_column(sql: str, dialect: str, hint: str | None) -> None:
    statement = Reader().read(sql, dialect=dialect, limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    at = statement.spark_sql.index("`text`")
    failure = fail("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", parameters={"objectName": "`text`"}, start=at)
    error = translate(failure, kind=StatementKind.QUERY, positions=statement.positions, query_id="q1")
    assert (error.message, error.hint) == ("Column text does not exist", hint)
    assert error.position == Position(2, 18)


@pytest.mark.parametrize(
    ("sql", "condition", "name", "column"),
    [
        ("INSERT INTO nam (id, nam) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "objectName", 22),
        ("INSERT INTO t (id, nam, id) SELECT 1, nam, id FROM nam", "COLUMN_ALREADY_EXISTS", "columnName", 20),
        (
            "MERGE INTO t USING nam AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, nam) VALUES (1, 2)",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "objectName",
            78,
        ),
    ],
)
def test_the_place_of_a_column_that_is_written_is_its_own(sql: str, condition: str, name: str, column: int) -> None:
    """Spark knows of it no more than the clause."""
    statement = Reader().read(sql, dialect="sqe", limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    clause = statement.spark_sql.partition(" VALUES")[0]
    where: dict[str, Any] = {} if "EXISTS" in condition else {"start": 0, "fragment": clause}
    failure = fail(condition, parameters={name: "`nam`"}, **where)
    error = translate(failure, kind=statement.kind, positions=statement.positions, query_id="q1")
    assert error.position == Position(1, column)


@pytest.mark.parametrize(
    ("fragment", "given", "hint"),
    [
        (
            "sum(`name`)",
            "STRING",
            "varchar is read as double here; TRY_CAST(… AS double) gives NULL for what cannot be",
        ),
        ("CAST(`name` AS DOUBLE)", "STRING", "TRY_CAST gives NULL instead"),
        ("name::double", "STRING", "TRY_CAST gives NULL instead"),
        ("sum(`name`)", "TIMESTAMP", "TRY_CAST gives NULL instead"),
        (None, "STRING", "TRY_CAST gives NULL instead"),
    ],
)
def test_who_wrote_no_cast_is_told_what_is_read_as_what(fragment: str | None, given: str, hint: str) -> None:
    parameters = {"expression": "'ann'", "sourceType": f'"{given}"', "targetType": '"DOUBLE"'}
    failure = fail("CAST_INVALID_INPUT", "22018", parameters=parameters, start=0, fragment=fragment)
    assert (told(failure).message, told(failure).hint) == ("'ann' cannot be cast to double", hint)


@pytest.mark.parametrize(
    "text",
    [
        "Cannot find snapshot with ID 12345",
        "Cannot set main to unknown snapshot: 17",
        "Cannot find matching snapshot ID or reference name for version nope",
        "Cannot find a snapshot older than 1999",
    ],
)
def test_whoever_names_no_snapshot_is_told_where_they_stand(text: str) -> None:
    error = told(fail("java.lang.IllegalArgumentException", raw=text))
    assert error.hint == 'SELECT * FROM "t$snapshots" lists the snapshots of t, "t$refs" its branches and tags'


def test_a_column_of_null_alone_is_told_how_it_gets_a_type() -> None:
    raw = "Invalid schema for v2: - Invalid type for x: {} is not supported until v3"
    assert told(fail("ValidationException", None, raw=raw.format("unknown"))).hint == (
        "NULL alone has no type; write CAST(NULL AS varchar), or another type"
    )
    assert told(fail("ValidationException", None, raw=raw.format("variant"))).hint is None


@pytest.mark.parametrize(
    ("condition", "parameters", "fragment", "finer"),
    [
        ("ARITHMETIC_OVERFLOW", {}, "a + 1", "NUMERIC_VALUE_OUT_OF_RANGE"),
        (
            "CAST_OVERFLOW",
            {"value": "300", "targetType": '"TINYINT"'},
            "CAST(300 AS TINYINT)",
            "NUMERIC_VALUE_OUT_OF_RANGE",
        ),
        ("MISSING_AGGREGATION", {"expression": '"y"'}, "y", "EXPRESSION_NOT_AGGREGATE"),
        ("CAST_INVALID_INPUT", {"sourceType": '"STRING"', "targetType": '"INT"'}, "CAST('x' AS INT)", None),
        ("CAST_INVALID_INPUT", {"sourceType": '"STRING"', "targetType": '"INT"'}, "1 + 'x'", "TYPE_MISMATCH"),
        ("DIVIDE_BY_ZERO", {}, "1 / 0", None),
    ],
)
def test_a_condition_says_more_finely_what_went_wrong(
    condition: str, parameters: Mapping[str, str], fragment: str, finer: str | None
) -> None:
    assert told(fail(condition, parameters=parameters, fragment=fragment, start=1)).condition == finer


@pytest.mark.parametrize(
    ("sql", "finer"),
    [
        ("SELECT 1 = 'x'", "TYPE_MISMATCH"),
        ("SELECT CAST('x' AS integer)", None),
        ("SELECT TINYINT '128'", "INVALID_LITERAL"),
        ("SELECT date 'x'", "INVALID_LITERAL"),
    ],
)
def test_a_cast_that_fails_is_called_as_it_was_written(sql: str, finer: str | None) -> None:
    statement = Reader().read(sql, dialect="trino", limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    start = statement.spark_sql.index(" ") + 1
    fragment = statement.spark_sql[start:].partition(" AS `")[0]
    given = {"sourceType": '"STRING"', "targetType": '"INT"'}
    failure = fail("CAST_INVALID_INPUT", parameters=given, start=start, fragment=fragment)
    found = translate(failure, kind=statement.kind, positions=statement.positions)
    assert found.position == Position(1, 8)
    assert found.condition == finer


@pytest.mark.rule("ERR-3", "ERR-4")
@pytest.mark.parametrize("condition", ["ARITHMETIC_OVERFLOW", "CAST_OVERFLOW", "CAST_INVALID_INPUT", "DIVIDE_BY_ZERO"])
def test_what_fails_inside_of_a_policy_has_no_condition(condition: str) -> None:
    """Whoever brings a policy's filter to overflow learns nothing that its code did not say."""
    failure = fail(condition, parameters={"sourceType": '"STRING"', "value": "300"}, generated=True)
    assert told(failure).condition is None


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(
    "condition", ["TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "VIEW_NOT_FOUND"]
)
def test_what_may_be_a_denial_has_its_code_only(condition: str) -> None:
    found = told(fail(condition, parameters={}))
    assert found.may_be_denial
    assert found.condition is None
    assert UserError("x", code=found.code, condition="NOT_FOUND").condition is None
