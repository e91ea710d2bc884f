"""The statements of governance, once recognised: who may see and do what.

Expressions in them are kept as the user wrote them; whoever stores one has it compiled first (POL-5, POL-15).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqe_core.spi.policy import ColumnMask, Grantee, Mask, Privilege
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statement import Name, Statement, StatementKind

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


class GrantPrivileges(Statement, kind=StatementKind.GRANT):
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


class RevokePrivileges(Statement, kind=StatementKind.REVOKE):
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


class GrantRoles(Statement, kind=StatementKind.GRANT):
    """GRANT ROLE r TO …"""

    roles: tuple[str, ...]
    grantees: tuple[Grantee, ...]
    with_admin_option: bool = False


class RevokeRoles(Statement, kind=StatementKind.REVOKE):
    """REVOKE ROLE r FROM …; `option_only` for ADMIN OPTION FOR."""

    roles: tuple[str, ...]
    grantees: tuple[Grantee, ...]
    option_only: bool = False


class CreateRole(Statement, kind=StatementKind.ROLE):
    role: str
    if_not_exists: bool = False


class DropRole(Statement, kind=StatementKind.ROLE):
    role: str
    if_exists: bool = False


class SetRole(Statement, kind=StatementKind.ROLE):
    """SET ROLE r, ALL or NONE: the roles of the session that count from now on; never more than it has."""

    mode: Literal["one", "all", "none"]
    role: str | None = None


class ShowRoles(Statement, kind=StatementKind.SHOW):
    """SHOW ROLES, SHOW CURRENT ROLES, SHOW ROLE GRANTS."""

    which: Literal["all", "current", "grants"]


class ShowGrants(Statement, kind=StatementKind.SHOW):
    """SHOW GRANTS [ON object] [TO grantee]."""

    object: GrantObject | None = None
    grantee: Grantee | None = None


class ShowEffectiveGrants(Statement, kind=StatementKind.SHOW):
    """SHOW EFFECTIVE GRANTS; None is the user of the session, as everywhere below."""

    user: str | None = None


class ShowEffectivePolicy(Statement, kind=StatementKind.SHOW):
    name: Name
    user: str | None = None


class CheckAccess(Statement, kind=StatementKind.CHECK_ACCESS):
    privilege: Privilege
    object: GrantObject
    user: str | None = None


class ExplainAccess(Statement, kind=StatementKind.EXPLAIN):
    """What would be filtered, masked or refused if the statement ran; it does not run."""

    inner: Statement
    user: str | None = None


class CreatePolicy(Statement, kind=StatementKind.POLICY):
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


class DropPolicy(Statement, kind=StatementKind.POLICY):
    name: str
    if_exists: bool = False


class ShowMaskingPolicies(Statement, kind=StatementKind.SHOW):
    name: str | None = None


class ShowTags(Statement, kind=StatementKind.SHOW):
    name: Name


class SetTags(Statement, kind=StatementKind.SET_TAGS):
    """ALTER TABLE … SET TAGS: these are added to the tags of each column."""

    name: Name
    tags: Mapping[str, frozenset[str]]


class UnsetTags(Statement, kind=StatementKind.SET_TAGS):
    """ALTER TABLE … UNSET TAGS: all tags of these columns, or the one tag of them."""

    name: Name
    columns: tuple[str, ...]
    tag: str | None = None


class SetMaskingPolicy(Statement, kind=StatementKind.POLICY):
    """ALTER COLUMN … SET MASKING POLICY p, or UNSET."""

    name: Name
    column: str
    policy: str | None


class SetOwner(Statement, kind=StatementKind.SET_OWNER):
    """ALTER … SET AUTHORIZATION, ALTER … OWNER TO."""

    object: Owned
    name: Name
    owner: Grantee
