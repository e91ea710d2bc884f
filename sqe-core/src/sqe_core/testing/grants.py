"""The contract of grant stores."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from sqe_core.spi.errors import NotSupportedError, UserError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.grants import GrantStore, GrantStoreContext
from sqe_core.spi.identity import Identity
from sqe_core.spi.policy import Effect, Grant, Grantee, GrantTarget, Privilege
from sqe_core.spi.sql import SqlExpression
from sqe_core.testing.contract import ProductContract, assert_no_secret

ROLE = Grantee(type="role", name="sqe_contract")
# None of these is a name that a path, a query or a document may be made of unchecked.
_ODD_NAMES = ("a/../b", "..", "a%2fb", "a?b=c", "a\x1fb", "a\nb", "")


class GrantStoreContract(ProductContract):
    """What every grant store promises.

    Fixtures to supply: `factory`, `config`, `context` if it needs catalogs, `admin`: who may write there, with a token,
    `table`: a table on which SELECT can be granted, and `user`: the name of somebody who is known there. No role
    `sqe_contract` may be there at the start.

    Capabilities:
        restricts: grants with columns, masks and row filters are kept.
    """

    CONTEXT: ClassVar[type[PluginContext]] = GrantStoreContext
    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"restricts"})

    @pytest.fixture
    def admin(self) -> Identity:
        """Who may write there."""
        raise NotImplementedError("supply the fixture 'admin'")

    @pytest.fixture
    def table(self) -> GrantTarget:
        """A table on which SELECT can be granted."""
        raise NotImplementedError("supply the fixture 'table'")

    @pytest.fixture
    def user(self) -> str:
        """The name of somebody who is known there."""
        raise NotImplementedError("supply the fixture 'user'")

    @pytest.fixture
    def store(self, product: GrantStore) -> GrantStore:
        """The store under test."""
        return product

    def test_is_a_store(self, store: GrantStore, admin: Identity) -> None:
        """The factory makes a GrantStore that can be used, and that prints no secret."""
        assert isinstance(store, GrantStore)
        store.check()
        assert_no_secret(repr(store), admin.access_token)

    def test_grants(self, store: GrantStore, admin: Identity, table: GrantTarget) -> None:
        """A grant that was written is listed, and gone after its removal."""
        grant = Grant(privileges=frozenset({Privilege.SELECT}), target=table, grantee=ROLE)
        store.create_role(ROLE.name, author=admin)
        store.put_grant(grant, author=admin)
        store.put_grant(grant, author=admin)
        listed = store.list_grants(target=table, grantee=ROLE, author=admin)
        assert [(found.privileges, found.grantee) for found in listed] == [(grant.privileges, ROLE)]
        assert ROLE in [found.grantee for found in store.list_grants(target=table, author=admin)]
        assert store.delete_grant(grant, author=admin) is True
        assert not store.list_grants(target=table, grantee=ROLE, author=admin)
        assert store.delete_grant(grant, author=admin) is False

    def test_roles(self, store: GrantStore, admin: Identity, table: GrantTarget, user: str) -> None:
        """Roles are made, given, taken and dropped; one that is made anew has nothing of the former."""
        somebody = Grantee(type="user", name=user)
        store.create_role(ROLE.name, author=admin)
        with pytest.raises(UserError):
            store.create_role(ROLE.name, author=admin)
        store.grant_role(ROLE.name, somebody, admin_option=False, author=admin)
        given = [(one.role, one.grantee) for one in store.list_role_grants(author=admin)]
        assert (ROLE.name, somebody) in given
        assert ROLE.name in [role.name for role in store.list_roles(author=admin)]
        assert store.revoke_role(ROLE.name, somebody, author=admin) is True
        assert store.revoke_role(ROLE.name, somebody, author=admin) is False
        grant = Grant(privileges=frozenset({Privilege.SELECT}), target=table, grantee=ROLE)
        store.put_grant(grant, author=admin)
        assert store.drop_role(ROLE.name, author=admin) is True
        assert store.drop_role(ROLE.name, author=admin) is False
        store.create_role(ROLE.name, author=admin)
        assert not store.list_grants(grantee=ROLE, author=admin)

    def test_refuses_what_it_cannot_keep(self, store: GrantStore, admin: Identity, table: GrantTarget) -> None:
        """What was not declared is refused and not left out: a wider grant than was written is none (POL-15)."""
        grant = Grant(privileges=frozenset({Privilege.SELECT}), target=table, grantee=ROLE)
        store.create_role(ROLE.name, author=admin)
        if self.can("restricts"):
            store.put_grant(replace(grant, columns=("id",)), author=admin)
            assert [one.columns for one in store.list_grants(grantee=ROLE, author=admin)] == [("id",)]
            return
        for narrower in (
            replace(grant, columns=("id",)),
            replace(grant, row_filter=SqlExpression(text="id > 1")),
            replace(grant, effect=Effect.DENY),
        ):
            with pytest.raises(NotSupportedError):
                store.put_grant(narrower, author=admin)
        assert not store.list_grants(grantee=ROLE, author=admin)

    def test_odd_names(self, store: GrantStore, admin: Identity, table: GrantTarget) -> None:
        """Names that would mean something else on their way are refused (AUTHN-10)."""
        for name in _ODD_NAMES:
            grant = Grant(
                privileges=frozenset({Privilege.SELECT}), target=table, grantee=Grantee(type="role", name=name)
            )
            with pytest.raises(UserError):
                store.put_grant(grant, author=admin)
            with pytest.raises(UserError):
                store.create_role(name, author=admin)
