"""Switches each protection off in turn, in a copy of the sources, and sees that a test notices.

tox -e mutations                                  all of them
python tests/mutations/run.py --only barrier      those with a word in their name or rules
python tests/mutations/run.py --part 2/6          a sixth of them
python tests/mutations/run.py --without-engine    those whose tests need no JVM
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from attached import VARIABLE
from table import ROOT, Edit, Mutation, read_mutations

COPIED = ("sqe-core", "sqe-bench", "sqe-http", "sqe-plugins", "tests", "docs", "pytest.ini", "mypy.ini", "ruff.toml")
TIMEOUT_SECS = 240


@dataclass(frozen=True)
class Outcome:
    """What the tests of a mutation said."""

    mutation: Mutation
    killed_by: str | None
    trouble: str
    seconds: float


class Copy:
    """A copy of the sources that is imported in the place of the real ones."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.root.mkdir()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy2(source, self.root / name)
        self._report = folder / "report.xml"
        self._cache = folder / "cache"
        self._prepare_cache()
        self._check_imports()

    def _prepare_cache(self) -> None:
        """Mutated bridges are compiled into a cache of their own: they would push the real ones out."""
        real = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sqe" / "jars"
        (self._cache / "sqe").mkdir(parents=True, mode=0o700)
        (self._cache / "sqe" / "jars").mkdir(mode=0o700)
        for jar in real.glob("*.jar"):
            shutil.copy2(jar, self._cache / "sqe" / "jars" / jar.name)

    def _environment(self, *, own_cache: bool = False) -> dict[str, str]:
        paths = [self.root / "tests" / "mutations"]
        paths += [self.root / name / "src" for name in ("sqe-core", "sqe-bench", "sqe-http")]
        paths += sorted((self.root / "sqe-plugins").glob("*/src"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
        if own_cache:
            environment["XDG_CACHE_HOME"] = str(self._cache)
        return environment

    def _check_imports(self) -> None:
        """Tests of the real sources would prove nothing."""
        for module in (
            "sqe_core",
            "sqe_http",
            "sqe_auth_aws",
            "sqe_auth_oidc",
            "sqe_catalog_polaris",
            "sqe_policy_opa",
            "sqe_policy_cedar",
        ):
            place = subprocess.run(
                [sys.executable, "-c", f"import {module}; print({module}.__file__)"],
                env=self._environment(),
                cwd=self.root,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            if not Path(place).is_relative_to(self.root):
                raise SystemExit(f"{module} is imported from {place}, not from the copy")

    @contextmanager
    def mutated(self, edits: Sequence[Edit]) -> Iterator[None]:
        """Apply the edits of one mutation and take them back."""
        before = {edit.file: (self.root / edit.file).read_text(encoding="utf-8") for edit in edits}
        try:
            for edit in edits:
                path = self.root / edit.file
                path.write_text(edit.applied_to(path.read_text(encoding="utf-8")), encoding="utf-8")
            yield
        finally:
            for file, text in before.items():
                (self.root / file).write_text(text, encoding="utf-8")

    def run(
        self, tests: Sequence[str], *, own_cache: bool = False, engine: str | None = None, timeout_secs: float
    ) -> tuple[int, str]:
        """Run tests in the copy until one fails; return pytest's exit code and the end of its output."""
        self._report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "--exitfirst", "-p", "no:cacheprovider"]
        command.append(f"--junit-xml={self._report}")
        environment = self._environment(own_cache=own_cache)
        if engine is not None:
            command += ["-p", "attached"]
            environment[VARIABLE] = engine
        try:
            done = subprocess.run(
                [*command, *tests],
                cwd=self.root,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout_secs,
            )
        except subprocess.TimeoutExpired:
            return -1, f"no end within {timeout_secs:.0f} s"
        return done.returncode, (done.stdout + done.stderr)[-1500:]

    def failed_test(self) -> str | None:
        """Return the first test that failed. One that could not be imported, or begun, is none."""
        if not self._report.exists():
            return None
        for case in ElementTree.parse(self._report).iter("testcase"):
            if case.find("failure") is not None:
                return f"{case.get('classname')}::{case.get('name')}"
        return None


def try_mutation(copy: Copy, mutation: Mutation, engine: str | None) -> Outcome:
    began = time.monotonic()
    with copy.mutated(mutation.edits):
        code, output = copy.run(
            mutation.tests,
            own_cache=mutation.changes_bridge,
            engine=None if mutation.changes_engine else engine,
            timeout_secs=TIMEOUT_SECS,
        )
        killed_by = copy.failed_test() if code == 1 else None
    trouble = "" if killed_by else "survived" if code == 0 else f"pytest ended with {code}: {output}"
    return Outcome(mutation, killed_by, trouble, time.monotonic() - began)


@contextmanager
def shared_engine(mutations: Sequence[Mutation]) -> Iterator[str | None]:
    """Start one engine, of the sources as they are, for all mutations that do not change it."""
    if not any(one.needs_engine and not one.changes_engine for one in mutations):
        yield None
        return
    from sqe_core.engine.spark.engine import EngineOptions, SparkEngine

    # As the fixture of the tests has it.
    engine = SparkEngine(EngineOptions(memory_bytes=2 << 30, jar_groups=frozenset({"aws"})))
    engine.start()
    try:
        engine.wait_ready(timeout_secs=600)
        process = engine._process
        assert process is not None
        yield f"{process.port}:{process.secret}:{process.pid}:{process.run_dir}"
    finally:
        engine.stop()


def chosen(arguments: argparse.Namespace) -> list[Mutation]:
    found = read_mutations()
    if arguments.only:
        found = [one for one in found if any(word in one.rules or word in one.name for word in arguments.only)]
    if arguments.without_engine:
        found = [one for one in found if not one.needs_engine]
    if arguments.with_engine:
        found = [one for one in found if one.needs_engine]
    if arguments.part:
        number, of = map(int, arguments.part.split("/"))
        found = found[number - 1 :: of]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a rule, or a word in the name; may be repeated")
    parser.add_argument("--part", help="2/6 runs the second sixth")
    parser.add_argument("--without-engine", action="store_true", help="only those whose tests need no JVM")
    parser.add_argument("--with-engine", action="store_true", help="only those whose tests need a JVM")
    parser.add_argument("--no-baseline", action="store_true", help="do not see first that the tests pass unchanged")
    arguments = parser.parse_args()
    mutations = chosen(arguments)
    with tempfile.TemporaryDirectory(prefix="sqe-mutations-") as folder, shared_engine(mutations) as engine:
        copy = Copy(Path(folder))
        if mutations and not arguments.no_baseline:
            tests = list(dict.fromkeys(test for one in mutations for test in one.tests))
            code, output = copy.run(tests, engine=engine, timeout_secs=3600)
            if code != 0:
                print(f"The tests fail without any mutation:\n{output}")
                return 2
        outcomes = []
        for mutation in mutations:
            outcomes.append(try_mutation(copy, mutation, engine))
            print(written(outcomes[-1]), flush=True)
    survivors = [one for one in outcomes if one.killed_by is None]
    print(f"\n{len(outcomes)} mutations, {len(survivors)} not noticed")
    for one in survivors:
        print(f"  {' '.join(one.mutation.rules)}: {one.mutation.name}: {one.trouble}")
    return 1 if survivors else 0


def written(outcome: Outcome) -> str:
    rules = " ".join(outcome.mutation.rules)
    return f"{rules:<24} {outcome.mutation.name:<60} {outcome.killed_by or outcome.trouble} ({outcome.seconds:.0f} s)"


if __name__ == "__main__":
    sys.exit(main())
