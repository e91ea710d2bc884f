"""Grants and roles in another system than the policy engines (`[access_control] backend`): what the core adds to it.

A change there is followed at once by forgetting what anybody was told before, whether the change went through or
ended halfway, and it is noted with what was there before and after (POL-9, POL-15).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqe_core.policy.grants import records
from sqe_core.policy.trail import KeepsChanges, StoredChange
from sqe_core.spi.errors import ErrorCode, ExternalError, SqeError
from sqe_core.spi.grants import GrantStore
from sqe_core.spi.identity import Identity
from sqe_core.spi.policy import Grant, Grantee, GrantTarget, RoleGrant, RoleInfo

# Those of one statement are read as soon as it ends; a statement names at most so many grantees.
_MOST_CHANGES = 2000


class OutsideGrants(GrantStore, KeepsChanges):
    """A grant store whose changes are seen at once, and audited. It closes the store.

    `changed` makes everybody forget what they were told.
    """

    def __init__(self, store: GrantStore, changed: Callable[[], None]) -> None:
        self._store = store
        self._changed = changed
        self._lock = threading.Lock()
        self._number = 0
        self._changes: deque[tuple[int, tuple[str, str], StoredChange]] = deque(maxlen=_MOST_CHANGES)

    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        with self._changing_grants("put_grant", grant, author):
            self._store.put_grant(grant, author=author)

    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        with self._changing_grants("delete_grant", grant, author):
            return self._store.delete_grant(grant, author=author)

    def list_grants(
        self, *, target: GrantTarget | None = None, grantee: Grantee | None = None, author: Identity
    ) -> Sequence[Grant]:
        with _translated():
            return self._store.list_grants(target=target, grantee=grantee, author=author)

    def effective_grants(self, principal: Identity, *, author: Identity) -> Sequence[Grant]:
        with _translated():
            return self._store.effective_grants(principal, author=author)

    def may_grant(self, grant: Grant, *, author: Identity) -> bool:
        with _translated():
            return self._store.may_grant(grant, author=author)

    def create_role(self, name: str, *, author: Identity) -> None:
        with self._changing():
            self._store.create_role(name, author=author)
        self._note("create_role", {}, _role(name), author)

    def drop_role(self, name: str, *, author: Identity) -> bool:
        try:
            with self._changing():
                dropped = self._store.drop_role(name, author=author)
        except SqeError:
            # Some of what hung on it may be gone.
            self._note("drop_role (failed)", _role(name), {}, author)
            raise
        if dropped:
            self._note("drop_role", _role(name), {}, author)
        return dropped

    def grant_role(self, role: str, grantee: Grantee, *, admin_option: bool, author: Identity) -> None:
        with self._changing():
            self._store.grant_role(role, grantee, admin_option=admin_option, author=author)
        self._note("grant_role", {}, _member(role, grantee), author)

    def revoke_role(self, role: str, grantee: Grantee, *, author: Identity) -> bool:
        with self._changing():
            revoked = self._store.revoke_role(role, grantee, author=author)
        if revoked:
            self._note("revoke_role", _member(role, grantee), {}, author)
        return revoked

    def list_roles(self, *, author: Identity) -> Sequence[RoleInfo]:
        with _translated():
            return self._store.list_roles(author=author)

    def list_role_grants(self, *, author: Identity) -> Sequence[RoleGrant]:
        with _translated():
            return self._store.list_role_grants(author=author)

    def roles_of(self, principal: Identity) -> frozenset[str]:
        with _translated():
            return self._store.roles_of(principal)

    def check(self) -> None:
        self._store.check()

    def close(self) -> None:
        self._store.close()

    def last_change(self) -> int:
        with self._lock:
            return self._number

    def changes_since(self, last: int, author: Identity) -> Sequence[StoredChange]:
        """Return what somebody changed through this server."""
        with self._lock:
            return [change for number, key, change in self._changes if number > last and key == author.key]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with _translated():
            try:
                yield
            finally:
                self._changed()

    @contextmanager
    def _changing_grants(self, operation: str, grant: Grant, author: Identity) -> Iterator[None]:
        """Note what is different afterwards, also when the change ended halfway."""
        with self._changing():
            before = self._grants_like(grant, author)
            failed = " (failed)"
            try:
                yield
                failed = ""
            finally:
                after: Mapping[str, Any] = {"unknown": "the store could not be read after the change"}
                # The change was made, or has an error of its own.
                with suppress(Exception):
                    after = self._grants_like(grant, author)
                self._note(operation + failed, before, after, author)

    def _grants_like(self, grant: Grant, author: Identity) -> Mapping[str, Any]:
        found = self._store.list_grants(target=grant.target, grantee=grant.grantee, author=author)
        bodies = [
            records.encode_grant(each, privilege, written=0)
            for each in found
            for privilege in sorted(each.privileges, key=lambda privilege: privilege.value)
        ]
        return {f"grant {records.grant_key(body)}": body for body in bodies}

    def _note(self, operation: str, before: Mapping[str, Any], after: Mapping[str, Any], author: Identity) -> None:
        different = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        if not different:
            return
        change = StoredChange(
            operation=operation,
            before={name: before.get(name) for name in different},
            after={name: after.get(name) for name in different},
        )
        with self._lock:
            self._number += 1
            self._changes.append((self._number, author.key, change))


@contextmanager
def _translated() -> Iterator[None]:
    """Whatever else a store raises is a fault of the other system, and its text is for nobody (ERR-1)."""
    try:
        yield
    except SqeError:
        raise
    except Exception as error:
        raise ExternalError("The store of grants gave no usable answer", code=ErrorCode.EXECUTION_FAILED) from error


def _role(name: str) -> Mapping[str, Any]:
    return {f"role {name}": {"name": name}}


def _member(role: str, grantee: Grantee) -> Mapping[str, Any]:
    return {f"member {role} {grantee.type} {grantee.name}": {"role": role, "grantee": f"{grantee.type} {grantee.name}"}}
