"""The functions of the sqe and trino dialects: data in functions.toml and templates.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

TEMPLATE_PREFIX = "_sqe_"
TABLE_TEMPLATES = frozenset(("_sqe_unnest",))  # made by bridge/functions/UnnestFunction.java

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")
_ARGUMENT = re.compile(r"\{([0-9])\}")
_TEMPLATE_ARGUMENT = re.compile(r"__a([0-9])")


@dataclass(frozen=True, slots=True)
class Function:
    """How one function is documented and written."""

    name: str
    kind: str  # scalar, aggregate, window or table
    signature: str
    spark: str | Mapping[int, str]

    def parameter(self, at: int) -> str:
        """The first word of what the signature says of an argument, such as `array`."""
        said = self.signature.partition("(")[2].split(", ")
        if said[-1].startswith("...") and at >= len(said) - 1:
            at = len(said) - 2
        return re.split(r"\W", said[at], maxsplit=1)[0] if at < len(said) else ""

    def text_for(self, count: int) -> str | None:
        """What stands for a call with so many arguments; None when there is no such call."""
        if isinstance(self.spark, str):
            return self.spark
        return self.spark.get(count)


def find(name: str, kind: str | None = None) -> Function | None:
    """Return a function by its name, table functions only when asked for."""
    return _functions().get((name, "table" if kind == "table" else "any"))


@cache
def refused() -> Mapping[str, str]:
    """Return what is said instead of functions that Trino has and SQE has not, by their names."""
    told = tomllib.loads(_read("functions.toml"))["refused"]
    return MappingProxyType({name: hint for hint, names in told.items() for name in names})


def similar(name: str) -> str | None:
    """Return the known name that is most like this one."""
    from difflib import get_close_matches

    known = [known for known, space in _functions() if space == "any"]
    found = get_close_matches(name, known, n=1, cutoff=0.75)
    return found[0] if found else None


def documented() -> tuple[tuple[str, str, str], ...]:
    """Return (name, kind, signature) of every function, sorted by name."""
    return tuple(sorted((one.name, one.kind, one.signature) for one in _functions().values()))


def template_names() -> frozenset[str]:
    """Return the names of the typed templates that translated text may call."""
    return frozenset(templates()) | TABLE_TEMPLATES


@cache
def templates() -> Mapping[str, Mapping[str, str]]:
    """Return the typed templates: name, then types of the arguments, then template."""
    return MappingProxyType(tomllib.loads(_read("templates.toml")))


@cache
def copies(name: str) -> int:
    """How often a template repeats an argument, at most; nesting multiplies it."""
    most = 1
    for template in templates().get(name, {}).values():
        numbers = _TEMPLATE_ARGUMENT.findall(template)
        repeated = max((numbers.count(number) for number in set(numbers)), default=1)
        most = max(most, repeated + ("{nulls}" in template) + 2 * ("{numbers}" in template))
    return most


@cache
def _functions() -> Mapping[tuple[str, str], Function]:
    found: dict[tuple[str, str], Function] = {}
    for kind, entries in tomllib.loads(_read("functions.toml")).items():
        if kind == "refused":
            continue
        for name, (signature, spark) in entries.items():
            space = "table" if kind == "table" else "any"
            found[name, space] = Function(name, kind, signature, _by_count(spark))
    return MappingProxyType(found)


def _by_count(spark: Any) -> str | Mapping[int, str]:
    if isinstance(spark, str):
        return spark
    return MappingProxyType({int(count): text for count, text in spark.items()})


def repeated(text: str) -> int:
    """How often an expression of functions.toml repeats an argument, at most."""
    numbers = _ARGUMENT.findall(text)
    return max((numbers.count(number) for number in set(numbers)), default=1)


def is_name(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None


def _read(name: str) -> str:
    return files("sqe_core.sql.spark").joinpath(name).read_text("utf-8")
