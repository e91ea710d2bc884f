"""Which test covers which rule: collects the markers, and writes the lines `Tests: …` of docs/security-rules.md.

python tests/architecture/rule_table.py         write them
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security-rules.md"
TESTS = ("sqe-core/tests", "sqe-bench/tests", "sqe-http/tests", "sqe-plugins", "tests")
ATTACKS = ROOT / "tests" / "security" / "attacks.toml"

# Rules without a test, and why.
UNTESTED: Mapping[str, str] = {
    "ISO-13": "it is for operators: a server each",
}
_HEADING = re.compile(r"^### ([A-Z]+-[1-9][0-9]*)$", re.MULTILINE)
_TESTS = re.compile(r"^Tests: .*$", re.MULTILINE)


def rules() -> Sequence[str]:
    """Return the numbers of the rules, in the order of the page."""
    return _HEADING.findall(PAGE.read_text(encoding="utf-8"))


def test_files() -> Iterator[Path]:
    for folder in TESTS:
        yield from sorted((ROOT / folder).rglob("test_*.py"))


def markers_of(tree: ast.AST) -> Iterator[str]:
    """Yield the rule of every `pytest.mark.rule("…")` in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def collect() -> dict[str, set[str]]:
    """Return the test modules, and the corpus of attacks, that cover each rule."""
    found: dict[str, set[str]] = {}
    for path in test_files():
        for rule in markers_of(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(rule, set()).add(path.relative_to(ROOT).as_posix())
    with ATTACKS.open("rb") as file:
        for attack in tomllib.load(file)["attack"]:
            found.setdefault(attack["rule"], set()).add(ATTACKS.relative_to(ROOT).as_posix())
    return found


def render(found: Mapping[str, set[str]]) -> str:
    """Return the page with the tests of each rule."""
    head, *parts = re.split(r"(?=^### )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for place, part in enumerate(parts):
        rule = _HEADING.findall(part)[0]
        tests = ", ".join(f"[{name}](../{name})" for name in sorted(found.get(rule, ())))
        parts[place] = _TESTS.sub("Tests: " + (tests or f"none; {UNTESTED.get(rule, 'why?')}"), part, count=1)
    return head + "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(collect()), encoding="utf-8")
