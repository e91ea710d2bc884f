"""Bounds on what Cedar is given: its parser recurses, and nesting without end would end the process, not the call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

MAX_NESTING = 100
MAX_OPERATORS = 1000
"""Of one policy: a chain of them is as deep as it is long. Members of sets do not count."""
MAX_ANCESTRY = 100

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|\bif\b|&&|\|\||[-+*.!;()\[\]{}<>]', re.DOTALL)
_OPEN, _CLOSE = frozenset("([{<"), frozenset(")]}>")
_NO_BRACKETS = frozenset("<>")


class TooDeepError(ValueError):
    """Something is nested too deeply."""


def check_policy_text(text: str) -> None:
    """Refuse policies that are nested too deeply; their angle brackets are comparisons."""
    _check(text, _NO_BRACKETS)


def check_schema_text(text: str) -> None:
    """Refuse a schema that is nested too deeply."""
    _check(text, frozenset())


def _check(text: str, ignored: frozenset[str]) -> None:
    depth = operators = 0
    for match in _TOKEN.finditer(text):
        found = match.group()
        if found in ignored or found[0] in '"/':
            continue
        if found == ";":
            operators = 0
        elif found in _OPEN:
            depth += 1
        elif found in _CLOSE:
            depth -= 1
        else:
            operators += 1
        if depth > MAX_NESTING or operators > MAX_OPERATORS:
            raise TooDeepError(
                f"something is nested more than {MAX_NESTING} levels deep, or has more than {MAX_OPERATORS} operators"
            )


def check_ancestry(parents: Mapping[object, Sequence[object]]) -> None:
    """Refuse chains of parents that are too long, and those without an end."""
    left = {child: set(above) & parents.keys() for child, above in parents.items()}
    for _ in range(MAX_ANCESTRY):
        roots = [child for child, above in left.items() if not above]
        if not roots:
            break
        for root in roots:
            del left[root]
        gone = set(roots)
        for above in left.values():
            above -= gone
    if left:
        raise TooDeepError(f"the parents of an entity go up more than {MAX_ANCESTRY} levels, or around in a circle")
