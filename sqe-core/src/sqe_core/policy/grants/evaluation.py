"""What the records mean for one access.

    denied      a DENY reaches it, whatever else was granted
    allowed     no grant ever covered it: the catalog alone decides, but in a catalog that cannot know
                who asks: there it is its maker's and the administrators'
    allowed     it is the principal's own, or a grant at its level or above names the privilege
    denied      everything else

Restrictions come on top and add up, whoever they come from: row filters are ANDed, of two masks the stricter holds. A
column list only says which columns SELECT brings; the lists of several grants are united.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from sqe_core.policy.grants.changes import CONTAINER_PRIVILEGES
from sqe_core.policy.grants.records import GrantRow
from sqe_core.policy.grants.state import Folded, Place, Principal, State, fold, fold_namespace, levels
from sqe_core.policy.masks import strictest
from sqe_core.spi.errors import ErrorCode, ExternalError
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import (
    Access,
    Action,
    ColumnMask,
    Decision,
    Effect,
    Grant,
    Mask,
    Privilege,
    Resource,
    ResourceType,
    StoredPolicy,
)
from sqe_core.spi.sql import SqlExpression

Precedence = Literal["tag", "resource"]

_CHANGE_ROWS = frozenset({Privilege.INSERT, Privilege.MODIFY})
_OF_VIEWS = frozenset({Privilege.SELECT_VIEW, Privilege.DROP_VIEW})
# Who may make something in a schema does not see what others made there.
_OF_OBJECTS = frozenset(Privilege) - CONTAINER_PRIVILEGES - _OF_VIEWS

ALLOWED_BY: Mapping[Action, frozenset[Privilege]] = MappingProxyType(
    {
        Action.SELECT: frozenset({Privilege.SELECT}),
        **dict.fromkeys((Action.INSERT, Action.UPDATE, Action.DELETE, Action.MERGE, Action.TRUNCATE), _CHANGE_ROWS),
        Action.MAINTAIN: frozenset({Privilege.MODIFY, Privilege.MANAGE}),
        Action.CREATE: frozenset({Privilege.CREATE}),
        Action.DROP: frozenset({Privilege.DROP, Privilege.MANAGE}),
        Action.ALTER: frozenset({Privilege.ALTER, Privilege.MANAGE}),
        Action.DESCRIBE: _OF_OBJECTS,
        Action.CREATE_VIEW: frozenset({Privilege.CREATE_VIEW}),
        Action.ALTER_VIEW: frozenset({Privilege.ALTER, Privilege.MANAGE}),
        Action.DROP_VIEW: frozenset({Privilege.DROP_VIEW, Privilege.MANAGE}),
        Action.CREATE_SCHEMA: frozenset({Privilege.CREATE_NAMESPACE}),
        Action.ALTER_SCHEMA: frozenset({Privilege.ALTER, Privilege.MANAGE}),
        Action.DROP_SCHEMA: frozenset({Privilege.DROP, Privilege.MANAGE}),
    }
)
"""The privileges of which one is enough, beside ALL. A DENY of one of them denies, whichever was granted."""

# What is not readable is not described either, but one may not write and yet look.
_DENIES_DESCRIBE = frozenset({Privilege.SELECT, Privilege.MONITOR})
_MAKES = frozenset({Action.CREATE, Action.CREATE_VIEW, Action.CREATE_SCHEMA})
# These neither read rows nor write them: a policy that no longer fits does not keep its owner from mending the table.
_NO_ROWS = _MAKES | {
    Action.DROP,
    Action.ALTER,
    Action.MAINTAIN,
    Action.ALTER_VIEW,
    Action.DROP_VIEW,
    Action.ALTER_SCHEMA,
    Action.DROP_SCHEMA,
}
# What the owner of a schema may do in it; objects have owners of their own.
_OF_SCHEMA_OWNER = _MAKES | {Action.DESCRIBE, Action.ALTER_SCHEMA, Action.DROP_SCHEMA}
_BOTH_TYPES = frozenset({ResourceType.TABLE, ResourceType.VIEW})


class Evaluation:
    """Answers about one principal at one state of the store."""

    def __init__(
        self,
        state: State,
        principal: Principal,
        *,
        mask_precedence: Precedence = "tag",
        closed: frozenset[str] = frozenset(),
    ) -> None:
        self._state = state
        self._closed = closed
        self._principal = principal
        self._precedence = mask_precedence
        self._policies = [
            policy for policy in state.policies if policy.enabled and principal.is_one_of(*policy.grantees)
        ]
        self._version = str(state.version)
        self._inside: frozenset[Folded] | None = None
        self._found: dict[Folded, Sequence[GrantRow]] = {}

    def decide(self, access: Access) -> Decision:
        """Decide one access."""
        resource = access.resource
        place = Place(name=resource.name, types=frozenset({resource.type}), uuid=resource.uuid)
        effect, reason = self._effect(access.action, place, exists=resource.uuid is not None)
        if effect is not Effect.ALLOW or resource.type is ResourceType.SCHEMA:
            return self._decision(effect, reason)
        return self._restricted(access.action, resource, place, reason)

    def is_visible(self, name: ObjectName | NamespaceName) -> bool:
        """Whether a name may appear in a listing."""
        types = self._state.types_of(name) if isinstance(name, ObjectName) else frozenset({ResourceType.SCHEMA})
        effect, _ = self._effect(Action.DESCRIBE, Place(name=name, types=types), exists=True)
        return effect is Effect.ALLOW

    def may_grant(self, grant: Grant) -> bool:
        """Whether the principal may make this grant without being an admin: with MANAGE, or with grant option (POL-15).

        Who is restricted on an object, or on one below a schema or catalog, passes nothing of it on: the grant would
        be wider than what they have. Restrictions are made by admins only.
        """
        if grant.effect is not Effect.ALLOW or grant.row_filter is not None or grant.column_masks:
            return False
        target = grant.target
        if target.name is None:
            name: ObjectName | NamespaceName = NamespaceName(catalog=target.catalog, namespace=target.namespace)
            place = Place(name=name, types=frozenset({ResourceType.SCHEMA}))
        else:
            name = ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name)
            place = Place(name=name, types=_BOTH_TYPES, uuid=grant.object_uuid)
        rows = self._rows(place)
        if any(map(_restricts, rows)) or self._is_restricted_in(place):
            return False
        given = [row for row in self._given(rows, place) if row.privilege is not None]
        if any(row.privilege is Privilege.MANAGE for row in given):
            return True
        passable = [row for row in given if row.grant.with_grant_option]
        wanted = grant.privileges or frozenset({Privilege.SELECT})
        return all(any(_passes(row, one, grant) for row in passable) for one in wanted)

    def _is_restricted_in(self, place: Place) -> bool:
        """Whether a policy restricts the principal on a place, or anything does on an object inside of it."""
        if self._tag_policies():
            return True
        if isinstance(place.name, ObjectName):
            return bool(self._on_table(place))
        inside = fold(place.name)
        return any(
            fold(policy.target)[: len(inside)] == inside
            for policy in self._policies
            if isinstance(policy.target, ObjectName)
        ) or any(
            _restricts(row)
            and fold_namespace((row.grant.target.catalog, *row.grant.target.namespace))[: len(inside)] == inside
            for row in self._state.rows
            if self._principal.is_one_of(row.grant.grantee)
        )

    def _effect(self, action: Action, place: Place, *, exists: bool) -> tuple[Effect, str]:
        rows = self._rows(place)
        if self._is_denied(action, place, rows):
            return Effect.DENY, "a DENY covers it"
        if action in _MAKES and isinstance(place.name, ObjectName):
            # What is to be made has no past: its schema decides. What would be replaced has to be droppable as well.
            if exists:
                effect, reason = self._effect(Action.DROP, place, exists=True)
                if effect is not Effect.ALLOW:
                    return effect, reason
            place = Place(name=place.name.schema, types=frozenset({ResourceType.SCHEMA}))
            rows = self._rows(place)
        elif action is Action.CREATE_SCHEMA:
            assert isinstance(place.name, NamespaceName)
            above = NamespaceName(catalog=place.name.catalog, namespace=place.name.namespace[:-1])
            place = Place(name=above, types=place.types)
            rows = self._rows(place)
        covered = self._state.governed(place)
        if not covered and not (place.name.catalog in self._closed and _is_closable(action, place.name)):
            return Effect.ALLOW, "no grant ever covered it"
        if self._is_own(action, place):
            return Effect.ALLOW, "its owner"
        if not covered:
            return Effect.DENY, "no grant covers it, and somebody else made it"
        allowed = ALLOWED_BY[action] | self._of_views(action, place) | {Privilege.ALL}
        if action is Action.DESCRIBE and isinstance(place.name, NamespaceName):
            if fold(place.name) in self._passages():
                return Effect.ALLOW, "passage to what is granted in it"
            allowed = frozenset(Privilege)
        if any(row.privilege in allowed for row in self._given(rows, place)):
            return Effect.ALLOW, "granted"
        return Effect.DENY, "not granted"

    def _is_denied(self, action: Action, place: Place, rows: Sequence[GrantRow]) -> bool:
        hit = _DENIES_DESCRIBE if action is Action.DESCRIBE else ALLOWED_BY[action]
        if ResourceType.VIEW in place.types and action in (Action.SELECT, Action.DESCRIBE):
            hit |= {Privilege.SELECT_VIEW}
        return any(row.grant.effect is Effect.DENY and row.grant.columns is None and _hits(row, hit) for row in rows)

    @staticmethod
    def _of_views(action: Action, place: Place) -> frozenset[Privilege]:
        if ResourceType.VIEW not in place.types or action not in (Action.SELECT, Action.DESCRIBE):
            return frozenset()
        return _OF_VIEWS if action is Action.DESCRIBE else frozenset({Privilege.SELECT_VIEW})

    def _rows(self, place: Place) -> list[GrantRow]:
        return [row for row in self._state.rows_about(place, self._at) if self._principal.is_one_of(row.grant.grantee)]

    def _at(self, level: Folded) -> Sequence[GrantRow]:
        """The principal's rows at a catalog or a schema, found once for all names of a listing."""
        if level not in self._found:
            self._found[level] = [
                row for row in self._state.rows_at(level) if self._principal.is_one_of(row.grant.grantee)
            ]
        return self._found[level]

    def _given(self, rows: Sequence[GrantRow], place: Place) -> list[GrantRow]:
        return [
            row
            for row in rows
            if row.grant.effect is Effect.ALLOW
            and self._principal.gets(row.grant.grantee)
            and self._state.gives(row, place)
        ]

    def _owns(self, name: ObjectName | NamespaceName, uuid: str | None = None) -> bool:
        owner = self._state.owner_of(name, uuid)
        return owner is not None and self._principal.owns(owner)

    def _is_own(self, action: Action, place: Place) -> bool:
        if isinstance(place.name, ObjectName):
            return self._owns(place.name, place.uuid) or (action in _OF_SCHEMA_OWNER and self._owns(place.name.schema))
        return action in _OF_SCHEMA_OWNER and self._owns(place.name)

    def _passages(self) -> frozenset[Folded]:
        """The catalogs and schemas on the way to what the principal has: nobody uses a table without passing them."""
        if self._inside is None:
            found: set[Folded] = set()
            for row in self._state.rows:
                grant = row.grant
                if grant.effect is Effect.ALLOW and row.privilege and self._principal.gets(grant.grantee):
                    found.update(levels(NamespaceName(catalog=grant.target.catalog, namespace=grant.target.namespace)))
            for owner in (*self._state.owners.values(), *self._state.schema_owners.values()):
                if self._principal.owns(owner):
                    found.update(levels(owner.name))
            self._inside = frozenset(found)
        return self._inside

    def _restricted(self, action: Action, resource: Resource, place: Place, reason: str) -> Decision:
        rows = self._rows(place)
        filters = self._filters(rows, place)
        denied = _denied_columns(rows)
        hidden = self._hidden(rows, place, resource)
        masks = self._masks(action, rows, place, resource)
        if resource.columns:
            names = {column.name.casefold(): column.name for column in resource.columns}
            if action not in _NO_ROWS and not masks.keys() <= names.keys():
                # After a rename it would protect nothing (POL-6).
                return self._decision(Effect.DENY, "a mask names a column that is not there")
            if action not in _NO_ROWS and not denied <= names.keys():
                return self._decision(Effect.DENY, "a DENY names a column that is not there")
            if action is Action.SELECT and len(hidden) == len(names):
                return self._decision(Effect.DENY, "no column is granted")
        else:
            names = {name: name for name in (*masks, *hidden)}
        return Decision(
            effect=Effect.ALLOW,
            reason=reason,
            row_filters=filters,
            column_masks=tuple(
                ColumnMask(column=names[column], mask=mask)
                for column, mask in sorted(masks.items())
                if column in names and column not in hidden
            ),
            hidden_columns=frozenset(names[column] for column in hidden),
            ttl_secs=0,
            policy_version=self._version,
        )

    def _decision(self, effect: Effect, reason: str) -> Decision:
        return Decision(effect=effect, reason=reason, ttl_secs=0, policy_version=self._version)

    def _on_table(self, place: Place) -> list[StoredPolicy]:
        assert isinstance(place.name, ObjectName)
        name = fold(place.name)
        return [
            policy
            for policy in self._policies
            if isinstance(policy.target, ObjectName)
            and (fold(policy.target) == name or (place.uuid is not None and policy.object_uuid == place.uuid))
        ]

    def _filters(self, rows: Sequence[GrantRow], place: Place) -> tuple[SqlExpression, ...]:
        found = {row.grant.row_filter for row in rows if row.grant.row_filter is not None}
        if isinstance(place.name, ObjectName):
            found |= {policy.row_filter for policy in self._on_table(place) if policy.row_filter is not None}
        return tuple(sorted(found, key=lambda expression: (expression.text, expression.dialect)))

    def _hidden(self, rows: Sequence[GrantRow], place: Place, resource: Resource) -> frozenset[str]:
        """The hidden columns without case: those outside of every column list, and those that were denied."""
        denied = _denied_columns(rows)
        columns = {column.name.casefold() for column in resource.columns}
        if not columns:
            return denied
        assert isinstance(place.name, ObjectName)
        reading = {Privilege.SELECT, Privilege.ALL} | self._of_views(Action.SELECT, place)
        lists = [row.grant.columns for row in self._given(rows, place) if row.privilege in reading]
        if lists and None not in lists and self._state.governed(place) and not self._owns(place.name, place.uuid):
            denied |= columns - {column.casefold() for listed in lists for column in listed or ()}
        return denied & columns

    def _masks(self, action: Action, rows: Sequence[GrantRow], place: Place, resource: Resource) -> dict[str, Mask]:
        """The masks by column, without case. A level that says MASK_NONE wins like any other that is preferred."""
        of_resource = self._resource_masks(rows, place)
        of_tags: dict[str, list[Mask | None]] = defaultdict(list)
        tagged = self._tag_policies()
        if tagged and action not in _NO_ROWS:
            if resource.column_tags is None:
                raise ExternalError("The tags of a table are not known", code=ErrorCode.EXECUTION_FAILED)
            for column, tags in resource.column_tags.items():
                folded = {tag.casefold() for tag in tags}
                for policy in tagged:
                    if policy.tag is not None and policy.tag.casefold() in folded:
                        of_tags[column.casefold()].append(policy.mask)
        first, second = (of_tags, of_resource) if self._precedence == "tag" else (of_resource, of_tags)
        masks: dict[str, Mask] = {}
        for column, found in {**second, **first}.items():
            real = [mask for mask in found if mask is not None]
            if real:
                masks[column] = strictest(real)
        return masks

    def _tag_policies(self) -> list[StoredPolicy]:
        return [policy for policy in self._policies if policy.tag is not None]

    def _resource_masks(self, rows: Sequence[GrantRow], place: Place) -> dict[str, list[Mask | None]]:
        found: dict[str, list[Mask | None]] = defaultdict(list)
        for row in rows:
            for mask in row.grant.column_masks:
                found[mask.column.casefold()].append(mask.mask)
        if isinstance(place.name, ObjectName):
            for policy in self._on_table(place):
                if policy.column is not None:
                    found[policy.column.casefold()].append(policy.mask)
        return found


def _is_closable(action: Action, name: ObjectName | NamespaceName) -> bool:
    """Whether what no grant covers is closed to others: objects, and schemas to those who would change them."""
    return isinstance(name, ObjectName) or action in (Action.ALTER_SCHEMA, Action.DROP_SCHEMA)


def _hits(row: GrantRow, privileges: frozenset[Privilege]) -> bool:
    """Whether a row is about one of these; ALL is about each, and nobody gets past a container without USE."""
    passing = row.privilege is Privilege.USE and row.grant.target.name is None
    return row.privilege is not None and (row.privilege in privileges or row.privilege is Privilege.ALL or passing)


def _denied_columns(rows: Sequence[GrantRow]) -> frozenset[str]:
    return frozenset(
        column.casefold()
        for row in rows
        if row.grant.effect is Effect.DENY and row.grant.columns is not None
        for column in row.grant.columns
    )


def _restricts(row: GrantRow) -> bool:
    grant = row.grant
    return grant.effect is Effect.DENY or grant.row_filter is not None or bool(grant.column_masks)


def _passes(row: GrantRow, privilege: Privilege, grant: Grant) -> bool:
    if row.privilege not in (privilege, Privilege.ALL):
        return False
    if row.grant.columns is None:
        return True
    own = {column.casefold() for column in row.grant.columns}
    return grant.columns is not None and {column.casefold() for column in grant.columns} <= own
