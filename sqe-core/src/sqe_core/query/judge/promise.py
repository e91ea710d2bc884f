"""What a statement and the views in it add up to while they are rewritten: what the verifier has to find in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqe_core.engine.port import Restriction
from sqe_core.query.judge.bind import BoundRelation
from sqe_core.query.judge.facts import Findings
from sqe_core.query.judge.restrict import CompiledRestriction
from sqe_core.query.judge.verify import ExpectedRelation


@dataclass(slots=True, kw_only=True)
class Promise:
    """Filled by the rewriting, kept by the verifier."""

    expected: list[ExpectedRelation] = field(default_factory=list)
    bound: list[BoundRelation] = field(default_factory=list)
    spools: set[str] = field(default_factory=set)
    session_views: bool = False
    restricted: bool = False
    veiled: set[tuple[tuple[str, ...], str]] = field(default_factory=set)
    """Hidden columns that the text of a stored view may name: of which table, and which."""
    findings: Findings = field(default_factory=Findings)
    check: Restriction | None = None
    """What has to hold for the rows that the statement writes."""
    rows: Restriction | None = None
    """What the statement sees of the rows that it changes."""
    command: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the command as it was parsed, of those that are looked at."""

    def expect(self, expected: ExpectedRelation, compiled: CompiledRestriction | None = None) -> None:
        """Note what the verifier must find; what was compiled brings its marker, and the columns of what is read."""
        if compiled is not None:
            expected = replace(
                expected,
                marker=compiled.restriction.marker,
                columns=() if expected.write_target else compiled.columns,
                filter_sql=compiled.filter_sql,
                masks=compiled.masks,
            )
        self.expected.append(expected)
