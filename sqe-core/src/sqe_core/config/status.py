"""What is written and cannot be done yet, and what is written and changes nothing: both are metadata of the keys."""

from __future__ import annotations

from collections.abc import Iterator

from sqe_core.config.origin import Fault, KeyPath
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.sources import Sources
from sqe_core.config.walk import Leaf, leaves


def unbuilt(config: SqeConfig, consumed: frozenset[KeyPath] = frozenset()) -> Iterator[Fault]:
    """What a server would be asked for and cannot do. What plugins have `consumed` is theirs to judge."""
    found = (leaf for leaf in leaves(config) if leaf.unbuilt is not None and not _is_consumed(leaf, consumed))
    for leaf in found:
        missing = leaf.unbuilt
        if missing is not None and (leaf.differs if missing.asked is None else missing.asked):
            yield Fault(leaf.path if missing.asked is None else missing.path, missing.sentence)


def without_effect(config: SqeConfig, sources: Sources, consumed: frozenset[KeyPath] = frozenset()) -> tuple[str, ...]:
    """Name the keys that somebody wrote and that change nothing."""
    written = (leaf for leaf in leaves(config) if sources.is_written(*leaf.path) and not _is_consumed(leaf, consumed))
    idle = ((leaf.path, why) for leaf in written if (why := _why_idle(leaf)))
    return tuple(str(Fault(path, f"has no effect: {why}", sources.place(*path))) for path, why in idle)


def _why_idle(leaf: Leaf) -> str | None:
    missing = leaf.unbuilt
    if missing is not None and missing.asked is False and missing.path != leaf.path and leaf.differs:
        return missing.sentence
    reason: str | None = leaf.metadata.get("no_effect")
    return reason


def _is_consumed(leaf: Leaf, consumed: frozenset[KeyPath]) -> bool:
    """Whether a plugin takes the key, or a table that it is in."""
    return any(leaf.path[:size] in consumed for size in range(1, len(leaf.path) + 1))
