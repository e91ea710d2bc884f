"""What Cedar's own rules mean for statements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqe_core.spi import (
    Access,
    Action,
    Column,
    ColumnMask,
    ConstantMask,
    Decision,
    Effect,
    ExternalError,
    HashMask,
    Identity,
    Mask,
    NamespaceName,
    NullMask,
    ObjectName,
    PartialMask,
    RangeMask,
    Resource,
    ResourceType,
    SqlExpression,
    SqlMask,
    StartupError,
    YearMask,
)
from sqe_core.testing.fakes import make_identity

READ = '@id("read") permit(principal in Role::"nurse", action in Action::"read", resource);\n'


def test_nothing_is_permitted_by_default(cedar: Any, nurse: Identity, stranger: Identity) -> None:
    cedar.open(READ)

    assert cedar.select(nurse).effect is Effect.ALLOW
    assert cedar.select(stranger).effect is Effect.DENY
    (write,) = cedar.ask(
        nurse,
        Access(action=Action.INSERT, resource=Resource(name=ObjectName(catalog="lake", namespace=("h",), name="t"))),
    )
    assert write.effect is Effect.DENY


def test_forbid_overrides_permit(cedar: Any, nurse: Identity) -> None:
    cedar.open(READ + '@id("not ann") forbid(principal == User::"ann", action == Action::"select", resource);')

    decision = cedar.select(nurse)

    assert decision.effect is Effect.DENY
    assert "not ann" in decision.reason


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ('resource in Catalog::"lake"', {("lake", "a.b", "t"), ("lake", "a", "t"), ("lake", "a", "u")}),
        ('resource in Schema::"lake.a"', {("lake", "a.b", "t"), ("lake", "a", "t"), ("lake", "a", "u")}),
        ('resource in Schema::"lake.a.b"', {("lake", "a.b", "t")}),
        ('resource in Table::"lake.a.t"', {("lake", "a", "t")}),
    ],
)
def test_objects_are_in_what_holds_them(cedar: Any, nurse: Identity, scope: str, names: set[Any]) -> None:
    cedar.open(f'@id("p") permit(principal, action in Action::"read", {scope});')
    asked = [("lake", "a.b", "t"), ("lake", "a", "t"), ("lake", "a", "u"), ("other", "a", "t")]

    found = {
        name
        for name in asked
        if cedar.select(
            nurse,
            Resource(name=ObjectName(catalog=name[0], namespace=tuple(name[1].split(".")), name=name[2])),
        ).effect
        is Effect.ALLOW
    }

    assert found == names


@pytest.mark.rule("POL-10")
def test_a_dot_in_a_name_is_no_separator(cedar: Any, nurse: Identity, make_table: Any) -> None:
    cedar.open('@id("p") permit(principal, action in Action::"read", resource in Table::"lake.a.b.t");')

    assert cedar.select(nurse, make_table("t", namespace=("a", "b"))).effect is Effect.ALLOW
    assert cedar.select(nurse, make_table("t", namespace=("a.b",))).effect is Effect.DENY
    assert cedar.select(nurse, make_table("b.t", namespace=("a",))).effect is Effect.DENY
    cedar.open(
        '@id("p") permit(principal, action in Action::"read", resource in Table::"lake.""a.b"".t");'.replace(
            '""', '\\"'
        )
    )
    assert cedar.select(nurse, make_table("t", namespace=("a.b",))).effect is Effect.ALLOW
    assert cedar.select(nurse, make_table("t", namespace=("a", "b"))).effect is Effect.DENY


@pytest.mark.rule("POL-14")
def test_a_forbid_that_fails_denies(cedar: Any, nurse: Identity) -> None:
    """Cedar itself skips it, and would answer Allow."""
    cedar.schema(("  email?: String,", "  email?: String,\n  left: Bool,"))
    cedar.open(READ + '@id("left") forbid(principal, action == Action::"select", resource) when { principal.left };')
    assert cedar.select(nurse).effect is Effect.DENY

    cedar.entities({"uid": {"type": "User", "id": "ann"}, "attrs": {"left": False}, "parents": []})
    cedar.open()
    assert cedar.select(nurse).effect is Effect.ALLOW


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize("action", ["read_column", "read_column_clear", "read_row"])
def test_a_policy_that_fails_on_columns_or_rows_denies_the_table(cedar: Any, nurse: Identity, action: str) -> None:
    cedar.schema(("  email?: String,", "  email?: String,\n  left: Bool,"))
    cedar.open(
        READ + f'@id("left") forbid(principal, action == Action::"{action}", resource) when {{ principal.left }};'
    )

    assert cedar.select(nurse).effect is Effect.DENY


def test_columns_are_hidden_masked_or_clear(cedar: Any, nurse: Identity) -> None:
    cedar.open(
        """
        @id("table") permit(principal, action in [Action::"select", Action::"read_row"], resource);
        @id("columns") permit(principal, action == Action::"read_column", resource)
          unless { resource.name == "born" };
        @id("clear") permit(principal, action == Action::"read_column_clear", resource)
          when { ["id", "born"].contains(resource.name) };
        """
    )

    decision = cedar.select(nurse)

    assert decision.hidden_columns == {"born"}
    assert {mask.column: mask.mask for mask in decision.column_masks} == dict.fromkeys(
        ("name", "ward", "age", "vip"), NullMask()
    )


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("null", NullMask()),
        ("hash", HashMask()),
        ("year", YearMask()),
        ("redact", ConstantMask()),
        ("redact:gone: for good", ConstantMask(value="gone: for good")),
        ("partial:0,4", PartialMask(show_last=4)),
        ("range:1000", RangeMask(width=1000)),
        ("sql:concat('x', substr({col}, 1))", SqlMask(expression=SqlExpression(text="concat('x', substr({col}, 1))"))),
    ],
)
def test_the_deciding_policy_names_the_mask(cedar: Any, nurse: Identity, text: str, mask: Mask) -> None:
    cedar.open(
        READ + f'@id("m") @mask("{text}") forbid(principal, action == Action::"read_column_clear", '
        'resource == Column::"lake.hospital.patients.name");'
    )

    assert cedar.select(nurse).column_masks == (ColumnMask(column="name", mask=mask),)


def test_a_permit_to_read_a_column_may_name_its_mask(cedar: Any, nurse: Identity) -> None:
    cedar.open(
        """
        @id("table") permit(principal, action in [Action::"select", Action::"read_row"], resource);
        @id("hashed") @mask("hash") permit(principal, action == Action::"read_column", resource);
        """
    )

    assert {mask.mask for mask in cedar.select(nurse).column_masks} == {HashMask()}


@pytest.mark.rule("POL-8")
@pytest.mark.parametrize(
    ("masks", "strictest"),
    [
        (("hash", "redact"), ConstantMask()),
        (("partial:0,4", "hash", "sql:1"), HashMask()),
        (("sql:1", "sql:2"), NullMask()),
        (("sql:1", "sql:1"), SqlMask(expression=SqlExpression(text="1"))),
        (("null", "hash"), NullMask()),
        (("year", "range:5"), NullMask()),
    ],
)
def test_the_strictest_mask_wins(cedar: Any, nurse: Identity, masks: tuple[str, ...], strictest: Mask) -> None:
    cedar.open(
        READ
        + "".join(
            f'@id("m{place}") @mask("{mask}") forbid(principal, action == Action::"read_column_clear", resource)'
            ' when { resource.name == "name" };'
            for place, mask in enumerate(masks)
        )
    )

    assert cedar.select(nurse).column_masks == (ColumnMask(column="name", mask=strictest),)


@pytest.mark.rule("POL-6")
@pytest.mark.parametrize("where", ["policy", "entities"])
def test_a_column_that_was_renamed_away_denies(cedar: Any, nurse: Identity, make_table: Any, where: str) -> None:
    if where == "policy":
        cedar.open(
            READ + '@id("s") forbid(principal, action == Action::"read_column", '
            'resource == Column::"lake.hospital.patients.ssn");'
        )
    else:
        cedar.entities(
            {
                "uid": {"type": "Column", "id": "lake.hospital.patients.ssn"},
                "attrs": {},
                "parents": [{"type": "Tag", "id": "pii"}],
            }
        )
        cedar.open(READ + '@id("s") forbid(principal, action == Action::"read_column", resource in Tag::"pii");')

    decision = cedar.select(nurse)
    assert decision.effect is Effect.DENY
    assert "column" in decision.reason
    assert cedar.select(nurse, make_table("others")).effect is Effect.ALLOW
    columns = (*make_table().columns, replace(make_table().columns[1], name="ssn"))
    assert cedar.select(nurse, make_table(columns=columns)).hidden_columns == {"ssn"}


def test_tags_of_columns_are_entities(cedar: Any, nurse: Identity, make_table: Any) -> None:
    cedar.open(READ + '@id("s") forbid(principal, action == Action::"read_column", resource in Tag::"pii");')

    tagged = make_table(column_tags={"name": frozenset({"pii", "x"})})
    assert cedar.select(nurse, tagged).hidden_columns == {"name"}
    with pytest.raises(ExternalError):
        cedar.select(nurse, make_table(column_tags=None))
    cedar.open(READ.replace('"read")', '"r")'))


def test_tags_that_nobody_asks_for_may_be_unknown(cedar: Any, nurse: Identity, make_table: Any) -> None:
    cedar.open(READ)

    assert cedar.select(nurse, make_table(column_tags=None)).effect is Effect.ALLOW


@pytest.mark.rule("SESS-4")
def test_alices_of_two_issuers(cedar: Any) -> None:
    policies = '@id("p") permit(principal == User::"%s", action in Action::"read", resource);'
    alice = make_identity("alice")
    other = replace(alice, issuer="https://evil.test|x", subject="99")

    cedar.open(policies % "alice", issuer="https://idp.test")
    assert cedar.select(alice).effect is Effect.ALLOW
    assert cedar.select(other).effect is Effect.DENY
    assert cedar.visible(other, [NamespaceName(catalog="lake", namespace=())]) == ["deny"]

    for form, known, own_id in (
        ("issuer_subject", alice, "https://idp.test|alice"),
        ("issuer_username", other, "https://evil.test%7Cx|alice"),
        ("subject", other, "99"),
    ):
        cedar.open(policies % own_id, principal=form, issuer=None)
        assert cedar.select(known).effect is Effect.ALLOW
        assert cedar.select(other if known is alice else alice).effect is Effect.DENY


@pytest.mark.rule("AUTHN-10")
@pytest.mark.parametrize(
    "name",
    [
        'x", action, resource); permit(principal == User::"ann',
        "ann\\",
        "O'Brien",
        'a"b',
        "ann\u0301",
        "日本",
        "__entity",
    ],
)
def test_names_are_values_and_no_text_of_cedar(cedar: Any, name: str) -> None:
    cedar.rows()
    cedar.entities({"uid": {"type": "User", "id": name}, "attrs": {"wards": ["A"]}, "parents": []})
    cedar.open(
        """
        @id("ann") permit(principal == User::"ann", action, resource);
        @id("table") permit(principal, action in [Action::"select", Action::"read_column"], resource);
        @id("rows") permit(principal, action == Action::"read_row", resource)
          when { principal has wards && principal.wards.contains(resource.ward) &&
                 resource.name == principal.username };
        """
    )
    decision = cedar.select(make_identity(name))

    (found,) = decision.row_filters
    assert found.text == f"""(("ward" IN ('A')) AND ("name" = '{name.replace("'", "''")}'))"""
    assert len(decision.column_masks) == 6


def test_claims_that_are_configured_are_in_the_context(cedar: Any, nurse: Identity) -> None:
    cedar.schema(("claims: {},", "claims: { dept?: String, level?: Long, teams?: Set<String> },"))
    cedar.open(
        READ + '@id("d") forbid(principal, action == Action::"select", resource)'
        ' unless { context.claims has dept && context.claims.dept == "icu" };',
        claims=("dept", "level", "teams"),
    )

    assert cedar.select(nurse, claims={"dept": "icu", "other": 1}).effect is Effect.ALLOW
    assert cedar.select(nurse, claims={"dept": "er"}).effect is Effect.DENY
    assert cedar.select(nurse, claims={}).effect is Effect.DENY
    # Escapes of Cedar's JSON are nobody's to write from outside.
    assert cedar.select(nurse, claims={"dept": {"__extn": {"fn": "ip", "arg": "1.1.1.1"}}}).effect is Effect.DENY
    assert cedar.select(nurse, claims={"dept": "icu", "level": 2**70, "teams": ("a", {"x": 1})}).effect is Effect.ALLOW


@pytest.mark.rule("POL-13")
def test_time_address_and_protocol_are_in_the_context(cedar: Any, nurse: Identity) -> None:
    cedar.open(
        '@id("p") permit(principal, action in Action::"read", resource) when { context.protocol == "flight" && '
        'context.now > datetime("2025-12-31") && context has client_addr && '
        'context.client_addr.isInRange(ip("10.0.0.0/8")) };'
    )

    decision = cedar.select(nurse, address="10.1.2.3")
    assert decision.effect is Effect.ALLOW
    assert decision.ttl_secs == 0
    assert cedar.select(nurse, address="::ffff:10.1.2.3").effect is Effect.ALLOW
    for address in ("11.0.0.1", "not an address", None):
        assert cedar.select(nurse, address=address).effect is Effect.DENY


def test_listings_show_what_may_be_described(cedar: Any, nurse: Identity, stranger: Identity) -> None:
    cedar.open(
        """
        @id("s") permit(principal in Role::"nurse", action == Action::"describe", resource in Schema::"lake.hospital");
        @id("c") permit(principal, action == Action::"describe", resource == Catalog::"lake");
        @id("f") forbid(principal, action == Action::"describe", resource == Table::"lake.hospital.pay");
        """
    )
    names = [
        NamespaceName(catalog="lake", namespace=()),
        NamespaceName(catalog="lake", namespace=("hospital",)),
        ObjectName(catalog="lake", namespace=("hospital",), name="patients"),
        ObjectName(catalog="lake", namespace=("hospital",), name="pay"),
        ObjectName(catalog="other", namespace=("hospital",), name="patients"),
    ]

    assert cedar.visible(nurse, names) == ["allow", "allow", "allow", "deny", "deny"]
    assert cedar.visible(stranger, names) == ["allow", "deny", "deny", "deny", "deny"]
    assert cedar.visible(nurse, []) == []


def test_schemas_have_actions_of_their_own(cedar: Any, nurse: Identity) -> None:
    cedar.open('@id("p") permit(principal, action == Action::"create_schema", resource == Schema::"lake.new");')
    schemas = [
        Resource(name=NamespaceName(catalog="lake", namespace=(name,)), type=ResourceType.SCHEMA)
        for name in ("new", "old")
    ]

    found = cedar.ask(nurse, *(Access(action=Action.CREATE_SCHEMA, resource=each) for each in schemas))

    assert [decision.effect for decision in found] == [Effect.ALLOW, Effect.DENY]


def test_attributes_of_the_file_and_roles_of_the_token_are_one_user(cedar: Any, nurse: Identity) -> None:
    cedar.schema(("  email?: String,", "  email?: String,\n  boss?: User,"))
    cedar.entities(
        {"uid": {"type": "Role", "id": "nurse"}, "attrs": {}, "parents": [{"type": "Role", "id": "staff"}]},
        {
            "uid": {"type": "User", "id": "ann"},
            "attrs": {"boss": {"__entity": {"type": "User", "id": "bob"}}},
            "parents": [{"type": "Group", "id": "night"}],
        },
        {
            "uid": {"type": "User", "id": "bob"},
            "attrs": {"boss": {"__entity": {"type": "User", "id": "cid"}}},
            "parents": [{"type": "Group", "id": "chiefs"}],
        },
    )
    cedar.open(
        '@id("p") permit(principal in Role::"staff", action in Action::"read", resource) when '
        '{ principal in Group::"night" && principal has boss && principal.boss in Group::"chiefs" && '
        'principal.boss has boss && principal.boss.boss == User::"cid" };'
    )

    assert cedar.select(nurse).effect is Effect.ALLOW
    assert cedar.select(make_identity("bob", roles=("nurse",))).effect is Effect.DENY


def test_one_table_on_two_branches_is_two_tables(cedar: Any, nurse: Identity, make_table: Any) -> None:
    cedar.open(
        READ + '@id("b") forbid(principal, action == Action::"select", resource)'
        ' when { context has ref && context.ref == "secret" };'
        '@id("c") forbid(principal, action == Action::"read_column", resource) when { resource["type"] == "int" };'
    )
    old = make_table(columns=[replace(column, type="string") for column in make_table().columns], ref="old")
    resources = (make_table(), old, make_table(ref="secret"))

    found = cedar.ask(nurse, *(Access(action=Action.SELECT, resource=each) for each in resources))

    assert [decision.effect.value for decision in found] == ["allow", "allow", "deny"]
    assert [decision.hidden_columns for decision in found] == [{"age"}, frozenset(), frozenset()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("has no @id", "permit(principal, action, resource);"),
        (
            "is used already",
            '@id("a") permit(principal, action, resource); @id("a") permit(principal, action, resource);',
        ),
        ("templates", '@id("a") permit(principal == ?principal, action, resource);'),
        ("@maks is not known", '@id("a") @maks("hash") permit(principal, action == Action::"read_column", resource);'),
        ("@mask is none of", '@id("a") @mask("hahs") permit(principal, action == Action::"read_column", resource);'),
        ("@mask is none of", '@id("a") @mask("hash:x") permit(principal, action == Action::"read_column", resource);'),
        ("has a meaning for", '@id("a") @mask("hash") permit(principal, action == Action::"select", resource);'),
        (
            "has a meaning for",
            '@id("a") @mask("hash") permit(principal, action == Action::"read_column_clear", resource);',
        ),
        ("has a meaning for", '@id("a") @filter("x = 1") permit(principal, action == Action::"select", resource);'),
        ("parentheses", '@id("a") @filter("1) OR (1=1") permit(principal, action == Action::"read_row", resource);'),
        ("comment", '@id("a") @filter("x -- y") permit(principal, action == Action::"read_row", resource);'),
        ("within quotes", '@id("a") @filter("x = \'y") permit(principal, action == Action::"read_row", resource);'),
        ("does not fit the schema", '@id("a") permit(principal, action, resource) when { principal.nmae == "x" };'),
        ("does not fit the schema", '@id("a") permit(principal, action == Action::"selct", resource);'),
        ("names no column", '@id("a") permit(principal, action, resource == Column::"ssn");'),
        ("names nothing", '@id("a") forbid(principal, action, resource == Table::"hospital.patients");'),
        ("unexpected", "permit(principal"),
        ("no policy", "// nothing"),
    ],
)
def test_policies_that_cannot_be_meant_stop_the_start(cedar: Any, name: str, text: str) -> None:
    with pytest.raises(StartupError, match=name):
        cedar.open(text)


@pytest.mark.rule("POL-10")
def test_names_without_a_catalog_are_of_the_one_that_is_configured(cedar: Any, nurse: Identity) -> None:
    cedar.entities({"uid": {"type": "Table", "id": "hospital.patients"}, "parents": [], "attrs": {}})
    policies = """
    @id("all") permit(principal, action, resource in Schema::"hospital");
    @id("column") forbid(principal, action == Action::"read_column", resource == Column::"hospital.patients.name");
    @id("drop") forbid(principal, action == Action::"drop", resource) when { resource == Table::"hospital.patients" };
    """
    cedar.open(policies, catalog="lake")

    def asked(action: Action, *parts: str) -> Decision:
        name = ObjectName(catalog=parts[0], namespace=parts[1:-1], name=parts[-1])
        columns = (Column(name="id", type="int"), Column(name="name", type="string"))
        (found,) = cedar.ask(nurse, Access(action=action, resource=Resource(name=name, columns=columns)))
        assert isinstance(found, Decision)
        return found

    assert asked(Action.SELECT, "lake", "hospital", "patients").hidden_columns == {"name"}
    assert asked(Action.DROP, "lake", "hospital", "patients").effect is Effect.DENY
    assert asked(Action.DROP, "lake", "hospital", "beds").effect is Effect.ALLOW
    assert asked(Action.SELECT, "other", "hospital", "patients").effect is Effect.DENY
    # A catalog that is called like the schema is another thing.
    assert asked(Action.SELECT, "hospital", "patients", "x").effect is Effect.DENY


@pytest.mark.parametrize("quoted", ['Table::"hospital"', 'Column::"patients.name"', 'Table::"a..b"'])
def test_names_that_are_none_are_refused_with_a_catalog_too(cedar: Any, quoted: str) -> None:
    with pytest.raises(StartupError, match="names no"):
        cedar.open(f'@id("a") forbid(principal, action, resource == {quoted});', catalog="lake")
