"""From the name that a user wrote to the one object that it means (NAME-1 to NAME-4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.catalog.system import SYSTEM
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.judge.metadata_projections import METADATA_TABLES
from sqe_core.spi.errors import (
    AccessDeniedError,
    ErrorCode,
    NotSupportedError,
    ObjectNotFoundError,
    Position,
    UserError,
)
from sqe_core.spi.names import RESERVED_PREFIXES, NamespaceName, ObjectName, quote_part
from sqe_core.spi.policy import Action

_IN_SQL = {
    Action.INSERT: "INSERT into",
    Action.DELETE: "DELETE from",
    Action.MERGE: "MERGE into",
    Action.SELECT: "SELECT from",
    Action.ALTER_VIEW: "ALTER",
    Action.DROP_VIEW: "DROP",
}
_NEVER_IN_A_NAME = frozenset('/\\:#`"\0')


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedName:
    """A table, a view, or one of a table's metadata tables (`orders$snapshots`)."""

    name: ObjectName
    mount: Mount
    metadata_table: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NameContext:
    """The current names under which a text was written: the session's, or those stored with a view."""

    catalog: str
    schema: tuple[str, ...]


def written(parts: Sequence[str]) -> str:
    """Write a name as the user may have typed it."""
    return ".".join(quote_part(part) for part in parts)


@dataclass(frozen=True, slots=True)
class NameResolver:
    """Resolves names against the mounted catalogs; it never looks whether the object exists.

    `shows` says whether a catalog may be known to the user, `discover` looks for one that is not mounted.
    """

    registry: CatalogRegistry
    shows: Callable[[Mount], bool] = lambda mount: True
    discover: Callable[[str], Mount | None] = lambda name: None
    used: set[Mount] = field(default_factory=set)
    """The mounts of the objects that were resolved."""

    def ensure_mounted(self) -> None:
        """Raise when a catalog was detached since a name was found in it: it may have been judged as another one."""
        for mount in self.used:
            if self.find(mount.name) is not mount:
                raise UserError(
                    f"Catalog {quote_part(mount.name)} was detached while the statement was judged",
                    code=ErrorCode.CATALOG_NOT_FOUND,
                )

    def without_policies(self) -> NameResolver:
        """Return one to which every mounted catalog is known."""
        return NameResolver(self.registry)

    def suggest(self, name: str) -> str | None:
        """Suggest catalogs close to a name that is none."""
        return did_you_mean(name, [mount.name for mount in self.registry.mounts() if self.shows(mount)])

    def find(self, name: str) -> Mount | None:
        mounted = self.registry.find(name)
        if mounted is None and name.lower() == SYSTEM.name:
            return SYSTEM
        return mounted or (self.discover(name) if _usable(name) else None)

    def catalog(self, name: str) -> Mount:
        mount = self.find(name)
        if mount is None or not (mount is SYSTEM or self.shows(mount)):
            raise UserError(
                f"Catalog {quote_part(name)} does not exist",
                code=ErrorCode.CATALOG_NOT_FOUND,
                hint=self.suggest(name),
            )
        self.used.add(mount)
        return mount

    def schema(self, parts: Sequence[str], context: NameContext) -> tuple[Mount, NamespaceName]:
        """Resolve `schema` or `catalog.schema`; a nested namespace is one part with dots."""
        if not 1 <= len(parts) <= 2 or not all(_usable(part) for part in parts):
            raise UserError(f"Schema {_printable(parts)} does not exist", code=ErrorCode.SCHEMA_NOT_FOUND)
        mount = self.catalog(parts[0] if len(parts) == 2 else context.catalog)
        schema = parts[-1].lower() if _folds(mount) else parts[-1]
        return mount, NamespaceName(catalog=mount.name, namespace=tuple(schema.split(".")))

    def object(self, parts: Sequence[str], context: NameContext, *, position: Position | None = None) -> ResolvedName:
        """Resolve a name of 1 to 3 parts."""
        if not 1 <= len(parts) <= 3 or not all(_usable(part) for part in parts):
            raise table_not_found(parts, position=position)
        mount = self.find(parts[0] if len(parts) == 3 else context.catalog)
        if mount is None:
            raise table_not_found(parts, position=position, hint=self.suggest(parts[0]))
        self.used.add(mount)
        namespace = context.schema if len(parts) == 1 else tuple(parts[-2].split("."))
        if _folds(mount):
            namespace, parts = tuple(part.lower() for part in namespace), [*parts[:-1], parts[-1].lower()]
        base, separator, suffix = parts[-1].rpartition("$")
        metadata_table = None
        if separator:
            metadata_table = suffix.lower()
            if not base or metadata_table not in METADATA_TABLES:
                hint = None if mount is SYSTEM or self.shows(mount) else self.suggest(mount.name)
                raise table_not_found(parts, position=position, hint=hint)
        name = ObjectName(catalog=mount.name, namespace=namespace, name=base or parts[-1])
        return ResolvedName(name=name, mount=mount, metadata_table=metadata_table)


def _folds(mount: Mount) -> bool:
    """Whether names are in lower case: ours, whose case nobody has to know, and those of one case only (POL-10)."""
    return mount is SYSTEM or mount.backend.ignores_case


def _usable(part: str) -> bool:
    """Whether a part can name anything (NAME-4, NAME-6)."""
    return (
        bool(part)
        and all(piece for piece in part.split("."))
        and not _NEVER_IN_A_NAME.intersection(part)
        and part.isprintable()
        and not part.lower().startswith(RESERVED_PREFIXES)
    )


def table_not_found(
    parts: Sequence[str],
    *,
    position: Position | None = None,
    hint: str | None = None,
    code: ErrorCode = ErrorCode.TABLE_NOT_FOUND,
) -> ObjectNotFoundError:
    """The one answer for missing, hidden and denied objects (ERR-5)."""
    return ObjectNotFoundError(
        f"Table {_printable(parts)} does not exist or you may not see it", code=code, position=position, hint=hint
    )


def schema_not_found(schema: NamespaceName, *, hint: str | None = None) -> UserError:
    """The one answer for missing, hidden and denied schemas (ERR-5)."""
    return UserError(
        f"Schema {schema} does not exist or you may not see it", code=ErrorCode.SCHEMA_NOT_FOUND, hint=hint
    )


def schema_to_make(schema: NamespaceName) -> UserError:
    """The same where something is to be made in it."""
    return schema_not_found(schema, hint=f"create it first: CREATE SCHEMA {schema}")


def restricted_error(name: ObjectName) -> NotSupportedError:
    """The one refusal to change or copy an object that the user sees in part only (DML-2 to DML-4)."""
    return NotSupportedError(f"{name} is restricted for you and cannot be changed or copied")


def action_denied(name: ObjectName, action: Action) -> AccessDeniedError:
    """Say what may not be done with an object that the user may read."""
    return AccessDeniedError(f"You may not {_IN_SQL.get(action, action.value.upper())} {name}")


def _printable(parts: Sequence[str]) -> str:
    shown = written([part[:128] for part in parts[:6]])
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
