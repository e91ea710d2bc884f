"""Each distribution builds, and the core works alone in a clean environment, as does each plugin with what it names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = sorted(
    path.parent
    for pattern in ("sqe-core", "sqe-bench", "sqe-http", "sqe-plugins/*")
    for path in ROOT.glob(f"{pattern}/pyproject.toml")
)

PLUGINS = [path.name for path in DISTRIBUTIONS if path.parent.name == "sqe-plugins"]


def run(*command: object, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
        env={**os.environ, **environ},
    )


def side_by_side(do: Callable[[Any], None], what: Iterable[Any]) -> None:
    """Most of the time of a build and of an installation is spent waiting."""
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(do, one) for one in what]:
            each.result()


def path_without_java(folder: Path) -> Path:
    """The commands of the system, such as the chmod that Hadoop calls, and no Java."""
    commands = folder / "bin"
    commands.mkdir()
    for name in ("bash", "sh", "chmod", "ls", "id", "whoami", "uname", "readlink", "stat", "ln", "cat", "env"):
        found = shutil.which(name)
        if found:
            (commands / name).symlink_to(found)
    return commands


def ours_below(name: str) -> list[str]:
    """The distributions of this repository that one of them says it needs; all others come from the index."""
    folder = ROOT / "sqe-plugins" / name if name in PLUGINS else ROOT / name
    with (folder / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    names = [re.split(r"[^a-z0-9-]", requirement, maxsplit=1)[0] for requirement in needed]
    return [name for name in names if name in {path.name for path in DISTRIBUTIONS}]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every distribution, built afresh from a copy: a build must not need files that only a checkout has."""
    folder = tmp_path_factory.mktemp("wheels")

    def build(source: Path) -> None:
        copy = folder / "sources" / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "tests"))
        built = run("uv", "build", "--wheel", "--out-dir", folder, copy)
        assert built.returncode == 0, built.stderr

    side_by_side(build, DISTRIBUTIONS)
    return folder


@pytest.fixture(scope="session")
def environments(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A clean environment for the core alone and for each plugin beside it; the Python of each."""
    folder = tmp_path_factory.mktemp("alone")

    def install(name: str) -> None:
        python = folder / name / "bin" / "python"
        assert run("uv", "venv", "--python", sys.executable, folder / name).returncode == 0
        if name in PLUGINS:
            # What the core needs lies in uv's cache by now. Asked anew, it fetches and builds Spark each time.
            core = map(wheel_of, ("sqe-core", *ours_below("sqe-core")))
            assert run("uv", "pip", "install", "--offline", "--python", python, *core).returncode == 0
        needed = (f"sqe-{name}" if name in PLUGINS else name, *ours_below(name))
        installed = run("uv", "pip", "install", "--python", python, *map(wheel_of, needed))
        assert installed.returncode == 0, installed.stderr

    def wheel_of(name: str) -> Path:
        (wheel,) = wheels.glob(f"{name.replace('-', '_')}-*.whl")
        return wheel

    install("sqe-core")
    side_by_side(install, PLUGINS)
    return {name: folder / name / "bin" / "python" for name in ("sqe-core", *PLUGINS)}


@pytest.fixture(scope="session")
def python(environments: Mapping[str, Path]) -> Path:
    """The Python beside which the core is alone."""
    return environments["sqe-core"]


def test_the_core_carries_its_data_files(wheels: Path) -> None:
    (wheel,) = wheels.glob("sqe_core-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("sqe_core/py.typed", "sqe_core/engine/spark/jars.lock.toml"):
        assert needed in names
    assert any(name.startswith("sqe_core/engine/spark/bridge/") and name.endswith(".java") for name in names)
    assert any(name.startswith("sqe_core/query/judge/allowed/") and name.endswith(".txt") for name in names)
    assert not any("test_" in Path(name).name for name in names)


def test_the_core_alone_lists_its_plugins(python: Path) -> None:
    listed = run(python.parent / "sqe", "plugins", "list")
    assert listed.returncode == 0, listed.stderr
    assert "sqlite" in listed.stdout


def test_the_core_alone_answers_a_query(python: Path, tmp_path: Path) -> None:
    answered = run(
        python.parent / "sqe-cli",
        *("--warehouse", tmp_path / "warehouse", "-f", "csv", "-e"),
        "CREATE TABLE t AS SELECT 41 + 1 AS answer; SELECT answer FROM t",
        PATH=f"{python.parent}:{path_without_java(tmp_path)}",
        JAVA_HOME="",
        SQE_ENGINE__CLASS_ARCHIVE="use",
    )
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout == "answer\n42\n"


@pytest.mark.parametrize("plugin", PLUGINS)
def test_each_plugin_works_alone_beside_the_core(environments: Mapping[str, Path], plugin: str) -> None:
    name, python = f"sqe-{plugin}", environments[plugin]
    listed = run(python.parent / "sqe", "plugins", "list")
    rows = [line.split() for line in listed.stdout.splitlines() if name in line.split()]
    assert {row[-1] for row in rows} == {"installed"}  # one for each kind
    used = "import sys; from sqe_core.plugins.manager import PluginManager; PluginManager().plugin(sys.argv[1])"
    loaded = run(python, "-c", used, plugin)
    assert loaded.returncode == 0, loaded.stderr
