"""The engine's JVM for real: how it comes, how it goes, what it inherits and what it leaves behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import py4j.java_gateway
import pytest
from pyspark import SparkContext
from testbed.clocks import wait_for
from testbed.making import each_ended

from sqe_core.engine.port import EngineState
from sqe_core.engine.spark.conf import PINNED_SESSION_SETTINGS, engine_settings
from sqe_core.engine.spark.context import EngineContext
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.engine.spark.failures import engine_errors
from sqe_core.engine.spark.jars import fetch_jars
from sqe_core.engine.spark.java import find_java
from sqe_core.engine.spark.options import default_cache_dir
from sqe_core.engine.spark.preparation import spark_home
from sqe_core.spi.errors import EngineLostError, StartupError

# Starts an engine as a program of its own, says how to find it, and waits.
_PARENT = """
import sys, time
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
engine = SparkEngine(EngineOptions(local_dir=__import__("pathlib").Path(sys.argv[1]), memory_bytes=1 << 29))
engine.start()
engine.wait_ready()
{before}
print(engine.pid, flush=True)
time.sleep(600)
"""

# Becomes a user id that has no name, and runs a statement. What it needs is imported before: the new user may not read
# where this Python lies.
_NOBODY = """
import encodings.idna, os, pathlib, sys, tempfile
from sqe_core.engine.spark import context, engine
uid, home = int(sys.argv[1]), pathlib.Path(sys.argv[2])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
os.environ["HOME"] = str(home)
options = engine.EngineOptions(cache_dir=home / "cache", jar_dir=home, local_dir=home / "run", memory_bytes=1 << 29)
started = engine.SparkEngine(options)
started.start()
try:
    started.wait_ready(120)
    print(started.context.root._jsparkSession.range(4).count())
finally:
    started.stop()
"""


def one(engine: SparkEngine) -> int:
    """Ask Spark for a number, past every layer of ours."""
    with engine_errors(engine.context):
        return int(root(engine).sql("SELECT 1").collectAsList().get(0).getInt(0))


def root(engine: SparkEngine) -> Any:
    return engine.context.root._jsparkSession


def ask_until_lost(context: EngineContext) -> None:
    """Calls into a JVM that goes away end in one kind of error, whenever they come."""

    def ask() -> None:
        with engine_errors(context):
            while True:
                context._jvm.java.lang.System.currentTimeMillis()

    for _ in range(2):
        with pytest.raises(EngineLostError):
            ask()


@pytest.fixture(scope="module")
def spill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spill")


@pytest.fixture(scope="module")
def own_engine(spill: Path) -> Iterator[SparkEngine]:
    """An engine that these tests may hurt; its JVM starts anew when one of them kills it."""
    os.environ["SQE_TEST_SECRET"] = "s3cret-of-the-environment"
    engine = SparkEngine(EngineOptions(memory_bytes=512 << 20, local_dir=spill, restart_limit=20))
    engine.start()
    try:
        engine.wait_ready(300)
        yield engine
    finally:
        del os.environ["SQE_TEST_SECRET"]
        engine.stop()


@pytest.fixture
def hurt(own_engine: SparkEngine) -> SparkEngine:
    own_engine.wait_ready(120)
    return own_engine


@pytest.mark.rule("CONF-1")
def test_spark_knows_every_setting_that_is_fixed(hurt: SparkEngine) -> None:
    find = hurt.context._jvm.org.apache.spark.internal.config.ConfigEntry.findEntry
    settings = engine_settings(EngineOptions(), Path("/run"), [])
    # Spark takes any name without a word, so a misspelt one would protect nothing.
    unknown = {key for key in settings if find(key) is None}
    # Our own, Iceberg's, and those that Spark reads without a definition.
    assert unknown == {
        "spark.sqe.watchdog.millis",
        "spark.sqe.watchdog.slots",
        "spark.sql.catalog._sqe_none",
        "spark.sql.iceberg.data-planning-mode",
        "spark.sql.iceberg.delete-planning-mode",
        "spark.app.name",
        "spark.local.dir",
        "spark.master",
    }


@pytest.mark.rule("CONF-1")
def test_what_is_fixed_is_set(hurt: SparkEngine) -> None:
    conf = root(hurt).newSession().conf()
    assert {key: conf.get(key) for key in PINNED_SESSION_SETTINGS} == dict(PINNED_SESSION_SETTINGS)
    assert conf.get("spark.sql.catalogImplementation") == "in-memory"
    assert conf.get("spark.sql.warehouse.dir") == f"file:{hurt.run_dir}/warehouse"


@pytest.mark.rule("ISO-10", "ISO-11")
def test_it_listens_on_loopback_only(hurt: SparkEngine) -> None:
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for connection in psutil.Process(hurt.pid).net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


@pytest.mark.rule("ISO-11")
def test_pyspark_opens_nothing_in_this_process(hurt: SparkEngine) -> None:
    def held() -> tuple[object, ...]:
        connections = psutil.Process().net_connections(kind="all")
        listening = [connection.laddr for connection in connections if connection.status == psutil.CONN_LISTEN]
        path, handler, environment = list(sys.path), signal.getsignal(signal.SIGINT), dict(os.environ)
        return listening, path, handler, environment, py4j.java_gateway.get_return_value, SparkContext._gateway

    assert hurt._process is not None
    before = held()
    context = EngineContext(port=hurt._process.port, secret=hurt._process.secret)
    try:
        spark = context.root.newSession()
        assert spark.range(3).count() == 3
        assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
        assert repr(spark.sparkContext) == "<SparkContext master=local[*] appName=sqe>"
        assert spark.conf.get("spark.sql.defaultCatalog") == "_sqe_none"
        assert held() == before
        assert "pyspark.testing" not in sys.modules
    finally:
        context.close()


@pytest.mark.rule("ISO-12")
def test_it_has_no_secret_where_it_can_be_read(hurt: SparkEngine) -> None:
    process = psutil.Process(hurt.pid)
    secret = hurt._process.secret if hurt._process is not None else ""
    assert len(secret) >= 32
    shown = f"{process.cmdline()} {process.environ()}"
    assert "s3cret-of-the-environment" not in shown
    assert secret not in shown
    assert set(process.environ()) <= {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "KRB5_CONFIG", "KRB5CCNAME"),
        *("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SCALA_VERSION", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"),
    }
    for path in hurt.run_dir.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()


@pytest.mark.rule("OBS-2")
def test_the_log_has_the_place_of_an_error_but_not_its_text(hurt: SparkEngine) -> None:
    logger = hurt.context._jvm.org.slf4j.LoggerFactory.getLogger("sqe.test")
    jvm = hurt.context._jvm
    inner = jvm.java.lang.IllegalStateException("inner row value 4711\nsecond line 4711")
    logger.error("a message", jvm.java.lang.RuntimeException("outer row value 4711", inner))
    assert hurt._process is not None
    log = hurt._process.log_file
    wait_for(lambda: "Caused by" in log.read_text())
    text = log.read_text()
    assert "4711" not in text
    assert "a message" in text
    assert "java.lang.RuntimeException" in text
    assert "Caused by: java.lang.IllegalStateException" in text
    assert "\tat " in text
    assert log.parent == default_cache_dir() / "logs"
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        root(hurt).sql("SELECT CAST(concat('row', id, 'value4711') AS INT) FROM range(2)").collectAsList()
    assert "value4711" not in log.read_text()


@pytest.mark.rule("ISO-3")
def test_there_is_nowhere_to_put_a_table_but_in_a_mounted_catalog(hurt: SparkEngine) -> None:
    for name in ("spark_catalog.default.t", "t"):
        with pytest.raises(Exception, match="no tables here"):
            root(hurt).sql(f"CREATE TABLE {name} (a INT) USING parquet").collectAsList()
    assert not list((hurt.run_dir / "warehouse").iterdir())


@pytest.mark.rule("LIM-9")
def test_a_task_without_memory_does_not_end_the_jvm(hurt: SparkEngine) -> None:
    pid = hurt.pid
    for _ in range(2):
        with pytest.raises(Exception, match="OutOfMemoryError"):
            root(hurt).sql(
                "SELECT max(length(array_join(transform(sequence(1, 200), i -> repeat(string(id + i), 2000000)), '')))"
                " FROM range(4)"
            ).collectAsList()
    assert one(hurt) == 1
    assert hurt.pid == pid


@pytest.mark.rule("LIM-9")
def test_a_killed_jvm_is_replaced(hurt: SparkEngine) -> None:
    pid, context, run_dir = hurt.pid, hurt.context, hurt.run_dir
    session = hurt.open_session()
    told: list[EngineState] = []
    hurt.on_lost(lambda: told.append(hurt.state))
    assert pid is not None
    assert session.alive
    os.kill(pid, signal.SIGKILL)
    ask_until_lost(context)
    wait_for(lambda: bool(told))
    assert (session.alive, run_dir.exists()) == (False, False)
    hurt.wait_ready(120)
    assert told == [EngineState.LOST]
    assert hurt.pid != pid
    assert one(hurt) == 1
    assert hurt.open_session().alive


@pytest.mark.rule("LIM-9")
def test_a_context_that_ended_by_itself_counts_as_lost(hurt: SparkEngine) -> None:
    pid = hurt.pid
    context = hurt.context
    with suppress(EngineLostError), engine_errors(context):
        root(hurt).sparkContext().stop()
    ask_until_lost(context)
    wait_for(lambda: hurt.pid != pid)
    hurt.wait_ready(120)
    assert one(hurt) == 1


class Parent:
    """A program that runs an engine."""

    def __init__(self, spill: Path, before: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PARENT.format(before=before), str(spill)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.engine = psutil.Process(int(self.process.stdout.readline()))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Callable[..., Parent]]:
    yield from each_ended(lambda before="": Parent(tmp_path, before), lambda each: each.end())


@pytest.mark.parametrize(
    "before",
    ["", "import os; os.fork() == 0 and (os.close(1), time.sleep(40), os._exit(0))"],
    ids=["alone", "with a child that holds the pipe"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ctrl_c_does_not_reach_the_jvm_and_it_goes_when_its_parent_is_killed(
    parent: Callable[..., Parent], tmp_path: Path, before: str
) -> None:
    started = parent(f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {before}")
    # What a terminal does: all of the parent's group get it.
    os.killpg(os.getpgid(started.process.pid), signal.SIGINT)
    with pytest.raises(psutil.TimeoutExpired):
        started.engine.wait(1)
    assert [path.name for path in tmp_path.iterdir()] != []
    os.kill(started.process.pid, signal.SIGKILL)
    started.engine.wait(20)
    # It takes its folder with it.
    wait_for(lambda: not list(tmp_path.iterdir()), 10)


def test_a_java_that_is_too_old_or_too_new_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(find_java(None).executable)
    (tmp_path / "release").write_text('JAVA_VERSION="25.0.1"\n')
    engine = SparkEngine(EngineOptions(java_home=tmp_path))
    engine.start()
    with pytest.raises(StartupError, match=r"Java 25\.0\.1, but 17 or 21 is needed"):
        engine.wait_ready(60)


@pytest.mark.rule("ISO-12")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_user_without_a_name_can_run_it() -> None:
    """As a container with an arbitrary user id does."""
    java = find_java(None)
    readable = all(folder.stat().st_mode & 0o005 == 0o005 for folder in java.executable.resolve().parents)
    if not readable:
        pytest.skip(f"other users cannot run {java.executable}")
    nobody = 4_242_424
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for jar in fetch_jars(EngineOptions(), sorted((spark_home() / "jars").glob("*.jar"))):
            shutil.copy(jar, home)
        for path in (home, *home.iterdir()):
            os.chown(path, nobody, nobody)
        answer = subprocess.run(
            [sys.executable, "-c", _NOBODY, str(nobody), str(home)], capture_output=True, text=True, check=False
        )
    assert answer.stdout.strip() == "4", answer.stderr


@pytest.mark.alone  # damages what others start with
@pytest.mark.timeout(900)
def test_the_first_session_makes_an_archive_of_classes_and_the_next_maps_it(
    class_archive: Path, tmp_path: Path
) -> None:
    assert class_archive.stat().st_size > 50 << 20
    cache = class_archive.parents[1]
    engine = SparkEngine(EngineOptions(cache_dir=cache, memory_bytes=512 << 20, local_dir=tmp_path))
    engine.start()
    try:
        engine.wait_ready(120)
        assert one(engine) == 1
        assert str(class_archive) in {mapped.path for mapped in psutil.Process(engine.pid).memory_maps()}
    finally:
        engine.stop()
    # An archive that is damaged is passed over; the file itself is what says which one it is.
    kept = class_archive.rename(class_archive.with_suffix(".kept"))
    with kept.open("rb") as whole:
        class_archive.write_bytes(whole.read(1 << 20))
    try:
        engine.start()
        engine.wait_ready(120)
        assert one(engine) == 1
    finally:
        engine.stop()
        kept.rename(class_archive)
