"""Catalogs: what a backend offers, and the metadata values that the whole of SQE speaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from sqe_core.spi.errors import ErrorCode, NotSupportedError, ResourcesError, SqeError, UserError
from sqe_core.spi.factory import ConfigT, PluginContext, PluginFactory
from sqe_core.spi.identity import Identity, Secret

if TYPE_CHECKING:
    import pyarrow as pa

_EMPTY: Mapping[str, str] = MappingProxyType({})
_MOST_NAMESPACES = 100_000
_DEEPEST_NAMESPACE = 100


class ObjectType(Enum):
    """What a name in a schema can be."""

    TABLE = "table"
    VIEW = "view"
    SYSTEM_TABLE = "system table"
    """A table that SQE makes up, in listings only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table or a view.

    `type` is in Spark's notation (`bigint`, `array<struct<a:int>>`, `timestamp_ntz`); types that Spark does not
    have keep Iceberg's name (`timestamp_ns`, `time`, `uuid`). `arrow_type` says the same in Arrow's types, and what
    Spark's notation has no words for, such as lists whose elements are never NULL; None where it is not known.
    """

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    field_id: int | None = None
    arrow_type: pa.DataType | None = field(default=None, compare=False)


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

    Every method that names something missing raises `ObjectNotFoundError`. Namespaces are tuples of parts, and full:
    the children of `("a",)` are `("a", "b")` and so on.

    Example:
        >>> def count_tables(metadata: CatalogMetadata) -> int:
        ...     return sum(len(metadata.list_tables(namespace)) for namespace in metadata.list_namespaces())
    """

    @abstractmethod
    def list_namespaces(self, parent: tuple[str, ...] = ()) -> Sequence[tuple[str, ...]]:
        """List the namespaces directly below another one.

        Args:
            parent: the namespace above; `()` lists the top level.
        """

    @abstractmethod
    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """List the tables of a namespace, without its views.

        Args:
            namespace: the namespace.
        """

    @abstractmethod
    def list_views(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """List the views of a namespace; a catalog without views returns none.

        Args:
            namespace: the namespace.
        """

    def all_namespaces(self) -> Sequence[tuple[str, ...]]:
        """List the namespaces of every level, in any order.

        Worth overriding where a catalog answers that at once.

        Raises:
            ResourcesError: there are more, or deeper ones, than any honest catalog has.
        """
        found: list[tuple[str, ...]] = []
        pending = list(self.list_namespaces())
        while pending:
            namespace = pending.pop()
            # One that says of everything that there is more below would be asked for ever.
            if len(namespace) > _DEEPEST_NAMESPACE or len(found) + len(pending) >= _MOST_NAMESPACES:
                raise ResourcesError("The catalog has more schemas than SQE lists", hint="name the schema")
            found.append(namespace)
            pending.extend(self.list_namespaces(namespace))
        return found

    def list_objects(self, namespace: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        """List the tables and the views of a namespace.

        Worth overriding where a catalog answers both at once.

        Args:
            namespace: the namespace.
        """
        return self.list_tables(namespace), self.list_views(namespace)

    @abstractmethod
    def load_namespace(self, namespace: tuple[str, ...]) -> Mapping[str, str]:
        """Return the properties of a namespace.

        Args:
            namespace: the namespace.
        """

    @abstractmethod
    def load_table(self, namespace: tuple[str, ...], name: str) -> TableMetadata:
        """Load a table.

        Args:
            namespace: the namespace that holds it.
            name: its name, exactly as stored.
        """

    def load_view(self, namespace: tuple[str, ...], name: str) -> ViewMetadata:
        """Load a view.

        Args:
            namespace: the namespace that holds it.
            name: its name, exactly as stored.
        """
        raise NotSupportedError("this catalog has no views")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """A jar that a plugin brings: a file of its own, or Maven coordinates that are fetched once and verified each time.

    Args:
        path: the file.
        coordinates: `group:name:version`, in the place of `path`.
        sha256: the checksum, in hexadecimal digits; needed with coordinates.
        size: its bytes; needed with coordinates.

    Example:
        >>> Jar(coordinates="org.example:client:1.0", sha256="0" * 64, size=1024).label
        'org.example:client:1.0'
    """

    path: Path | None = None
    coordinates: str = ""
    sha256: str = ""
    size: int = 0

    def __post_init__(self) -> None:
        if (self.path is None) != bool(self.coordinates):
            raise ValueError("a jar has a path or coordinates")
        if self.coordinates and (self.coordinates.count(":") != 2 or len(self.sha256) != 64 or self.size <= 0):
            raise ValueError("coordinates are group:name:version, with sha256 and size")

    @property
    def label(self) -> str:
        """For messages."""
        return self.coordinates or str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeys:
    """Keys of AWS; `session_token` belongs to those that end."""

    access_key: str
    secret_key: Secret
    session_token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFailure:
    """What the engine raised.

    Args:
        classes: the simple names of the Java exception and of its causes, the outermost first.
        text: what they say; for deciding only, it may hold names, policies and secrets.
    """

    classes: tuple[str, ...]
    text: str = field(repr=False)


class CatalogBackend(ABC):
    """One configured or attached catalog. Its methods are called from many threads at once.

    Example:
        >>> class Folder(CatalogBackend):
        ...     def __init__(self, path):
        ...         self.path = path
        ...
        ...     def spark_properties(self, identity):
        ...         return {"type": "hadoop", "warehouse": self.path, "cache-enabled": "false"}
        >>> Folder("/data").supports_views
        True
    """

    identity_mode: Literal["user", "shared"] = "shared"
    """`user` when every request carries the user's own credential (AUTHN-3)."""

    read_only: bool = False
    """True refuses every write before the engine sees it."""

    supports_views: bool = True
    """False for catalogs that store no views."""

    lists_without_engine: bool = False
    """True when `quick_metadata` answers every listing, and not only those before the engine is up.

    For catalogs that know better than the mount what a user is to see, or answer faster.
    """

    vends_credentials: bool = False
    """True when the catalog can hand out credentials for a table's files; `production_mode` then insists on them."""

    ignores_case: bool = False
    """True when the catalog takes one case of a name for another, and keeps lower case.

    Whoever decides about names then sees lower case only: `HR.People` must not get around what is said of `hr.people`.
    """

    uri: str | None = None
    """The catalog's address, without secrets: for lineage, logs and `SHOW CREATE SCHEMA`."""

    @abstractmethod
    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Return the options below `spark.sql.catalog.<alias>.` that mount this catalog for that user.

        Called once per session and token. The values may hold secrets; they never reach a log. The class of the
        mount, the empty key, belongs to the engine. Always set `cache-enabled=false`: Iceberg's table cache makes
        sessions blind for each other's commits. The key `sqe.catalog-name` gives the catalog a name of its own where
        the catalog stores it, as SQL catalogs do; otherwise it is called like its random alias.

        A mount that speaks Iceberg's REST protocol says `sqe.mount = "rest"`, and what it sends in `token`. The engine
        puts classes of its own in the place of Iceberg's there, which share logins and connections between users; it
        refuses such a mount that does not say so.

        Args:
            identity: the user, with tokens.
        """

    def required_jars(self) -> Sequence[str | Jar]:
        """Return what the mount needs beside Iceberg: names of entries of the jar lock, such as `aws`, and jars
        of the plugin's own.
        """
        return ()

    def aws_keys(self, identity: Identity) -> AwsKeys | None:
        """Return the keys with which the engine signs requests of this mount, to AWS services and to S3; None for none.

        Asked when the catalog is mounted and again with later statements, some seconds apart: each answer replaces the
        keys before, also for what runs already. They reach the AWS SDK through `client.credentials-provider` by a
        random handle; no setting, plan or task holds them, and each mount has its own. They have to be good for
        longer than a statement may take, and work in the engine's own process, where tasks run with a local master.

        Args:
            identity: the user, with tokens.
        """
        return None

    def quick_metadata(self, identity: Identity) -> CatalogMetadata | None:
        """Return a view that answers listings before the engine is up, or None to wait for the engine.

        Args:
            identity: the user, with tokens.
        """
        return None

    def dataset(self, namespace: tuple[str, ...], name: str) -> tuple[str, str] | None:
        """Return what lineage calls a table: the namespace and the name of its dataset, as OpenLineage's page of naming
        has it for this kind of catalog. None means the catalog's address, and `schema.table`.

        Args:
            namespace: the namespace that holds the table.
            name: its name.
        """
        return None

    def translate(self, failure: CatalogFailure) -> SqeError | None:
        """Return what a client reads about a failure of this catalog in the engine; None leaves it to the core.

        For exceptions of the plugin's own libraries, which the core does not know. The error's text is the plugin's:
        nothing of the failure's may be in it.

        Args:
            failure: what the engine raised, in a statement about this catalog, or about none.
        """
        return None

    def check(self) -> None:
        """Raise when the catalog cannot be used; called at start-up, by `/readyz` and by `sqe doctor`.

        At start-up a ConfigError or StartupError stops the server; anything else is logged, for a catalog that is down
        may come back.
        """

    def flush(self) -> None:
        """Forget what users were told they may see; called when rights at the catalog were changed with SQL."""

    def close(self) -> None:
        """Free what the backend holds."""


class SupportsDiscovery(ABC):
    """Capability of a `CatalogBackend`: other catalogs of the same service, found by name (docs/rest-catalogs.md)."""

    @abstractmethod
    def discover(self, name: str, identity: Identity) -> CatalogBackend | None:
        """Return the catalog of that name as this user may use it, or None when there is none.

        Args:
            name: the unknown first part of a name in a statement.
            identity: the user, with tokens.
        """

    @abstractmethod
    def is_same(self, other: CatalogBackend, identity: Identity) -> bool:
        """Whether another catalog is this one, so that its tables would have a second name, on which no policy holds.

        Args:
            other: a catalog that was discovered.
            identity: the user, with tokens.

        Returns:
            True also when that cannot be said.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRestrictions:
    """What a catalog wants done to everything that one user reads of a table, as it said it.

    Nothing of it is trusted: the core reads `document` strictly, and a statement is refused when it does not understand
    all of it.

    Args:
        table_uuid: the id of the table that this is about.
        document: the member `read-restrictions` of the answer to `loadTable` (Iceberg REST specification).
        renamed: ids of fields that have another name in some other schema of the table. Old versions of a table are
            not read where such a field is restricted.

    Example:
        >>> ReadRestrictions(table_uuid="u", document={"required-row-filter": False}).renamed
        frozenset()
    """

    table_uuid: str
    document: Mapping[str, Any]
    renamed: frozenset[int] = frozenset()


class SupportsReadRestrictions(ABC):
    """Capability of a `CatalogBackend`: the catalog itself filters and masks, by what it says of each table."""

    @abstractmethod
    def read_restrictions(self, namespace: tuple[str, ...], name: str, identity: Identity) -> ReadRestrictions | None:
        """Return what this user may not read of a table, asked of the catalog anew; None when it restricts nothing.

        Args:
            namespace: the namespace that holds the table.
            name: its name, exactly as stored.
            identity: the user, with tokens. What is answered holds for nobody else.

        Raises:
            ObjectNotFoundError: the catalog does not show the table to this user.
            ExternalError: the catalog did not answer, or not as expected; the statement is refused.
        """


class SupportsLogout(ABC):
    """Capability of a `CatalogBackend`: it keeps what a login earned, such as tokens, for the next request."""

    @abstractmethod
    def forget_login(self, identity: Identity) -> None:
        """Forget what was kept for a token. Its session ended, or goes on with another one.

        What else goes on with the same token gets anew what it needs. Nobody waits for a network here.

        Args:
            identity: the user, with the tokens that ended.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContext(PluginContext):
    """What the core offers to a catalog's factory, beside the rest.

    Args:
        storage: Iceberg `FileIO` properties of `[catalog.storage]` over `[storage]`; may hold secrets.
        require_vended_credentials: static and ambient storage credentials must not be used (docs/rest-catalogs.md).
    """

    storage: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)
    require_vended_credentials: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachSecret:
    """A secret of CREATE SECRET. Keys of `values` are lower case, for example `token`."""

    name: str
    type: Literal["bearer", "basic", "aws"]
    values: Mapping[str, Secret]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRequest:
    """`ATTACH '<location>' AS <name> (TYPE <kind>, <option> <value>, SECRET <secret>)`.

    Args:
        name: the visible name.
        location: the text in quotes; may be empty.
        options: the other options, keys in lower case, without TYPE and SECRET.
        secret: the named secret.
    """

    name: str
    location: str = field(repr=False)
    options: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)
    secret: AttachSecret | None = None

    def check(self, *, required: Sequence[str] = (), optional: Sequence[str] = (), secrets: Sequence[str] = ()) -> None:
        """Raise a UserError when an option is missing or unknown, or the secret is of a type that does not fit.

        Args:
            required: options that have to be given, in lower case.
            optional: options that may be given.
            secrets: types of secrets that fit; none of them is required.

        Example:
            >>> AttachRequest(name="x", location="/data", options={"depth": "2"}).check(optional=("depth",))
        """
        missing = [option.upper() for option in required if option not in self.options]
        if missing:
            raise UserError(f"ATTACH needs {', '.join(missing)}", code=ErrorCode.INVALID_ARGUMENTS)
        known = (*required, *optional)
        unknown = [option.upper() for option in self.options if option not in known]
        if unknown:
            hint = "known options: " + (", ".join(option.upper() for option in known) or "none")
            raise UserError(f"ATTACH does not know {', '.join(unknown)}", code=ErrorCode.INVALID_ARGUMENTS, hint=hint)
        if self.secret is not None and self.secret.type not in secrets:
            fitting = " or ".join(secrets) or "no secret at all"
            message = f"secret '{self.secret.name}' is of type {self.secret.type}; this catalog takes {fitting}"
            raise UserError(message, code=ErrorCode.INVALID_ARGUMENTS)


class CatalogFactory(PluginFactory[ConfigT, CatalogContext, CatalogBackend]):
    """Makes the backends of one `[catalog] type`, and says what ATTACH of that type means.

    Example:
        >>> class FolderFactory(CatalogFactory[NoConfig]):
        ...     kind = "folder"
        ...     config_type = NoConfig
        ...
        ...     def create(self, name, config, context):
        ...         return Folder("/data")
    """

    def attach(self, request: AttachRequest) -> ConfigT:
        """Turn an ATTACH statement into settings; the core then calls `create` with them.

        Args:
            request: the statement.

        Raises:
            NotSupportedError: this kind cannot be attached.
            UserError: an option is unknown, missing or wrong.
        """
        raise NotSupportedError(f"catalogs of type {self.kind} cannot be attached")
