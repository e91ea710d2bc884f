"""GRANT and REVOKE as documents of OPA: `{data_prefix}/{table}/{role}` holds the one grant of a role on a table.

    {"columns": ["id", "ssn"], "masks": {"ssn": "hash"}, "row_filter": "region = 'EU'", "granted_by": "…",
     "granted_at": "…"}

Without `columns` all of them are granted; `object_uuid` says which table had the name then. A document knows SELECT on
a table for a role, and nothing else; what it cannot say exactly is refused (POL-15). Which policy reads the documents
is the operator's choice: `rego/authz.rego` is one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from sqe_core.spi import (
    Clock,
    ColumnMask,
    Effect,
    ExternalError,
    Grant,
    Grantee,
    GrantTarget,
    Identity,
    NotSupportedError,
    ObjectName,
    Privilege,
    SqlExpression,
    SupportsGrants,
)
from sqe_policy_opa.masks import read_mask, write_mask
from sqe_policy_opa.question import Json, object_key
from sqe_policy_opa.transport import Answer, Transport

_KEYS = frozenset({"columns", "masks", "row_filter", "object_uuid", "granted_by", "granted_at"})


class OpaGrants(SupportsGrants):
    """The documents below `data_prefix`. One server writes at a time; OPA has no comparison to write with."""

    def __init__(self, transport: Transport, prefix: str, clock: Clock) -> None:
        self._documents = transport
        self._prefix = prefix
        self._clock = clock
        self._writing = threading.Lock()

    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        _refuse_what_has_no_form(grant)
        key = _key(grant.target)
        with self._writing:
            stored = self._stored(grant.target, key).get(grant.grantee.name)
            # What was granted on a table that is gone is nothing to add to (POL-10).
            if stored is not None and stored.object_uuid == grant.object_uuid:
                grant = _added(stored, grant)
            document = _document(grant)
            document |= {"granted_by": author.username, "granted_at": self._clock.now().isoformat()}
            self._write(key, grant.grantee.name, document)

    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        if not _may_be_stored(grant.target, grant.grantee) or grant.effect is not Effect.ALLOW:
            return False
        if grant.with_grant_option or not grant.privileges & {Privilege.SELECT, Privilege.ALL}:
            return False
        key, role = _key(grant.target), grant.grantee.name
        with self._writing:
            stored = self._stored(grant.target, key).get(role)
            if stored is None:
                return False
            left = _without(stored, grant)
            if left == stored:
                return False
            if left is None:
                answer = self._send("DELETE", key, role)
                return _check(answer, 204, 404).status == 204
            document = _document(left)
            document |= {"granted_by": author.username, "granted_at": self._clock.now().isoformat()}
            self._write(key, role, document)
            return True

    def list_grants(
        self, *, target: GrantTarget | None = None, grantee: Grantee | None = None, author: Identity
    ) -> Sequence[Grant]:
        if (target is not None and target.scope != "table") or (grantee is not None and grantee.type != "role"):
            return ()
        if target is not None:
            found: list[Grant] = list(self._stored(target, _key(target)).values())
        else:
            found = [
                grant for key, roles in _object(self._read()).items() for grant in _grants(_target(key), roles).values()
            ]
        return [grant for grant in found if grantee is None or grant.grantee == grantee]

    def _stored(self, target: GrantTarget, key: str) -> Mapping[str, Grant]:
        # OPA (1.21) writes below a key with a quote in it, and answers 500 when that is the path to read.
        roles = _object(self._read()).get(key, {}) if '"' in key else self._read(key)
        return _grants(target, roles)

    def _read(self, *keys: str) -> Any:
        answer = _check(self._send("GET", *keys), 200)
        if not isinstance(answer.body, Mapping):
            raise ExternalError("The answer of OPA is no document")
        return answer.body.get("result", {})

    def _write(self, key: str, role: str, document: Json) -> None:
        _check(self._send("PUT", key, role, document=document), 204)

    def _send(self, method: str, *keys: str, document: Json | None = None) -> Answer:
        segments = [quote(key, safe="") for key in keys]
        deadline = self._documents.deadline()
        return self._documents.data(method, self._prefix, *segments, deadline=deadline, document=document)


def _check(answer: Answer, *expected: int) -> Answer:
    if answer.status not in expected:
        raise ExternalError(f"OPA does not keep grants: it answered with status {answer.status}")
    return answer


def _refuse_what_has_no_form(grant: Grant) -> None:
    reason = ""
    if not _may_be_stored(grant.target, grant.grantee):
        reason = "grants on single tables to roles only"
    elif grant.privileges != {Privilege.SELECT}:
        reason = "SELECT only"
    elif grant.effect is not Effect.ALLOW:
        reason = "no denials; leave the grant away"
    elif grant.with_grant_option:
        reason = "no grant option"
    elif grant.row_filter is not None and grant.row_filter.dialect != "sqe":
        reason = "no filters of another dialect"
    if reason:
        raise NotSupportedError(f"The policy engine opa stores {reason}")


def _may_be_stored(target: GrantTarget, grantee: Grantee) -> bool:
    # OPA cleans paths before it looks at them.
    plain = grantee.name not in ("", ".", "..") and "/" not in f"{grantee.name}{target.catalog}{target.name}"
    plain = plain and not any("/" in part for part in target.namespace)
    return target.scope == "table" and grantee.type == "role" and plain


def _key(target: GrantTarget) -> str:
    return object_key(ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name or ""))


def _target(key: str) -> GrantTarget:
    parts = list(_parts(key))
    if len(parts) != 3:
        raise ExternalError("OPA holds grants whose keys are no names of tables")
    catalog, schema, name = parts
    return GrantTarget(scope="table", catalog=catalog, namespace=tuple(schema.split(".")), name=name)


def _parts(key: str) -> Iterator[str]:
    """The parts of what `object_key` wrote."""
    part, quoted, place = "", False, 0
    while place < len(key):
        char = key[place]
        if char == '"' and quoted and key[place + 1 : place + 2] == '"':
            part, place = f'{part}"', place + 1
        elif char == '"':
            quoted = not quoted
        elif char == "." and not quoted:
            yield part
            part = ""
        else:
            part += char
        place += 1
    yield part


def _grants(target: GrantTarget, roles: Any) -> Mapping[str, Grant]:
    return {role: _grant(target, role, document) for role, document in _object(roles).items()}


def _grant(target: GrantTarget, role: str, value: Any) -> Grant:
    document = _object(value)
    columns, text = document.get("columns"), document.get("row_filter")
    names = columns is None or (isinstance(columns, list) and all(isinstance(name, str) for name in columns))
    if not document.keys() <= _KEYS or not names or not isinstance(text, str | None):
        raise ExternalError("OPA holds a grant of another form")
    try:
        masks = tuple(
            ColumnMask(column=column, mask=read_mask(mask))
            for column, mask in _object(document.get("masks", {})).items()
        )
        at = document.get("granted_at")
        granted_at = None if at is None else datetime.fromisoformat(str(at))
    except ValueError as error:
        raise ExternalError("OPA holds a grant of another form") from error
    author, uuid = document.get("granted_by"), document.get("object_uuid")
    return Grant(
        privileges=frozenset({Privilege.SELECT}),
        target=target,
        grantee=Grantee(type="role", name=role),
        columns=None if columns is None else tuple(columns),
        column_masks=masks,
        row_filter=None if text is None else SqlExpression(text=text),
        granted_by=None if author is None else str(author),
        granted_at=granted_at,
        object_uuid=None if uuid is None else str(uuid),
    )


def _document(grant: Grant) -> Json:
    document: Json = {}
    if grant.columns is not None:
        document["columns"] = list(grant.columns)
    try:
        masks = {mask.column: write_mask(mask.mask) for mask in grant.column_masks}
    except ValueError as error:
        raise NotSupportedError(f"The policy engine opa cannot store this mask: {error}") from error
    if masks:
        document["masks"] = masks
    if grant.row_filter is not None:
        document["row_filter"] = grant.row_filter.text
    if grant.object_uuid is not None:
        document["object_uuid"] = grant.object_uuid
    return document


def _added(stored: Grant, grant: Grant) -> Grant:
    """Both grants in one document. Columns add up; masks and filters of either stay, and two of them find no room."""
    masks = {mask.column: mask for mask in stored.column_masks}
    for mask in grant.column_masks:
        if masks.setdefault(mask.column, mask) != mask:
            raise NotSupportedError(
                "The policy engine opa stores one mask for a column of a role", hint="REVOKE the older grant first"
            )
    filters = {found.text for found in (stored.row_filter, grant.row_filter) if found is not None}
    if len(filters) > 1:
        raise NotSupportedError(
            "The policy engine opa stores one row filter for a role", hint="REVOKE ROWS of the older grant first"
        )
    columns = None
    if stored.columns is not None and grant.columns is not None:
        columns = tuple(dict.fromkeys((*stored.columns, *grant.columns)))
    return replace(
        stored, columns=columns, column_masks=tuple(masks.values()), row_filter=stored.row_filter or grant.row_filter
    )


def _without(stored: Grant, revoked: Grant) -> Grant | None:
    """What stays of a grant; None when nothing does."""
    if revoked.columns is not None:
        if stored.columns is None:
            raise NotSupportedError(
                "The policy engine opa cannot take single columns out of a grant on all of them",
                hint="REVOKE the whole grant, and GRANT the columns that stay",
            )
        columns = tuple(column for column in stored.columns if column not in revoked.columns)
        if not columns:
            return None
        masks = tuple(mask for mask in stored.column_masks if mask.column in columns)
        return replace(stored, columns=columns, column_masks=masks)
    if revoked.row_filter is not None and not revoked.row_filter.text:
        return replace(stored, row_filter=None)
    return None


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ExternalError("OPA holds a grant of another form")
    return value
