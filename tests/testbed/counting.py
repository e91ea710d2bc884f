"""Metrics that keep what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class Counted:
    """Keeps every number with its labels."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], float] = {}

    def count(self, name: str, amount: float = 1, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        key = (name, *labels.values())
        self.values[key] = self.values.get(key, 0) + amount

    def gauge(self, name: str, value: float, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        self.values[(name, *labels.values())] = value

    def observe(self, name: str, value: float, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        self.count(name, 1, labels)
