"""Grants that another system keeps: everybody forgets at once, and what changed is noted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from sqe_core.policy.outside import OutsideGrants
from sqe_core.spi import (
    ExternalError,
    Grant,
    Grantee,
    GrantStore,
    GrantTarget,
    Identity,
    NotSupportedError,
    Privilege,
    RoleGrant,
    RoleInfo,
)
from sqe_core.testing.fakes import make_identity

ROOT, EVE = make_identity("root"), make_identity("eve")
ANALYST = Grantee(type="role", name="analyst")
TARGET = GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="emp")


@dataclass
class Ledger(GrantStore):
    """Keeps grants in a list."""

    grants: list[Grant] = field(default_factory=list)
    fails: Exception | None = None
    closed: bool = False

    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        self.grants.append(grant)
        self._fail()

    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        self._fail()
        found = grant in self.grants
        self.grants = [one for one in self.grants if one != grant]
        return found

    def list_grants(
        self, *, target: GrantTarget | None = None, grantee: Grantee | None = None, author: Identity
    ) -> Sequence[Grant]:
        return tuple(self.grants)

    def create_role(self, name: str, *, author: Identity) -> None:
        self._fail()

    def drop_role(self, name: str, *, author: Identity) -> bool:
        self._fail()
        return name == "there"

    def grant_role(self, role: str, grantee: Grantee, *, admin_option: bool, author: Identity) -> None:
        self._fail()

    def revoke_role(self, role: str, grantee: Grantee, *, author: Identity) -> bool:
        self._fail()
        return role == "there"

    def list_roles(self, *, author: Identity) -> Sequence[RoleInfo]:
        self._fail()
        return ()

    def list_role_grants(self, *, author: Identity) -> Sequence[RoleGrant]:
        return ()

    def roles_of(self, principal: Identity) -> frozenset[str]:
        return frozenset()

    def close(self) -> None:
        self.closed = True

    def _fail(self) -> None:
        if self.fails is not None:
            raise self.fails


def grant(*words: Privilege) -> Grant:
    return Grant(privileges=frozenset(words or (Privilege.SELECT,)), target=TARGET, grantee=ANALYST)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def flushes() -> list[int]:
    return []


@pytest.fixture
def outside(ledger: Ledger, flushes: list[int]) -> OutsideGrants:
    return OutsideGrants(ledger, lambda: flushes.append(len(ledger.grants)))


def operations(outside: OutsideGrants, who: Identity = ROOT, last: int = 0) -> list[str]:
    return [change.operation for change in outside.changes_since(last, who)]


@pytest.mark.rule("POL-9")
def test_everybody_forgets_when_the_change_is_made(outside: OutsideGrants, flushes: list[int]) -> None:
    outside.put_grant(grant(), author=ROOT)
    outside.delete_grant(grant(), author=ROOT)
    assert flushes == [1, 0]
    changes: list[Callable[[], object]] = [
        lambda: outside.create_role("r", author=ROOT),
        lambda: outside.drop_role("there", author=ROOT),
        lambda: outside.grant_role("r", ANALYST, admin_option=False, author=ROOT),
        lambda: outside.revoke_role("there", ANALYST, author=ROOT),
    ]
    for change in changes:
        change()
    assert len(flushes) == 6
    outside.list_grants(author=ROOT)
    assert len(flushes) == 6


@pytest.mark.rule("POL-15")
def test_what_changed_is_noted_with_before_and_after(outside: OutsideGrants) -> None:
    outside.put_grant(grant(Privilege.SELECT), author=ROOT)
    outside.delete_grant(grant(Privilege.SELECT), author=ROOT)
    put, deleted = outside.changes_since(0, ROOT)
    (name,) = put.after
    assert put.before == {name: None}
    assert put.after == deleted.before
    assert deleted.after == {name: None}
    assert "emp" in str(put.after[name])
    assert outside.last_change() == 2
    assert operations(outside, last=1) == ["delete_grant"]
    assert operations(outside, EVE) == []


def test_what_changed_nothing_is_not_noted(outside: OutsideGrants) -> None:
    outside.delete_grant(grant(), author=ROOT)
    outside.drop_role("not there", author=ROOT)
    outside.revoke_role("not there", ANALYST, author=ROOT)
    assert operations(outside) == []


def test_what_ended_halfway_is_seen_and_noted(outside: OutsideGrants, ledger: Ledger, flushes: list[int]) -> None:
    ledger.fails = NotSupportedError("no")
    with pytest.raises(NotSupportedError):
        outside.put_grant(grant(), author=ROOT)
    assert flushes == [1]
    assert operations(outside) == ["put_grant (failed)"]
    with pytest.raises(NotSupportedError):
        outside.drop_role("there", author=ROOT)
    assert operations(outside, last=1) == ["drop_role (failed)"]
    with pytest.raises(NotSupportedError):
        outside.create_role("r", author=ROOT)
    assert len(operations(outside)) == 2


@pytest.mark.rule("ERR-1")
def test_what_else_a_store_raises_is_for_nobody(outside: OutsideGrants, ledger: Ledger) -> None:
    ledger.fails = RuntimeError("canary at 10.1.2.3")
    with pytest.raises(ExternalError) as caught:
        outside.list_roles(author=ROOT)
    assert "canary" not in str(caught.value)
    with pytest.raises(ExternalError):
        outside.put_grant(grant(), author=ROOT)


def test_it_closes_the_store(outside: OutsideGrants, ledger: Ledger) -> None:
    outside.close()
    assert ledger.closed
