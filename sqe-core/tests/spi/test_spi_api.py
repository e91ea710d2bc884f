"""The public surface of the SPI: what it is, what it imports, and that its examples run."""

from __future__ import annotations

import dataclasses
import doctest
import enum
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sqe_core.spi as spi
from sqe_core.spi import errors

SNAPSHOT = Path(__file__).parent / "spi_api.txt"
NAMES = sorted(name for name, value in vars(spi).items() if name[0] != "_" and not inspect.ismodule(value))
MODULES = sorted(module.name for module in pkgutil.iter_modules(spi.__path__, "sqe_core.spi."))


def describe_api() -> str:
    """Write every public name with its signature, a line each."""
    return "".join(f"{line}\n" for name in NAMES for line in describe(name, getattr(spi, name)))


def describe(name: str, thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        yield f"{name}{signature(thing)}" if inspect.isfunction(thing) else f"{name} = {constant(thing)}"
        return
    bases = [base.__name__ for base in thing.__bases__ if base is not object]
    yield f"class {name}({', '.join(bases)})"
    if issubclass(thing, enum.Enum):
        yield from (f"  {member.name} = {member.value!r}" for member in thing)
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            yield f"  {field.name}: {field.type}{' = ...' if optional else ''}"
    else:
        yield f"  __init__{signature(thing.__init__)}"
    for member, value in sorted(vars(thing).items()):
        if member.startswith("_") or isinstance(thing, type(enum.Enum)):
            continue
        if isinstance(value, (classmethod, staticmethod)):
            yield f"  {type(value).__name__} {member}{signature(value.__func__)}"
        elif inspect.isfunction(value):
            abstract = "abstract " if getattr(value, "__isabstractmethod__", False) else ""
            yield f"  {abstract}{member}{signature(value)}"
        elif isinstance(value, property):
            yield f"  property {member}{signature(value.fget)}"
        elif not inspect.ismemberdescriptor(value) and member in inspect.get_annotations(thing):
            yield f"  {member}: {inspect.get_annotations(thing)[member]} = {value!r}"


def signature(function: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(function)))


def constant(thing: Any) -> str:
    return re.sub(r"sqe_core\.spi\.\w+\.", "", re.sub(r" at 0x[0-9a-f]+", "", repr(thing)))


def test_api_is_the_recorded_one() -> None:
    """A change of the SPI is made on purpose: raise SPI_VERSION, write a change note, and record it with
    `python sqe-core/tests/spi/test_spi_api.py`."""
    assert describe_api() == SNAPSHOT.read_text(encoding="utf-8")


def test_snapshot_notices_a_changed_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(self: object, timeout_secs: int) -> None: ...

    monkeypatch.setattr(spi.AuthProvider, "check", check)
    assert describe_api() != SNAPSHOT.read_text(encoding="utf-8")


def test_all_names_every_public_definition() -> None:
    """What a module defines without an underscore is exported, or is on this list of exceptions."""
    internal = {"PROJECT", "hookspec", "ContextT", "ProductT", "keep_message", "message_of"}
    # Imported from their module: they need pyarrow, which importing the SPI shall not take time for.
    internal |= {"BatchBytes", "batch_bytes", "values_inside", "MOST_DICTIONARY_ENTRIES"}
    defined = set()
    for module_name in MODULES:
        for name, value in vars(importlib.import_module(module_name)).items():
            home = getattr(value, "__module__", None)
            if not name.startswith("_") and home == module_name:
                defined.add(name)
    assert defined - internal <= set(NAMES)


@pytest.mark.parametrize("module_name", MODULES)
def test_examples_run(module_name: str) -> None:
    module = importlib.import_module(module_name)
    names = {name: getattr(spi, name) for name in NAMES}
    assert doctest.testmod(module, extraglobs=names).failed == 0


@pytest.mark.parametrize("name", ["PolicyEnforcer", "AuthProvider", "CatalogBackend", "LineageSink", "SqePlugin"])
def test_what_vendors_implement_has_an_example(name: str) -> None:
    assert "Example:" in inspect.getdoc(getattr(spi, name))


def test_every_public_class_and_method_is_documented() -> None:
    bare = []
    for name in NAMES:
        thing = getattr(spi, name)
        if not inspect.isclass(thing):
            continue
        if not thing.__doc__ or thing.__doc__.startswith(f"{name}("):
            bare.append(name)
        for member, value in vars(thing).items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not member.startswith("_") and inspect.isfunction(function) and not function.__doc__:
                bare.append(f"{name}.{member}")
    assert not bare


def test_importing_the_spi_imports_nothing_heavy() -> None:
    heavy = ["pyarrow", "stevedore", "sqlglot", "py4j", "pyspark", "rich", "prompt_toolkit"]
    code = f"import sys, sqe_core.spi; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_error_tree_is_the_drawn_one() -> None:
    """The docstring draws the tree; the drawing is what is there."""
    drawn: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([\s│├└─]*)([A-Z]\w+Error)\b", line)
        if found is None:
            continue
        depth, name = len(found.group(1)), found.group(2)
        path = [entry for entry in path if entry[0] < depth]
        if path:
            drawn[name] = path[-1][1]
        path.append((depth, name))
    real = {
        name: thing.__bases__[0].__name__
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, errors.SqeError) and thing is not errors.SqeError
    }
    assert drawn == real


if __name__ == "__main__":
    SNAPSHOT.write_text(describe_api(), encoding="utf-8")
