"""The Spark engine: starts the JVM, watches it and opens sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from sqe_core.engine.port import Engine, EngineSession, EngineState
from sqe_core.engine.spark.compiler import bridge_jar, spark_home
from sqe_core.engine.spark.conf import PINNED_SESSION_SETTINGS, STATIC_SETTINGS
from sqe_core.engine.spark.gateway import Gateway
from sqe_core.engine.spark.java import Java, find_java
from sqe_core.engine.spark.jars import locate_jars
from sqe_core.engine.spark.launcher import EngineProcess
from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.errors import InternalError, ResourcesError

__all__ = ["EngineOptions", "SparkEngine"]


def prepare_class_path(options: EngineOptions, java: Java) -> list[Path]:
    """Return Spark's jars, ours and, last, the compiled bridge."""
    jars = [*sorted((spark_home() / "jars").glob("*.jar")), *locate_jars(options)]
    return [*jars, bridge_jar(java, jars, options.cache_dir / "engine")]


class SparkEngine(Engine):
    """The engine of one process, on one JVM that this process starts and ends."""

    def __init__(self, options: EngineOptions) -> None:
        self.options = options
        self._state = EngineState.STOPPED
        self._failure: Exception | None = None
        self._changed = threading.Condition()
        self._listeners: list[Callable[[str, float | None], None]] = []
        self._process: EngineProcess | None = None
        self._gateway: Gateway | None = None

    @property
    def state(self) -> EngineState:
        return self._state

    @property
    def failure(self) -> Exception | None:
        return self._failure

    @property
    def process_alive(self) -> bool:
        """Whether the JVM runs."""
        return self._process is not None and self._process.alive

    @property
    def gateway(self) -> Gateway:
        """The connection to the running JVM."""
        if self._gateway is None:
            raise InternalError("The engine is not running")
        return self._gateway

    def start(self) -> None:
        with self._changed:
            if self._state is not EngineState.STOPPED:
                return
            self._state = EngineState.STARTING
        threading.Thread(target=self._start, name="sqe-engine-start", daemon=True).start()

    def _start(self) -> None:
        try:
            java = find_java(self.options.java_home)
            class_path = prepare_class_path(self.options, java)
            self._process = EngineProcess(
                java=java,
                spark_home=spark_home(),
                class_path=class_path,
                settings={**self.options.settings, **STATIC_SETTINGS, **PINNED_SESSION_SETTINGS},
                memory_bytes=self.options.memory_bytes,
                master=self.options.master,
                timeout_secs=self.options.start_timeout_secs,
            )
            self._gateway = Gateway(port=self._process.port, secret=self._process.secret)
            self._gateway.jvm.org.apache.spark.sql.SparkSession.builder().getOrCreate()
        except Exception as error:  # reported by wait_ready
            self._failure = error
            self._enter(EngineState.FAILED)
        else:
            self._enter(EngineState.READY)

    def _enter(self, state: EngineState) -> None:
        with self._changed:
            self._state = state
            self._changed.notify_all()

    def wait_ready(self, timeout_secs: float | None = None) -> None:
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._state in (EngineState.READY, EngineState.FAILED, EngineState.STOPPED), timeout_secs
            )
        if not done:
            raise ResourcesError("The engine is still starting")
        if self._state is EngineState.STOPPED:
            raise InternalError("The engine was not started")
        if self._failure is not None:
            raise self._failure

    def on_progress(self, listener: Callable[[str, float | None], None]) -> None:
        self._listeners.append(listener)

    def open_session(self) -> EngineSession:
        from sqe_core.engine.spark.session import SparkEngineSession

        self.wait_ready()
        session: EngineSession = SparkEngineSession(self.gateway, self)
        return session

    def stop(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
            self._gateway = None
        if self._process is not None:
            self._process.stop()
            self._process = None
        self._enter(EngineState.STOPPED)
