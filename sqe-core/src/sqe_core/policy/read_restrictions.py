"""What a REST catalog says of its tables (`read-restrictions`), as one more decision beside those of the engines.

It is there whenever a mounted catalog can restrict, whatever `[policy]` says, and only takes away (POL-8). What is not
understood in full refuses the statement (POL-2, POL-4).
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from sqe_core.policy.cache import KeptAnswers, scope_of
from sqe_core.policy.rest_filters import FilterReader, NotUnderstood
from sqe_core.spi.catalog import Column, ReadRestrictions, SupportsReadRestrictions, TableMetadata
from sqe_core.spi.errors import ErrorCode, ExternalError, ObjectNotFoundError, SqeError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import (
    ActionMask,
    ColumnMask,
    ConstantMask,
    Decision,
    Effect,
    Mask,
    MaskAction,
    NullMask,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression

_log = logging.getLogger(__name__)

_KEPT_SECS = 5.0
_MOST_KEPT = 10_000
_MEMBERS = frozenset({"required-column-projections", "required-row-filter"})
_MOMENTS = frozenset({"timestamp_ltz", "timestamp_ntz"})
_HASHED = frozenset({"string", "int", "bigint", "binary"})
_TYPES: Mapping[str, frozenset[str]] = {
    "mask-alphanum": frozenset({"string"}),
    "show-first-4": frozenset({"string"}),
    "show-last-4": frozenset({"string"}),
    "truncate-to-year": _MOMENTS | {"date"},
    "truncate-to-month": _MOMENTS | {"date"},
    "sha-256-global": _HASHED,
    "sha-256-query-local": _HASHED,
}
# What the specification has for a column that is text for the engine.
_FIXED_TEXTS = {"string": "XXXXXXXX", "uuid": "00000000-0000-0000-0000-000000000000"}
_FIXED = ("boolean", "int", "bigint", "float", "double", "date", "binary", *_MOMENTS)

BackendsOf = Callable[[], Mapping[str, object]]
"""Returns what serves each catalog, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDecision:
    """What a catalog takes away.

    Args:
        decision: the restrictions; it allows nothing by itself.
        current_only: whether a restricted column once had another name, so that old versions cannot be told apart.
    """

    decision: Decision
    current_only: bool = False


def decide(restrictions: ReadRestrictions, table: TableMetadata) -> CatalogDecision:
    """Read what a catalog said of a table; raise NotUnderstood when any of it is not known or does not fit it."""
    if restrictions.table_uuid != table.uuid:
        raise NotUnderstood("the restrictions are those of another table")
    document = restrictions.document
    if not isinstance(document, Mapping) or not document.keys() <= _MEMBERS:
        raise NotUnderstood("the restrictions have a member that is not known")
    masks, masked = _masks(document.get("required-column-projections"), table.columns)
    reader = FilterReader(table.columns)
    asked = document.get("required-row-filter")
    row_filter: SqlExpression | None = None if asked is None else reader.read(asked)
    return CatalogDecision(
        decision=Decision(
            effect=Effect.ABSTAIN,
            reason="restricted by the catalog" if masks or row_filter is not None else "",
            row_filters=() if row_filter is None else (row_filter,),
            column_masks=masks,
        ),
        current_only=bool((masked | reader.used) & restrictions.renamed),
    )


def _masks(actions: Any, columns: tuple[Column, ...]) -> tuple[tuple[ColumnMask, ...], set[int]]:
    if actions is None:
        return (), set()
    if not isinstance(actions, list):
        raise NotUnderstood("the projections are no list")
    masks: dict[int, ColumnMask] = {}
    for action in actions:
        if not isinstance(action, Mapping) or action.keys() != {"action", "field-id"}:
            raise NotUnderstood("a projection has a member that is not known, or lacks one")
        found = [column for column in columns if column.field_id == action["field-id"]]
        if type(action["field-id"]) is not int or len(found) != 1 or action["field-id"] in masks:
            # A field inside of a column cannot be masked apart from it.
            raise NotUnderstood("a projection names what is no column of the table, or one twice")
        masks[action["field-id"]] = ColumnMask(column=found[0].name, mask=_mask(action["action"], found[0]))
    return tuple(masks.values()), set(masks)


def _mask(action: Any, column: Column) -> Mask:
    match action:
        case "replace-with-null" if column.nullable:
            return NullMask()
        case "mask-to-fixed-value" if column.type in _FIXED_TEXTS:
            return ConstantMask(value=_FIXED_TEXTS[column.type])
        case "mask-to-fixed-value" if column.type in _FIXED or column.type.startswith(("decimal(", "array<", "map<")):
            return ActionMask(action="mask-to-fixed-value")
        case str() if column.type in _TYPES.get(action, frozenset()):
            if action == "truncate-to-year":
                return YearMask()
            if action in get_args(MaskAction):
                return ActionMask(action=cast(MaskAction, action))
    raise NotUnderstood(f"an action is not known for columns of type {column.type}")


class CatalogRestrictions:
    """Asks catalogs for what they restrict, and keeps the answers for a moment, each for one login only."""

    def __init__(self, backends: BackendsOf, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._backends = backends
        self._clock = clock
        self._kept: KeptAnswers[CatalogDecision | None] = KeptAnswers(_MOST_KEPT, clock)

    def some_may(self) -> bool:
        """Whether a catalog is mounted that can restrict."""
        return any(isinstance(backend, SupportsReadRestrictions) for backend in self._backends().values())

    def decide(self, identity: Identity, name: ObjectName, table: TableMetadata) -> CatalogDecision | None:
        """Return what the catalog takes away from somebody; None where it restricts nothing, all where it is gone."""
        backend = self._backends().get(name.catalog)
        if backend is None:
            return CatalogDecision(decision=Decision.deny("the catalog was detached"))
        if not isinstance(backend, SupportsReadRestrictions):
            return None
        key = (_login(identity), name, table.uuid, table.schema_id, table.columns)
        generation, asked = self._kept.generation, self._clock()
        if (kept := self._kept.find(key)) is not None:
            return kept.answer
        decision = self._asked(backend, identity, name, table)
        self._kept.keep(key, decision, until=asked + _KEPT_SECS, generation=generation)
        return decision

    def flush(self) -> None:
        self._kept.flush()

    @staticmethod
    def _asked(
        backend: SupportsReadRestrictions, identity: Identity, name: ObjectName, table: TableMetadata
    ) -> CatalogDecision | None:
        try:
            restrictions = backend.read_restrictions(name.namespace, name.name, identity)
            return None if restrictions is None else decide(restrictions, table)
        except ObjectNotFoundError:
            # The engine was shown it, and this login is not.
            return CatalogDecision(decision=Decision.deny("the catalog does not show it"))
        except NotUnderstood as error:
            _log.error("The catalog's restrictions on %s cannot be applied: %s", name, error)
            raise _unusable() from None
        except SqeError:
            raise
        except Exception as error:
            _log.error("The catalog's restrictions on %s cannot be read: %s", name, type(error).__name__)
            raise _unusable() from error


def _unusable() -> ExternalError:
    return ExternalError(
        "The catalog restricts what the statement reads in a way that cannot be applied",
        code=ErrorCode.EXECUTION_FAILED,
    )


def _login(identity: Identity) -> Hashable:
    """Return what a catalog may decide by: who it is, and the token that it is shown."""
    token = identity.access_token
    shown = hashlib.sha256(token.reveal().encode()).digest() if token else None
    return scope_of(identity), identity.provider, shown
