"""What a reader sees of stored views, for listings and DESCRIBE (VIEW-4, VIEW-6, VIEW-7).

Each view is looked at once in a statement, whoever reads it and however often, and what it names is looked at and not
expanded. Only where a column below is hidden from the reader the view is analysed, to find what depends on that. A view
that fails, or is too much work, is one that cannot be read, and nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqe_core.engine.port import EngineExecutionError
from sqe_core.query.judge.bind import BoundRelation
from sqe_core.query.judge.judge import Decisions, Judge
from sqe_core.query.judge.views import MAX_VIEW_DEPTH
from sqe_core.spi.catalog import ViewMetadata
from sqe_core.spi.errors import (
    EngineLostError,
    QueryCancelledError,
    QueryTimeoutError,
    ShuttingDownError,
    SqeError,
    UserError,
)
from sqe_core.spi.names import ObjectName

_log = logging.getLogger(__name__)

# For all views of a statement together, of those that have to be analysed.
_MOST_SECS = 10.0
_MOST_RELATIONS = 100
# What ends a statement, and not only a view of its.
_ENDS_ALL = (QueryCancelledError, QueryTimeoutError, EngineLostError, ShuttingDownError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSight:
    """What a reader sees of a view. `complete` says that nothing of what it reads is kept from them."""

    columns: frozenset[str]
    complete: bool = False
    height: int = 0
    """How many views stand below each other in it."""


class _TooDeepError(Exception):
    """Views stand too deep below each other."""


_NOTHING = ViewSight(columns=frozenset())


class ViewSights:
    """What one statement's user sees of the views that it comes across."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = _MOST_SECS
        self._known: dict[ObjectName, ViewSight] = {}
        self._reads: dict[ObjectName, tuple[Sequence[BoundRelation], Decisions]] = {}

    def of(self, name: ObjectName, view: ViewMetadata, judge: Judge) -> ViewSight:
        """Return what is seen of a view: nothing of one that cannot be read. `judge` is that of the statement."""
        if name in self._known:
            return self._known[name]
        try:
            return self._found(name, view, judge, ())
        except _TooDeepError:
            return self._known.setdefault(name, _NOTHING)

    def _found(self, name: ObjectName, view: ViewMetadata, judge: Judge, above: tuple[ObjectName, ...]) -> ViewSight:
        if name not in self._known:
            if name in above:
                return _NOTHING
            if len(above) >= MAX_VIEW_DEPTH:
                raise _TooDeepError  # for the view at the top; those between may be fine by themselves
            self._known[name] = self._look(name, view, judge, above)
        return self._known[name]

    def _look(self, name: ObjectName, view: ViewMetadata, judge: Judge, above: tuple[ObjectName, ...]) -> ViewSight:
        try:
            return self._seen(name, view, judge, (*above, name))
        except _ENDS_ALL:
            raise
        except UserError:
            return _NOTHING  # it is out of date, or needs what the reader may not see
        except (SqeError, EngineExecutionError, RecursionError) as error:
            _log.warning("View %s is left out of what is listed: %s", name, error)
            return _NOTHING

    def _seen(self, name: ObjectName, view: ViewMetadata, judge: Judge, above: tuple[ObjectName, ...]) -> ViewSight:
        if name not in self._reads:
            self._reads[name] = judge.reads_of_view(name, view)
        bound, decisions = self._reads[name]
        inner = {
            entry.resolved.name: (self._found(entry.resolved.name, entry.loaded, judge, above), _names(entry.loaded))
            for entry in bound
            if entry.resolved is not None and isinstance(entry.loaded, ViewMetadata)
        }
        height = 1 + max((sight.height for sight, _ in inner.values()), default=0)
        if height > MAX_VIEW_DEPTH or not all(sight.columns for sight, _ in inner.values()):
            return _NOTHING
        columns = _names(view)
        partial = any(sight.columns != whole for sight, whole in inner.values())
        if partial or any(verdict.hidden for (about, _), verdict in decisions.items() if about != name):
            columns = self._analysed(judge, name, view)
        complete = all(sight.complete for sight, _ in inner.values()) and all(
            verdict.unrestricted for verdict in decisions.values()
        )
        return ViewSight(columns=columns, complete=complete, height=height)

    def _analysed(self, judge: Judge, name: ObjectName, view: ViewMetadata) -> frozenset[str]:
        if self._left <= 0:
            _log.warning("View %s is left out of what is listed: the views before it took too long", name)
            return frozenset()
        limits = replace(judge.plan_limits, max_relations=min(_MOST_RELATIONS, judge.plan_limits.max_relations))
        began = self._clock()
        try:
            return replace(judge, plan_limits=limits).columns_of_view(name, view)
        finally:
            self._left -= self._clock() - began


def _names(view: ViewMetadata) -> frozenset[str]:
    return frozenset(column.name for column in view.columns)
