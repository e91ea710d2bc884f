"""Time zones: regions such as Europe/Amsterdam, offsets such as +02:00, and those at the end of texts."""

from __future__ import annotations

import re
from functools import cache
from zoneinfo import available_timezones

_UTC = re.compile(r"(?i)utc|etc/utc|gmt|etc/gmt|zulu|z|(utc|gmt)?[+-]?0{1,2}(:?00)?")
_OFFSET = re.compile(r"(?i)(?:utc|gmt)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_MOST_HOURS = 14

_ZONED = re.compile(r"(?:[+-]\d{1,2}(?::?\d{2})?|Z|[A-Za-z][A-Za-z_]*(?:/[A-Za-z_+\-0-9]+)*)\s*$")
_MOST_TIME_CHARACTERS = 200  # a longer text is no time, and would be searched from each of its places


def has_zone(timestamp: str) -> bool:
    """Whether a literal of a timestamp names a time zone at its end."""
    return zone_at_end(timestamp) is not None


def zone_at_end(time: str, after: int = 10) -> str | None:
    """Return the time zone that the text of a time names at its end; so many characters before it are a date."""
    found = _ZONED.search(time[after:_MOST_TIME_CHARACTERS])
    return None if found is None else found.group().strip()


def is_utc(zone: str) -> bool:
    """Whether a time zone is UTC under one of its usual names."""
    return _UTC.fullmatch(zone.strip()) is not None


def zone_name(zone: str) -> str | None:
    """Return a time zone by the one name that SQE has for it; None when there is none of that name.

    Example:
        >>> zone_name("europe/amsterdam"), zone_name("+2"), zone_name("Z"), zone_name("Mars/Base")
        ('Europe/Amsterdam', '+02:00', 'UTC', None)
    """
    written = zone.strip()
    if is_utc(written):
        return "UTC"
    offset = _OFFSET.fullmatch(written)
    if offset is None:
        return _regions().get(written.lower())
    hours, minutes = int(offset[2]), int(offset[3] or 0)
    if minutes > 59 or hours * 60 + minutes > _MOST_HOURS * 60:
        return None
    return f"{offset[1]}{hours:02}:{minutes:02}"


@cache
def _regions() -> dict[str, str]:
    """Regions by their lower case, as Java knows them too."""
    return {name.lower(): name for name in available_timezones() if name not in ("Factory", "localtime")}
