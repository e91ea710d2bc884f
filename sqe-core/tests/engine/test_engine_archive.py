"""When a class archive is used, made, and forgotten. No JVM: only names, flags and decisions."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqe_core.engine.spark import archive
from sqe_core.engine.spark.archive import ArchiveMaker, archive_flags, archive_path
from sqe_core.engine.spark.cache import forget_old
from sqe_core.engine.spark.java import inspect_java
from sqe_core.engine.spark.launcher import LaunchPlan
from sqe_core.engine.spark.options import ClassArchive, EngineOptions


@pytest.fixture
def plan(fake_java: Callable[[str], Any], tmp_path: Path) -> LaunchPlan:
    jar = tmp_path / "thing.jar"
    jar.write_bytes(b"jar")
    return LaunchPlan(
        java=inspect_java("test", fake_java("java").write().home),
        spark_home=tmp_path,
        class_path=(jar,),
        executor_jars=(),
        options=EngineOptions(cache_dir=tmp_path / "cache", class_archive=ClassArchive.MAKE),
    )


def with_options(plan: LaunchPlan, **changes: Any) -> LaunchPlan:
    return replace(plan, options=replace(plan.options, **changes))


def lay_archive(plan: LaunchPlan) -> Path:
    path = archive_path(plan)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(b"archive")
    return path


def test_there_is_none_at_first(plan: LaunchPlan) -> None:
    assert archive_flags(plan) == []


def test_one_that_is_there_is_used_and_remembered_as_used(plan: LaunchPlan) -> None:
    path = lay_archive(plan)
    os.utime(path, (1000, 1000))
    assert archive_flags(plan) == ["-Xshare:auto", f"-XX:SharedArchiveFile={path}"]
    assert path.stat().st_mtime > 1000
    assert archive_flags(with_options(plan, class_archive=ClassArchive.OFF)) == []


def test_another_heap_fits_the_same_archive_but_not_beyond_compressed_pointers(plan: LaunchPlan) -> None:
    path = archive_path(plan)
    assert archive_path(with_options(plan, memory_bytes=4 << 30)) == path
    assert archive_path(with_options(plan, memory_bytes=40 << 30)) != path


def test_another_java_jar_or_flag_needs_another_archive(plan: LaunchPlan) -> None:
    path = archive_path(plan)
    assert archive_path(with_options(plan, java_options=("-XX:+UseSerialGC",))) != path
    plan.class_path[0].write_bytes(b"another jar")
    changed = archive_path(plan)
    assert changed != path
    assert archive_path(replace(plan, java=replace(plan.java, version="21.0.9"))) != changed


def test_one_that_others_could_have_written_is_not_used(plan: LaunchPlan) -> None:
    lay_archive(plan).parent.chmod(0o777)
    assert archive_flags(plan) == []


class Spawned:
    """Plays `Popen`: remembers what was started and what it was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[list[str]] = []
        self.told = b""
        monkeypatch.setattr(subprocess, "Popen", self._start)

    def _start(self, command: list[str], **more: Any) -> Spawned:
        assert more["start_new_session"]
        self.commands.append(command)
        self.stdin = self
        return self

    def __enter__(self) -> Spawned:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def write(self, content: bytes) -> None:
        self.told += content

    def wait(self) -> None: ...


def test_it_is_made_once_and_only_when_wanted(plan: LaunchPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = Spawned(monkeypatch)
    ArchiveMaker(with_options(plan, class_archive=ClassArchive.USE)).make_now()
    assert spawned.commands == []
    maker = ArchiveMaker(plan)
    maker.make_now()
    maker.make_now()
    assert [command[1:] for command in spawned.commands] == [["-m", "sqe_core.engine.spark.archive"]]
    # The process builds the same plan from what it is told, so the archive has the name that is looked for.
    assert archive._from_json(json.loads(spawned.told)) == replace(plan.options, class_archive=ClassArchive.USE)


def test_no_secret_is_told_to_it(plan: LaunchPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = Spawned(monkeypatch)
    ArchiveMaker(with_options(plan, auth_secret="s3cret", jar_mirror="https://a:s3cret@b")).make_now()
    assert spawned.commands
    assert b"s3cret" not in spawned.told


def test_it_is_not_made_again_soon_after_a_failure(plan: LaunchPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = Spawned(monkeypatch)
    note = lay_archive(plan).with_suffix(".failed")
    archive_path(plan).unlink()
    note.write_text("no luck")
    ArchiveMaker(plan).make_now()
    assert spawned.commands == []
    month_ago = time.time() - 30 * 24 * 3600
    os.utime(note, (month_ago, month_ago))
    ArchiveMaker(plan).make_now()
    assert len(spawned.commands) == 1


def test_a_failure_leaves_a_note_and_no_archive(plan: LaunchPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(archive, "_train", fails)
    with pytest.raises(RuntimeError, match="no luck"):
        archive.make_archive(plan)
    names = sorted(path.suffix for path in archive_path(plan).parent.iterdir())
    assert names == [".failed", ".lock"]


def test_two_makers_do_not_work_at_once(plan: LaunchPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []

    def train(*arguments: object) -> None:
        trained.append(1)
        archive.make_archive(plan)  # a second one, while the first holds the lock

    def dump(plan: LaunchPlan, class_list: Path, target: Path) -> None:
        target.write_bytes(b"archive")

    monkeypatch.setattr(archive, "_train", train)
    monkeypatch.setattr(archive, "_dump", dump)
    archive.make_archive(plan)
    archive.make_archive(plan)  # it is there already
    assert trained == [1]
    assert archive_path(plan).read_bytes() == b"archive"


def test_old_archives_are_forgotten(tmp_path: Path) -> None:
    for age in range(4):
        path = tmp_path / f"classes-{age}.jsa"
        path.write_bytes(b"x")
        path.with_suffix(".lock").touch()
        os.utime(path, (1000 + age, 1000 + age))
    forget_old(tmp_path, "classes-*.jsa", kept=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "classes-2.jsa",
        "classes-2.lock",
        "classes-3.jsa",
        "classes-3.lock",
    ]
