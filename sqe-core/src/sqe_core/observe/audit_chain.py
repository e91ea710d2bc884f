"""The chain of the audit log: each line carries the hash of the one before, and of itself (OBS-5).

    {"time": …, "integrity":{"seq":7,"prev_hash":"<64 hex>","hash":"<64 hex>"}}

`hash` is the SHA-256 of the line's own bytes without `,"hash":"…"`; the first line of a chain has 64 zeros before it.
Whoever changes, removes or moves a line has to write every later one anew, and cannot do that where somebody keeps an
earlier hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

FIRST_HASH = "0" * 64
_END = re.compile(rb',"integrity":\{"seq":([0-9]{1,18}),"prev_hash":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}\}\Z')
_LENGTH_OF_HASH = len(',"hash":""') + 64
_MOST_FAULTS = 1000


@dataclass(frozen=True, slots=True)
class Link:
    seq: int
    hash: str


START = Link(0, FIRST_HASH)


def seal(event: Mapping[str, Any], last: Link) -> tuple[bytes, Link]:
    """Return the line of an event that follows `last`, without its newline, and its own place."""
    integrity = {"seq": last.seq + 1, "prev_hash": last.hash}
    # ASCII only: whatever else is in a text is escaped, and no reader sees a second line in one (OBS-3).
    body = json.dumps({**event, "integrity": integrity}, ensure_ascii=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    return body[:-2] + f',"hash":"{digest}"}}}}'.encode(), Link(last.seq + 1, digest)


@dataclass(frozen=True, slots=True)
class _Sealed:
    link: Link
    before: str


def _read(line: bytes) -> _Sealed | None:
    """Return what a line says of itself, None when it is no sealed event or was changed."""
    end = _END.search(line)
    if end is None:
        return None
    seq, before, digest = (part.decode() for part in end.groups())
    body = line[: -_LENGTH_OF_HASH - 2] + b"}}"
    if hashlib.sha256(body).hexdigest() != digest:
        return None
    return _Sealed(Link(int(seq), digest), before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Where a file ends: its last sound line, whether something unsound follows, and whether a line is unfinished."""

    last: Link | None
    damaged: bool
    torn: bool


def tail_of(end: bytes, *, whole: bool) -> Tail:
    """Look at the last bytes of a file; `whole` says that they are all of it."""
    lines = end.split(b"\n")
    torn = lines[-1] != b""
    lines = lines if torn else lines[:-1]
    if not whole:
        lines = lines[1:]  # its beginning may be missing
    for back, line in enumerate(reversed(lines)):
        sealed = _read(line)
        if sealed is not None:
            # A line that was written whole but for its newline is sound.
            return Tail(last=sealed.link, damaged=back > 0, torn=torn)
    return Tail(last=None, damaged=bool(lines) or not whole, torn=torn)


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What became of a chain. Lines are counted over all files, from 1."""

    events: int = 0
    first: Link | None = None
    last: Link | None = None
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: frozenset[str] = frozenset()
    """Hashes that the chain should hold, and does not."""

    @property
    def sound(self) -> bool:
        """Whether nothing was changed, removed, moved or added."""
        return not self.faults and not self.missing


def verify(lines: Iterable[bytes], *, expected: frozenset[str] = frozenset()) -> Verdict:
    """Check the lines of one file, or of several in the order in which they were written.

    Args:
        lines: with or without their newlines.
        expected: hashes that were kept elsewhere and have to be in the chain; only they show that lines are missing
            at its end, or that the whole of it was written anew.
    """
    verdict = Verdict(missing=expected)
    unsound = False
    for number, line in enumerate(lines, 1):
        sealed = _read(line.rstrip(b"\n"))
        if sealed is None:
            _fault(verdict, f"line {number} is no event, or was changed")
            unsound = True
            continue
        verdict.events += 1
        verdict.missing -= {sealed.link.hash}
        last = verdict.last
        if last is None:
            verdict.first = sealed.link
            if (sealed.link.seq, sealed.before) != (1, FIRST_HASH):
                verdict.notes.append(f"begins with event {sealed.link.seq}, which follows {sealed.before}")
        elif (sealed.link.seq, sealed.before) == (1, FIRST_HASH):
            _fault(verdict, f"line {number} begins a new chain")
        elif (sealed.link.seq, sealed.before) != (last.seq + 1, last.hash) and not (
            # What follows a changed line cannot follow what stands before that one.
            unsound and sealed.link.seq > last.seq + 1
        ):
            _fault(verdict, f"line {number} (event {sealed.link.seq}) does not follow event {last.seq}")
        unsound = False
        verdict.last = sealed.link
    return verdict


def _fault(verdict: Verdict, text: str) -> None:
    if len(verdict.faults) < _MOST_FAULTS:
        verdict.faults.append(text)
