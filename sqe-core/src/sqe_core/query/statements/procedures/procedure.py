"""What a procedure is: its arguments, what its caller has to be allowed, and what it tells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from sqe_core.query.context import StatementContext
from sqe_core.query.statements.handler import Need

SUMMARY = pa.schema(
    [
        ("procedure", pa.string()),
        ("table", pa.string()),
        ("input_count", pa.int64()),
        ("output_count", pa.int64()),
        ("input_bytes", pa.int64()),
        ("output_bytes", pa.int64()),
        ("status", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a procedure; all of them have to be given."""

    name: str
    type: type


class Procedure(ABC):
    """Carries out one procedure on a catalog."""

    name: ClassVar[str]
    arguments: ClassVar[tuple[Argument, ...]]
    columns: ClassVar[pa.Schema] = SUMMARY

    def by_places(self, places: Sequence[Any]) -> Mapping[str, Any] | None:
        """Return arguments by their names; None when there are too many or too few."""
        if len(places) != len(self.arguments):
            return None
        return {argument.name: value for argument, value in zip(self.arguments, places, strict=True)}

    @abstractmethod
    def needs(self, catalog: str | None, given: Mapping[str, Any]) -> Sequence[Need]:
        """Return what the caller has to be allowed; without a catalog it is the current one."""

    @abstractmethod
    def call(self, catalog: str | None, given: Mapping[str, Any], context: StatementContext) -> Iterable[Sequence[Any]]:
        """Carry it out and return the rows of its answer."""
