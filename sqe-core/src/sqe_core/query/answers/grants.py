"""SHOW GRANTS, SHOW ROLES and their like. Others than administrators see what is about themselves (META-1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from sqe_core.query.answers import trino_shapes
from sqe_core.query.answers.grant_text import (
    grantee_text,
    mask_text,
    masks_text,
    names_text,
    privileges_of,
    target_text,
)
from sqe_core.query.answers.metadata import text_table
from sqe_core.query.answers.trino_grants import grantee_columns
from sqe_core.query.statements.handler import denied
from sqe_core.query.statements.steward import Steward
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import (
    Effect,
    Grant,
    SqlMask,
    StoredPolicy,
    SupportsGrants,
    SupportsPolicies,
    SupportsRoles,
)
from sqe_core.sql.statements.governance import (
    GrantObject,
    ShowEffectiveGrants,
    ShowGrants,
    ShowMaskingPolicies,
    ShowRoles,
)

GRANT_COLUMNS = (
    "privilege",
    "resource",
    "grantee_type",
    "grantee_name",
    "effect",
    "granted_by",
    "granted_at",
    "columns",
    "masks",
    "row_filter",
)
EFFECTIVE_COLUMNS = ("resource", "privilege", "grantee", "row_filter", "column_masks")
ROLE_GRANT_COLUMNS = ("role", "grantee_type", "grantee_name", "admin_option")
POLICY_COLUMNS = ("name", "tag", "database", "table", "column", "mask_type", "expression", "grantees", "enabled")
A_FILTER = "(a row filter)"
"""What others than administrators read in the place of a filter: that there is one."""


@dataclass(frozen=True, slots=True)
class GovernanceAnswers:
    """Answers what is asked about the stores."""

    steward: Steward

    def grants(self, statement: ShowGrants) -> pa.Table:
        """SHOW GRANTS: the grants that name just this object, or just this grantee."""
        steward = self.steward
        trino = steward.context.trino
        if trino and steward.outside is None and not steward.authorizer.stores(SupportsGrants):
            if statement.object is not None:
                steward.find(statement.object)
            return text_table(trino_shapes.GRANTS, ())  # tools ask it of every table
        store = steward.store(SupportsGrants)
        grantee = statement.grantee
        if grantee is not None and not steward.is_admin and not steward.is_me(grantee):
            raise denied("see what others were granted")
        target = None
        if statement.object is not None:
            found = steward.find(statement.object, must_exist=not steward.is_admin)
            target = found.target
        if grantee is None and steward.outside is not None and not steward.is_admin:
            # Everybody's grants are many requests there, and few of them would be shown.
            mine = store.effective_grants(steward.identity, author=steward.identity)
            listed: Sequence[Grant] = [grant for grant in mine if target is None or grant.target == target]
        else:
            listed = store.list_grants(target=target, grantee=grantee, author=steward.identity)
        if not listed and target is not None and target.name is not None and steward.is_admin:
            steward.find(statement.object or GrantObject(scope="object", name=()))
        if not steward.is_admin:
            listed = [grant for grant in listed if steward.is_me(grant.grantee)]
        if trino:
            return text_table(trino_shapes.GRANTS, _in_trino(grant for grant, _, _ in _Shown(steward).all(listed)))
        return text_table(
            GRANT_COLUMNS,
            [
                (
                    privilege,
                    target_text(grant.target),
                    grant.grantee.type,
                    grant.grantee.name or "PUBLIC",
                    grant.effect.value,
                    grant.granted_by,
                    grant.granted_at.isoformat() if grant.granted_at else None,
                    names_text(grant.columns),
                    masks,
                    row_filter,
                )
                for grant, masks, row_filter in _Shown(steward).all(listed)
                for privilege in privileges_of(grant)
            ],
        )

    def effective_grants(self, statement: ShowEffectiveGrants) -> pa.Table:
        """SHOW EFFECTIVE GRANTS: what reaches somebody, directly and through roles."""
        store = self.steward.store(SupportsGrants)
        somebody = self.steward.somebody(statement.user, "see the grants of others")
        listed = store.effective_grants(somebody, author=self.steward.identity)
        return text_table(
            EFFECTIVE_COLUMNS,
            [
                (
                    target_text(grant.target),
                    privilege if grant.effect is Effect.ALLOW else f"DENY {privilege}",
                    grantee_text(grant.grantee),
                    row_filter,
                    masks,
                )
                for grant, masks, row_filter in _Shown(self.steward).all(listed)
                for privilege in privileges_of(grant)
            ],
        )

    def roles(self, statement: ShowRoles) -> pa.Table:
        """SHOW ROLES, SHOW CURRENT ROLES, SHOW ROLE GRANTS."""
        identity, trino = self.steward.identity, self.steward.context.trino
        held = identity.roles if identity.all_roles is None else identity.all_roles
        title = ("Role",) if trino else ("role",)
        if statement.which == "current":
            return text_table(title, [(role,) for role in sorted(identity.roles)])
        if statement.which == "grants" and trino:
            return text_table(("Role Grants",), [(role,) for role in sorted(held)])
        stores: Sequence[SupportsRoles] = self.steward.authorizer.stores(SupportsRoles)
        outside = self.steward.outside
        if outside is not None:
            # It lists who has which role to those only who may know all of it.
            stores = [outside] if self.steward.is_admin else []
        if statement.which == "all":
            names = set(held)
            if self.steward.is_admin:
                names.update(one.name for store in stores for one in store.list_roles(author=identity))
            return text_table(title, [(role,) for role in sorted(names)])
        return self._role_grants(identity, held, stores)

    def _role_grants(self, identity: Identity, held: frozenset[str], stores: Sequence[SupportsRoles]) -> pa.Table:
        """The caller's own: what the store gives, through roles too, and what the login brought."""
        listed = [
            one
            for store in stores
            for one in store.list_role_grants(author=identity)
            if self.steward.is_me(one.grantee) or (one.grantee.type == "role" and one.grantee.name in held)
        ]
        rows = {
            (one.role, one.grantee.type, one.grantee.name, "YES" if one.admin_option else "NO")
            for one in listed
            if one.role in held
        }
        known = {row[0] for row in rows}
        rows |= {(role, "user", identity.username, "NO") for role in held - known}
        return text_table(ROLE_GRANT_COLUMNS, sorted(rows))

    def masking_policies(self, statement: ShowMaskingPolicies) -> pa.Table:
        """SHOW MASKING POLICIES, for administrators."""
        store = self.steward.store(SupportsPolicies, admin="see policies")
        policies = [one for one in store.list_policies(author=self.steward.identity) if one.kind == "column_mask"]
        if statement.name is not None:
            policies = [one for one in policies if one.name.casefold() == statement.name.casefold()]
            if not policies:
                raise UserError(f"Policy {statement.name} does not exist", code=ErrorCode.INVALID_ARGUMENTS)
        return text_table(POLICY_COLUMNS, [_policy_row(policy) for policy in policies])


def _in_trino(grants: Iterable[Grant]) -> Iterator[Sequence[str | None]]:
    for grant in grants:
        target = grant.target
        for privilege in privileges_of(grant):
            yield (
                *(grant.granted_by, "USER" if grant.granted_by else None, *grantee_columns(grant)),
                *(target.catalog, ".".join(target.namespace) or None, target.name),
                privilege if grant.effect is Effect.ALLOW else f"DENY {privilege}",
                *("YES" if grant.with_grant_option else "NO", None),
            )


def _policy_row(policy: StoredPolicy) -> Sequence[str | None]:
    target = policy.target if isinstance(policy.target, ObjectName) else None
    mask = policy.mask
    custom = isinstance(mask, SqlMask)
    return (
        policy.name,
        policy.tag,
        str(target.schema) if target else None,
        target.name if target else None,
        policy.column,
        "MASK_NONE" if mask is None else "CUSTOM" if custom else mask_text(mask).strip("'"),
        mask.expression.text if isinstance(mask, SqlMask) else None,
        ", ".join(grantee_text(one) for one in policy.grantees),
        "true" if policy.enabled else "false",
    )


@dataclass(slots=True)
class _Shown:
    """What of a grant may be shown to whoever asks: its hidden columns and the texts of policies to nobody else."""

    steward: Steward
    _visible: dict[ObjectName, frozenset[str] | None] = field(default_factory=dict)

    def all(self, grants: Iterable[Grant]) -> Iterator[tuple[Grant, str | None, str | None]]:
        """Yield each grant with its masks and filter in words, as far as it may be shown."""
        for grant in grants:
            if self.steward.is_admin:
                text = grant.row_filter.text if grant.row_filter is not None else None
                yield grant, masks_text(grant.column_masks), text
            elif (kept := self._kept(grant)) is not None:
                masks = masks_text(kept.column_masks, kinds_only=True)
                yield kept, masks, A_FILTER if grant.row_filter is not None else None

    def _kept(self, grant: Grant) -> Grant | None:
        """What others than administrators see of a grant; None when that is nothing."""
        if grant.effect is Effect.DENY and grant.columns is not None:
            return None  # it would name what it hides (META-2)
        masks, columns = grant.column_masks, grant.columns
        if grant.target.name is not None and (masks or columns is not None):
            visible = self._columns(grant)
            if visible is None:
                return None
            masks = tuple(one for one in masks if one.column in visible)
            columns = None if columns is None else tuple(column for column in columns if column in visible)
        return replace(grant, column_masks=masks, columns=columns)

    def _columns(self, grant: Grant) -> frozenset[str] | None:
        """The visible columns of the table; None when it is not there for whoever asks."""
        target = grant.target
        name = ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name or "")
        if name not in self._visible:
            mount = self.steward.seen.resolver.find(name.catalog)
            loaded = self.steward.seen.visible.find(mount, name) if mount is not None else None
            self._visible[name] = (
                frozenset(column.name for column in self.steward.columns(name, loaded)) if loaded else None
            )
        return self._visible[name]
