"""The records in memory, indexed by name: what a decision looks at, without a query per name.

Names are compared in two ways. What gives access is compared exactly; what restricts, and whether something was ever
covered, is compared without case, so that no catalog that ignores case lets another spelling slip past (POL-10).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqe_core.policy.grants import records
from sqe_core.policy.grants.records import Covered, Created, GrantRow, Kind, Owner, Records
from sqe_core.policy.grants.store import Version, damaged
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Grantee, GrantTarget, ResourceType, RoleGrant, RoleInfo, StoredPolicy

Folded = tuple[str, ...]
Holder = tuple[str, str]
"""The type and name of a grantee."""


def fold_namespace(namespace: tuple[str, ...]) -> Folded:
    return tuple(part.casefold() for part in namespace)


def fold(name: ObjectName | NamespaceName) -> Folded:
    """Return the parts of a name without case. A schema and an object never meet: an index holds one sort."""
    own = (name.name,) if isinstance(name, ObjectName) else ()
    return fold_namespace((name.catalog, *name.namespace, *own))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Which roles each holder has directly."""

    roles: Mapping[Holder, frozenset[str]]

    def reach(self, holders: Iterable[Holder]) -> frozenset[str]:
        """Return all roles that some holders have, through roles too."""
        found: set[str] = set()
        open_ = list(holders)
        while open_:
            for role in self.roles.get(open_.pop(), frozenset()) - found:
                found.add(role)
                open_.append(("role", role))
        return frozenset(found)


def members_of(members: Iterable[RoleGrant]) -> Held:
    roles: dict[Holder, set[str]] = defaultdict(set)
    for member in members:
        roles[member.grantee.type, member.grantee.name].add(member.role)
    return Held(roles={holder: frozenset(names) for holder, names in roles.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody, with every grantee that stands for them: `holders` to restrict, `given` to give access."""

    identity: Identity
    holders: frozenset[Holder]
    given: frozenset[Holder]

    def is_one_of(self, *grantees: Grantee) -> bool:
        """Whether one of the grantees stands for this principal."""
        return any((grantee.type, grantee.name) in self.holders for grantee in grantees)

    def gets(self, grantee: Grantee) -> bool:
        """Whether what the grantee was given is this principal's to use now."""
        return (grantee.type, grantee.name) in self.given

    def owns(self, owner: Owner) -> bool:
        """Whether this is the owner; where a login was recorded, a namesake from elsewhere is not."""
        return self.gets(owner.grantee) and (owner.key is None or owner.key == self.identity.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An object or a schema as a decision sees it; of both `types` when nobody knows, as in a listing."""

    name: ObjectName | NamespaceName
    types: frozenset[ResourceType]
    uuid: str | None = None


class State:
    """Everything that a store said at one version. Never changed, so that threads share it."""

    def __init__(self, version: Version, held: Records, former: State | None = None) -> None:
        """Index what was read; what records say that are the same as in a `former` state is taken from that."""
        self.version = version
        self._former = former._read if former is not None else {}
        self._read: dict[tuple[Kind, str], tuple[records.Body, Any]] = {}
        self.rows: list[GrantRow] = []
        self.policies: list[StoredPolicy] = []
        self.members: list[RoleGrant] = []
        self.roles: list[RoleInfo] = []
        self.owners: dict[ObjectName, Owner] = {}
        self.schema_owners: dict[NamespaceName, Owner] = {}
        self._covered: dict[Folded, list[Covered]] = defaultdict(list)
        self._covered_objects: dict[Folded, list[Covered]] = defaultdict(list)
        self._pinned: set[str] = set()
        # Names that differ in their case only may be one object or several, so all of them are kept apart.
        self._created: dict[Folded, dict[ObjectName, Created]] = defaultdict(dict)
        try:
            for kept, body in held.items():
                self._add(kept, body)
        except (KeyError, ValueError, TypeError, ArithmeticError) as error:
            raise damaged() from error
        self._former = {}
        self._owned_ids: dict[tuple[str, str], Owner] = {}
        for name, owner in self.owners.items():
            # Stores of earlier versions have the id with the object only.
            made = self._created.get(fold(name), {}).get(name)
            if owner.uuid is None and made is not None:
                owner = self.owners[name] = replace(owner, uuid=made.uuid)
            if owner.uuid is not None:
                self._owned_ids[name.catalog, owner.uuid] = owner
        self.held = members_of(self.members)
        self._rows_at: dict[Folded, list[GrantRow]] = defaultdict(list)
        self._rows_on: dict[Folded, list[GrantRow]] = defaultdict(list)
        self._rows_of: dict[str, list[GrantRow]] = defaultdict(list)
        for row in self.rows:
            target = row.grant.target
            place = fold_namespace((target.catalog, *target.namespace))
            if target.name is None:
                self._rows_at[place].append(row)
            else:
                self._rows_on[*place, target.name.casefold()].append(row)
            if row.grant.object_uuid:
                self._rows_of[row.grant.object_uuid].append(row)

    def _decoded(self, place: tuple[Kind, str], body: records.Body) -> Any:
        """Return what a record says; reading it is most of the work after a change of one among thousands."""
        former = self._former.get(place)
        found = former if former is not None and former[0] is body else (body, _DECODERS[place[0]](body))
        self._read[place] = found
        return found[1]

    def _add(self, place: tuple[Kind, str], body: records.Body) -> None:
        decoded = self._decoded(place, body)
        match place[0]:
            case Kind.GRANT:
                self.rows.append(decoded)
            case Kind.COVERED:
                covered: Covered = decoded
                target = covered.target
                level = fold_namespace((target.catalog, *target.namespace))
                if target.name is None:
                    self._covered[level].append(covered)
                else:
                    self._covered_objects[*level, target.name.casefold()].append(covered)
            case Kind.PINNED:
                self._pinned.add(decoded)
            case Kind.ROLE:
                self.roles.append(decoded)
            case Kind.MEMBER:
                self.members.append(decoded)
            case Kind.POLICY:
                self.policies.append(decoded)
            case Kind.OWNER:
                owner: Owner = decoded
                if isinstance(owner.name, ObjectName):
                    self.owners[owner.name] = owner
                else:
                    self.schema_owners[owner.name] = owner
            case Kind.OBJECT:
                self._created[fold(decoded.name)][decoded.name] = decoded

    def principal(self, identity: Identity) -> Principal:
        """Return everything that stands for somebody: user, groups, roles of the token and of the store, PUBLIC.

        Of somebody who chose roles with SET ROLE only those give access. All of them restrict: nobody gets rid of a
        denial or a filter by leaving out the role that it hangs on.
        """
        own = {("user", identity.username), ("public", "")} | {("group", name) for name in identity.groups}
        chosen = own | {("role", name) for name in identity.roles}
        everything = chosen | {("role", name) for name in identity.all_roles or ()}
        everything |= {("role", name) for name in self.held.reach(everything)}
        given = everything if identity.all_roles is None else chosen
        return Principal(identity=identity, holders=frozenset(everything), given=frozenset(given))

    def owner_of(self, name: ObjectName | NamespaceName, uuid: str | None = None) -> Owner | None:
        """Return who owns exactly this: what has the id, where it is known, under whatever name."""
        if isinstance(name, NamespaceName):
            return self.schema_owners.get(name)
        owner = self.owners.get(name)
        if uuid is None or (owner is not None and owner.uuid in (None, uuid)):
            return owner
        return self._owned_ids.get((name.catalog, uuid))

    def rows_at(self, level: Folded) -> Sequence[GrantRow]:
        """Return the rows on a catalog or a schema and on all or future objects of it."""
        return self._rows_at.get(level, ())

    def rows_about(self, place: Place, at: Callable[[Folded], Sequence[GrantRow]]) -> Iterator[GrantRow]:
        """Go through the rows at every level that reach a place; `at` is `rows_at`, or a choice of what it returns."""
        name = place.name
        for level in levels(name):
            direct = isinstance(name, ObjectName) and len(level) == len(name.namespace) + 1
            for row in at(level):
                if row.grant.target.scope in ("catalog", "schema") or (
                    direct and self._reaches(row.grant.target, place, first=row.written, last=row.written)
                ):
                    yield row
        on = self._rows_on.get(fold(name), ()) if isinstance(name, ObjectName) else ()
        yield from on
        if place.uuid:
            yield from (row for row in self._rows_of.get(place.uuid, ()) if row not in on)

    def gives(self, row: GrantRow, place: Place) -> bool:
        """Whether a row that reaches a place may give access to it: the name is exact, the object still the same.

        A row that is pinned to an id goes with the id, under whatever name.
        """
        target, name = row.grant.target, place.name
        if row.grant.object_uuid and place.uuid:
            return row.grant.object_uuid == place.uuid
        if target.catalog != name.catalog or target.namespace != name.namespace[: len(target.namespace)]:
            return False
        if target.scope not in ("catalog", "schema", "table", "view") and isinstance(name, ObjectName):
            return self._reaches(target, place, first=row.written, last=row.written, gives=True)
        return target.name is None or (
            isinstance(name, ObjectName) and (target.namespace, target.name) == (name.namespace, name.name)
        )

    def governed(self, place: Place) -> bool:
        """Whether a grant at any level ever covered a place. If none did, the catalog alone decides."""
        name = place.name
        if isinstance(name, ObjectName) and (fold(name) in self._covered_objects or place.uuid in self._pinned):
            return True
        for level in levels(name):
            direct = isinstance(name, ObjectName) and len(level) == len(name.namespace) + 1
            for covered in self._covered.get(level, ()):
                if covered.target.scope in ("catalog", "schema") or (
                    direct and self._reaches(covered.target, place, first=covered.first, last=covered.last)
                ):
                    return True
        return False

    def types_of(self, name: ObjectName) -> frozenset[ResourceType]:
        """Return what an object may be, as far as grants on it said."""
        said = {covered.target.scope for covered in self._covered_objects.get(fold(name), ())}
        if len(said) != 1:
            return frozenset({ResourceType.TABLE, ResourceType.VIEW})
        return frozenset({ResourceType.VIEW if said == {"view"} else ResourceType.TABLE})

    def _reaches(self, target: GrantTarget, place: Place, *, first: int, last: int, gives: bool = False) -> bool:
        """Whether ALL or FUTURE TABLES or VIEWS of a schema mean an object, by when it was made.

        What was not made through SQE counts as older than any grant. Where only a name of other case was made it may be
        the same object or not: what `gives` has to reach both, everything else one of them.
        """
        assert isinstance(place.name, ObjectName)
        wanted = ResourceType.VIEW if target.scope.endswith("_views") else ResourceType.TABLE
        if wanted not in place.types:
            return False
        made = self._created.get(fold(place.name), {})
        times = [made[place.name].version] if place.name in made else [None, *(one.version for one in made.values())]
        if target.scope.startswith("future_"):
            reached = [time is not None and time > first for time in times]
        else:
            reached = [time is None or time <= last for time in times]
        return all(reached) if gives else any(reached)


_DECODERS: Mapping[Kind, Callable[[records.Body], Any]] = {
    Kind.GRANT: records.decode_grant,
    Kind.COVERED: records.decode_covered,
    Kind.PINNED: lambda body: body["uuid"],
    Kind.ROLE: records.decode_role,
    Kind.MEMBER: records.decode_member,
    Kind.POLICY: records.decode_policy,
    Kind.OWNER: records.decode_owner,
    Kind.OBJECT: records.decode_created,
}


def levels(name: ObjectName | NamespaceName) -> Sequence[Folded]:
    """Return the containers of a name, the catalog first; a schema is its own last container."""
    parts = fold_namespace((name.catalog, *name.namespace))
    return [parts[:depth] for depth in range(1, len(parts) + 1)]
