"""The session properties: SQE's own vocabulary, typed and range-checked (CONF-2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqe_core.config.values import parse_duration
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.protocol import MOST_PARTS
from sqe_core.sql.text.time_zone import zone_name

DIALECTS = ("sqe", "trino", "spark")
_CODECS = ("zstd", "snappy", "gzip", "lz4", "none")
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$")


def _duration(value: Any) -> str:
    match = _DURATION.match(value) if isinstance(value, str) else None
    if match is None or parse_duration(value) <= 0:
        raise ValueError("a duration above zero such as '90s', '5m' or '1h'")
    return f"{match[1]}{match[2]}"


def _one_of(*values: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or value.lower() not in values:
            raise ValueError("one of " + ", ".join(values))
        return value.lower()

    return check


def _zone(value: Any) -> str:
    found = zone_name(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("a time zone such as 'Europe/Amsterdam', '+02:00' or 'UTC'")
    return found


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"an integer from {low} to {high}")
        return value

    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProperty:
    """One property: how its value is checked, and what it means."""

    name: str
    type: str
    default: Any
    description: str
    check: Callable[[Any], Any]


PROPERTIES: Mapping[str, SessionProperty] = {
    entry.name: entry
    for entry in (
        SessionProperty(
            name="dialect",
            type="varchar",
            default="sqe",
            description="SQL dialect of the statements: sqe, trino or spark",
            check=_one_of(*DIALECTS),
        ),
        SessionProperty(
            name="query_max_run_time",
            type="varchar",
            default=None,
            description="Longest time a statement may run, at most the server's own limit; for example '5m'",
            check=_duration,
        ),
        SessionProperty(
            name="query_max_result_rows",
            type="bigint",
            default=None,
            description="Most rows that a query may return, at most the server's own limit",
            check=_integer(1, 2**62),
        ),
        SessionProperty(
            name="parallel_endpoints",
            type="bigint",
            default=1,
            description="How many Arrow Flight endpoints a big result without ORDER BY has, to be fetched in parallel",
            check=_integer(1, MOST_PARTS),
        ),
        SessionProperty(
            name="time_zone",
            type="varchar",
            default="UTC",
            description="The time zone in which times without one are read, and parts of times told",
            check=_zone,
        ),
        SessionProperty(
            name="iceberg.compression_codec",
            type="varchar",
            default="zstd",
            description="Compression of written data files: " + ", ".join(_CODECS),
            check=_one_of(*_CODECS),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class SessionProperties:
    """The values of one session, or of one statement."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Those that are not the defaults."""

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name, PROPERTIES[name].default)

    def changed(self, values: Mapping[str, Any]) -> SessionProperties:
        """Return them with other values, all or none; unknown names and bad values are errors that name the known."""
        return SessionProperties({**self.values, **{name: _checked(name, value) for name, value in values.items()}})

    def without(self, name: str) -> SessionProperties:
        """Return them with the default of one."""
        known = find_property(name).name
        return SessionProperties({each: value for each, value in self.values.items() if each != known})

    def rows(self) -> Sequence[tuple[str, str, str, str, str]]:
        return [
            (entry.name, _text(self[entry.name]), _text(entry.default), entry.type, entry.description)
            for entry in PROPERTIES.values()
        ]


def _checked(name: str, value: Any) -> Any:
    entry = find_property(name)
    try:
        return entry.check(value)
    except ValueError as fault:
        raise UserError(f"Session property {name} must be {fault}", code=ErrorCode.INVALID_SESSION_PROPERTY) from None


def find_property(name: str) -> SessionProperty:
    """Return the property of that name, or raise with the known ones."""
    entry = PROPERTIES.get(name)
    if entry is None:
        raise UserError(
            f"Session property {name} does not exist",
            code=ErrorCode.INVALID_SESSION_PROPERTY,
            hint="known properties: " + ", ".join(PROPERTIES),
        )
    return entry


def _text(value: Any) -> str:
    return "" if value is None else str(value)
