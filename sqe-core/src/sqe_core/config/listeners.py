"""Which protocols are to listen where: `[protocols.<kind>]`, and the ports of `[coordinator]` that mean the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from sqe_core.config.origin import KeyPath
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.sections.coordinator import CoordinatorConfig, ProtocolConfig
from sqe_core.config.sections.root import SqeConfig

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - a server whose clients log in


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A protocol and its place. `port` None is the kind's own; `path` is the key that says so."""

    kind: str
    port: int | None
    bind_host: str
    public_url: str | None
    path: KeyPath
    options: PluginTable


def port_keys() -> Mapping[str, str]:
    """The kinds that a key of `[coordinator]` means, and that key."""
    return {kind: key.name for key in fields(CoordinatorConfig) if (kind := key.metadata.get("protocol"))}


def listeners(config: SqeConfig) -> Iterator[Listener]:
    """Every protocol that a port or a table names, those that are off too."""
    keys = port_keys()
    for kind in dict.fromkeys((*keys, *config.protocols)):
        table = config.protocols.get(kind, ProtocolConfig(options=PluginTable(path=("protocols", kind))))
        port = table.port
        path: KeyPath = ("protocols", kind, "port")
        if port is None and kind in keys:
            port, path = getattr(config.coordinator, keys[kind]), ("coordinator", keys[kind])
        yield Listener(
            kind=kind,
            port=port,
            bind_host=table.bind_address or bind_host(config),
            public_url=table.public_url,
            path=path,
            options=table.options,
        )


def bind_host(config: SqeConfig) -> str:
    """Where everything listens that has no address of its own: without `[auth]` on loopback only."""
    return config.coordinator.bind_address or (LOOPBACK if config.auth is None else EVERYWHERE)
