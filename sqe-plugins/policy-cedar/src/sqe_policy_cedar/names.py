"""What Cedar's entities are called. Ids are joined without ambiguity (POL-10): `lake.a.b` and `lake."a.b"` differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cedarpy

from sqe_core.spi import Identity, NamespaceName, ObjectName
from sqe_policy_cedar.config import PrincipalId

USER, ROLE, GROUP = "User", "Role", "Group"
CATALOG, SCHEMA, TABLE, COLUMN, ROW, TAG = "Catalog", "Schema", "Table", "Column", "Row", "Tag"

PARTS = {CATALOG: 1, SCHEMA: 2, TABLE: 3, COLUMN: 4}
"""How many parts a whole name has at least, by the type of the entity."""

_PART = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')


@dataclass(frozen=True, slots=True)
class EntityUid:
    type: str
    id: str

    def as_json(self) -> dict[str, str]:
        """The form in which names reach Cedar: as values, never as text of its language (AUTHN-10)."""
        return {"type": self.type, "id": self.id}

    def as_text(self) -> str:
        """The form of Cedar's language, which partial evaluation asks for; Cedar itself writes and escapes it.

        Raises:
            ValueError: Cedar does not write it.
        """
        return _written(self)


@lru_cache(maxsize=4096)
def _written(uid: EntityUid) -> str:
    anything = {"op": "All"}
    scope = {"principal": {"op": "==", "entity": uid.as_json()}, "action": anything, "resource": anything}
    policy = {"effect": "permit", "conditions": [], **scope}
    text = cedarpy.policies_from_json_str(
        json.dumps({"staticPolicies": {"p": policy}, "templates": {}, "templateLinks": []})
    )
    before, after = "permit(principal == ", ", action, resource);"
    text = text.strip()
    if not text.startswith(before) or not text.endswith(after):
        raise ValueError("Cedar wrote a policy in an unknown form")
    return text[len(before) : -len(after)]


def join_parts(parts: Iterable[str]) -> str:
    """Join parts with dots; a part that holds a dot or a quote is quoted, its quotes doubled."""
    return ".".join(_quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return part if part and "." not in part and '"' not in part else '"' + part.replace('"', '""') + '"'


def split_id(text: str) -> tuple[str, ...] | None:
    """Undo `join_parts`; None when the text is no joined name."""
    parts: list[str] = []
    place = 0
    while match := _PART.match(text, place):
        quoted, plain = match.groups()
        parts.append(plain if quoted is None else quoted.replace('""', '"'))
        place = match.end()
        if place == len(text):
            return tuple(parts) if join_parts(parts) == text else None
        if text[place] != ".":
            return None
        place += 1
    return None


def with_catalog(tree: Any, catalog: str | None) -> Any:
    """Put the catalog before the names of Cedar's JSON that have none: what is asked about has whole names (POL-10)."""
    if isinstance(tree, list):
        return [with_catalog(each, catalog) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if catalog is not None and tree.keys() == {"type", "id"} and tree["type"] in (SCHEMA, TABLE, COLUMN):
        parts = split_id(str(tree["id"]))
        if parts is not None and len(parts) == PARTS[tree["type"]] - 1:
            return {**tree, "id": join_parts((catalog, *parts))}
    return {key: with_catalog(each, catalog) for key, each in tree.items()}


def object_uid(name: ObjectName | NamespaceName) -> EntityUid:
    """Return the entity of a table, a view, a schema or, for a namespace without parts, a catalog."""
    if isinstance(name, ObjectName):
        return EntityUid(TABLE, join_parts(name.parts))
    if not name.namespace:
        return EntityUid(CATALOG, join_parts((name.catalog,)))
    return EntityUid(SCHEMA, join_parts((name.catalog, *name.namespace)))


def column_uid(table: ObjectName, column: str) -> EntityUid:
    return EntityUid(COLUMN, join_parts((*table.parts, column)))


def principal_uid(identity: Identity, form: PrincipalId) -> EntityUid:
    match form:
        case "username":
            return EntityUid(USER, identity.username)
        case "subject":
            return EntityUid(USER, identity.subject)
        case "issuer_username":
            return EntityUid(USER, f"{_without_bar(identity.issuer)}|{identity.username}")
        case "issuer_subject":
            return EntityUid(USER, f"{_without_bar(identity.issuer)}|{identity.subject}")


def _without_bar(issuer: str) -> str:
    """Only the first bar of an id may separate."""
    return issuer.replace("%", "%25").replace("|", "%7C")
