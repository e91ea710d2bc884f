"""Writes docs/trino-compatibility.md from what was recorded and what is listed: `python tests/trino/page.py`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from testbed.trino_corpus import FOLDER, cases, files
from testbed.trino_differences import Known, keys, known

from sqe_core.session.properties import PROPERTIES
from sqe_core.session.trino_properties import listed
from sqe_core.sql.spark.functions import refused

PAGE = Path(__file__).parents[2] / "docs" / "trino-compatibility.md"
_HEAD = """# Compatibility with Trino 476

<!-- written by: python tests/trino/page.py -->

{statements} statements were asked of a real Trino 476, and are asked of SQE through its Trino door at each change
([tests/trino]({tests})). **{same}** ({percent}) are answered alike: names and types of columns, rows, counts,
names of errors. The others are listed in `tests/trino/differences.toml` with the reason, and no other is accepted.

| | in all | the same | refused in part | refused | with differences | statements answered like Trino |
|---|---|---|---|---|---|---|
{summary}

Of what was asked about a subject, and Trino answers:

- *The same*: SQE answers all of it alike. It may answer what Trino refuses, and name errors otherwise.
- *Refused in part*: SQE answers some of it alike, and refuses the rest with a sentence, which says what to write.
- *Refused*: SQE refuses all of it with a sentence.
- *With differences*: SQE answers some of it with other values, or with another type. These are the ones to know.
"""

_STATUSES = ("same", "in part", "refused", "differs")


class Subject:
    """What was asked about one thing; `absent` are functions that the table of functions refuses."""

    def __init__(self, *, absent: bool = False) -> None:
        self.absent = absent
        self.statements = 0
        self.found: list[Known] = []

    def add(self, difference: Known | None) -> None:
        self.statements += 1
        if difference is not None:
            self.found.append(difference)

    @property
    def seen(self) -> list[Known]:
        """The differences of what Trino answers."""
        return [each for each in self.found if each.kind in ("refused", "rows", "columns")]

    @property
    def status(self) -> str:
        if self.absent:
            return "refused"
        if not self.seen:
            return "same"
        if any(each.kind != "refused" for each in self.seen):
            return "differs"
        return "refused" if len(self.found) == self.statements else "in part"


def subjects(prefixes: Iterable[str]) -> dict[str, Subject]:
    """Return what was asked in some files, by file and subject."""
    asked: dict[str, Subject] = defaultdict(Subject)
    for file in files():
        if file.startswith(tuple(prefixes)):
            for case, key in zip(cases(file), keys(file).values(), strict=True):
                asked[f"{file}: {case.subject}"].add(known().get(key))
    return asked


def functions() -> dict[str, Subject]:
    """Return each function of Trino, with what was asked about it."""
    listing = json.loads((FOLDER / "answers" / "known.json").read_text("utf-8"))["functions"]
    names = sorted({name for name, _ in listing}, key=str.lower)
    found = {name: Subject(absent=name.lower() in refused()) for name in names}
    for key, subject in subjects(("functions_",)).items():
        if (name := key.partition(": ")[2]) in found:
            found[name].statements += subject.statements
            found[name].found += subject.found
    return found


def page() -> str:
    every = functions()
    groups = {
        "functions": every,
        "operators, literals and casts": subjects(("language_",)),
        "queries": subjects(("queries",)),
        "statements": subjects(("tables_", "session")),
    }
    total = sum(len(cases(file)) for file in files())
    same = total - len(known())
    summary = [_row(name, group) for name, group in groups.items()]
    meant, _ = listed()
    properties = json.loads((FOLDER / "answers" / "known.json").read_text("utf-8"))["session_properties"]
    own = [name for name in properties if name in PROPERTIES or name in meant]
    summary.append(_cells("session properties", len(properties), len(own), 0, len(properties) - len(own), 0) + " |")
    head = _HEAD.format(
        statements=f"{total:,}",
        same=f"{same:,}",
        percent=_percent(same, total),
        summary="\n".join(summary),
        tests="../tests/trino/README.md",
    )
    parts = [head, "## Functions\n", _functions(every)]
    parts += [f"## {name.capitalize()}\n\n{_table(group)}" for name, group in groups.items() if name != "functions"]
    parts.append("## Session properties\n")
    parts.append(f"These mean something: {_names(own)}. The others are refused, each with its reason.\n")
    return "\n".join(parts)


def _row(name: str, group: Mapping[str, Subject]) -> str:
    counted: dict[str, int] = defaultdict(int)
    asked = alike = 0
    for subject in group.values():
        counted[subject.status] += 1
        asked += subject.statements
        alike += subject.statements - len(subject.seen)
    cells = _cells(name, len(group), *(counted[status] for status in _STATUSES))
    return f"{cells} {_percent(alike, asked)} of {asked:,} |"


def _cells(name: str, total: int, *counts: int) -> str:
    return f"| {name} | {total} | " + " | ".join(f"{count} ({_percent(count, total)})" for count in counts) + " |"


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %"


def _functions(every: Mapping[str, Subject]) -> str:
    same = [name for name, subject in every.items() if subject.status == "same"]
    partly, differing = (
        {name: subject for name, subject in every.items() if subject.status == status}
        for status in ("in part", "differs")
    )
    absent: dict[str, list[str]] = defaultdict(list)
    for name, subject in every.items():
        if subject.status == "refused":
            absent[refused().get(name.lower()) or "; ".join(_reasons(subject))].append(name)
    return "\n".join(
        (
            f"**The same** ({len(same)}): {_names(same)}.\n",
            f"**With differences** ({len(differing)}):\n",
            _table(differing),
            f"**Refused in part** ({len(partly)}):\n",
            _table(partly),
            f"**Refused** ({sum(map(len, absent.values()))}), with what to do instead:\n",
            "| functions | what is said |\n|---|---|",
            *(f"| {_names(names)} | {said} |" for said, names in absent.items()),
            "",
        )
    )


def _table(group: Mapping[str, Subject]) -> str:
    lines = ["| subject | statements | the same | differences |\n|---|---|---|---|"]
    for name, subject in group.items():
        shown = (name.partition(": ")[2] or name).replace("|", "\\|")
        told, same = " ".join(_reasons(subject)), subject.statements - len(subject.found)
        lines.append(f"| {shown} | {subject.statements} | {same} | {told} |")
    return "\n".join((*lines, ""))


def _reasons(subject: Subject) -> list[str]:
    return [text.replace("|", "\\|") for text in dict.fromkeys(each.reason for each in subject.found)]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
