"""Asks OPA: all objects of a statement in one request where `authz_path` is set, else one request for each of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from typing import Any

from sqe_core.spi import (
    Access,
    Action,
    Column,
    Decision,
    Effect,
    ExternalError,
    Identity,
    NamespaceName,
    ObjectName,
    PluginContext,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
    RequestContext,
    Resource,
    ResourceType,
    StartupError,
    VisibilityRequest,
)
from sqe_policy_opa.answer import read_all, read_one, read_result
from sqe_policy_opa.config import OpaConfig
from sqe_policy_opa.grants import OpaGrants
from sqe_policy_opa.listings import ListingCache, scope_of
from sqe_policy_opa.question import Asker, Json, object_key
from sqe_policy_opa.transport import Transport

# Below the server's own logger, whose level SQE_LOG sets; other libraries only warn.
_log = logging.getLogger("sqe_core.policy_opa")
_LISTED_AT_ONCE = 500
_MOST_IDS = 20
_SELF_TEST = "sqe_self_test"


class OpaEnforcer(OpaGrants, PolicyEnforcer):
    """A policy engine whose decisions are documents of OPA."""

    def __init__(
        self, config: OpaConfig, context: PluginContext, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._context = context
        self._transport = Transport(config, context, monotonic=monotonic)
        super().__init__(self._transport, config.data_prefix, context.clock)
        # As many as there are connections: more would only wait for one.
        self._workers = ThreadPoolExecutor(config.max_connections, thread_name_prefix="sqe-opa")
        self._ttl_secs = config.cache_ttl_secs if config.cache_max_entries else 0
        self._listings = ListingCache(config.cache_max_entries, self._ttl_secs, monotonic)

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        """Ask about every access, within one time for all of them."""
        if not request.accesses:
            return PolicyResponse(decisions=())
        asker = Asker(principal=request.principal, context=request.context, version=request.version)
        decisions, identifiers = self._ask(asker, request.accesses)
        decision_id = " ".join(identifiers[:_MOST_IDS]) or None
        if decision_id:
            _log.info("query %s was decided by OPA as %s", request.context.query_id, decision_id)
        return PolicyResponse(
            decisions=tuple(self._with_ttl(decision) for decision in decisions), decision_id=decision_id
        )

    def visible(self, request: VisibilityRequest) -> Sequence[Effect]:
        """Ask about DESCRIBE of each name that was not asked about a moment ago."""
        scope = scope_of(request.principal, request.context)
        generation = self._listings.generation
        effects = {name: self._listings.get(scope, name) for name in request.names}
        missing = [name for name, effect in effects.items() if effect is None]
        known = len(effects) - len(missing)
        self._context.metrics.count("sqe_policy_cache_hits_total", known, {"backend": "opa"})
        self._context.metrics.count("sqe_policy_cache_misses_total", len(missing), {"backend": "opa"})
        if missing:
            asker = Asker(principal=request.principal, context=request.context, version=request.version)
            decisions, _ = self._ask(asker, [_description(name) for name in missing])
            found = dict(zip(missing, decisions, strict=True))
            effects.update({name: decision.effect for name, decision in found.items()})
            answers = {name: (decision.effect, decision.ttl_secs) for name, decision in found.items()}
            self._listings.put(scope, answers, generation)
        return [effects[name] or Effect.DENY for name in request.names]

    def flush(self) -> None:
        self._listings.flush()

    def check(self) -> None:
        """Ask about somebody and something that do not exist: OPA has to answer in form, and had better deny."""
        context = RequestContext(protocol=_SELF_TEST, now=self._context.clock.now(), query_id=_SELF_TEST)
        nobody = Identity(issuer="sqe:self-test", subject=_SELF_TEST, username=_SELF_TEST, provider=_SELF_TEST)
        name = ObjectName(catalog=_SELF_TEST, namespace=(_SELF_TEST,), name=_SELF_TEST)
        table = Resource(name=name, columns=(Column(name="id", type="bigint"),))
        asker = Asker(principal=nobody, context=context)
        try:
            (decision,), _ = self._ask(asker, [Access(action=Action.SELECT, resource=table)])
        except ExternalError as error:
            path = self._config.authz_path or self._config.policy_path
            raise StartupError(
                f"The policy engine 'opa' cannot decide: {error.message}",
                hint=f"[policy.opa] asks for the document {path} at the OPA of `url`; is OPA running, and is its "
                "policy loaded?",
            ) from error
        if decision.effect is Effect.ALLOW and not decision.restricted:
            _log.warning(
                "OPA lets somebody whom nobody knows read a table that does not exist: does it deny by default?"
            )

    def close(self) -> None:
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._transport.close()

    def _ask(self, asker: Asker, accesses: Sequence[Access]) -> tuple[list[Decision], list[str]]:
        deadline = self._transport.deadline()
        if self._config.authz_path is None:
            return self._ask_for_each(asker, accesses, deadline)
        decisions: dict[int, Decision] = {}
        identifiers: list[str] = []
        for asked in _rounds(accesses):
            question = asker.about_all(accesses[place] for place in asked.places)
            result, identifier = self._evaluate(self._config.authz_path, question, deadline)
            found = read_all(result, asked.resources, asked.resources.keys() - asked.changed)
            decisions.update((place, found[object_key(accesses[place].resource.name)]) for place in asked.places)
            identifiers += [identifier] if identifier else []
        return [decisions[place] for place in range(len(accesses))], identifiers

    def _ask_for_each(
        self, asker: Asker, accesses: Sequence[Access], deadline: float
    ) -> tuple[list[Decision], list[str]]:
        if len(accesses) == 1:
            answers = [self._ask_for_one(asker, accesses[0], deadline)]
        else:
            pending = [self._workers.submit(self._ask_for_one, asker, access, deadline) for access in accesses]
            answers = _gather(pending, deadline)
        return [decision for decision, _ in answers], [identifier for _, identifier in answers if identifier]

    def _ask_for_one(self, asker: Asker, access: Access, deadline: float) -> tuple[Decision, str | None]:
        result, identifier = self._evaluate(self._config.policy_path, asker.about_one(access), deadline)
        return read_one(result, access.resource), identifier

    def _evaluate(self, path: str, question: Json, deadline: float) -> tuple[Any, str | None]:
        return read_result(self._transport.data("POST", path, deadline=deadline, document={"input": question}))

    def _with_ttl(self, decision: Decision) -> Decision:
        """Neither `[policy] cache_ttl_secs` nor OPA makes an answer last longer than `[policy.opa]` says."""
        ttl = self._ttl_secs if decision.ttl_secs is None else min(decision.ttl_secs, self._ttl_secs)
        return replace(decision, ttl_secs=ttl)


def _description(name: ObjectName | NamespaceName) -> Access:
    kind = ResourceType.SCHEMA if isinstance(name, NamespaceName) else ResourceType.TABLE
    return Access(action=Action.DESCRIBE, resource=Resource(name=name, type=kind))


@dataclass(frozen=True, slots=True)
class _Round:
    """One request: the objects by their keys, those of them that are not only read, and which accesses they are."""

    resources: dict[str, Resource]
    changed: set[str]
    places: list[int]

    def takes(self, key: str, resource: Resource, most: int) -> bool:
        if key in self.resources:
            return self.resources[key] == resource
        return len(self.resources) < most


def _rounds(accesses: Sequence[Access]) -> Sequence[_Round]:
    """A statement is one round, or two when it uses two branches of a table, whose key is the same."""
    listing = all(access.action is Action.DESCRIBE and not access.resource.columns for access in accesses)
    most = _LISTED_AT_ONCE if listing else len(accesses)
    rounds: list[_Round] = []
    for place, access in enumerate(accesses):
        key, resource = object_key(access.resource.name), access.resource
        found = next((one for one in rounds if one.takes(key, resource, most)), None)
        if found is None:
            found = _Round({}, set(), [])
            rounds.append(found)
        found.resources[key] = resource
        found.places.append(place)
        if access.action not in (Action.SELECT, Action.DESCRIBE):
            found.changed.add(key)
    return rounds


def _gather(
    pending: Sequence[Future[tuple[Decision, str | None]]], deadline: float
) -> list[tuple[Decision, str | None]]:
    try:
        return [future.result(max(0.0, deadline - time.monotonic())) for future in pending]
    except FutureTimeoutError as error:
        raise ExternalError("OPA did not answer in time") from error
    finally:
        for future in pending:
            future.cancel()
