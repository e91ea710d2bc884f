"""Every rule of the query path has a test that names it, and the page that says so is current."""

from __future__ import annotations

import importlib.util
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


def test_every_rule_of_the_query_path_has_a_test(table: ModuleType) -> None:
    missing = table.RULES.keys() - table.collect().keys() - table.LATER.keys()
    assert not missing, f"no test is marked with {sorted(missing)}"


def test_rules_are_written_as_in_the_requirements(table: ModuleType) -> None:
    odd = [rule for rule in (*table.collect(), *table.RULES) if not table.is_rule(rule)]
    assert not odd
    assert table.LATER.keys() <= table.RULES.keys()


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
