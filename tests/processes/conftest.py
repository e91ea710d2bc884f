"""Processes of tests share one archive of classes, which a first session made; nothing else makes one behind them."""

from __future__ import annotations

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
def class_archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The archive of a first session, in a cache that is new but for downloads; all starts after it use that cache."""
    cache = tmp_path_factory.mktemp("cache")
    (cache / "sqe").mkdir(mode=0o700)
    for name in ("jars", "testbed"):
        downloads = default_cache_dir() / name
        downloads.mkdir(parents=True, exist_ok=True, mode=0o700)
        (cache / "sqe" / name).symlink_to(downloads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        subprocess.run(
            [sys.executable, "-m", "sqe_core.cli.main", "--memory", "-e", "SELECT 1"],
            env={**os.environ, "SQE_ENGINE__CLASS_ARCHIVE": "make"},
            check=True,
            capture_output=True,
            timeout=300,
        )
        yield _wait_for_archive(cache / "sqe" / "engine")
    shutil.rmtree(cache)


def _wait_for_archive(folder: Path) -> Path:
    """The process that makes it is detached, and the lowest in priority."""
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
            request.getfixturevalue("class_archive")
        yield
