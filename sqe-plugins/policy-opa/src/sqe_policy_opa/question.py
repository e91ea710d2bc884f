"""What OPA is asked: the normalised request as JSON, for one access or for all objects of a statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from sqe_core.spi import (
    Access,
    ExternalError,
    Identity,
    NamespaceName,
    ObjectName,
    RequestContext,
    Resource,
)

Json = dict[str, Any]


def object_key(name: ObjectName | NamespaceName) -> str:
    """Write a name as the key that OPA's answers and stored grants use: `lake.hr.people`, `lake."a.b".t`.

    Raises:
        ExternalError: the key would stand for another object too (POL-10).
    """
    if any("." in part for part in name.namespace):
        raise ExternalError("OPA cannot tell this namespace from a nested one: a part of it holds a dot")
    parts = [name.catalog]
    if name.namespace:
        parts.append(".".join(name.namespace))
    if isinstance(name, ObjectName):
        parts.append(name.name)
    return ".".join(_quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"' if "." in part or '"' in part else part


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, and in which circumstances: the part of a question that all objects of a statement share."""

    principal: Identity
    context: RequestContext
    version: int = 1

    def about_one(self, access: Access) -> Json:
        resource, name = access.resource, access.resource.name
        return {
            "user": {"username": self.principal.username, "roles": sorted(self.principal.roles)},
            "table": {
                "name": name.name if isinstance(name, ObjectName) else None,
                "namespace": ".".join(name.namespace),
            },
            **self._shared(),
            "action": access.action.value,
            "resource": {
                "catalog": name.catalog,
                "namespace": list(name.namespace),
                "name": name.name if isinstance(name, ObjectName) else None,
                **_described(resource),
            },
        }

    def about_all(self, accesses: Iterable[Access]) -> Json:
        """Ask about all objects at once; each stands once, with everything that the statement does to it.

        An object is described in one way: its key can be answered once.
        """
        actions: dict[str, set[str]] = {}
        resources: dict[str, Resource] = {}
        for access in accesses:
            key = object_key(access.resource.name)
            actions.setdefault(key, set()).add(access.action.value)
            resources[key] = access.resource
        return {
            "user": self.principal.username,
            "roles": sorted(self.principal.roles),
            "tables": [_table(resource, actions[key]) for key, resource in resources.items()],
            **self._shared(),
        }

    def _shared(self) -> Json:
        who, context = self.principal, self.context
        return {
            "version": self.version,
            "principal": {
                "issuer": who.issuer,
                "subject": who.subject,
                "username": who.username,
                "roles": sorted(who.roles),
                "groups": sorted(who.groups),
                "claims": _plain(who.claims),
            },
            "context": {
                "protocol": context.protocol,
                "now": context.now.isoformat(),
                "client_addr": context.client_address,
                # The label that joins OPA's decision log with our history and audit.
                "query_id": context.query_id,
            },
        }


def _table(resource: Resource, actions: AbstractSet[str]) -> Json:
    name = resource.name
    return {
        "catalog": name.catalog,
        "schema": ".".join(name.namespace) if name.namespace else None,
        "table": name.name if isinstance(name, ObjectName) else None,
        "namespace": list(name.namespace),
        "actions": sorted(actions),
        **_described(resource),
    }


def _described(resource: Resource) -> Json:
    tags = resource.column_tags
    catalog = isinstance(resource.name, NamespaceName) and not resource.name.namespace
    return {
        "type": "catalog" if catalog else resource.type.value,
        "columns": [column.name for column in resource.columns],
        "ref": resource.ref,
        "uuid": resource.uuid,
        # null: they could not be read, which a policy that needs them must not take for "none".
        "column_tags": None if tags is None else {column: sorted(names) for column, names in tags.items()},
    }


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case AbstractSet():
            return sorted(_plain(item) for item in value)
        case Sequence():
            return [_plain(item) for item in value]
    raise ExternalError("A claim of this user cannot be told to OPA")
