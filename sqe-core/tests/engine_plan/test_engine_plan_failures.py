"""What a failure in the engine becomes, and that nothing of its text gets out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from sqe_core.engine.port import EngineExecutionError
from sqe_core.engine.spark.catalog import SparkEngineCatalog
from sqe_core.engine.spark.failures import decode, engine_errors, executing_error, offset, translate
from sqe_core.spi.errors import EngineLostError, ErrorCode, InternalError, ObjectNotFoundError, QueryCancelledError


class FakeFailures:
    def __init__(self, described: dict[str, Any] | Exception) -> None:
        self._described = described

    def describe(self, thrown: object) -> str:
        if isinstance(self._described, Exception):
            raise self._described
        return json.dumps(self._described)


class FakeContext:
    """`context.bridge.Failures`, and whether the JVM is gone."""

    def __init__(self, described: dict[str, Any] | Exception) -> None:
        self.jvm = self.sqe = self.bridge = self
        self.Failures = FakeFailures(described)

    def vanished(self, error: BaseException) -> bool:
        return isinstance(error, Py4JNetworkError | OSError)


class JavaError(Py4JJavaError):
    """One without a connection behind it."""

    def __init__(self) -> None:
        Py4JError.__init__(self, "An error occurred while calling SECRET")
        self.java_exception = None


def described(**more: Any) -> dict[str, Any]:
    return {"condition": "SOME_CONDITION", "raw": "SECRET"} | more


def test_a_java_error_becomes_a_failure() -> None:
    answer = described(
        sql_state="42703", parameters={"name": "`x`"}, object_type="", fragment="x", start=7, text="SELECT x"
    )
    error = translate(FakeContext(answer), JavaError(), "SELECT x")  # type: ignore[arg-type]  # a fake
    assert isinstance(error, EngineExecutionError)
    assert str(error) == "SOME_CONDITION"
    failure = error.failure
    assert (failure.condition, failure.sql_state, failure.parameters) == ("SOME_CONDITION", "42703", {"name": "`x`"})
    assert (failure.fragment, failure.start, failure.generated) == ("x", 7, False)
    assert failure.raw == "SECRET"


@pytest.mark.parametrize("context", [{"object_type": "SQE", "text": "SELECT x"}, {"object_type": "", "text": "other"}])
def test_places_in_other_texts_are_none(context: dict[str, str]) -> None:
    failure = decode(described(fragment="secret_column", start=3, **context), "SELECT x")
    assert failure.generated
    assert failure.fragment is None
    assert failure.start is None


def test_a_syntax_error_has_a_line_and_a_column() -> None:
    text = "SELECT '😀'\n  FRM t"
    failure = decode(described(line=2, column=2), text)
    assert failure.start is not None
    assert text[failure.start :] == "FRM t"


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [("abc", 1, 2, 2), ("a\nb\nc", 3, 0, 4), ("a\r\nb", 2, 0, 3), ("a", 3, 0, None)],
)
def test_offset(text: str, line: int, column: int, expected: int | None) -> None:
    assert offset(text, line, column) == expected


def test_a_cancelled_statement() -> None:
    error = translate(FakeContext(described(condition="SQE_CANCELLED")), JavaError())  # type: ignore[arg-type]  # a fake
    assert isinstance(error, QueryCancelledError)


@pytest.mark.parametrize("lost", [Py4JNetworkError("SECRET"), ConnectionResetError("SECRET"), OSError("SECRET")])
def test_a_lost_connection_is_a_lost_engine(lost: Exception) -> None:
    context: Any = FakeContext({})
    with pytest.raises(EngineLostError) as raised, engine_errors(context):
        raise lost
    assert "SECRET" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_an_engine_that_is_lost_while_it_describes() -> None:
    context: Any = FakeContext(Py4JNetworkError("SECRET"))
    assert isinstance(translate(context, JavaError()), EngineLostError)


def test_a_bridge_that_is_not_ours() -> None:
    context: Any = FakeContext({})
    with pytest.raises(InternalError, match="bridge") as raised, engine_errors(context):
        raise Py4JError("Method SECRET does not exist")
    assert "SECRET" not in str(raised.value)


def test_our_own_errors_pass() -> None:
    context: Any = FakeContext({})
    with pytest.raises(ZeroDivisionError), engine_errors(context):
        raise ZeroDivisionError


# Catalogs


class Refusing:
    """The Java side of a catalog that refuses everything."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def refuse(*arguments: object) -> Any:
            raise JavaError

        return refuse


READS: dict[str, tuple[str, Callable[[SparkEngineCatalog], object]]] = {
    "namespaces": ("NoSuchNamespaceException", lambda catalog: catalog.list_namespaces(("hr",))),
    "objects": ("NoSuchNamespaceException", lambda catalog: catalog.list_objects(("hr",))),
    "tables": ("NoSuchNamespaceException", lambda catalog: catalog.list_tables(("hr",))),
    "views": ("NoSuchNamespaceException", lambda catalog: catalog.list_views(("hr",))),
    "namespace": ("NoSuchNamespaceException", lambda catalog: catalog.load_namespace(("hr",))),
    "table": ("NoSuchTableException", lambda catalog: catalog.load_table(("hr",), "pay")),
    "view": ("NoSuchViewException", lambda catalog: catalog.load_view(("hr",), "pay")),
}


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(("missing", "read"), READS.values(), ids=READS)
def test_what_a_catalog_denies_reads_like_what_it_does_not_have(
    missing: str, read: Callable[[SparkEngineCatalog], object]
) -> None:
    told = []
    for condition in ("ForbiddenException", "EntityNotFoundException", "NoSuchObjectException", missing):
        context: Any = FakeContext(described(condition=condition))
        with pytest.raises(ObjectNotFoundError) as caught:
            read(SparkEngineCatalog(context, Refusing()))
        told.append((str(caught.value), caught.value.hint, caught.value.code))
    assert len(set(told)) == 1


def test_what_a_backend_does_not_have_is_named_by_what_was_asked_for() -> None:
    context: Any = FakeContext(described(condition="EntityNotFoundException"))
    catalog = SparkEngineCatalog(context, Refusing())
    for change, text, code in (
        (lambda: catalog.drop_namespace(("hr",)), "Schema 'hr' does not exist", ErrorCode.SCHEMA_NOT_FOUND),
        (
            lambda: catalog.drop_table(("hr",), "pay", purge=True),
            "Table 'hr.pay' does not exist",
            ErrorCode.TABLE_NOT_FOUND,
        ),
    ):
        with pytest.raises(ObjectNotFoundError, match=text) as caught:
            change()
        assert caught.value.code is code


def test_causes_are_kept_for_the_log() -> None:
    assert decode(described(causes=["a.B at c", "d.E: text"]), None).causes == ("a.B at c", "d.E: text")


ENDED = [
    ("SparkException", "org.apache.spark.SparkException: Job 67 cancelled because SparkContext was shut down"),
    (
        "SPARK_JOB_CANCELLED",
        "[SPARK_JOB_CANCELLED] Job 66 cancelled as part of cancellation of all jobs SQLSTATE: XXKDA",
    ),
    ("IllegalStateException", "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n  at"),
]


@pytest.mark.parametrize(("condition", "raw"), ENDED)
def test_jobs_that_end_with_the_scheduler_say_that_the_engine_ended(condition: str, raw: str) -> None:
    error = executing_error(described(condition=condition, raw=raw), "SELECT 1")
    assert isinstance(error, EngineLostError)
    assert error.hint == "it restarts by itself; send the statement again"
    # What a statement says itself proves nothing about the engine.
    own = executing_error(described(condition="USER_RAISED_EXCEPTION", raw=raw), "SELECT 1")
    assert isinstance(own, EngineExecutionError)
