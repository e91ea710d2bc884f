"""What every statement of governance needs: who asks, where grants are kept, and what a name is.

Who may is decided before anything is looked up: whoever may not learns nothing about what exists (META-3, ERR-5).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.system import SYSTEM
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.policy.authorizer import Authorizer, Circumstances, Verdict
from sqe_core.policy.outside import OutsideGrants
from sqe_core.query.answers.metadata import MetadataAnswers
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.judge.names import NameContext, NameResolver, ResolvedName, schema_not_found, table_not_found
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, ErrorCode, NotSupportedError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName, quote_part
from sqe_core.spi.policy import ColumnMask, Grantee, GrantTarget, Mask, SqlMask
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statement import Name
from sqe_core.sql.statements.governance import GrantObject

_Capability = TypeVar("_Capability")
Loaded = TableMetadata | ViewMetadata

NOT_CONFIGURED = "Policy engine not configured"


CheckRestrictions = Callable[[ObjectName, Mount, Loaded, Verdict], None]
"""Compiles the restrictions of a table or view as every use of them will; raises a UserError (POL-5, POL-6, POL-15)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernedObject:
    """What a GrantObject turned out to be; `loaded` is None for catalogs and schemas, and for what is gone."""

    target: GrantTarget
    loaded: Loaded | None = None

    @property
    def name(self) -> ObjectName | NamespaceName:
        """The name of the object, or of the schema or catalog."""
        target = self.target
        if target.name is None:
            return NamespaceName(catalog=target.catalog, namespace=target.namespace)
        return ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steward:
    """One session's way to the stores. `admins` says who is an administrator.

    `outside` keeps grants and roles in the place of the policy engines, which go on to keep everything else.
    """

    session: StatementSession
    authorizer: Authorizer
    circumstances: Circumstances
    resolver: NameResolver
    visible: VisibleCatalogs
    answers: MetadataAnswers
    admins: Callable[[Identity], bool]
    check_restrictions: CheckRestrictions
    canonical: Callable[[SqlExpression], SqlExpression]
    """Returns an expression as it is stored."""
    looks_up: Callable[[SqlExpression], bool]
    """Whether a row filter looks into other tables."""
    outside: OutsideGrants | None = None

    @property
    def identity(self) -> Identity:
        """Who asks, with the roles in use."""
        return self.session.identity

    @property
    def is_admin(self) -> bool:
        """Whether it is an administrator."""
        return self.admins(self.identity)

    @property
    def context(self) -> NameContext:
        """The session's current names."""
        return NameContext(catalog=self.session.catalog, schema=self.session.schema)

    def store(self, capability: type[_Capability]) -> _Capability:
        """Return what keeps such things: the store outside of the engines, or the first engine that does."""
        if isinstance(self.outside, capability):
            return self.outside
        found = self.authorizer.stores(capability)
        if not found:
            raise NotSupportedError(NOT_CONFIGURED, hint='[policy] engine = "grants" keeps grants, roles and policies')
        return found[0]

    def require_admin(self, what: str) -> None:
        """Raise unless it is an administrator."""
        if not self.is_admin:
            raise denied(what)

    def is_me(self, grantee: Grantee) -> bool:
        """Whether a grantee stands for whoever asks."""
        identity = self.identity
        match grantee.type:
            case "public":
                return True
            case "user":
                return grantee.name == identity.username
            case "role":
                return grantee.name in identity.roles
            case "group":
                return grantee.name in identity.groups

    def somebody(self, user: str | None, what: str) -> Identity:
        """Return who a statement asks about; about others only administrators may ask, whoever they are (META-2, 3).

        Of others only what the store knows is known: the roles of their tokens come with their logins.
        """
        if user is None or user == self.identity.username:
            return self.identity
        self.require_admin(what)
        return Identity(issuer="", subject=user, username=user, provider="")

    # Objects

    def find(self, written: GrantObject, *, must_exist: bool = True) -> GovernedObject:
        """Resolve an object and see that it exists for whoever asks, unless `must_exist` is False."""
        match written.scope:
            case "catalog":
                mount = self.resolver.catalog(written.name[0])
                if mount is SYSTEM:
                    raise NotSupportedError(f"Catalog {SYSTEM.name} belongs to SQE and cannot be granted")
                return GovernedObject(target=GrantTarget(scope="catalog", catalog=mount.name))
            case "table" | "view" | "object":
                resolved, loaded = self.find_object(written.name, must_exist=must_exist)
                return self._governed_object(written, resolved, loaded)
        mount, schema = self.resolver.schema(written.name, self.context)
        if mount is SYSTEM or not _may_be_governed(schema.namespace):
            raise NotSupportedError(f"Schema {schema.namespace[0]} belongs to SQE and cannot be granted")
        if must_exist and not self.visible.has_schema(mount, schema.namespace):
            known = [".".join(namespace) for namespace in self.visible.schemas(mount)]
            raise schema_not_found(schema, hint=did_you_mean(".".join(schema.namespace), known))
        return GovernedObject(
            target=GrantTarget(scope=written.scope, catalog=schema.catalog, namespace=schema.namespace)
        )

    def unseen(self, written: GrantObject) -> GovernedObject:
        """Resolve a name without looking whether anything of it exists."""
        match written.scope:
            case "catalog":
                return GovernedObject(target=GrantTarget(scope="catalog", catalog=written.name[0]))
            case "table" | "view" | "object":
                resolved = self.resolver.object(written.name, self.context)
                return self._governed_object(written, resolved, None)
        parts = written.name
        catalog = parts[0] if len(parts) > 1 else self.context.catalog
        found = self.resolver.find(catalog)
        namespace = tuple(parts[-1].split("."))
        return GovernedObject(
            target=GrantTarget(scope=written.scope, catalog=found.name if found else catalog, namespace=namespace)
        )

    def find_object(self, name: Name, *, must_exist: bool = True) -> tuple[ResolvedName, Loaded | None]:
        """Resolve and load a table or a view."""
        resolved = self.resolver.object(name, self.context)
        if resolved.metadata_table is not None or not _may_be_governed(resolved.name.namespace):
            raise table_not_found(name)
        loaded = self.visible.find(resolved.mount, resolved.name)
        if loaded is None and must_exist:
            raise table_not_found(name, hint=self.answers.suggest(resolved))
        return resolved, loaded

    def existing(self, name: Name) -> tuple[ResolvedName, Loaded]:
        """Resolve and load a table or a view that exists."""
        resolved, loaded = self.find_object(name)
        assert loaded is not None
        return resolved, loaded

    def find_schema(self, name: Name) -> tuple[Mount, NamespaceName]:
        """Resolve a schema that exists."""
        found = self.find(GrantObject(scope="schema", name=name))
        assert isinstance(found.name, NamespaceName)
        return self.resolver.catalog(found.name.catalog), found.name

    @staticmethod
    def _governed_object(written: GrantObject, resolved: ResolvedName, loaded: Loaded | None) -> GovernedObject:
        is_view = isinstance(loaded, ViewMetadata) if loaded is not None else written.scope == "view"
        if written.scope == "view" and not is_view:
            raise UserError(f"{resolved.name} is a table", hint="leave VIEW out")
        return GovernedObject(
            target=GrantTarget(
                scope="view" if is_view else "table",
                catalog=resolved.name.catalog,
                namespace=resolved.name.namespace,
                name=resolved.name.name,
            ),
            loaded=loaded,
        )

    # Columns and expressions

    def columns(self, name: ObjectName, loaded: Loaded) -> tuple[Column, ...]:
        """Return the columns that whoever asks may name: administrators all of them."""
        if self.is_admin:
            return loaded.columns
        return self.authorizer.visible_columns(self.identity, name, loaded.columns, self.circumstances)

    def column(self, name: ObjectName, loaded: Loaded, written: str) -> str:
        """Return the name of a column as the table has it."""
        known = [column.name for column in self.columns(name, loaded)]
        found = [column for column in known if column.casefold() == written.casefold()]
        if written in found:
            return written
        if len(found) == 1:
            return found[0]
        raise UserError(
            f"Column {quote_part(written)} of {name} does not exist",
            code=ErrorCode.COLUMN_NOT_FOUND,
            hint=did_you_mean(written, known),
        )

    def compile(
        self,
        governed: GovernedObject,
        *,
        row_filters: Sequence[SqlExpression] = (),
        column_masks: Sequence[ColumnMask] = (),
    ) -> None:
        """See that filters and masks compile against the table or the view (POL-15)."""
        if not row_filters and not column_masks:
            return
        assert isinstance(governed.name, ObjectName)
        assert governed.loaded is not None
        access = Verdict(
            denied=False,
            columns=governed.loaded.columns,
            filters=tuple(row_filters),
            masks={one.column: one.mask for one in column_masks},
        )
        mount = self.resolver.catalog(governed.name.catalog)
        self.check_restrictions(governed.name, mount, governed.loaded, access)

    def stored_filter(self, row_filter: SqlExpression) -> SqlExpression:
        """Return a row filter as it is stored; one of an administrator may look into tables (POL-5)."""
        reads_tables = self.is_admin and self.looks_up(row_filter)
        return replace(self.canonical(row_filter), reads_tables=reads_tables)

    def stored_mask(self, mask: Mask) -> Mask:
        """Return a mask as it is stored."""
        if not isinstance(mask, SqlMask):
            return mask
        # What stands for the column is no SQL.
        column = "column_" + secrets.token_hex(16)
        written = replace(mask.expression, text=mask.expression.text.replace("{col}", column))
        stored = self.canonical(written)
        return SqlMask(expression=replace(stored, text=stored.text.replace(column, "{col}")))


def denied(what: str) -> AccessDeniedError:
    """The one answer to somebody who may not, whatever exists."""
    return AccessDeniedError(f"You may not {what}")


def _may_be_governed(namespace: tuple[str, ...]) -> bool:
    return namespace[:1] != (INFORMATION_SCHEMA,)
