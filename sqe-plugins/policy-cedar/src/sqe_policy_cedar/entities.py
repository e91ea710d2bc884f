"""Entities: those of the operator's file, and those of a question, made one graph.

What both describe is merged: a user has the roles of the token and the attributes of the file. Cedar keeps what only
the file describes in a parsed form and takes the rest with each question, as JSON (AUTHN-10).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import cedarpy

from sqe_core.spi import Identity, NamespaceName, ObjectName, Resource, read_json
from sqe_policy_cedar.bounds import check_ancestry
from sqe_policy_cedar.names import (
    CATALOG,
    COLUMN,
    GROUP,
    PARTS,
    ROLE,
    SCHEMA,
    TABLE,
    TAG,
    USER,
    EntityUid,
    column_uid,
    object_uid,
    split_id,
    with_catalog,
)

RESERVED: Mapping[str, frozenset[str]] = {
    USER: frozenset({"username", "issuer", "subject", "email"}),
    CATALOG: frozenset({"name"}),
    SCHEMA: frozenset({"name", "catalog"}),
    TABLE: frozenset({"name", "catalog", "uuid"}),
    COLUMN: frozenset({"name", "type"}),
}
"""The attributes that SQE sets, by type. Entities of these types come with each question."""

_OPTIONAL = frozenset({"email", "uuid"})


@dataclass(frozen=True, slots=True)
class Entity:
    uid: EntityUid
    attrs: Mapping[str, Any] = field(default_factory=dict)
    parents: frozenset[EntityUid] = frozenset()
    tags: Mapping[str, Any] = field(default_factory=dict)

    def merged(self, other: Entity) -> Entity:
        """Return the entity with the attributes and parents of another description of it."""
        return Entity(
            self.uid, {**other.attrs, **self.attrs}, self.parents | other.parents, {**other.tags, **self.tags}
        )

    def references(self) -> Iterator[EntityUid]:
        yield from self.parents
        yield from _references(self.attrs)
        yield from _references(self.tags)

    def as_json(self) -> dict[str, Any]:
        return {
            "uid": self.uid.as_json(),
            "attrs": self.attrs,
            "parents": [parent.as_json() for parent in self.parents],
            "tags": self.tags,
        }


def _references(value: Any) -> Iterator[EntityUid]:
    if isinstance(value, dict):
        inner = value.get("__entity")
        if isinstance(inner, dict):
            yield EntityUid(inner["type"], inner["id"])
        else:
            for each in value.values():
                yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


class EntityError(ValueError):
    """Entities that cannot be used; the text is for the operator."""


class EntityGraph:
    """The entities of the operator's file, and the schema's actions."""

    def __init__(
        self, text: str | None, schema: cedarpy.Schema, named: Iterable[EntityUid], catalog: str | None = None
    ) -> None:
        """Read the file.

        Args:
            text: the JSON, checked against the schema; None when there is no file.
            schema: the schema.
            named: the entities that policies name.
            catalog: that of names without one.

        Raises:
            EntityError: the entities are broken, do not fit the schema, or set what SQE sets.
        """
        written = with_catalog(_read(text), catalog) if text is not None else []
        try:
            check_ancestry(_ancestry(written))
            parsed = cedarpy.Entities.from_json_str(json.dumps([_completed(each) for each in written]), schema)
        except ValueError as error:
            raise EntityError(" ".join(str(error).split())[:200]) from error
        known = {entity.uid: entity for entity in map(_parsed, json.loads(str(parsed)))}
        self._known = known
        others = [entity for entity in known.values() if entity.uid.type not in RESERVED]
        self._others = cedarpy.Entities.from_json_str(json.dumps([entity.as_json() for entity in others]))
        self._always = tuple({*named, *(uid for entity in others for uid in entity.references())})

    @property
    def uids(self) -> Iterable[EntityUid]:
        """All that the file describes, and the actions."""
        return self._known.keys()

    def ancestors(
        self, start: Iterable[EntityUid], question: Mapping[EntityUid, Entity] | None = None
    ) -> frozenset[EntityUid]:
        found: set[EntityUid] = set()
        waiting = list(start)
        while waiting:
            uid = waiting.pop()
            if uid in found:
                continue
            found.add(uid)
            for place in (self._known, question or {}):
                entity = place.get(uid)
                if entity is not None:
                    waiting.extend(entity.parents)
        return frozenset(found)

    def with_question(self, question: Mapping[EntityUid, Entity]) -> cedarpy.Entities:
        added: dict[EntityUid, Entity] = {}
        waiting = [*question, *self._always]
        while waiting:
            uid = waiting.pop()
            if uid in added or uid.type not in RESERVED:
                continue
            asked, known = question.get(uid), self._known.get(uid)
            entity = asked.merged(known) if asked and known else asked or known
            if entity is None:
                continue
            added[uid] = entity
            waiting.extend(entity.references())
        return self._others.with_added_json_str(json.dumps([entity.as_json() for entity in added.values()]))


def _read(text: str) -> list[Any]:
    try:
        written = read_json(text)
    except ValueError as error:
        raise EntityError(f"is no JSON that can be used: {error}"[:200]) from error
    if not isinstance(written, list) or not all(isinstance(entity, dict) for entity in written):
        raise EntityError("is not a list of entities")
    return written


def _ancestry(written: list[Any]) -> dict[object, list[object]]:
    found: dict[object, list[object]] = {}
    for entity in written:
        parents = entity.get("parents", [])
        above = parents if isinstance(parents, list) else []
        found.setdefault(_key(entity.get("uid")), []).extend(map(_key, above))
    return found


def _key(uid: Any) -> object:
    uid = uid.get("__entity", uid) if isinstance(uid, dict) else uid
    return (str(uid.get("type")), str(uid.get("id"))) if isinstance(uid, dict) else str(uid)


def _completed(written: dict[str, Any]) -> dict[str, Any]:
    """Add what SQE sets, so that the schema can be checked: in the file it is missing, and has to be."""
    uid, attrs = written.get("uid"), written.get("attrs", {})
    if not isinstance(uid, dict) or not isinstance(attrs, dict):
        raise EntityError("holds something that is no entity with uid, attrs and parents")
    uid = uid.get("__entity", uid)
    if not isinstance(uid, dict) or not isinstance(uid.get("type"), str):
        raise EntityError("holds an entity whose uid has no type")
    reserved = RESERVED.get(uid["type"], frozenset())
    taken = reserved & attrs.keys()
    if taken:
        raise EntityError(f'{uid["type"]}::"{uid.get("id")}" sets "{min(taken)}", which SQE sets itself')
    return {"parents": [], **written, "attrs": {**attrs, **dict.fromkeys(reserved - _OPTIONAL, "")}}


def _parsed(tree: Any) -> Entity:
    parents = frozenset(EntityUid(parent["type"], parent["id"]) for parent in tree["parents"])
    uid = EntityUid(tree["uid"]["type"], tree["uid"]["id"])
    reserved = RESERVED.get(uid.type, frozenset())
    attrs = {name: value for name, value in tree["attrs"].items() if name not in reserved}
    return Entity(uid, attrs, parents, tree.get("tags", {}))


def principal_entity(uid: EntityUid, identity: Identity) -> Entity:
    attrs = {"username": identity.username, "issuer": identity.issuer, "subject": identity.subject}
    if identity.email is not None:
        attrs["email"] = identity.email
    roles = {EntityUid(ROLE, role) for role in identity.roles}
    groups = {EntityUid(GROUP, group) for group in identity.groups}
    return Entity(uid, attrs, frozenset(roles | groups))


def object_entities(name: ObjectName | NamespaceName, uuid: str | None = None) -> Iterator[Entity]:
    if isinstance(name, ObjectName):
        attrs = {"name": name.name, "catalog": name.catalog}
        if uuid is not None:
            attrs["uuid"] = uuid
        yield Entity(object_uid(name), attrs, frozenset({object_uid(name.schema)}))
        yield from object_entities(name.schema)
    elif name.namespace:
        above = NamespaceName(catalog=name.catalog, namespace=name.namespace[:-1])
        attrs = {"name": name.namespace[-1], "catalog": name.catalog}
        yield Entity(object_uid(name), attrs, frozenset({object_uid(above)}))
        yield from object_entities(above)
    else:
        yield Entity(object_uid(name), {"name": name.catalog})


def resource_entities(resource: Resource) -> Iterator[Entity]:
    yield from object_entities(resource.name, resource.uuid)
    if isinstance(resource.name, ObjectName):
        table = object_uid(resource.name)
        tags = resource.column_tags or {}
        for column in resource.columns:
            parents = {table, *(EntityUid(TAG, tag) for tag in tags.get(column.name, ()))}
            attrs = {"name": column.name, "type": column.type}
            yield Entity(column_uid(resource.name, column.name), attrs, frozenset(parents))


def columns_by_table(uids: Iterable[EntityUid]) -> dict[EntityUid, frozenset[EntityUid]]:
    """Sort the columns that policies and entities name by their tables.

    Raises:
        EntityError: an id is no name of a column.
    """
    found: dict[EntityUid, set[EntityUid]] = {}
    for uid in uids:
        if uid.type != COLUMN:
            continue
        parts = split_id(uid.id)
        if parts is None or len(parts) < PARTS[COLUMN]:
            raise EntityError(f'Column::"{uid.id}" names no column; the form is catalog.schema.table.column')
        table = object_uid(ObjectName(catalog=parts[0], namespace=parts[1:-2], name=parts[-2]))
        found.setdefault(table, set()).add(uid)
    return {table: frozenset(columns) for table, columns in found.items()}


def check_names(uids: Iterable[EntityUid]) -> None:
    """Refuse ids of objects that no object can have: they would never match.

    Raises:
        EntityError: such an id.
    """
    for uid in uids:
        if uid.type in (CATALOG, SCHEMA, TABLE):
            parts = split_id(uid.id)
            if parts is None or len(parts) < PARTS[uid.type] or (uid.type == CATALOG and len(parts) > 1):
                form = {CATALOG: "catalog", SCHEMA: "catalog.schema", TABLE: "catalog.schema.table"}[uid.type]
                raise EntityError(f'{uid.type}::"{uid.id}" names nothing; the form is {form}')
