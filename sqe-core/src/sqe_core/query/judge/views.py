"""Step 6 for the views that a text names: their own text is judged like any statement (VIEW-1)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqe_core.engine.port import AnalysedPlan, EngineExecutionError, EnginePlan, InlinedPlan, SourceColumn
from sqe_core.policy.authorizer import Verdict
from sqe_core.query.judge.bind import BoundRelation
from sqe_core.query.judge.names import NameContext
from sqe_core.query.judge.promise import Promise
from sqe_core.query.judge.relation_text import new_marker
from sqe_core.query.judge.verify import ExpectedRelation
from sqe_core.session.session import SessionView
from sqe_core.spi.catalog import ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, InternalError, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.sql.statement import StatementKind

if TYPE_CHECKING:
    from sqe_core.query.judge.judge import Judge

MAX_VIEW_DEPTH = 10
VIEW_COLUMNS_PROPERTY = "sqe.view-query-columns"
VIEW_SECURITY_PROPERTY = "sqe.view-security"

Views = tuple[object, ...]
"""The views in which a text stands, the outermost first: `SessionView`s, and names of stored ones."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A view's text, secured; `lost` are its columns, without case, that depend on what is hidden from the user."""

    plan: EnginePlan
    lost: frozenset[str]


def session_view(judge: Judge, entry: BoundRelation, view: SessionView, promise: Promise, views: Views) -> InlinedPlan:
    """STMT-5: the view's text is secured anew, under the names of its creation."""
    if entry.relation.time_travel is not None:
        raise UserError(f"View {view.name} has no versions to travel to", position=entry.position)
    promise.session_views = True
    context = NameContext(catalog=view.catalog, schema=view.schema)
    plan = _expand(judge, view, view.spark_sql, context, promise, views).plan
    return InlinedPlan(index=entry.relation.index, plan=plan, columns=view.renames, visible_name=(view.name,))


def stored_view(
    judge: Judge, entry: BoundRelation, view: ViewMetadata, access: Verdict, promise: Promise, views: Views
) -> InlinedPlan:
    """VIEW-1: the stored text is judged like any statement, under the names stored with it."""
    name = entry.name
    if entry.relation.time_travel is not None:
        raise UserError(f"View {name} has no versions to travel to")
    expanded = expand_stored(judge, name, view, promise, views)
    columns = columns_of(name, view)
    allowed = {column.name for column in access.columns}
    if not in_stored_view(views):
        allowed -= {seen for inner, seen in columns if inner.casefold() in expanded.lost}
    if not allowed:
        raise unreadable_view(str(name))
    everything = InlinedPlan(index=entry.relation.index, plan=expanded.plan, columns=columns, visible_name=name.parts)
    if not access.filters and not access.masks:
        return replace(everything, columns=tuple(pair for pair in columns if pair[1] in allowed))
    # VIEW-2: a policy on the view holds besides those on what it reads. Columns that read as nothing mislead it.
    if expanded.lost:
        raise unreadable_view(str(name))
    compiled = judge.compiler().compile(
        name,
        everything,
        access,
        marker=new_marker(),
        visible=lambda names: [column for column in names if column in allowed],
    )
    promise.expect(ExpectedRelation(identity=("", name.name), view=True), compiled)
    return replace(everything, restriction=compiled.restriction)


def expand_stored(judge: Judge, name: ObjectName, view: ViewMetadata, promise: Promise, views: Views) -> Expanded:
    text = judge.reader.translate_view(view.representations)
    return _expand(judge, name, text, context_of(judge, name, view), promise, views)


def _expand(
    judge: Judge, view: object, spark_sql: str, context: NameContext, promise: Promise, views: Views
) -> Expanded:
    if view in views:
        raise UserError(f"View {_view_name(view)} reads itself")
    if len(views) >= MAX_VIEW_DEPTH:
        raise UserError(f"Views may be nested {MAX_VIEW_DEPTH} deep")
    try:
        promise.findings.note_text(spark_sql)
        parsed = judge.engine.parse(spark_sql, judge.session_values())
        plan = judge.rewrite(parsed, StatementKind.QUERY, context, None, promise, views=(*views, view))
        # Alone, before anything stands around it: a column that the view's table has lost must not be found in
        # the query that reads the view (VIEW-3).
        analysed = judge.engine.analyse(plan, tag=judge.tag)
        return Expanded(plan, _lost_columns(analysed, promise.veiled) if promise.veiled else frozenset())
    except (UserError, EngineExecutionError) as error:
        # The text of a stored view is somebody else's, and names what this user may not know (VIEW-4, ERR-3).
        if isinstance(view, SessionView) or isinstance(error, AccessDeniedError):
            raise
        raise unreadable_view(_view_name(view)) from error


def context_of(judge: Judge, name: ObjectName, view: ViewMetadata) -> NameContext:
    """Return the names that were current when a stored view was made."""
    known = judge.resolver.find(view.default_catalog) if view.default_catalog else None
    return NameContext(catalog=known.name if known else name.catalog, schema=view.default_namespace or name.namespace)


def in_stored_view(views: Views) -> bool:
    """Whether a text is that of a stored view, or below one."""
    return any(isinstance(view, ObjectName) for view in views)


def columns_of(name: ObjectName, view: ViewMetadata) -> tuple[tuple[str, str], ...]:
    """Return (name in the view's text, visible name) of each column."""
    inner = [part for part in view.properties.get(VIEW_COLUMNS_PROPERTY, "").split("\n") if part]
    visible = [column.name for column in view.columns]
    if inner and len(inner) != len(visible):
        raise InternalError(f"View {name} is damaged: its columns do not fit its text")
    return tuple(zip(inner or visible, visible, strict=True))


def _lost_columns(plan: AnalysedPlan, veiled: Set[tuple[tuple[str, ...], str]]) -> frozenset[str]:
    """Return the output columns, without case, that derive from veiled ones; raise when its rows do."""
    lineage = plan.lineage()

    def is_veiled(source: SourceColumn) -> bool:
        return (source.relation, source.column) in veiled

    if any(map(is_veiled, lineage.indirect)):
        raise UserError("Which rows there are depends on what is hidden")
    return frozenset(name.casefold() for name, sources in lineage.columns if any(map(is_veiled, sources)))


def unreadable_view(name: str) -> UserError:
    return UserError(f"View {name} is out of date, or needs what you may not see")


def _view_name(view: object) -> str:
    return view.name if isinstance(view, SessionView) else str(view)
