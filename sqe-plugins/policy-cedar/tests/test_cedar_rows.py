"""Residuals become SQL: exactly, or not at all.

The oracle is Cedar itself: rows are given to it as entities, and to SQLite with the filter; both have to agree.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from typing import Any

import cedarpy
import pytest

from sqe_core.spi import Access, Action, Column, Effect, Identity
from sqe_core.testing.fakes import make_identity
from sqe_policy_cedar.rows import RowTranslator, UntranslatableError

TABLE = (
    '@id("table") permit(principal, action in '
    '[Action::"select", Action::"read_column", Action::"read_column_clear"], resource);\n'
)
WRITE = '@id("write") permit(principal, action in Action::"write", resource);\n'


def rows(condition: str, effect: str = "permit", own_id: str = "rows") -> str:
    return f'@id("{own_id}") {effect}(principal, action == Action::"read_row", resource) {condition};\n'


@pytest.fixture
def ann() -> Identity:
    return make_identity("ann", roles=("nurse",))


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        ("", None),
        ('when { principal in Role::"nurse" }', None),
        ('when { resource.ward == "A" }', "(\"ward\" = 'A')"),
        ('when { "A" != resource.ward }', "(\"ward\" <> 'A')"),
        ("when { 3 < resource.age }", '("age" > 3)'),
        ("when { resource.age >= -3 }", '("age" >= -3)'),
        ("unless { resource.age >= 3 }", '("age" < 3)'),
        ("when { resource.vip }", '("vip" = TRUE)'),
        ("unless { resource.vip }", '("vip" = FALSE)'),
        ("when { resource.vip == true }", '("vip" = TRUE)'),
        ("when { resource.id == resource.age }", '("id" = "age")'),
        ('when { ["A", "it\'s"].contains(resource.ward) }', "(\"ward\" IN ('A', 'it''s'))"),
        ('unless { ["A"].contains(resource.ward) }', "(\"ward\" NOT IN ('A'))"),
        ('when { resource.name like "a%_!*\\*" }', "(\"name\" LIKE 'a!%!_!!%*' ESCAPE '!')"),
        ('when { resource.ward == "A" && resource.age > 1 }', '(("ward" = \'A\') AND ("age" > 1))'),
        ("when { resource.id == 1 || resource.vip }", '(("id" = 1) OR ("vip" = TRUE))'),
        (
            "when { resource.age == 1 || resource.vip }",
            '(("age" = 1) OR (("age" <> 1) AND ("vip" = TRUE)))',
        ),
        ("when { resource has odd && resource.odd == 1 || resource.vip }", '("vip" = TRUE)'),
        ('when { resource in Table::"lake.hospital.patients" }', None),
        ('when { resource in Schema::"lake.hospital" && resource.vip }', '("vip" = TRUE)'),
        ("when { if resource.id == 1 then resource.vip else false }", '(("id" = 1) AND ("vip" = TRUE))'),
    ],
)
def test_what_becomes_of_conditions(cedar: Any, ann: Identity, condition: str, sql: str | None) -> None:
    cedar.rows()
    cedar.open(TABLE + rows(condition))

    assert cedar.filter_for(ann) == sql


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize(
    "condition",
    [
        "when { resource.age + 1 < 5 }",
        "when { resource.age * 2 == 4 }",
        'when { resource.born == "2020-01-01" }',
        'when { resource == Row::"x" }',
        'when { resource in Row::"x" }',
        "when { resource.odd == 1 }",
        'when { resource.ward == "A\\n" }',
        "when { resource.age == -9223372036854775808 }",
        "when { [resource.age, 1].contains(resource.id) }",
    ],
)
def test_what_has_no_sql_denies(cedar: Any, ann: Identity, condition: str) -> None:
    cedar.rows()
    cedar.schema(
        (
            "entity Row in [Table];",
            "entity Row in [Table] = { id: Long, name: String, ward: String, "
            "age: Long, vip: Bool, born: String, odd: Long };",
        )
    )
    cedar.open(TABLE + rows(condition))

    decision = cedar.select(ann)

    assert decision.effect is Effect.DENY
    assert "row filter cannot be made" in decision.reason


def test_filters_of_permits_and_forbids(cedar: Any, ann: Identity) -> None:
    cedar.rows()
    cedar.open(
        TABLE
        + rows('when { resource.ward == "A" }', own_id="a")
        + rows('when { resource.ward == "B" }', own_id="b")
        + rows("when { resource.vip }", "forbid", own_id="c")
        + rows('when { principal in Role::"other" && resource.ward == "C" }', "forbid", own_id="d")
    )

    assert cedar.filter_for(ann) == '((("ward" = \'A\') OR ("ward" = \'B\')) AND ("vip" = FALSE))'


def test_filters_in_sql(cedar: Any, ann: Identity) -> None:
    cedar.rows()
    cedar.open(
        TABLE
        + "@filter(\"born > date '2000-01-01'\")"
        + rows('when { resource.ward == "A" }', own_id="a")
        + '@filter("length(name) > 3")'
        + rows("", "forbid", own_id="b")
    )

    assert cedar.filter_for(ann) == (
        "(((\"ward\" = 'A') AND (born > date '2000-01-01'\n)) AND (NOT (length(name) > 3\n)))"
    )


def test_rows_that_nobody_may_read(cedar: Any, ann: Identity, make_table: Any) -> None:
    """Nothing to read is no empty table; whoever may only write, may write."""
    cedar.rows()
    cedar.open(TABLE + WRITE + rows('when { principal in Role::"other" }'))

    found = cedar.ask(
        ann,
        *(
            Access(action=action, resource=make_table())
            for action in (Action.SELECT, Action.INSERT, Action.UPDATE, Action.DELETE, Action.MERGE, Action.TRUNCATE)
        ),
    )

    assert [decision.effect.value for decision in found] == ["deny", "allow", "deny", "deny", "deny", "deny"]


def test_a_filter_holds_for_what_is_written(cedar: Any, ann: Identity, make_table: Any) -> None:
    cedar.rows()
    cedar.open(TABLE + WRITE + rows('when { resource.ward == "A" }'))

    found = cedar.ask(
        ann,
        *(
            Access(action=action, resource=make_table())
            for action in (Action.INSERT, Action.UPDATE, Action.DELETE, Action.MERGE)
        ),
    )

    assert all(decision.row_filters[0].text == "(\"ward\" = 'A')" for decision in found)
    assert all(decision.check is None for decision in found)


CONDITIONS = [
    "resource.a == 1",
    "resource.a != 1",
    "resource.a < 2",
    "resource.a >= 2",
    "resource.b",
    "!resource.b",
    "resource has a",
    "!(resource has a)",
    'resource.s == "x"',
    'resource.s like "x*"',
    '["x", "z%"].contains(resource.s)',
    "[1].contains(resource.n)",
    "resource.n == resource.a",
]


def combined() -> list[str]:
    pairs = itertools.product(CONDITIONS, CONDITIONS)
    found = [
        form.format(left, right)
        for place, (left, right) in enumerate(pairs)
        for form in (("{} && {}", "{} || {}", "!({} && {})", "!({} || {})")[place % 4],)
    ]
    found += [
        f"if {CONDITIONS[place]} then {CONDITIONS[-place - 1]} else {CONDITIONS[place // 2]}"
        for place in range(len(CONDITIONS))
    ]
    return CONDITIONS + found


def test_cedar_and_sql_agree_about_every_row() -> None:
    """For each condition, as permit and as forbid, on all rows with and without NULLs."""
    columns = (
        Column(name="n", type="bigint", nullable=False),
        Column(name="a", type="int"),
        Column(name="b", type="boolean"),
        Column(name="s", type="string"),
    )
    values = list(itertools.product((1, 2), (None, 1, 2), (None, True, False), (None, "x", "xy", "z%")))
    entities = [
        {
            "uid": {"type": "Row", "id": str(place)},
            "attrs": {name: value for name, value in zip("nabs", row, strict=True) if value is not None},
            "parents": [],
        }
        for place, row in enumerate(values)
    ]
    graph = cedarpy.Entities.from_json_str(json.dumps(entities))
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (place integer, n integer, a integer, b boolean, s text)")
    database.execute("PRAGMA case_sensitive_like = ON")
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [(at, *row) for at, row in enumerate(values)])
    from sqe_policy_cedar.policies import policy_set, read_policies

    compared = 0
    for condition, effect in itertools.product(combined(), ("permit", "forbid")):
        text = f'@id("p") {effect}(principal, action, resource) when {{ {condition} }};'
        if effect == "forbid":
            text += '@id("all") permit(principal, action, resource);'
        policies = read_policies([("t", text)])
        parsed = policy_set(policies)
        scope = {"principal": 'User::"u"', "action": 'Action::"a"', "context": {}}
        residuals = cedarpy.is_authorized_partial(scope, parsed, graph).residuals
        found = RowTranslator(columns, frozenset()).row_filter(residuals, policies)
        sql = {True: "TRUE", False: "FALSE"}[found] if isinstance(found, bool) else found.text
        asked = [{**scope, "resource": f'Row::"{place}"'} for place in range(len(values))]
        by_cedar = [
            answer.allowed and not answer.diagnostics.errors
            for answer in cedarpy.is_authorized_batch(asked, parsed, graph)
        ]
        by_sql = {place for (place,) in database.execute(f"SELECT place FROM t WHERE {sql}")}
        assert [place in by_sql for place in range(len(values))] == by_cedar, (text, sql)
        compared += 1
    assert compared > 300


@pytest.mark.parametrize(
    "tree",
    [
        {"somethingNew": {"left": {"Value": True}}},
        {"isEmpty": {"arg": {"Value": []}}},
        {"unknown": [{"Value": "context"}]},
        {".": {"left": {"Var": "principal"}, "attr": "ward"}},
        {"error": [{"Value": "x"}]},
        {"Value": 1},
        {"Value": True, "more": 1},
        [],
        None,
        "x",
    ],
)
@pytest.mark.rule("POL-14")
def test_unknown_forms_are_refused(tree: Any) -> None:
    from sqe_policy_cedar.policies import read_policies

    policies = read_policies([("t", '@id("p") permit(principal, action, resource);')])
    scope: dict[str, Any] = {key: {"op": "All"} for key in ("principal", "action", "resource")}
    residual = {"effect": "permit", **scope, "conditions": [{"kind": "when", "body": tree}]}

    for residuals in ({"p": residual}, {}, {"p": residual, "q": residual}, {"p": {**residual, "action": {"op": "=="}}}):
        with pytest.raises(UntranslatableError):
            RowTranslator((), frozenset()).row_filter(residuals, policies)
