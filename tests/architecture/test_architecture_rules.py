"""Every rule has a test that names it, and the page that says so is current."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rule_table", Path(__file__).with_name("rule_table.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_rule_has_a_test_or_a_reason(table: ModuleType) -> None:
    rules, tested = table.rules(), table.collect()
    assert len(rules) == len(set(rules))
    assert set(rules) - tested.keys() == set(table.UNTESTED), "these have neither a test nor a reason, or both"


def test_tests_and_sources_name_rules_that_there_are(table: ModuleType) -> None:
    assert not table.collect().keys() - set(table.rules())
    families = {rule.partition("-")[0] for rule in table.rules()}
    named = re.compile(rf"\b(?:{'|'.join(families)})-[0-9]+\b")
    unknown = {
        (path.relative_to(table.ROOT).as_posix(), rule)
        for folder in ("sqe-core/src", "sqe-http/src", "sqe-plugins", "docs")
        for path in (table.ROOT / folder).rglob("*")
        if path.suffix in (".py", ".java", ".md")
        for rule in named.findall(path.read_text(encoding="utf-8"))
        if rule not in table.rules()
    }
    assert not unknown


def test_the_page_is_current(table: ModuleType) -> None:
    current = table.PAGE.read_text(encoding="utf-8") if table.PAGE.exists() else ""
    assert current == table.render(table.collect()), "run python tests/architecture/rule_table.py"


def test_a_marker_is_found_where_pytest_finds_it(table: ModuleType) -> None:
    import ast

    text = """
@pytest.mark.rule("A-1")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("B-2"))])
def test_x(x): ...
pytestmark = [pytest.mark.rule("C-3")]
other = mark.rule("D-4")
"""
    assert set(table.markers_of(ast.parse(text))) == {"A-1", "B-2", "C-3"}
