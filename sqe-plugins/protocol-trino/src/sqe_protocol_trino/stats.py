"""How far a statement is, as Trino's clients draw it."""

from __future__ import annotations

from typing import Any

from sqe_core.spi import QueryProgress, StatementState

_STATES = {
    StatementState.QUEUED: "QUEUED",
    StatementState.PLANNING: "PLANNING",
    StatementState.RUNNING: "RUNNING",
    StatementState.FINISHING: "RUNNING",  # there are rows to fetch
    StatementState.FINISHED: "RUNNING",
    StatementState.FAILED: "FAILED",
    StatementState.CANCELLED: "FAILED",
}
_OF_A_STAGE = (
    "nodes",
    "totalSplits",
    "queuedSplits",
    "runningSplits",
    "completedSplits",
    "cpuTimeMillis",
    "wallTimeMillis",
    "processedRows",
    "processedBytes",
    "physicalInputBytes",
)


def statement_stats(progress: QueryProgress, *, ended: bool) -> dict[str, Any]:
    """Return the stats of a page; rows and bytes are those that the user may see (TRI-7).

    Args:
        progress: how far the statement is.
        ended: whether this is its last page.
    """
    state = _STATES[progress.state]
    if ended and state != "FAILED":
        state = "FINISHED"
    scheduled = progress.state not in (StatementState.QUEUED, StatementState.PLANNING)
    stats: dict[str, Any] = {
        "state": state,
        "queued": state == "QUEUED",
        "scheduled": scheduled,
        "nodes": 1 if scheduled else 0,
        "totalSplits": progress.tasks,
        "queuedSplits": max(0, progress.tasks - progress.tasks_done - progress.tasks_active),
        "runningSplits": progress.tasks_active,
        "completedSplits": progress.tasks_done,
        "planningTimeMillis": 0,
        "analysisTimeMillis": 0,
        "cpuTimeMillis": 0,
        "wallTimeMillis": progress.elapsed_ms,
        "queuedTimeMillis": progress.queued_ms,
        "elapsedTimeMillis": progress.elapsed_ms,
        "finishingTimeMillis": 0,
        "physicalInputTimeMillis": 0,
        "processedRows": progress.rows,
        "processedBytes": progress.bytes,
        "physicalInputBytes": 0,
        "physicalWrittenBytes": 0,
        "internalNetworkInputBytes": 0,
        "peakMemoryBytes": 0,
        "spilledBytes": 0,
    }
    if ended:
        stats["progressPercentage"] = 100.0
    elif progress.tasks:
        stats["progressPercentage"] = 100.0 * progress.tasks_done / progress.tasks
        stats["runningPercentage"] = 100.0 * progress.tasks_active / progress.tasks
    if scheduled:
        stats["rootStage"] = _only_stage(stats)
    return stats


def _only_stage(stats: dict[str, Any]) -> dict[str, Any]:
    """Return the stage that has everything: trino-cli draws stages, and asks for no page more where there is none."""
    return {
        "stageId": "0",
        "state": stats["state"],
        "done": stats["state"] in ("FINISHED", "FAILED"),
        **{name: stats[name] for name in _OF_A_STAGE},
        "failedTasks": 0,
        "coordinatorOnly": False,
        "subStages": [],
    }
