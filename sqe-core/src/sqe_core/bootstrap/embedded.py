"""SQE in this process, for one person: what `sqe-cli` and the tests talk to."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from sqe_core.bootstrap.core import DEFAULT_SCHEMA, Sqe, build
from sqe_core.bootstrap.installed import installed_catalog
from sqe_core.catalog.attaching import AttachRules
from sqe_core.catalog.backends import EMBEDDED_FILE, SqliteBackend, found_file
from sqe_core.catalog.registry import Mount
from sqe_core.engine.port import Engine, EngineState, Progress
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.query.run.admission import QueryLimits
from sqe_core.query.run.result import StatementResult
from sqe_core.query.service import Parameters
from sqe_core.spi.errors import ConfigError, ObjectNotFoundError, SqeError
from sqe_core.spi.identity import Identity
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import ScriptStatement

EMBEDDED_CATALOG = "iceberg"

# A person at their own machine: the file permissions of the warehouse are the only login there is.
OWNER = Identity(issuer="sqe:embedded", subject="owner", username="owner", provider="embedded", personal=False)


def _open_folder(folder: Path, file: str) -> SqliteBackend:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError((f"the warehouse {folder} cannot be made: {error.strerror}",)) from error
    return SqliteBackend.at(folder, file)


class EmbeddedSqe:
    """One session on an embedded warehouse: what `sqe-cli` and the tests talk to."""

    @classmethod
    def open(
        cls,
        warehouse: Path,
        *,
        catalogs: Mapping[str, Path] | None = None,
        in_memory: bool = False,
        engine_options: EngineOptions | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Open a warehouse in this process, and create it when there is none. Returns while the engine starts.

        Args:
            warehouse: the folder of the warehouse.
            catalogs: further SQLite catalogs, by the name they get.
            in_memory: use a folder that goes away at the end instead of `warehouse`.
            engine_options: what the engine may use.
            engine: an engine that others use too; it is not stopped with this warehouse.
        """
        temporary = Path(tempfile.mkdtemp(prefix="sqe-memory-")) if in_memory else None
        folder = temporary or warehouse.expanduser().absolute()
        options = engine_options or EngineOptions()
        try:
            mounts = [Mount(name=EMBEDDED_CATALOG, backend=_open_folder(folder, EMBEDDED_FILE))]
            for name, path in (catalogs or {}).items():
                path = path.expanduser().absolute()
                # A new folder looks like the main one, so that --warehouse opens it as well.
                mounts.append(Mount(name=name, backend=_open_folder(path, found_file(path, fresh=EMBEDDED_FILE))))
            sqe = build(
                engine=engine or SparkEngine(options),
                mounts=mounts,
                enforcers=[AllowAllEnforcer()],
                admins=lambda identity: True,
                attach=AttachRules(factory_of=installed_catalog, engine_jars=frozenset(options.jar_groups)),
                limits=QueryLimits(
                    timeout_secs=0, max_result_rows=0, max_result_bytes=0, max_sql_bytes=16 * 1024 * 1024
                ),
            )
        except BaseException:
            if temporary:
                shutil.rmtree(temporary, ignore_errors=True)
            raise
        sqe.engine.start()
        return cls(sqe, temporary=temporary, owns_engine=engine is None)

    def __init__(self, sqe: Sqe, *, temporary: Path | None = None, owns_engine: bool = True) -> None:
        self.sqe = sqe
        self._owns_engine = owns_engine
        self.session = sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="embedded")
        self._temporary = temporary
        self._reader = Reader()
        self._first = threading.Lock()
        self._schema_checked = False

    @property
    def current(self) -> tuple[str, str]:
        return self.session.catalog, ".".join(self.session.schema)

    def execute(self, sql: str, parameters: Parameters = ()) -> StatementResult:
        self._ensure_default_schema()
        return self.sqe.service.execute(self.session, sql, parameters=parameters)

    def _ensure_default_schema(self) -> None:
        """A new warehouse has the schema `default`, as people expect of a database they just made."""
        with self._first:
            if self._schema_checked:
                return
            mount = self.session.catalogs.find(EMBEDDED_CATALOG)
            assert mount is not None
            quick = mount.backend.quick_metadata(OWNER)
            if quick is None or DEFAULT_SCHEMA not in quick.list_namespaces():
                try:
                    metadata = self.session.metadata(mount)
                    if DEFAULT_SCHEMA not in metadata.list_namespaces():
                        metadata.create_namespace(DEFAULT_SCHEMA, {})
                except ObjectNotFoundError:
                    raise
                except SqeError:
                    # Another process made it at the same moment.
                    if DEFAULT_SCHEMA not in self.session.metadata(mount).list_namespaces():
                        raise
            self._schema_checked = True

    def cancel(self) -> None:
        """End the running statement. From any thread."""
        self.sqe.service.cancel(self.session)

    def progress(self) -> Progress | None:
        return self.sqe.service.progress(self.session)

    def engine_state(self) -> EngineState:
        return self.sqe.engine.state

    def on_engine_progress(self, listener: Callable[[str, float | None], None]) -> None:
        self.sqe.engine.on_progress(listener)

    def split(self, script: str) -> Sequence[ScriptStatement]:
        return self._reader.split(script)

    def close(self) -> None:
        """End the session and the engine. Idempotent."""
        self.sqe.service.close_session(self.session)
        if self._owns_engine:
            self.sqe.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)


open_embedded = EmbeddedSqe.open
