"""Roles and grants in the rows of Trino's tables: one's own, for administrators everybody's (META-1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqe_core.catalog.registry import Mount
from sqe_core.query.answers.grant_text import privileges_of
from sqe_core.query.context import StatementContext
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Effect, Grant, SupportsGrants, SupportsRoles
from sqe_core.sql.simple_query import Wanted

Rows = Iterator[Sequence[Any]]
_GRANTEE_TYPES = {"user": "USER", "role": "ROLE", "group": "GROUP", "public": "ROLE"}


def grantee_columns(grant: Grant) -> tuple[str, str]:
    """Return a grantee as Trino tells it: everybody is the role `public`."""
    return grant.grantee.name or "public", _GRANTEE_TYPES[grant.grantee.type]


@dataclass(frozen=True, slots=True)
class TrinoGrants:
    """Makes the rows of one statement."""

    context: StatementContext
    wanted: Wanted

    def roles(self) -> Rows:
        identity = self.context.identity
        names = set(identity.roles if identity.all_roles is None else identity.all_roles)
        if self.context.is_admin:
            stores: Sequence[SupportsRoles] = self.context.parts.authorizer.stores(SupportsRoles)
            if self.context.parts.outside is not None:
                stores = [self.context.parts.outside]
            names.update(one.name for store in stores for one in store.list_roles(author=identity))
        yield from ((name,) for name in sorted(names))

    def applicable_roles(self) -> Rows:
        identity = self.context.identity
        held = identity.roles if identity.all_roles is None else identity.all_roles
        yield from ((identity.username, "USER", role, "NO") for role in sorted(held))

    def enabled_roles(self) -> Rows:
        yield from ((role,) for role in sorted(self.context.identity.roles))

    def table_privileges(self, mount: Mount) -> Rows:
        """What is granted on single tables to the user and to roles of theirs; for administrators to everybody."""
        context = self.context
        if context.parts.outside is not None:
            return  # everybody's grants are many requests there
        for store in context.parts.authorizer.stores(SupportsGrants):
            for grant in _grants(store, context):
                target = grant.target
                if grant.effect is not Effect.ALLOW or target.name is None or target.catalog != mount.name:
                    continue
                schema = ".".join(target.namespace)
                if not (self.wanted.takes("table_schema", schema) and self.wanted.takes("table_name", target.name)):
                    continue
                name = ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name)
                if not context.is_admin and not context.visible.shows_object(name):
                    continue
                for privilege in privileges_of(grant) if grant.privileges else ():
                    yield (
                        *(grant.granted_by, "USER" if grant.granted_by else None, *grantee_columns(grant)),
                        *(target.catalog, schema, target.name, privilege),
                        *("YES" if grant.with_grant_option else "NO", None),
                    )


def _grants(store: SupportsGrants, context: StatementContext) -> Sequence[Grant]:
    if context.is_admin:
        return store.list_grants(target=None, grantee=None, author=context.identity)
    return store.effective_grants(context.identity, author=context.identity)
