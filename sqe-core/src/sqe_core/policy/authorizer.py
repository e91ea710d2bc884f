"""Step 5: asks every policy engine once per statement and combines the answers restrictively (POL-8).

Deny wins; when all abstain the answer is deny; an engine that raises or answers out of form denies with an error
(POL-2, POL-4). Restrictions add up: filters are ANDed, hidden columns unite, the strictest mask wins. What a catalog
itself takes away from its user counts like an engine's answer that allows nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TypeVar, cast

from sqe_core.catalog.column_tags import tags_of_columns
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.policy.cache import DecisionCache, key_of, scope_of
from sqe_core.policy.masks import MaskWriter, strictest
from sqe_core.policy.read_restrictions import CatalogDecision, CatalogRestrictions
from sqe_core.policy.trail import DecisionTrail
from sqe_core.spi import policy as spi
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, ErrorCode, ExternalError
from sqe_core.spi.events import ObjectDecision
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action, Effect, Mask, ResourceType
from sqe_core.spi.sql import SqlExpression

_Answer = TypeVar("_Answer")
_Capability = TypeVar("_Capability")
_NO_MASKS: Mapping[str, Mask] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """One action on one object; `loaded` is None for what does not exist yet."""

    name: ObjectName
    action: Action
    loaded: TableMetadata | ViewMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the engines together allow."""

    denied: bool
    columns: tuple[Column, ...] = ()
    """The visible columns, in table order."""
    hidden: frozenset[str] = frozenset()
    filters: tuple[SqlExpression, ...] = ()
    """All of them hold for every row that the user sees."""
    masks: Mapping[str, Mask] = field(default_factory=lambda: _NO_MASKS)
    """The mask of each visible column that has one."""
    checks: tuple[SqlExpression, ...] = ()
    """All of them hold for every row that the user writes."""
    reasons: tuple[str, ...] = ()
    """What the engines say about it, for the audit and for administrators."""
    policy_version: str | None = None
    """The states of the policies that were used, as the engines name them."""
    current_only: bool = False
    """Whether old versions cannot be read under these restrictions."""

    @property
    def restricted(self) -> bool:
        """Whether some row or value is kept from the user."""
        return bool(self.hidden or self.filters or self.masks or self.checks)

    @property
    def unrestricted(self) -> bool:
        """Whether the user may read every column and row."""
        return not self.denied and not self.restricted


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the engines are told beside who and what."""

    protocol: str
    query_id: str
    client_address: str | None = None
    trail: DecisionTrail | None = field(default=None, compare=False, repr=False)
    """Where decisions are noted; None notes nothing."""
    about_another: bool = False
    """Whether it is somebody else's access that is looked at. No catalog can be asked without that user's login."""

    def refused(self, name: ObjectName | NamespaceName) -> None:
        """Note that a statement ends because of what was decided about this, whatever its user is told."""
        if self.trail is not None:
            self.trail.refused(name)

    def unrecorded(self) -> Circumstances:
        """Return the same for what is only looked at on the way."""
        return replace(self, trail=None)

    def of_another(self) -> Circumstances:
        """Return the same for looking at somebody else's access."""
        return replace(self, about_another=True)


class Authorizer:
    """Combines the configured policy engines, and what catalogs restrict. There is always at least one engine."""

    def __init__(
        self,
        enforcers: Sequence[spi.PolicyEnforcer],
        *,
        masks: MaskWriter | None = None,
        cache: DecisionCache | None = None,
        catalogs: CatalogRestrictions | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        admins: Callable[[Identity], bool] = lambda identity: False,
        closed: Callable[[str], bool] = lambda catalog: False,
    ) -> None:
        """Combine engines.

        `closed` says whether what no policy covers in a catalog is for its maker and for administrators only.
        """
        if not enforcers:
            raise ValueError("a policy engine is needed, if only allow_all (POL-1)")
        self._enforcers = tuple(enforcers)
        self._enforces = any(enforcer.enforces for enforcer in enforcers)
        self._catalogs = catalogs
        self.masks = masks or MaskWriter()
        self._cache = cache or DecisionCache()
        self._now = now
        self._admins = admins
        self._closed = closed

    @property
    def enforces(self) -> bool:
        """Whether anything may be kept from anybody."""
        return self._enforces or (self._catalogs is not None and self._catalogs.some_may())

    def of_policies(self) -> Authorizer:
        """Return what decides about the tables that policies look into: catalogs alone may restrict those."""
        return Authorizer(
            [AllowAllEnforcer()], cache=DecisionCache(max_entries=0), catalogs=self._catalogs, now=self._now
        )

    def stores(self, capability: Callable[..., _Capability]) -> Sequence[_Capability]:
        """Return the engines that can do more than decide, for example `SupportsGrants`."""
        kind = cast("type[_Capability]", capability)
        return [enforcer for enforcer in self._enforcers if isinstance(enforcer, kind)]

    def flush(self) -> None:
        """Forget every decision, for all users: a grant or a policy has changed (POL-9)."""
        try:
            if self._catalogs is not None:
                self._catalogs.flush()
            for enforcer in self._enforcers:
                enforcer.flush()
        finally:
            # The last: what an engine still said from its own memory until now is not kept either.
            self._cache.flush()

    @property
    def generation(self) -> int:
        """A number that grows with each flush: what was decided in an earlier one may not hold any more."""
        return self._cache.generation

    def decide(
        self, identity: Identity, requests: Sequence[AccessRequest], circumstances: Circumstances
    ) -> Mapping[tuple[ObjectName, Action], Verdict]:
        """Decide all accesses of a statement in one request to each engine."""
        if not requests:
            return {}
        accesses = tuple(
            spi.Access(action=request.action, resource=_resource(request.name, request.loaded)) for request in requests
        )
        limits = self._limits(identity, requests, circumstances)
        answers = self._ask(identity, accesses, circumstances)
        combined = {
            (request.name, request.action): _combine(
                request, [answer[place] for answer in answers], limits.get(request.name)
            )
            for place, request in enumerate(requests)
        }
        if circumstances.trail is not None:
            for request, asked in zip(requests, accesses, strict=True):
                noted = _noted(asked, combined[request.name, request.action])
                circumstances.trail.decided(identity.key, identity.username, noted)
        return combined

    def _limits(
        self, identity: Identity, requests: Sequence[AccessRequest], circumstances: Circumstances
    ) -> Mapping[ObjectName, CatalogDecision]:
        """Return what the catalogs take away, of each table that they restrict for this user."""
        if self._catalogs is None or circumstances.about_another:
            return {}
        limits: dict[ObjectName, CatalogDecision] = {}
        for name, table in {request.name: request.loaded for request in requests}.items():
            limit = self._catalogs.decide(identity, name, table) if isinstance(table, TableMetadata) else None
            if limit is not None:
                limits[name] = limit
        return limits

    def denies(
        self, identity: Identity, name: ObjectName | NamespaceName, action: Action, circumstances: Circumstances
    ) -> bool:
        asked = spi.Access(action=action, resource=_resource(name, None))
        answers = self._ask(identity, (asked,), circumstances)
        decisions = [answer[0] for answer in answers]
        denied = _effect(decisions) is not Effect.ALLOW
        if circumstances.trail is not None:
            access = Verdict(denied=denied, reasons=_reasons(decisions), policy_version=_version(decisions))
            circumstances.trail.decided(identity.key, identity.username, _noted(asked, access))
        return denied

    def require(
        self, identity: Identity, name: ObjectName | NamespaceName, action: Action, circumstances: Circumstances
    ) -> None:
        """Raise unless the action is allowed. For names that may be known to the user: what is created."""
        if self.denies(identity, name, action, circumstances):
            raise AccessDeniedError(f"You may not {action.value.replace('_', ' ')} {name}")

    def visible(
        self, identity: Identity, names: Sequence[ObjectName | NamespaceName], circumstances: Circumstances
    ) -> frozenset[ObjectName | NamespaceName]:
        if not names:
            return frozenset()
        shown = set(names)
        for principal in _principals(identity):
            context = self._context(circumstances, principal, {name.catalog for name in names})
            request = spi.VisibilityRequest(principal=principal, names=tuple(names), context=context)
            effects = [self._checked(partial(enforcer.visible, request), len(names)) for enforcer in self._enforcers]
            if effects and all(each.count(Effect.ALLOW) == len(names) for each in effects):
                continue  # the usual case, of thousands of names at once
            shown -= {
                name
                for place, name in enumerate(names)
                if _effect_of([each[place] for each in effects]) is not Effect.ALLOW
            }
        return frozenset(shown)

    def visible_columns(
        self,
        identity: Identity,
        name: ObjectName,
        loaded: TableMetadata | ViewMetadata | None,
        circumstances: Circumstances,
    ) -> tuple[Column, ...]:
        """Return the columns that exist for this user (STMT-9)."""
        resource = _resource(name, loaded)
        # What a reader does not see is not described either, whatever an engine says of descriptions alone.
        accesses = tuple(spi.Access(action=action, resource=resource) for action in (Action.DESCRIBE, Action.SELECT))
        answers = self._ask(identity, accesses, circumstances)
        # Names of nothing are asked about too, and have no columns (ERR-5).
        if loaded is None or _effect([answer[0] for answer in answers]) is not Effect.ALLOW:
            return ()
        hidden = _hidden([decision for answer in answers for decision in answer], loaded.columns)
        return tuple(column for column in loaded.columns if column.name not in hidden)

    def _ask(
        self, identity: Identity, accesses: tuple[spi.Access, ...], circumstances: Circumstances
    ) -> list[Sequence[spi.Decision]]:
        began = time.monotonic()
        groups = [self._ask_about(principal, accesses, circumstances) for principal in _principals(identity)]
        if circumstances.trail is not None:
            circumstances.trail.asked(seconds=time.monotonic() - began)
        answers = [answer for group in groups for answer in group]
        if len(groups) > 1:
            # Allowed with all roles and with those in use; restricted by whatever either says.
            effects = [
                [_effect([answer[place] for answer in group]) for group in groups] for place in range(len(accesses))
            ]
            answers.append(
                [
                    spi.Decision.allow()
                    if all(effect is Effect.ALLOW for effect in each)
                    else spi.Decision.deny("not with the roles in use")
                    for each in effects
                ]
            )
        return answers

    def _ask_about(
        self, principal: Identity, accesses: tuple[spi.Access, ...], circumstances: Circumstances
    ) -> list[Sequence[spi.Decision]]:
        context = self._context(circumstances, principal, {access.resource.name.catalog for access in accesses})
        request = spi.PolicyRequest(principal=principal, accesses=accesses, context=context)
        scope = scope_of(principal)
        keys = [key_of(scope, access, request.context) for access in accesses]
        trail = circumstances.trail
        return [self._answers_of(number, request, keys, trail) for number in range(len(self._enforcers))]

    def _answers_of(
        self, number: int, request: spi.PolicyRequest, keys: Sequence[Hashable], trail: DecisionTrail | None
    ) -> Sequence[spi.Decision]:
        """Answer what is known, and ask the engine for all the rest at once (POL-3)."""
        generation = self._cache.generation
        known = [self._cache.get((number, key)) for key in keys]
        missing = [place for place, decision in enumerate(known) if decision is None]
        if not missing:
            return [decision for decision in known if decision is not None]
        asked = replace(request, accesses=tuple(request.accesses[place] for place in missing))
        answers = self._checked(lambda: self._decisions_of(number, asked, trail), len(missing))
        for place, decision in zip(missing, answers, strict=True):
            known[place] = decision
            self._cache.put((number, keys[place]), decision, generation=generation)
        return [decision for decision in known if decision is not None]

    def _decisions_of(
        self, number: int, asked: spi.PolicyRequest, trail: DecisionTrail | None
    ) -> Sequence[spi.Decision]:
        response = self._enforcers[number].decide(asked)
        if trail is not None:
            trail.answered(response.decision_id)
        return response.decisions

    @staticmethod
    def _checked(ask: Callable[[], Sequence[_Answer]], expected: int) -> Sequence[_Answer]:
        """Whatever goes wrong in an engine is "unknown", and unknown denies with an error (POL-2)."""
        try:
            answers = ask()
        except Exception as error:
            raise ExternalError("The policy engine gave no answer", code=ErrorCode.EXECUTION_FAILED) from error
        if len(answers) != expected:
            raise _unusable()
        return answers

    def _context(self, circumstances: Circumstances, principal: Identity, catalogs: Set[str]) -> spi.RequestContext:
        return spi.RequestContext(
            protocol=circumstances.protocol,
            now=self._now(),
            query_id=circumstances.query_id,
            client_address=circumstances.client_address,
            administrator=self._admins(principal),
            closed_catalogs=frozenset(filter(self._closed, catalogs)),
        )


def _principals(identity: Identity) -> tuple[Identity, ...]:
    """Return whom the engines are asked about: with SET ROLE, somebody with the roles in use and with all of them.

    A role restricts as well as it allows; whoever leaves one out must not get rid of its restrictions.
    """
    principal = identity.without_tokens()
    if identity.all_roles is None:
        return (principal,)
    return replace(principal, roles=identity.all_roles, all_roles=None), principal


def _resource(name: ObjectName | NamespaceName, loaded: TableMetadata | ViewMetadata | None) -> spi.Resource:
    if isinstance(name, NamespaceName):
        return spi.Resource(name=name, type=ResourceType.SCHEMA)
    if loaded is None:
        return spi.Resource(name=name)
    return spi.Resource(
        name=name,
        type=ResourceType.VIEW if isinstance(loaded, ViewMetadata) else ResourceType.TABLE,
        columns=loaded.columns,
        uuid=loaded.uuid,
        schema_id=loaded.schema_id if isinstance(loaded, TableMetadata) else None,
        column_tags=tags_of_columns(loaded.properties, [column.name for column in loaded.columns]),
    )


def _effect_of(effects: Sequence[Effect]) -> Effect:
    if Effect.DENY in effects or Effect.ALLOW not in effects:
        return Effect.DENY
    return Effect.ALLOW


def _effect(decisions: Sequence[spi.Decision]) -> Effect:
    return _effect_of([decision.effect for decision in decisions])


def _unusable() -> ExternalError:
    return ExternalError("The policy engine gave no usable answer", code=ErrorCode.EXECUTION_FAILED)


def _hidden(decisions: Sequence[spi.Decision], columns: Sequence[Column]) -> frozenset[str]:
    hidden = frozenset[str]().union(*(decision.hidden_columns for decision in decisions))
    if not hidden <= {column.name for column in columns}:
        # A policy that names a missing column denies: after a rename it would protect nothing (POL-6).
        raise _unusable()
    return hidden


def _masks(decisions: Sequence[spi.Decision], columns: Sequence[Column]) -> Mapping[str, Mask]:
    found: dict[str, list[Mask]] = {}
    for decision in decisions:
        for mask in decision.column_masks:
            found.setdefault(mask.column, []).append(mask.mask)
    if not found.keys() <= {column.name for column in columns}:
        raise _unusable()
    return {column: strictest(masks) for column, masks in found.items()}


def _reasons(decisions: Sequence[spi.Decision]) -> tuple[str, ...]:
    return tuple(decision.reason for decision in decisions if decision.reason)


def _version(decisions: Sequence[spi.Decision]) -> str | None:
    versions = dict.fromkeys(decision.policy_version for decision in decisions if decision.policy_version)
    return ", ".join(versions) or None


def _noted(asked: spi.Access, access: Verdict) -> ObjectDecision:
    """Say what was decided in numbers and names of columns, never in policy text (OBS-2)."""
    return ObjectDecision(
        name=asked.resource.name,
        type=asked.resource.type,
        action=asked.action,
        allowed=not access.denied,
        row_filters=len(access.filters),
        masked_columns=tuple(sorted(access.masks)),
        hidden_columns=tuple(sorted(access.hidden)),
        reason="; ".join(dict.fromkeys(access.reasons)),
        policy_version=access.policy_version,
    )


def _combine(
    request: AccessRequest, decisions: Sequence[spi.Decision], limit: CatalogDecision | None = None
) -> Verdict:
    if limit is not None:
        decisions = (*decisions, limit.decision)
    reasons, version = _reasons(decisions), _version(decisions)
    if _effect(decisions) is not Effect.ALLOW:
        return Verdict(denied=True, reasons=reasons, policy_version=version)
    # Without duplicates, in the order of the engines: two of them may share a filter.
    filters = tuple(dict.fromkeys(one for decision in decisions for one in decision.row_filters))
    checks = tuple(
        dict.fromkeys(
            one
            for decision in decisions
            for one in (decision.row_filters if decision.check is None else decision.check)
        )
    )
    allowed = Verdict(denied=False, filters=filters, checks=checks, reasons=reasons, policy_version=version)
    if request.loaded is None:
        # Nothing is there yet; whoever creates it is told what a policy says about the name, and may not get around it.
        return replace(
            allowed,
            hidden=frozenset[str]().union(*(decision.hidden_columns for decision in decisions)),
            masks={mask.column: mask.mask for decision in decisions for mask in decision.column_masks},
        )
    columns = request.loaded.columns
    hidden = _hidden(decisions, columns)
    masks = _masks(decisions, columns)
    if columns and len(hidden) == len(columns):
        return Verdict(denied=True, reasons=reasons, policy_version=version)  # ENF-10
    return replace(
        allowed,
        columns=tuple(column for column in columns if column.name not in hidden),
        hidden=hidden,
        # Hidden beats masked.
        masks={column: mask for column, mask in masks.items() if column not in hidden},
        current_only=limit is not None and limit.current_only,
    )
