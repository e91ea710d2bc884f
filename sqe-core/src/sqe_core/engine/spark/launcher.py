"""Start the engine's JVM in surroundings of its own and listen to what it reports."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sqe_core.engine.spark.cache import disk_error, forget_old, make_private_folder, try_lock
from sqe_core.engine.spark.conf import engine_settings, is_local
from sqe_core.engine.spark.executor_java import executor_java_home
from sqe_core.engine.spark.java import Java
from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.errors import StartupError

_MARK = "\x01sqe "
_BOOT_CLASS = "sqe.bridge.boot.Boot"
_SCALA_VERSION = "2.13"
_KEPT_LOGS = 10
_WATCHDOG_EXIT_CODE = 86  # bridge/exec/Watchdog.java
_STOP_TIMEOUT_SECS = 8.0

# Spark's JavaModuleOptions, but for the vector module, which the bundled runtime does not have (Spark only warns), and
# for the switch that turns off host name checks in every TLS client that is built on Netty.
_OPENED_PACKAGES = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)

_FIXED_FLAGS = (
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
    "--enable-native-access=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    # Short queries want throughput per core more than short pauses of a large heap.
    "-XX:+UseParallelGC",
    # Spark loads 100 MB of classes at start; with the default each doubling from 20 MB is a full collection.
    "-XX:MetaspaceSize=192m",
    # Deep expressions are recursion in Spark's parser and optimizer.
    "-Xss4m",
    # No file in /tmp for every other user to read, no door for agents (ISO-10).
    "-XX:-UsePerfData",
    "-XX:+DisableAttachMechanism",
    # What the JVM itself has to say must not mix with our lines on standard output.
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
    # The same text, numbers and time wherever the server stands.
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
    "-Duser.language=en",
    "-Duser.country=US",
    "-Djava.awt.headless=true",
    "-Dlog4j2.disable.jmx=true",
)

# The engine's environment is readable for whatever code gets into it (ISO-12), so it holds nothing worth reading.
# SPARK_*, HADOOP_*, JAVA_TOOL_OPTIONS and the like would change the engine behind the configuration's back.
_INHERITED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "KRB5_CONFIG", "KRB5CCNAME")
_INHERITED_BY_MASTER = {
    "yarn": ("HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    "k8s": ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"),
}

_LOG4J = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = {pattern}
appender.file.layout.alwaysWriteExceptions = false
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
{loggers}
"""

# The text of an exception holds row values, policy literals and hidden columns (ERR-1, OBS-2); its class and place do
# not. Log4j itself reads the backslashes in a pattern, so only those before n, r and t arrive.
_MESSAGE_OF_EXCEPTION = (
    r"(?s)((?:^|\n)[\t ]*(?:Caused by: |Suppressed: )?[A-Za-z0-9_.$]+): .*?(?=\n[\t ]+(?:at |[.][.][.] )|$)"
)
_LOG_PATTERN = (
    r"%d{ISO8601} %-5p %c{1} [%t]: %replace{%m}{[\r\n]+}{ }%n"
    f"%replace{{%ex}}{{{_MESSAGE_OF_EXCEPTION}}}{{$1}}"
)
# These write an exception's text into the message itself.
_SILENT_LOGGERS = (
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.sql.catalyst.expressions.codegen",
    "org.apache.spark.sql.execution.datasources.v2",
)
# These warn at every start about what is meant to be so.
_QUIET_LOGGERS = (
    "org.apache.hadoop.util.NativeCodeLoader",
    "org.apache.spark.SparkConf",
    "org.apache.spark.sql.internal.SQLConf",
    "org.apache.spark.util.Utils",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Everything a JVM is started from but for its settings: what an archive of its classes depends on."""

    java: Java
    spark_home: Path
    class_path: tuple[Path, ...]  # in the order of the class path
    executor_jars: tuple[Path, ...]  # those that Spark itself does not bring
    options: EngineOptions

    def flags(self) -> list[str]:
        """Return the arguments of the JVM that decide how it lays out memory and classes."""
        return [
            *_FIXED_FLAGS,
            f"-Xmx{max(self.options.memory_bytes >> 20, 256)}m",
            *self.options.java_options,
        ]


class RunFolder:
    """A private folder of one JVM for all its temporary files; removed at the end, whoever comes to the end first."""

    _PREFIX = "sqe-engine-"

    def __init__(self, parent: Path | None, spark_home: Path) -> None:
        base = Path(tempfile.gettempdir()) if parent is None else parent
        try:
            base.mkdir(parents=True, exist_ok=True)
            self._sweep(base)
            self.path = Path(tempfile.mkdtemp(prefix=self._PREFIX, dir=base))
            for name in ("local", "tmp", "conf"):
                (self.path / name).mkdir(mode=0o700)
            (self.path / "warehouse").mkdir(mode=0o500)  # ISO-3: nothing is ever stored there
            (self.path / "spark").mkdir(mode=0o700)
            (self.path / "spark" / "jars").symlink_to(spark_home / "jars")
        except OSError as error:
            raise disk_error(error, base) from error
        self._lock = try_lock(self.path / "lock")
        self._removing = threading.Lock()

    def remove(self) -> None:
        """Delete everything in it; from any thread."""
        with self._removing:
            shutil.rmtree(self.path, ignore_errors=True)
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    @classmethod
    def _sweep(cls, base: Path) -> None:
        """Remove what killed processes of this user left behind: nobody holds their lock any more."""
        for folder in base.glob(f"{cls._PREFIX}*"):
            with contextlib.suppress(OSError):
                found = folder.lstat()
                if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                    continue
                # One that another process is making right now may have no lock yet.
                if time.time() - found.st_mtime < 60:
                    continue
                lock = try_lock(folder / "lock")
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


class EngineProcess:
    """One JVM, from its launch to its end."""

    def __init__(self, plan: LaunchPlan, *, extra_flags: Sequence[str] = (), ended: Callable[[], None] | None = None):
        """Launch the JVM and return at once; another thread calls `ended` when it has ended without being told to."""
        self.plan = plan
        self.secret = secrets.token_hex(32)
        self.port = 0
        self._report: str | None = None
        self._ended = ended
        self._changed = threading.Condition()
        self._gateway_up = self._session_up = self._over = self._stopping = False
        self._folder = RunFolder(plan.options.local_dir, plan.spark_home)
        try:
            self.log_file = _new_log_file(plan.options.cache_dir)
        except StartupError:
            # A read-only cache, as in an image that was prepared: this log ends with the JVM.
            self.log_file = self.run_dir / "engine.log"
        try:
            settings = engine_settings(plan.options, self.run_dir, plan.executor_jars)
            command = [str(plan.java.executable), *extra_flags, *self._arguments(settings)]
            with self.log_file.open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._environment(),
                    cwd=self.run_dir,
                    # Ctrl-C in the terminal is for the shell's statement, not for the engine.
                    start_new_session=True,
                )
        except OSError as error:
            self._folder.remove()
            raise StartupError(f"Cannot run {plan.java.executable}: {error.strerror or error}") from error
        except BaseException:
            self._folder.remove()
            raise
        threading.Thread(target=self._listen, name="sqe-engine-watch", daemon=True).start()
        self._send(settings)

    @property
    def run_dir(self) -> Path:
        """The private folder of this JVM."""
        return self._folder.path

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def ended_by_watchdog(self) -> bool:
        """Whether it ended itself since cancelled statements held it."""
        return self._process.poll() == _WATCHDOG_EXIT_CODE

    def ended_within(self, timeout_secs: float) -> bool:
        """Wait that long for the end of the JVM, and say whether it came."""
        with self._changed:
            return self._changed.wait_for(lambda: self._over, timeout_secs)

    def wait_gateway(self, deadline: float) -> None:
        """Return when the gateway listens on `port`."""
        self._wait(lambda: self._gateway_up, deadline)

    def wait_session(self, deadline: float) -> None:
        """Return when Spark's root session exists."""
        self._wait(lambda: self._session_up, deadline)

    def _wait(self, happened: Callable[[], bool], deadline: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: happened() or self._over, max(deadline - time.monotonic(), 0))
            if happened():
                return
        if self._over:
            raise StartupError(
                f"The engine's Java ended while it started: {self.why_ended()}", hint=f"see {self.log_file}"
            )
        raise StartupError(
            "The engine's Java did not answer in time", hint=f"raise [engine] start_timeout_secs; see {self.log_file}"
        )

    def why_ended(self) -> str:
        """Say how it ended: its own report, else its exit code, and the end of its log. For operators only."""
        code = self._process.poll()
        if self._report:
            reason = self._report
        elif code is not None and code < 0:
            reason = f"killed by {_signal_name(-code)}"
            if code == -signal.SIGKILL:
                reason += " (out of memory on this machine?)"
        else:
            reason = f"exit code {code}"
        tail = read_tail(self.log_file)
        return f"{reason}\n{tail}" if tail else reason

    def stop(self, *, orderly: bool | None = None) -> None:
        """End the JVM and wait for it; idempotent.

        With local tasks nothing outlives the JVM, so it is killed: even `Runtime.halt` takes 0.35 s. An orderly end,
        which tells a cluster to free the executors, is the default elsewhere.
        """
        self._stopping = True
        if orderly is None:
            orderly = not is_local(self.plan.options.master)
        if not orderly:
            self._process.kill()
        self._close_input()
        try:
            self._process.wait(_STOP_TIMEOUT_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.remove()

    def abort(self) -> None:
        """End the JVM at once, without waiting for it."""
        self._process.kill()

    def _close_input(self) -> None:
        """Tell the JVM to leave, if it is still there."""
        with self._changed, contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _listen(self) -> None:
        """Follow standard output to its end, which is the JVM's."""
        output = self._process.stdout
        assert output is not None
        with output, self.log_file.open("ab") as log:
            for line in output:
                text = line.decode("utf-8", "replace")
                if text.startswith(_MARK):
                    self._hear(text[len(_MARK) :].strip())
                else:
                    log.write(line)
                    log.flush()
        self._process.wait()
        self._close_input()
        with self._changed:
            self._over = True
            self._changed.notify_all()
        if not self._stopping:
            self._folder.remove()
            if self._ended is not None:
                self._ended()

    def _hear(self, message: str) -> None:
        word, _, rest = message.partition(" ")
        with self._changed:
            if word == "gateway":
                self.port = int(rest)
                self._gateway_up = True
            elif word == "session":
                self._session_up = True
            elif word == "failed":
                self._report = rest
            self._changed.notify_all()

    def _send(self, settings: Mapping[str, str]) -> None:
        ours = {"sqe.gateway.secret": self.secret, "sqe.parent.pid": str(os.getpid())}
        text = "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in {**settings, **ours}.items()).encode()
        stdin: IO[bytes] | None = self._process.stdin
        assert stdin is not None
        # The JVM that ended at once is reported by whoever waits for it.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(struct.pack(">I", len(text)) + text)
            stdin.flush()

    def _arguments(self, settings: Mapping[str, str]) -> list[str]:
        log4j = self.run_dir / "conf" / "log4j2.properties"
        log4j.write_text(_log4j_configuration(self.log_file))
        arguments = [
            *self.plan.flags(),
            f"-XX:ErrorFile={self.log_file.with_suffix('.crash')}",
            f"-Djava.io.tmpdir={self.run_dir / 'tmp'}",
            f"-Dsqe.run.dir={self.run_dir}",
            f"-Dlog4j2.configurationFile={log4j}",
            *_proxy_properties(),
            "-cp",
            os.pathsep.join(map(str, self.plan.class_path)),
        ]
        if is_local(self.plan.options.master):
            return [*arguments, _BOOT_CLASS]
        # Only SparkSubmit prepares a driver for YARN and Kubernetes. It gets the settings without the secret ones.
        properties = self.run_dir / "conf" / "submit.properties"
        public = {key: value for key, value in settings.items() if "secret" not in key}
        properties.write_text("".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in public.items()))
        return [
            *arguments,
            "org.apache.spark.deploy.SparkSubmit",
            *("--properties-file", str(properties), "--class", _BOOT_CLASS, "spark-internal"),
        ]

    def _environment(self) -> dict[str, str]:
        master = self.plan.options.master
        names = [*_INHERITED_VARIABLES]
        for prefix, more in _INHERITED_BY_MASTER.items():
            names += more if master.startswith(prefix) else ()
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment |= {
            # A home with Spark's jars and nothing else: in the real one spark-defaults.conf may lie, and a worker in
            # this JVM (`local-cluster`) would leave its files there.
            "SPARK_HOME": str(self.run_dir / "spark"),
            "SPARK_CONF_DIR": str(self.run_dir / "conf"),
            # Spark's shell scripts say it, and who starts executors asks for it.
            "SPARK_SCALA_VERSION": _SCALA_VERSION,
        }
        if is_local(master):
            # Without these Spark asks the resolver for this machine's name, which may take seconds.
            environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
        if master.startswith("local-cluster"):
            environment["JAVA_HOME"] = str(executor_java_home(self.plan.java, self.plan.options.cache_dir))
        return environment | dict(self.plan.options.environment)


def read_tail(path: Path, lines: int = 15) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(file.tell() - 16_384, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])


def _new_log_file(cache_dir: Path) -> Path:
    folder = cache_dir / "logs"
    try:
        make_private_folder(folder)
        forget_old(folder, "engine-*.log", kept=_KEPT_LOGS - 1)
        path = folder / f"engine-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{secrets.token_hex(2)}.log"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise disk_error(error, folder) from error
    return path


def _log4j_configuration(log_file: Path) -> str:
    loggers = []
    for index, (name, level) in enumerate(
        [*((name, "off") for name in _SILENT_LOGGERS), *((name, "error") for name in _QUIET_LOGGERS)]
    ):
        loggers += [f"logger.l{index}.name = {name}", f"logger.l{index}.level = {level}"]
    pattern = _LOG_PATTERN.replace("\\", "\\\\")
    return _LOG4J.format(file=_escaped(str(log_file)), pattern=pattern, loggers="\n".join(loggers))


def _escaped(text: str) -> str:
    """Write a key or value of a Java properties file."""
    return re.sub(r"([\\=:#!\s])", lambda match: _ESCAPES.get(match.group(1), "\\" + match.group(1)), text)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _proxy_properties() -> list[str]:
    """Tell Java about the proxies in the environment, which it does not read; never with their passwords."""
    properties = []
    proxies = urllib.request.getproxies_environment()
    for scheme in ("http", "https"):
        parsed = urllib.parse.urlsplit(proxies.get(scheme, ""))
        if parsed.hostname:
            properties += [f"-D{scheme}.proxyHost={parsed.hostname}", f"-D{scheme}.proxyPort={parsed.port or 3128}"]
    excluded = [name.strip() for name in proxies.get("no", "").split(",") if name.strip()]
    if properties and excluded:
        patterns = [f"*{name}" if name.startswith(".") else name for name in ["localhost", "127.*", "[::1]", *excluded]]
        properties.append(f"-Dhttp.nonProxyHosts={'|'.join(dict.fromkeys(patterns))}")
    return properties


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
