"""The name that somebody probably meant. Candidates are names that this user may see, never others (ERR-5)."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice

_MAX_LENGTH = 128
_MAX_CANDIDATES = 20_000
_CLOSE_ENOUGH = 0.7


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the candidate that resembles a name most, or None when none does."""
    wanted = name.casefold()
    if not wanted or len(wanted) > _MAX_LENGTH:
        return None
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best, best_ratio = None, _CLOSE_ENOUGH
    for candidate in islice(names, _MAX_CANDIDATES):
        folded = candidate.casefold()
        if candidate == name or len(candidate) > _MAX_LENGTH:
            continue
        if folded == wanted:
            return candidate
        if not _could_reach(len(folded), len(wanted), best_ratio):
            continue
        matcher.set_seq1(folded)
        # Both are upper bounds and cheap; most candidates end here.
        if matcher.quick_ratio() <= best_ratio:
            continue
        ratio = matcher.ratio()
        if ratio > best_ratio:
            best, best_ratio = candidate, ratio
    return best


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    found = closest(name, names)
    return f'did you mean "{found}"?' if found is not None and found.isprintable() else None


def _could_reach(length: int, wanted: int, ratio: float) -> bool:
    return 2.0 * min(length, wanted) > ratio * (length + wanted)
