"""The mutations: each switches one protection off. Read by the runner and by tests/architecture."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
CORE = "sqe-core/src/sqe_core"


class StaleMutationError(Exception):
    """A text that a mutation replaces is not there, or more than once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One text of one file, and what stands in its place."""

    file: str
    old: str
    new: str

    def applied_to(self, text: str) -> str:
        """Return the text of the file with the edit; raise when it fits in no place or in several."""
        found = text.count(self.old)
        if found != 1:
            raise StaleMutationError(f"{self.file} holds {found} times: {self.old}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A protection that is switched off, the rules that it serves, and tests of which one has to fail then."""

    name: str
    rules: tuple[str, ...]
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]

    @property
    def needs_engine(self) -> bool:
        """Whether its tests start a JVM."""
        return any(test.startswith("tests/") for test in self.tests)

    @property
    def changes_engine(self) -> bool:
        """Whether a JVM has to be started for it."""
        return any(edit.file.startswith(f"{CORE}/engine/spark/") for edit in self.edits)

    @property
    def changes_bridge(self) -> bool:
        """Whether the Java side is compiled anew."""
        return any(edit.file.endswith(".java") for edit in self.edits)


def read_mutations() -> list[Mutation]:
    """Return the table of mutations.toml."""
    with (FOLDER / "mutations.toml").open("rb") as file:
        return [_mutation(entry) for entry in tomllib.load(file)["mutation"]]


def read_exceptions() -> dict[str, str]:
    """Return the rules without a mutation, each with its reason."""
    with (FOLDER / "exceptions.toml").open("rb") as file:
        return dict(tomllib.load(file)["exceptions"])


def _mutation(entry: Mapping[str, Any]) -> Mutation:
    return Mutation(
        name=entry["name"],
        rules=tuple(entry["rules"]),
        edits=tuple(_edit(each) for each in (entry, *entry.get("also", ()))),
        tests=tuple(entry["tests"]),
    )


def _edit(entry: Mapping[str, Any]) -> Edit:
    file = entry["file"]
    return Edit(file=file if file.startswith("sqe-") else f"{CORE}/{file}", old=entry["old"], new=entry["new"])
