"""Flag over environment over file over default, to one checked configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqe_core.config.binder import Binder
from sqe_core.config.checks import check
from sqe_core.config.environment import environment_layer, insert, log_level, process_memory_limit
from sqe_core.config.layers import file_layer, flag_layer, merge
from sqe_core.config.origin import DEFAULT, Fault, KeyPath, Node, Origin
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.sources import Sources
from sqe_core.spi.errors import ConfigError

CONFIG_VARIABLE = "SQE_CONFIG"
DEFAULT_FILE = "sqe.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A valid configuration, and where each value of it came from."""

    config: SqeConfig
    sources: Sources
    path: Path | None = None
    log_level: str = "info"
    tree: Node = field(default_factory=lambda: Node({}, DEFAULT), repr=False)
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    def table(self, *path: str) -> PluginTable:
        """A table as it was written, of which a plugin knows every key. Empty when absent."""
        return PluginTable(path=path, node=self._node(path), environ=self.environ)

    def settings(self, *path: str) -> PluginTable:
        """A table that the core has checked, of which a plugin takes the keys that it knows."""
        node = self._node(path)
        return PluginTable(path=path, node=Node({}, node.origin), shared=node.value, environ=self.environ)

    def part(self, section: str, name: str) -> PluginTable:
        """The settings of a kind that has a table of its own, `[policy.opa]`, and asks for keys of what is above it."""
        return replace(self.table(section, name), shared=self._node((section,)).value)

    def _node(self, path: tuple[str, ...]) -> Node:
        node = self.tree
        for part in path:
            node = node.value.get(part, Node({}, DEFAULT)) if isinstance(node.value, dict) else Node({}, DEFAULT)
        return node


def locate(given: str | Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    """Find the file: `--config`, then SQE_CONFIG, then ./sqe.toml; None when there is none of them."""
    if given:
        return Path(given)
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE])
    default = folder / DEFAULT_FILE
    return default if default.exists() else None


def load(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> LoadedConfig:
    """Read, merge, bind and check; ConfigError holds every fault. The arguments are those of `read`."""
    reading = read(path, environ=environ, flags=flags)
    if reading.faults or reading.loaded is None:
        raise ConfigError(reading.faults)
    return reading.loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What could be read of a configuration, and everything that is wrong with it. None where too much is wrong."""

    loaded: LoadedConfig | None
    faults: tuple[str, ...]


def read(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> Reading:
    """Read, merge, bind and check.

    `flags` maps dotted keys to values of the command line; a None stands for an option that was not given.
    `path` None means that there is no file.
    """
    environ = MappingProxyType(dict(environ))
    file_node, file_faults = _file(path)
    sections = [section.name for section in fields(SqeConfig)]
    environment_node, environment_faults = environment_layer(environ, sections)
    flag_node, flag_faults = flag_layer(flags)
    tree = merge(merge(file_node, environment_node), flag_node)
    memory = process_memory_limit(environ, _mode(tree))
    if memory is not None:
        tree = _with_memory_limit(tree, *memory)

    level, level_faults = log_level(environ)
    binder = Binder(environ)
    config = binder.bind_table(tree, SqeConfig, ())
    faults: list[Fault] = [*environment_faults, *flag_faults, *level_faults, *binder.faults]
    sources = Sources(MappingProxyType(binder.origins), Origin("file", str(path)) if path else DEFAULT)
    if config is not None and not file_faults:
        wrong = {fault.path for fault in binder.faults}
        faults += [fault for fault in check(config, binder.secret_files) if not _follows(fault, wrong)]
    shown = (*file_faults, *dict.fromkeys(_shown(fault, sources) for fault in faults))
    if config is None or file_faults:
        return Reading(loaded=None, faults=shown)
    loaded = LoadedConfig(config=config, sources=sources, path=path, log_level=level, tree=tree, environ=environ)
    return Reading(loaded=loaded, faults=shown)


def _file(path: Path | None) -> tuple[Node, tuple[str, ...]]:
    """An unreadable file does not hide the faults of the environment."""
    if path is None:
        return Node({}, DEFAULT), ()
    try:
        return file_layer(path), ()
    except ConfigError as error:
        return Node({}, DEFAULT), error.faults


def _mode(tree: Node) -> object:
    coordinator = tree.value.get("coordinator")
    mode = coordinator.value.get("mode") if coordinator and isinstance(coordinator.value, dict) else None
    return mode.value if mode else None


def _with_memory_limit(tree: Node, path: KeyPath, leaf: Node) -> Node:
    """The long name of the environment and the command line win over the short name."""
    section, key = str(path[0]), str(path[1])
    table = tree.value.get(section)
    present = table.value.get(key) if table and isinstance(table.value, dict) else None
    if present is not None and present.origin.layer in ("environment", "flag"):
        return tree
    over: dict[str, Node] = {}
    insert(over, path, leaf)
    return merge(tree, Node(over, DEFAULT))


def _follows(fault: Fault, wrong: set[KeyPath]) -> bool:
    """A check that speaks of a key which could not be read says nothing new."""
    return any(path[: len(fault.path)] == fault.path or fault.path[: len(path)] == path for path in wrong)


def _shown(fault: Fault, sources: Sources) -> str:
    if fault.origin is None:
        return str(Fault(fault.path, fault.message, sources.place(*fault.path)))
    return str(fault)
