"""The names of the one time zone that sessions have."""

from __future__ import annotations

import re

_UTC = re.compile(r"(?i)utc|etc/utc|gmt|etc/gmt|zulu|z|(utc|gmt)?[+-]?0{1,2}(:?00)?")


def is_utc(zone: str) -> bool:
    """Whether a time zone is UTC under one of its usual names."""
    return _UTC.fullmatch(zone.strip()) is not None
