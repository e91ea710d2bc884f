"""Time zones in texts."""

from __future__ import annotations

import re

_UTC = re.compile(r"(?i)utc|etc/utc|gmt|etc/gmt|zulu|z|(utc|gmt)?[+-]?0{1,2}(:?00)?")

_ZONED = re.compile(r"(?:[+-]\d{1,2}(?::?\d{2})?|Z|[A-Za-z][A-Za-z_]*(?:/[A-Za-z_+\-0-9]+)*)\s*$")
_MOST_TIME_CHARACTERS = 200  # a longer text is no time, and would be searched from each of its places


def has_zone(timestamp: str) -> bool:
    """Whether a literal of a timestamp names a time zone at its end."""
    return _ZONED.search(timestamp[10:_MOST_TIME_CHARACTERS]) is not None


def is_utc(zone: str) -> bool:
    """Whether a time zone is UTC under one of its usual names."""
    return _UTC.fullmatch(zone.strip()) is not None
