"""The jars that SQE adds to Spark's own: pinned in a lock file, fetched once, verified at every start."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http
import http.client
import logging
import os
import re
import shutil
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqe_core.engine.spark.cache import disk_error, drafted, locked, make_private_folder
from sqe_core.engine.spark.options import EngineOptions, Report, home_dir
from sqe_core.spi.catalog import Jar
from sqe_core.spi.errors import StartupError

_log = logging.getLogger(__name__)

_LOCK_FILE = Path(__file__).with_name("jars.lock.toml")
_BASE_GROUP = "base"
_PLUGIN_GROUP = "plugin"
_CHUNK = 1 << 18
_ATTEMPTS = 5
_TIMEOUT_SECS = 30
_WAIT_SECS = (1, 2, 5, 10)
_TRANSIENT_STATUSES = (408, 425, 429)
# What Ivy, which Spark ships for its own --packages, takes for the public repository.
_IVY_JAR = re.compile(r"ivy-[0-9.]+\.jar")
_IVY_CLASS = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"
_REPOSITORY = re.compile(rb"https://[\x21-\x7e]+/maven2/")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJar:
    """One jar of the lock file."""

    group: str
    artifact: str  # Maven's coordinates, group:name:version
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        _, name, version = self.artifact.split(":")
        return f"{name}-{version}.jar"

    @property
    def repository_path(self) -> str:
        """Where every Maven repository keeps it."""
        organisation, name, version = self.artifact.split(":")
        return f"{organisation.replace('.', '/')}/{name}/{version}/{self.file_name}"


class _Transient(Exception):
    """A fault of the network that may be over soon."""


class _Restart(_Transient):
    """The server cannot continue what was begun."""


class _Answer(Protocol):
    """What urllib returns, for http and for file URLs."""

    def read(self, size: int, /) -> bytes: ...


def read_lock() -> tuple[LockedJar, ...]:
    """Return every jar that SQE knows."""
    with _LOCK_FILE.open("rb") as file:
        return tuple(LockedJar(**entry) for entry in tomllib.load(file)["jar"])


def check_groups(groups: Collection[str], known: Sequence[LockedJar] | None = None) -> None:
    """Raise StartupError for groups of jars that there are none of."""
    unknown = set(groups) - {jar.group for jar in known or read_lock()}
    if unknown:
        raise StartupError(f"Unknown jar group: {', '.join(sorted(unknown))}")


def fetch_jars(
    options: EngineOptions,
    spark_jars: Sequence[Path],
    report: Report = lambda step, share: None,
    lock: Sequence[LockedJar] | None = None,
) -> list[Path]:
    """Return the wanted jars, each verified by its full checksum; fetch those that are missing.

    The order of the places: `jar_dir`, the cache, the local Maven repository, `jar_mirror` or the default repository.
    """
    known = read_lock() if lock is None else lock
    check_groups(options.jar_groups, known)
    wanted = [jar for jar in known if jar.group == _BASE_GROUP or jar.group in options.jar_groups]
    files, fetchable = _merged(options.plugin_jars, known)
    wanted += [jar for jar in fetchable if jar not in wanted]
    with ThreadPoolExecutor(max_workers=max(len(wanted), 1), thread_name_prefix="sqe-jars") as pool:
        found = list(pool.map(lambda jar: _find(jar, options), wanted))
    missing = [jar for jar, path in zip(wanted, found, strict=True) if path is None]
    fetched = _Fetcher(options, spark_jars, missing, report).fetch_all() if missing else {}
    return [*(path or fetched[jar.file_name] for jar, path in zip(wanted, found, strict=True)), *files]


def _merged(jars: Sequence[Jar], known: Sequence[LockedJar]) -> tuple[list[Path], list[LockedJar]]:
    """Return the files and the locked jars that plugins bring; one artifact has one version, ours and theirs."""
    versions = {jar.artifact.rpartition(":")[0]: jar for jar in known}
    files: dict[Path, None] = {}
    fetchable: dict[str, LockedJar] = {}
    for jar in jars:
        if jar.path is not None:
            path = jar.path.expanduser().absolute()
            if jar.sha256 and _checksum(path) != jar.sha256.lower():
                raise StartupError(f"{path} is not the jar that its plugin was made for: its SHA-256 differs")
            if not path.is_file():
                raise StartupError(f"The jar {path} of a plugin is not there")
            files[path] = None
            continue
        artifact = jar.coordinates.rpartition(":")[0]
        wanted = LockedJar(group=_PLUGIN_GROUP, artifact=jar.coordinates, size=jar.size, sha256=jar.sha256.lower())
        other = versions.setdefault(artifact, wanted)
        if (other.artifact, other.sha256) != (wanted.artifact, wanted.sha256):
            what = other.artifact if other.artifact != wanted.artifact else "one with another SHA-256"
            whose = "another plugin" if other.group == _PLUGIN_GROUP else "SQE itself"
            raise StartupError(f"A plugin brings {wanted.artifact}, and {whose} brings {what}: only one can be loaded")
        fetchable[artifact] = other
    return list(files), list(fetchable.values())


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find(jar: LockedJar, options: EngineOptions) -> Path | None:
    """Return the verified file in `jar_dir` or the cache, None when it is in neither."""
    if options.jar_dir is not None and (options.jar_dir / jar.file_name).exists():
        path = options.jar_dir / jar.file_name
        if _checksum(path) != jar.sha256:
            raise StartupError(
                f"{path} is not the {jar.artifact} that SQE was tested with: its SHA-256 differs",
                hint=f"put the original file there (SHA-256 {jar.sha256}) or remove it",
            )
        return path
    path = options.cache_dir / "jars" / jar.file_name
    if not path.exists():
        return None
    if _checksum(path) != jar.sha256:
        _log.warning("%s does not have its checksum any more; it is fetched again", path)
        return None
    return path


def _checksum(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise StartupError(f"Cannot read {path}: {error.strerror or error}") from error


class _Fetcher:
    """Brings the missing jars into the cache, and says how far it is."""

    def __init__(
        self, options: EngineOptions, spark_jars: Sequence[Path], missing: Sequence[LockedJar], report: Report
    ) -> None:
        self._options = options
        self._spark_jars = spark_jars
        self._missing = missing
        self._report = report
        self._folder = options.cache_dir / "jars"
        self._total = sum(jar.size for jar in missing)
        self._done = 0

    def fetch_all(self) -> dict[str, Path]:
        make_private_folder(self._folder)
        fetched = {}
        for jar in self._missing:
            fetched[jar.file_name] = self._fetch(jar)
            self._done += jar.size
        return fetched

    def _fetch(self, jar: LockedJar) -> Path:
        target = self._folder / jar.file_name

        def waiting() -> None:
            self._report(f"Waiting for another process that fetches {jar.file_name}", None)

        with locked(self._folder / f"{jar.file_name}.lock", waiting):
            if target.exists() and _checksum(target) == jar.sha256:
                return target
            local = (home_dir() or Path("/nonexistent")) / ".m2" / "repository" / jar.repository_path
            if local.exists() and _checksum(local) == jar.sha256:
                with drafted(target) as draft:
                    shutil.copyfile(local, draft)
            else:
                self._download(jar, target)
        return target

    def _download(self, jar: LockedJar, target: Path) -> None:
        location = self._repository() + jar.repository_path
        # Locked, so that nobody else writes it; what a broken connection left is continued.
        part = target.with_name(f".{jar.file_name}.part")
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    self._transfer(jar, location, part)
                    break
                except _Transient as error:
                    if isinstance(error, _Restart):
                        part.unlink(missing_ok=True)
                    if attempt == _ATTEMPTS - 1:
                        raise StartupError(
                            f"Cannot fetch {_without_credentials(location)}: {error}", hint=_offline_hint(jar)
                        ) from error
                    wait = _WAIT_SECS[min(attempt, len(_WAIT_SECS) - 1)]
                    self._report(f"Fetching {jar.file_name} again in {wait} s ({error})", None)
                    time.sleep(wait)
            found = sha256_of(part)
            if found != jar.sha256:
                raise StartupError(
                    f"{_without_credentials(location)} is not the {jar.artifact} that SQE was tested with: "
                    f"its SHA-256 is {found}, not {jar.sha256}",
                    hint="check [engine] jar_mirror, and whether a proxy answers with a page of its own",
                )
            os.replace(part, target)
        except OSError as error:
            raise disk_error(error, target) from error
        finally:
            part.unlink(missing_ok=True)

    def _transfer(self, jar: LockedJar, location: str, part: Path) -> None:
        """Write what is missing of the file; raises `_Transient` where another try may help."""
        present = part.stat().st_size if part.exists() else 0
        with _opened(location, present, jar) as (answer, resumed), part.open("ab" if resumed else "wb") as file:
            received = present if resumed else 0
            while received < jar.size + 1:
                try:
                    chunk = answer.read(_CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    raise _Transient(_reason(error)) from error
                if not chunk:
                    break
                file.write(chunk)
                received += len(chunk)
                self._report(f"Fetching {jar.file_name}", min((self._done + received) / self._total, 1.0))
        if received < jar.size:
            raise _Transient(f"the connection ended after {received} of {jar.size} bytes")

    def _repository(self) -> str:
        mirror = self._options.jar_mirror
        if mirror is None:
            return default_repository(self._spark_jars)
        if urllib.parse.urlsplit(mirror).scheme not in ("https", "http", "file"):
            raise StartupError(f"[engine] jar_mirror is not a URL: {_without_credentials(mirror)}")
        return mirror.rstrip("/") + "/"


def default_repository(spark_jars: Sequence[Path]) -> str:
    """Return the address of the public Maven repository, as the Ivy among Spark's jars has it."""
    for path in spark_jars:
        if _IVY_JAR.fullmatch(path.name):
            with zipfile.ZipFile(path) as jar:
                match = _REPOSITORY.search(jar.read(_IVY_CLASS))
            if match:
                return match.group().decode()
    raise StartupError("Spark's jars name no public repository", hint="set [engine] jar_mirror or jar_dir")


@contextlib.contextmanager
def _opened(location: str, offset: int, jar: LockedJar) -> Iterator[tuple[_Answer, bool]]:
    """Ask for the file from an offset on; yield the answer, and whether it begins there or at the start."""
    request = urllib.request.Request(_without_credentials(location))  # noqa: S310 - the operator's, https, http or file
    for name, value in _credentials(location).items():
        request.add_unredirected_header(name, value)  # another host must not get it
    if offset:
        request.add_header("Range", f"bytes={offset}-")
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_SECS)  # noqa: S310
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise _Restart(f"HTTP status {error.code}") from error
            if error.code in _TRANSIENT_STATUSES or error.code >= 500:
                raise _Transient(f"HTTP status {error.code}") from error
        raise StartupError(
            f"Cannot fetch {_without_credentials(location)}: HTTP status {error.code}", hint=_offline_hint(jar)
        ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, FileNotFoundError) or location.startswith("file:"):
            raise StartupError(
                f"Cannot fetch {_without_credentials(location)}: {_reason(error)}", hint=_offline_hint(jar)
            ) from error
        raise _Transient(_reason(error)) from error
    with answer:
        yield answer, getattr(answer, "status", None) == http.HTTPStatus.PARTIAL_CONTENT


def _credentials(location: str) -> dict[str, str]:
    """Turn `user:password@` of an address into the header that urllib does not make of it."""
    parts = urllib.parse.urlsplit(location)
    if parts.username is None:
        return {}
    pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _without_credentials(location: str) -> str:
    parts = urllib.parse.urlsplit(location)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _reason(error: Exception) -> str:
    """Say what went wrong without the address, which may hold a password."""
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause or type(error).__name__)


def _offline_hint(jar: LockedJar) -> str:
    return f"check the network and the proxy, set [engine] jar_mirror, or put {jar.file_name} into [engine] jar_dir"
