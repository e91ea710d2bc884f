"""The worked example of docs/policy-cedar.md is what it says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqe_core.spi import Access, Action, Column, Effect, Identity, NamespaceName, ObjectName
from sqe_core.testing.fakes import make_identity

PAGE = Path(__file__).parents[3] / "docs" / "policy-cedar.md"
BLOCK = re.compile(r'^```\w+ title="(?P<title>[^"]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)
COLUMNS = tuple(
    Column(name=name, type=type_)
    for name, type_ in (
        ("id", "bigint"),
        ("name", "string"),
        ("ward", "string"),
        ("ssn", "string"),
        ("born", "date"),
        ("diagnosis", "string"),
        ("consent", "boolean"),
    )
)


def person(name: str, *roles: str) -> Identity:
    return replace(make_identity(name, roles=roles), issuer="https://login.hospital.example")


@pytest.fixture
def hospital(cedar: Any) -> Any:
    files = {block["title"]: block["text"] for block in BLOCK.finditer(PAGE.read_text("utf-8"))}
    cedar.write(files["policies/hospital.cedar"])
    cedar.entities(files["entities.json"])
    schema = cedar.folder.parent / "hospital.cedarschema"
    schema.write_text(files["hospital.cedarschema"])
    issuer = re.search(r'issuer = "(.*)"', files["sqe.toml"])
    assert issuer
    cedar.open(schema_path=schema, issuer=issuer[1])
    return cedar


@pytest.mark.parametrize(
    ("who", "rows", "hidden", "masked"),
    [
        (person("ann", "nurse"), "(\"ward\" IN ('A', 'B'))", {"ssn"}, {}),
        (person("dora", "doctor"), None, set(), {"ssn": "PartialMask"}),
        (person("rita", "researcher"), '("consent" = TRUE)', {"name", "ssn"}, {"id": "HashMask", "born": "YearMask"}),
    ],
)
def test_what_they_see(hospital: Any, make_table: Any, who: Identity, rows: str, hidden: set[str], masked: Any) -> None:
    table = make_table(columns=COLUMNS)
    decision = hospital.select(who, table)

    assert hospital.filter_for(who, table) == rows
    assert decision.hidden_columns == hidden
    assert {mask.column: type(mask.mask).__name__ for mask in decision.column_masks} == masked
    assert hospital.visible(who, [table.name, NamespaceName(catalog="lake", namespace=("hospital",))]) == ["allow"] * 2
    (written,) = hospital.ask(who, Access(action=Action.DELETE, resource=table))
    assert written.effect is Effect.DENY


@pytest.mark.parametrize(
    "who",
    [person("bob", "nurse"), person("eve"), replace(person("ann", "nurse", "doctor"), issuer="https://other.example")],
)
def test_who_sees_nothing(hospital: Any, make_table: Any, who: Identity) -> None:
    assert hospital.select(who, make_table(columns=COLUMNS)).effect is Effect.DENY


def test_researchers_do_not_see_other_tables(hospital: Any) -> None:
    other = ObjectName(catalog="lake", namespace=("hospital",), name="pay")

    assert hospital.visible(person("rita", "researcher"), [other]) == ["deny"]
    assert hospital.visible(person("ann", "nurse"), [other]) == ["allow"]


def test_a_renamed_number_denies(hospital: Any, make_table: Any) -> None:
    columns = [replace(column, name="number") if column.name == "ssn" else column for column in COLUMNS]

    assert hospital.select(person("dora", "doctor"), make_table(columns=columns)).effect is Effect.DENY


def test_the_page_names_every_key() -> None:
    from dataclasses import fields

    from sqe_policy_cedar.config import CedarConfig

    text = PAGE.read_text("utf-8")
    for key in fields(CedarConfig):
        assert f"`{key.name}`" in text
