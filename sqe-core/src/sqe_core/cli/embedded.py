"""The embedded engine as the command line's backend."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqe_core.cli.arguments import Options
from sqe_core.cli.backend import Backend, Completions, TableKey

if TYPE_CHECKING:
    from sqe_core.engine.port import EngineState, Progress
    from sqe_core.engine.spark.options import EngineOptions
    from sqe_core.query.run.result import StatementResult
    from sqe_core.sql.statement import ScriptStatement


def open_embedded(options: Options) -> Backend:
    """Open the warehouse of the command line; the engine starts in the background."""
    # All of these bring Arrow, and some more; neither --help nor the prompt waits for them.
    from sqe_core.cli import logs
    from sqe_core.cli.embedded_backend import EmbeddedBackend

    engine = engine_options(options, os.environ)
    logs.configure(os.environ, engine.cache_dir / "logs" / "sqe-cli.log")
    return EmbeddedBackend.open(
        options.warehouse, catalogs=options.catalogs, in_memory=options.in_memory, engine_options=engine
    )


def engine_options(options: Options, environ: Mapping[str, str]) -> EngineOptions:
    """What the engine may use: `--memory-limit`, and the keys of `[engine]` that the environment sets."""
    from sqe_core import bootstrap
    from sqe_core.config.loading import load
    from sqe_core.config.values import parse_bytes

    wanted = load(None, environ={key: value for key, value in environ.items() if key.startswith("SQE_ENGINE__")})
    engine = bootstrap.engine_options(wanted.config.engine)
    if options.memory_limit is not None:
        engine = replace(engine, memory_bytes=parse_bytes(options.memory_limit))
    return engine


class LateBackend:
    """A backend that is opened in the background, so that the prompt need not wait for the imports.

    What only decorates the prompt answers at once; what does work waits, and raises what made the opening fail.
    """

    def __init__(self, open_backend: Callable[[], Backend]) -> None:
        self._open = open_backend
        self._opened = threading.Event()
        self._backend: Backend | None = None
        self._listeners: list[Callable[[str, float | None], None]] = []
        self._lock = threading.Lock()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sqe-open", daemon=True)

    def start(self) -> None:
        """Begin to open. Idempotent."""
        with self._lock:
            if self._thread.ident is None:
                self._thread.start()

    def _run(self) -> None:
        try:
            backend = self._open()
            with self._lock:
                self._backend = backend
                for listener in self._listeners:
                    backend.on_engine_progress(listener)
        except BaseException as error:  # noqa: BLE001 it is raised where the backend is used
            self.error = error
        self._opened.set()

    def _get(self) -> Backend:
        self.start()
        self._opened.wait()
        if self._backend is None:
            assert self.error is not None
            raise self.error
        return self._backend

    @property
    def state_name(self) -> str:
        """The name of the engine's state, without waiting for anything."""
        if not self._opened.is_set():
            return "starting"
        return self._backend.engine_state().value if self._backend is not None else "failed"

    @property
    def current(self) -> tuple[str, str]:
        """The session's catalog and schema; nothing while it is being opened."""
        return self._backend.current if self._backend is not None else ("", "")

    def execute(self, sql: str) -> StatementResult:
        return self._get().execute(sql)

    def cancel(self) -> None:
        if self._backend is not None:
            self._backend.cancel()

    def progress(self) -> Progress | None:
        return self._backend.progress() if self._backend is not None else None

    def engine_state(self) -> EngineState:
        return self._get().engine_state()

    def on_engine_progress(self, listener: Callable[[str, float | None], None]) -> None:
        with self._lock:
            self._listeners.append(listener)
            if self._backend is not None:
                self._backend.on_engine_progress(listener)

    def split(self, script: str) -> Sequence[ScriptStatement]:
        return self._get().split(script)

    def completions(self) -> Completions:
        return self._backend.completions() if self._backend is not None else Completions()

    def columns(self, table: TableKey) -> tuple[str, ...]:
        return self._backend.columns(table) if self._backend is not None else ()

    def close(self) -> None:
        """Close what was opened; something that is just being opened is waited for."""
        with self._lock:
            started = self._thread.ident is not None
        if started:
            self._opened.wait()
        if self._backend is not None:
            self._backend.close()
