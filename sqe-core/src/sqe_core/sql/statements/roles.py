"""Statements about roles: who has them, and which of them a session uses."""

from __future__ import annotations

from sqe_core.sql.statement import Statement
from sqe_core.sql.statements.governance import CreateRole, DropRole, GrantRoles, RevokeRoles, SetRole
from sqe_core.sql.statements.grant_parts import clean, grantees
from sqe_core.sql.statements.privileges import at_privilege
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind

_A_ROLE = "the name of a role"
_MANY = 1_000


def names_roles(cursor: Cursor, before_grantee: str) -> bool:
    """Whether a GRANT or REVOKE names roles, not privileges: it says so, or has no ON.

    A role that is called like a privilege needs ROLE before it, or quotes: SELECT without ON is a mistake.
    """
    if cursor.at("role") and cursor.peek().kind in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        return True
    if at_privilege(cursor) or cursor.at("rows"):
        return False
    for token in cursor.tokens[cursor.index :]:
        if token.is_word("on"):
            return False
        if token.is_word(before_grantee):
            return True
    return False


def _roles(cursor: Cursor) -> tuple[str, ...]:
    cursor.accept_any("role", "roles")
    found = [_role(cursor)]
    while cursor.accept_symbol(","):
        cursor.accept("role")
        found.append(_role(cursor))
        if len(found) > _MANY:
            cursor.refuse(f"One statement takes {_MANY} roles")
    return tuple(dict.fromkeys(found))


def _role(cursor: Cursor) -> str:
    if cursor.at_any("public", "none"):
        cursor.fail(_A_ROLE, hint="PUBLIC and NONE are no roles")
    return clean(cursor, _A_ROLE)


def grant_roles(cursor: Cursor) -> Statement:
    """GRANT [ROLE] r TO …"""
    granted = _roles(cursor)
    cursor.expect("to")
    receivers = grantees(cursor)
    if cursor.at("with", "grant"):
        cursor.refuse("GRANT OPTION is for privileges", hint="for roles write WITH ADMIN OPTION")
    option = cursor.accept("with")
    if option:
        cursor.expect("admin", "option")
    _no_more(cursor)
    return GrantRoles(roles=granted, grantees=receivers, with_admin_option=option)


def revoke_roles(cursor: Cursor, *, option_only: bool) -> Statement:
    """REVOKE [ADMIN OPTION FOR] [ROLE] r FROM …"""
    revoked = _roles(cursor)
    cursor.expect("from")
    losers = grantees(cursor)
    _no_more(cursor)
    return RevokeRoles(roles=revoked, grantees=losers, option_only=option_only)


def create_role(cursor: Cursor) -> Statement:
    """CREATE ROLE [IF NOT EXISTS] r; the cursor stands after ROLE."""
    if_not_exists = cursor.if_not_exists()
    role = _role(cursor)
    if cursor.at("with", "admin"):
        cursor.refuse("CREATE ROLE … WITH ADMIN is not supported", hint="use GRANT r TO USER u WITH ADMIN OPTION")
    _no_more(cursor)
    return CreateRole(role=role, if_not_exists=if_not_exists)


def drop_role(cursor: Cursor) -> Statement:
    """DROP ROLE [IF EXISTS] r; the cursor stands after ROLE."""
    if_exists = cursor.if_exists()
    role = _role(cursor)
    _no_more(cursor)
    return DropRole(role=role, if_exists=if_exists)


def set_role(cursor: Cursor) -> Statement:
    """SET ROLE r | ALL | NONE; the cursor stands after ROLE."""
    word = cursor.accept_any("all", "none")
    if word is not None:
        _no_more(cursor)
        return SetRole(mode="all" if word == "all" else "none")
    role = clean(cursor, "the name of a role, ALL or NONE")
    _no_more(cursor)
    return SetRole(mode="one", role=role)


def _no_more(cursor: Cursor) -> None:
    if cursor.at("in"):
        cursor.refuse("Roles belong to no catalog", hint="leave IN … out")
    if cursor.at("granted"):
        cursor.refuse("GRANTED BY is not supported: whoever grants is the grantor")
    cursor.done()
