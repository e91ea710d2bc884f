"""Policies, schema and entities that fit each other, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import cedarpy

from sqe_core.spi import Action
from sqe_policy_cedar.bounds import check_schema_text
from sqe_policy_cedar.circumstances import circumstances_of
from sqe_policy_cedar.entities import (
    EntityError,
    EntityGraph,
    check_names,
    columns_by_table,
)
from sqe_policy_cedar.files import PolicyFileError, Texts
from sqe_policy_cedar.names import CATALOG, COLUMN, ROW, SCHEMA, TABLE, TAG, USER, EntityUid
from sqe_policy_cedar.policies import (
    CONTEXT_OF_ALL,
    Policy,
    PolicyTextError,
    check_annotations,
    named_entities,
    named_types,
    policy_set,
    read_policies,
    shortened,
    used_context,
)

READ_COLUMN, READ_COLUMN_CLEAR, READ_ROW = "read_column", "read_column_clear", "read_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """One state of the files, understood."""

    policies: Mapping[str, Policy]
    policy_set: cedarpy.PolicySet
    entities: EntityGraph
    columns: Mapping[EntityUid, frozenset[EntityUid]]
    """The columns that policies or entities name, by table: all of them have to exist (POL-6)."""
    context_keys: frozenset[str]
    uses_tags: bool
    version: str

    def narrowed(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return of a context what some policy looks at: parsing it is what a question costs most."""
        if self.context_keys == CONTEXT_OF_ALL:
            return dict(context)
        return {key: value for key, value in context.items() if key in self.context_keys}

    @property
    def depends_on_circumstances(self) -> bool:
        """Whether the same question may be answered otherwise a moment later, or from another address."""
        return self.context_keys == CONTEXT_OF_ALL or bool(self.context_keys - {"columns", "ref"})


def built_in_schema() -> str:
    return files("sqe_policy_cedar").joinpath("sqe.cedarschema").read_text("utf-8")


def make_bundle(texts: Texts) -> Bundle:
    """Understand the files.

    Raises:
        PolicyFileError: something is wrong in them; the text says what, for the operator.
    """
    try:
        policies = read_policies(texts.policies, texts.catalog)
        schema = _schema(texts.schema)
        named = {uid for policy in policies.values() for uid in named_entities(policy.tree)}
        types = {name for policy in policies.values() for name in named_types(policy.tree)}
        _validate(texts, schema)
        try:
            entities = EntityGraph(texts.entities, schema, named, texts.catalog)
            check_names({*named, *entities.uids})
            columns = columns_by_table({*named, *entities.uids})
        except EntityError as error:
            raise PolicyFileError(f"entities: {error}") from error
        actions = [uid for uid in entities.uids if uid.type == "Action"]
        check_annotations(policies, {action: entities.ancestors([action]) for action in actions})
        _probe(schema)
        parsed = policy_set(policies)
    except PolicyTextError as error:
        raise PolicyFileError(f"policies: {error}") from error
    except RecursionError as error:
        raise PolicyFileError("the policies are nested too deeply") from error
    return Bundle(
        policies=policies,
        policy_set=parsed,
        entities=entities,
        columns=columns,
        context_keys=used_context([policy.tree for policy in policies.values()]),
        uses_tags=TAG in types,
        version=texts.digest,
    )


def _schema(text: str | None) -> cedarpy.Schema:
    try:
        written = built_in_schema() if text is None else text
        check_schema_text(written)
        # Cedar has two spellings of schemas.
        read = cedarpy.Schema.from_json_str if written.lstrip().startswith("{") else cedarpy.Schema.from_str
        return read(written)
    except ValueError as error:
        raise PolicyFileError(f"schema: {shortened(error)}") from error


def _validate(texts: Texts, schema: cedarpy.Schema) -> None:
    """Check the policies against the schema: what they compare exists and has the right type (POL-14)."""
    result = cedarpy.validate_policies("\n".join(text for _, text in texts.policies), schema)
    if not result.validation_passed:
        first = result.errors[0]
        policy = result.id_annotations_by_policy_id.get(first.policy_id, first.policy_id)
        message = " ".join(first.error.split())[:300]
        raise PolicyFileError(f'policy "{policy}" does not fit the schema: {message}')


# Valid exactly if the schema declares the attributes that SQE sets, with their types.
_WHAT_SQE_SETS = """
permit(principal is User, action == Action::"select", resource is Table) when {
  principal.username == "" && principal.issuer == "" && principal.subject == "" &&
  resource.name == "" && resource.catalog == ""
};
permit(principal is User, action == Action::"read_column", resource is Column) when {
  resource.name == "" && resource["type"] == ""
};
permit(principal is User, action == Action::"describe", resource is Schema) when {
  resource.name == "" && resource.catalog == ""
};
permit(principal is User, action == Action::"describe", resource is Catalog) when { resource.name == "" };
"""


def _probe(schema: cedarpy.Schema) -> None:
    """See that the schema knows everything that SQE tells and asks."""
    result = cedarpy.validate_policies(_WHAT_SQE_SETS, schema)
    if not result.validation_passed:
        raise PolicyFileError(f"schema: it does not declare what SQE sets: {shortened(result.errors[0].error)}")
    circumstances = circumstances_of("flight", datetime.now(UTC), "127.0.0.1")
    of_table = {**circumstances, "columns": ["a"], "ref": "main"}
    asked = [(action.value, EntityUid(TABLE, "c.s.t"), of_table) for action in Action]
    asked += [(action.value, EntityUid(SCHEMA, "c.s"), {**circumstances, "columns": []}) for action in Action]
    asked += [(action, EntityUid(COLUMN, "c.s.t.a"), circumstances) for action in (READ_COLUMN, READ_COLUMN_CLEAR)]
    asked += [(READ_ROW, EntityUid(ROW, "r"), circumstances)]
    asked += [(Action.DESCRIBE.value, EntityUid(CATALOG, "c"), {**circumstances, "columns": []})]
    requests = [
        {
            "principal": EntityUid(USER, "u").as_json(),
            "action": {"type": "Action", "id": action},
            "resource": uid.as_json(),
            "context": context,
        }
        for action, uid, context in asked
    ]
    for (action, _, _), answer in zip(asked, cedarpy.is_authorized_batch(requests, "", "[]", schema), strict=True):
        if answer.diagnostics.errors:
            reason = shortened(answer.diagnostics.errors[0])
            raise PolicyFileError(f'schema: it does not allow what SQE asks about Action::"{action}": {reason}')
