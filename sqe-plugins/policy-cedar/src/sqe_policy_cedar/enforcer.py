"""Decides with Cedar: one batch for all tables and columns of a statement, one residual for the rows of each table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import cedarpy

from sqe_core.spi import (
    Action,
    ColumnMask,
    Decision,
    Effect,
    ErrorCode,
    ExternalError,
    Identity,
    Mask,
    NamespaceName,
    ObjectName,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
    RequestContext,
    Resource,
    SqlExpression,
    StartupError,
    VisibilityRequest,
)
from sqe_policy_cedar.annotations import strictest
from sqe_policy_cedar.bundle import READ_COLUMN, READ_COLUMN_CLEAR, READ_ROW, Bundle
from sqe_policy_cedar.circumstances import chosen_claims, circumstances_of
from sqe_policy_cedar.config import CedarConfig
from sqe_policy_cedar.entities import Entity, object_entities, principal_entity, resource_entities
from sqe_policy_cedar.files import PolicyFiles
from sqe_policy_cedar.names import EntityUid, column_uid, object_uid, principal_uid
from sqe_policy_cedar.reloading import PolicyStore
from sqe_policy_cedar.rows import RowTranslator, UntranslatableError

_READS_ROWS = frozenset({Action.SELECT, Action.INSERT, Action.UPDATE, Action.DELETE, Action.MERGE, Action.TRUNCATE})
_DEEPEST_NAMESPACE = 50
_NO_ROWS = "no policy permits to read rows"


class _Reuse(TypedDict):
    """What every decision says about its life."""

    ttl_secs: int
    policy_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    allowed: bool
    policies: tuple[str, ...]
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Restrictions:
    """What keeps a table from its reader, whatever the action."""

    failure: str = ""
    """Why every access is denied."""
    hidden: frozenset[str] = frozenset()
    masks: tuple[ColumnMask, ...] = ()
    rows: bool | SqlExpression = True
    """The filter; True for all rows, False for none."""


class CedarEnforcer(PolicyEnforcer):
    def __init__(self, config: CedarConfig, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._store = PolicyStore(PolicyFiles(config), monotonic=monotonic)
        try:
            self._store.check()
        except ExternalError as error:
            raise StartupError(error.message) from error

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        bundle = self._store.current()
        if self._is_foreign(request.principal):
            denied = Decision.deny("the issuer of the identity is not the configured one")
            return PolicyResponse(decisions=(denied,) * len(request.accesses))
        resources: list[Resource] = []
        places: list[int] = []
        for access in request.accesses:
            if access.resource not in resources:
                resources.append(access.resource)
            places.append(resources.index(access.resource))
        if bundle.uses_tags and any(resource.column_tags is None for resource in resources):
            raise ExternalError("The tags of a table are not known", code=ErrorCode.EXECUTION_FAILED)
        decisions: list[Decision | None] = [None] * len(request.accesses)
        for round_ in _rounds(resources):
            question = _Question(bundle, self._config, request.principal, request.context)
            for place in round_:
                question.add_resource(resources[place])
            mine = [(index, access) for index, access in enumerate(request.accesses) if places[index] in round_]
            actions = question.ask(
                [(access.action.value, object_uid(access.resource.name), access.resource) for _, access in mine],
                [resources[place] for place in round_],
            )
            for (index, access), answer in zip(mine, actions, strict=True):
                decisions[index] = _decision(bundle, access.action, answer, question.restrictions(access.resource))
        return PolicyResponse(decisions=tuple(decision for decision in decisions if decision is not None))

    def visible(self, request: VisibilityRequest) -> Sequence[Effect]:
        """Show what `describe` is permitted on."""
        bundle = self._store.current()
        if self._is_foreign(request.principal):
            return [Effect.DENY] * len(request.names)
        question = _Question(bundle, self._config, request.principal, request.context)
        for name in request.names:
            question.add_object(name)
        described = [(Action.DESCRIBE.value, object_uid(name), None) for name in request.names]
        answers = question.ask(described, [])
        return [Effect.ALLOW if answer.allowed and not answer.failed else Effect.DENY for answer in answers]

    def flush(self) -> None:
        self._store.look_again()

    def check(self) -> None:
        """Raise when the policies are broken, with the file and the reason."""
        self._store.check()

    def _is_foreign(self, identity: Identity) -> bool:
        return self._config.issuer is not None and identity.issuer != self._config.issuer


class _Question:
    """One batch: who asks, about which entities, and what Cedar said of columns and rows."""

    def __init__(self, bundle: Bundle, config: CedarConfig, identity: Identity, context: RequestContext) -> None:
        self._bundle = bundle
        self._principal = principal_uid(identity, config.principal)
        self._entities: dict[EntityUid, Entity] = {}
        self.add([principal_entity(self._principal, identity)])
        self._context = circumstances_of(context.protocol, context.now, context.client_address)
        self._context["claims"] = chosen_claims(identity.claims, config.claims)
        self._found: list[tuple[Resource, _Restrictions]] = []

    def add(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            self._entities[entity.uid] = entity

    def add_object(self, name: ObjectName | NamespaceName) -> None:
        if len(name.namespace) > _DEEPEST_NAMESPACE:
            raise ExternalError("A namespace has too many parts for Cedar", code=ErrorCode.EXECUTION_FAILED)
        self.add(object_entities(name))

    def add_resource(self, resource: Resource) -> None:
        self.add_object(resource.name)
        self.add(resource_entities(resource))

    def restrictions(self, resource: Resource) -> _Restrictions:
        return next((found for known, found in self._found if known == resource), _Restrictions())

    def ask(
        self, actions: Sequence[tuple[str, EntityUid, Resource | None]], tables: Sequence[Resource]
    ) -> list[_Answer]:
        """Ask about actions, and about all columns and the rows of tables, in one batch.

        Returns:
            One answer per action.
        """
        graph = self._bundle.entities.with_question(self._entities)
        plain = self._written(self._context)
        requests = [
            self._request(action, uid, self._written({**self._context, **_of_table(resource)}))
            for action, uid, resource in actions
        ]
        columns = [(table, column.name) for table in tables for column in _columns(table)]
        for table, column in columns:
            for action in (READ_COLUMN, READ_COLUMN_CLEAR):
                requests.append(self._request(action, column_uid(_name(table), column), plain))
        answers = self._answers(requests, graph)
        pairs = iter(answers[len(actions) :])
        for table in tables:
            if _columns(table):
                judged = [(column.name, next(pairs), next(pairs)) for column in table.columns]
                self._found.append((table, self._restrictions_of(table, judged, graph)))
        return answers[: len(actions)]

    def _restrictions_of(
        self, table: Resource, judged: Sequence[tuple[str, _Answer, _Answer]], graph: cedarpy.Entities
    ) -> _Restrictions:
        name = _name(table)
        there = {column_uid(name, column.name) for column in table.columns}
        if not self._bundle.columns.get(object_uid(name), frozenset()) <= there:
            # After a rename, a policy on the old name would protect nothing (POL-6).
            return _Restrictions(failure="policies name a column that the table does not have")
        for column, readable, clear in judged:
            failed = readable if readable.failed else clear
            if failed.failed:
                return _Restrictions(failure=f"{_shown(failed)} failed on the column {column}")
        try:
            rows = self._rows(table, graph)
        except UntranslatableError as error:
            return _Restrictions(failure=f"the row filter cannot be made: {error}")
        masked = [
            (column, readable, clear) for column, readable, clear in judged if readable.allowed and not clear.allowed
        ]
        return _Restrictions(
            hidden=frozenset(column for column, readable, _ in judged if not readable.allowed),
            masks=tuple(
                ColumnMask(column=column, mask=strictest(self._masks((*readable.policies, *clear.policies))))
                for column, readable, clear in masked
            ),
            rows=rows,
        )

    def _masks(self, policies: Iterable[str]) -> list[Mask]:
        found = [self._bundle.policies[own_id].mask for own_id in policies]
        return [mask for mask in found if mask is not None]

    def _rows(self, table: Resource, graph: cedarpy.Entities) -> bool | SqlExpression:
        request = {
            "principal": self._principal.as_text(),
            "action": f'Action::"{READ_ROW}"',
            "context": self._written(self._context),
        }
        result = cedarpy.is_authorized_partial(request, self._bundle.policy_set, graph)
        if result.diagnostics.errors:
            raise UntranslatableError("a policy failed")
        ancestors = self._bundle.entities.ancestors([object_uid(table.name)], self._entities)
        return RowTranslator(table.columns, ancestors).row_filter(result.residuals, self._bundle.policies)

    def _answers(self, requests: list[dict[str, Any]], graph: cedarpy.Entities) -> list[_Answer]:
        results = cedarpy.is_authorized_batch(requests, self._bundle.policy_set, graph) if requests else []
        if len(results) != len(requests):
            raise ExternalError("Cedar did not answer every question", code=ErrorCode.EXECUTION_FAILED)
        return [_answer(result) for result in results]

    def _request(self, action: str, resource: EntityUid, context: str) -> dict[str, Any]:
        return {
            "principal": self._principal.as_json(),
            "action": {"type": "Action", "id": action},
            "resource": resource.as_json(),
            "context": context,
        }

    def _written(self, context: Mapping[str, Any]) -> str:
        return json.dumps(self._bundle.narrowed(context))


def _answer(result: cedarpy.AuthzResult) -> _Answer:
    if result.decision is cedarpy.Decision.NoDecision:
        raise ExternalError("Cedar did not understand the question", code=ErrorCode.EXECUTION_FAILED)
    # A policy that failed was skipped: it may have been a forbid (POL-14).
    if result.diagnostics.errors:
        return _Answer(allowed=False, policies=(), failed=True)
    return _Answer(allowed=result.allowed, policies=tuple(result.diagnostics.reasons))


def _decision(bundle: Bundle, action: Action, answer: _Answer, found: _Restrictions) -> Decision:
    # Denials too are reused no longer: files are looked at every second, and nobody is locked out for more.
    reuse: _Reuse = {"ttl_secs": 0 if bundle.depends_on_circumstances else 1, "policy_version": bundle.version}
    if answer.failed or not answer.allowed:
        return Decision(effect=Effect.DENY, reason=f"{_shown(answer)} on Action {action.value}", **reuse)
    if found.failure:
        return Decision(effect=Effect.DENY, reason=found.failure, **reuse)
    filters: tuple[SqlExpression, ...] = ()
    if action in _READS_ROWS:
        if isinstance(found.rows, SqlExpression):
            filters = (found.rows,)
        elif not found.rows and action is not Action.INSERT:
            return Decision(effect=Effect.DENY, reason=_NO_ROWS, **reuse)
    return Decision(
        effect=Effect.ALLOW,
        reason=_shown(answer),
        row_filters=filters,
        column_masks=found.masks if action in _READS_ROWS else (),
        hidden_columns=found.hidden,
        **reuse,
    )


def _shown(answer: _Answer) -> str:
    if answer.failed:
        return "a policy failed"
    if not answer.policies:
        return "no policy permits it"
    return f"policies {', '.join(answer.policies)}"


def _name(table: Resource) -> ObjectName:
    if not isinstance(table.name, ObjectName):
        raise TypeError(table.name)
    return table.name


def _columns(resource: Resource) -> Sequence[Any]:
    return resource.columns if isinstance(resource.name, ObjectName) else ()


def _of_table(resource: Resource | None) -> dict[str, Any]:
    if resource is None:
        return {"columns": []}
    context: dict[str, Any] = {"columns": [column.name for column in resource.columns]}
    return context if resource.ref is None else {**context, "ref": resource.ref}


def _rounds(resources: Sequence[Resource]) -> list[list[int]]:
    """Distribute resources over questions: one table in two states is two entities of one name."""
    rounds: list[list[int]] = []
    for place, resource in enumerate(resources):
        for round_ in rounds:
            if all(resources[other].name != resource.name for other in round_):
                round_.append(place)
                break
        else:
            rounds.append([place])
    return rounds
