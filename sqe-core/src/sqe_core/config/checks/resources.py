"""Memory and disk that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqe_core.config.origin import Fault
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.values import format_bytes

_BUDGETS = ("scan_budget", "flight_budget", "operator_budget", "shuffle_memory_budget", "spill_io_budget")
_LARGEST_BATCH = 256 << 20


def check_query_memory(config: SqeConfig) -> Iterator[Fault]:
    """A user who may run a statement at all may use the memory of one."""
    budget, statement = config.query.per_user_memory_budget, config.query.max_query_memory
    if budget and budget < statement:
        yield Fault(
            ("query", "per_user_memory_budget"),
            f'must be at least query.max_query_memory ({format_bytes(statement)}), or "0" for none',
        )


def check_worker_budgets(config: SqeConfig) -> Iterator[Fault]:
    """The budgets and the headroom fit the worker's limit."""
    memory, limit = config.worker.memory, config.worker.memory_limit
    headroom = memory.process_headroom.of(limit)
    if headroom >= limit:
        yield Fault(
            ("worker", "memory", "process_headroom"),
            f"leaves nothing of worker.memory_limit ({format_bytes(limit)})",
        )
        return
    shares = [getattr(memory, key) for key in _BUDGETS]
    total = sum(share.of(limit - headroom) for share in shares if share is not None)
    if total > limit - headroom:
        yield Fault(
            ("worker", "memory"),
            f"the budgets add up to {format_bytes(total)}, but worker.memory_limit less process_headroom is "
            f"{format_bytes(limit - headroom)}",
        )


def check_spill_directories(config: SqeConfig) -> Iterator[Fault]:
    """Coordinator and worker each clean up their own folder, and would delete the other's files."""
    ours, theirs = (Path(name).absolute() for name in (config.coordinator.spill_dir, config.worker.spill_directory))
    if ours == theirs or ours in theirs.parents or theirs in ours.parents:
        yield Fault(("coordinator", "spill_dir"), f"shares {config.worker.spill_directory} with the worker")


def check_tiered_spill(config: SqeConfig) -> Iterator[Fault]:
    """The second tier has a place."""
    spill = config.worker.spill
    if spill.backend == "tiered" and not spill.s3.bucket:
        yield Fault(("worker", "spill", "s3", "bucket"), 'is missing; backend "tiered" needs it')


def check_ingest_batches(config: SqeConfig) -> Iterator[Fault]:
    """A batch is a message, and no protocol takes bigger ones."""
    query = config.query
    if query.max_ingest_batch_bytes > _LARGEST_BATCH:
        yield Fault(("query", "max_ingest_batch_bytes"), f"must be at most {format_bytes(_LARGEST_BATCH)}")


def check_result_cache(config: SqeConfig) -> Iterator[Fault]:
    """One result fits the cache."""
    cache = config.query_cache
    if cache.max_entry_mb > cache.max_memory_mb:
        yield Fault(("query_cache", "max_entry_mb"), f"is more than max_memory_mb ({cache.max_memory_mb})")


def check_session_file(config: SqeConfig) -> Iterator[Fault]:
    """Sessions that are kept have a file."""
    if config.session.persistence == "file" and not config.session.persistence_path:
        yield Fault(("session", "persistence_path"), 'is missing; persistence "file" needs it')
