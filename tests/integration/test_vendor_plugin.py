"""A vendor's distribution in an environment of its own: found, listed, tested by its own contract tests, and harmless
to everybody else when it is broken.

The environment is new; what sqe-core and the plugin need is taken from the one that runs the tests, so nothing is
downloaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqe_core.spi import SPI_VERSION

REPOSITORY = Path(__file__).resolve().parents[2]
VENDOR = REPOSITORY / "tests" / "vendor" / "acme"


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of its commands."""
        call = [str(self.folder / "bin" / command), *arguments]
        return subprocess.run(call, capture_output=True, text=True, timeout=120, cwd=self.folder)

    def install(self, *sources: Path) -> None:
        """Build and install distributions, without what they depend on."""
        uv = find_uv()
        installer: Sequence[str] = (
            [uv, "pip", "install", "--python", str(self.python), "--offline"]
            if uv
            else [str(self.python), "-m", "pip", "install", "--no-index", "--disable-pip-version-check"]
        )
        call = [*installer, "-q", "--no-deps", "--no-build-isolation", *map(str, sources)]
        subprocess.run(call, check=True, capture_output=True, text=True, timeout=120)

    def rows(self) -> list[list[str]]:
        """Return the rows of `sqe plugins list`."""
        answer = self.run("sqe", "plugins", "list")
        assert answer.returncode == 0, answer.stderr
        return [line.split(None, 6) for line in answer.stdout.splitlines()[1:]]


def find_uv() -> str | None:
    """Return uv, when there is one."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def copy_source(source: Path, target: Path) -> Path:
    """Copy a distribution, so that building it leaves nothing in the working tree."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist"))
    return target


def borrow(folder: Path) -> Path:
    """Link what the running environment has installed, but for the distributions of this repository."""
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        origin = entry / "direct_url.json"
        if not (origin.exists() and json.loads(origin.read_text()).get("dir_info", {}).get("editable")):
            (folder / entry.name).symlink_to(entry)
    return folder


def new_environment(folder: Path) -> Environment:
    """Make an environment that has sqe-core, and what it stands on, as wheels."""
    environment = Environment(folder / "venv")
    uv = find_uv()
    make = [uv, "venv", "-q", "--offline", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
    subprocess.run([*make, str(environment.folder)], check=True, capture_output=True, timeout=120)
    purelib = environment.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    # Third-party libraries of the running environment; what is installed here comes first.
    (Path(purelib) / "borrowed.pth").write_text(f"{borrow(folder / 'borrowed')}\n")
    environment.install(*(copy_source(REPOSITORY / name, folder / name) for name in ("sqe-http", "sqe-core")))
    return environment


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """sqe-core and the vendor's plugin."""
    folder = tmp_path_factory.mktemp("vendor")
    environment = new_environment(folder)
    environment.install(copy_source(VENDOR, folder / "acme"))
    return environment


def test_plugin_is_listed_beside_the_core(environment: Environment) -> None:
    rows = environment.rows()
    assert ["catalog", "folder", "acme", "acme-sqe", "1.0.0", "1.0", "installed"] in rows
    assert ["auth", "badge", "acme", "acme-sqe", "1.0.0", "1.0", "installed"] in rows
    assert ["catalog", "sqlite", "core", "sqe-core"] in [row[:4] for row in rows]


def test_listing_does_not_import_the_plugin(environment: Environment) -> None:
    code = (
        "import sys; from sqe_core.plugins.listing import main_list; main_list();"
        " print('imported:', 'acme_sqe' in sys.modules)"
    )
    assert "imported: False" in environment.run("python", "-c", code).stdout


def test_plugin_passes_its_contract_tests(environment: Environment) -> None:
    tests = copy_source(VENDOR / "tests", environment.folder / "acme-tests")
    answer = environment.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(tests))
    assert answer.returncode == 0, answer.stdout
    assert "passed" in answer.stdout


def test_kind_can_be_used(environment: Environment) -> None:
    code = (
        "from sqe_core.plugins.manager import PluginManager; from sqe_core.spi import *;"
        " factory = PluginManager().catalog('folder');"
        " config = factory.attach(AttachRequest(name='x', location='/srv/tables'));"
        " print(factory.create('x', config, CatalogContext()).uri)"
    )
    assert environment.run("python", "-c", code).stdout == "file:///srv/tables\n"


def test_broken_variants_do_not_break_the_list(environment: Environment, tmp_path: Path) -> None:
    first = "import annotations"
    future = variant("future", tmp_path, {"pyproject.toml": ('"1.0" = "', '"9.0" = "')})
    needy = variant("needy", tmp_path, {"src/acme_needy/plugin.py": (first, f"{first}\nimport no_such_module_5d1f")})
    environment.install(future, needy)
    rows = {(row[1], row[2]): row[6] for row in environment.rows()}
    assert rows["folder", "acme"] == "installed"
    assert rows["folder-future", "future"] == f"broken: needs SPI 9.0, this is {SPI_VERSION}"
    # Nothing is imported for the list; what is missing shows when the kind is used.
    assert rows["folder-needy", "needy"] == "installed"
    for name, text in (
        ("future", f"The plugin future (acme-future 1.0.0): needs SPI 9.0, this is {SPI_VERSION}"),
        (
            "needy",
            "The plugin needy (acme-needy 1.0.0): is installed, but needs the Python module 'no_such_module_5d1f'",
        ),
    ):
        code = f"from sqe_core.plugins.manager import PluginManager; PluginManager().catalog('folder-{name}')"
        answer = environment.run("python", "-c", code)
        assert answer.returncode != 0
        assert text in answer.stderr


TUTORIAL = REPOSITORY / "docs" / "write-your-first-plugin.md"
BLOCK = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


def test_tutorial_works_as_written(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """Every block of the page: files are written, commands are run, shown output is compared."""
    environment = new_environment(tmp_path_factory.mktemp("tutorial"))
    ran = []
    for block in BLOCK.finditer(TUTORIAL.read_text("utf-8")):
        if (block["title"] or "").startswith("tests/vendor/"):
            # One of the plugins that stand there, which have tests of their own.
            assert block["text"] in (REPOSITORY / block["title"]).read_text("utf-8"), block["title"]
        elif block["title"]:
            file = tmp_path / block["title"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block["text"], "utf-8")
        elif block["language"] == "console":
            for command, expected in console_steps(block["text"]):
                if command == "pip install .":
                    environment.install(tmp_path)
                else:
                    check_step(environment, tmp_path, command, expected)
                ran.append(command)
        elif block["text"].startswith("class "):
            check_fragment(environment, tmp_path, block["text"])
            ran.append("fragment")
    assert ran == ["pip install .", "sqe plugins list", "sqe config check -c sqe.toml", "pytest -q tests", "fragment"]


def console_steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Split a console block into commands and the lines that they print."""
    for step in text.split("$ ")[1:]:
        command, *expected = step.splitlines()
        yield command, expected


def check_step(environment: Environment, folder: Path, command: str, expected: Sequence[str]) -> None:
    """Run a command; every shown line has to be printed, `…` stands for any others."""
    path = f"{environment.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # pytest itself is borrowed and has no script in the new environment.
    command = command.replace("pytest ", "python -m pytest -c /dev/null -p no:cacheprovider ")
    answer = subprocess.run(
        command, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    printed = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    shown = [" ".join(line.split()) for line in expected if line != "…"]
    assert [line for line in shown if line not in printed] == []
    if expected and "…" not in expected:
        assert printed == shown


def check_fragment(environment: Environment, folder: Path, text: str) -> None:
    """Append a fragment to the tests, where it stands for a strict known fault: the plugin has none, so it fails."""
    test = folder / "tests" / "test_fragment.py"
    test.write_text((folder / "tests" / "test_folder_contract.py").read_text("utf-8"), "utf-8")
    body = text.partition("\n")[2]
    test.write_text(f"{test.read_text('utf-8')}\n{body}", "utf-8")
    answer = environment.run("python", "-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", str(test))
    assert "1 failed" in answer.stdout, answer.stdout
    assert "[XPASS(strict)] https://example.com/issues/7" in answer.stdout


def variant(name: str, folder: Path, changes: dict[str, tuple[str, str]]) -> Path:
    """Copy the plugin under another name, and damage it."""
    source = copy_source(VENDOR, folder / name)
    (source / "src" / "acme_sqe").rename(source / "src" / f"acme_{name}")
    for file in [source / "pyproject.toml", *source.glob("src/*/*.py")]:
        text = file.read_text().replace("acme_sqe", f"acme_{name}").replace("acme-sqe", f"acme-{name}")
        text = text.replace('acme = "', f'{name} = "').replace("catalog.folder", f"catalog.folder-{name}")
        text = text.replace("auth.badge", f"auth.badge-{name}").replace('kind = "folder"', f'kind = "folder-{name}"')
        file.write_text(text.replace('kind = "badge"', f'kind = "badge-{name}"'))
    for file_name, (old, new) in changes.items():
        file = source / file_name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new, 1))
    return source
