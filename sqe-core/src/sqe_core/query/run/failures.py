"""Whatever is raised on a statement's way becomes what its client may read (ERR-1, ERR-2)."""

from __future__ import annotations

import logging
import re

from sqe_core.engine.port import EngineExecutionError, EngineFailure
from sqe_core.query.context import StatementContext
from sqe_core.query.errors.scrubber import Scrubber
from sqe_core.query.errors.translate import ASK_OPERATOR, MentionableNames, report, translate
from sqe_core.spi.catalog import CatalogBackend, CatalogFailure
from sqe_core.spi.errors import InternalError, SqeError

_log = logging.getLogger(__name__)
_CLASS = re.compile(r"(?:[\w$]+\.)*([\w$]+)")


def _of_a_catalog(context: StatementContext, failure: EngineFailure) -> SqeError | None:
    """What the catalog of a plugin says of an exception of its own libraries."""
    # Each cause begins with its class; what exceptions say may be a user's words, and would be taken for others.
    found = (_CLASS.match(cause) for cause in failure.causes)
    classes = (failure.condition, *(each[1] for each in found if each))
    asked = CatalogFailure(classes=tuple(dict.fromkeys(classes)), text=failure.raw)
    for mount in context.resolver.used or context.session.catalogs.mounts():
        if type(mount.backend).translate is CatalogBackend.translate:
            continue
        try:
            told = mount.backend.translate(asked)
        except Exception:  # noqa: BLE001 - a plugin; the core has an answer of its own
            _log.exception("catalog %s failed to translate a failure", mount.name)
            continue
        if told is not None:
            _log.warning("query %s failed at catalog %s: %s", context.running.query_id, mount.name, failure.condition)
            return told
    return None


def explained(context: StatementContext, error: BaseException) -> SqeError:
    """Return the error that the client reads, in the user's own terms."""
    running, session = context.running, context.session
    ended = running.end_error()
    if ended is not None:
        shown: SqeError = ended
    elif isinstance(error, SqeError):
        shown = report(error, running.query_id)
    elif isinstance(error, EngineExecutionError):
        shown = _of_a_catalog(context, error.failure) or translate(
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
