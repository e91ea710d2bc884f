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
    query: dict[str, set[str]] = {"parsed": set(), "analysed": set()}
    roots: dict[str, dict[StatementKind, set[str]]] = {"parsed": {}, "analysed": {}}
    parts: dict[str, dict[StatementKind, set[str]]] = {"parsed": {}, "analysed": {}}
    denied: dict[str, str] = {}
    for section, names in _sections("plans.txt"):
        words = section.split()
        if section.startswith("denied: "):
            denied.update(dict.fromkeys(names, section.removeprefix("denied: ")))
        elif words[0] in ("command", "part"):
            table = roots if words[0] == "command" else parts
            for moment in words[2:]:
                table[moment].setdefault(StatementKind(words[1]), set()).update(names)
        else:
            for moment in words:
                query[moment].update(names)

    def classes(moment: str) -> PlanClasses:
        return PlanClasses(
            query=frozenset(query[moment]),
            commands={kind: frozenset(names) for kind, names in roots[moment].items()},
            parts={kind: frozenset(names) for kind, names in parts[moment].items()},
        )

    return Plans(parsed=classes("parsed"), analysed=classes("analysed"), denied=denied)


@cache
def expressions() -> Expressions:
    allowed: dict[str, set[str]] = {"parsed": set(), "analysed": set()}
    denied: dict[str, str] = {}
    for section, names in _sections("expressions.txt"):
        if section.startswith("denied: "):
            denied.update(dict.fromkeys(names, section.removeprefix("denied: ")))
        else:
            for moment in section.split():
                allowed[moment].update(names)
    return Expressions(parsed=frozenset(allowed["parsed"]), analysed=frozenset(allowed["analysed"]), denied=denied)


@cache
def policies() -> Policies:
    found = {section: frozenset(names) for section, names in _sections("policies.txt")}
    return Policies(never_raises=found["never raises"], denied=found["denied"])


@cache
def functions() -> Functions:
    """Return the lists of function names, in lower case."""
    found: dict[str, set[str]] = {}
    denied: dict[str, str] = {}
    denied_table: dict[str, str] = {}
    for section, names in _sections("functions.txt"):
        if section.startswith("denied: "):
            denied.update(dict.fromkeys(names, section.removeprefix("denied: ")))
        elif section.startswith("denied table: "):
            denied_table.update(dict.fromkeys(names, section.removeprefix("denied table: ")))
        else:
            found.setdefault(section, set()).update(names)
    table, transforms = found.pop("table"), found.pop("transform")
    return Functions(
        callable=frozenset().union(*found.values()),
        table=frozenset(table),
        transforms=frozenset(transforms),
        denied=denied,
        denied_table=denied_table,
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
    denied: dict[str, str] = {}
    for section, keys in _sections("table_properties.txt"):
        if section == "allowed":
            allowed.update(keys)
        elif not section.startswith("denied: "):
            kind, *words = section.split()
            if kind == "word":
                value = PropertyValue(words=tuple(words))
            else:
                least, most = map(int, words or ("0", "1"))
                value = PropertyValue(least=least, most=most, whole=kind == "whole")
            values |= dict.fromkeys(keys, value)
        else:
            denied.update(dict.fromkeys(keys, section.removeprefix("denied: ")))
    return TableProperties(
        allowed=frozenset(key for key in allowed if not key.endswith("*")),
        allowed_prefixes=tuple(sorted(key[:-1] for key in allowed if key.endswith("*"))),
        values=values,
        denied={key: reason for key, reason in denied.items() if not key.endswith("*")},
        denied_prefixes={key[:-1]: reason for key, reason in denied.items() if key.endswith("*")},
    )


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
