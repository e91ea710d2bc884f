"""What a JVM is started with, and what is understood of its answers. A program of ours plays the JVM."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.making import each_ended

from sqe_core.engine.spark import launcher
from sqe_core.engine.spark.java import inspect_java
from sqe_core.engine.spark.launcher import EngineProcess, LaunchPlan, RunFolder, read_tail
from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.errors import StartupError


class Started:
    """A process and what the program saw of its start."""

    def __init__(self, plan: LaunchPlan, seen: Path) -> None:
        self.ended = threading.Event()
        self.process = EngineProcess(plan, ended=self.ended.set)
        self._seen = seen

    def ready(self) -> None:
        self.process.wait_gateway(time.monotonic() + 30)
        self.process.wait_session(time.monotonic() + 30)

    @property
    def arguments(self) -> list[str]:
        return list(eval(self._lines[0]))  # written by repr

    @property
    def environment(self) -> dict[str, str]:
        return dict(eval(self._lines[1]))

    @property
    def settings(self) -> str:
        return "\n".join(self._lines[2:])

    @property
    def _lines(self) -> list[str]:
        return self._seen.read_text().splitlines()


Start = Callable[..., Started]


@pytest.fixture
def java(fake_java: Callable[[str], Any]) -> Any:
    return fake_java("java").write()


@pytest.fixture
def start(java: Any, tmp_path: Path) -> Iterator[Start]:
    """Start the program with some options; everything ends with the test."""

    def launch(**given: Any) -> Started:
        options = EngineOptions(**{"cache_dir": tmp_path / "cache", "local_dir": tmp_path / "spill", **given})
        plan = LaunchPlan(
            java=inspect_java("test", java.home),
            spark_home=Path("/spark"),
            class_path=(Path("/jars/bridge.jar"), Path("/jars/spark.jar")),
            executor_jars=(Path("/jars/iceberg.jar"), Path("/jars/bridge.jar")),
            options=options,
        )
        return Started(plan, java.seen)

    yield from each_ended(launch, lambda each: each.process.stop(orderly=False))


def test_the_conversation_of_a_start(start: Start) -> None:
    started = start(memory_bytes=3 << 30, java_options=("-Dmine=1",))
    started.ready()
    assert started.process.port == 12345
    assert started.process.alive
    arguments = started.arguments
    assert "-Xmx3072m" in arguments
    assert "-Dmine=1" in arguments
    assert arguments[-3:] == ["-cp", f"/jars/bridge.jar{os.pathsep}/jars/spark.jar", "sqe.bridge.boot.Boot"]
    assert f"sqe.parent.pid={os.getpid()}" in started.settings
    assert f"sqe.gateway.secret={started.process.secret}" in started.settings
    # What the JVM prints by itself is kept, and is not taken for an answer.
    assert "OpenJDK warning: something" in started.process.log_file.read_text()


@pytest.mark.rule("ISO-12")
def test_nothing_secret_is_in_arguments_environment_or_files(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "AWS_SECRET_ACCESS_KEY",
        "SQE_AUTH__CLIENT_SECRET",
        "JAVA_TOOL_OPTIONS",
        "SPARK_CONF_DIR",
        "HADOOP_CONF_DIR",
    ):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("HTTPS_PROXY", "http://bob:s3cret@proxy.test:3129")
    monkeypatch.setenv("NO_PROXY", "localhost,.corp.test")
    started = start(master="spark://host:7077", auth_secret="s3cret")
    started.ready()
    written = "".join(path.read_text() for path in started.process.run_dir.rglob("*") if path.is_file())
    shown = f"{started.arguments} {started.environment} {written} {started.process.log_file.read_text()}"
    assert "s3cret" not in shown
    assert started.process.secret not in shown
    assert "spark.authenticate.secret=s3cret" in started.settings
    assert "-Dhttps.proxyHost=proxy.test" in started.arguments
    assert "-Dhttp.nonProxyHosts=localhost|127.*|[::1]|*.corp.test" in started.arguments


def test_settings_of_the_surroundings_do_not_reach_the_engine(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/elsewhere")
    started = start(environment={"AWS_REGION": "eu-west-1"})
    started.ready()
    environment = started.environment
    assert set(environment) <= {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "KRB5_CONFIG", "KRB5CCNAME"),
        *(
            "SPARK_HOME",
            "SPARK_CONF_DIR",
            "SPARK_SCALA_VERSION",
            "SPARK_LOCAL_IP",
            "SPARK_LOCAL_HOSTNAME",
            "AWS_REGION",
        ),
    }
    assert environment["SPARK_CONF_DIR"].startswith(str(started.process.run_dir))


def test_yarn_gets_its_configuration_and_goes_through_spark_submit(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    started = start(master="yarn")
    started.ready()
    assert started.environment["HADOOP_CONF_DIR"] == "/etc/hadoop"
    position = started.arguments.index("org.apache.spark.deploy.SparkSubmit")
    assert started.arguments[position + 3 :] == ["--class", "sqe.bridge.boot.Boot", "spark-internal"]


@pytest.mark.rule("ISO-11")
def test_the_run_folder_is_private_and_goes_with_the_process(start: Start, tmp_path: Path) -> None:
    started = start()
    started.ready()
    folder = started.process.run_dir
    assert folder.parent == tmp_path / "spill"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "warehouse").stat().st_mode & 0o222 == 0
    assert started.process.log_file.stat().st_mode & 0o777 == 0o600
    started.process.stop()
    assert not folder.exists()
    assert not started.process.alive
    started.process.stop()  # idempotent


def test_a_failure_that_is_reported_is_told(start: Start, java: Any) -> None:
    java.behave("fails")
    started = start()
    with pytest.raises(
        StartupError, match=r"ended while it started: java.lang.IllegalStateException: no luck"
    ) as caught:
        started.ready()
    assert str(started.process.log_file) in str(caught.value.hint)
    assert started.ended.wait(10)


def test_a_kill_is_told(start: Start, java: Any) -> None:
    java.behave("killed")
    with pytest.raises(StartupError, match="killed by SIGKILL"):
        start().ready()


def test_one_that_does_not_answer_in_time_is_told(start: Start, java: Any) -> None:
    java.behave("silent")
    started = start()
    with pytest.raises(StartupError, match="did not answer in time") as caught:
        started.process.wait_session(time.monotonic() + 0.5)
    assert "start_timeout_secs" in str(caught.value.hint)


def test_an_end_by_itself_is_told_and_cleaned_up_but_a_stop_is_not(start: Start) -> None:
    first, second = start(), start()
    first.ready()
    second.ready()
    first.process.abort()
    assert first.ended.wait(10)
    assert not first.process.run_dir.exists()
    second.process.stop()
    assert not second.ended.wait(0.2)


def test_a_java_that_cannot_be_run_is_told(start: Start, java: Any) -> None:
    (java.home / "bin" / "java").write_text("no program")
    with pytest.raises(StartupError, match=r"Cannot run .*java"):
        start()


def test_folders_of_the_dead_are_swept_and_others_kept(tmp_path: Path) -> None:
    alive, dead = RunFolder(tmp_path, tmp_path), RunFolder(tmp_path, tmp_path)
    young = RunFolder(tmp_path, tmp_path)
    assert dead._lock is not None
    os.close(dead._lock)
    assert young._lock is not None
    os.close(young._lock)
    long_ago = time.time() - 3600
    for folder in (alive, dead):
        os.utime(folder.path, (long_ago, long_ago))
    newest = RunFolder(tmp_path, tmp_path)
    assert [folder.path.exists() for folder in (alive, dead, young, newest)] == [True, False, True, True]
    alive.remove()
    newest.remove()


def test_old_logs_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_KEPT_LOGS", 3)
    paths = []
    for age in range(5):
        paths.append(launcher._new_log_file(tmp_path))
        os.utime(paths[-1], (1000 + age, 1000 + age))
    assert [path.exists() for path in paths] == [False, False, True, True, True]


def test_a_log_is_kept_elsewhere_when_the_cache_is_read_only(start: Start, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "logs").write_text("in the way")
    started = start()
    started.ready()
    assert started.process.log_file.parent == started.process.run_dir


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert read_tail(log) == ""
    log.write_text("\n".join(f"line {number}" for number in range(10_000)))
    assert read_tail(log, 2) == "line 9998\nline 9999"


@pytest.mark.parametrize("text", ["plain", "a b", "a=b:c", "#!\\", "line\nline\r\tend", "ünï"])
def test_values_survive_a_properties_file(text: str) -> None:
    # The reader is Java's; the rules are few: a backslash makes the next character literal, but for n, r and t.
    escaped = launcher._escaped(text)
    assert "\n" not in escaped
    back = ""
    characters = iter(escaped)
    for character in characters:
        if character == "\\":
            character = next(characters)
            character = {"n": "\n", "r": "\r", "t": "\t"}.get(character, character)
        else:
            assert character not in "=:#! "
        back += character
    assert back == text
