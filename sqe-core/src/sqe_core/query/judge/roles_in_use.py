"""The roles that count for a statement: those of the login and of the stores, of which SET ROLE may leave some out."""

from __future__ import annotations

from dataclasses import replace

from sqe_core.policy.authorizer import Authorizer
from sqe_core.spi.identity import Identity
from sqe_core.spi.policy import SupportsRoles

ChosenRoles = tuple[str, ...] | None
"""What SET ROLE chose: None is ALL, `()` is NONE."""


def identity_in_use(authorizer: Authorizer, identity: Identity, chosen: ChosenRoles) -> Identity:
    """Return somebody with the roles that count now.

    A chosen role brings the roles that it holds. What the user does not have is never added: a role that was taken
    away meanwhile is gone, chosen or not.
    """
    stores = authorizer.stores(SupportsRoles)
    if not stores and chosen is None:
        return identity
    held = identity.roles.union(*(store.roles_of(identity) for store in stores))
    everything = replace(identity, roles=held)
    if chosen is None:
        return everything
    # Asked about the roles alone: what somebody has as a user or through a group was not chosen.
    alone = replace(identity, username="", subject="", groups=frozenset(), roles=frozenset(chosen) & held)
    reached = alone.roles.union(*(store.roles_of(alone) for store in stores)) if alone.roles else alone.roles
    return replace(identity, roles=reached & held, all_roles=held)
