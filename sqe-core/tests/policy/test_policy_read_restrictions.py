"""Read restrictions of REST catalogs: all of it is understood, or nothing is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sqe_core.policy import action_masks
from sqe_core.policy.authorizer import AccessRequest, Authorizer, Circumstances, Verdict
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.policy.masks import MaskWriter, kind_of, strictest
from sqe_core.policy.read_restrictions import CatalogRestrictions, decide
from sqe_core.policy.rest_filters import MOST_DEPTH, MOST_NODES, FilterReader, NotUnderstood
from sqe_core.spi.catalog import Column, ReadRestrictions, SupportsReadRestrictions, TableMetadata
from sqe_core.spi.errors import ErrorCode, ExternalError, ObjectNotFoundError, SqeError, UserError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import (
    Action,
    ActionMask,
    ConstantMask,
    Decision,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
    RangeMask,
    SqlMask,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression

TYPES = {
    1: ("n", "int"),
    2: ("big", "bigint"),
    3: ("text", "string"),
    4: ("flag", "boolean"),
    5: ("real", "float"),
    6: ("score", "double"),
    7: ("amount", "decimal(9,2)"),
    8: ("born", "date"),
    9: ("seen", "timestamp_ltz"),
    10: ("local", "timestamp_ntz"),
    11: ("raw", "binary"),
    12: ("key", "uuid"),
    13: ("short", "fixed(4)"),
    14: ("tags", "array<string>"),
    15: ("place", "struct<city:string>"),
    16: ("o`dd", "string"),
    17: ("hour", "time"),
    18: ("pairs", "map<string,int>"),
}
COLUMNS = tuple(Column(name=name, type=kind, field_id=number) for number, (name, kind) in TYPES.items())
TABLE = TableMetadata(
    namespace=("n",), name="t", uuid="u", location="l", format_version=2, schema_id=0, columns=COLUMNS
)
NAME = ObjectName(catalog="c", namespace=("n",), name="t")
ALICE = Identity(issuer="i", subject="1", username="alice", provider="p", access_token=Secret("token of alice"))
NOW = Circumstances(protocol="test", query_id="q")


def reference(number: int) -> dict[str, Any]:
    return {"type": "reference", "id": number}


def compare(kind: str, number: int, value: Any) -> dict[str, Any]:
    return {"type": kind, "left": reference(number), "right": {"type": "literal", "value": value}}


def read(document: Any) -> str | None:
    expression = FilterReader(COLUMNS).read(document)
    assert expression is None or expression.dialect == "spark"
    return None if expression is None else expression.text


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize(
    ("document", "text"),
    [
        (True, None),
        ({"type": "true"}, None),
        ({"type": True}, None),
        (False, "false"),
        ({"type": "false"}, "false"),
        (compare("eq", 3, "EU"), "(`text` = 'EU')"),
        (compare("eq", 3, "\\' OR 1=1 -- "), "(`text` = '\\\\\\' OR 1=1 -- ')"),
        (compare("not-eq", 16, "x"), "(`o``dd` <> 'x')"),
        (compare("lt", 1, -5), "(`n` < -5)"),
        (compare("gt-eq", 2, 2**40), "(`big` >= 1099511627776L)"),
        (compare("eq", 4, True), "(`flag` = true)"),
        (compare("lt-eq", 5, 0.5), "(`real` <= 0.5F)"),
        (compare("gt", 6, 3), "(`score` > 3.0D)"),
        (compare("eq", 7, "14.20"), "(`amount` = 14.20BD)"),
        (compare("eq", 8, "2017-11-16"), "(`born` = DATE '2017-11-16')"),
        (compare("lt", 9, "2017-11-16T22:31:08.5+00:00"), "(`seen` < TIMESTAMP '2017-11-16 22:31:08.500000Z')"),
        (compare("lt", 10, "2017-11-16T22:31:08"), "(`local` < TIMESTAMP_NTZ '2017-11-16 22:31:08')"),
        (compare("eq", 11, "00ff"), "(`raw` = X'00ff')"),
        (compare("eq", 13, "00ff00ff"), "(`short` = X'00ff00ff')"),
        (
            compare("eq", 12, "F79C3E09-677C-4BBD-A479-3F349CB785E7"),
            "(`key` = 'f79c3e09-677c-4bbd-a479-3f349cb785e7')",
        ),
        (
            {"type": "lt", "left": {"type": "literal", "value": 3}, "right": reference(1)},
            "(`n` > 3)",
        ),
        ({"type": "eq", "term": "text", "value": "EU"}, "(`text` = 'EU')"),
        ({"type": "eq", "term": {"type": "reference", "term": "text"}, "value": "EU"}, "(`text` = 'EU')"),
        ({"type": "in", "child": reference(1), "values": [1, {"type": "literal", "value": 2}]}, "(`n` IN (1, 2))"),
        ({"type": "not-in", "term": "n", "values": [1]}, "(`n` NOT IN (1))"),
        ({"type": "is-null", "child": reference(14)}, "(`tags` IS NULL)"),
        ({"type": "not-null", "term": "place"}, "(`place` IS NOT NULL)"),
        ({"type": "is-nan", "child": reference(6)}, "(CASE WHEN `score` IS NOT NULL THEN isnan(`score`) END)"),
        (
            {"type": "not-nan", "child": reference(5)},
            "(NOT (CASE WHEN `real` IS NOT NULL THEN isnan(`real`) END))",
        ),
        (compare("starts-with", 3, "E%_"), "startswith(`text`, 'E%_')"),
        (compare("not-starts-with", 3, "E"), "(NOT startswith(`text`, 'E'))"),
        (
            {"type": "or", "left": {"type": "not", "child": compare("eq", 1, 1)}, "right": False},
            "((NOT (`n` = 1)) OR false)",
        ),
        (
            {"type": "and", "left": True, "right": {"type": "is-null", "child": reference(1)}},
            "(true AND (`n` IS NULL))",
        ),
    ],
)
def test_a_filter_becomes_sql(document: Any, text: str | None) -> None:
    assert read(json.loads(json.dumps(document))) == text


def deep(levels: int) -> Any:
    found: Any = compare("eq", 1, 1)
    for _ in range(levels):
        found = {"type": "not", "child": found}
    return found


def wide(levels: int) -> Any:
    if levels == 0:
        return False
    return {"type": "and", "left": wide(levels - 1), "right": wide(levels - 1)}


@pytest.mark.rule("POL-4", "POL-14")
@pytest.mark.parametrize(
    "document",
    [
        None,
        "true",
        1,
        [],
        {},
        {"type": "maybe"},
        {"type": 1},
        {"type": 0.0},
        {"type": "true", "child": False},
        {"type": "not-equal", "left": reference(1), "right": {"type": "literal", "value": 1}},
        {"type": ["eq"]},
        {"type": "and", "left": True},
        {"type": "and", "left": True, "right": True, "third": False},
        {"type": "and", "children": [True, True]},
        {"type": "not", "child": "x"},
        {**compare("eq", 1, 1), "negate": True},
        {**compare("eq", 1, 1), "term": "n"},
        {"type": "eq", "left": reference(1)},
        {"type": "eq", "left": reference(1), "right": reference(2)},
        {"type": "eq", "left": {"type": "literal", "value": 1}, "right": {"type": "literal", "value": 1}},
        {"type": "eq", "left": {"type": "apply", "function": "upper"}, "right": {"type": "literal", "value": 1}},
        {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "born"}, "value": 1},
        compare("eq", 99, 1),
        {"type": "eq", "left": {"type": "reference", "id": True}, "right": {"type": "literal", "value": 1}},
        {"type": "eq", "left": {"type": "reference", "id": 1, "name": "n"}, "right": 1},
        {"type": "eq", "left": {"type": "reference"}, "right": 1},
        {"type": "eq", "term": "N", "value": 1},
        {"type": "eq", "term": "place.city", "value": "Oslo"},
        {"type": "eq", "term": "n", "value": None},
        compare("eq", 1, None),
        compare("eq", 1, "1"),
        compare("eq", 1, True),
        compare("eq", 1, 1.5),
        compare("eq", 1, 2**31),
        compare("eq", 1, "1 OR true"),
        compare("eq", 2, 2**63),
        compare("eq", 3, 5),
        compare("eq", 3, "x" * 10_001),
        compare("eq", 4, "true"),
        compare("lt", 4, True),
        compare("eq", 6, float("inf")),
        compare("eq", 6, float("nan")),
        compare("eq", 7, 14.2),
        compare("eq", 7, "1e5"),
        compare("eq", 7, "1) OR (1=1"),
        compare("eq", 8, "2017-13-16"),
        compare("eq", 8, "2017-11-16' OR '1'='1"),
        compare("eq", 8, 17000),
        compare("eq", 9, "2017-11-16T22:31:08"),
        compare("eq", 10, "2017-11-16T22:31:08+00:00"),
        compare("eq", 10, "2017-11-16T22:31:08-08:00"),
        compare("eq", 11, "0g"),
        compare("lt", 12, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        compare("eq", 12, "x"),
        compare("eq", 14, "x"),
        compare("eq", 15, {"city": "Oslo"}),
        compare("eq", 17, "10:00"),
        compare("starts-with", 1, "1"),
        {"type": "is-nan", "child": reference(1)},
        {"type": "in", "child": reference(1), "values": []},
        {"type": "in", "child": reference(1), "values": [1, None]},
        {"type": "in", "child": reference(3), "values": "abc"},
        {"type": "in", "child": reference(1), "values": [1] * 10_001},
        {"type": "eq", "left": reference(1), "right": {"type": "literal", "value": 1, "data-type": "int"}},
        deep(MOST_DEPTH + 1),
        wide(10),
    ],
)
def test_what_is_not_understood_is_no_filter(document: Any) -> None:
    with pytest.raises(NotUnderstood):
        FilterReader(COLUMNS).read(document)


def test_bounds() -> None:
    assert read(deep(MOST_DEPTH)) is not None
    assert 2**10 > MOST_NODES > 2**9
    assert read(wide(8)) is not None


def decided(document: Any, *, uuid: str = "u", renamed: frozenset[int] = frozenset()) -> Decision:
    return decide(ReadRestrictions(table_uuid=uuid, document=document, renamed=renamed), TABLE).decision


def action(name: str, number: int) -> dict[str, Any]:
    return {"required-column-projections": [{"action": name, "field-id": number}]}


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize(
    ("name", "number", "mask"),
    [
        ("replace-with-null", 15, NullMask()),
        ("mask-to-fixed-value", 3, ConstantMask(value="XXXXXXXX")),
        ("mask-to-fixed-value", 12, ConstantMask(value="00000000-0000-0000-0000-000000000000")),
        ("mask-to-fixed-value", 7, ActionMask(action="mask-to-fixed-value")),
        ("mask-to-fixed-value", 18, ActionMask(action="mask-to-fixed-value")),
        ("truncate-to-year", 8, YearMask()),
        ("truncate-to-month", 9, ActionMask(action="truncate-to-month")),
        ("mask-alphanum", 3, ActionMask(action="mask-alphanum")),
        ("show-first-4", 3, ActionMask(action="show-first-4")),
        ("show-last-4", 3, ActionMask(action="show-last-4")),
        ("sha-256-global", 2, ActionMask(action="sha-256-global")),
        ("sha-256-query-local", 11, ActionMask(action="sha-256-query-local")),
    ],
)
def test_an_action_becomes_a_mask(name: str, number: int, mask: Mask) -> None:
    (found,) = decided(action(name, number)).column_masks
    assert (found.column, found.mask) == (TYPES[number][0], mask)


@pytest.mark.rule("POL-4", "POL-14")
@pytest.mark.parametrize(
    "document",
    [
        [],
        "x",
        {"required-row-filters": []},
        {"required-row-filter": True, "allowed-columns": []},
        {"required-column-projections": {}},
        {"required-column-projections": ["n"]},
        {"required-column-projections": [{"action": "replace-with-null"}]},
        {"required-column-projections": [{"action": "replace-with-null", "field-id": "1"}]},
        {"required-column-projections": [{"action": "replace-with-null", "field-id": True}]},
        {"required-column-projections": [{"action": "replace-with-null", "field-id": 99}]},
        {"required-column-projections": [{"action": "replace-with-null", "field-id": 1, "unless": "admin"}]},
        {"required-column-projections": [{"action": "replace-with-null", "field-id": 1}] * 2},
        action("apply-expression", 3),
        action("MASK-ALPHANUM", 3),
        action("unknown-action", 3),
        {"required-column-projections": [{"action": None, "field-id": 1}]},
        {"required-column-projections": [{"action": ["replace-with-null"], "field-id": 1}]},
        action("mask-alphanum", 1),
        action("show-first-4", 12),
        action("truncate-to-year", 3),
        action("sha-256-global", 6),
        action("mask-to-fixed-value", 15),
        action("mask-to-fixed-value", 13),
    ],
)
def test_what_is_not_understood_is_no_restriction(document: Any) -> None:
    with pytest.raises(NotUnderstood):
        decided(document)


@pytest.mark.rule("POL-6")
def test_what_does_not_fit_the_table_is_not_applied() -> None:
    with pytest.raises(NotUnderstood):
        decided({}, uuid="another")
    required = replace(TABLE, columns=(Column(name="n", type="int", nullable=False, field_id=1),))
    with pytest.raises(NotUnderstood):
        decide(ReadRestrictions(table_uuid="u", document=action("replace-with-null", 1)), required)
    unnumbered = replace(TABLE, columns=(Column(name="n", type="int"),))
    with pytest.raises(NotUnderstood):
        decide(ReadRestrictions(table_uuid="u", document=action("replace-with-null", 1)), unnumbered)


@pytest.mark.rule("POL-6")
@pytest.mark.parametrize(
    ("document", "renamed", "current_only"),
    [
        (action("mask-alphanum", 3), {3}, True),
        (action("mask-alphanum", 3), {1}, False),
        ({"required-row-filter": compare("eq", 1, 1)}, {1}, True),
        ({"required-row-filter": {"type": "eq", "term": "n", "value": 1}}, {1}, True),
        ({}, {1, 3}, False),
    ],
)
def test_a_renamed_column_keeps_old_versions_closed(
    document: Mapping[str, Any], renamed: set[int], current_only: bool
) -> None:
    restrictions = ReadRestrictions(table_uuid="u", document=document, renamed=frozenset(renamed))
    assert decide(restrictions, TABLE).current_only is current_only


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize(
    ("masks", "strict"),
    [
        ((ActionMask(action="mask-to-fixed-value"), HashMask()), ActionMask(action="mask-to-fixed-value")),
        ((ActionMask(action="sha-256-global"), PartialMask(show_last=4)), ActionMask(action="sha-256-global")),
        ((ActionMask(action="sha-256-global"), HashMask()), NullMask()),
        ((ActionMask(action="truncate-to-month"), YearMask()), NullMask()),
        ((ActionMask(action="truncate-to-month"), RangeMask(width=5)), NullMask()),
        ((ActionMask(action="show-last-4"), ActionMask(action="show-first-4")), NullMask()),
        (
            (ActionMask(action="show-last-4"), SqlMask(expression=SqlExpression(text="x"))),
            ActionMask(action="show-last-4"),
        ),
        ((ActionMask(action="show-last-4"), ConstantMask()), ConstantMask()),
    ],
)
def test_the_stricter_mask_holds(masks: tuple[Mask, Mask], strict: Mask) -> None:
    assert strictest(masks) == strictest(masks[::-1]) == strict
    assert kind_of(ActionMask(action="show-last-4")) == "show-last-4"


@pytest.mark.rule("POL-12")
def test_an_action_for_another_type_is_no_mask() -> None:
    for name, kind in (
        ("mask-alphanum", "int"),
        ("sha-256-global", "double"),
        ("mask-to-fixed-value", "struct<a:int>"),
    ):
        with pytest.raises(UserError):
            action_masks.write(name, "`x`", kind, salt=b"s")  # type: ignore[arg-type]


@pytest.mark.rule("POL-12")
def test_the_salt_is_of_one_statement() -> None:
    writer = MaskWriter()
    texts = {
        writer.for_statement(tag).write(ActionMask(action="sha-256-query-local"), "a", "string").text
        for tag in ("one", "two", "one")
    }
    assert len(texts) == 2
    other = MaskWriter().for_statement("one").write(ActionMask(action="sha-256-query-local"), "a", "string").text
    assert other not in texts
    assert writer.salt.hex() not in repr(writer)


class Catalog(SupportsReadRestrictions):
    """A catalog that says what the test wants, and by which token."""

    def __init__(self, document: Any = None, *, error: Exception | None = None) -> None:
        self.document = document
        self.error = error
        self.tokens: list[str] = []

    def read_restrictions(self, namespace: tuple[str, ...], name: str, identity: Identity) -> ReadRestrictions | None:
        assert (namespace, name) == (("n",), "t")
        self.tokens.append(identity.access_token.reveal() if identity.access_token else "")
        if self.error is not None:
            raise self.error
        document = self.document.get(identity.username) if isinstance(self.document, dict) else self.document
        return None if document is None else ReadRestrictions(table_uuid="u", document=document)


class Silent(PolicyEnforcer):
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(decisions=tuple(Decision.abstain() for _ in request.accesses))


def authorizer(catalog: object, *, engine: PolicyEnforcer | None = None, **options: Any) -> Authorizer:
    return Authorizer([engine or AllowAllEnforcer()], catalogs=CatalogRestrictions(lambda: {"c": catalog}, **options))


@pytest.mark.rule("POL-2")
def test_a_catalog_that_is_gone_allows_nothing() -> None:
    gone = Authorizer([AllowAllEnforcer()], catalogs=CatalogRestrictions(dict))
    assert select(gone).denied


def select(found: Authorizer, who: Identity = ALICE, circumstances: Circumstances = NOW) -> Verdict:
    request = AccessRequest(name=NAME, action=Action.SELECT, loaded=TABLE)
    return found.decide(who, [request], circumstances)[NAME, Action.SELECT]


EU = {"required-row-filter": compare("eq", 3, "EU"), **action("replace-with-null", 1)}


@pytest.mark.rule("POL-8")
def test_a_catalog_restricts_below_every_engine() -> None:
    catalog = Catalog({"alice": EU})
    access = select(authorizer(catalog))
    assert [one.text for one in access.filters] == ["(`text` = 'EU')"]
    assert access.masks == {"n": NullMask()}
    assert catalog.tokens == ["token of alice"]
    assert authorizer(catalog).enforces
    assert not authorizer(object()).enforces
    # It takes away, and never gives.
    assert select(authorizer(catalog, engine=Silent())).denied
    assert select(authorizer(object())).unrestricted


@pytest.mark.rule("POL-2", "ERR-1")
@pytest.mark.parametrize(
    "catalog",
    [
        Catalog({"alice": {"required-row-filter": {"type": "secret-operator"}}}),
        Catalog({"alice": "text"}),
        Catalog(error=ConnectionError("https://catalog.internal/secret-operator")),
        Catalog(error=KeyError("secret-operator")),
        Catalog(error=RecursionError("secret-operator")),
    ],
)
def test_a_catalog_that_is_not_understood_is_read_by_nobody(catalog: Catalog) -> None:
    with pytest.raises(ExternalError) as caught:
        select(authorizer(catalog))
    assert "secret" not in str(caught.value)


def test_what_a_catalog_says_of_the_login_reaches_the_user() -> None:
    ended = UserError("The catalog does not accept your login any more", code=ErrorCode.AUTHENTICATION_FAILED)
    with pytest.raises(SqeError) as caught:
        select(authorizer(Catalog(error=ended)))
    assert caught.value is ended
    assert select(authorizer(Catalog(error=ObjectNotFoundError("no such table")))).denied


@pytest.mark.rule("POL-9", "SESS-4")
def test_answers_are_kept_for_a_moment_and_for_one_login() -> None:
    now = [0.0]
    catalog = Catalog({"alice": EU})
    found = authorizer(catalog, clock=lambda: now[0])
    assert select(found).restricted
    assert select(found).restricted
    assert len(catalog.tokens) == 1
    bob = replace(ALICE, subject="2", username="bob", access_token=Secret("token of bob"))
    assert not select(found, bob).restricted
    assert not select(found, replace(bob, issuer="other")).restricted
    assert select(found, replace(ALICE, access_token=Secret("renewed"))).restricted
    assert catalog.tokens == ["token of alice", "token of bob", "token of bob", "renewed"]
    now[0] = 5.0
    catalog.document = {"bob": EU}
    assert not select(found).restricted
    assert select(found, bob).restricted
    catalog.document = {"alice": EU}
    found.flush()
    assert select(found).restricted


@pytest.mark.rule("POL-2")
def test_what_is_unknown_is_not_kept() -> None:
    catalog = Catalog(error=ConnectionError())
    found = authorizer(catalog)
    with pytest.raises(ExternalError):
        select(found)
    catalog.error, catalog.document = None, {"alice": EU}
    assert select(found).restricted


@pytest.mark.rule("META-2")
def test_no_catalog_is_asked_about_somebody_else() -> None:
    catalog = Catalog({"alice": EU})
    assert not select(authorizer(catalog), circumstances=NOW.of_another()).restricted
    assert catalog.tokens == []
