"""Where each value came from, by its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqe_core.config.origin import DEFAULT, KeyPath, Origin


@dataclass(frozen=True, slots=True)
class Sources:
    """Origins of every key of a loaded configuration, defaults included."""

    origins: Mapping[KeyPath, Origin] = field(default_factory=dict)
    file: Origin = DEFAULT
    """Where a key that is missing would be written."""

    def origin(self, *path: str | int) -> Origin:
        """The origin of a key, or of the nearest table above it that has one."""
        for length in range(len(path), 0, -1):
            found = self.origins.get(path[:length])
            if found is not None:
                return found
        return DEFAULT

    def place(self, *path: str | int) -> Origin:
        """Where to look for what is wrong with a key: its own place, else that of the table it is missing from."""
        for length in range(len(path), 0, -1):
            found = self.origins.get(path[:length], DEFAULT)
            if found.layer != "default":
                return found
        return self.file

    def is_written(self, *path: str | int) -> bool:
        """Whether somebody wrote this key, or one below it; a default is nobody's wish."""
        return any(origin.layer != "default" and key[: len(path)] == path for key, origin in self.origins.items())
