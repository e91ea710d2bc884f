"""Processes of tests share one archive of classes, which a first session made; nothing else makes one behind them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqe_core.engine.spark.options import default_cache_dir

_STARTS_THAT_PAY = 20
"""From so many tests on, the minute that the archive takes is less than what their starts save with it."""


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache that is new but for downloads, for all starts of all workers.

    Its first session has the archive made by a process of the lowest priority; who starts before that goes without.
    """
    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    with (
        (cache.parent / "cache.changes").open("w") as changes,
        (cache.parent / "cache.users").open("w") as users,
        pytest.MonkeyPatch.context() as patch,
    ):
        fcntl.flock(changes, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if cache.exists():
            patch.setenv("XDG_CACHE_HOME", str(cache))
        else:
            _begin(cache, patch)
        fcntl.flock(changes, fcntl.LOCK_UN)
        yield cache / "sqe"
        # The last one takes it away.
        fcntl.flock(changes, fcntl.LOCK_EX)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _wait_for_archive(cache / "sqe" / "engine")
            shutil.rmtree(cache)


def _begin(cache: Path, patch: pytest.MonkeyPatch) -> None:
    real = default_cache_dir()
    for name in ("jars", "testbed", "tests"):
        (real / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    # What uv, Go and others keep beside it is theirs.
    for folder, target, own in ((real.parent, cache, {"sqe"}), (real, cache / "sqe", {"engine", "logs"})):
        target.mkdir(parents=True, mode=0o700)
        for each in folder.iterdir():
            if each.name not in own:
                (target / each.name).symlink_to(each)
    patch.setenv("XDG_CACHE_HOME", str(cache))
    subprocess.run(
        [sys.executable, "-m", "sqe_core.cli.main", "--memory", "-e", "SELECT 1"],
        env={**os.environ, "SQE_ENGINE__CLASS_ARCHIVE": "make"},
        check=True,
        capture_output=True,
        timeout=300,
    )


@pytest.fixture
def class_archive(shared_cache: Path) -> Path:
    """The archive that the first session had made."""
    return _wait_for_archive(shared_cache / "engine")


def _wait_for_archive(folder: Path) -> Path:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        made = list(folder.glob("classes-*.jsa"))
        if made:
            return made[0]
        assert not list(folder.glob("classes-*.failed"))
        time.sleep(1)
    raise AssertionError(f"no archive in {[path.name for path in folder.iterdir()]}")


@pytest.fixture(scope="session", autouse=True)
def _no_archive_in_the_background(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQE_ENGINE__CLASS_ARCHIVE", "use")
        if len(request.session.items) >= _STARTS_THAT_PAY:
            request.getfixturevalue("shared_cache")
        yield
