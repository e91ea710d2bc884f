"""GRANT and REVOKE at Polaris: SQL's roles are its principal roles.

Polaris gives privileges to catalog roles, and those to principal roles. What SQL grants to a role in a catalog goes
to a catalog role of SQE's own, `sqe_<role>`, which nobody else may have: then nobody else gains by it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqe_catalog_polaris.config import PolarisConfig, PolarisGrantsConfig
from sqe_catalog_polaris.grant_words import rights_to_grant, rights_to_revoke, still_brings, words_of
from sqe_catalog_polaris.kinds import RestBackend, refuse_readable
from sqe_catalog_polaris.login import Login, UserLogin, make_login
from sqe_catalog_polaris.management import Conversation, ManagementClient, Right, check_name, is_name
from sqe_core.spi import (
    CommitConflictError,
    Effect,
    ErrorCode,
    ExternalError,
    Grant,
    Grantee,
    GrantStore,
    GrantStoreContext,
    GrantTarget,
    Identity,
    NotSupportedError,
    RoleGrant,
    RoleInfo,
    SqeError,
    UserError,
)

_PREFIX = "sqe_"
# What says that SQE made a catalog role, and for whom.
_MARK = "sqe.principal-role"
# Their holders rule Polaris itself, beyond every catalog that SQE is an administrator of.
_OF_POLARIS = frozenset({"service_admin", "catalog_admin", "catalog_role_manager"})
_PLACES = {"catalog": "catalog", "schema": "namespace", "table": "table", "view": "view"}
_SCOPES = {place: scope for scope, place in _PLACES.items()}
_NOBODY = Identity(issuer="sqe:grants", subject="check", username="check", provider="none", personal=False)
_NOT_THAT = "Polaris grants whole catalogs, schemas, tables and views to roles"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A mounted catalog that is at this Polaris: its name for users, and its name there."""

    name: str
    warehouse: str


class PolarisGrants(GrantStore):
    """Grants, roles and who has them, at one Polaris.

    With a service account Polaris sees that account, whoever sends the statement; that the sender is an administrator
    is then for the core to see. Without one Polaris sees the sender's own token, and decides besides.
    """

    def __init__(self, config: PolarisGrantsConfig, context: GrantStoreContext) -> None:
        server = config.server
        refuse_readable("access_control", "url", config.url, context)
        self._server = server
        self._catalogs = context.catalogs
        self._client = ManagementClient(server, context)
        self._service: Login | None = make_login(server, context) if config.client_id is not None else None
        # One change of a role's grants after the other: each looks at what is there first.
        self._changing = threading.Lock()

    # Grants

    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        """Grant to the role's own catalog role; either all of it counts afterwards, or none."""
        role, rights = _role_of(grant.grantee), _rights_of(grant)
        place = self._place(grant.target.catalog)
        with self._changing:
            polaris = self._conversation(author)
            own = _own_role(role)
            self._provide_own_role(polaris, place, role)
            self._add(polaris, place, own, rights)
            held = polaris.rights(place.warehouse, own)
            if not rights <= held or own not in polaris.catalog_roles_of(role, place.warehouse):
                raise CommitConflictError("Somebody else changed the same grants at Polaris", hint="send it again")

    @staticmethod
    def _provide_own_role(polaris: Conversation, place: _Place, role: str) -> None:
        """See that the role has a catalog role of its own, and nobody else has it.

        It is given before anything is granted to it. One that is not given and has something is left over from a role
        of this name that is gone: what that one had must not come back.
        """
        own, catalog = _own_role(role), place.warehouse
        given = polaris.catalog_roles_of(role, catalog)
        found = polaris.find_catalog_role(catalog, own)
        if found is not None:
            if found.properties.get(_MARK) != role:
                raise _refused(f"The catalog role {own} of {place.name} exists, and SQE did not make it", "drop it")
            if polaris.assignees(catalog, own) - {role}:
                text = f"The catalog role {own} of {place.name} belongs to other roles too, which would gain by this"
                raise _refused(text, "take it from them")
            if own in given:
                return
            # Looked at again: another server may have made it meanwhile, and gives it before it grants anything to it.
            if polaris.rights(catalog, own) and own not in polaris.catalog_roles_of(role, catalog):
                polaris.delete_catalog_role(catalog, own)
                found = None
        if found is None:
            polaris.create_catalog_role(catalog, own, {_MARK: role})
        polaris.assign_catalog_role(catalog, own, role)

    @staticmethod
    def _add(polaris: Conversation, place: _Place, own: str, rights: frozenset[Right]) -> None:
        missing = rights - polaris.rights(place.warehouse, own)
        added: list[Right] = []
        try:
            for right in _ordered(missing):
                added.append(right)
                polaris.add_right(place.warehouse, own, right)
        except SqeError:
            for right in added:
                with suppress(SqeError):
                    polaris.revoke_right(place.warehouse, own, right)
            raise

    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        """Take from the role's own catalog role; what it has by another one is not ours to take."""
        role, place = _role_of(grant.grantee), self._place(grant.target.catalog)
        _check_plain(grant)
        kind = _PLACES[grant.target.scope]
        with self._changing:
            polaris = self._conversation(author)
            own = _own_role(role)
            given = polaris.catalog_roles_of(role, place.warehouse)
            for other in sorted(given - {own}):
                held = frozenset(right.privilege for right in self._on(polaris, place, other, grant.target))
                if still_brings(held, grant.privileges, kind):
                    raise NotSupportedError(
                        f"Role {role} has this through the catalog role {other}, which SQE did not make",
                        hint="take it away at Polaris",
                    )
            if own not in given:
                return False
            here = self._on(polaris, place, own, grant.target)
            gone = rights_to_revoke(grant.privileges, frozenset(right.privilege for right in here), kind)
            if not gone:
                return False
            for right in _ordered(frozenset(right for right in here if right.privilege in gone)):
                polaris.revoke_right(place.warehouse, own, right)
            if any(right.privilege in gone for right in self._on(polaris, place, own, grant.target)):
                raise ExternalError("Polaris did not revoke all of it", hint="send it again")
            return True

    def list_grants(
        self, *, target: GrantTarget | None = None, grantee: Grantee | None = None, author: Identity
    ) -> Sequence[Grant]:
        """List what roles have, by whichever catalog role."""
        if grantee is not None and grantee.type != "role":
            return ()
        places = self._places() if target is None else (self._place(target.catalog),)
        polaris = self._conversation(author)
        found: list[Grant] = []
        for place in places:
            if grantee is None:
                found += self._of_everybody(polaris, place, target)
                continue
            given = polaris.catalog_roles_of(grantee.name, place.warehouse)
            found += _grants(place, grantee.name, self._rights_of_all(polaris, place, given), target)
        return found

    def effective_grants(self, principal: Identity, *, author: Identity) -> Sequence[Grant]:
        """List what the roles of somebody have: those of the login, or of others those that Polaris knows of."""
        polaris = self._conversation(author)
        names = principal.roles
        if principal.key != author.key:
            names |= polaris.roles_of_principal(principal.username)
        found: list[Grant] = []
        for place in self._places():
            # Not every role of a login is one of Polaris: some identity providers write them as paths.
            for name in filter(is_name, sorted(names)):
                given = polaris.catalog_roles_of(name, place.warehouse, must_exist=False)
                found += _grants(place, name, self._rights_of_all(polaris, place, given), None)
        return found

    def _of_everybody(self, polaris: Conversation, place: _Place, target: GrantTarget | None) -> Iterator[Grant]:
        names = [role.name for role in polaris.catalog_roles(place.warehouse)]
        held = dict(zip(names, polaris.each(lambda name: polaris.rights(place.warehouse, name), names), strict=True))
        wanted = [name for name in names if any(_fits(right, target) for right in held[name])]
        assigned = polaris.each(lambda name: polaris.assignees(place.warehouse, name), wanted)
        rights_of: dict[str, frozenset[Right]] = {}
        for name, roles in zip(wanted, assigned, strict=True):
            for role in roles:
                rights_of[role] = rights_of.get(role, frozenset()) | held[name]
        for role in sorted(rights_of):
            yield from _grants(place, role, rights_of[role], target)

    @staticmethod
    def _rights_of_all(polaris: Conversation, place: _Place, names: frozenset[str]) -> frozenset[Right]:
        each = polaris.each(lambda name: polaris.rights(place.warehouse, name), sorted(names))
        return frozenset(right for rights in each for right in rights)

    @staticmethod
    def _on(polaris: Conversation, place: _Place, name: str, target: GrantTarget) -> frozenset[Right]:
        return frozenset(right for right in polaris.rights(place.warehouse, name) if _fits(right, target))

    # Roles

    def create_role(self, name: str, *, author: Identity) -> None:
        _check_role(name)
        self._conversation(author).create_principal_role(name)

    def drop_role(self, name: str, *, author: Identity) -> bool:
        """Remove a principal role, and then what SQE made for it."""
        _check_role(name)
        with self._changing:
            polaris = self._conversation(author)
            if all(role.name != name for role in polaris.principal_roles()):
                return False
            own = _own_role(name)
            made = [place for place in self._places() if own in polaris.catalog_roles_of(name, place.warehouse)]
            dropped = polaris.delete_principal_role(name)
            for place in made:
                # It counts for nobody any more; should it stay, the next grant to a role of this name removes it.
                with suppress(SqeError):
                    found = polaris.find_catalog_role(place.warehouse, own)
                    if found is not None and found.properties.get(_MARK) == name:
                        polaris.delete_catalog_role(place.warehouse, own)
            return dropped

    def grant_role(self, role: str, grantee: Grantee, *, admin_option: bool, author: Identity) -> None:
        if admin_option:
            raise NotSupportedError("Roles at Polaris have no ADMIN OPTION", hint="administrators give roles")
        _check_role(role)
        self._conversation(author).assign_principal_role(role, _user_of(grantee))

    def revoke_role(self, role: str, grantee: Grantee, *, author: Identity) -> bool:
        _check_role(role)
        user = _user_of(grantee)
        polaris = self._conversation(author)
        if role not in polaris.roles_of_principal(user):
            return False
        return polaris.revoke_principal_role(role, user)

    def list_roles(self, *, author: Identity) -> Sequence[RoleInfo]:
        roles = self._conversation(author).principal_roles()
        return [
            RoleInfo(
                name=role.name,
                created_at=None if not role.created_millis else datetime.fromtimestamp(role.created_millis / 1000, UTC),
            )
            for role in sorted(roles, key=lambda role: role.name)
        ]

    def list_role_grants(self, *, author: Identity) -> Sequence[RoleGrant]:
        polaris = self._conversation(author)
        names = sorted(role.name for role in polaris.principal_roles())
        holders = polaris.each(polaris.principals_of, names)
        return [
            RoleGrant(role=name, grantee=Grantee(type="user", name=user))
            for name, users in zip(names, holders, strict=True)
            for user in sorted(users)
        ]

    def roles_of(self, principal: Identity) -> frozenset[str]:
        """Return none: a name alone is not yet the principal of that name, whose roles come with its token."""
        return frozenset()

    # Polaris

    def check(self) -> None:
        """See that the service account may do what it is for; without one, that somebody is there."""
        if self._service is None:
            self._client.probe()
            return
        polaris = self._conversation(_NOBODY)
        polaris.principal_roles()
        for place in self._places():
            polaris.catalog_roles(place.warehouse)

    def close(self) -> None:
        if self._service is not None:
            self._service.close()
        self._client.close()

    def _conversation(self, author: Identity) -> Conversation:
        return self._client.conversation(self._service or self._login_of_users(), author)

    def _login_of_users(self) -> Login:
        """As users log in to a catalog here, so that an exchanged token is what Polaris gets from them."""
        backends = self._catalogs().values()
        logins = [each.login for each in backends if isinstance(each, RestBackend) and self._is_here(each)]
        return next((login for login in logins if isinstance(login, UserLogin)), UserLogin())

    def _places(self) -> Sequence[_Place]:
        catalogs = self._catalogs()
        return [
            _Place(name=name, warehouse=backend.config.warehouse)
            for name, backend in sorted(catalogs.items())
            if isinstance(backend, RestBackend) and self._is_here(backend) and backend.config.warehouse
        ]

    def _place(self, catalog: str) -> _Place:
        for place in self._places():
            if place.name == catalog:
                return place
        raise NotSupportedError(
            f"Catalog {catalog} is not at the Polaris of [access_control], which keeps the grants",
            hint="grant it where it is",
        )

    def _is_here(self, backend: RestBackend) -> bool:
        """Whether a catalog is one of this server and realm; another realm has other catalogs of the same names."""
        config, server = backend.config, self._server
        if _address(config.catalog_url) != _address(server.catalog_url):
            return False
        if isinstance(config, PolarisConfig):
            return config.realm == server.realm
        headers = {name.lower(): value for name, value in config.headers.items()}
        return headers.get(server.realm_header.lower()) == server.realm


def _address(url: str) -> str:
    return url.rstrip("/").casefold()


def _own_role(role: str) -> str:
    return _PREFIX + role


def _ordered(rights: frozenset[Right]) -> list[Right]:
    return sorted(rights, key=lambda right: right.privilege)


def _check_role(name: str) -> None:
    check_name(name)
    # Not every store below a Polaris tells capitals from small letters.
    if name.strip().casefold() in _OF_POLARIS:
        raise NotSupportedError(f"The role {name} is not given, made or dropped with SQL", hint="use Polaris for it")


def _role_of(grantee: Grantee) -> str:
    if grantee.type != "role":
        raise NotSupportedError(
            f"{_NOT_THAT}, not to {'everybody' if grantee.type == 'public' else grantee.type + 's'}",
            hint="CREATE ROLE r, GRANT … TO ROLE r, GRANT r TO USER u",
        )
    _check_role(grantee.name)
    check_name(_own_role(grantee.name))
    return grantee.name


def _user_of(grantee: Grantee) -> str:
    if grantee.type != "user":
        raise NotSupportedError("Polaris gives roles to users only", hint="GRANT r TO USER u")
    check_name(grantee.name)
    return grantee.name


def _check_plain(grant: Grant) -> None:
    """Refuse what Polaris does not have, rather than leave it out."""
    if grant.effect is Effect.DENY:
        raise NotSupportedError("Polaris has no DENY", hint="REVOKE what allows it")
    if grant.columns is not None or grant.column_masks or grant.row_filter is not None:
        raise NotSupportedError(
            f"{_NOT_THAT}, without columns, masks and row filters", hint="CREATE POLICY restricts what is read"
        )
    if grant.with_grant_option:
        raise NotSupportedError("Polaris has no GRANT OPTION", hint="administrators grant")
    if grant.target.scope not in _PLACES:
        raise NotSupportedError(
            "Polaris has no grants on all or future tables and views",
            hint="a grant on the SCHEMA is for those of now and of later",
        )


def _rights_of(grant: Grant) -> frozenset[Right]:
    _check_plain(grant)
    target = grant.target
    kind = _PLACES[target.scope]
    return frozenset(
        Right(type=kind, privilege=privilege, namespace=target.namespace, name=target.name)
        for privilege in rights_to_grant(grant.privileges, kind)
    )


def _fits(right: Right, target: GrantTarget | None) -> bool:
    if target is None:
        return True
    return right.place == (_PLACES.get(target.scope), target.namespace, target.name)


def _grants(place: _Place, role: str, rights: frozenset[Right], target: GrantTarget | None) -> Iterator[Grant]:
    """Write the rights of a role as grants, one per privilege of SQL."""
    held: dict[tuple[str, tuple[str, ...], str | None], set[str]] = {}
    for right in rights:
        if _fits(right, target):
            held.setdefault(right.place, set()).add(right.privilege)
    for kind, namespace, name in sorted(held, key=str):
        words = words_of(frozenset(held[kind, namespace, name]), kind)
        for word in sorted(words, key=lambda word: word.value):
            yield Grant(
                privileges=frozenset({word}),
                target=GrantTarget(scope=_SCOPES[kind], catalog=place.name, namespace=namespace, name=name),  # type: ignore[arg-type]
                grantee=Grantee(type="role", name=role),
            )


def _refused(text: str, at_polaris: str) -> UserError:
    return UserError(text, code=ErrorCode.INVALID_ARGUMENTS, hint=f"{at_polaris} at Polaris")
