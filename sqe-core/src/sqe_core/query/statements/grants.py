"""GRANT, REVOKE and DENY: who may, on what, and what is stored (POL-15); what is asked about grants and access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqe_core.query.answers.access import AccessAnswers
from sqe_core.query.answers.grants import GovernanceAnswers
from sqe_core.query.statements.handler import denied
from sqe_core.query.statements.steward import GovernedObject, Steward, steward_answer, steward_change
from sqe_core.spi.errors import NotSupportedError, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import ColumnMask, Effect, Grant, Grantee, Privilege, SupportsGrants
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statements.governance import (
    CheckAccess,
    ExplainAccess,
    GrantObject,
    GrantPrivileges,
    RevokePrivileges,
    ShowEffectiveGrants,
    ShowGrants,
)
from sqe_core.sql.statements.privileges import level_fault

_EVERY_FILTER = SqlExpression(text="")


show_grants = steward_answer(ShowGrants, lambda asked, steward: GovernanceAnswers(steward).grants(asked))
show_effective_grants = steward_answer(
    ShowEffectiveGrants, lambda asked, steward: GovernanceAnswers(steward).effective_grants(asked)
)
check_access = steward_answer(CheckAccess, lambda asked, steward: AccessAnswers(steward).check(asked))
explain_access = steward_answer(ExplainAccess, lambda asked, steward: AccessAnswers(steward).explain(asked))


@steward_change(GrantPrivileges)
def grant(statement: GrantPrivileges, steward: Steward) -> None:
    store = steward.store(SupportsGrants)
    if not steward.is_admin:
        if statement.deny:
            raise denied("deny this")
        asked = Grant(
            privileges=statement.privileges,
            target=_unseen(steward, statement.object, "grant this").target,
            grantee=statement.grantees[0],
            columns=statement.columns,
            with_grant_option=statement.with_grant_option,
        )
        _require_option(steward, store, asked, statement.grantees, "grant this")
    governed = steward.find(statement.object)
    _check_level(statement, governed)
    made = _made(steward, statement, governed)
    if not steward.is_admin:
        # Again, now that it is known what it is: the store decides by that.
        _require_option(steward, store, made, statement.grantees, "grant this")
    for grantee in statement.grantees:
        store.put_grant(replace(made, grantee=grantee), author=steward.identity)
    steward.remark(statement.grantees)


@steward_change(RevokePrivileges)
def revoke(statement: RevokePrivileges, steward: Steward) -> None:
    store = steward.store(SupportsGrants)
    if statement.denial:
        steward.require_admin("lift a DENY")
    if not steward.is_admin:
        unseen = _unseen(steward, statement.object, "revoke this")
        asked = Grant(
            privileges=statement.privileges,
            target=unseen.target,
            grantee=statement.grantees[0],
            columns=statement.columns,
        )
        _require_option(steward, store, asked, statement.grantees, "revoke this")
    # What was dropped behind our back keeps its grants, and an administrator can still take them away.
    governed = steward.find(statement.object, must_exist=False)
    if not steward.is_admin and _lifts(steward, store, statement, governed):
        raise denied("revoke this")
    revoked = Grant(
        privileges=statement.privileges,
        target=governed.target,
        grantee=statement.grantees[0],
        effect=Effect.DENY if statement.denial else Effect.ALLOW,
        columns=statement.columns,
        row_filter=_EVERY_FILTER if statement.rows else None,
        with_grant_option=statement.option_only,
    )
    removed = [
        store.delete_grant(replace(revoked, grantee=grantee), author=steward.identity) for grantee in statement.grantees
    ]
    if not any(removed):
        steward.find(statement.object)  # a missing object is an error, a missing grant is none


def _lifts(steward: Steward, store: SupportsGrants, statement: RevokePrivileges, governed: GovernedObject) -> bool:
    """Whether a filter or a mask would go with it. Administrators make those, and only they take them away."""
    if statement.option_only or steward.outside is not None:
        return False
    wanted = statement.privileges
    return statement.rows or any(
        not grant.privileges
        or not wanted
        or Privilege.ALL in wanted | grant.privileges
        or bool(wanted & grant.privileges)
        for grantee in statement.grantees
        for grant in store.list_grants(target=governed.target, grantee=grantee, author=steward.identity)
        if grant.effect is Effect.ALLOW and (grant.row_filter is not None or grant.column_masks)
    )


def _unseen(steward: Steward, written: GrantObject, what: str) -> GovernedObject:
    try:
        return steward.unseen(written)
    except UserError:
        raise denied(what) from None


def _require_option(
    steward: Steward, store: SupportsGrants, grant: Grant, grantees: Sequence[Grantee], what: str
) -> None:
    author = steward.identity
    whole = author if author.all_roles is None else replace(author, roles=author.all_roles, all_roles=None)
    for grantee in grantees:
        asked = replace(grant, grantee=grantee)
        # With the roles in use, and restricted by all: SET ROLE rids nobody of a restriction.
        if not (store.may_grant(asked, author=author) and store.may_grant(asked, author=whole)):
            raise denied(what)


def _check_level(statement: GrantPrivileges, governed: GovernedObject) -> None:
    scope = governed.target.scope
    for privilege in sorted(statement.privileges, key=lambda one: one.value):
        fault = level_fault(privilege, GrantObject(scope=scope, name=statement.object.name))
        if fault is not None:
            raise NotSupportedError(fault)


def _made(steward: Steward, statement: GrantPrivileges, governed: GovernedObject) -> Grant:
    columns = statement.columns
    masks = statement.column_masks
    if governed.loaded is not None and isinstance(governed.name, ObjectName):
        name, loaded = governed.name, governed.loaded
        if columns is not None:
            columns = tuple(steward.column(name, loaded, column) for column in columns)
        masks = tuple(
            ColumnMask(column=steward.column(name, loaded, one.column), mask=steward.stored_mask(one.mask))
            for one in masks
        )
    row_filter = None if statement.row_filter is None else steward.stored_filter(statement.row_filter)
    filters = () if row_filter is None else (row_filter,)
    steward.compile(governed, row_filters=filters, column_masks=masks)
    return Grant(
        privileges=statement.privileges,
        target=governed.target,
        grantee=statement.grantees[0],
        effect=Effect.DENY if statement.deny else Effect.ALLOW,
        columns=columns,
        column_masks=masks,
        row_filter=row_filter,
        with_grant_option=statement.with_grant_option,
        object_uuid=governed.loaded.uuid if governed.loaded is not None else None,
    )
