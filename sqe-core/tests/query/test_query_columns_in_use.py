"""Which columns of a table the grants and policies of anybody name (STMT-7)."""

from __future__ import annotations

import pytest

from sqe_core.catalog.column_tags import COLUMN_TAGS
from sqe_core.query.statements.columns_in_use import ColumnUse
from sqe_core.spi.catalog import Column, TableMetadata
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import (
    ColumnMask,
    Effect,
    Grant,
    Grantee,
    GrantTarget,
    NullMask,
    Privilege,
    SqlMask,
    StoredPolicy,
)
from sqe_core.spi.sql import SqlExpression

NAME = ObjectName(catalog="lake", namespace=("hr",), name="people")
ANALYST = Grantee(type="role", name="analyst")
TARGET = GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="people")
SELECT = frozenset({Privilege.SELECT})


def table(*columns: str, tags: str = "") -> TableMetadata:
    return TableMetadata(
        namespace=NAME.namespace,
        name=NAME.name,
        location="",
        format_version=2,
        uuid="u1",
        schema_id=0,
        columns=tuple(Column(name=name, type="string", nullable=True) for name in columns),
        properties={COLUMN_TAGS: tags} if tags else {},
    )


PEOPLE = table("id", "name", "Region", "ssn", "a b", 'odd"one', "free")


def expression(text: str) -> SqlExpression:
    return SqlExpression(text=text)


def grant(**more: object) -> Grant:
    return Grant(**({"privileges": SELECT, "target": TARGET, "grantee": ANALYST} | more))  # type: ignore[arg-type]


def policy(**more: object) -> StoredPolicy:
    made = {"name": "p", "kind": "column_mask", "target": NAME, "grantees": (ANALYST,)} | more
    return StoredPolicy(**made)  # type: ignore[arg-type]


@pytest.mark.rule("STMT-7")
@pytest.mark.parametrize(
    ("held", "used"),
    [
        (grant(), set()),
        (grant(columns=("id", "NAME")), {"id", "name"}),
        (grant(columns=("ssn",), effect=Effect.DENY), {"ssn"}),
        (grant(row_filter=expression("upper(REGION) = 'EU'")), {"Region"}),
        (grant(row_filter=expression('t."odd""one" > 1 AND `a b` = 2')), {'odd"one', "a b"}),
        (grant(column_masks=(ColumnMask(column="ssn", mask=NullMask()),)), {"ssn"}),
        (
            grant(column_masks=(ColumnMask(column="ssn", mask=SqlMask(expression=expression("name || {col}"))),)),
            {"ssn", "name"},
        ),
        (policy(column="ssn", mask=NullMask()), {"ssn"}),
        (policy(kind="row_filter", row_filter=expression("id > 3")), {"id"}),
        (policy(target="PII", mask=SqlMask(expression=expression("left({col}, id)"))), set()),
        # Of another table; and the same table under another spelling, or another name.
        (
            grant(columns=("id",), target=GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="pay")),
            set(),
        ),
        (
            grant(columns=("id",), target=GrantTarget(scope="table", catalog="LAKE", namespace=("hr",), name="People")),
            {"id"},
        ),
        (
            grant(
                columns=("id",),
                target=GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="old"),
                object_uuid="u1",
            ),
            {"id"},
        ),
    ],
)
def test_what_a_grant_or_a_policy_names_is_in_use(held: Grant | StoredPolicy, used: set[str]) -> None:
    use = ColumnUse(grants=[held]) if isinstance(held, Grant) else ColumnUse(policies=[held])
    assert use.of(NAME, PEOPLE) == used


@pytest.mark.rule("STMT-7")
def test_tagged_columns_are_in_use() -> None:
    tagged = table("id", "ssn", "free", tags='{"SSN": ["PII"], "free": []}')
    assert ColumnUse().of(NAME, tagged) == {"ssn"}
    of_tag = policy(target="pii", mask=SqlMask(expression=expression("left({col}, id)")))
    assert ColumnUse(policies=[of_tag]).of(NAME, tagged) == {"ssn", "id"}
    assert ColumnUse().of(NAME, table("id", "ssn", tags="{")) == {"id", "ssn"}
