"""Step 4: what each name of a parsed plan is: read, written, created, a session view, or rows of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from sqe_core.catalog.system import SYSTEM
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.engine.port import PlanDescription, Relation, RelationKind
from sqe_core.query.judge.names import NameContext, NameResolver, ResolvedName, schema_to_make, table_not_found
from sqe_core.query.judge.near_names import NearNames
from sqe_core.session.session import SessionView
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, ObjectNotFoundError, Position, SqeError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import PositionMap

_INSERT = "InsertIntoStatement"
_WRITE_TARGETS = {
    (_INSERT, "table"): Action.INSERT,
    ("UpdateTable", "table"): Action.UPDATE,
    ("DeleteFromTable", "table"): Action.DELETE,
    ("MergeIntoTable", "targetTable"): Action.MERGE,
}
# Their conditions and counts tell what is in the table (DML-1).
_READS_ITS_TARGET = frozenset({Action.UPDATE, Action.DELETE, Action.MERGE})
# They take away rows, columns or the table, all of which one has to be allowed to see (DML-8).
_TAKES_AWAY = frozenset({Action.TRUNCATE, Action.ALTER, Action.DROP})
_REPLACES = frozenset({"ReplaceTable", "ReplaceTableAsSelect"})


# The commands whose fields are looked at.
_LOOKED_AT = frozenset(
    {_INSERT, "DeleteFromTable", "DropColumns", "RenameColumn", "CreateTable", "CreateTableAsSelect"}
)


def fields_of_command(description: PlanDescription) -> Mapping[str, Any]:
    """Return the fields of the command that a plan is, of those that are looked at."""
    return next((node.fields for node in description.nodes if node.simple_type in _LOOKED_AT), {})


class Usage(Enum):
    """What a statement does with a name."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledRows:
    """Rows that came from outside and lie in files of ours; `token` is what the verifier knows them by."""

    token: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRelation:
    """A name of the plan with what it turned out to be.

    At most one of `session_view`, `spooled` and `resolved` is set, none for a name that can mean nothing; `loaded` is
    None for system tables and for what does not exist. Nothing is told of that before all is decided (ERR-7).
    """

    relation: Relation
    usage: Usage
    action: Action
    resolved: ResolvedName | None = None
    session_view: SessionView | None = None
    spooled: SpooledRows | None = None
    loaded: TableMetadata | ViewMetadata | None = None
    replaces: bool = False
    overwrites: bool = False
    position: Position | None = None
    absent: SqeError | None = None
    """What to say of a name that means nothing, whoever asks."""

    @property
    def name(self) -> ObjectName:
        """What it is called, where it is an object of a catalog, or of ours."""
        assert self.resolved is not None
        return self.resolved.name

    @property
    def needed(self) -> tuple[Action, ...]:
        """What the user must be allowed to do with it."""
        if self.replaces and self.loaded is not None:
            return (self.action, Action.DROP, Action.SELECT)
        if self.overwrites:
            return (self.action, Action.DELETE, Action.SELECT)
        return (self.action, Action.SELECT) if self.action in _READS_ITS_TARGET | _TAKES_AWAY else (self.action,)

    @property
    def asked(self) -> tuple[Action, ...]:
        """What the policies are asked about: who changes an object may be kept from a part of it (DML-2, DML-4)."""
        new = self.usage is Usage.CREATE and self.loaded is None
        also = () if new or Action.SELECT in self.needed else (Action.SELECT,)
        return (*self.needed, *also)

    @property
    def kept(self) -> bool:
        """Whether it is there already, and stays as it is: CREATE without OR REPLACE."""
        return self.usage is Usage.CREATE and self.loaded is not None and not self.replaces

    @property
    def missing(self) -> bool:
        """Whether there is nothing of this name, and there should be."""
        if self.absent is not None or self.session_view is not None or self.spooled is not None:
            return self.absent is not None
        return self.usage is not Usage.CREATE and not self.system and self.loaded is None

    @property
    def system(self) -> bool:
        """Whether these are rows of ours."""
        resolved = self.resolved
        return resolved is not None and (resolved.mount is SYSTEM or resolved.name.namespace == (INFORMATION_SCHEMA,))


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationBinder:
    """Binds the relations of one plan under the names that were current when its text was written, the `context`.

    Places are found in the user's text only, and not in that of stored views. The names of rows in files, `spooled`,
    begin with a reserved prefix, which no text of a user can hold.
    """

    session: StatementSession
    resolver: NameResolver
    visible: VisibleCatalogs
    near: NearNames
    command: Action | None
    context: NameContext
    positions: PositionMap | None
    session_views: bool = True
    spooled: Mapping[str, SpooledRows] = field(default_factory=dict)
    # One statement sees each object once, however often it names it.
    _loaded: dict[ResolvedName, TableMetadata | ViewMetadata | None] = field(default_factory=dict)

    def bind(self, description: PlanDescription) -> list[BoundRelation]:
        """Bind every relation that is no common table expression."""
        bound = [self._bind_one(relation) for relation in description.relations if not relation.cte]
        inserts = [node for node in description.nodes if node.simple_type == _INSERT]
        if all(node.fields.get("overwrite") is False for node in inserts):
            return bound
        # Whoever may only add rows does not get rid of those that are there.
        return [replace(entry, overwrites=entry.action is Action.INSERT) for entry in bound]

    def _bind_one(self, relation: Relation) -> BoundRelation:
        usage, action = _usage_of(relation, self.command)
        position = self.positions.locate(relation.start, relation.parts[-1]) if self.positions else None
        bound = BoundRelation(relation=relation, usage=usage, action=action, position=position)
        if len(relation.parts) == 1 and usage is Usage.READ:
            if relation.parts[0] in self.spooled:
                return replace(bound, spooled=self.spooled[relation.parts[0]])
            view = self.session.find_view(relation.parts[0]) if self.session_views else None
            if view is not None:
                return replace(bound, session_view=view)
        try:
            resolved = self.resolver.object(relation.parts, self.context, position=position)
        except ObjectNotFoundError as error:
            return replace(bound, absent=error)
        bound = replace(bound, resolved=resolved)
        hidden = (bound.system or usage is not Usage.READ) and not self.visible.shows(resolved.mount)
        if hidden or (bound.system and resolved.metadata_table):
            return replace(bound, absent=self.not_found(bound))
        if usage is not Usage.READ and (resolved.metadata_table or bound.system):
            raise NotSupportedError(
                f"{'.'.join(relation.parts)} is read-only", code=ErrorCode.NOT_SUPPORTED, position=position
            )
        if usage is not Usage.READ and resolved.mount.backend.read_only:
            raise NotSupportedError(f"Catalog {resolved.mount.name} is read-only", position=position)
        if bound.system:
            return bound
        if usage is Usage.CREATE and not self.visible.has_schema(resolved.mount, resolved.name.namespace):
            return replace(bound, absent=schema_to_make(resolved.name.schema))
        if resolved not in self._loaded:
            # What exists is decided on with everything else of the statement, in one question (POL-3). What is hidden
            # is as free a name as any until the catalog says that it is taken: it is not replaced then (ERR-7).
            load = self.visible.find if usage is Usage.CREATE else self.visible.load
            self._loaded[resolved] = load(resolved.mount, resolved.name)
        replaces = usage is Usage.CREATE and relation.holder in _REPLACES
        return replace(bound, loaded=self._loaded[resolved], replaces=replaces)

    def not_found(self, entry: BoundRelation) -> SqeError:
        """Return the one answer about a name that is missing, hidden or denied (ERR-5)."""
        if entry.absent is not None or entry.resolved is None:
            assert entry.absent is not None
            return entry.absent
        return table_not_found(entry.relation.parts, position=entry.position, hint=self.near.hint(entry.resolved))


def _usage_of(relation: Relation, command: Action | None) -> tuple[Usage, Action]:
    match relation.kind:
        case RelationKind.RELATION:
            action = _WRITE_TARGETS.get((relation.holder, relation.field))
            return (Usage.WRITE, action) if action else (Usage.READ, Action.SELECT)
        case RelationKind.TABLE | RelationKind.TABLE_OR_VIEW if command is not None:
            return Usage.WRITE, command
        case RelationKind.IDENTIFIER if command is Action.CREATE:
            return Usage.CREATE, Action.CREATE
    raise NotSupportedError("This form of the statement is not supported")
