"""Lineage: which data a statement read and wrote, in OpenLineage's terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Literal

from sqe_core.spi.catalog import Column
from sqe_core.spi.events import ColumnUse
from sqe_core.spi.factory import ConfigT, PluginContext, PluginFactory
from sqe_core.spi.identity import Secret


class LineageEventType(Enum):
    """START when a statement is submitted, then exactly one of the others."""

    START = "START"
    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
    ABORT = "ABORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """How a value travelled, for example DIRECT and IDENTITY, or INDIRECT and FILTER."""

    type: Literal["DIRECT", "INDIRECT"]
    subtype: ColumnUse
    masking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InputField:
    """A column of an input dataset and how it was used."""

    dataset_namespace: str
    dataset_name: str
    column: str
    transformations: tuple[Transformation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLineage:
    """What an output column was made of."""

    column: str
    inputs: tuple[InputField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A table that was read or written.

    Args:
        namespace: the catalog's address, or `sqe://<catalog>`.
        name: `schema.table`.
        columns: its columns; empty when unknown.
        source_name: the name of the catalog.
        source_uri: its address.
        column_lineage: for outputs, what each column was made of.
        dataset_inputs: for outputs, fields that touched every column, as filters and joins do.
        lifecycle_change: for DDL, what happened to the table.
    """

    namespace: str
    name: str
    columns: tuple[Column, ...] = ()
    source_name: str | None = None
    source_uri: str | None = None
    column_lineage: tuple[ColumnLineage, ...] = ()
    dataset_inputs: tuple[InputField, ...] = ()
    lifecycle_change: Literal["CREATE", "ALTER", "DROP", "OVERWRITE", "RENAME", "TRUNCATE"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageJob:
    """The job of a run: `<statement kind>:<sql hash>` in the configured namespace. `sql` holds no literals."""

    namespace: str
    name: str
    sql: str | None = None
    dialect: str = "sqe"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageEvent:
    """One event of one run.

    Args:
        type: START, then COMPLETE, FAIL or ABORT.
        time: when, in UTC.
        run_id: the query id, a UUIDv7.
        job: what ran.
        producer: the address that says who made the event.
        inputs: the tables that were read.
        outputs: the tables that were written.
        nominal_time: when the statement was submitted.
        parent_run_id: the session's run, with `parent_job`.
        parent_job: the session's job.
        error_message: for FAIL, the text that the client received.
        user_token: the user's bearer, for sinks that post as the user. It is never stored.

    Example:
        >>> from datetime import UTC, datetime
        >>> job = LineageJob(namespace="sqe", name="create_table_as:9f2c")
        >>> event = LineageEvent(
        ...     type=LineageEventType.START,
        ...     time=datetime.now(UTC),
        ...     run_id="0190e1c0-0000-7000-8000-000000000000",
        ...     job=job,
        ...     producer="https://example.com/sqe",
        ... )
        >>> event.outputs
        ()
    """

    type: LineageEventType
    time: datetime
    run_id: str
    job: LineageJob
    producer: str
    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    nominal_time: datetime | None = None
    parent_run_id: str | None = None
    parent_job: LineageJob | None = None
    error_message: str | None = None
    user_token: Secret | None = field(default=None, repr=False, compare=False)


class LineageSink(ABC):
    """Takes lineage events away.

    The core owns the bound: each sink has one thread and one bounded queue; what does not fit is dropped and counted.
    `emit` may therefore block on a network, for as long as the sink's own timeout says.

    Example:
        >>> class Shelf(LineageSink):
        ...     def __init__(self):
        ...         self.documents = []
        ...
        ...     def emit(self, event):
        ...         self.documents.append(to_run_event(event))
    """

    @abstractmethod
    def emit(self, event: LineageEvent) -> None:
        """Deliver one event. An exception is logged and counted; the event is not offered again.

        Args:
            event: the event.
        """

    def check(self) -> None:
        """Raise when nothing can be delivered; called at start-up and by `sqe doctor`."""

    def close(self) -> None:
        """Deliver or store what the sink still holds, then free it."""


class LineageSinkFactory(PluginFactory[ConfigT, PluginContext, LineageSink]):
    """Makes one kind of sink.

    Example:
        >>> class ShelfFactory(LineageSinkFactory[NoConfig]):
        ...     kind = "shelf"
        ...     config_type = NoConfig
        ...
        ...     def create(self, name, config, context):
        ...         return Shelf()
    """
