"""Runs the corpus on SQE, and says where it answers something else than Trino did."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.trino_client import Answer
from testbed.trino_corpus import Case

Ask = Callable[[str], Answer]
_BATCH = 40
_FRACTION = re.compile(r"(?<=[0-9]{2}:[0-9]{2}:[0-9]{2})\.([0-9]*?)0+(?= |$)")
_LENGTH = re.compile(r"\b(varchar|char)\b(\(\d+\))?")
_FIELD = re.compile(r"(?<=[(,])(\d+|key|value) (?=[a-z])")
_PRECISION = re.compile(r"\b(timestamp|time)\(\d+\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a statement was answered otherwise.

    Args:
        kind: `refused` (Trino answers, SQE does not), `accepted` (the other way round), `error` (both refuse it, by
            another name), `columns` (names or types), `rows` (or how many were written), `update` (what it is called).
        trino: what Trino answered.
        sqe: what SQE answers.
    """

    case: Case
    kind: str
    trino: str
    sqe: str


def differences(cases: Sequence[Case], expected: Sequence[Answer], ask: Ask, alone: set[str]) -> Iterator[Difference]:
    """Run the statements of a file and yield what differs. `alone` are expressions that are known to fail."""
    pairs = list(zip(cases, expected, strict=True))
    while pairs:
        batch = []
        while pairs and len(batch) < _BATCH and _batches(*pairs[0], alone):
            batch.append(pairs.pop(0))
        if batch:
            for (case, answer), got in zip(batch, _together([case for case, _ in batch], ask), strict=True):
                yield from _compare(case, answer, got)
        elif pairs:
            case, answer = pairs.pop(0)
            yield from _compare(case, answer, ask(case.sql))


def _batches(case: Case, answer: Answer, alone: set[str]) -> bool:
    return case.expression and answer.error is None and case.text not in alone


def _together(cases: list[Case], ask: Ask) -> list[Answer]:
    """Answers of many expressions from one statement; of two where that fails."""
    if len(cases) == 1:
        return [ask(cases[0].sql)]
    got = ask("SELECT " + ", ".join(case.text for case in cases))
    if got.error is not None or got.columns is None or len(got.columns) != len(cases):
        half = len(cases) // 2
        return _together(cases[:half], ask) + _together(cases[half:], ask)
    (row,) = got.rows
    return [
        Answer(columns=(("_col0", kind),), rows=([value],)) for (_, kind), value in zip(got.columns, row, strict=True)
    ]


def _compare(case: Case, trino: Answer, sqe: Answer) -> Iterator[Difference]:
    kind = _kind(case, trino, sqe)
    if kind is not None:
        yield Difference(case=case, kind=kind, trino=short(case, trino), sqe=short(case, sqe))


def _kind(case: Case, trino: Answer, sqe: Answer) -> str | None:
    if trino.error is not None and sqe.error is not None:
        return None if trino.error == sqe.error else "error"
    if trino.error is not None or sqe.error is not None:
        return "refused" if trino.error is None else "accepted"
    if columns(trino) != columns(sqe):
        return "columns"
    if not case.types_only and _rows(case, trino) != _rows(case, sqe):
        return "rows"
    return None if (trino.update, trino.count) == (sqe.update, sqe.count) else "update"


def columns(answer: Answer) -> tuple[tuple[str, str], ...]:
    """Names and types, as they are compared: see the head of tests/trino/differences.toml."""
    return tuple((name, _common(kind)) for name, kind in answer.columns or ())


def _common(kind: str) -> str:
    kind = _LENGTH.sub("varchar", kind.lower().replace(", ", ","))
    return _FIELD.sub("", _PRECISION.sub(r"\1", kind))


def _rows(case: Case, answer: Answer) -> list[str]:
    rows = [json.dumps(_plain(row), sort_keys=True, ensure_ascii=False) for row in answer.rows]
    return rows if case.ordered else sorted(rows)


def _plain(value: Any) -> Any:
    """A value as it is compared: doubles to 13 digits, times without zeros at their end."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float(f"{value:.13g}") + 0.0
    if isinstance(value, str):
        return _FRACTION.sub(lambda found: f".{found[1]}" if found[1] else "", value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def short(case: Case, answer: Answer) -> str:
    """An answer in a line."""
    if answer.error is not None:
        return f"! {answer.error} {answer.message or ''}".strip()
    types = ", ".join(f"{name} {kind}" for name, kind in answer.columns or ())
    rows = "" if case.types_only else json.dumps(answer.rows, ensure_ascii=False)
    update = f" {answer.update} {answer.count}" if answer.update else ""
    return f"{types}: {rows}{update}"
