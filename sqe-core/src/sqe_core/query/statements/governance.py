"""The statements of governance, each to where it is answered or carried out (features §6.4, §6.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sqe_core.query.answers.access import AccessAnswers
from sqe_core.query.answers.grants import GovernanceAnswers
from sqe_core.query.judge.bind import BoundRelation
from sqe_core.query.judge.names import ResolvedName
from sqe_core.query.statements.grant_changes import GrantChanges
from sqe_core.query.statements.policy_changes import PolicyChanges
from sqe_core.query.statements.role_changes import RoleChanges
from sqe_core.query.statements.steward import Steward
from sqe_core.query.statements.tag_changes import TagChanges
from sqe_core.sql.statement import EngineStatement, Statement
from sqe_core.sql.statements.governance import (
    CheckAccess,
    CreatePolicy,
    CreateRole,
    DropPolicy,
    DropRole,
    ExplainAccess,
    GrantPrivileges,
    GrantRoles,
    RevokePrivileges,
    RevokeRoles,
    SetMaskingPolicy,
    SetOwner,
    SetRole,
    SetTags,
    ShowEffectiveGrants,
    ShowEffectivePolicy,
    ShowGrants,
    ShowMaskingPolicies,
    ShowRoles,
    ShowTags,
    UnsetTags,
)

_CHANGES = (
    GrantPrivileges,
    RevokePrivileges,
    GrantRoles,
    RevokeRoles,
    CreateRole,
    DropRole,
    CreatePolicy,
    DropPolicy,
    SetMaskingPolicy,
    SetOwner,
    SetTags,
    UnsetTags,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Governance:
    """Answers and carries out for one session."""

    steward: Steward
    bind: Callable[[EngineStatement], Sequence[BoundRelation]]
    set_property: Callable[[ResolvedName, str, str], None]

    def answer(self, statement: Statement) -> pa.Table | None:
        """Return the rows of a statement that asks, or None when it is none of ours."""
        stored = GovernanceAnswers(self.steward)
        access = AccessAnswers(self.steward, self.bind)
        match statement:
            case ShowGrants():
                return stored.grants(statement)
            case ShowEffectiveGrants():
                return stored.effective_grants(statement)
            case ShowRoles():
                return stored.roles(statement)
            case ShowMaskingPolicies():
                return stored.masking_policies(statement)
            case ShowEffectivePolicy():
                return access.effective_policy(statement)
            case CheckAccess():
                return access.check(statement)
            case ExplainAccess():
                return access.explain(statement)
            case ShowTags():
                return access.tags(statement)
        return None

    def apply(self, statement: Statement) -> bool:
        """Carry out a statement; False when it is none of ours."""
        grants, roles = GrantChanges(self.steward), RoleChanges(self.steward)
        policies, tags = PolicyChanges(self.steward), TagChanges(self.steward, self.set_property)
        match statement:
            case GrantPrivileges():
                grants.grant(statement)
            case RevokePrivileges():
                grants.revoke(statement)
            case GrantRoles():
                roles.grant(statement)
            case RevokeRoles():
                roles.revoke(statement)
            case CreateRole():
                roles.create(statement)
            case DropRole():
                roles.drop(statement)
            case CreatePolicy():
                policies.create(statement)
            case DropPolicy():
                policies.drop(statement)
            case SetMaskingPolicy():
                policies.set_masking_policy(statement)
            case SetOwner():
                policies.set_owner(statement)
            case SetTags():
                tags.set(statement)
            case UnsetTags():
                tags.unset(statement)
            case _:
                return False
        return True

    @staticmethod
    def changes(statement: Statement) -> bool:
        """Whether `apply` carries it out."""
        return isinstance(statement, _CHANGES)

    def choose(self, statement: Statement) -> bool:
        """Carry out SET ROLE, which needs no engine; False for other statements."""
        if isinstance(statement, SetRole):
            RoleChanges(self.steward).set_role(statement)
            return True
        return False
