"""Step 5: asks every policy engine once per statement and combines the answers restrictively (POL-8).

Deny wins; when all abstain the answer is deny; an engine that raises or answers out of form denies with an error
(POL-2, POL-4). Restrictions add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from sqe_core.spi import policy as spi
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, ErrorCode, ExternalError, NotSupportedError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action, Effect, ResourceType

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """One action on one object; `loaded` is None for what does not exist yet."""

    name: ObjectName
    action: Action
    loaded: TableMetadata | ViewMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What the engines together allow."""

    denied: bool
    columns: tuple[Column, ...] = ()
    """The visible columns, in table order."""
    hidden: frozenset[str] = frozenset()

    @property
    def unrestricted(self) -> bool:
        """Whether the user may read every column and row."""
        return not self.denied and not self.hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the engines are told beside who and what."""

    protocol: str
    query_id: str
    client_address: str | None = None


class Authorizer:
    """Combines the configured policy engines. There is always at least one."""

    def __init__(
        self, enforcers: Sequence[spi.PolicyEnforcer], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if not enforcers:
            raise ValueError("a policy engine is needed, if only allow_all (POL-1)")
        self._enforcers = tuple(enforcers)
        self.enforces = any(enforcer.enforces for enforcer in enforcers)
        self._now = now

    def decide(
        self, identity: Identity, requests: Sequence[AccessRequest], circumstances: Circumstances
    ) -> Mapping[tuple[ObjectName, Action], Access]:
        """Decide all accesses of a statement in one request to each engine."""
        if not requests:
            return {}
        accesses = tuple(
            spi.Access(action=request.action, resource=_resource(request.name, request.loaded)) for request in requests
        )
        answers = self._ask(identity, accesses, circumstances)
        return {
            (request.name, request.action): _combine(request, [answer[place] for answer in answers])
            for place, request in enumerate(requests)
        }

    def denies(
        self, identity: Identity, name: ObjectName | NamespaceName, action: Action, circumstances: Circumstances
    ) -> bool:
        """Whether an action on an object or a schema is refused."""
        answers = self._ask(identity, (spi.Access(action=action, resource=_resource(name, None)),), circumstances)
        return _effect([answer[0] for answer in answers]) is not Effect.ALLOW

    def require(
        self, identity: Identity, name: ObjectName | NamespaceName, action: Action, circumstances: Circumstances
    ) -> None:
        """Raise unless the action is allowed. For names that may be known to the user: what is created."""
        if self.denies(identity, name, action, circumstances):
            raise AccessDeniedError(f"You may not {action.value.replace('_', ' ')} {name}")

    def visible(
        self, identity: Identity, names: Sequence[ObjectName | NamespaceName], circumstances: Circumstances
    ) -> frozenset[ObjectName | NamespaceName]:
        """Return the names that may appear in a listing."""
        if not names:
            return frozenset()
        request = spi.VisibilityRequest(
            principal=identity.without_tokens(), names=tuple(names), context=self._context(circumstances)
        )
        effects = [self._checked(partial(enforcer.visible, request), len(names)) for enforcer in self._enforcers]
        return frozenset(
            name for place, name in enumerate(names) if _effect_of([each[place] for each in effects]) is Effect.ALLOW
        )

    def visible_columns(
        self, identity: Identity, name: ObjectName, columns: tuple[Column, ...], circumstances: Circumstances
    ) -> tuple[Column, ...]:
        """Return the columns that exist for this user (STMT-9)."""
        resource = spi.Resource(name=name, columns=columns)
        # What a reader does not see is not described either, whatever an engine says of descriptions alone.
        accesses = tuple(spi.Access(action=action, resource=resource) for action in (Action.DESCRIBE, Action.SELECT))
        answers = self._ask(identity, accesses, circumstances)
        if _effect([answer[0] for answer in answers]) is not Effect.ALLOW:
            return ()
        hidden = _hidden([decision for answer in answers for decision in answer], columns)
        return tuple(column for column in columns if column.name not in hidden)

    def _ask(
        self, identity: Identity, accesses: tuple[spi.Access, ...], circumstances: Circumstances
    ) -> list[Sequence[spi.Decision]]:
        request = spi.PolicyRequest(
            principal=identity.without_tokens(), accesses=accesses, context=self._context(circumstances)
        )

        def decisions_of(enforcer: spi.PolicyEnforcer) -> Sequence[spi.Decision]:
            return enforcer.decide(request).decisions

        return [self._checked(partial(decisions_of, enforcer), len(accesses)) for enforcer in self._enforcers]

    @staticmethod
    def _checked(ask: Callable[[], Sequence[_Answer]], expected: int) -> Sequence[_Answer]:
        """Whatever goes wrong in an engine is "unknown", and unknown denies with an error (POL-2)."""
        try:
            answers = ask()
        except Exception as error:
            raise ExternalError("The policy engine gave no answer", code=ErrorCode.EXECUTION_FAILED) from error
        if len(answers) != expected:
            raise ExternalError("The policy engine gave no usable answer", code=ErrorCode.EXECUTION_FAILED)
        return answers

    def _context(self, circumstances: Circumstances) -> spi.RequestContext:
        return spi.RequestContext(
            protocol=circumstances.protocol,
            now=self._now(),
            query_id=circumstances.query_id,
            client_address=circumstances.client_address,
        )


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
    )


def _effect_of(effects: Sequence[Effect]) -> Effect:
    if Effect.DENY in effects or Effect.ALLOW not in effects:
        return Effect.DENY
    return Effect.ALLOW


def _effect(decisions: Sequence[spi.Decision]) -> Effect:
    return _effect_of([decision.effect for decision in decisions])


def _hidden(decisions: Sequence[spi.Decision], columns: Sequence[Column]) -> frozenset[str]:
    hidden = frozenset[str]().union(*(decision.hidden_columns for decision in decisions))
    if not hidden <= {column.name for column in columns}:
        # A policy that names a missing column denies: after a rename it would protect nothing (POL-6).
        raise ExternalError("The policy engine gave no usable answer", code=ErrorCode.EXECUTION_FAILED)
    return hidden


def _combine(request: AccessRequest, decisions: Sequence[spi.Decision]) -> Access:
    if _effect(decisions) is not Effect.ALLOW:
        return Access(denied=True)
    if any(decision.row_filters or decision.column_masks or decision.check for decision in decisions):
        # Fail closed: what is not enforced yet is refused, not ignored.
        raise NotSupportedError("Row filters and column masks are not enforced by this version; access is refused")
    if request.loaded is None:
        # Nothing is there yet; whoever creates it is told what a policy says about the name, and may not get around it.
        hidden = frozenset[str]().union(*(decision.hidden_columns for decision in decisions))
        return Access(denied=False, hidden=hidden)
    columns = request.loaded.columns
    hidden = _hidden(decisions, columns)
    return Access(denied=False, columns=tuple(column for column in columns if column.name not in hidden), hidden=hidden)
