"""The differences that are known (tests/trino/differences.toml): each has a reason, and no other is accepted."""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from testbed.trino_corpus import FOLDER, cases, files
from testbed.trino_runner import Difference

FILE = FOLDER / "differences.toml"
KINDS = ("refused", "accepted", "rows", "columns", "error", "update")
UNEXPLAINED = "not explained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Why a statement is answered otherwise, and how."""

    reason: str
    kind: str


@cache
def known() -> Mapping[str, Known]:
    """Return the known differences by the key of their statement."""
    found: dict[str, Known] = {}
    for group in tomllib.loads(FILE.read_text("utf-8"))["difference"]:
        for kind in KINDS:
            for key in group.get(kind, ()):
                if key in found:
                    raise ValueError(f"{key} is listed twice")
                found[key] = Known(reason=group["reason"], kind=kind)
    return found


def keys(file: str) -> dict[int, str]:
    """Return what the statements of a file are called in the list, by their place; a text may stand there twice."""
    seen: dict[str, int] = defaultdict(int)
    named = {}
    for place, case in enumerate(cases(file)):
        seen[case.text] += 1
        named[place] = f"{file}: {case.text}" + (f" #{seen[case.text]}" if seen[case.text] > 1 else "")
    return named


def fail_alone(file: str) -> set[str]:
    """Return the expressions that would spoil the others of their batch."""
    listed = known()
    places = keys(file)
    return {
        case.text
        for place, case in enumerate(cases(file))
        if places[place] in listed and listed[places[place]].kind == "refused"
    }


def by_key(file: str, found: Iterable[Difference]) -> dict[str, Difference]:
    """Return the differences of a file by the keys of their statements."""
    places = {id(case): key for case, key in zip(cases(file), keys(file).values(), strict=True)}
    return {places[id(each.case)]: each for each in found}


def write(found: Mapping[str, Difference]) -> None:
    """Write the file anew: what is still so keeps its reason, what is new has none yet."""
    before = known()
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for known_one in before.values():
        groups[known_one.reason]  # keeps the order of the file
    checked = {key for file in files() for key in keys(file).values()}
    for key, each in found.items():
        if key in checked:
            groups[before[key].reason if key in before else UNEXPLAINED][each.kind].append(key)
    head = FILE.read_text("utf-8").partition("[[difference]]")[0]
    parts = [head.rstrip() + "\n"]
    for reason, kinds in groups.items():
        if kinds:
            parts.append(f"\n[[difference]]\nreason = {_quoted(reason)}\n")
            for kind in KINDS:
                if kinds[kind]:
                    parts.append(f"{kind} = [\n" + "".join(f"  {_quoted(key)},\n" for key in kinds[kind]) + "]\n")
    FILE.write_text("".join(parts), "utf-8")
    known.cache_clear()


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else json.dumps(text, ensure_ascii=False)
