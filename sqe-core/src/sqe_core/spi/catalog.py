"""Catalogs: what a backend offers, and the metadata values that the whole of SQE speaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Literal

from sqe_core.spi.errors import NotSupportedError
from sqe_core.spi.identity import Identity

_EMPTY: Mapping[str, str] = MappingProxyType({})


class ObjectType(Enum):
    """What a name in a schema can be."""

    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table or a view.

    `type` is in Spark's notation (`bigint`, `array<struct<a:int>>`, `timestamp_ntz`); types that Spark does not
    have keep Iceberg's name (`timestamp_ns`, `time`, `uuid`).
    """

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    field_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """One field of the current partition spec: `transform` as Iceberg writes it, `bucket[16]`."""

    name: str
    source: str
    transform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRef:
    """A branch or a tag."""

    name: str
    type: Literal["branch", "tag"]
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One committed state of a table."""

    snapshot_id: int
    parent_id: int | None
    committed_at: datetime
    operation: str
    schema_id: int | None
    summary: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """A table as its catalog describes it at one moment."""

    namespace: tuple[str, ...]
    name: str
    uuid: str
    location: str
    format_version: int
    schema_id: int
    columns: tuple[Column, ...]
    partitioning: tuple[PartitionField, ...] = ()
    sort_order: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    current_snapshot_id: int | None = None
    refs: tuple[SnapshotRef, ...] = ()
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMetadata:
    """A view as its catalog describes it. `representations` maps a dialect to the stored text."""

    namespace: tuple[str, ...]
    name: str
    uuid: str
    columns: tuple[Column, ...]
    representations: Mapping[str, str]
    default_catalog: str | None
    default_namespace: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    comment: str | None = None


class CatalogMetadata(ABC):
    """Names and schemas of one catalog, as one user sees them.

    Every method that names something missing raises `ObjectNotFoundError`. Namespaces are tuples of parts.
    """

    @abstractmethod
    def list_namespaces(self, parent: tuple[str, ...] = ()) -> Sequence[tuple[str, ...]]:
        """List the namespaces directly below `parent`."""

    @abstractmethod
    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """List the tables of a namespace, without its views."""

    @abstractmethod
    def list_views(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """List the views of a namespace; a catalog without views returns none."""

    @abstractmethod
    def load_namespace(self, namespace: tuple[str, ...]) -> Mapping[str, str]:
        """Return the properties of a namespace."""

    @abstractmethod
    def load_table(self, namespace: tuple[str, ...], name: str) -> TableMetadata:
        """Load a table."""

    def load_view(self, namespace: tuple[str, ...], name: str) -> ViewMetadata:
        """Load a view."""
        raise NotSupportedError("this catalog has no views")

    def load_snapshots(self, namespace: tuple[str, ...], name: str) -> Sequence[Snapshot]:
        """Load the snapshots of a table, the oldest first."""
        raise NotSupportedError("this catalog does not list snapshots")


class MetadataFactory(ABC):
    """What the core offers to a backend that has no metadata of its own: the engine's view of a mount."""

    @abstractmethod
    def from_mount(self, backend: CatalogBackend, identity: Identity) -> CatalogMetadata:
        """Return the engine's view of `backend`, mounted for `identity`."""


class CatalogBackend(ABC):
    """One configured or attached catalog."""

    identity_mode: Literal["user", "shared"] = "shared"
    """`user` when every request carries the user's own credential (AUTHN-3)."""

    read_only: bool = False

    supports_views: bool = True

    @abstractmethod
    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Return the options below `spark.sql.catalog.<alias>.` that mount this catalog for that user.

        Called once per session and token. The values may hold secrets; they never reach a log.
        """

    def required_jars(self) -> Sequence[str]:
        """Return names of entries of the engine's jar lock that the mount needs, for example `iceberg-aws`."""
        return ()

    def quick_metadata(self, identity: Identity) -> CatalogMetadata | None:
        """Return a view that answers listings before the engine is up, or None to wait for the engine."""
        return None

    def check(self) -> None:
        """Raise when the catalog cannot be used; called at start-up and by `sqe doctor`."""

    def close(self) -> None:
        """Free what the backend holds."""
