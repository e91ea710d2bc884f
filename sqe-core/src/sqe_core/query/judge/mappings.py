"""What the row filters of a statement find in other tables, read with the rights of policies (POL-5)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqe_core.query.judge import allowed
from sqe_core.query.judge.promise import Promise
from sqe_core.query.judge.verify import verify
from sqe_core.spi.catalog import TableMetadata
from sqe_core.spi.errors import UserError
from sqe_core.sql.statement import StatementKind

if TYPE_CHECKING:
    from sqe_core.query.judge.judge import Judge

_MOST = 1000
_LOOK_UP = "row filter"


@dataclass(frozen=True, slots=True)
class Mappings:
    """Looks up for one statement, the same query once."""

    _found: dict[Hashable, Sequence[Any]] = field(default_factory=dict)

    def look_up(self, judge: Judge, sql: str, values: Mapping[str, Any]) -> Sequence[Any]:
        key = sql, tuple(sorted(values.items()))
        if key not in self._found:
            self._found[key] = _read(judge, sql, values)
        return self._found[key]


def _read(judge: Judge, sql: str, values: Mapping[str, Any]) -> Sequence[Any]:
    parsed = judge.engine.parse(sql, values)
    names = parsed.description.relations
    if len(names) != 1 or names[0].cte or len(names[0].parts) != 3 or names[0].time_travel is not None:
        raise UserError("A row filter looks into one table, called catalog.schema.table")
    policies = replace(
        judge,
        authorizer=judge.authorizer.of_policies(),
        circumstances=judge.circumstances.unrecorded(),
        resolver=judge.resolver.without_policies(),
        visible=judge.visible.without_policies(),
        columns_seen=[],
        spooled={},
    )
    promise = Promise()
    plan = policies.rewrite(parsed, StatementKind.QUERY, judge.names, None, promise, views=(_LOOK_UP,))
    if any(not isinstance(each.loaded, TableMetadata) or each.resolved is None for each in promise.bound):
        raise UserError("A row filter looks into tables, not into views")
    if promise.restricted or any(each.resolved.metadata_table for each in promise.bound if each.resolved):
        raise UserError("A row filter looks into tables that are not restricted themselves")
    analysed = judge.engine.analyse(plan, tag=judge.tag)
    verify(analysed.description, expected=promise.expected, kind=StatementKind.QUERY)
    if analysed.description.expressions & allowed.policies().denied:
        raise UserError("A row filter looks up what depends on nothing but the rows of the table")
    found: dict[Any, None] = {}
    stream = judge.engine.execute(analysed, tag=judge.tag)
    try:
        for batch in stream:
            found.update(dict.fromkeys(batch.column(0)))
            if len(found) > _MOST:
                raise UserError(f"A row filter may find {_MOST} values at most")
    finally:
        stream.close()
    return tuple(found)
