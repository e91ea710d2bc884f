"""The engine `grants`: the capabilities of the SPI on top of a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from sqe_core.policy.grants import changes, records
from sqe_core.policy.grants.changes import Author
from sqe_core.policy.grants.evaluation import Evaluation, Precedence
from sqe_core.policy.grants.records import Owner
from sqe_core.policy.grants.state import Place, State
from sqe_core.policy.grants.store import Draft, GrantStore, Version
from sqe_core.policy.trail import KeepsChanges, StoredChange
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import (
    Effect,
    Grant,
    Grantee,
    GrantTarget,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
    RequestContext,
    ResourceType,
    RoleGrant,
    RoleInfo,
    StoredPolicy,
    SupportsGrants,
    SupportsOwnership,
    SupportsPolicies,
    SupportsRoles,
    VisibilityRequest,
)


class GrantsEnforcer(PolicyEnforcer, SupportsGrants, SupportsRoles, SupportsPolicies, SupportsOwnership, KeepsChanges):
    """Decides by what GRANT, REVOKE, DENY and CREATE POLICY wrote; closes its store.

    Each decision asks the store for its version, so that a change shows at the next statement on every server; what
    the records mean is kept in memory until the version moves. `mask_precedence` is which mask wins when a tag and a
    table both mask a column.
    """

    def __init__(self, store: GrantStore, *, now: Callable[[], datetime], mask_precedence: Precedence = "tag") -> None:
        self.store = store
        self._now = now
        self.mask_precedence: Precedence = mask_precedence
        self._state: State | None = None
        self._loading = threading.Lock()

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        """Decide all accesses of a statement at one version of the store."""
        evaluation = self._evaluation(request.principal, request.context)
        return PolicyResponse(decisions=tuple(evaluation.decide(access) for access in request.accesses))

    def visible(self, request: VisibilityRequest) -> Sequence[Effect]:
        """Decide about all names of a listing at one version of the store."""
        evaluation = self._evaluation(request.principal, request.context)
        return [Effect.ALLOW if evaluation.is_visible(name) else Effect.DENY for name in request.names]

    def flush(self) -> None:
        """Do nothing: no decision is kept, and what is in memory is as old as the version that is asked each time."""

    def check(self) -> None:
        """Read everything once."""
        self._state = None
        self._current()

    def close(self) -> None:
        self.store.close()

    def policy_version(self) -> Version:
        """Return the version of the store now; it moves with every change, on whichever server."""
        return self.store.version()

    def last_change(self) -> int:
        return self.store.version().number

    def changes_since(self, last: int, author: Identity) -> Sequence[StoredChange]:
        """Return what the store's own audit has of somebody after a version."""
        return [
            StoredChange(operation=entry.operation, before=entry.before, after=entry.after)
            for entry in reversed(self.store.audit())
            if entry.version > last and entry.author_key == author.key
        ]

    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        self.store.change(author, "put_grant", lambda draft: changes.put_grant(draft, grant, self._author(author)))

    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        return self.store.change(author, "delete_grant", lambda draft: changes.delete_grant(draft, grant))

    def list_grants(
        self, *, target: GrantTarget | None = None, grantee: Grantee | None = None, author: Identity
    ) -> Sequence[Grant]:
        """List grants, one per privilege, in a fixed order."""
        found = [
            row.grant
            for row in self._current().rows
            if (target is None or changes.same_target(row.grant.target, target))
            and (grantee is None or row.grant.grantee == grantee)
        ]
        return sorted(found, key=_order)

    def effective_grants(self, principal: Identity, *, author: Identity) -> Sequence[Grant]:
        """List what reaches somebody, at one version of the store."""
        state = self._current()
        somebody = state.principal(principal)
        return sorted((row.grant for row in state.rows if somebody.is_one_of(row.grant.grantee)), key=_order)

    def may_grant(self, grant: Grant, *, author: Identity) -> bool:
        return self._evaluation(author).may_grant(grant)

    def create_role(self, name: str, *, author: Identity) -> None:
        self.store.change(author, "create_role", lambda draft: changes.create_role(draft, name, self._author(author)))

    def drop_role(self, name: str, *, author: Identity) -> bool:
        return self.store.change(author, "drop_role", lambda draft: changes.drop_role(draft, name))

    def grant_role(self, role: str, grantee: Grantee, *, admin_option: bool, author: Identity) -> None:
        make = partial(
            changes.grant_role, role=role, grantee=grantee, admin_option=admin_option, author=self._author(author)
        )
        self.store.change(author, "grant_role", make)

    def revoke_role(self, role: str, grantee: Grantee, *, author: Identity) -> bool:
        return self.store.change(author, "revoke_role", lambda draft: changes.revoke_role(draft, role, grantee))

    def list_roles(self, *, author: Identity) -> Sequence[RoleInfo]:
        return sorted(self._current().roles, key=lambda role: role.name)

    def list_role_grants(self, *, author: Identity) -> Sequence[RoleGrant]:
        return sorted(
            self._current().members, key=lambda member: (member.role, member.grantee.type, member.grantee.name)
        )

    def roles_of(self, principal: Identity) -> frozenset[str]:
        state = self._current()
        held = {("user", principal.username), ("public", "")} | {("group", name) for name in principal.groups}
        return state.held.reach(held | {("role", name) for name in principal.roles})

    def put_policy(self, policy: StoredPolicy, *, replace: bool, author: Identity) -> None:
        make = partial(changes.put_policy, policy=policy, replace_it=replace, author=self._author(author))
        self.store.change(author, "put_policy", make)

    def delete_policy(self, name: str, *, author: Identity) -> bool:
        return self.store.change(author, "delete_policy", lambda draft: changes.delete_policy(draft, name))

    def list_policies(self, *, author: Identity) -> Sequence[StoredPolicy]:
        return sorted(self._current().policies, key=lambda policy: policy.name.casefold())

    def owner_of(self, name: ObjectName | NamespaceName) -> Grantee | None:
        owner = self._current().owner_of(name)
        return owner.grantee if owner else None

    def is_owner(self, name: ObjectName | NamespaceName, principal: Identity, *, uuid: str | None = None) -> bool:
        state = self._current()
        owner = state.owner_of(name, uuid)
        return owner is not None and state.principal(principal).owns(owner)

    def set_owner(
        self, name: ObjectName | NamespaceName, owner: Grantee, *, uuid: str | None = None, author: Identity
    ) -> None:
        given = Owner(name=name, grantee=owner, uuid=uuid)
        self.store.change(author, "set_owner", lambda draft: changes.set_owner(draft, given))

    def object_created(self, name: ObjectName | NamespaceName, *, uuid: str | None, owner: Identity) -> None:
        make = partial(changes.object_created, name=name, uuid=uuid, owner=owner)
        self.store.change(owner, "object_created", make)

    def object_renamed(self, old: ObjectName, new: ObjectName, *, author: Identity) -> None:
        def make(draft: Draft) -> None:
            before = State(Version(number=draft.version, change=""), dict(draft.records))

            def governed(name: ObjectName) -> bool:
                types = frozenset({ResourceType.TABLE, ResourceType.VIEW})
                return before.governed(Place(name=name, types=types))

            changes.object_renamed(draft, old, new, governed=governed)

        self.store.change(author, "object_renamed", make)

    def object_dropped(self, name: ObjectName | NamespaceName, *, uuid: str | None, author: Identity) -> None:
        self.store.change(author, "object_dropped", lambda draft: changes.object_dropped(draft, name))

    def _author(self, identity: Identity) -> Author:
        return Author(identity=identity, now=self._now())

    def _evaluation(self, identity: Identity, context: RequestContext | None = None) -> Evaluation:
        state = self._current()
        # Administrators see and do everything that no grant covers anyway.
        closed = context.closed_catalogs if context is not None and not context.administrator else frozenset[str]()
        return Evaluation(state, state.principal(identity), mask_precedence=self.mask_precedence, closed=closed)

    def _current(self) -> State:
        """Return the records as they are now. Asked each time: an old answer is never given for a new question."""
        state = self._state
        version = self.store.version()
        if state is not None and state.version == version:
            return state
        with self._loading:
            version, held = self.store.read()
            state = self._state
            if state is None or state.version != version:
                state = self._state = State(version, held, state)
            return state


def _order(grant: Grant) -> tuple[str, ...]:
    privilege = min((one.value for one in grant.privileges), default="")
    grantee = grant.grantee
    return (
        records.target_key(grant.target),
        grantee.type,
        grantee.name,
        grant.effect.value,
        privilege,
        str(grant.columns or ""),
        grant.row_filter.text if grant.row_filter else "",
    )
