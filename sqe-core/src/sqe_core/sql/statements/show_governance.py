"""SHOW GRANTS, ROLES, TAGS and their like, CHECK ACCESS and EXPLAIN ACCESS."""

from __future__ import annotations

from collections.abc import Callable

from sqe_core.sql.statement import Statement
from sqe_core.sql.statements.governance import (
    CheckAccess,
    ExplainAccess,
    ShowEffectiveGrants,
    ShowEffectivePolicy,
    ShowGrants,
    ShowMaskingPolicies,
    ShowRoles,
    ShowTags,
)
from sqe_core.sql.statements.grant_parts import clean, granted_object, grantee, user_name
from sqe_core.sql.statements.privileges import level_fault, privilege
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind


def show_governance(cursor: Cursor) -> Statement | None:
    """Read what stands after SHOW, if it is one of ours."""
    if cursor.token.kind is not Kind.WORD:
        return None
    if cursor.at("current") and cursor.peek().is_word("roles"):
        cursor.advance()
        return _roles(cursor)
    if cursor.at("role") and not cursor.peek().is_word("grants"):
        return None
    reader = _READERS.get(cursor.token.value)
    return reader(cursor) if reader is not None else None


def _roles(cursor: Cursor) -> Statement:
    current = cursor.peek(-1).is_word("current")
    cursor.expect("roles")
    _no_catalog(cursor)
    return ShowRoles(which="current" if current else "all")


def _role_grants(cursor: Cursor) -> Statement:
    cursor.expect("role", "grants")
    _no_catalog(cursor)
    return ShowRoles(which="grants")


def _no_catalog(cursor: Cursor) -> None:
    if cursor.at_any("from", "in"):
        cursor.refuse("Roles belong to no catalog", hint=f"leave {cursor.token.value.upper()} … out")


def _grants(cursor: Cursor) -> Statement:
    cursor.advance()
    granted_on = granted_object(cursor) if cursor.accept("on") else None
    receiver = grantee(cursor) if cursor.accept_any("to", "for") else None
    return ShowGrants(object=granted_on, grantee=receiver)


def _effective(cursor: Cursor) -> Statement:
    cursor.advance()
    if cursor.accept("grants"):
        return ShowEffectiveGrants(user=user_name(cursor))
    if not cursor.accept("policy"):
        cursor.fail("GRANTS or POLICY")
    user = user_name(cursor)
    cursor.expect("on")
    if cursor.before_name("table", "view"):
        cursor.advance()
    return ShowEffectivePolicy(name=cursor.name("the name of a table or a view"), user=user)


def _tags(cursor: Cursor) -> Statement:
    cursor.advance()
    cursor.expect("on")
    if cursor.before_name("table"):
        cursor.advance()
    return ShowTags(name=cursor.name("the name of a table"))


def _masking(cursor: Cursor) -> Statement:
    cursor.advance()
    name: str | None = None
    if not cursor.accept("policies"):
        if not cursor.accept("policy"):
            cursor.fail("POLICIES or POLICY")
        name = clean(cursor, "the name of a policy")
    return ShowMaskingPolicies(name=name)


_READERS: dict[str, Callable[[Cursor], Statement]] = {
    "roles": _roles,
    "role": _role_grants,
    "grants": _grants,
    "effective": _effective,
    "tags": _tags,
    "masking": _masking,
}


def check(statement: StatementText) -> Statement:
    """CHECK ACCESS privilege ON object [FOR USER u]."""
    cursor = statement.cursor(1)
    cursor.expect("access")
    at = cursor.token
    wanted = privilege(cursor)
    cursor.expect("on")
    granted_on = granted_object(cursor)
    if granted_on.scope not in ("catalog", "schema", "table", "view", "object"):
        cursor.refuse("CHECK ACCESS takes one object")
    fault = level_fault(wanted, granted_on)
    if fault is not None:
        cursor.refuse(fault.replace("granted", "checked"), at=at)
    user = user_name(cursor)
    cursor.done()
    return CheckAccess(privilege=wanted, object=granted_on, user=user)


def explain_access(
    statement: StatementText, cursor: Cursor, recognise: Callable[[StatementText], Statement]
) -> Statement:
    """EXPLAIN ACCESS statement [FOR USER u]; the cursor stands after ACCESS."""
    first, user = _for_user(statement, cursor.index)
    if cursor.index >= first:
        cursor.fail("a statement")
    inner = recognise(statement.part(cursor.index, first))
    return ExplainAccess(inner=inner, user=user)


def _for_user(statement: StatementText, after: int) -> tuple[int, str | None]:
    """Find FOR USER u, or FOR 'u', at the end of a statement; return where it begins and the user."""
    words, last = statement.tokens, statement.last
    for first in range(max(after + 1, last - 3), last - 1):
        named = words[first + 1].is_word("user") if first == last - 3 else words[first + 1].kind is Kind.STRING
        if words[first].is_word("for") and named:
            return first, user_name(statement.cursor(first))
    return last, None
