"""PySpark over the JVM that this process starts: its `SparkContext` and `SparkSession`, and through them the bridge."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_collections import ListConverter, MapConverter
from py4j.java_gateway import JVMView, java_import
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from sqe_core.spi.errors import EngineLostError

# At DEBUG py4j logs every command, and with it the gateway's secret and the values of parameters.
logging.getLogger("py4j").setLevel(logging.WARNING)

# A killed process closes its connections a moment before it is seen to have ended.
_END_SECS = 0.5

# What PySpark says without a package when it runs a query.
_SHORT_NAMES = (
    "org.apache.spark.api.python.*",
    "org.apache.spark.sql.api.python.*",
    "org.apache.spark.sql.functions",
)

_BUFFER_BYTES = 16 << 20  # of one result in the driver's memory
_SPILL_BYTES = 10 << 30  # of one result on disk, while its reader is slow
_DISK_RESERVE_BYTES = 1 << 30  # no result takes the last gigabyte


def engine_lost() -> EngineLostError:
    """Return the error of whoever needed a JVM that has ended."""
    return EngineLostError(
        "The engine ended while the statement ran", hint="it restarts by itself; send the statement again"
    )


class EngineContext(SparkContext):  # type: ignore[misc]  # PySpark is not type-checked
    """PySpark's context of one JVM, which has one already; safe to use from every thread.

    PySpark's own constructor is left out (ADR 12). It prepares for Python workers, which no statement of ours has: it
    listens for pickled values from the JVM, puts a folder that the JVM names first on `sys.path`, and takes SIGINT. It
    also allows one context for each process; here each JVM has its own. Spark keeps the active session and job tags per
    Java thread, and py4j gives each Python thread one (ENF-3).
    """

    def __init__(self, *, port: int, secret: str, ended: Callable[[float], bool] = lambda timeout_secs: False) -> None:
        """Connect lazily. `ended` waits that long for the JVM's end and says whether it came."""
        self._ended = ended
        self._gateway = ClientServer(
            java_parameters=JavaParameters(port=port, auth_token=secret, auto_convert=True),
            # Nothing in the JVM calls Python back, so no callback server listens.
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        # PySpark's own converters look at each argument of each call, and import its test tools (and pandas) to do so.
        self._gateway._gateway_client.converters = [ListConverter(), MapConverter()]
        self._closed = False

    @cached_property
    def _jvm(self) -> JVMView:
        for name in _SHORT_NAMES:
            java_import(self._gateway.jvm, name)
        return self._gateway.jvm

    @cached_property
    def root(self) -> EngineSession:
        """The session that all others descend from; no statement runs in it (ISO-2)."""
        sessions = getattr(self._jvm, "org.apache.spark.sql.classic.SparkSession")
        return EngineSession(self, sessions.getDefaultSession().get())

    @cached_property
    def _jsc(self) -> Any:
        context = self.root._jsparkSession.sparkContext()
        return getattr(self._jvm, "org.apache.spark.api.java.JavaSparkContext")(context)

    @cached_property
    def _conf(self) -> SparkConf:
        return SparkConf(_jconf=self._jsc.getConf())

    @property
    def master(self) -> str:
        return str(self._conf.get("spark.master"))

    @property
    def appName(self) -> str:
        return str(self._conf.get("spark.app.name"))

    @cached_property
    def bridge(self) -> Any:
        """The Java package `sqe.bridge`."""
        return self._jvm.sqe.bridge

    @cached_property
    def statements(self) -> Statements:
        return Statements(self.bridge)

    @property
    def alive(self) -> bool:
        """False when the JVM has ended or the context was closed, and from then on."""
        return not self._closed and not self._ended(0)

    def vanished(self, error: BaseException) -> bool:
        """Whether an error of py4j means that the JVM has ended.

        py4j is not clear about that: it also says that a package does not exist, when it could not ask.
        """
        if isinstance(error, Py4JJavaError):
            return False
        return isinstance(error, Py4JNetworkError | OSError) or self._closed or self._ended(_END_SECS)

    def close(self) -> None:
        """Drop every connection; the JVM goes on."""
        self._closed = True
        with suppress(Py4JNetworkError, OSError):
            self._gateway.close()


class Statements:
    """`sqe.bridge.exec.Exec`, its methods looked up once: each costs a round trip. Results are fetched at `address`."""

    def __init__(self, bridge: Any) -> None:
        self.address: str = bridge.stream.StreamHub.open(_BUFFER_BYTES, _SPILL_BYTES, _DISK_RESERVE_BYTES)
        statements = bridge.exec.Exec
        self.execute, self.cancel, self.progress = statements.execute, statements.cancel, statements.progress


class EngineSession(SparkSession):  # type: ignore[misc]  # PySpark is not type-checked
    """PySpark's session.

    Its own constructor makes the first session the active one of its thread, and turns the errors of every py4j call of
    this process into exceptions that carry Spark's text (ERR-1), by a dozen calls for each.
    """

    def __init__(self, context: EngineContext, session: Any) -> None:
        self._sc, self._jsparkSession = context, session

    @property
    def _jvm(self) -> Any:
        return self._sc._jvm

    @property
    def _jsc(self) -> Any:
        return self._sc._jsc
