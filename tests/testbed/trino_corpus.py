"""The statements that are compared with Trino (tests/trino/corpus), and what it answered (tests/trino/answers)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from testbed.trino_client import Answer

USER = "alice"
FOLDER = Path(__file__).parent.parent / "trino"
_TYPES_ONLY = "--@ types"
_STATEMENT = re.compile(
    r"(?i)\(?(select|selec|with|values|table|insert|update|delete|merge|create|drop|alter|comment|truncate|show|describe"
    r"|desc|explain|use|set session|set path|set role|set time|reset|prepare|execute|deallocate|start|commit"
    r"|rollback|grant|revoke|deny|call|analyze|refresh)\b(?!\s*\()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of a file: a statement, or an expression that stands behind SELECT."""

    file: str
    subject: str
    text: str
    expression: bool
    types_only: bool

    @property
    def sql(self) -> str:
        return f"SELECT {self.text}" if self.expression else self.text

    @property
    def ordered(self) -> bool:
        """Whether the rows come in an order."""
        outside = re.sub(r"\([^()]*(\([^()]*(\([^()]*\)[^()]*)*\)[^()]*)*\)", "", self.text)
        return re.search(r"(?i)\border by\b", outside) is not None


def files() -> tuple[str, ...]:
    """Return the names of the files."""
    return tuple(sorted(path.stem for path in (FOLDER / "corpus").glob("*.txt")))


@cache
def cases(file: str) -> tuple[Case, ...]:
    """Return the statements of a file, in their order."""
    return tuple(_read(file))


def _read(file: str) -> Iterator[Case]:
    subject = ""
    for line in (FOLDER / "corpus" / f"{file}.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            subject = line[3:]
        elif line and not line.startswith("# "):
            text = line.removesuffix(_TYPES_ONLY).rstrip()
            expression = _STATEMENT.match(text) is None and not text.lower().startswith(("select", "values"))
            yield Case(
                file=file, subject=subject, text=text, expression=expression, types_only=line.endswith(_TYPES_ONLY)
            )


@cache
def answers(file: str) -> tuple[Answer, ...]:
    """Return what Trino answered, one for each statement of the file."""
    lines = (FOLDER / "answers" / f"{file}.jsonl").read_text("utf-8").splitlines()
    read = [json.loads(line) for line in lines]
    texts = [case.text for case in cases(file)]
    if [line["sql"] for line in read] != texts:
        raise ValueError(f"tests/trino/answers/{file}.jsonl is not of this corpus: run tests/trino/record.py")
    return tuple(_answer(line) for line in read)


def _answer(line: dict[str, Any]) -> Answer:
    columns = line.get("columns")
    return Answer(
        columns=None if columns is None else tuple((name, kind) for name, kind in columns),
        rows=tuple(line.get("rows", ())),
        update=line.get("update"),
        count=line.get("count"),
        error=line.get("error"),
    )


def line_of(case: Case, answer: Answer) -> str:
    """Return the line that keeps an answer."""
    kept: dict[str, Any] = {"sql": case.text}
    if answer.error is not None:
        kept["error"] = answer.error
    else:
        if answer.columns is not None:
            kept["columns"] = answer.columns
            if not case.types_only:
                kept["rows"] = answer.rows
        if answer.update is not None:
            kept["update"] = answer.update
        if answer.count is not None:
            kept["count"] = answer.count
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
