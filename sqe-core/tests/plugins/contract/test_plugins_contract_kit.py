"""The contract kit tests itself: whole fakes pass, and each broken one fails the test that it was made to break."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sqe_core.testing import (
    AuthProviderContract,
    CatalogContract,
    Contract,
    GrantStoreContract,
    LineageSinkContract,
    ObserverContract,
    PolicyEnforcerContract,
    ProtocolContract,
)

FAKES = sorted(Path(__file__).parent.glob("contract_fakes*.py"))
CONTRACTS = (
    AuthProviderContract,
    CatalogContract,
    GrantStoreContract,
    LineageSinkContract,
    ObserverContract,
    PolicyEnforcerContract,
    ProtocolContract,
)


CLASSES: Mapping[str, type[Contract]] = {
    name: value
    for file in FAKES
    for name, value in vars(importlib.import_module(file.stem)).items()
    if name.startswith("Test") and isinstance(value, type)
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, str]]:
    """What each test of each class did: passed, failed, skipped."""
    report = tmp_path_factory.mktemp("kit") / "report.xml"
    command = [sys.executable, "-m", "pytest", *map(str, FAKES), "-q", "-n", "4", "-p", "no:cacheprovider"]
    command += [f"--junit-xml={report}", "-c", "/dev/null", "--rootdir", str(FAKES[0].parent)]
    subprocess.run(command, capture_output=True, timeout=280)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for case in ElementTree.parse(report).iter("testcase"):
        marks = {child.tag for child in case}
        outcome = "failed" if marks & {"failure", "error"} else "skipped" if "skipped" in marks else "passed"
        name = str(case.get("classname")).rpartition(".")[2]
        found[name][str(case.get("name"))] = outcome
    return found


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_contract_finds_exactly_what_is_broken(name: str, outcomes: Mapping[str, Mapping[str, str]]) -> None:
    failed = {test for test, outcome in outcomes[name].items() if outcome == "failed"}
    assert outcomes[name], "nothing ran"
    assert failed == set(getattr(CLASSES[name], "breaks", ()))


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_a_contract_catches_broken_variants(contract: type[Contract]) -> None:
    assert sum(issubclass(each, contract) and hasattr(each, "breaks") for each in CLASSES.values()) >= 5


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_every_test_of_a_contract_can_fail(contract: type[Contract]) -> None:
    """A test that no broken fake fails proves nothing."""
    # These three fail only together with all others: without them nothing else can be asked.
    needed_by_all = {"test_allowed", "test_starts_on_a_real_port", "test_rows"}
    names = {name for name in dir(contract) if name.startswith("test_")}
    of_factories = {"TestMutableConfig", "TestUnresolvableConfig", "TestOddKind", "TestMakesAFile"}
    broken = {
        test
        for name, candidate in CLASSES.items()
        if issubclass(candidate, contract) or name in of_factories
        for test in getattr(candidate, "breaks", ())
    }
    assert names - broken <= needed_by_all


def test_overriding_a_test_fails() -> None:
    with pytest.raises(TypeError, match="TestLazy overrides test_names_are_clean of the contract"):

        class TestLazy(AuthProviderContract):
            def test_names_are_clean(self) -> None: ...  # type: ignore[override]


def test_overriding_through_a_class_between_fails() -> None:
    class Between(AuthProviderContract):
        pass

    with pytest.raises(TypeError, match="overrides test_names_are_clean"):

        class TestLazy(Between):
            test_names_are_clean = None  # type: ignore[assignment]


@pytest.mark.parametrize("marks", [{"strict": True}, {"reason": "later"}, {"reason": "later", "strict": False}])
def test_a_vague_excuse_fails(marks: dict[str, object]) -> None:
    @pytest.mark.xfail(**marks)
    def excuse(self: object) -> None: ...

    with pytest.raises(TypeError, match="overrides"):
        type("TestLazy", (AuthProviderContract,), {"test_names_are_clean": excuse})


def test_own_tests_may_be_added() -> None:
    class TestMore(AuthProviderContract):
        def test_something_of_mine(self) -> None: ...

    assert issubclass(TestMore, AuthProviderContract)


def test_unknown_capability_fails() -> None:
    with pytest.raises(TypeError, match="unknown capabilities refreshes; known: browser_login"):

        class TestTypo(AuthProviderContract):
            capabilities = frozenset({"refreshes"})


@pytest.mark.parametrize(
    "module", ["auth", "catalog", "contract", "fakes", "grants", "lineage", "observer", "plugin", "policy", "protocol"]
)
def test_examples_of_the_kit_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"sqe_core.testing.{module}")).failed == 0
