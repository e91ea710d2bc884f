"""The objects that SQE's own DDL names: resolved, found and authorised as a handler needs them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.engine.port import EngineCatalog
from sqe_core.policy.authorizer import AccessRequest
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.names import (
    NameContext,
    ResolvedName,
    action_denied,
    restricted_error,
    schema_to_make,
    table_not_found,
)
from sqe_core.query.statements.handler import ExistingObject, NewObject, SchemaNeed
from sqe_core.query.statements.lifecycle import ObjectLives
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, ObjectNotFoundError, UserError
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action

# Of schemas and views.
_PROPERTIES = ("comment",)


@dataclass(frozen=True, slots=True)
class CatalogObjects:
    """Finds for one statement."""

    context: StatementContext

    @property
    def lives(self) -> ObjectLives:
        return ObjectLives(self.context.parts.authorizer, self.context.identity)

    def metadata(self, mount: Mount) -> EngineCatalog:
        if mount.backend.read_only:
            raise NotSupportedError(f"Catalog {mount.name} is read-only")
        return self.context.session.metadata(mount)

    def require(self, name: ObjectName | NamespaceName, action: Action) -> None:
        context = self.context
        context.parts.authorizer.require(context.identity, name, action, context.circumstances)
        context.resolver.ensure_mounted()

    def schema(self, need: SchemaNeed) -> tuple[Mount, NamespaceName]:
        """Resolve a schema that is to be changed; whether it is there, and who may, is decided by the handler."""
        mount, schema = self.context.resolver.schema(need.name, self.context.names)
        self.metadata(mount)
        if schema.namespace[0] == INFORMATION_SCHEMA:
            raise NotSupportedError(f"Schema {INFORMATION_SCHEMA} belongs to SQE and cannot be changed")
        return mount, schema

    def existing(self, need: ExistingObject) -> tuple[ResolvedName, TableMetadata | ViewMetadata] | None:
        """Resolve, load and authorise an object that is changed or copied as a whole; None is IF EXISTS."""
        code = ErrorCode.VIEW_NOT_FOUND if need.kind is ViewMetadata else ErrorCode.TABLE_NOT_FOUND
        try:
            resolved = self.context.resolver.object(need.name, self.context.names)
        except ObjectNotFoundError as error:
            # A catalog that is not there is told like one that is hidden (ERR-5).
            if need.if_exists:
                return None
            raise table_not_found(need.name, hint=error.hint, code=code) from None
        loaded = None if resolved.metadata_table else self.context.visible.find(resolved.mount, resolved.name)
        if loaded is None or not self.may_change(resolved.name, loaded, need.actions):
            if need.if_exists:
                return None
            raise table_not_found(need.name, hint=self.context.near.hint(resolved), code=code)
        if need.kind is not None and not isinstance(loaded, need.kind):
            is_view = isinstance(loaded, ViewMetadata)
            raise UserError(
                f"{resolved.name} is a {'view' if is_view else 'table'}",
                hint=f"use the statement for {'views' if is_view else 'tables'}, such as DROP "
                f"{'VIEW' if is_view else 'TABLE'}",
            )
        self.metadata(resolved.mount)
        return resolved, loaded

    def may_change(self, name: ObjectName, loaded: TableMetadata | ViewMetadata, needed: Iterable[Action]) -> bool:
        """Whether all that is needed is allowed; what the user sees in part only is refused (DML-4)."""
        context = self.context
        asked = tuple(dict.fromkeys((*needed, Action.SELECT)))
        requests = [AccessRequest(name=name, action=action, loaded=loaded) for action in asked]
        decisions = context.parts.authorizer.decide(context.identity, requests, context.circumstances)
        context.resolver.ensure_mounted()
        # DML-8: what is done to a table as a whole takes somebody who may read it.
        needed = asked if isinstance(loaded, TableMetadata) else tuple(needed)
        denied = [action for action in needed if decisions[name, action].denied]
        if denied:
            context.circumstances.refused(name)
            if not decisions[name, Action.SELECT].denied:
                raise action_denied(name, denied[0])
            return False
        if any(access.restricted for access in decisions.values()):
            raise restricted_error(name)
        return True

    def new(self, need: NewObject) -> ResolvedName:
        """Resolve and authorise the name of an object to create; its schema must exist."""
        resolved = self.place_of(need)
        self.require(resolved.name, need.action)
        return resolved

    def place_of(self, need: NewObject) -> ResolvedName:
        """Resolve the name of an object to create; its schema must exist."""
        context = self.context
        resolved = self.resolve_new(need)
        if resolved.metadata_table:
            raise UserError(f"{need.name[-1]} cannot be the name of a table: $ introduces a metadata table")
        self.metadata(resolved.mount)
        if resolved.name.namespace[0] == INFORMATION_SCHEMA:
            raise NotSupportedError(f"Schema {INFORMATION_SCHEMA} belongs to SQE and cannot be changed")
        if not context.visible.has_schema(resolved.mount, resolved.name.namespace):
            raise schema_to_make(resolved.name.schema)
        return resolved

    def resolve_new(self, need: NewObject) -> ResolvedName:
        """Say what a new name means, in a catalog that the user may know."""
        names = self.context.names
        if need.beside is not None:
            source = self.context.resolver.object(need.beside, names).name
            names = NameContext(catalog=source.catalog, schema=source.namespace)
        resolved = self.context.resolver.object(need.name, names)
        if not self.context.visible.shows(resolved.mount):
            raise table_not_found(need.name, hint=self.context.near.hint(resolved))
        return resolved


def check_properties(what: str, properties: Mapping[str, str | None]) -> None:
    """Catalogs give other keys a meaning: where files lie, who owns it (STMT-7)."""
    for key in properties:
        if key not in _PROPERTIES:
            raise NotSupportedError(
                f"{what} property {json.dumps(key)} cannot be set", hint="known: " + ", ".join(_PROPERTIES)
            )
