"""CREATE ROLE, DROP ROLE, GRANT and REVOKE of roles, SET ROLE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqe_core.query.statements.steward import Steward, denied
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.spi.policy import Grantee, RoleGrant, SupportsRoles
from sqe_core.sql.statements.governance import CreateRole, DropRole, GrantRoles, RevokeRoles, SetRole


@dataclass(frozen=True, slots=True)
class RoleChanges:
    """Carries out what is said about roles."""

    steward: Steward

    def create(self, statement: CreateRole) -> None:
        """Make a role."""
        store = self._store("create roles")
        if statement.if_not_exists and self._exists(store, statement.role):
            return
        store.create_role(statement.role, author=self.steward.identity)
        self.steward.authorizer.flush()

    def drop(self, statement: DropRole) -> None:
        """Remove a role."""
        store = self._store("drop roles")
        if not store.drop_role(statement.role, author=self.steward.identity) and not statement.if_exists:
            raise _no_role(statement.role)
        self.steward.authorizer.flush()

    def grant(self, statement: GrantRoles) -> None:
        """Give roles. Everything is checked before the first one is given."""
        store = self.steward.store(SupportsRoles)
        self._require_admin_option(store, statement.roles)
        self._check_grantees(statement.grantees)
        missing = [role for role in statement.roles if not self._exists(store, role)]
        if missing:
            raise _no_role(missing[0])
        held = {(one.role, one.grantee): one for one in self._grants(store)}
        for role in statement.roles:
            for grantee in statement.grantees:
                before = held.get((role, grantee))
                # As with privileges: granted again, an option that was given stays.
                option = statement.with_admin_option or (before is not None and before.admin_option)
                store.grant_role(role, grantee, admin_option=option, author=self.steward.identity)
        self.steward.authorizer.flush()

    def revoke(self, statement: RevokeRoles) -> None:
        """Take roles away, or the option to pass them on."""
        store = self.steward.store(SupportsRoles)
        self._require_admin_option(store, statement.roles)
        held = {(one.role, one.grantee) for one in self._grants(store)}
        for role in statement.roles:
            for grantee in statement.grantees:
                if not statement.option_only:
                    store.revoke_role(role, grantee, author=self.steward.identity)
                elif (role, grantee) in held:
                    store.grant_role(role, grantee, admin_option=False, author=self.steward.identity)
        self.steward.authorizer.flush()

    def set_role(self, statement: SetRole) -> None:
        """Choose the roles that count from now on, among those that the user has."""
        session = self.steward.session
        if statement.mode == "all":
            session.choose_roles(None)
        elif statement.mode == "none":
            session.choose_roles(())
        else:
            identity = self.steward.identity
            role = statement.role
            held = identity.roles if identity.all_roles is None else identity.all_roles
            if role is None or role not in held:
                raise denied(f"use the role {role}")
            session.choose_roles((role,))

    def _store(self, what: str) -> SupportsRoles:
        store = self.steward.store(SupportsRoles)
        self.steward.require_admin(what)
        return store

    def _grants(self, store: SupportsRoles) -> Sequence[RoleGrant]:
        return store.list_role_grants(author=self.steward.identity)

    def _exists(self, store: SupportsRoles, role: str) -> bool:
        return any(one.name == role for one in store.list_roles(author=self.steward.identity))

    def _require_admin_option(self, store: SupportsRoles, roles: Sequence[str]) -> None:
        if self.steward.is_admin:
            return
        if self.steward.outside is not None:
            # Not asked for others than administrators: it may answer with rights that are not theirs.
            raise denied("pass this role on")
        mine = {one.role for one in self._grants(store) if one.admin_option and self.steward.is_me(one.grantee)}
        if not set(roles) <= mine:
            raise denied("pass this role on")

    @staticmethod
    def _check_grantees(grantees: Sequence[Grantee]) -> None:
        if any(one.type == "public" for one in grantees):
            raise NotSupportedError("A role is not granted to PUBLIC", hint="grant the privileges to PUBLIC instead")


def _no_role(role: str) -> UserError:
    return UserError(f"Role {role} does not exist", code=ErrorCode.INVALID_ARGUMENTS, hint="CREATE ROLE makes one")
