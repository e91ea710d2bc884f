"""What each statement does to the records. Every function here runs inside one transaction of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from sqe_core.policy.grants import records
from sqe_core.policy.grants.records import Covered, Created, GrantRow, Kind, Owner
from sqe_core.policy.grants.state import fold, fold_namespace, members_of
from sqe_core.policy.grants.store import Draft
from sqe_core.spi.errors import ErrorCode, NotSupportedError, ObjectNotFoundError, UserError
from sqe_core.spi.identity import Identity, is_clean_name
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Effect, Grant, Grantee, GrantTarget, Privilege, RoleGrant, RoleInfo, StoredPolicy
from sqe_core.spi.sql import SqlExpression

READS = frozenset({Privilege.SELECT, Privilege.SELECT_VIEW})
"""The privileges that a column list says something about."""

_EVERY = frozenset(Privilege) - {Privilege.ALL}
CONTAINER_PRIVILEGES = frozenset({Privilege.CREATE, Privilege.CREATE_NAMESPACE, Privilege.CREATE_VIEW, Privilege.USE})
"""The privileges that mean nothing on a table or a view."""

_LONGEST_TEXT = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who changes something, and when."""

    identity: Identity
    now: datetime


def put_grant(draft: Draft, grant: Grant, author: Author) -> None:
    """Store one record per privilege, and remember for good that the target was covered."""
    check_grant(grant)
    stored = replace(grant, granted_by=author.identity.username, granted_at=author.now)
    privileges: list[Privilege | None] = [*sorted(grant.privileges, key=lambda one: one.value)]
    for privilege in privileges or [None]:
        of_columns = privilege in READS or privilege is None
        one = stored if of_columns else replace(stored, columns=None)
        body = records.encode_grant(one, privilege, written=draft.version)
        key = records.grant_key(body)
        found = draft.find(Kind.GRANT, key)
        if found is not None:
            # Granted again: an option that was given stays, and FUTURE still reaches back to the first time.
            body["option"] = body["option"] or found["option"]
            if grant.target.scope.startswith("future_"):
                body["written"] = found["written"]
        draft.put(Kind.GRANT, key, body)
    if grant.effect is Effect.ALLOW:
        _cover(draft, grant.target)
        if grant.object_uuid:
            draft.put(Kind.PINNED, grant.object_uuid, {"uuid": grant.object_uuid})


def check_grant(grant: Grant) -> None:
    """Refuse what means nothing, or less than it says (POL-15)."""
    target, allows = grant.target, grant.effect is Effect.ALLOW
    single = target.scope in ("table", "view")
    restricts = bool(grant.column_masks or grant.row_filter)
    if bool(target.name) != single or bool(target.namespace) == (target.scope == "catalog") or not target.catalog:
        raise _refused("The name does not fit what is granted on")
    if target.scope not in ("catalog", "schema") and grant.privileges & CONTAINER_PRIVILEGES:
        raise _refused("This privilege is granted on a schema or a catalog")
    if not single and (restricts or grant.columns is not None):
        raise _refused("Columns, masks and row filters are granted on one table or view")
    if not grant.privileges and not restricts:
        raise _refused("Nothing is granted")
    if not allows and (restricts or grant.with_grant_option):
        raise _refused("DENY has no masks, row filters or grant option")
    if grant.columns is not None:
        if not grant.columns or not grant.privileges & READS:
            raise _refused("A column list says which columns SELECT is granted on")
        if not allows and not grant.privileges <= READS:
            raise _refused("Columns are denied for SELECT only")
        if not {mask.column.casefold() for mask in grant.column_masks} <= {name.casefold() for name in grant.columns}:
            raise _refused("A masked column has to stand in the column list")
    masked = [mask.column.casefold() for mask in grant.column_masks]
    if len(set(masked)) != len(masked):
        raise _refused("A column has one mask")
    if grant.row_filter is not None:
        _check_text(grant.row_filter)
    check_grantee(grant.grantee)


def check_grantee(grantee: Grantee) -> None:
    """Refuse a grantee without a clean name."""
    if (grantee.type == "public") != (not grantee.name) or (grantee.name and not is_clean_name(grantee.name)):
        raise _refused("The name of the grantee is not usable")


def delete_grant(draft: Draft, grant: Grant) -> bool:
    """Remove what a REVOKE names; records that would become wider are refused instead."""
    changed = False
    for key, row in _rows(draft):
        if not same_target(row.grant.target, grant.target):
            continue
        if row.grant.grantee != grant.grantee or row.grant.effect is not grant.effect:
            continue
        left = _without(row, grant)
        if left == [row]:
            continue
        changed = True
        draft.delete(Kind.GRANT, key)
        for one in left:
            body = records.encode_grant(one.grant, one.privilege, written=one.written)
            draft.put(Kind.GRANT, records.grant_key(body), body)
    return changed


def _without(row: GrantRow, revoked: Grant) -> list[GrantRow]:
    """What is left of a record."""
    grant = row.grant
    if revoked.row_filter is not None:
        if grant.row_filter is None or (revoked.row_filter.text and revoked.row_filter != grant.row_filter):
            return [row]
        bare = replace(row, grant=replace(grant, row_filter=None))
        return [bare] if row.privilege or grant.column_masks else []
    if row.privilege is None:
        return _restriction_without(row, revoked)
    if not _names(revoked.privileges, row.privilege):
        return [row]
    if revoked.with_grant_option:
        return [replace(row, grant=replace(grant, with_grant_option=False))]
    if revoked.columns is not None:
        return _without_columns(row, frozenset(name.casefold() for name in revoked.columns))
    if row.privilege is Privilege.ALL and Privilege.ALL not in revoked.privileges:
        return [
            replace(row, privilege=one, grant=replace(grant, privileges=frozenset({one})))
            for one in sorted(_EVERY - revoked.privileges, key=lambda privilege: privilege.value)
            if _fits(one, grant.target)
        ]
    return []


def _restriction_without(row: GrantRow, revoked: Grant) -> list[GrantRow]:
    """What REVOKE leaves of a restriction that was granted alone: all of it goes with ALL, a mask with its column."""
    if revoked.with_grant_option:
        return [row]
    if revoked.columns is not None:
        gone = frozenset(name.casefold() for name in revoked.columns)
        masks = tuple(mask for mask in row.grant.column_masks if mask.column.casefold() not in gone)
        left = replace(row, grant=replace(row.grant, column_masks=masks))
        return [left] if masks or row.grant.row_filter else []
    return [] if Privilege.ALL in revoked.privileges else [row]


def _names(revoked: frozenset[Privilege], privilege: Privilege) -> bool:
    return privilege in revoked or Privilege.ALL in revoked or privilege is Privilege.ALL


def _fits(privilege: Privilege, target: GrantTarget) -> bool:
    return target.scope in ("catalog", "schema") or privilege not in CONTAINER_PRIVILEGES


def _without_columns(row: GrantRow, gone: frozenset[str]) -> list[GrantRow]:
    grant = row.grant
    if row.privilege not in READS and row.privilege is not Privilege.ALL:
        return [row]
    if grant.columns is None:
        raise NotSupportedError(
            "SELECT is granted on the whole table, from which no column can be taken",
            hint="REVOKE it and GRANT the columns that stay, or DENY SELECT (column)",
        )
    left = tuple(name for name in grant.columns if name.casefold() not in gone)
    if left == grant.columns:
        return [row]
    masks = tuple(mask for mask in grant.column_masks if mask.column.casefold() not in gone)
    return [replace(row, grant=replace(grant, columns=left, column_masks=masks))] if left else []


def create_role(draft: Draft, name: str, author: Author) -> None:
    if not is_clean_name(name):
        raise _refused("The name of the role is not usable")
    if draft.find(Kind.ROLE, name) is not None:
        raise UserError(f"Role {name} exists", code=ErrorCode.INVALID_ARGUMENTS, condition="ROLE_ALREADY_EXISTS")
    role = RoleInfo(name=name, created_by=author.identity.username, created_at=author.now)
    draft.put(Kind.ROLE, name, records.encode_role(role))


def drop_role(draft: Draft, name: str) -> bool:
    """Remove a role, what it was granted, and who has it. Denials and policies stay with the name."""
    if draft.find(Kind.ROLE, name) is None:
        return False
    draft.delete(Kind.ROLE, name)
    itself = Grantee(type="role", name=name)
    for key, body in draft.all(Kind.MEMBER):
        member = records.decode_member(body)
        if member.role == name or member.grantee == itself:
            draft.delete(Kind.MEMBER, key)
    for key, row in _rows(draft):
        if row.grant.grantee == itself and row.grant.effect is Effect.ALLOW:
            draft.delete(Kind.GRANT, key)
    for key, body in draft.all(Kind.OWNER):
        if records.decode_owner(body).grantee == itself:
            draft.delete(Kind.OWNER, key)
    return True


def grant_role(draft: Draft, role: str, grantee: Grantee, *, admin_option: bool, author: Author) -> None:
    check_grantee(grantee)
    if draft.find(Kind.ROLE, role) is None:
        raise ObjectNotFoundError(
            f"Role {role} does not exist", code=ErrorCode.INVALID_ARGUMENTS, condition="ROLE_NOT_FOUND"
        )
    if grantee.type == "role":
        held = members_of([records.decode_member(body) for _, body in draft.all(Kind.MEMBER)])
        if grantee.name in held.reach({("role", role)}) | {role}:
            raise _refused(f"Role {role} would hold itself")
    member = RoleGrant(
        role=role,
        grantee=grantee,
        admin_option=admin_option,
        granted_by=author.identity.username,
        granted_at=author.now,
    )
    draft.put(Kind.MEMBER, records.member_key(role, grantee), records.encode_member(member))


def revoke_role(draft: Draft, role: str, grantee: Grantee) -> bool:
    key = records.member_key(role, grantee)
    found = draft.find(Kind.MEMBER, key) is not None
    draft.delete(Kind.MEMBER, key)
    return found


def put_policy(draft: Draft, policy: StoredPolicy, *, replace_it: bool, author: Author) -> None:
    if not is_clean_name(policy.name):
        raise _refused("The name of the policy is not usable")
    for grantee in policy.grantees:
        check_grantee(grantee)
    if policy.row_filter is not None:
        _check_text(policy.row_filter)
    if isinstance(policy.target, str) and not is_clean_name(policy.target):
        raise _refused("The tag is not usable")
    key = policy.name.casefold()
    if draft.find(Kind.POLICY, key) is not None and not replace_it:
        raise UserError(f"Policy {policy.name} exists", code=ErrorCode.INVALID_ARGUMENTS)
    stored = replace(policy, created_by=author.identity.username, created_at=author.now)
    draft.put(Kind.POLICY, key, records.encode_policy(stored))


def delete_policy(draft: Draft, name: str) -> bool:
    found = draft.find(Kind.POLICY, name.casefold()) is not None
    draft.delete(Kind.POLICY, name.casefold())
    return found


def set_owner(draft: Draft, owner: Owner) -> None:
    check_grantee(owner.grantee)
    if owner.grantee.type not in ("user", "role"):
        raise _refused("An owner is a user or a role")
    for key, body in list(draft.all(Kind.OWNER)):
        # Another engine may have renamed it: what is said of its id under an earlier name is over.
        other = records.decode_owner(body)
        if owner.uuid is not None and (other.uuid, other.name.catalog) == (owner.uuid, owner.name.catalog):
            draft.delete(Kind.OWNER, key)
    draft.put(Kind.OWNER, records.name_key(owner.name), records.encode_owner(owner))


def object_created(draft: Draft, name: ObjectName | NamespaceName, *, uuid: str | None, owner: Identity) -> None:
    """Record a new object and its owner; what its name was granted before is not its own."""
    found = draft.find(Kind.OBJECT, records.name_key(name))
    if found is not None and uuid is not None and found["uuid"] == uuid:
        return  # it was replaced and is the same object still
    _take_back(draft, name, but_of=uuid)
    if is_clean_name(owner.username):
        grantee = Grantee(type="user", name=owner.username)
        set_owner(draft, Owner(name=name, grantee=grantee, key=owner.key, uuid=uuid))
    if isinstance(name, ObjectName):
        created = Created(name=name, uuid=uuid, version=draft.version)
        draft.put(Kind.OBJECT, records.name_key(name), records.encode_created(created))


def object_dropped(draft: Draft, name: ObjectName | NamespaceName) -> None:
    """Take back what was granted on something that is gone."""
    _take_back(draft, name)
    draft.delete(Kind.OBJECT, records.name_key(name))


def object_renamed(draft: Draft, old: ObjectName, new: ObjectName, *, governed: Callable[[ObjectName], bool]) -> None:
    """Move what hangs on a name. `governed` says whether any grant ever covered one."""
    target = GrantTarget(scope="table", catalog=new.catalog, namespace=new.namespace, name=new.name)
    covered = governed(old)
    _take_back(draft, new)
    for key, row in _rows(draft):
        if _is_about(row.grant.target, old) and not _stays(row.grant, old):
            draft.delete(Kind.GRANT, key)
            moved = replace(target, scope=row.grant.target.scope)
            written = records.encode_grant(replace(row.grant, target=moved), row.privilege, written=row.written)
            draft.put(Kind.GRANT, records.grant_key(written), written)
    for key, body in draft.all(Kind.POLICY):
        policy = records.decode_policy(body)
        if not isinstance(policy.target, ObjectName) or fold(policy.target) != fold(old):
            continue
        if policy.target == old or policy.object_uuid is None:
            draft.put(Kind.POLICY, key, records.encode_policy(replace(policy, target=new)))
    owner = draft.find(Kind.OWNER, records.name_key(old))
    if owner is not None:
        draft.delete(Kind.OWNER, records.name_key(old))
        set_owner(draft, replace(records.decode_owner(owner), name=new))
    created = draft.find(Kind.OBJECT, records.name_key(old))
    draft.delete(Kind.OBJECT, records.name_key(old))
    draft.delete(Kind.OBJECT, records.name_key(new))
    if created is not None:
        made = replace(records.decode_created(created), name=new)
        draft.put(Kind.OBJECT, records.name_key(new), records.encode_created(made))
    if covered:
        _cover(draft, target)


def _take_back(draft: Draft, name: ObjectName | NamespaceName, *, but_of: str | None = None) -> None:
    """Remove owner and grants of a name, but not what is pinned to an id, nor what is another object's."""
    draft.delete(Kind.OWNER, records.name_key(name))
    for key, row in _rows(draft):
        kept = but_of is not None and row.grant.object_uuid == but_of
        if row.grant.effect is Effect.ALLOW and _is_exactly(row.grant.target, name) and not kept:
            draft.delete(Kind.GRANT, key)


def _is_exactly(target: GrantTarget, name: ObjectName | NamespaceName) -> bool:
    """Whether a grant is on just this name. One on a name of other case is somebody else's: it gives nothing here."""
    own = name.name if isinstance(name, ObjectName) else None
    return (target.catalog, target.namespace, target.name) == (name.catalog, name.namespace, own) and bool(
        name.namespace
    )


def _stays(grant: Grant, old: ObjectName) -> bool:
    """Whether a grant does not go with a renamed object: it is on a name of other case, and about what is there."""
    pinned = grant.object_uuid is not None or grant.row_filter is not None or bool(grant.column_masks)
    return pinned and not _is_exactly(grant.target, old)


def _is_about(target: GrantTarget, name: ObjectName | NamespaceName) -> bool:
    if target.catalog.casefold() != name.catalog.casefold() or not name.namespace:
        return False
    own = name.name.casefold() if isinstance(name, ObjectName) else None
    theirs = target.name.casefold() if target.name is not None else None
    return fold_namespace(target.namespace) == fold_namespace(name.namespace) and theirs == own


def same_target(one: GrantTarget, other: GrantTarget) -> bool:
    """Whether two grants are about the same; a view may have been called a table."""
    return records.target_key(one) == records.target_key(other)


def _cover(draft: Draft, target: GrantTarget) -> None:
    # Apart for tables and views: what an object was called tells listings what it is.
    key = records.key_of(target.scope, target.catalog, list(target.namespace), target.name)
    found = draft.find(Kind.COVERED, key)
    first = records.decode_covered(found).first if found else draft.version
    covered = Covered(target=target, first=first, last=draft.version)
    draft.put(Kind.COVERED, key, records.encode_covered(covered))


def _rows(draft: Draft) -> Iterator[tuple[str, GrantRow]]:
    for key, body in draft.all(Kind.GRANT):
        yield key, records.decode_grant(body)


def _check_text(expression: SqlExpression) -> None:
    if not expression.text.strip() or len(expression.text) > _LONGEST_TEXT:
        raise _refused("A row filter is an expression of bounded length")


def _refused(why: str) -> UserError:
    return UserError(why, code=ErrorCode.INVALID_ARGUMENTS)
