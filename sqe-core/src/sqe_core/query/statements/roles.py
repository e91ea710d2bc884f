"""CREATE ROLE, DROP ROLE, GRANT and REVOKE of roles, SET ROLE, SHOW ROLES."""

from __future__ import annotations

from collections.abc import Sequence

from sqe_core.query.answers.grants import GovernanceAnswers
from sqe_core.query.context import StatementContext
from sqe_core.query.statements.handler import change, denied
from sqe_core.query.statements.steward import Steward, steward_answer, steward_change
from sqe_core.query.statements.traits import RIGHTS
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.spi.policy import Grantee, RoleGrant, SupportsRoles
from sqe_core.sql.statements.governance import CreateRole, DropRole, GrantRoles, RevokeRoles, SetRole, ShowRoles

show_roles = steward_answer(ShowRoles, lambda asked, steward: GovernanceAnswers(steward).roles(asked))


@steward_change(CreateRole)
def create_role(statement: CreateRole, steward: Steward) -> None:
    store = steward.store(SupportsRoles, admin="create roles")
    if statement.if_not_exists and _exists(steward, store, statement.role):
        return
    store.create_role(statement.role, author=steward.identity)


@steward_change(DropRole)
def drop_role(statement: DropRole, steward: Steward) -> None:
    store = steward.store(SupportsRoles, admin="drop roles")
    if not store.drop_role(statement.role, author=steward.identity) and not statement.if_exists:
        raise _no_role(statement.role)


@steward_change(GrantRoles)
def grant_roles(statement: GrantRoles, steward: Steward) -> None:
    """GRANT ROLE. Everything is checked before the first one is given."""
    store = steward.store(SupportsRoles)
    _require_admin_option(steward, store, statement.roles)
    _check_grantees(statement.grantees)
    missing = [role for role in statement.roles if not _exists(steward, store, role)]
    if missing:
        raise _no_role(missing[0])
    held = {(one.role, one.grantee): one for one in _grants(steward, store)}
    for role in statement.roles:
        for grantee in statement.grantees:
            before = held.get((role, grantee))
            # As with privileges: granted again, an option that was given stays.
            option = statement.with_admin_option or (before is not None and before.admin_option)
            store.grant_role(role, grantee, admin_option=option, author=steward.identity)
    steward.remark(statement.grantees)


@steward_change(RevokeRoles)
def revoke_roles(statement: RevokeRoles, steward: Steward) -> None:
    """REVOKE ROLE, or the option to pass it on."""
    store = steward.store(SupportsRoles)
    _require_admin_option(steward, store, statement.roles)
    held = {(one.role, one.grantee) for one in _grants(steward, store)}
    for role in statement.roles:
        for grantee in statement.grantees:
            if not statement.option_only:
                store.revoke_role(role, grantee, author=steward.identity)
            elif (role, grantee) in held:
                store.grant_role(role, grantee, admin_option=False, author=steward.identity)


@change(SetRole, traits=RIGHTS, of_session=True)
def set_role(statement: SetRole, context: StatementContext) -> None:
    """SET ROLE: the roles that count from now on, among those that the user has."""
    session = context.session
    if statement.mode == "all":
        session.choose_roles(None)
    elif statement.mode == "none":
        session.choose_roles(())
    else:
        identity = context.identity
        role = statement.role
        held = identity.roles if identity.all_roles is None else identity.all_roles
        if role is None or role not in held:
            raise denied(f"use the role {role}")
        session.choose_roles((role,))


def _grants(steward: Steward, store: SupportsRoles) -> Sequence[RoleGrant]:
    return store.list_role_grants(author=steward.identity)


def _exists(steward: Steward, store: SupportsRoles, role: str) -> bool:
    return any(one.name == role for one in store.list_roles(author=steward.identity))


def _require_admin_option(steward: Steward, store: SupportsRoles, roles: Sequence[str]) -> None:
    if steward.is_admin:
        return
    if steward.outside is not None:
        # Not asked for others than administrators: it may answer with rights that are not theirs.
        raise denied("pass this role on")
    mine = {one.role for one in _grants(steward, store) if one.admin_option and steward.is_me(one.grantee)}
    if not set(roles) <= mine:
        raise denied("pass this role on")


def _check_grantees(grantees: Sequence[Grantee]) -> None:
    if any(one.type == "public" for one in grantees):
        raise NotSupportedError("A role is not granted to PUBLIC", hint="grant the privileges to PUBLIC instead")


def _no_role(role: str) -> UserError:
    return UserError(
        f"Role {role} does not exist",
        code=ErrorCode.INVALID_ARGUMENTS,
        hint="CREATE ROLE makes one",
        condition="ROLE_NOT_FOUND",
    )
