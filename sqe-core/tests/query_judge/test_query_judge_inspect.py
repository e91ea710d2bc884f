"""The judge of parsed plans, with hand-written descriptions: what is not listed is refused, and says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sqe_core.engine.port import FunctionCall, PlanDescription, PlanNode, Relation, RelationKind, TimeTravel
from sqe_core.query.judge.amplifiers import AmplifierLimits
from sqe_core.query.judge.inspect import PlanLimits, inspect
from sqe_core.spi.errors import ErrorCode, NotSupportedError, Position, ResourcesError, SqeError, UserError
from sqe_core.sql.statement import StatementKind

LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
ANALYSIS = "org.apache.spark.sql.catalyst.analysis."
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


class Places:
    """Every place is in line 1, at its offset."""

    def locate(self, start: int | None, fragment: str | None) -> Position | None:
        return None if start is None else Position(1, start + 1)


def node(type_name: str, parent: int = -1, slot: str = "child", **fields: Any) -> PlanNode:
    return PlanNode(id=0, parent=parent, slot=slot, type=type_name, fields=fields)


def plan(*nodes: PlanNode, **more: Any) -> PlanDescription:
    numbered = tuple(replace(entry, id=place) for place, entry in enumerate(nodes))
    return PlanDescription(nodes=numbered, expressions=frozenset(more.pop("expressions", ())), **more)


QUERY = (node(LOGICAL + "Project"), node(ANALYSIS + "UnresolvedRelation", 0))


def check(
    description: PlanDescription,
    kind: StatementKind = StatementKind.QUERY,
    limits: PlanLimits | None = None,
    extra: frozenset[str] = frozenset(),
) -> None:
    inspect(description, kind=kind, limits=limits or PlanLimits(), extra_functions=extra, positions=Places())


def refusal(description: PlanDescription, kind: StatementKind = StatementKind.QUERY, **more: Any) -> SqeError:
    with pytest.raises(SqeError) as caught:
        check(description, kind, **more)
    return caught.value


def call(name: str, *literals: Any, **more: Any) -> PlanDescription:
    """A query that calls one function."""
    return plan(*QUERY, functions=(FunctionCall(parts=tuple(name.split(".")), literals=literals, start=7, **more),))


# Classes


@pytest.mark.rule("STMT-1")
def test_a_query_of_listed_classes_passes() -> None:
    check(plan(*QUERY, expressions=[EXPRESSIONS + "Add", ANALYSIS + "UnresolvedAttribute"]))


@pytest.mark.rule("ENF-6")
@pytest.mark.parametrize("name", ["com.example.Novel", LOGICAL + "Novel", LOGICAL + "AsOfJoin"])
def test_an_unlisted_class_is_refused(name: str, caplog: pytest.LogCaptureFixture) -> None:
    error = refusal(plan(node(name), *QUERY[1:]))
    assert error.code is ErrorCode.NOT_SUPPORTED
    assert name not in str(error)
    assert name in caplog.text


@pytest.mark.rule("ENF-6")
def test_a_denied_class_says_what_to_do() -> None:
    error = refusal(plan(node("org.apache.spark.sql.execution.command.SetCommand")))
    assert "SHOW SESSION" in str(error)
    error = refusal(plan(node(LOGICAL + "ScriptTransformation"), *QUERY[1:]))
    assert str(error) == "TRANSFORM, MAP and REDUCE with USING are not supported: they run programs on the server"


@pytest.mark.rule("ENF-6", "FUNC-2")
@pytest.mark.parametrize(
    "name", ["CallMethodViaReflection", "InputFileName", "CurrentUser", "PythonUDF", "VariableReference", "Novel"]
)
def test_an_unlisted_expression_is_refused(name: str) -> None:
    assert refusal(plan(*QUERY, expressions=[EXPRESSIONS + name])).code is ErrorCode.NOT_SUPPORTED


@pytest.mark.rule("STMT-4")
def test_identifier_of_an_expression_is_refused() -> None:
    assert "IDENTIFIER" in str(refusal(plan(node(ANALYSIS + "PlanWithUnresolvedIdentifier"))))
    named = plan(*QUERY, expressions=[ANALYSIS + "ExpressionWithUnresolvedIdentifier"])
    assert "IDENTIFIER" in str(refusal(named))


# Statement kinds

INSERT = node(LOGICAL + "InsertIntoStatement")


@pytest.mark.rule("ENF-1", "STMT-1")
def test_the_plan_is_of_the_kind_that_was_recognised() -> None:
    insert = plan(
        INSERT, node(ANALYSIS + "UnresolvedRelation", 0, "table"), node(LOGICAL + "LocalRelation", 0, "query")
    )
    check(insert, StatementKind.INSERT)
    for kind in StatementKind:
        if kind is not StatementKind.INSERT:
            refusal(insert, kind)
    refusal(plan(*QUERY), StatementKind.INSERT)
    refusal(plan(*QUERY), StatementKind.SHOW)
    refusal(plan(node(LOGICAL + "DropTable"), node(ANALYSIS + "UnresolvedIdentifier", 0)), StatementKind.QUERY)
    refusal(plan(node(LOGICAL + "DropTable"), node(ANALYSIS + "UnresolvedIdentifier", 0)), StatementKind.CREATE_TABLE)


@pytest.mark.rule("STMT-3")
def test_hive_multi_insert_is_refused() -> None:
    two = plan(node(LOGICAL + "Union"), replace(INSERT, parent=0), replace(INSERT, parent=0))
    refusal(two, StatementKind.INSERT)
    nested = plan(INSERT, replace(INSERT, parent=0, slot="query"))
    refusal(nested, StatementKind.INSERT)


@pytest.mark.rule("STMT-1")
def test_a_command_may_stand_below_with_but_not_in_it() -> None:
    above = node(LOGICAL + "UnresolvedWith")
    check(plan(above, replace(INSERT, parent=0, slot="child")), StatementKind.INSERT)
    refusal(plan(above, replace(INSERT, parent=0, slot="cteRelations")), StatementKind.INSERT)


# Relations


def relation(**more: Any) -> PlanDescription:
    entry = Relation(
        index=0, kind=RelationKind.RELATION, parts=("t",), holder="Project", field="child", start=14, **more
    )
    return plan(*QUERY, relations=(entry,))


@pytest.mark.rule("STMT-4", "NAME-5")
def test_relations_carry_nothing_but_literal_versions() -> None:
    check(relation())
    check(relation(time_travel=TimeTravel(literal=True, version="1")))
    assert "Time travel" in refusal(relation(time_travel=TimeTravel(literal=False))).message
    assert "STREAM" in refusal(relation(streaming=True)).message
    error = refusal(relation(options={"snapshot-id": "1"}))
    assert error.position == Position(1, 15)
    assert error.code is ErrorCode.NOT_SUPPORTED


@pytest.mark.rule("STMT-4")
def test_a_parameter_without_a_value_is_named_when_the_user_named_it() -> None:
    error = refusal(plan(*QUERY, parameters=("limit",)))
    assert (error.message, error.code) == (
        "The statement has parameter :limit without a value",
        ErrorCode.INVALID_ARGUMENTS,
    )
    assert refusal(plan(*QUERY, parameters=("sqe_p0",))).message == "The statement has a parameter without a value"


# Functions


@pytest.mark.rule("FUNC-1")
def test_functions_are_found_by_name() -> None:
    for name in ("abs", "SUM", "row_number", "explode", "+", "st_srid", "raise_error", "system.bucket", "SYSTEM.years"):
        check(call(name))
    for name in ("range", "explode", "json_tuple", "sql_keywords"):
        check(call(name, table_valued=True))


@pytest.mark.rule("FUNC-1")
@pytest.mark.parametrize(
    "name", ["nofn", "system.nofn", "builtin.abs", "c.abs", "c.system.bucket", "system.iceberg_version", "python_eval"]
)
def test_an_unknown_function_does_not_exist(name: str) -> None:
    error = refusal(call(name))
    assert error.code is ErrorCode.FUNCTION_NOT_FOUND
    assert error.position == Position(1, 8)
    assert error.message == f"Function {name} does not exist"


@pytest.mark.rule("FUNC-1")
def test_a_similar_function_is_suggested() -> None:
    assert refusal(call("substing")).hint == 'did you mean "substring"?'
    error = refusal(call("abs", table_valued=True))
    assert error.message == "Table function abs does not exist"
    assert refusal(call("range")).code is ErrorCode.FUNCTION_NOT_FOUND


@pytest.mark.rule("FUNC-2")
@pytest.mark.parametrize(
    "name",
    [
        *("reflect", "java_method", "try_reflect", "version", "spark_partition_id", "monotonically_increasing_id"),
        *("input_file_name", "input_file_block_start", "input_file_block_length"),
        *("current_user", "session_user", "user", "current_catalog", "current_database", "current_schema"),
        *("from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf"),
    ],
)
def test_a_denied_function_says_that_it_is(name: str) -> None:
    for written in (name, name.upper()):
        error = refusal(call(written, "java.lang.Runtime"))
        assert isinstance(error, NotSupportedError)
        assert error.position == Position(1, 8)
    assert refusal(call("python_worker_logs", table_valued=True)).code is ErrorCode.NOT_SUPPORTED


@pytest.mark.rule("FUNC-1")
def test_the_translators_functions_pass() -> None:
    check(call("_sqe_date_add"), extra=frozenset({"_sqe_date_add"}))
    check(call("_sqe_unnest", table_valued=True), extra=frozenset({"_sqe_unnest"}))
    refusal(call("_sqe_date_add"))
    refusal(call("x._sqe_date_add"), extra=frozenset({"_sqe_date_add"}))


@pytest.mark.rule("FUNC-3")
def test_option_maps_hold_listed_keys_only() -> None:
    check(call("from_json", None, "a int"))
    check(call("from_json", None, "a int", {"MODE": "FAILFAST"}))
    check(call("to_csv", None, {"sep": ";"}))
    for name, literals in (
        ("from_xml", (None, "a int", {"rowValidationXSDPath": "/etc/passwd"})),
        ("schema_of_xml", ("<a/>", {"rowvalidationxsdpath": "/etc/passwd"})),
        ("from_json", (None, "a int", None)),
        ("from_json", (None, "a int", "mode")),
        ("from_csv", (None, "a int", {"mode": "FAILFAST", "path": "/tmp"})),
        ("to_json", (None, {"compression": "gzip"})),
    ):
        error = refusal(call(name, *literals))
        assert error.code is ErrorCode.NOT_SUPPORTED, name
        assert error.position == Position(1, 8)
    assert refusal(call("from_json", None, "", {"mod": "x"})).hint == 'did you mean "mode"?'


@pytest.mark.rule("LIM-5")
def test_groupings_are_bounded() -> None:
    check(plan(*QUERY, node(LOGICAL + "Aggregate", 0, groupings=4096)))
    error = refusal(
        plan(*QUERY, node(LOGICAL + "Aggregate", 0, groupings=4000), node(LOGICAL + "Aggregate", 0, groupings=97))
    )
    assert isinstance(error, ResourcesError)


@pytest.mark.rule("FUNC-3")
def test_a_schema_is_a_literal_in_the_notation_of_create_table() -> None:
    for name, before in (
        ("from_json", 1),
        ("from_csv", 1),
        ("from_xml", 1),
        ("variant_get", 2),
        ("try_variant_get", 2),
    ):
        for good in ("a int", " `a b` ARRAY<STRING>", "struct<a: int>", "int", "array<" * 60 + "int" + ">" * 60):
            check(call(name, *[None] * before, good))
        for bad in (
            '{"type":"struct"}',
            ' \n{"type":"struct"}',
            '"integer"',
            "\ufeff{}",
            "[]",
            "",
            "/**/{}",
            None,
            7,
            {"a": "b"},
        ):
            error = refusal(call(name, *[None] * before, bad))
            assert error.code is ErrorCode.NOT_SUPPORTED, (name, bad)
            assert error.position == Position(1, 8)
        assert isinstance(refusal(call(name, *[None] * before, "array<" * 61 + "int" + ">" * 61)), ResourcesError)
    check(call("from_json", None, None, calls={1: "schema_of_json"}))
    refusal(call("from_json", None, None, calls={1: "concat"}))
    refusal(call("from_json", None, None, calls={0: "schema_of_json"}))


# Amplifiers


@pytest.mark.rule("LIM-6")
@pytest.mark.parametrize(
    ("name", "literals", "table_valued"),
    [
        ("repeat", ("x", 1_000_001), False),
        ("repeat", ("x", "1000001"), False),
        ("space", (10**9,), False),
        ("lpad", ("x", 10**9, "y"), False),
        ("rpad", ("x", 10.0**9), False),
        ("randstr", (10**9,), False),
        ("array_repeat", (1, 10**7), False),
        ("array_insert", (None, -(10**7), 1), False),
        ("sequence", (1, 10**8), False),
        ("sequence", (10**8, 1), False),
        ("sequence", (0, 1, 1e-9), False),
        ("sequence", ("0001-01-01", "9999-01-01"), False),
        ("sequence", ("2001-01-01 00:00:00", "2031-12-31 00:00:00", "INTERVAL '01' SECOND"), False),
        ("sequence", ("2001-01-01 00:00:00", "2001-12-31 00:00:00", "INTERVAL '00.001' SECOND"), False),
        ("sequence", ("2001-01-01 00:00:00", "2031-12-31 00:00:00", "INTERVAL '0 00:00:02' DAY TO SECOND"), False),
        ("range", (10**12,), True),
        ("range", (10**10 + 1,), True),
        ("range", (-(10**12), 0), True),
        ("range", (0, 10, 1, 10**6), True),
        ("stack", (10**8, 1), False),
        ("format_number", (1, 10**6), False),
        ("format_string", ("%999999999d", 1), False),
        ("printf", ("%-5.99999999f", 1), False),
        ("approx_count_distinct", (None, 0.0001), False),
        ("count_min_sketch", (None, 1e-9, 0.9, 1), False),
        ("window", (None, "1000000 days", "1 second"), False),
        ("_sqe_repeat", ("x", 10**9), False),
        ("_sqe_sequence", (1, 10**9), False),
        ("_sqe_series", (1, 10**9), False),
        ("_sqe_to_char_n", ("x", 10**9), False),
    ],
)
def test_a_literal_that_amplifies_is_bounded(name: str, literals: tuple[Any, ...], table_valued: bool) -> None:
    limits = PlanLimits(amplifiers=AmplifierLimits(max_elements=1_000_000))
    description = call(name, *literals, table_valued=table_valued)
    error = refusal(description, limits=limits, extra=frozenset({name}))
    assert isinstance(error, ResourcesError)
    assert error.position == Position(1, 8)


@pytest.mark.rule("LIM-6")
@pytest.mark.parametrize(
    ("name", "literals", "table_valued"),
    [
        ("repeat", ("x", 1_000_000), False),
        ("repeat", ("x", None), False),
        ("repeat", (1_000_000_000, 3), False),
        ("lpad", ("x", "no number"), False),
        ("sequence", (1, 1_000_000), False),
        ("sequence", (0, 10**9, 10**6), False),
        ("sequence", (1, 10**9, None), False),
        ("sequence", (1, 10, 0), False),
        ("sequence", ("2020-01-01", "2025-01-01"), False),
        ("sequence", ("2020-01-01", "9999-01-01", "INTERVAL '1' MONTH"), False),
        ("sequence", ("2020-01-01 00:00:00", "2020-01-02 00:00:00", "INTERVAL '-1' SECOND"), False),
        ("sequence", ("2020-01-01 00:00:00", "2020-01-02 00:00:00", "INTERVAL '00' SECOND"), False),
        ("range", (10**10,), True),
        ("format_string", ("%5d %s %10.2f %%999999999", 1), False),
        ("approx_count_distinct", (None, 0.01), False),
        ("approx_count_distinct", (None,), False),
        ("window", (None, "1 hour"), False),
        ("window", (None, "interval 1 hour 30 minutes", "10 minutes"), False),
        ("space", (), False),
        ("space", (True,), False),
    ],
)
def test_usual_literals_pass(name: str, literals: tuple[Any, ...], table_valued: bool) -> None:
    check(call(name, *literals, table_valued=table_valued))


@pytest.mark.rule("LIM-6")
def test_nested_amplifiers_multiply() -> None:
    def calls(*counts: int) -> PlanDescription:
        return plan(*QUERY, functions=tuple(FunctionCall(parts=("repeat",), literals=("x", n)) for n in counts))

    check(calls(10_000, 10_000))
    check(calls(*[1000] * 20))
    assert isinstance(refusal(calls(10_000, 10_001)), ResourcesError)


@pytest.mark.rule("LIM-6")
def test_window_takes_durations_that_can_be_measured() -> None:
    for length, slide in (("1 fortnight", "1 second"), ("x", "1 second"), (None, "1 second"), ("1 day", "0 seconds")):
        refusal(call("window", None, length, slide))


# Sizes


@pytest.mark.rule("LIM-5")
@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (PlanLimits(max_relations=1), "2 tables"),
        (PlanLimits(max_joins=0), "1 joins"),
        (PlanLimits(max_subqueries=0), "1 subqueries"),
        (PlanLimits(max_nodes=3), "4 operations"),
        (PlanLimits(max_expressions=6), "7 expressions"),
        (PlanLimits(max_depth=8), "9 levels"),
    ],
)
def test_plans_are_bounded(limits: PlanLimits, what: str) -> None:
    name = Relation(index=0, kind=RelationKind.RELATION, parts=("t",), holder="Join", field="left")
    big = plan(
        node(LOGICAL + "Join"),
        node(ANALYSIS + "UnresolvedRelation", 0, "left"),
        node(ANALYSIS + "UnresolvedRelation", 0, "right"),
        node(LOGICAL + "OneRowRelation", 0, "subquery"),
        relations=(name, replace(name, index=1)),
        expression_count=7,
        depth=9,
    )
    check(big)
    error = refusal(big, limits=limits)
    assert isinstance(error, ResourcesError)
    assert what in error.message


# Definitions

SPEC: Mapping[str, Any] = {
    "class": "UnresolvedTableSpec",
    "properties": {},
    "provider": None,
    "optionExpression": {"class": "OptionList", "options": []},
    "location": None,
    "comment": None,
    "collation": None,
    "serde": None,
    "external": False,
    "constraints": [],
}


def create(spec: Mapping[str, Any] | None = None, *columns: Mapping[str, Any], **fields: Any) -> PlanDescription:
    given = {"tableSpec": {**SPEC, **(spec or {})}, "columns": list(columns), **fields}
    return plan(node(LOGICAL + "CreateTable", **given), node(ANALYSIS + "UnresolvedIdentifier", 0, "name"))


def column(**more: Any) -> Mapping[str, Any]:
    return {"class": "ColumnDefinition", "name": "a", "dataType": "int", **more}


@pytest.mark.rule("STMT-3")
def test_tables_are_iceberg_tables_where_the_catalog_puts_them() -> None:
    kind = StatementKind.CREATE_TABLE
    check(create(), kind)
    check(create({"provider": "ICEBERG"}, column()), kind)
    for spec in (
        {"provider": "parquet"},
        {"provider": "jdbc"},
        {"provider": "org.apache.spark.sql.jdbc"},
        {"location": "/tmp/x"},
        {"location": ""},
        {"optionExpression": {"class": "OptionList", "options": [["path", {"class": "Literal", "value": "/tmp"}]]}},
        {"serde": {"class": "SerdeInfo"}},
        {"external": True},
        {"constraints": [{"class": "PrimaryKeyConstraint"}]},
        {"collation": "UTF8_LCASE"},
        {"properties": None},
    ):
        assert isinstance(refusal(create(spec), kind), NotSupportedError), spec
    for unreadable in (None, [], "spec"):
        refusal(create(tableSpec=unreadable), kind)
    refusal(create(writeOptions={"a": "b"}), kind)
    refusal(create(withSchemaEvolution=True), kind)


@pytest.mark.rule("STMT-3")
def test_columns_are_plain() -> None:
    kind = StatementKind.CREATE_TABLE
    literal = {"class": "DefaultValueExpression", "child": {"class": "Literal", "value": 5}}
    computed = {"class": "DefaultValueExpression", "child": {"class": "CurrentTimestamp", "sql": "current_timestamp()"}}
    check(create(None, column(defaultValue=literal)), kind)
    for broken in (
        column(defaultValue=computed),
        column(defaultValue="5"),
        column(generationExpression={"class": "Literal"}),
        column(identityColumnSpec={"class": "IdentityColumnSpec"}),
    ):
        refusal(create(None, broken), kind)
    refusal(create(columns=["a int"]), kind)

    def alter(name: str, **fields: Any) -> PlanDescription:
        return plan(node(LOGICAL + name, **fields), node(ANALYSIS + "UnresolvedTable", 0, "table"))

    kind = StatementKind.ALTER_TABLE
    check(alter("AddColumns", columnsToAdd=[{"colName": "a", "default": None}]), kind)
    refusal(alter("AddColumns", columnsToAdd=[{"colName": "a", "default": computed}]), kind)
    check(alter("AlterColumns", specs=[{"newDataType": "bigint"}]), kind)
    refusal(alter("AlterColumns", specs=[{"newDefaultExpression": literal}]), kind)
    refusal(alter("AlterColumns", specs=[{"dropDefault": True}]), kind)


@pytest.mark.rule("STMT-7")
def test_table_properties_are_listed() -> None:
    kind = StatementKind.ALTER_TABLE

    def alter(**properties: str) -> PlanDescription:
        given = {key.replace("__", "-").replace("_", "."): value for key, value in properties.items()}
        return plan(
            node(LOGICAL + "SetTableProperties", properties=given), node(ANALYSIS + "UnresolvedTable", 0, "table")
        )

    check(alter(format__version="3", write_delete_mode="Merge-On-Read", comment_a="x"), kind)
    check(create({"properties": {"write.target-file-size-bytes": "1024"}}), StatementKind.CREATE_TABLE)
    for key, good, bad in (
        ("read.parquet.vectorization.batch-size", ("1", "65536"), ("0", "-5", "2147483647", "abc", "", "1.5", "1e3")),
        ("read.split.target-size", ("134217728",), ("-1", "9" * 30, " 4096")),
        ("write.parquet.bloom-filter-fpp.column.a", ("0.01", ".5"), ("0.0", "1.0", "1", "nan")),
        ("write.parquet.bloom-filter-enabled.column.a", ("true", "FALSE"), ("yes", "1")),
        ("write.parquet.compression-level", ("3", "-1"), ("23",)),
    ):
        for value in good:
            check(create({"properties": {key: value}}), StatementKind.CREATE_TABLE)
        for value in bad:
            error = refusal(create({"properties": {key: value}}), StatementKind.CREATE_TABLE)
            assert error.code is ErrorCode.INVALID_ARGUMENTS, (key, value)
            assert (error.hint or "").startswith(
                ("it is a whole number from", "it is a number between", "it is one of")
            )
    for properties in (
        {"location": "/tmp"},
        {"write_data_path": "/tmp"},
        {"write_metadata_path": "/tmp"},
        {"write_object__storage_path": "/tmp"},
        {"write_location__provider_impl": "com.example.Provider"},
        {"current__snapshot__id": "1"},
        {"cherry__pick__snapshot__id": "1"},
        {"encryption_key__id": "k"},
        {"sqe_column__tags": "{}"},
        {"sqe_view__definer": "root"},
        {"gc_enabled": "false"},
        {"my_own": "x"},
    ):
        error = refusal(alter(**properties), kind)
        assert error.code is ErrorCode.NOT_SUPPORTED, properties
        key = next(iter(properties)).replace("__", "-").replace("_", ".")
        assert key in error.message
        assert ("cannot be set: " in error.message) == (key != "my.own")
        unset = plan(node(LOGICAL + "UnsetTableProperties", propertyKeys=[key]), node(ANALYSIS + "UnresolvedTable", 0))
        assert refusal(unset, kind).code is ErrorCode.NOT_SUPPORTED
    assert isinstance(refusal(create({"properties": {"location": "/tmp"}}), StatementKind.CREATE_TABLE), UserError)
    error = refusal(alter(format__version="4"), kind)
    assert (error.code, error.hint) == (ErrorCode.INVALID_ARGUMENTS, "it is one of 1, 2, 3")
    refusal(alter(write_format_default="orc"), kind)
    assert refusal(alter(write_delete_mod="x"), kind).hint == 'did you mean "write.delete.mode"?'
    no_map = plan(node(LOGICAL + "SetTableProperties"), node(ANALYSIS + "UnresolvedTable", 0))
    refusal(no_map, kind)
    for keys in (None, "comment"):
        refusal(
            plan(node(LOGICAL + "UnsetTableProperties", propertyKeys=keys), node(ANALYSIS + "UnresolvedTable", 0)), kind
        )


@pytest.mark.rule("STMT-4", "LIM-6")
def test_hints_are_bounded_when_the_engine_follows_them() -> None:
    def hint(name: str, *parameters: Any) -> PlanDescription:
        above = node(LOGICAL + "UnresolvedHint", name=name, parameters=list(parameters))
        return plan(above, replace(QUERY[0], parent=0), replace(QUERY[1], parent=1), hints=(name,))

    check(hint("BROADCAST", "t"))
    check(hint("repartition", 200))
    check(hint("NOVEL", 10**9))
    assert isinstance(refusal(hint("REPARTITION", {"class": "Literal", "value": 10**6})), ResourcesError)
    assert isinstance(refusal(hint("coalesce", 10**6)), ResourcesError)


def test_texts_of_the_user_are_bounded_and_on_one_line() -> None:
    error = refusal(call("a" * 500 + "\n\x1b[31m"))
    assert len(error.message) < 200
    assert error.message.isprintable()
