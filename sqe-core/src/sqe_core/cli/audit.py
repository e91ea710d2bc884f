"""`sqe audit`: checks the chain of an audit log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sqe_core.observe.audit_chain import Verdict, verify
from sqe_core.spi.errors import ConfigError

_LONGEST_LINE = 16 << 20


def verify_files(paths: Sequence[Path], expected: frozenset[str] = frozenset()) -> Verdict:
    """Check files in the order in which they were written. Raises ConfigError when one cannot be read."""
    return verify(_lines(paths), expected=expected)


def report(verdict: Verdict) -> Iterator[str]:
    """Say what was found, a line each; the last one says whether the chain is sound."""
    yield from (f"note: {note}" for note in verdict.notes)
    yield from (f"fault: {fault}" for fault in verdict.faults)
    yield from (f"fault: no event has the hash {digest}" for digest in sorted(verdict.missing))
    if verdict.last is not None:
        yield f"last event {verdict.last.seq}, hash {verdict.last.hash}"
    yield f"{verdict.events} events, {'the chain is whole' if verdict.sound else 'the chain is broken'}"


def _lines(paths: Sequence[Path]) -> Iterator[bytes]:
    for path in paths:
        try:
            with path.open("rb") as file:
                # What is longer is no event, and is told as several lines that are none.
                while line := file.readline(_LONGEST_LINE):
                    yield line
        except OSError as error:
            raise ConfigError((f"cannot read {path}: {error.strerror}",)) from None
