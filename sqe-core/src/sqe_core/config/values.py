"""Values of the configuration that are more than TOML's own types: byte sizes, durations, shares, URLs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-z%]*)\s*")
_BYTE_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DURATION_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a memory limit: percent of it, or bytes."""

    percent: float | None = None
    bytes: int | None = None

    def of(self, total: int) -> int:
        if self.bytes is not None:
            return self.bytes
        return int(total * (self.percent or 0.0) / 100)

    def __str__(self) -> str:
        return format_bytes(self.bytes) if self.bytes is not None else f"{self.percent or 0.0:g}%"


def parse_bytes(value: object) -> int:
    """Read `"1.5GB"`, `"64K"` or a bare number of bytes. K is 1024; `KiB` is the same as `KB`."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError("a byte size cannot be negative")
        return value
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    factor = _BYTE_UNITS.get(_byte_unit(match[2])) if match else None
    if match is None or factor is None:
        raise ValueError('expected a byte size such as 1048576, "64KB" or "1.5GB"')
    return int(float(match[1]) * factor) if "." in match[1] else int(match[1]) * factor


def _byte_unit(unit: str) -> str:
    unit = unit.upper()
    return unit[0] if re.fullmatch(r"[KMGT]I?B", unit) else unit


def format_bytes(size: int) -> str:
    """Write a size with the largest unit that divides it."""
    for unit in ("T", "G", "M", "K"):
        factor = _BYTE_UNITS[unit]
        if size and size % factor == 0:
            return f"{size // factor}{unit}B"
    return str(size)


def parse_duration(value: object) -> float:
    """Read `"24h"`, `"15m"`, `"90s"`, `"250ms"`, `"7d"` or a bare number of seconds, as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < 0:
            raise ValueError("a duration cannot be negative")
        return float(value)
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    factor = _DURATION_UNITS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ValueError('expected a duration such as 90, "15m" or "24h"')
    return float(match[1]) * factor


def format_duration(seconds: float) -> str:
    """Write a duration with the largest unit that divides it."""
    for unit in ("d", "h", "m"):
        factor = _DURATION_UNITS[unit]
        if seconds and seconds % factor == 0:
            return f"{seconds / factor:g}{unit}"
    return f"{seconds:g}s"


def parse_share(value: object) -> Share:
    """Read `"20%"` as a percentage, anything else as a byte size."""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match and match[2] == "%":
        percent = float(match[1])
        if percent > 100:
            raise ValueError("a percentage cannot be above 100%")
        return Share(percent=percent)
    try:
        return Share(bytes=parse_bytes(value))
    except ValueError:
        raise ValueError('expected a percentage such as "20%", or a byte size such as "2GB"') from None


def parse_url(value: str, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Check that `value` is an absolute URL of one of the schemes, with a host."""
    expected = f"expected a URL such as {schemes[0]}://host:port/path"
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{expected} ({error})") from None
    if any(character.isspace() for character in value):
        raise ValueError(f"{expected}, without blanks")
    if parts.scheme not in schemes:
        raise ValueError(f"{expected}; the scheme is one of {', '.join(schemes)}")
    if not parts.hostname and parts.scheme != "file":
        raise ValueError(f"{expected}; the host is missing")
    return value


_USERINFO = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
_QUERY_SECRET = re.compile(r"(?i)([?&;](?:password|passwd|pwd|token|secret|sig|api_?key)=)[^&;\s]*")


def without_passwords(text: str) -> str:
    """Blank the passwords that stand inside a URL (`jdbc` catalogs carry them there)."""
    return _QUERY_SECRET.sub(r"\1[redacted]", _USERINFO.sub("[redacted]", text))
