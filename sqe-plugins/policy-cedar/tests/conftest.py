"""A folder of policies, and somebody who asks about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sqe_core.spi import (
    Access,
    Action,
    Column,
    Decision,
    Identity,
    NamespaceName,
    ObjectName,
    PolicyRequest,
    RequestContext,
    Resource,
    VisibilityRequest,
)
from sqe_core.testing.fakes import make_identity
from sqe_policy_cedar.bundle import built_in_schema
from sqe_policy_cedar.config import CedarConfig
from sqe_policy_cedar.enforcer import CedarEnforcer

COLUMNS = (
    Column(name="id", type="bigint", nullable=False),
    Column(name="name", type="string"),
    Column(name="ward", type="string"),
    Column(name="age", type="int"),
    Column(name="vip", type="boolean"),
    Column(name="born", type="date"),
)
# The columns above as attributes of rows.
ROW = (
    "entity Row in [Table] = { id: Long, name: String, ward: String, age: Long, vip: Bool, born: String, odd?: Long };"
)
READ_ALL = '@id("read") permit(principal in Role::"nurse", action in Action::"read", resource);\n'


class Cedar:
    """Writes files, turns time, asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "policies"
        self.folder.mkdir()
        self.now = 0.0
        self.settings: dict[str, Any] = {}
        self.enforcer: CedarEnforcer | None = None

    def write(self, text: str, name: str = "main.cedar") -> Path:
        file = self.folder / name
        file.write_text(text, "utf-8")
        return file

    def schema(self, *changes: tuple[str, str]) -> None:
        text = built_in_schema()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = self.folder.parent / "own.cedarschema"
        file.write_text(text, "utf-8")
        self.settings["schema_path"] = file

    def rows(self) -> None:
        self.schema(("entity Row in [Table];", ROW), ("  email?: String,", "  email?: String,\n  wards?: Set<String>,"))

    def entities(self, *entities: Mapping[str, Any] | str) -> Path:
        file = self.folder.parent / "entities.json"
        file.write_text(entities[0] if entities and isinstance(entities[0], str) else json.dumps(entities), "utf-8")
        self.settings["entities_path"] = file
        return file

    def config(self) -> CedarConfig:
        return CedarConfig(policies_path=self.folder, **self.settings)

    def open(self, policies: str = "", **settings: Any) -> CedarEnforcer:
        if policies:
            self.write(policies)
        self.settings.update(settings)
        self.enforcer = CedarEnforcer(self.config(), monotonic=lambda: self.now)
        return self.enforcer

    def ask(
        self, who: Identity, *accesses: Access, claims: Mapping[str, Any] | None = None, address: str | None = None
    ) -> list[Decision]:
        assert self.enforcer is not None
        if claims is not None:
            who = replace(who, claims=claims)
        context = RequestContext(
            protocol="flight", now=datetime(2026, 1, 1, 12, tzinfo=UTC), query_id="q", client_address=address
        )
        return list(self.enforcer.decide(PolicyRequest(principal=who, accesses=accesses, context=context)).decisions)

    def select(self, who: Identity, resource: Resource | None = None, **more: Any) -> Decision:
        (decision,) = self.ask(who, Access(action=Action.SELECT, resource=resource or table()), **more)
        return decision

    def filter_for(self, who: Identity, resource: Resource | None = None) -> str | None:
        decision = self.select(who, resource)
        assert decision.effect.value == "allow", decision.reason
        if not decision.row_filters:
            return None
        (found,) = decision.row_filters
        assert found.dialect == "sqe"
        return found.text

    def visible(self, who: Identity, names: Iterable[ObjectName | NamespaceName]) -> list[str]:
        assert self.enforcer is not None
        context = RequestContext(protocol="flight", now=datetime(2026, 1, 1, tzinfo=UTC), query_id="q")
        request = VisibilityRequest(principal=who, names=tuple(names), context=context)
        return [effect.value for effect in self.enforcer.visible(request)]


def table(
    name: str = "patients",
    columns: Sequence[Column] = COLUMNS,
    namespace: tuple[str, ...] = ("hospital",),
    **more: Any,
) -> Resource:
    """A table."""
    return Resource(name=ObjectName(catalog="lake", namespace=namespace, name=name), columns=tuple(columns), **more)


@pytest.fixture
def cedar(tmp_path: Path) -> Cedar:
    """An engine that is opened with `open`."""
    return Cedar(tmp_path)


@pytest.fixture
def make_table() -> Any:
    """Describes tables."""
    return table


@pytest.fixture
def nurse() -> Identity:
    """A nurse."""
    return make_identity("ann", roles=("nurse",))


@pytest.fixture
def stranger() -> Identity:
    """Somebody without roles."""
    return make_identity("eve")
