"""Turn what py4j raises into the errors of the port. Java's own text goes to `EngineFailure.raw` and nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from sqe_core.engine.port import EngineExecutionError, EngineFailure
from sqe_core.engine.spark.context import EngineContext, engine_lost
from sqe_core.spi.errors import InternalError, QueryCancelledError

CANCELLED = "SQE_CANCELLED"
PLANNING_TIMEOUT = "SQE_PLANNING_TIMEOUT"
_GENERATED = "SQE"  # the object type that the bridge gives to the origins of its own text


@contextmanager
def engine_errors(context: EngineContext, text: str | None = None) -> Iterator[None]:
    """Translate errors of the calls inside. `text` is the parsed text, to tell its positions from those of others."""
    try:
        yield
    except (Py4JError, OSError) as error:
        raise translate(context, error, text) from None


def translate(context: EngineContext, error: BaseException, text: str | None = None) -> Exception:
    """Return the error to raise for one that a call into the JVM raised."""
    if isinstance(error, Py4JJavaError):
        try:
            described = json.loads(context.bridge.Failures.describe(error.java_exception))
        except (Py4JError, OSError) as lost:
            if isinstance(lost, Py4JJavaError):
                return InternalError("The engine cannot say what failed")
            return translate(context, lost, text)
        if described["condition"] == CANCELLED:
            return QueryCancelledError("The statement was cancelled")
        return executing_error(described, text)
    if context.vanished(error) or isinstance(error.__cause__, Py4JNetworkError | OSError):
        return engine_lost()
    # py4j found no such method or class: the bridge and this package are of different versions.
    return InternalError("The engine's bridge does not answer as expected")


# Out of memory, Spark's scheduler ends every job and then itself; `Boot` ends the JVM after it.
_OF_THE_SCHEDULER = frozenset({"SparkException", "SPARK_JOB_CANCELLED", "IllegalStateException"})
_ENDED = re.compile(r"SparkContext was shut down|as part of cancellation of all jobs|methods on a stopped SparkContext")


def executing_error(described: Mapping[str, Any], text: str | None) -> Exception:
    """Return the error to raise for an answer of the bridge's `Failures.describe`."""
    if described["condition"] in _OF_THE_SCHEDULER and _ENDED.search(described["raw"]):
        return engine_lost()
    return EngineExecutionError(decode(described, text))


def decode(described: Mapping[str, Any], text: str | None) -> EngineFailure:
    """Build the failure from the answer of the bridge's `Failures.describe`."""
    # Views and secured relations have texts of their own; a position in one of them is none in the statement.
    generated = described.get("object_type") == _GENERATED or (
        text is not None and described.get("text") is not None and described["text"] != text
    )
    start = described.get("start")
    if start is None and "line" in described:
        start = offset(described.get("command") or text or "", described["line"], described["column"])
    return EngineFailure(
        condition=described["condition"],
        sql_state=described.get("sql_state"),
        parameters=described.get("parameters", {}),
        fragment=None if generated else described.get("fragment"),
        start=None if generated else start,
        generated=generated,
        causes=tuple(described.get("causes", ())),
        raw=described["raw"],
    )


def offset(text: str, line: int, column: int) -> int | None:
    """Return the offset in code points of a 1-based line and a 0-based column; only line feeds end a line."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if start == 0:
            return None
    return start + column
