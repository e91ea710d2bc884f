"""Keys that belong to a plugin's kind: kept as written until that plugin's `config_type` is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqe_core.config.origin import DEFAULT, KeyPath, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginTable:
    """A table that `binder.bind` turns into a plugin's frozen dataclass.

    `shared` holds keys of the core that a kind may ask for as well (`warehouse`). `core_keys` are all the keys that the
    core takes from the same table; a fault names them beside the plugin's.
    """

    path: KeyPath = ()
    node: Node = field(default_factory=lambda: Node({}, DEFAULT), repr=False)
    shared: Mapping[str, Node] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    core_keys: tuple[str, ...] = field(default=(), repr=False)
    # Where `{ env = "X" }` is looked up; the process' own environment is never read behind the caller's back.
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False, compare=False)

    @property
    def entries(self) -> Mapping[str, Node]:
        entries: Mapping[str, Node] = self.node.value
        return entries

    def get(self, key: str, default: Any = None) -> Any:
        """Return a plain value, unchecked; a secret given as `{ env = … }` is still that table."""
        node = self.entries.get(key) or self.shared.get(key)
        return default if node is None else node.plain()

    def __contains__(self, key: str) -> bool:
        return key in self.entries or key in self.shared
