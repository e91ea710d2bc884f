"""The table of mutations fits the sources, and no rule of enforcement is without one (`tox -e mutations` runs them)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

# How many rules each family of the security requirements has.
FAMILIES = {"ENF": 17, "META": 5, "VIEW": 7, "DML": 8, "ERR": 7, "ISO": 13, "POL": 15, "TEST": 9}
# Of these, some protections are switched off; not every rule has to be.
OTHERS = {"AUTHN": 10, "JWT": 9, "SESS": 7, "OBS": 9, "STMT": 9, "TRI": 9, "LIM": 12, "FLT": 7}


@pytest.fixture(scope="module")
def table() -> ModuleType:
    path = Path(__file__).parents[1] / "mutations" / "table.py"
    spec = importlib.util.spec_from_file_location("mutation_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_every_mutation_fits_the_sources(table: ModuleType) -> None:
    for mutation in table.read_mutations():
        texts: dict[str, str] = {}
        for edit in mutation.edits:
            text = texts.get(edit.file) or (table.ROOT / edit.file).read_text(encoding="utf-8")
            texts[edit.file] = edit.applied_to(text)
            assert texts[edit.file] != text, mutation.name
        for file, text in texts.items():
            if file.endswith(".py"):
                compile(text, file, "exec")


def test_every_mutation_names_tests_that_are_there(table: ModuleType) -> None:
    for mutation in table.read_mutations():
        assert mutation.tests, mutation.name
        for test in mutation.tests:
            file, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}" in (table.ROOT / file).read_text(encoding="utf-8"), test


def test_mutations_have_names_of_their_own(table: ModuleType) -> None:
    names = [mutation.name for mutation in table.read_mutations()]
    assert len(names) == len(set(names))


def test_every_rule_of_enforcement_is_switched_off_or_excepted(table: ModuleType) -> None:
    rules = {f"{family}-{number}" for family, count in FAMILIES.items() for number in range(1, count + 1)}
    mutated = {rule for mutation in table.read_mutations() for rule in mutation.rules}
    excepted = table.read_exceptions()
    others = {f"{family}-{number}" for family, count in OTHERS.items() for number in range(1, count + 1)}
    assert mutated <= rules | others
    assert not rules - mutated - excepted.keys(), "these have neither a mutation nor a reason"
    assert not mutated & excepted.keys(), "these have both"
    assert excepted.keys() <= rules
    assert all(excepted.values())


def test_a_mutation_that_fits_nowhere_or_twice_is_stale(table: ModuleType) -> None:
    edit = table.Edit(file="f", old="a", new="b")
    assert edit.applied_to("xay") == "xby"
    for text in ("xy", "aa"):
        with pytest.raises(table.StaleMutationError):
            edit.applied_to(text)
