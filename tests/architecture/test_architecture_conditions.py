"""The conditions of errors (`SqeError.condition`) are those that a protocol tells, and tell no more than the texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sqe_core.query.errors.templates import Template, templates

ROOT = Path(__file__).parents[2]
CORE = ROOT / "sqe-core" / "src" / "sqe_core"
NAMES = ROOT / "sqe-plugins" / "protocol-trino" / "src" / "sqe_protocol_trino" / "error_names.py"


def listed() -> set[str]:
    """Return the words of the table in Trino's plugin."""
    for node in ast.parse(NAMES.read_text("utf-8")).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "CONDITIONS" and node.value is not None:
            return set(ast.literal_eval(node.value))
    raise AssertionError("error_names.py has no CONDITIONS")


def of_templates() -> Iterator[Template]:
    known = templates()
    yield from known.spark.values()
    yield from known.java.values()
    yield from (template for _, template in known.texts)


def in_the_source() -> Iterator[str]:
    """Return every text that is given as a condition, or as a default of one."""
    for file in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in ("condition", "unknown"):
                yield from _words(node.value)
            elif isinstance(node, ast.arguments):
                defaults = zip(node.kwonlyargs, node.kw_defaults, strict=True)
                for each in (default for name, default in defaults if name.arg == "unknown" and default is not None):
                    yield from _words(each)
            elif isinstance(node, ast.FunctionDef) and node.name == "condition":
                for each in (inside for inside in ast.walk(node) if isinstance(inside, ast.Return)):
                    yield from _words(each)


def _words(node: ast.AST) -> Iterator[str]:
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))
    yield from (text for text in texts if text.isidentifier() and text.isupper())


def test_conditions_are_those_that_trino_has_a_number_for() -> None:
    used = {each.condition for each in of_templates() if each.condition} | set(in_the_source())
    assert used == listed()


def test_a_condition_says_nothing_that_the_text_does_not() -> None:
    """So whoever makes an error happen inside of a policy learns no more from the name than from the sentence."""
    seen: dict[tuple[str, str], str | None] = {}
    for each in of_templates():
        key = each.code.name, each.text
        assert seen.setdefault(key, each.condition) == each.condition, key


def test_what_may_be_a_denial_has_no_condition() -> None:
    denials = [each for each in of_templates() if each.error("x", code=each.code).may_be_denial]
    assert denials
    assert [each.text for each in denials if each.condition] == []
