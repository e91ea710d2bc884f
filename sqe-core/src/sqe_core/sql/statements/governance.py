"""The statements of governance, once recognised: who may see and do what.

Expressions in them are kept as the user wrote them; whoever stores one has it compiled first (POL-5, POL-15).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqe_core.spi.policy import ColumnMask, Grantee, Mask, Privilege
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statement import Name, Statement

Scope = Literal[
    "catalog", "schema", "table", "view", "object", "all_tables", "all_views", "future_tables", "future_views"
]
"""What the name of a `GrantObject` is. An `object` is a table or a view: the statement did not say."""

Owned = Literal["table", "view", "schema"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantObject:
    """What a privilege is about; of `all_tables` and its like the name is the schema's."""

    scope: Scope
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPrivileges(Statement):
    """GRANT and DENY.

    `columns` restricts SELECT, or its denial, to these; `row_filter` and `column_masks` restrict all of `privileges`.
    Without privileges only the restrictions are granted: GRANT ROWS WHERE.
    """

    privileges: frozenset[Privilege]
    object: GrantObject
    grantees: tuple[Grantee, ...]
    columns: tuple[str, ...] | None = None
    column_masks: tuple[ColumnMask, ...] = ()
    row_filter: SqlExpression | None = None
    with_grant_option: bool = False
    deny: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokePrivileges(Statement):
    """REVOKE. `columns` revokes SELECT on these only, `rows` the row filter only, `option_only` the grant option.

    `denial` lifts what DENY said.
    """

    privileges: frozenset[Privilege]
    object: GrantObject
    grantees: tuple[Grantee, ...]
    columns: tuple[str, ...] | None = None
    rows: bool = False
    option_only: bool = False
    denial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRoles(Statement):
    """GRANT ROLE r TO …"""

    roles: tuple[str, ...]
    grantees: tuple[Grantee, ...]
    with_admin_option: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRoles(Statement):
    """REVOKE ROLE r FROM …; `option_only` for ADMIN OPTION FOR."""

    roles: tuple[str, ...]
    grantees: tuple[Grantee, ...]
    option_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRole(Statement):
    role: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRole(Statement):
    role: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRole(Statement):
    """SET ROLE r, ALL or NONE: the roles of the session that count from now on; never more than it has."""

    mode: Literal["one", "all", "none"]
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRoles(Statement):
    """SHOW ROLES, SHOW CURRENT ROLES, SHOW ROLE GRANTS."""

    which: Literal["all", "current", "grants"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowGrants(Statement):
    """SHOW GRANTS [ON object] [TO grantee]."""

    object: GrantObject | None = None
    grantee: Grantee | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowEffectiveGrants(Statement):
    """SHOW EFFECTIVE GRANTS; None is the user of the session, as everywhere below."""

    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowEffectivePolicy(Statement):
    name: Name
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAccess(Statement):
    privilege: Privilege
    object: GrantObject
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAccess(Statement):
    """What would be filtered, masked or refused if the statement ran; it does not run."""

    inner: Statement
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePolicy(Statement):
    """CREATE POLICY: a row filter or a mask on a table, or a mask on whatever carries a tag.

    `mask` None is MASK_NONE: these grantees see the column as it is.
    """

    name: str
    grantees: tuple[Grantee, ...]
    table: Name | None = None
    tag: str | None = None
    column: str | None = None
    row_filter: SqlExpression | None = None
    mask: Mask | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPolicy(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowMaskingPolicies(Statement):
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTags(Statement):
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTags(Statement):
    """ALTER TABLE … SET TAGS: these are added to the tags of each column."""

    name: Name
    tags: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetTags(Statement):
    """ALTER TABLE … UNSET TAGS: all tags of these columns, or the one tag of them."""

    name: Name
    columns: tuple[str, ...]
    tag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMaskingPolicy(Statement):
    """ALTER COLUMN … SET MASKING POLICY p, or UNSET."""

    name: Name
    column: str
    policy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOwner(Statement):
    """ALTER … SET AUTHORIZATION, ALTER … OWNER TO."""

    object: Owned
    name: Name
    owner: Grantee
