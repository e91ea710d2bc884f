"""The records of the store: what a grant, a policy or an owner looks like as JSON, and back.

A record that cannot be read is a damaged store, and a damaged store answers nothing (POL-2).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, cast, get_args

from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import (
    ActionMask,
    ColumnMask,
    ConstantMask,
    Effect,
    Grant,
    Grantee,
    GrantTarget,
    HashMask,
    Mask,
    MaskAction,
    NullMask,
    PartialMask,
    Privilege,
    RangeMask,
    RoleGrant,
    RoleInfo,
    SqlMask,
    StoredPolicy,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression

Body = Mapping[str, Any]
"""A record, as JSON knows it."""


class Kind(Enum):
    """What a record is about; the value is what the database holds."""

    GRANT = "grant"
    COVERED = "covered"
    PINNED = "pinned"
    ROLE = "role"
    MEMBER = "member"
    POLICY = "policy"
    OWNER = "owner"
    OBJECT = "object"


Records = Mapping[tuple[Kind, str], Body]
"""Everything that a store holds, by kind and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """One privilege of a grant; None is a restriction alone, as GRANT ROWS WHERE makes it.

    `written` is the version of the store that wrote it, which dates ALL and FUTURE.
    """

    privilege: Privilege | None
    grant: Grant
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A target that a grant once covered. It stays when the grant goes: revoked is not the same as never granted."""

    target: GrantTarget
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who owns something; with issuer and subject where a login was seen, so that a namesake owns nothing.

    An object is what has the catalog's id, not what has the name now. Schemas have no ids.
    """

    name: ObjectName | NamespaceName
    grantee: Grantee
    key: tuple[str, str] | None = None
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """An object whose creation was seen, at a version of the store."""

    name: ObjectName
    uuid: str | None
    version: int


def key_of(*parts: object) -> str:
    """Write names as a key that cannot be confused with another (NAME-1)."""
    return json.dumps(parts, separators=(",", ":"))


def name_key(name: ObjectName | NamespaceName) -> str:
    """Return the key of an object or a schema."""
    own = name.name if isinstance(name, ObjectName) else None
    return key_of(name.catalog, list(name.namespace), own)


def target_key(target: GrantTarget) -> str:
    """Return the key of a target; what is called a table and what is called a view is the same object."""
    scope = "object" if target.scope in ("table", "view") else target.scope
    return key_of(scope, target.catalog, list(target.namespace), target.name)


def grant_key(body: Body) -> str:
    """Return the key of one privilege of a grant: the same grant again is the same record."""
    same = {name: body[name] for name in ("privilege", "target", "grantee", "effect", "columns", "masks", "filter")}
    scope = body["target"]["scope"]
    same["target"] = {**body["target"], "scope": "object" if scope in ("table", "view") else scope}
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


def encode_grant(grant: Grant, privilege: Privilege | None, *, written: int) -> dict[str, Any]:
    return {
        "privilege": privilege.value if privilege else None,
        "target": encode_target(grant.target),
        "grantee": _encode_grantee(grant.grantee),
        "effect": grant.effect.value,
        "columns": None if grant.columns is None else sorted(grant.columns),
        "masks": {mask.column: encode_mask(mask.mask) for mask in grant.column_masks},
        "filter": _encode_expression(grant.row_filter),
        "option": grant.with_grant_option,
        "by": grant.granted_by,
        "at": grant.granted_at.isoformat() if grant.granted_at else None,
        "uuid": grant.object_uuid,
        "written": written,
    }


def decode_grant(body: Body) -> GrantRow:
    privilege = Privilege(body["privilege"]) if body["privilege"] is not None else None
    effect = Effect(body["effect"])
    if effect is Effect.ABSTAIN:
        raise ValueError("a grant allows or denies")
    grant = Grant(
        privileges=frozenset({privilege} if privilege else ()),
        target=decode_target(body["target"]),
        grantee=_decode_grantee(body["grantee"]),
        effect=effect,
        columns=None if body["columns"] is None else tuple(body["columns"]),
        column_masks=tuple(
            ColumnMask(column=column, mask=decode_mask(mask)) for column, mask in sorted(body["masks"].items())
        ),
        row_filter=_decode_expression(body["filter"]),
        with_grant_option=body["option"],
        granted_by=body["by"],
        granted_at=_decode_time(body["at"]),
        object_uuid=body["uuid"],
    )
    return GrantRow(privilege=privilege, grant=grant, written=int(body["written"]))


def encode_target(target: GrantTarget) -> dict[str, Any]:
    return {
        "scope": target.scope,
        "catalog": target.catalog,
        "namespace": list(target.namespace),
        "name": target.name,
    }


def decode_target(body: Body) -> GrantTarget:
    if body["scope"] not in GrantTarget.__annotations__["scope"]:
        raise ValueError("an unknown scope")
    return GrantTarget(
        scope=body["scope"], catalog=body["catalog"], namespace=tuple(body["namespace"]), name=body["name"]
    )


def encode_covered(covered: Covered) -> dict[str, Any]:
    return {"target": encode_target(covered.target), "first": covered.first, "last": covered.last}


def decode_covered(body: Body) -> Covered:
    return Covered(target=decode_target(body["target"]), first=int(body["first"]), last=int(body["last"]))


def encode_policy(policy: StoredPolicy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "kind": policy.kind,
        "tag": policy.tag,
        "object": None if isinstance(policy.target, str) else encode_name(policy.target),
        "grantees": [_encode_grantee(grantee) for grantee in policy.grantees],
        "column": policy.column,
        "mask": encode_mask(policy.mask) if policy.mask else None,
        "filter": _encode_expression(policy.row_filter),
        "enabled": policy.enabled,
        "uuid": policy.object_uuid,
        "by": policy.created_by,
        "at": policy.created_at.isoformat() if policy.created_at else None,
    }


def decode_policy(body: Body) -> StoredPolicy:
    named = body["tag"] if body["tag"] is not None else decode_name(body["object"])
    if isinstance(named, NamespaceName):
        raise ValueError("a policy is about a table or a tag")
    return StoredPolicy(
        name=body["name"],
        kind=body["kind"],
        target=named,
        grantees=tuple(_decode_grantee(grantee) for grantee in body["grantees"]),
        column=body["column"],
        mask=decode_mask(body["mask"]) if body["mask"] is not None else None,
        row_filter=_decode_expression(body["filter"]),
        enabled=body["enabled"],
        object_uuid=body["uuid"],
        created_by=body["by"],
        created_at=_decode_time(body["at"]),
    )


def encode_role(role: RoleInfo) -> dict[str, Any]:
    return {
        "name": role.name,
        "by": role.created_by,
        "at": role.created_at.isoformat() if role.created_at else None,
    }


def decode_role(body: Body) -> RoleInfo:
    return RoleInfo(name=body["name"], created_by=body["by"], created_at=_decode_time(body["at"]))


def encode_member(member: RoleGrant) -> dict[str, Any]:
    return {
        "role": member.role,
        "grantee": _encode_grantee(member.grantee),
        "option": member.admin_option,
        "by": member.granted_by,
        "at": member.granted_at.isoformat() if member.granted_at else None,
    }


def decode_member(body: Body) -> RoleGrant:
    return RoleGrant(
        role=body["role"],
        grantee=_decode_grantee(body["grantee"]),
        admin_option=body["option"],
        granted_by=body["by"],
        granted_at=_decode_time(body["at"]),
    )


def member_key(role: str, grantee: Grantee) -> str:
    """Return the key of somebody's role."""
    return key_of(role, grantee.type, grantee.name)


def encode_owner(owner: Owner) -> dict[str, Any]:
    return {
        "object": encode_name(owner.name),
        "grantee": _encode_grantee(owner.grantee),
        "key": list(owner.key) if owner.key else None,
        "uuid": owner.uuid,
    }


def decode_owner(body: Body) -> Owner:
    key = body["key"]
    return Owner(
        name=decode_name(body["object"]),
        grantee=_decode_grantee(body["grantee"]),
        key=(str(key[0]), str(key[1])) if key is not None else None,
        uuid=body.get("uuid"),
    )


def encode_created(created: Created) -> dict[str, Any]:
    return {"object": encode_name(created.name), "uuid": created.uuid, "version": created.version}


def decode_created(body: Body) -> Created:
    name = decode_name(body["object"])
    if isinstance(name, NamespaceName):
        raise ValueError("an object has a name of its own")
    return Created(name=name, uuid=body["uuid"], version=int(body["version"]))


def encode_name(name: ObjectName | NamespaceName) -> dict[str, Any]:
    return {
        "catalog": name.catalog,
        "namespace": list(name.namespace),
        "name": name.name if isinstance(name, ObjectName) else None,
    }


def decode_name(body: Body) -> ObjectName | NamespaceName:
    if body["name"] is None:
        return NamespaceName(catalog=body["catalog"], namespace=tuple(body["namespace"]))
    return ObjectName(catalog=body["catalog"], namespace=tuple(body["namespace"]), name=body["name"])


_MASKS: Mapping[str, Any] = {
    "null": NullMask,
    "constant": ConstantMask,
    "hash": HashMask,
    "partial": PartialMask,
    "range": RangeMask,
    "year": YearMask,
    "sql": SqlMask,
    "action": ActionMask,
}
_TYPES = {made: name for name, made in _MASKS.items()}


def encode_mask(mask: Mask) -> dict[str, Any]:
    body: dict[str, Any] = {"type": _TYPES[type(mask)]} | {each.name: getattr(mask, each.name) for each in fields(mask)}
    if isinstance(mask, RangeMask):
        body["width"] = str(mask.width)
    elif isinstance(mask, SqlMask):
        body["expression"] = _encode_expression(mask.expression)
    return body


def decode_mask(body: Body) -> Mask:
    """Read a mask; an unknown one is an error, never no mask."""
    values = dict(body)
    made = _MASKS.get(values.pop("type"))
    if made is RangeMask:
        width = Decimal(values["width"])
        values["width"] = int(width) if width == width.to_integral_value() else width
    elif made is SqlMask:
        values["expression"] = _decode_expression(values["expression"])
    known = made is not ActionMask or values["action"] in get_args(MaskAction)
    if made is None or not known or values.get("expression", body) is None:
        raise ValueError("an unknown mask")
    return cast(Mask, made(**values))


def _encode_grantee(grantee: Grantee) -> dict[str, Any]:
    return {"type": grantee.type, "name": grantee.name}


def _decode_grantee(body: Body) -> Grantee:
    if body["type"] not in ("user", "role", "group", "public"):
        raise ValueError("an unknown type of grantee")
    return Grantee(type=body["type"], name=body["name"])


def _encode_expression(expression: SqlExpression | None) -> dict[str, Any] | None:
    if expression is None:
        return None
    body: dict[str, Any] = {"text": expression.text, "dialect": expression.dialect}
    return body | {"reads_tables": True} if expression.reads_tables else body


def _decode_expression(body: Body | None) -> SqlExpression | None:
    if body is None:
        return None
    return SqlExpression(
        text=body["text"], dialect=cast(Any, body["dialect"]), reads_tables=body.get("reads_tables") is True
    )


def _decode_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
