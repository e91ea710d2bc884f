"""Fetching jars: where from, what is checked, and what is left when it goes wrong."""

from __future__ import annotations

import errno
import hashlib
import http.client
import io
import multiprocessing
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from sqe_core.engine.spark import jars as jars_module
from sqe_core.engine.spark.jars import LockedJar, default_repository, fetch_jars, read_lock
from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.catalog import Jar
from sqe_core.spi.errors import StartupError

CONTENT = bytes(range(256)) * 4096  # 1 MiB: several chunks
JAR = LockedJar(
    group="base", artifact="org.example:thing_2.13:1.0", size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest()
)


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Maven repository of this machine, no waiting between attempts."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(jars_module, "_WAIT_SECS", (0,))


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A Maven repository in a folder."""
    path = tmp_path / "mirror" / JAR.repository_path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return tmp_path / "mirror"


def options(tmp_path: Path, **given: Any) -> EngineOptions:
    return EngineOptions(cache_dir=tmp_path / "cache", **given)


def fetch(given: EngineOptions, jar: LockedJar = JAR) -> Path:
    (path,) = fetch_jars(given, [], lock=[jar])
    return path


def leftovers(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "jars").iterdir() if path.suffix != ".lock")


def test_the_lock_file_pins_each_jar_once() -> None:
    lock = read_lock()
    assert len({jar.artifact for jar in lock}) == len(lock)
    assert all(len(jar.sha256) == 64 and jar.size > 1_000_000 for jar in lock)
    assert [jar.file_name for jar in lock if jar.group == "base"] == [
        "iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
        "sqlite-jdbc-3.54.1.0.jar",
        "ecj-3.46.0.jar",
    ]


def test_fetched_from_the_mirror_and_reported(tmp_path: Path, mirror: Path) -> None:
    heard: list[tuple[str, float | None]] = []
    given = options(tmp_path, jar_mirror=mirror.as_uri())
    (path,) = fetch_jars(given, [], lambda step, share: heard.append((step, share)), lock=[JAR])
    assert path == tmp_path / "cache" / "jars" / "thing_2.13-1.0.jar"
    assert path.read_bytes() == CONTENT
    assert heard[-1] == ("Fetching thing_2.13-1.0.jar", 1.0)
    assert [share for _, share in heard] == sorted(share for _, share in heard if share is not None)
    assert leftovers(tmp_path) == [path.name]


def test_the_second_start_fetches_nothing_but_verifies(tmp_path: Path, mirror: Path) -> None:
    path = fetch(options(tmp_path, jar_mirror=mirror.as_uri()))
    assert fetch(options(tmp_path, jar_mirror="file:///nowhere")) == path
    path.write_bytes(CONTENT[:-1] + b"x")
    assert fetch(options(tmp_path, jar_mirror=mirror.as_uri())).read_bytes() == CONTENT


def test_a_folder_of_jars_is_used_in_place(tmp_path: Path) -> None:
    folder = tmp_path / "offline"
    folder.mkdir()
    (folder / JAR.file_name).write_bytes(CONTENT)
    assert fetch(options(tmp_path, jar_dir=folder)) == folder / JAR.file_name
    assert not (tmp_path / "cache").exists()


def test_a_wrong_file_in_the_folder_of_jars_stops(tmp_path: Path, mirror: Path) -> None:
    folder = tmp_path / "offline"
    folder.mkdir()
    (folder / JAR.file_name).write_bytes(b"swapped")
    with pytest.raises(StartupError, match="its SHA-256 differs") as caught:
        fetch(options(tmp_path, jar_dir=folder, jar_mirror=mirror.as_uri()))
    assert JAR.sha256 in str(caught.value.hint)


@pytest.mark.parametrize(("content", "copied"), [(CONTENT, True), (b"another build", False)])
def test_the_local_maven_repository_comes_before_the_network(
    tmp_path: Path, mirror: Path, content: bytes, copied: bool
) -> None:
    local = tmp_path / "home" / ".m2" / "repository" / JAR.repository_path
    local.parent.mkdir(parents=True)
    local.write_bytes(content)
    nowhere = options(tmp_path, jar_mirror="file:///nowhere")
    if copied:
        assert fetch(nowhere).read_bytes() == CONTENT
    else:
        with pytest.raises(StartupError, match="Cannot fetch"):
            fetch(nowhere)
        assert fetch(options(tmp_path, jar_mirror=mirror.as_uri())).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path, mirror: Path) -> None:
    (mirror / JAR.repository_path).write_bytes(CONTENT[::-1])
    with pytest.raises(StartupError, match="its SHA-256 is") as caught:
        fetch(options(tmp_path, jar_mirror=mirror.as_uri()))
    assert "jar_mirror" in str(caught.value.hint)
    assert leftovers(tmp_path) == []


def test_a_longer_file_is_not_read_to_its_end(tmp_path: Path, mirror: Path) -> None:
    (mirror / JAR.repository_path).write_bytes(CONTENT * 3)
    with pytest.raises(StartupError, match="its SHA-256 is"):
        fetch(options(tmp_path, jar_mirror=mirror.as_uri()))
    assert leftovers(tmp_path) == []


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"Cannot fetch file:///nowhere/org/example/") as caught:
        fetch(options(tmp_path, jar_mirror="file:///nowhere"))
    assert JAR.file_name in str(caught.value.hint)


def test_a_full_disk_says_so_and_leaves_nothing(tmp_path: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullDisk(io.FileIO):
        def write(self, data: Any, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    real_open = Path.open

    def open_part(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        return (
            FullDisk(path, mode) if path.suffix == ".part" and "b" in mode and mode != "rb" else real_open(path, mode)
        )

    monkeypatch.setattr(Path, "open", open_part)
    with pytest.raises(StartupError, match=r"No space left to write .*thing_2.13-1.0.jar"):
        fetch(options(tmp_path, jar_mirror=mirror.as_uri()))
    assert leftovers(tmp_path) == []


def test_a_cache_that_cannot_be_made_says_so(tmp_path: Path, mirror: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(StartupError, match="Cannot write") as caught:
        fetch(options(tmp_path, jar_mirror=mirror.as_uri()))
    assert "cache_dir" in str(caught.value.hint)


def test_a_cache_that_others_can_write_is_refused(tmp_path: Path, mirror: Path) -> None:
    folder = tmp_path / "cache" / "jars"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(StartupError, match="can be written by other users"):
        fetch(options(tmp_path, jar_mirror=mirror.as_uri()))


def test_an_unknown_group_and_a_mirror_that_is_no_url_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="Unknown jar group: nonsense"):
        fetch(options(tmp_path, jar_groups=frozenset({"nonsense"})))
    with pytest.raises(StartupError, match="jar_mirror is not a URL"):
        fetch(options(tmp_path, jar_mirror="mirror.example"))


def test_a_group_is_fetched_only_when_wanted(tmp_path: Path) -> None:
    other = LockedJar(group="aws", artifact="org.example:aws:1", size=1, sha256="0" * 64)
    folder = tmp_path / "offline"
    folder.mkdir()
    (folder / JAR.file_name).write_bytes(CONTENT)
    assert fetch_jars(options(tmp_path, jar_dir=folder), [], lock=[JAR, other]) == [folder / JAR.file_name]
    with pytest.raises(StartupError, match=r"aws-1\.jar"):
        fetch_jars(
            options(tmp_path, jar_dir=folder, jar_groups=frozenset({"aws"}), jar_mirror="file:///nowhere"),
            [],
            lock=[JAR, other],
        )


def _fetch_in_process(cache: str, mirror: str, start: Any, results: Any) -> None:
    start.wait()
    (path,) = fetch_jars(EngineOptions(cache_dir=Path(cache), jar_mirror=mirror), [], lock=[JAR])
    results.put(path.read_bytes() == CONTENT)


THEIRS = Jar(coordinates=JAR.artifact, sha256=JAR.sha256, size=JAR.size)


def test_jars_of_plugins_come_with_the_others(tmp_path: Path, mirror: Path) -> None:
    own = tmp_path / "own.jar"
    own.write_bytes(b"own")
    checked = Jar(path=own, sha256=hashlib.sha256(b"own").hexdigest())
    given = options(tmp_path, jar_mirror=mirror.as_uri(), plugin_jars=(checked, Jar(path=own), THEIRS))
    fetched = tmp_path / "cache" / "jars" / JAR.file_name
    assert fetch_jars(given, [], lock=[]) == [fetched, own]
    # What SQE brings itself is there once.
    assert fetch_jars(given, [], lock=[JAR]) == [fetched, own]


@pytest.mark.parametrize(
    ("jars", "told"),
    [
        (
            (replace(THEIRS, coordinates="org.example:thing_2.13:2.0"),),
            "brings org.example:thing_2.13:2.0, and SQE",
        ),
        ((replace(THEIRS, sha256="0" * 64),), "and SQE itself brings one with another SHA-256"),
        (
            (
                Jar(coordinates="a:b:1", sha256="0" * 64, size=1),
                Jar(coordinates="a:b:2", sha256="0" * 64, size=1),
            ),
            "A plugin brings a:b:2, and another plugin brings a:b:1: only one can be loaded",
        ),
        ((Jar(path=Path("/no/such.jar")),), "The jar /no/such.jar of a plugin is not there"),
        ((Jar(path=Path(__file__), sha256="0" * 64),), "its SHA-256 differs"),
    ],
)
def test_jars_that_contradict_each_other_stop(tmp_path: Path, jars: tuple[Jar, ...], told: str) -> None:
    with pytest.raises(StartupError) as caught:
        fetch_jars(options(tmp_path, plugin_jars=jars), [], lock=[JAR])
    assert told in caught.value.message


@pytest.mark.parametrize(
    "wrong",
    [{}, {"path": Path("x"), "coordinates": "a:b:1"}, {"coordinates": "a:b"}, {"coordinates": "a:b:1"}],
)
def test_a_jar_has_a_path_or_coordinates_with_a_checksum(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="coordinates"):
        Jar(**wrong)


def test_processes_that_fetch_at_once_do_not_disturb_each_other(tmp_path: Path, mirror: Path) -> None:
    context = multiprocessing.get_context("fork")
    start, results = context.Event(), context.Queue()
    arguments = (str(tmp_path / "cache"), mirror.as_uri(), start, results)
    processes = [context.Process(target=_fetch_in_process, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    start.set()
    assert [results.get(timeout=60) for _ in processes] == [True] * 3
    for process in processes:
        process.join()
    assert leftovers(tmp_path) == [JAR.file_name]


class Server:
    """Plays an HTTP server behind `urlopen`: each answer is bytes, a status, or an exception."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: bytes | int | Exception) -> None:
        self.requests: list[urllib.request.Request] = []
        self._answers: Iterator[bytes | int | Exception] = iter(answers)
        monkeypatch.setattr(urllib.request, "urlopen", self._open)

    def _open(self, request: urllib.request.Request, timeout: float) -> Any:
        assert timeout
        self.requests.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            raise urllib.error.HTTPError(request.full_url, answer, "", Message(), io.BytesIO())
        response = io.BytesIO(answer)
        response.status = 206 if request.has_header("Range") else 200  # type: ignore[attr-defined]
        return response


def test_a_broken_connection_is_continued_where_it_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, CONTENT[:300_000], TimeoutError("timed out"), CONTENT[300_000:])
    assert fetch(options(tmp_path, jar_mirror="https://mirror.test/maven")).read_bytes() == CONTENT
    assert [request.get_header("Range") for request in server.requests] == [None, "bytes=300000-", "bytes=300000-"]


def test_what_cannot_be_continued_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, CONTENT[:300_000], 416, CONTENT)
    assert fetch(options(tmp_path, jar_mirror="https://mirror.test")).read_bytes() == CONTENT
    assert server.requests[-1].get_header("Range") is None


@pytest.mark.parametrize("fault", [503, 429, urllib.error.URLError("refused"), http.client.IncompleteRead(b"")])
def test_a_passing_fault_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    Server(monkeypatch, fault, CONTENT)
    assert fetch(options(tmp_path, jar_mirror="https://mirror.test")).read_bytes() == CONTENT


def test_no_network_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Server(monkeypatch, *[urllib.error.URLError(OSError(errno.ENETUNREACH, "Network is unreachable"))] * 5)
    with pytest.raises(StartupError, match=r"Cannot fetch https://mirror.test/.*: Network is unreachable") as caught:
        fetch(options(tmp_path, jar_mirror="https://mirror.test"))
    assert "jar_dir" in str(caught.value.hint)
    assert leftovers(tmp_path) == []


def test_a_password_in_the_mirror_is_sent_but_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, 403)
    with pytest.raises(StartupError, match="HTTP status 403") as caught:
        fetch(options(tmp_path, jar_mirror="https://bob:s3cr%40t@mirror.test"))
    (request,) = server.requests
    assert request.unredirected_hdrs["Authorization"] == "Basic Ym9iOnMzY3JAdA=="
    assert "Authorization" not in request.headers  # a redirect would carry it to another host
    assert "s3cr" not in request.full_url + caught.value.message + str(caught.value.hint)


def test_the_default_repository_is_the_one_that_ivy_has(tmp_path: Path) -> None:
    jar = tmp_path / "ivy-2.5.3.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr(
            "org/apache/ivy/plugins/resolver/IBiblioResolver.class", b"\x01\x00\x22https://repository.test/maven2/\x01"
        )
    assert default_repository([tmp_path / "ivy-core-1.jar", jar]) == "https://repository.test/maven2/"
    with pytest.raises(StartupError, match="name no public repository"):
        default_repository([])
