"""The thread of a statement: runs it, and hands its rows over."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sqe_core.spi import ColumnType, ResultColumn, SqeError, Statement
from sqe_protocol_trino.chain import Chain
from sqe_protocol_trino.json_rows import json_chunks
from sqe_protocol_trino.spooling.writer import SegmentWriter
from sqe_protocol_trino.type_signature import column
from sqe_protocol_trino.update_type import ANALYZE, COUNTED, TELLS_ROWS, update_type

_log = logging.getLogger("sqe_core.trino")
_ROWS = ResultColumn(name="rows", type=ColumnType(text="bigint", name="bigint"), nullable=False)


def run(chain: Chain, *, sql: str, parametric: bool, segments: SegmentWriter | None = None) -> None:
    """Run a statement to its end, whatever that is.

    Args:
        chain: where its rows go.
        sql: its text.
        parametric: whether its client knows of digits of time.
        segments: what makes segments of rows, for a client that asks for them.
    """
    statement = chain.statement
    error: BaseException | None = None
    try:
        with statement:
            statement.start()
            _tell(chain, statement, sql, parametric)
            if statement.schema is not None:
                _deliver(chain, statement, parametric, segments)
            elif (count := _written(statement)) is not None:
                chain.put(b"[%d]" % count)
            elif chain.outcome.update_type == ANALYZE:
                chain.put(b"[null]")
        _end(chain, statement)
    except SqeError as failure:
        error = failure
    except Exception as failure:  # noqa: BLE001 - the border of a thread: the client reads that something failed
        _log.exception("statement %s failed in the protocol", chain.id)
        error = failure
    finally:
        if segments is not None:
            segments.abandon()
    chain.finish(error)


def _tell(chain: Chain, statement: Statement, sql: str, parametric: bool) -> None:
    outcome = chain.outcome
    outcome.affected_rows = statement.affected_rows
    columns: Sequence[ResultColumn] = statement.columns
    if statement.schema is None:
        outcome.update_type = update_type(statement.statement_kind, sql)
        # None at all is told too: JDBC waits for it.
        columns = (_ROWS,) if _written(statement) is not None or outcome.update_type in TELLS_ROWS else ()
    outcome.columns = [column(each, parametric=parametric) for each in columns]


def _written(statement: Statement) -> int | None:
    return statement.affected_rows if statement.statement_kind in COUNTED else None


def _deliver(chain: Chain, statement: Statement, parametric: bool, segments: SegmentWriter | None) -> None:
    types = [each.type for each in statement.columns]
    for batch in statement:
        for count, rows in json_chunks(batch, types, parametric=parametric, at_most=chain.piece_bytes):
            if not (chain.put(rows) if segments is None else segments.put(count, rows)):
                return
    if segments is not None:
        segments.end()


def _end(chain: Chain, statement: Statement) -> None:
    outcome = chain.outcome
    outcome.affected_rows = statement.affected_rows
    outcome.changes, outcome.warnings = statement.changes, statement.warnings
