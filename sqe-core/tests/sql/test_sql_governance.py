"""The grammar of governance: text to statements, text to errors, and no input that raises anything else."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqe_core.spi.errors import ErrorCode, SqeError, UserError
from sqe_core.spi.policy import (
    ColumnMask,
    ConstantMask,
    Grantee,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    Privilege,
    RangeMask,
    SqlMask,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import DropTable, EngineStatement, Statement, StatementKind, TextLimits
from sqe_core.sql.statements.governance import (
    CheckAccess,
    CreatePolicy,
    CreateRole,
    DropPolicy,
    DropRole,
    ExplainAccess,
    GrantObject,
    GrantPrivileges,
    GrantRoles,
    RevokePrivileges,
    RevokeRoles,
    SetMaskingPolicy,
    SetOwner,
    SetRole,
    SetTags,
    ShowEffectiveGrants,
    ShowEffectivePolicy,
    ShowGrants,
    ShowMaskingPolicies,
    ShowRoles,
    ShowTags,
    UnsetTags,
)

GRANT, REVOKE, DENY = StatementKind.GRANT, StatementKind.REVOKE, StatementKind.DENY
SHOW, ROLE, POLICY = StatementKind.SHOW, StatementKind.ROLE, StatementKind.POLICY
SELECT, INSERT = Privilege.SELECT, Privilege.INSERT
R = Grantee(type="role", name="r")
T = GrantObject(scope="object", name=("t",))


def read(sql: str, dialect: str = "sqe") -> Statement:
    return Reader().read(sql, dialect=dialect, limits=TextLimits())


def expression(text: str, dialect: Any = "sqe") -> SqlExpression:
    return SqlExpression(text=text, dialect=dialect)


def grant(*privileges: Privilege, **more: Any) -> dict[str, Any]:
    return {"privileges": frozenset(privileges), "object": T, "grantees": (R,), **more}


def masked(column: str, mask: Mask) -> tuple[ColumnMask, ...]:
    return (ColumnMask(column=column, mask=mask),)


def user(name: str) -> Grantee:
    return Grantee(type="user", name=name)


# fmt: off
GRANTS = [
    ("GRANT SELECT ON c.s.t TO r", grant(SELECT, object=GrantObject(scope="object", name=("c", "s", "t")))),
    ("GRANT SELECT ON TABLE t TO ROLE r", grant(SELECT, object=GrantObject(scope="table", name=("t",)))),
    ("grant select on view v to r", grant(SELECT, object=GrantObject(scope="view", name=("v",)))),
    ("GRANT SELECT ON VIEW TO r", grant(SELECT, object=GrantObject(scope="object", name=("view",)))),
    ("GRANT CREATE ON SCHEMA c.s TO r", grant(Privilege.CREATE, object=GrantObject(scope="schema", name=("c", "s")))),
    ("GRANT USAGE ON DATABASE c TO r", grant(Privilege.USE, object=GrantObject(scope="catalog", name=("c",)))),
    ("GRANT USE ON CATALOG c TO r", grant(Privilege.USE, object=GrantObject(scope="catalog", name=("c",)))),
    ("GRANT READ ON ALL TABLES IN SCHEMA s TO r", grant(SELECT, object=GrantObject(scope="all_tables", name=("s",)))),
    ("GRANT SELECT ON FUTURE VIEWS IN SCHEMA c.s TO r", grant(SELECT, object=GrantObject(scope="future_views", name=("c", "s")))),
    ('GRANT SELECT ON "All" TO "R"', grant(SELECT, object=GrantObject(scope="object", name=("All",)), grantees=(Grantee(type="role", name="R"),))),
    ("GRANT SELECT, INSERT, ALTER ON t TO r", grant(SELECT, INSERT, Privilege.ALTER)),
    ("GRANT UPDATE, DELETE, TRUNCATE, MERGE, APPEND, INSERT ON t TO r", grant(INSERT)),
    ("GRANT WRITE, DESCRIBE, ALTER TABLE ON t TO r", grant(Privilege.MODIFY, Privilege.MONITOR, Privilege.ALTER)),
    (
        "GRANT CREATE TABLE, CREATE SCHEMA, CREATE VIEW ON SCHEMA s TO r",
        grant(
            Privilege.CREATE,
            Privilege.CREATE_NAMESPACE,
            Privilege.CREATE_VIEW,
            object=GrantObject(scope="schema", name=("s",)),
        ),
    ),
    ("GRANT ALL PRIVILEGES ON t TO r", grant(Privilege.ALL)),
    ("GRANT ALL ON t TO r", grant(Privilege.ALL)),
    ("GRANT DROP VIEW, SELECT VIEW ON VIEW v TO r", grant(Privilege.DROP_VIEW, Privilege.SELECT_VIEW, object=GrantObject(scope="view", name=("v",)))),
    ("GRANT APPLY POLICY, MANAGE ON t TO r", grant(Privilege.APPLY_POLICY, Privilege.MANAGE)),
    ("GRANT SELECT ON t TO PUBLIC", grant(SELECT, grantees=(Grantee(type="public"),))),
    ('GRANT SELECT ON t TO USER "Alice@x", GROUP g, r', None),
    ("GRANT SELECT ON t TO a, b, a", grant(SELECT, grantees=(Grantee(type="role", name="a"), Grantee(type="role", name="b")))),
    ("GRANT SELECT ON t TO r WITH GRANT OPTION", grant(SELECT, with_grant_option=True)),
    ('GRANT SELECT (a, "B") ON t TO r', grant(SELECT, columns=("a", "B"))),
    ("GRANT SELECT (a), INSERT ON t TO r", grant(SELECT, INSERT, columns=("a",))),
    ("GRANT SELECT (a MASKED WITH 'REDACT', b) ON t TO r", grant(SELECT, columns=("a", "b"), column_masks=masked("a", ConstantMask()))),
    ("GRANT ROWS WHERE region = 'EU' ON t TO r", grant(row_filter=expression("region = 'EU'"))),
    ("GRANT SELECT ROWS WHERE x IN (SELECT y FROM u) ON t TO r", grant(SELECT, row_filter=expression("x IN (SELECT y FROM u)"))),
    ("GRANT SELECT ON t TO ROLE r ROWS WHERE a -- why\n = 1", grant(SELECT, row_filter=expression("a -- why\n = 1"))),
    ("GRANT SELECT ON t TO r ROWS WHERE a = 1 WITH GRANT OPTION", grant(SELECT, row_filter=expression("a = 1"), with_grant_option=True)),
    (
        "GRANT SELECT ON t TO ROLE r MASKED WITH (ssn AS '***-**-' || RIGHT(ssn,4))",
        grant(SELECT, column_masks=masked("ssn", SqlMask(expression=expression("'***-**-' || RIGHT(ssn,4)")))),
    ),
    (
        'GRANT SELECT (id, email) ON t TO ROLE "r" MASKED WITH (email = sha256(email))',
        grant(
            SELECT,
            columns=("id", "email"),
            column_masks=masked("email", SqlMask(expression=expression("sha256(email)"))),
        ),
    ),
    (
        "GRANT SELECT ON t TO r MASKED WITH (a = 'HASH') ROWS WHERE b = ')' WITH GRANT OPTION",
        grant(SELECT, column_masks=masked("a", HashMask()), row_filter=expression("b = ')'"), with_grant_option=True),
    ),
    ("GRANT SELECT MASKED WITH (a = 'HASH') ON t TO r ROWS WHERE c", grant(SELECT, column_masks=masked("a", HashMask()), row_filter=expression("c"))),
    ("GRANT SELECT ROWS WHERE \"on\" = 'on' ON t TO r", grant(SELECT, row_filter=expression("\"on\" = 'on'"))),
]
# fmt: on


@pytest.mark.parametrize(("sql", "expected"), GRANTS, ids=[one[0] for one in GRANTS])
def test_grants(sql: str, expected: dict[str, Any] | None) -> None:
    if expected is None:
        expected = grant(SELECT, grantees=(user("Alice@x"), Grantee(type="group", name="g"), R))
        # A bare name after a group could be a group as well.
        with pytest.raises(UserError, match="Say what r is"):
            read(sql)
        sql = sql.replace(", r", ", ROLE r")
    assert read(sql) == GrantPrivileges(**expected)


MASKS: list[tuple[str, Mask]] = [
    ("'REDACT'", ConstantMask()),
    ("('redact')", ConstantMask()),
    ("REDACT", ConstantMask()),
    ("'HASH'", HashMask()),
    ("'NULL'", NullMask()),
    ("NULL", NullMask()),
    ("'RANGE(10000)'", RangeMask(width=10000)),
    ("RANGE(0.5)", RangeMask(width=Decimal("0.5"))),
    ("'PARTIAL(2, 4)'", PartialMask(show_first=2, show_last=4)),
    ("'MASK_SHOW_LAST_4'", PartialMask(show_last=4)),
    ("'MASK_DATE_SHOW_YEAR'", YearMask()),
    ("'unknown'", ConstantMask(value="unknown")),
    ("'it''s'", ConstantMask(value="it's")),
    ('"hash"', SqlMask(expression=expression('"hash"'))),
    ("'a' || 'b'", SqlMask(expression=expression("'a' || 'b'"))),
    (
        "CASE WHEN (b, c) = (1, 2) THEN left(a, 1) END",
        SqlMask(expression=expression("CASE WHEN (b, c) = (1, 2) THEN left(a, 1) END")),
    ),
]


@pytest.mark.parametrize(("written", "mask"), MASKS, ids=[one[0] for one in MASKS])
def test_masks(written: str, mask: Mask) -> None:
    for sql in (
        f"GRANT SELECT (a MASKED WITH {written}, b) ON t TO r",
        f"GRANT SELECT ON t TO r MASKED WITH (a AS {written}, b = 'HASH')",
        f"GRANT SELECT ON t TO r MASKED WITH (a = {written})",
    ):
        found = read(sql)
        assert isinstance(found, GrantPrivileges)
        assert found.column_masks[0] == ColumnMask(column="a", mask=mask), sql


# fmt: off
OTHERS: list[tuple[str, Statement]] = [
    ("REVOKE SELECT ON t FROM r", RevokePrivileges(privileges=frozenset({SELECT}), object=T, grantees=(R,))),
    ("REVOKE ALL PRIVILEGES ON t FROM USER u", RevokePrivileges(privileges=frozenset({Privilege.ALL}), object=T, grantees=(user("u"),))),
    ("REVOKE SELECT (a, b) ON t FROM r RESTRICT", RevokePrivileges(privileges=frozenset({SELECT}), object=T, grantees=(R,), columns=("a", "b"))),
    ("REVOKE ROWS ON t FROM r", RevokePrivileges(privileges=frozenset(), object=T, grantees=(R,), rows=True)),
    ("REVOKE GRANT OPTION FOR SELECT ON t FROM r", RevokePrivileges(privileges=frozenset({SELECT}), object=T, grantees=(R,), option_only=True)),
    ("REVOKE DENY INSERT ON t FROM r", RevokePrivileges(privileges=frozenset({INSERT}), object=T, grantees=(R,), denial=True)),
    ("DENY INSERT, SELECT ON t TO r", GrantPrivileges(kind=DENY, privileges=frozenset({INSERT, SELECT}), object=T, grantees=(R,), deny=True)),
    ("DENY SELECT (a) ON t TO r", GrantPrivileges(kind=DENY, privileges=frozenset({SELECT}), object=T, grantees=(R,), columns=("a",), deny=True)),
    ("GRANT r1 TO USER u", GrantRoles(roles=("r1",), grantees=(user("u"),))),
    ("GRANT ROLE select TO r", GrantRoles(roles=("select",), grantees=(R,))),
    ("GRANT a, b TO USER u WITH ADMIN OPTION", GrantRoles(roles=("a", "b"), grantees=(user("u"),), with_admin_option=True)),
    ("REVOKE deny FROM USER u", RevokeRoles(roles=("deny",), grantees=(user("u"),))),
    ("REVOKE ROLE a FROM r", RevokeRoles(roles=("a",), grantees=(R,))),
    ("REVOKE ADMIN OPTION FOR a FROM USER u", RevokeRoles(roles=("a",), grantees=(user("u"),), option_only=True)),
    ("CREATE ROLE a", CreateRole(role="a")),
    ('CREATE ROLE IF NOT EXISTS "A b"', CreateRole(role="A b", if_not_exists=True)),
    ("DROP ROLE IF EXISTS a", DropRole(role="a", if_exists=True)),
    ("SET ROLE a", SetRole(mode="one", role="a")),
    ("SET ROLE ALL", SetRole(mode="all")),
    ("SET ROLE NONE", SetRole(mode="none")),
    ("SHOW ROLES", ShowRoles(which="all")),
    ("SHOW CURRENT ROLES", ShowRoles(which="current")),
    ("SHOW ROLE GRANTS", ShowRoles(which="grants")),
    ("SHOW GRANTS", ShowGrants()),
    ("SHOW GRANTS ON TABLE t", ShowGrants(object=GrantObject(scope="table", name=("t",)))),
    ("SHOW GRANTS TO USER u", ShowGrants(grantee=user("u"))),
    ("SHOW GRANTS ON t TO r", ShowGrants(object=T, grantee=R)),
    ("SHOW EFFECTIVE GRANTS", ShowEffectiveGrants()),
    ('SHOW EFFECTIVE GRANTS FOR USER "U"', ShowEffectiveGrants(user="U")),
    ("SHOW EFFECTIVE POLICY ON s.t", ShowEffectivePolicy(name=("s", "t"))),
    ("SHOW EFFECTIVE POLICY FOR 'u' ON t", ShowEffectivePolicy(name=("t",), user="u")),
    ("SHOW EFFECTIVE POLICY FOR USER u ON t", ShowEffectivePolicy(name=("t",), user="u")),
    ('CHECK ACCESS SELECT ON c.n.t FOR USER "u"', CheckAccess(privilege=SELECT, object=GrantObject(scope="object", name=("c", "n", "t")), user="u")),
    (
        "CREATE OR REPLACE POLICY p ON TABLE c.n.t COLUMN MASK MASK_HASH TO USER u ON COLUMN a",
        CreatePolicy(
            name="p",
            grantees=(user("u"),),
            table=("c", "n", "t"),
            column="a",
            mask=HashMask(),
            replace=True,
        ),
    ),
    (
        "CREATE POLICY p ON TABLE t COLUMN MASK CUSTOM TO r ON COLUMN a USING (left({col}, 1))",
        CreatePolicy(
            name="p",
            grantees=(R,),
            table=("t",),
            column="a",
            mask=SqlMask(expression=expression("left({col}, 1)")),
        ),
    ),
    ("CREATE POLICY p ON TABLE t COLUMN MASK RANGE(10) TO r ON COLUMN a", CreatePolicy(name="p", grantees=(R,), table=("t",), column="a", mask=RangeMask(width=10))),
    ("CREATE POLICY p ON TABLE t ROW FILTER TO ROLE r USING (a = (1))", CreatePolicy(name="p", grantees=(R,), table=("t",), row_filter=expression("a = (1)"))),
    ("CREATE POLICY p ON TAG PII COLUMN MASK 'REDACT' TO ROLE r", CreatePolicy(name="p", grantees=(R,), tag="PII", mask=ConstantMask())),
    ("CREATE POLICY p ON TAG 'PII' COLUMN MASK MASK_NONE TO r", CreatePolicy(name="p", grantees=(R,), tag="PII", mask=None)),
    ("DROP POLICY IF EXISTS p", DropPolicy(name="p", if_exists=True)),
    ("SHOW MASKING POLICIES", ShowMaskingPolicies()),
    ("SHOW MASKING POLICY p", ShowMaskingPolicies(name="p")),
    ("SHOW TAGS ON t", ShowTags(name=("t",))),
    ("ALTER TABLE t SET TAGS (a = ('PII','X'), b = 'Y')", SetTags(name=("t",), tags={"a": frozenset({"PII", "X"}), "b": frozenset({"Y"})})),
    ("ALTER TABLE t UNSET TAGS (a, b)", UnsetTags(name=("t",), columns=("a", "b"))),
    ("ALTER TABLE t ALTER COLUMN c SET TAG Level = 'high'", SetTags(name=("t",), tags={"c": frozenset({"Level", "Level=high"})})),
    ("ALTER TABLE t MODIFY COLUMN c UNSET TAG PII", UnsetTags(name=("t",), columns=("c",), tag="PII")),
    ("ALTER TABLE t ALTER c SET MASKING POLICY p", SetMaskingPolicy(name=("t",), column="c", policy="p")),
    ("ALTER TABLE t MODIFY COLUMN c UNSET MASKING POLICY", SetMaskingPolicy(name=("t",), column="c", policy=None)),
    ("ALTER TABLE t SET AUTHORIZATION alice", SetOwner(object="table", name=("t",), owner=user("alice"))),
    ("ALTER VIEW v OWNER TO ROLE r", SetOwner(object="view", name=("v",), owner=R)),
    ("ALTER SCHEMA c.s SET AUTHORIZATION ROLE r", SetOwner(object="schema", name=("c", "s"), owner=R)),
    ("EXPLAIN ACCESS DROP TABLE t FOR USER 'u'", ExplainAccess(inner=DropTable(name=("t",)), user="u")),
]
# fmt: on


@pytest.mark.parametrize(("sql", "expected"), OTHERS, ids=[one[0] for one in OTHERS])
def test_others(sql: str, expected: Statement) -> None:
    assert read(sql) == expected
    assert read(f"  {sql} ; ") == expected


def test_what_is_explained_is_read_like_any_statement() -> None:
    found = read("EXPLAIN ACCESS SELECT a FROM t FOR USER u")
    assert isinstance(found, ExplainAccess)
    assert isinstance(found.inner, EngineStatement)
    assert (found.user, found.inner.text) == ("u", "SELECT a FROM t")
    mine = read("EXPLAIN ACCESS DELETE FROM t WHERE a = 'FOR USER u'")
    assert isinstance(mine, ExplainAccess)
    assert mine.user is None


def test_the_dialect_of_an_expression_is_kept() -> None:
    found = read('GRANT SELECT ON `t` TO USER `u` ROWS WHERE `a b` = "x"', "spark")
    assert isinstance(found, GrantPrivileges)
    assert found.row_filter == expression('`a b` = "x"', "spark")
    tags = read("ALTER TABLE t SET TAGS (a = 'PII')", "spark")
    assert isinstance(tags, SetTags)


SYNTAX, REFUSED = ErrorCode.SYNTAX_ERROR, ErrorCode.NOT_SUPPORTED

# fmt: off
WRONG = [
    ("GRANT", SYNTAX, "1:6", "The statement ends too early, expected a privilege"),
    ("GRANT FLY ON t TO r", SYNTAX, "1:7", "Unexpected FLY, expected a privilege"),
    ("GRANT SELECT t TO r", SYNTAX, "1:14", "Unexpected t, expected ON"),
    ("GRANT SELECT TO r", SYNTAX, "1:14", "Unexpected TO, expected ON"),
    ("GRANT SELECT ON t", SYNTAX, "1:18", "The statement ends too early, expected TO"),
    ("GRANT SELECT ON t FROM r", SYNTAX, "1:19", "Unexpected FROM, expected TO"),
    ("GRANT SELECT ON t TO", SYNTAX, "1:21", "The statement ends too early, expected USER, ROLE, GROUP or PUBLIC"),
    ("GRANT SELECT ON t TO r,", SYNTAX, "1:24", "The statement ends too early, expected USER, ROLE, GROUP or PUBLIC"),
    ("GRANT SELECT ON t TO USER a, b", SYNTAX, "1:30", "Say what b is: a user, a role or a group"),
    ("GRANT SELECT ON t TO ROLE PUBLIC", SYNTAX, "1:27", "Unexpected PUBLIC, expected the name of a role"),
    ("GRANT SELECT ON a.b.c.d TO r", SYNTAX, "1:17", "A name has at most 3 parts here, this one has 4"),
    ("GRANT SELECT ON DATABASE c.s TO r", SYNTAX, "1:27", "Unexpected ."),
    ("GRANT SELECT ON ALL TABLES IN s TO r", SYNTAX, "1:31", "Unexpected s, expected SCHEMA"),
    ("GRANT INSERT (a) ON t TO r", REFUSED, "1:7", "INSERT cannot be granted on single columns"),
    ("GRANT UPDATE (a) ON t TO r", REFUSED, "1:7", "UPDATE cannot be granted on single columns"),
    ("GRANT ALL (a) ON t TO r", REFUSED, "1:7", "ALL cannot be granted on single columns"),
    ("GRANT CREATE ON t TO r", REFUSED, "1:7", "CREATE cannot be granted on a table or a view"),
    ("GRANT CREATE SCHEMA ON TABLE t TO r", REFUSED, "1:7", "CREATE NAMESPACE cannot be granted on a table"),
    ("GRANT USE ON VIEW v TO r", REFUSED, "1:7", "USE cannot be granted on a view"),
    ("GRANT INSERT ON VIEW v TO r", REFUSED, "1:7", "INSERT cannot be granted on a view"),
    ("GRANT DROP VIEW ON TABLE t TO r", REFUSED, "1:7", "DROP VIEW cannot be granted on a table"),
    ("GRANT SELECT (a) ON SCHEMA s TO r", REFUSED, "1:7", "Columns, masks and rows are granted on one table or view"),
    ("GRANT SELECT ON ALL TABLES IN SCHEMA s TO r ROWS WHERE a", REFUSED, "1:7", "Columns, masks and rows are granted on one table or view"),
    ("GRANT SELECT () ON t TO r", SYNTAX, "1:15", "Unexpected ), expected the name of a column"),
    ("GRANT SELECT (a, a) ON t TO r", SYNTAX, "1:18", "Column a is named twice"),
    ("GRANT SELECT (a.b) ON t TO r", REFUSED, "1:16", "Fields inside a column cannot be granted or masked on their own"),
    ("GRANT SELECT (a MASKED WITH) ON t TO r", SYNTAX, "1:28", "Unexpected ), expected a mask is"),
    ("GRANT SELECT (a MASKED WITH 'REDCAT') ON t TO r", SYNTAX, "1:29", "There is no mask REDCAT"),
    ("GRANT SELECT (a MASKED WITH 'upper(a)') ON t TO r", SYNTAX, "1:29", "There is no mask upper(a)"),
    ("GRANT SELECT (a MASKED WITH 'RANGE(0)') ON t TO r", SYNTAX, "1:29", "The width of a RANGE is greater than zero"),
    ("GRANT SELECT (a) ON t TO r MASKED WITH (b = 'HASH')", SYNTAX, "1:7", "Column b is masked, but not granted"),
    ("GRANT SELECT (a MASKED WITH 'HASH') ON t TO r MASKED WITH (a = 'NULL')", SYNTAX, "1:60", "Column a is named twice"),
    ("GRANT ROWS WHERE ON t TO r", SYNTAX, "1:18", "Unexpected ON, expected a condition"),
    ("GRANT ROWS WHERE (a = 1 ON t TO r", SYNTAX, "1:34", 'The statement ends too early, expected ")"'),
    ("GRANT ROWS WHERE a = 1) ON t TO r", SYNTAX, "1:23", "Unexpected ), expected a condition"),
    ("GRANT ROWS WHERE (a = [1) ON t TO r", SYNTAX, "1:25", "Unexpected ), expected a condition"),
    ("GRANT ROWS WHERE a = ? ON t TO r", REFUSED, "1:22", "A policy cannot hold parameters"),
    ("GRANT ROWS WHERE a ON t TO r ROWS WHERE b", SYNTAX, "1:30", "ROWS WHERE is written twice"),
    ("GRANT ROWS WHERE a ON t TO r WITH GRANT OPTION", SYNTAX, "1:7", "ROWS alone have no grant option"),
    ("GRANT SELECT ON t TO r WITH ADMIN OPTION", REFUSED, "1:24", "ADMIN OPTION is for roles"),
    ("GRANT SELECT ON t TO r GRANTED BY x", REFUSED, "1:24", "GRANTED BY is not supported: whoever grants is the grantor"),
    ("GRANT a TO USER u WITH GRANT OPTION", REFUSED, "1:19", "GRANT OPTION is for privileges"),
    ("GRANT a TO USER u IN c", REFUSED, "1:19", "Roles belong to no catalog"),
    ("GRANT PUBLIC TO USER u", SYNTAX, "1:7", "Unexpected PUBLIC, expected the name of a role"),
    ("REVOKE ROWS WHERE a ON t FROM r", REFUSED, "1:13", "REVOKE ROWS takes no condition"),
    ("REVOKE SELECT (a MASKED WITH 'HASH') ON t FROM r", SYNTAX, "1:18", 'Unexpected MASKED, expected ")"'),
    ("REVOKE SELECT ON t FROM r CASCADE", REFUSED, "1:27", "REVOKE … CASCADE is not supported"),
    ("REVOKE GRANT OPTION FOR ROWS ON t FROM r", SYNTAX, "1:25", "Rows have no grant option and are not denied"),
    ("REVOKE SELECT ON t TO r", SYNTAX, "1:20", "Unexpected TO, expected FROM"),
    ("DENY ROWS WHERE a ON t TO r", REFUSED, "1:6", "DENY takes privileges"),
    ("DENY SELECT ON t TO r WITH GRANT OPTION", REFUSED, "1:23", "DENY takes no ROWS WHERE, MASKED WITH or GRANT OPTION"),
    ("DENY SELECT (a), INSERT ON t TO r", REFUSED, "1:6", "Columns are denied for SELECT alone"),
    ("CREATE ROLE", SYNTAX, "1:12", "The statement ends too early, expected the name of a role"),
    ("CREATE OR REPLACE ROLE r", REFUSED, "1:19", "CREATE ROLE is not supported"),
    ("CREATE ROLE r WITH ADMIN USER u", REFUSED, "1:15", "CREATE ROLE … WITH ADMIN is not supported"),
    ("CREATE ROLE none", SYNTAX, "1:13", "Unexpected none, expected the name of a role"),
    ("SET ROLE", SYNTAX, "1:9", "The statement ends too early, expected the name of a role, ALL or NONE"),
    ("SET ROLE r IN c", REFUSED, "1:12", "Roles belong to no catalog"),
    ("SHOW ROLES FROM c", REFUSED, "1:12", "Roles belong to no catalog"),
    ("SHOW EFFECTIVE t", SYNTAX, "1:16", "Unexpected t, expected GRANTS or POLICY"),
    ("SHOW EFFECTIVE POLICY FOR u ON t", SYNTAX, "1:27", "Unexpected u, expected USER"),
    ("CHECK t", SYNTAX, "1:7", "Unexpected t, expected ACCESS"),
    ("CHECK ACCESS CREATE ON TABLE t", REFUSED, "1:14", "CREATE cannot be checked on a table"),
    ("CHECK ACCESS SELECT ON ALL TABLES IN SCHEMA s", REFUSED, "1:46", "CHECK ACCESS takes one object"),
    ("CREATE POLICY p ON t ROW FILTER TO r USING (a)", SYNTAX, "1:20", "Unexpected t, expected TABLE or TAG"),
    ("CREATE POLICY p ON TABLE t ROW FILTER TO r", SYNTAX, "1:43", "The statement ends too early, expected USING"),
    ("CREATE POLICY p ON TABLE t ROW FILTER TO r USING ()", SYNTAX, "1:51", "Unexpected ), expected a condition"),
    ("CREATE POLICY p ON TABLE t COLUMN MASK BLUR TO r ON COLUMN a", SYNTAX, "1:40", "There is no mask blur"),
    ("CREATE POLICY p ON TABLE t COLUMN MASK HASH TO r", SYNTAX, "1:49", "The statement ends too early, expected ON"),
    ("CREATE POLICY p ON TABLE t COLUMN MASK HASH TO r ON COLUMN a USING (b)", REFUSED, "1:62", "USING belongs to the mask CUSTOM and to row filters"),
    ("CREATE POLICY p ON TAG x ROW FILTER TO r USING (a)", REFUSED, "1:26", "A tag has no rows to filter"),
    ("CREATE POLICY p ON TAG x COLUMN MASK HASH TO r ON COLUMN a", REFUSED, "1:48", "A policy on a tag names no column"),
    ("ALTER TABLE t SET TAGS a = 'x'", SYNTAX, "1:24", 'Unexpected a, expected "("'),
    ("ALTER TABLE t SET TAGS (a = ())", SYNTAX, "1:30", "Unexpected ), expected a tag in single quotes"),
    ("ALTER TABLE t OWNER TO bob", SYNTAX, "1:24", "Unexpected bob, expected USER or ROLE"),
    ("ALTER TABLE t SET AUTHORIZATION GROUP g", REFUSED, "1:39", "An owner is a user or a role"),
    ("ALTER TABLE IF EXISTS t SET TAGS (a = 'x')", REFUSED, "1:13", "IF EXISTS is not supported here"),
    ("EXPLAIN ACCESS", SYNTAX, "1:15", "The statement ends too early, expected a statement"),
    ("EXPLAIN ACCESS FOR USER u", SYNTAX, "1:16", "Unexpected FOR, expected a statement"),
]
# fmt: on


@pytest.mark.parametrize(("sql", "code", "place", "message"), WRONG, ids=[one[0] for one in WRONG])
def test_errors(sql: str, code: ErrorCode, place: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        read(sql)
    assert caught.value.message.startswith(message), caught.value
    assert (caught.value.code, str(caught.value.position)) == (code, f"line {place}")


_WRITTEN = """
GRANT REVOKE DENY SELECT INSERT ALL PRIVILEGES CREATE DROP TABLE VIEW SCHEMA DATABASE CATALOG TABLES IN FUTURE ON TO
FROM FOR USER ROLE GROUP PUBLIC ROWS WHERE MASKED WITH AS OPTION ADMIN SHOW GRANTS ROLES CURRENT EFFECTIVE POLICY
POLICIES MASKING TAGS TAG SET UNSET ALTER COLUMN MASK FILTER ROW USING CUSTOM HASH NULL RANGE CHECK ACCESS EXPLAIN
OWNER AUTHORIZATION IF EXISTS NOT OR REPLACE NONE t a.b c 'x' 'REDACT' "q" ( ) , = . [ ] { } ? :p 1 -- /* */ ;
"""
_WORDS = tuple(_WRITTEN.split())


@pytest.mark.rule("TEST-5")
@pytest.mark.parametrize("seed", range(20))
def test_no_text_raises_anything_else(seed: int) -> None:
    chance = random.Random(seed)
    known = [one[0] for one in GRANTS] + [one[0] for one in OTHERS] + [one[0] for one in WRONG]
    for _ in range(400):
        words = chance.choice(known).split() if chance.random() < 0.7 else ["GRANT"]
        for _ in range(chance.randint(1, 6)):
            place = chance.randint(0, len(words))
            match chance.randint(0, 2):
                case 0:
                    words[place : place + 1] = []
                case 1:
                    words.insert(place, chance.choice(_WORDS))
                case _:
                    words[place : place + 1] = [chance.choice(_WORDS)]
        dialect = chance.choice(("sqe", "trino", "spark"))
        try:
            read(" ".join(words), dialect)
        except SqeError as error:
            assert error.code is not ErrorCode.GENERIC_INTERNAL_ERROR, words


def test_a_long_list_is_bounded() -> None:
    many = ", ".join(f"r{number}" for number in range(1_001))
    for sql in (f"GRANT SELECT ON t TO {many}", f"GRANT {many} TO USER u", f"GRANT SELECT ({many}) ON t TO r"):
        with pytest.raises(UserError, match="1000"):
            read(sql)


PAGE = Path(__file__).parents[3] / "docs" / "governance.md"
EXAMPLES = [
    " ".join(statement.text.split())
    for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for statement in Reader().split(re.sub(r"\[([A-Z ]+)\]", r"\1", re.sub(r"--.*", "", block)))
]


@pytest.mark.parametrize("sql", EXAMPLES)
def test_the_page_shows_what_is_read(sql: str) -> None:
    assert read(sql).kind in (GRANT, REVOKE, DENY, SHOW, ROLE, POLICY, StatementKind.SET_TAGS, StatementKind.SET_OWNER)
