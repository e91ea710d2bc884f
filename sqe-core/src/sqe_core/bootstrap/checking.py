"""Whether a server would start with a configuration: for `sqe config check`, `sqe doctor` and the server itself."""

from __future__ import annotations

from dataclasses import dataclass

from sqe_core import __version__
from sqe_core.bootstrap.instances import configured_instances, rehearse, with_hint
from sqe_core.bootstrap.options import own_faults
from sqe_core.config.loading import LoadedConfig, Reading
from sqe_core.config.origin import Fault
from sqe_core.config.status import unbuilt, without_effect
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is wrong, and what changes nothing."""

    loaded: LoadedConfig | None
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def usable(self) -> LoadedConfig:
        """The configuration. Raises ConfigError with everything that keeps a server from starting."""
        if self.faults or self.loaded is None:
            raise ConfigError(self.faults)
        return self.loaded


def check_configuration(reading: Reading, plugins: PluginManager | None = None, *, rehearsed: bool = True) -> Checked:
    """Name every fault of a configuration and of the plugins that it uses, and what it asks for that is not built.

    Args:
        reading: what was read.
        plugins: the installed plugins; None looks for them.
        rehearsed: make the objects of the plugins too, as a rehearsal; the server does not, for it makes them anyway.
    """
    loaded = reading.loaded
    if loaded is None:
        return Checked(loaded=None, faults=reading.faults)
    plugins = plugins or PluginManager(sqe_version=__version__)
    found = configured_instances(loaded, plugins, rehearsal=True)
    missing = [
        str(Fault(fault.path, fault.message, loaded.sources.place(*fault.path)))
        for fault in unbuilt(loaded.config, found.consumed)
    ]
    tried: list[str] = []
    if rehearsed:
        tried += (str(Fault(path, with_hint(fault), loaded.sources.place(*path))) for path, fault in own_faults(loaded))
        tried += rehearse(found.found)
    return Checked(
        loaded=loaded,
        faults=tuple(dict.fromkeys((*reading.faults, *found.faults, *missing, *tried))),
        notes=without_effect(loaded.config, loaded.sources, found.consumed),
    )
