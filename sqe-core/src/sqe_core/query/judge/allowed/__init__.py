"""The lists that decide what may stand in a plan: reviewed text files, read once. What is on no list is refused.

Each file holds sections; see the comment at its top. The lists belong to the Spark and Iceberg versions that they were
reviewed for (OBS-9); ENF-6 says why they are allow-lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sqe_core.sql.statement import StatementKind

REVIEWED_SPARK = "4.1.4"
REVIEWED_ICEBERG = "1.12.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanClasses:
    """The plan classes of one moment: parsed, or analysed."""

    query: frozenset[str]
    commands: Mapping[StatementKind, frozenset[str]]
    parts: Mapping[StatementKind, frozenset[str]]

    def of(self, kind: StatementKind) -> frozenset[str]:
        return self.query | self.commands.get(kind, frozenset()) | self.parts.get(kind, frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    parsed: PlanClasses
    analysed: PlanClasses
    denied: Mapping[str, str]
    """Class name to the text that the user reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expressions:
    parsed: frozenset[str]
    analysed: frozenset[str]
    denied: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Expression classes in policies; what is allowed in queries is allowed there, but for those denied here."""

    never_raises: frozenset[str]
    denied: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    callable: frozenset[str]
    table: frozenset[str]
    transforms: frozenset[str]
    denied: Mapping[str, str]
    denied_table: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionOptions:
    """Which argument of a function may be a map of options, and the keys it may hold, in lower case."""

    position: int
    keys: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyValue:
    """What the value of a property may be: one of some words, or a number of a range."""

    words: tuple[str, ...] = ()
    least: float = 0
    most: float = 0
    whole: bool = False

    def fits(self, value: str) -> bool:
        if self.words:
            return value.lower() in self.words
        if self.whole:
            return re.fullmatch(r"-?[0-9]{1,19}", value) is not None and self.least <= int(value) <= self.most
        return re.fullmatch(r"[0-9]*\.[0-9]{1,19}", value) is not None and self.least < float(value) < self.most

    def __str__(self) -> str:
        if self.words:
            return "one of " + ", ".join(self.words)
        kind = "a whole number from" if self.whole else "a number between"
        return f"{kind} {self.least} {'to' if self.whole else 'and'} {self.most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    allowed: frozenset[str]
    allowed_prefixes: tuple[str, ...]
    values: Mapping[str, PropertyValue]
    denied: Mapping[str, str]
    denied_prefixes: Mapping[str, str]

    def value_of(self, key: str) -> PropertyValue | None:
        """Return what the value of a key may be; None when it may be anything."""
        prefixes = (value for entry, value in self.values.items() if entry[-1] == "*" and key.startswith(entry[:-1]))
        return self.values.get(key) or next(prefixes, None)

    def refusal(self, key: str) -> str | None:
        """Return why a key may not be set; an empty text when it is unknown; None when it may."""
        if key in self.allowed or key.startswith(self.allowed_prefixes):
            return None
        if key in self.denied:
            return self.denied[key]
        return next((reason for prefix, reason in self.denied_prefixes.items() if key.startswith(prefix)), "")


@cache
def plans() -> Plans:
    return Plans(parsed=_plan_classes("parsed"), analysed=_plan_classes("analysed"), denied=_denied("plans.txt"))


def _plan_classes(moment: str) -> PlanClasses:
    query: set[str] = set()
    roots: dict[StatementKind, frozenset[str]] = {}
    parts: dict[StatementKind, frozenset[str]] = {}
    for words, names in _listed("plans.txt"):
        if moment in words and words[0] in ("command", "part"):
            table, kind = roots if words[0] == "command" else parts, StatementKind(words[1])
            table[kind] = table.get(kind, frozenset()) | set(names)
        elif moment in words:
            query.update(names)
    return PlanClasses(query=frozenset(query), commands=roots, parts=parts)


@cache
def expressions() -> Expressions:
    def of(moment: str) -> frozenset[str]:
        return frozenset(name for words, names in _listed("expressions.txt") if moment in words for name in names)

    return Expressions(parsed=of("parsed"), analysed=of("analysed"), denied=_denied("expressions.txt"))


@cache
def policies() -> Policies:
    found = dict(_sections("policies.txt"))
    return Policies(never_raises=frozenset(found["never raises"]), denied=frozenset(found["denied"]))


@cache
def functions() -> Functions:
    """Return the lists of function names, in lower case."""
    found: dict[str, set[str]] = {}
    for (kind, *_), names in _listed("functions.txt"):
        found.setdefault(kind, set()).update(names)
    table, transforms = found.pop("table"), found.pop("transform")
    return Functions(
        callable=frozenset().union(*found.values()),
        table=frozenset(table),
        transforms=frozenset(transforms),
        denied=_denied("functions.txt"),
        denied_table=_denied("functions.txt", "denied table: "),
    )


@cache
def function_options() -> Mapping[str, FunctionOptions]:
    options = {}
    for section, keys in _sections("options.txt"):
        what, position, *names = section.split()
        for name in names if what == "options" else ():
            options[name] = FunctionOptions(position=int(position), keys=frozenset(key.lower() for key in keys))
    return options


@cache
def schema_arguments() -> Mapping[str, int]:
    """Return which argument of a function is a type as text."""
    sections = (section.split() for section, _ in _sections("options.txt"))
    return {name: int(position) for what, position, *names in sections if what == "schema" for name in names}


@cache
def hints() -> frozenset[str]:
    """Return the hints that the engine follows, in upper case."""
    return frozenset(name for _, names in _sections("hints.txt") for name in names)


@cache
def table_properties() -> TableProperties:
    allowed: set[str] = set()
    values: dict[str, PropertyValue] = {}
    denied = _denied("table_properties.txt")
    for (kind, *words), keys in _listed("table_properties.txt"):
        if kind == "allowed":
            allowed.update(keys)
        elif kind == "word":
            values |= dict.fromkeys(keys, PropertyValue(words=tuple(words)))
        else:
            least, most = map(int, words or ("0", "1"))
            values |= dict.fromkeys(keys, PropertyValue(least=least, most=most, whole=kind == "whole"))
    return TableProperties(
        allowed=frozenset(key for key in allowed if not key.endswith("*")),
        allowed_prefixes=tuple(sorted(key[:-1] for key in allowed if key.endswith("*"))),
        values=values,
        denied={key: reason for key, reason in denied.items() if not key.endswith("*")},
        denied_prefixes={key[:-1]: reason for key, reason in denied.items() if key.endswith("*")},
    )


def _listed(name: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words of each heading, and the names below it, but for what is denied."""
    return ((heading.split(), names) for heading, names in _sections(name) if not heading.startswith("denied"))


def _denied(name: str, prefix: str = "denied: ") -> Mapping[str, str]:
    """Return the text that the user reads, by the names that are denied."""
    return {
        each: heading.removeprefix(prefix)
        for heading, names in _sections(name)
        if heading.startswith(prefix)
        for each in names
    }


def _sections(name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of a list: the text of the heading, and the names below it, with their package."""
    heading: str | None = None
    names: list[str] = []
    package = ""
    for line in files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            if heading is not None:
                yield heading, names
            heading, names, package = line[1:-1], [], ""
        elif line.startswith("package "):
            package = line.removeprefix("package ") + "."
        elif heading is None:
            raise ValueError(f"{name}: {line} stands outside of a section")
        else:
            names.append(package + line)
    if heading is not None:
        yield heading, names
