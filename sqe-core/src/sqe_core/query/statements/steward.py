"""What every statement of governance needs: who asks, where grants are kept, and what a name is.

Who may is decided before anything is looked up: whoever may not learns nothing about what exists (META-3, ERR-5).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, Unpack

import pyarrow as pa

from sqe_core.catalog.system import SYSTEM
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.policy.authorizer import Authorizer, Verdict
from sqe_core.policy.outside import OutsideGrants
from sqe_core.policy.trail import KeepsChanges
from sqe_core.query.context import StatementContext
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.judge.names import ResolvedName, table_not_found
from sqe_core.query.run.judging import Judging
from sqe_core.query.statements.handler import Answer, Change, Facts, S, denied
from sqe_core.query.statements.traits import RIGHTS
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName, quote_part
from sqe_core.spi.policy import ColumnMask, Grantee, GrantTarget, Mask, SqlMask, SupportsRoles
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statement import Name
from sqe_core.sql.statements.governance import GrantObject

_Capability = TypeVar("_Capability")
Loaded = TableMetadata | ViewMetadata

NOT_CONFIGURED = "Policy engine not configured"


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernedObject:
    """What a GrantObject turned out to be; `loaded` is None for catalogs and schemas, and for what is gone."""

    target: GrantTarget
    loaded: Loaded | None = None

    @property
    def name(self) -> ObjectName | NamespaceName:
        target = self.target
        if target.name is None:
            return NamespaceName(catalog=target.catalog, namespace=target.namespace)
        return ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name)


@dataclass(frozen=True, slots=True)
class Steward:
    """One statement's way to the stores of grants and policies."""

    context: StatementContext

    @property
    def seen(self) -> StatementContext:
        """What whoever asks may speak of: administrators of everything."""
        return self.context.without_policies() if self.is_admin else self.context

    @property
    def outside(self) -> OutsideGrants | None:
        """Keeps grants and roles in the place of the policy engines, which go on to keep everything else."""
        return self.context.parts.outside

    @property
    def authorizer(self) -> Authorizer:
        return self.context.parts.authorizer

    @property
    def identity(self) -> Identity:
        return self.context.identity

    @property
    def is_admin(self) -> bool:
        return self.context.is_admin

    def store(self, capability: type[_Capability], *, admin: str | None = None) -> _Capability:
        """Return what keeps such things: the store outside of the engines, or the first engine that does.

        `admin` is what only administrators may do with it.
        """
        found = [self.outside] if isinstance(self.outside, capability) else self.authorizer.stores(capability)
        if not found:
            raise NotSupportedError(NOT_CONFIGURED, hint='[policy] engine = "grants" keeps grants, roles and policies')
        if admin is not None:
            self.require_admin(admin)
        return found[0]

    def require_admin(self, what: str) -> None:
        if not self.is_admin:
            raise denied(what)

    def is_me(self, grantee: Grantee) -> bool:
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

    def remark(self, grantees: Iterable[Grantee]) -> None:
        """Warn administrators of roles that nobody seems to have. Others are not told which there are (META-1)."""
        if not self.is_admin or self.outside is not None:
            return
        known = self.context.parts.known
        roles = set(known.roles)
        for store in self.authorizer.stores(SupportsRoles):
            roles.update(one.name for one in store.list_roles(author=self.identity))
        for name in [one.name for one in grantees if one.type == "role" and one.name not in roles]:
            meant = (
                f"did you mean USER {quote_part(name)}?" if name in known.users else did_you_mean(name, sorted(roles))
            )
            said = f"No login since the start has the role {quote_part(name)}, and nobody created it"
            self.context.running.warn(f"{said}; {meant}" if meant else said)

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
                mount = self.seen.resolver.catalog(written.name[0])
                if mount is SYSTEM:
                    raise NotSupportedError(f"Catalog {SYSTEM.name} belongs to SQE and cannot be granted")
                return GovernedObject(target=GrantTarget(scope="catalog", catalog=mount.name))
            case "table" | "view" | "object":
                resolved, loaded = self.find_object(written.name, must_exist=must_exist)
                return self._governed_object(written, resolved, loaded)
        mount, schema = self.seen.resolver.schema(written.name, self.context.names)
        if mount is SYSTEM or not _may_be_governed(schema.namespace):
            raise NotSupportedError(f"Schema {schema.namespace[0]} belongs to SQE and cannot be granted")
        if must_exist and not self.seen.visible.has_schema(mount, schema.namespace):
            raise self.seen.near.no_schema(mount, schema)
        return GovernedObject(
            target=GrantTarget(scope=written.scope, catalog=schema.catalog, namespace=schema.namespace)
        )

    def unseen(self, written: GrantObject) -> GovernedObject:
        """Resolve a name without looking whether anything of it exists."""
        match written.scope:
            case "catalog":
                return GovernedObject(target=GrantTarget(scope="catalog", catalog=written.name[0]))
            case "table" | "view" | "object":
                resolved = self.seen.resolver.object(written.name, self.context.names)
                return self._governed_object(written, resolved, None)
        parts = written.name
        catalog = parts[0] if len(parts) > 1 else self.context.names.catalog
        found = self.seen.resolver.find(catalog)
        namespace = tuple(parts[-1].split("."))
        return GovernedObject(
            target=GrantTarget(scope=written.scope, catalog=found.name if found else catalog, namespace=namespace)
        )

    def find_object(self, name: Name, *, must_exist: bool = True) -> tuple[ResolvedName, Loaded | None]:
        resolved = self.seen.resolver.object(name, self.context.names)
        if resolved.metadata_table is not None or not _may_be_governed(resolved.name.namespace):
            shown = self.seen.visible.shows(resolved.mount)
            raise table_not_found(name, hint=None if shown else self.context.near.hint(resolved))
        loaded = self.seen.visible.find(resolved.mount, resolved.name)
        if loaded is None and must_exist:
            raise table_not_found(name, hint=self.context.near.hint(resolved))
        return resolved, loaded

    def existing(self, name: Name) -> tuple[ResolvedName, Loaded]:
        resolved, loaded = self.find_object(name)
        assert loaded is not None
        return resolved, loaded

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
        return Judging(self.context).visible_columns(name, loaded)

    def column(self, name: ObjectName, loaded: Loaded, written: str) -> str:
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
            columns=self.columns(governed.name, governed.loaded),
            filters=tuple(row_filters),
            masks={one.column: one.mask for one in column_masks},
        )
        mount = self.seen.resolver.catalog(governed.name.catalog)
        Judging(self.context).new_judge().check_restrictions(governed.name, mount, governed.loaded, access)

    def canonical(self, expression: SqlExpression) -> SqlExpression:
        reader = self.context.parts.reader
        return replace(expression, text=reader.canonical(expression.text, dialect=expression.dialect))

    def stored_filter(self, row_filter: SqlExpression) -> SqlExpression:
        """Return a row filter as it is stored; one of an administrator may look into tables (POL-5)."""
        reader = self.context.parts.reader
        _, queries = reader.translate_filter(row_filter.text, dialect=row_filter.dialect, sizes=None)
        return replace(self.canonical(row_filter), reads_tables=self.is_admin and bool(queries))

    def stored_mask(self, mask: Mask) -> Mask:
        if not isinstance(mask, SqlMask):
            return mask
        # What stands for the column is no SQL.
        column = "column_" + secrets.token_hex(16)
        written = replace(mask.expression, text=mask.expression.text.replace("{col}", column))
        stored = self.canonical(written)
        return SqlMask(expression=replace(stored, text=stored.text.replace(column, "{col}")))


def _may_be_governed(namespace: tuple[str, ...]) -> bool:
    return namespace[:1] != (INFORMATION_SCHEMA,)


def steward_answer(statement: type[S], told: Callable[[S, Steward], pa.Table]) -> Answer[S]:
    """Make the handler of what is asked about rights; `told` returns what whoever asks may know."""
    return Answer(statement=statement, rows=lambda asked, context: told(asked, Steward(context)))


def steward_change(statement: type[S], **facts: Unpack[Facts]) -> Callable[[Callable[[S, Steward], None]], Change[S]]:
    """Make a function the handler of what changes rights: recorded before and after, with what changed in which store.

    Whatever engines had said before is asked anew (POL-15).
    """

    facts.setdefault("traits", RIGHTS)

    def made(change: Callable[[S, Steward], None]) -> Change[S]:
        def apply(asked: S, context: StatementContext) -> None:
            try:
                change(asked, Steward(context))
            finally:
                context.parts.authorizer.flush()

        return Change(
            statement=statement, apply=apply, in_engine=True, changes_rights=True, change_keepers=_keepers, **facts
        )

    return made


def _keepers(context: StatementContext) -> Sequence[KeepsChanges]:
    """The stores of the policy engines, and the one outside of them."""
    outside = context.parts.outside
    return (*context.parts.authorizer.stores(KeepsChanges), *([outside] if outside is not None else []))
