"""What a statement and the views in it add up to while they are rewritten: what the verifier has to find in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqe_core.engine.port import Restriction, TimeTravel
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

    def expect(
        self,
        parts: tuple[str, ...],
        *,
        marker: str | None = None,
        columns: tuple[str, ...] = (),
        metadata_table: str | None = None,
        time_travel: TimeTravel | None = None,
        write_target: bool = False,
        compiled: CompiledRestriction | None = None,
        view: bool = False,
        untouched: frozenset[str] = frozenset(),
        changed: bool = False,
    ) -> None:
        """Note what the verifier must find; `parts` begin with the catalog's alias.

        What was `compiled` brings its marker, and the columns of what is read.
        """
        if compiled is not None:
            marker, columns = compiled.restriction.marker, columns or (() if write_target else compiled.columns)
        self.expected.append(
            ExpectedRelation(
                marker=marker,
                catalog=parts[0],
                namespace=parts[1:-1],
                table=parts[-1],
                columns=columns,
                metadata_table=metadata_table,
                time_travel=time_travel,
                write_target=write_target,
                filter_sql=compiled.filter_sql if compiled else None,
                masks=compiled.masks if compiled else {},
                view=view,
                untouched=untouched,
                changed=changed,
            )
        )
