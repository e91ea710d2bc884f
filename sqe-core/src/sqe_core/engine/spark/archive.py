"""The archive of loaded classes (AppCDS): a start takes 2 s instead of 4.5 s, the first statement 0.8 s instead of 2 s.

A start with an archive maps the classes that a training run loaded, parsed and verified, into memory. An archive fits
one Java, one class path and one memory layout, so its name is a fingerprint of those; one that does not fit is ignored
by the JVM. Making one takes about a minute of processor time. So the first start runs without; after it, or a minute
into it, a detached process of the lowest priority makes the archive for the next. `prepare` makes it at once: an image
build, a benchmark or `sqe engine prepare` wants that. Whatever goes wrong with it costs speed, never a start.

It is a static archive and not a dynamic one on top of a base: it starts faster (2.0 s against 2.4 s), and the bundled
Java has no base archive, so either way there is one dump to make.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sqe_core.engine.spark.cache import check_private, drafted, forget_old, make_private_folder, try_lock
from sqe_core.engine.spark.java import run_java
from sqe_core.engine.spark.launcher import EngineProcess, LaunchPlan
from sqe_core.engine.spark.options import ClassArchive, EngineOptions, Report
from sqe_core.engine.spark.preparation import prepare_launch
from sqe_core.spi.catalog import Jar
from sqe_core.spi.errors import SqeError, StartupError

if TYPE_CHECKING:
    from sqe_core.engine.spark.context import EngineContext

_log = logging.getLogger(__name__)

_TRAINING_VERSION = 2  # another training makes other archives
_KEPT_ARCHIVES = 2  # 200 MB each
_DUMP_TIMEOUT_SECS = 600
_DELAY_SECS = 60.0
_RETRY_AFTER_SECS = 7 * 24 * 3600
_COMPRESSED_POINTERS_LIMIT = 32 << 30

_TRAINING_ALIAS = "_sqe_c_training"
# What a session does: metadata, writes in each mode, scans, shuffles, expressions of each family.
_TRAINING_STATEMENTS = (
    "SELECT 1",
    "CREATE TABLE {table} (id BIGINT, name STRING, price DECIMAL(10, 2), day DATE, at TIMESTAMP) USING iceberg "
    "PARTITIONED BY (days(at))",
    "INSERT INTO {table} VALUES (1, 'a', 1.50, DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:00'), "
    "(2, 'b', 2.50, DATE '2024-01-02', TIMESTAMP '2024-01-02 10:00:00')",
    "SELECT * FROM {table} WHERE id = 1",
    "SELECT name, count(*) AS n, sum(price) AS total, avg(price) AS mean FROM {table} WHERE day >= DATE '2024-01-01' "
    "GROUP BY name ORDER BY total DESC LIMIT 10",
    "SELECT a.id, b.name, row_number() OVER (PARTITION BY a.name ORDER BY b.at) AS r FROM {table} a "
    "LEFT JOIN {table} b ON a.id = b.id WHERE a.name LIKE 'a%' OR b.price BETWEEN 1 AND 2",
    "WITH t AS (SELECT id, upper(name) AS name, date_trunc('month', at) AS month FROM {table}) "
    "SELECT month, count(DISTINCT name) FROM t WHERE id IN (SELECT id FROM {table}) GROUP BY month "
    "UNION ALL SELECT current_timestamp(), 0",
    "SELECT explode(sequence(1, 3)) AS n, map('a', 1)['a'] AS m, array(1, 2)[0] AS e, named_struct('x', 1).x AS s, "
    "transform(array(1, 2), x -> x + 1) AS l, CASE WHEN rand() < 2 THEN 'y' ELSE 'n' END AS c",
    "UPDATE {table} SET price = price + 1 WHERE id = 2",
    "DELETE FROM {table} WHERE id = 1",
    "MERGE INTO {table} t USING (SELECT 3 AS id, 'c' AS name) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)",
    "ALTER TABLE {table} ADD COLUMN note STRING",
    "SELECT * FROM {table}.snapshots",
    "DROP TABLE {table}",
)


def archive_path(plan: LaunchPlan) -> Path:
    """Return where the archive for this launch lies, or would lie."""
    digest = hashlib.sha256()
    compressed = plan.options.memory_bytes < _COMPRESSED_POINTERS_LIMIT
    flags = [flag for flag in plan.flags() if not flag.startswith("-Xmx")]
    for part in (_TRAINING_VERSION, plan.java.version, compressed, flags):
        digest.update(f"{part}\0".encode())
    for path in (plan.java.executable.resolve(), *plan.class_path):
        found = path.stat()
        digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return plan.options.cache_dir / "engine" / f"classes-{digest.hexdigest()[:20]}.jsa"


def archive_flags(plan: LaunchPlan) -> list[str]:
    """Return the flags that use the archive, none when there is none to use."""
    if plan.options.class_archive is ClassArchive.OFF:
        return []
    try:
        path = archive_path(plan)
        if not path.exists():
            return []
        check_private(path.parent)
        with contextlib.suppress(OSError):
            os.utime(path)  # the one used last is forgotten last
    except (OSError, SqeError) as error:
        _log.warning("the class archive is not used: %s", error)
        return []
    # `auto` is also the default; it starts without the archive when that does not fit.
    return ["-Xshare:auto", f"-XX:SharedArchiveFile={path}"]


def forget_archive(plan: LaunchPlan) -> None:
    """Remove the archive for this launch, and do not make it again soon."""
    with contextlib.suppress(OSError):
        path = archive_path(plan)
        _failure_note(path).write_text("the engine did not start with it\n")
        path.unlink(missing_ok=True)


def prepare(options: EngineOptions, report: Report = lambda step, share: None) -> Path:
    """Fetch, compile and archive everything now, so that the next start is a fast one; return the archive.

    Raises:
        StartupError: something is missing, or no archive can be made with this Java.
    """
    plan = prepare_launch(options, report)
    path = archive_path(plan)
    if not path.exists():
        report("Archiving the engine's classes (about a minute)", None)
        make_archive(plan)
    return path


def make_archive(plan: LaunchPlan) -> None:
    """Train, dump and put the archive in its place. Returns at once when another process is doing that."""
    path = archive_path(plan)
    make_private_folder(path.parent)
    lock = try_lock(path.with_suffix(".lock"))
    if lock is None:
        return
    try:
        if path.exists():
            return
        with tempfile.TemporaryDirectory(prefix="sqe-archive-", dir=plan.options.local_dir) as scratch:
            class_list = Path(scratch) / "classes.lst"
            _train(plan, class_list, Path(scratch))
            with drafted(path) as draft:
                _dump(plan, class_list, draft)
        forget_old(path.parent, "classes-*.jsa", kept=_KEPT_ARCHIVES)
        _failure_note(path).unlink(missing_ok=True)
    except Exception as error:
        with contextlib.suppress(OSError):
            _failure_note(path).write_text(f"{error}\n")
        raise
    finally:
        os.close(lock)


def _train(plan: LaunchPlan, class_list: Path, scratch: Path) -> None:
    """Run what sessions run, in a JVM that writes down every class it loads."""
    # These import py4j, which a start that only asks for the archive's name does not need.
    from sqe_core.engine.spark.context import EngineContext

    options = replace(plan.options, master="local[2]", settings={}, class_archive=ClassArchive.OFF)
    process = EngineProcess(
        replace(plan, options=options), extra_flags=["-Xshare:auto", f"-XX:DumpLoadedClassList={class_list}"]
    )
    try:
        deadline = time.monotonic() + 4 * plan.options.start_timeout_secs
        process.wait_gateway(deadline)
        context = EngineContext(port=process.port, secret=process.secret)
        process.wait_session(deadline)
        try:
            _run_training(context, scratch)
            _load_bridge(context, plan.class_path[0])
        finally:
            context.close()
    finally:
        process.stop(orderly=True)  # the list of classes is complete only then


@dataclass(frozen=True, slots=True)
class _TrainingEngine:
    """What a session asks of its engine."""

    context: EngineContext
    process_alive: bool = True


def _run_training(context: EngineContext, scratch: Path) -> None:
    """Run the statements as they are run for users: parsed, analysed and executed by the bridge, read as a stream."""
    from sqe_core.engine.spark.session import SparkEngineSession

    session = SparkEngineSession(context, cast(Any, _TrainingEngine(context)))
    properties = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{scratch}/catalog.db",
        "warehouse": (scratch / "warehouse").as_uri(),
        "jdbc.schema-version": "V1",
    }
    session.mount(_TRAINING_ALIAS, properties)
    session.catalog(_TRAINING_ALIAS).create_namespace(("s",), {})
    for number, statement in enumerate(_TRAINING_STATEMENTS):
        tag = f"training-{number}"
        try:
            plan = session.parse(statement.format(table=f"{_TRAINING_ALIAS}.s.t"))
            for _ in session.execute(session.analyse(plan, tag=tag), tag=tag):
                pass
        except Exception as error:  # noqa: BLE001 - one statement less in the archive
            _log.warning("a training statement failed: %s", error)
    session.close()


def _load_bridge(context: EngineContext, jar: Path) -> None:
    """Load those classes of the bridge that no training statement needed."""
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if name.startswith("sqe/") and name.endswith(".class")]
    for name in names:
        context._jvm.java.lang.Class.forName(name.removesuffix(".class").replace("/", "."))


def _dump(plan: LaunchPlan, class_list: Path, target: Path) -> None:
    compressed = plan.options.memory_bytes < _COMPRESSED_POINTERS_LIMIT
    command = [
        str(plan.java.executable),
        "-Xshare:dump",
        f"-XX:SharedClassListFile={class_list}",
        f"-XX:SharedArchiveFile={target}",
        f"-XX:{'+' if compressed else '-'}UseCompressedOops",
        # Only this collector can put objects into the archive; every collector can use them.
        "-XX:+UseG1GC",
        "-Xmx1g",
        "-XX:-UsePerfData",
        *("-cp", os.pathsep.join(map(str, plan.class_path))),
    ]
    result = run_java(command, _DUMP_TIMEOUT_SECS)
    if result.returncode != 0 or not target.stat().st_size:
        raise StartupError(f"Java made no class archive (exit code {result.returncode}): {result.stdout[-1000:]}")


def _failure_note(path: Path) -> Path:
    return path.with_suffix(".failed")


class ArchiveMaker:
    """Starts the detached process that makes an archive, once for each run of the engine."""

    def __init__(self, plan: LaunchPlan) -> None:
        self._plan = plan
        self._once = threading.Lock()
        self._timer: threading.Timer | None = None

    def schedule(self) -> None:
        """Make it when the first statements are through, should the engine still run then."""
        if self._plan.options.class_archive is not ClassArchive.MAKE:
            return
        self._timer = threading.Timer(_DELAY_SECS, self.make_now)
        self._timer.daemon = True
        self._timer.start()

    def make_now(self) -> None:
        """Start the process; does nothing the second time, or when one failed within the last days."""
        if self._plan.options.class_archive is not ClassArchive.MAKE or not self._once.acquire(blocking=False):
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            path = archive_path(self._plan)
            note = _failure_note(path)
            if path.exists() or (note.exists() and time.time() - note.stat().st_mtime < _RETRY_AFTER_SECS):
                return
            process = subprocess.Popen(
                [sys.executable, "-m", "sqe_core.engine.spark.archive"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert process.stdin is not None
            with process.stdin:
                process.stdin.write(json.dumps(_as_json(self._plan.options)).encode())
            # It may outlive this process; while it does not, somebody has to collect its exit code.
            threading.Thread(target=process.wait, name="sqe-archive-wait", daemon=True).start()
        except OSError as error:
            _log.info("no class archive is made: %s", error)


def _as_json(options: EngineOptions) -> dict[str, Any]:
    """The options that an archive depends on; no settings, no secrets."""
    return {
        "memory_bytes": options.memory_bytes,
        "java_home": str(options.java_home) if options.java_home else None,
        "java_options": list(options.java_options),
        "jar_dir": str(options.jar_dir) if options.jar_dir else None,
        "jar_groups": sorted(options.jar_groups),
        "plugin_jars": [{**asdict(jar), "path": str(jar.path) if jar.path else None} for jar in options.plugin_jars],
        "cache_dir": str(options.cache_dir),
        "local_dir": str(options.local_dir) if options.local_dir else None,
    }


def _from_json(values: Mapping[str, Any]) -> EngineOptions:
    def path(name: str) -> Path | None:
        return Path(values[name]) if values[name] else None

    return EngineOptions(
        memory_bytes=values["memory_bytes"],
        java_home=path("java_home"),
        java_options=tuple(values["java_options"]),
        jar_dir=path("jar_dir"),
        jar_groups=frozenset(values["jar_groups"]),
        plugin_jars=tuple(
            Jar(**{**jar, "path": Path(jar["path"]) if jar["path"] else None}) for jar in values["plugin_jars"]
        ),
        cache_dir=Path(values["cache_dir"]),
        local_dir=path("local_dir"),
    )


def main() -> int:
    """Make the archive for the options on standard input, below everything else that runs here."""
    options = _from_json(json.load(sys.stdin))
    os.nice(19)
    if shutil.disk_usage(options.cache_dir).free < 1 << 30:
        return 1
    try:
        prepare(options)
    except SqeError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
