"""Whatever is raised on a statement's way becomes what its client may read (ERR-1, ERR-2)."""

from __future__ import annotations

from sqe_core.engine.port import EngineExecutionError
from sqe_core.query.context import StatementContext
from sqe_core.query.errors.scrubber import Scrubber
from sqe_core.query.errors.translate import ASK_OPERATOR, MentionableNames, report, translate
from sqe_core.spi.errors import InternalError, SqeError


def explained(context: StatementContext, error: BaseException) -> SqeError:
    """Return the error that the client reads, in the user's own terms."""
    running, session = context.running, context.session
    ended = running.end_error()
    if ended is not None:
        shown: SqeError = ended
    elif isinstance(error, SqeError):
        shown = report(error, running.query_id)
    elif isinstance(error, EngineExecutionError):
        shown = translate(
            error.failure,
            positions=context.terms.positions,
            kind=context.terms.kind,
            query_id=running.query_id,
            names=MentionableNames(columns=lambda: context.terms.columns, catalogs=session.catalog_names()),
        )
    elif isinstance(error, KeyboardInterrupt):
        running.cancel()
        shown = running.end_error() or InternalError("interrupted")
    else:
        context.parts.recorder.unexpected(running.query_id, error)
        shown = InternalError(f"Query failed (query id {running.query_id})", hint=ASK_OPERATOR)
    Scrubber(session.secrets()).scrub(shown)
    shown.query_id = running.query_id
    return shown
