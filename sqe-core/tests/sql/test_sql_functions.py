"""The tables of functions fit together: what is written exists, what exists is used, everything is documented."""

from __future__ import annotations

import re

import pytest

from sqe_core.query.judge import allowed
from sqe_core.sql.reader import Reader
from sqe_core.sql.spark import functions
from sqe_core.sql.spark.function_rules import RULES
from sqe_core.sql.spark.write_calls import Calling
from sqe_core.sql.statement import EngineStatement, TextLimits

_TEMPLATE = re.compile(r"\b_sqe_[a-z0-9_]+")
# fmt: off
_TYPES = frozenset(
    [
    "int", "dec", "dbl", "flt", "str", "bin", "bool", "date", "ts", "tsz", "time", "ivl", "ivm", "arr", "map", "row",
    "var", "nul", "num", "fp", "exact", "day", "any", "none", "utc",
]
)
# fmt: on


def texts() -> list[tuple[str, str]]:
    """Every text of functions.toml with the name of its function."""
    found = []
    for name, kind, _ in functions.documented():
        function = functions.find(name, kind)
        assert function is not None
        spark = [function.spark] if isinstance(function.spark, str) else list(function.spark.values())
        found += [(name, text) for text in spark]
    return found


def test_special_rules_exist_and_are_used() -> None:
    used = {text[1:] for _, text in texts() if text.startswith("@")}
    assert used == set(RULES)


def test_templates_that_functions_name_exist() -> None:
    called = {name for _, text in texts() for name in _TEMPLATE.findall(text)}
    assert called <= functions.template_names()


def test_templates_that_templates_name_exist() -> None:
    for rules in functions.templates().values():
        for template in rules.values():
            assert set(_TEMPLATE.findall(template)) <= functions.template_names(), template


def test_rules_of_templates_are_well_formed() -> None:
    for name, rules in functions.templates().items():
        for types, template in rules.items():
            words = {
                word for one in types.removesuffix("...").split(",") for word in one.removesuffix("...").split("|")
            }
            assert {part for word in words for part in word.split(":")} <= _TYPES, (name, types)
            if template.startswith("java:"):
                assert re.fullmatch(
                    r"java:Sql(Math|Text|Time|Zone|Json|Bytes|Network|Statistics)\.\w+\((?:[^()]|TIME\(6\))*\) -> [A-Za-z0-9_ <>:,()]+",
                    template,
                ), template
                continue
            arguments = {int(number) for number in re.findall(r"__a([0-9])", template)}
            count = len(types.split(","))
            assert all(number < count for number in arguments), (name, types, template)


def test_every_template_is_used() -> None:
    source = "\n".join(text for _, text in texts())
    source += "\n".join(template for rules in functions.templates().values() for template in rules.values())
    folder = functions.files("sqe_core.sql.spark")
    source += "\n".join(one.read_text("utf-8") for one in folder.iterdir() if one.name.endswith(".py"))
    families = ("_sqe_to_", "_sqe_try_to_")
    comparisons = re.compile(r"_sqe_(eq|ne|lt|le|gt|ge)_(all|any)")
    for name in functions.templates():
        if comparisons.fullmatch(name) or name.startswith(families):
            continue
        assert name in source, name


def test_documented_functions_have_signatures() -> None:
    documented = functions.documented()
    assert documented == tuple(sorted(documented))
    assert len(documented) > 380
    for name, kind, signature in documented:
        assert kind in ("scalar", "aggregate", "window", "table")
        assert name.strip("_") in signature.lower(), name
        assert name == name.lower()


# fmt: off
FEATURES = [
    "concat", "concat_ws", "length", "char_length", "octet_length", "bit_length", "position", "strpos", "find_in_set",
    "codepoint", "chr", "ascii", "substring", "substr", "left", "right", "split", "split_part", "trim", "ltrim",
    "rtrim", "btrim", "lower", "upper", "initcap", "lpad", "rpad", "repeat", "reverse", "replace", "translate",
    "overlay", "format", "starts_with", "ends_with", "contains", "regexp_like", "regexp_match", "regexp_replace",
    "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_split", "md5", "sha224", "sha256", "sha384",
    "sha512", "digest", "levenshtein", "hamming_distance", "soundex", "normalize", "from_utf8", "to_utf8", "abs",
    "sign", "ceil", "ceiling", "floor", "round", "trunc", "truncate", "pow", "sqrt", "cbrt", "exp", "ln", "log",
    "log2", "log10", "e", "pi", "degrees", "radians", "mod", "gcd", "lcm", "factorial", "from_base", "to_base",
    "random", "uuid", "nanvl", "isnan", "isinf", "iszero", "infinity", "nan", "bitwise_not", "bitwise_and",
    "bitwise_or", "bitwise_xor", "now", "current_timestamp", "current_date", "current_time", "localtime",
    "localtimestamp", "current_timezone", "make_date", "year", "quarter", "month", "week", "day", "hour", "minute",
    "second", "millisecond", "day_of_week", "day_of_year", "extract", "date_part", "date_trunc", "date_bin",
    "last_day_of_month", "date_add", "date_diff", "date_format", "date_parse", "format_datetime", "parse_datetime",
    "to_iso8601", "from_iso8601_date", "from_iso8601_timestamp", "to_char", "to_date", "to_timestamp",
    "from_unixtime", "to_unixtime", "with_timezone", "at_timezone", "human_readable_seconds", "json_parse",
    "json_format", "json_object", "json_array_length", "json_extract", "json_extract_scalar", "is_json_scalar",
    "json_array_contains", "json_size", "json_array_get", "to_json", "json_get", "json_get_str", "json_get_int",
    "json_get_float", "json_get_bool", "json_get_json", "json_get_array", "json_contains", "json_as_text",
    "json_length", "make_array", "array", "range", "sequence", "cardinality", "element_at", "slice", "array_position",
    "array_contains", "array_distinct", "array_sort", "array_union", "array_intersect", "array_except",
    "array_remove", "array_replace", "flatten", "array_min", "array_max", "array_sum", "array_mean", "array_resize",
    "array_any_value", "array_repeat", "map", "map_keys", "map_values", "map_extract", "struct", "named_struct",
    "row", "filter", "transform", "any_match", "all_match", "none_match", "reduce", "array_filter", "array_transform",
    "array_any_match", "array_all_match", "array_none_match", "array_reduce", "if", "iff", "coalesce", "nullif",
    "nvl", "nvl2", "greatest", "least", "typeof", "try", "encode", "decode", "from_base64", "to_base64", "from_hex",
    "to_hex", "checksum", "url_extract_host", "url_extract_path", "url_extract_port", "url_extract_protocol",
    "url_extract_query", "url_extract_parameter", "url_encode", "url_decode", "count", "sum", "avg", "min", "max",
    "median", "corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "skewness", "kurtosis",
    "approx_distinct", "approx_median", "approx_percentile", "approx_percentile_cont", "bool_and", "bool_or", "every",
    "bit_and", "bit_or", "bit_xor", "bitwise_and_agg", "bitwise_or_agg", "first_value", "last_value", "nth_value",
    "max_by", "min_by", "arg_max", "arg_min", "arbitrary", "any_value", "array_agg", "string_agg", "listagg",
    "histogram", "map_agg", "multimap_agg", "map_union", "count_if", "stddev", "stddev_pop", "stddev_samp",
    "variance", "var_pop", "var_samp", "current_user", "current_role", "current_database", "current_schema",
    "current_catalog", "version", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag",
    "lead",
]
# fmt: on


@pytest.mark.parametrize("name", FEATURES)
def test_functions_of_the_feature_reference_exist(name: str) -> None:
    assert functions.find(name) is not None


@pytest.mark.rule("FUNC-1")
def test_what_is_written_is_allowed() -> None:
    """The engine may be called by listed names only: every function, called once, stays inside the lists."""
    announced = allowed.functions().callable | functions.template_names() | {"cast", "try_cast", "extract"}
    for name, kind, _ in functions.documented():
        if kind == "table":
            continue
        function = functions.find(name)
        assert function is not None
        for count in range(5):
            if function.text_for(count) is None:
                continue
            arguments = ", ".join(["'a'", "'day'", "c", "d"][:count]) if name != "date_add" else "'day', b, c"
            over = " over (order by z)" if kind == "window" else ""
            try:
                statement = Reader().read(f"select {name}({arguments}){over}", dialect="sqe", limits=TextLimits())
            except Exception:  # another number or kind of arguments
                continue
            assert isinstance(statement, EngineStatement)
            text = re.sub(r"'[^']*'|`[^`]*`", "", statement.spark_sql)
            called = {found.lower() for found in re.findall(r"\b([A-Za-z_]\w*)\(", text)}
            assert called - {"select", "over", "decimal"} <= announced, (name, called - announced)


def test_copies_count_what_templates_repeat() -> None:
    assert functions.copies("_sqe_div") == 1
    assert functions.copies("_sqe_greatest") >= 2
    assert functions.copies("_sqe_array_max") == 3
    assert Calling.__doc__
