"""GRANT, REVOKE and DENY of privileges; what they say of roles is in roles.py."""

from __future__ import annotations

from collections.abc import Mapping

from sqe_core.spi.policy import Privilege
from sqe_core.sql.statement import Statement, StatementKind
from sqe_core.sql.statements import roles
from sqe_core.sql.statements.governance import GrantObject, GrantPrivileges, RevokePrivileges
from sqe_core.sql.statements.grant_parts import Restrictions, granted_object, grantees
from sqe_core.sql.statements.privileges import level_fault, privilege
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Token

_ONE_OBJECT = ("table", "view", "object")
_SCHEMAS = ("all_tables", "all_views", "future_tables", "future_views")

Written = Mapping[Privilege, Token]
"""The privileges of a statement, with where each stands."""


def grant(statement: StatementText) -> Statement:
    """GRANT privileges ON …, GRANT ROWS WHERE … ON …, GRANT ROLE r TO …"""
    cursor = statement.cursor(1)
    if roles.names_roles(cursor, "to"):
        return roles.grant_roles(cursor)
    restrictions = Restrictions()
    at = cursor.token
    rows_only = cursor.at("rows")
    privileges = {} if rows_only else _privileges(statement, cursor, restrictions)
    restrictions.read_clauses(statement, cursor, ends=_at_on)
    granted_on = _object(cursor)
    cursor.expect("to")
    receivers = grantees(cursor)
    restrictions.read_clauses(statement, cursor, ends=_at_option)
    option = _option(cursor)
    cursor.done()
    _check_levels(cursor, privileges, granted_on)
    _check_restrictions(cursor, restrictions, granted_on, at, option=option and rows_only)
    return GrantPrivileges(
        privileges=frozenset(privileges),
        object=granted_on,
        grantees=receivers,
        columns=_columns(restrictions),
        column_masks=restrictions.column_masks,
        row_filter=restrictions.row_filter,
        with_grant_option=option,
    )


def deny(statement: StatementText) -> Statement:
    """DENY privileges ON … TO …"""
    cursor = statement.cursor(1)
    if cursor.at("rows"):
        cursor.refuse("DENY takes privileges", hint="rows are kept away with GRANT ROWS WHERE")
    restrictions = Restrictions()
    at = cursor.token
    privileges = _privileges(statement, cursor, restrictions, masks=False)
    granted_on = _object(cursor)
    cursor.expect("to")
    receivers = grantees(cursor)
    if cursor.at_any("rows", "masked", "with"):
        cursor.refuse("DENY takes no ROWS WHERE, MASKED WITH or GRANT OPTION")
    cursor.done()
    _check_levels(cursor, privileges, granted_on)
    if restrictions.columns is not None:
        _check_one_object(cursor, granted_on, at)
        if len(privileges) > 1:
            cursor.refuse("Columns are denied for SELECT alone", hint="send a DENY for the other privileges", at=at)
    return GrantPrivileges(
        kind=StatementKind.DENY,
        privileges=frozenset(privileges),
        object=granted_on,
        grantees=receivers,
        columns=_columns(restrictions),
        deny=True,
    )


def revoke(statement: StatementText) -> Statement:
    """REVOKE [GRANT OPTION FOR | DENY] privileges ON …, REVOKE ROWS ON …, REVOKE ROLE r FROM …"""
    cursor = statement.cursor(1)
    option_only = cursor.accept("grant", "option", "for")
    if cursor.accept("admin", "option", "for"):
        return roles.revoke_roles(cursor, option_only=True)
    denial = not option_only and cursor.at("deny") and not cursor.peek().is_word("from") and cursor.accept("deny")
    if not option_only and not denial and roles.names_roles(cursor, "from"):
        return roles.revoke_roles(cursor, option_only=False)
    restrictions = Restrictions()
    at = cursor.token
    rows = cursor.accept("rows")
    if rows and (option_only or denial):
        raise cursor.text.error("Rows have no grant option and are not denied", at.start)
    if rows and cursor.at("where"):
        cursor.refuse("REVOKE ROWS takes no condition", hint="it removes the whole filter: REVOKE ROWS ON t FROM r")
    privileges = {} if rows else _privileges(statement, cursor, restrictions, masks=False)
    granted_on = _object(cursor)
    cursor.expect("from")
    losers = grantees(cursor)
    if cursor.at("cascade"):
        cursor.refuse(
            "REVOKE … CASCADE is not supported", hint="revoke what was passed on as well; SHOW GRANTS ON lists it"
        )
    cursor.accept("restrict")
    cursor.done()
    _check_levels(cursor, privileges, granted_on)
    if rows or restrictions.columns is not None:
        _check_one_object(cursor, granted_on, at)
    return RevokePrivileges(
        privileges=frozenset(privileges),
        object=granted_on,
        grantees=losers,
        columns=_columns(restrictions),
        rows=rows,
        option_only=option_only,
        denial=denial,
    )


def _at_on(cursor: Cursor) -> bool:
    return cursor.at("on")


def _at_option(cursor: Cursor) -> bool:
    return cursor.at("with", "grant") or cursor.at("with", "admin") or cursor.at("rows", "where")


def _privileges(statement: StatementText, cursor: Cursor, restrictions: Restrictions, *, masks: bool = True) -> Written:
    """Read privileges; columns may follow SELECT, and are noted in `restrictions`."""
    found: dict[Privilege, Token] = {}
    while True:
        at = cursor.token
        one = privilege(cursor)
        written = cursor.source(cursor.index - 1, cursor.index).upper()
        found.setdefault(one, at)
        if cursor.at_symbol("("):
            if one is not Privilege.SELECT:
                cursor.refuse(f"{written} cannot be granted on single columns", hint="only SELECT can", at=at)
            restrictions.read_columns(statement, cursor, masks=masks)
        if not cursor.accept_symbol(","):
            return found


def _columns(restrictions: Restrictions) -> tuple[str, ...] | None:
    return None if restrictions.columns is None else tuple(restrictions.columns)


def _object(cursor: Cursor) -> GrantObject:
    cursor.expect("on")
    return granted_object(cursor)


def _option(cursor: Cursor) -> bool:
    if cursor.at("with", "admin"):
        cursor.refuse("ADMIN OPTION is for roles", hint="for privileges write WITH GRANT OPTION")
    if not cursor.accept("with"):
        if cursor.at("granted"):
            cursor.refuse("GRANTED BY is not supported: whoever grants is the grantor")
        return False
    cursor.expect("grant", "option")
    return True


def _check_levels(cursor: Cursor, privileges: Written, granted_on: GrantObject) -> None:
    """A grant deeper than its privilege's level would never apply."""
    for one, at in privileges.items():
        fault = level_fault(one, granted_on)
        if fault is not None:
            cursor.refuse(fault, at=at)


def _check_one_object(cursor: Cursor, granted_on: GrantObject, at: Token) -> None:
    if granted_on.scope not in _ONE_OBJECT:
        cursor.refuse(
            "Columns, masks and rows are granted on one table or view",
            hint="a whole schema or catalog has no columns that they could name; grant them table by table",
            at=at,
        )


def _check_restrictions(
    cursor: Cursor, restrictions: Restrictions, granted_on: GrantObject, at: Token, *, option: bool
) -> None:
    if restrictions:
        _check_one_object(cursor, granted_on, at)
    if option:
        raise cursor.text.error("ROWS alone have no grant option", at.start, hint="grant SELECT … ROWS WHERE …")
    if restrictions.columns is not None:
        granted = {column.lower() for column in restrictions.columns}
        missing = next((column for column in restrictions.masks if column.lower() not in granted), None)
        if missing is not None:
            raise cursor.text.error(f"Column {missing} is masked, but not granted", at.start)
