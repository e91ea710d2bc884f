"""Importing one chosen plugin, and saying exactly why when that fails. stevedore is used here only."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import stevedore

from sqe_core.plugins.discovery import GROUP, DeclaredPlugin, find_fault
from sqe_core.spi.errors import PluginError
from sqe_core.spi.hooks import SqePlugin


class _ChosenPlugin(stevedore.ExtensionManager):  # type: ignore[misc]
    """Loads the one entry point that was chosen, and raises where stevedore would log and go on.

    stevedore's own list comes from a cache that knows no distributions and hides duplicates.
    """

    def __init__(self, entry_point: EntryPoint) -> None:
        self._chosen = entry_point
        super().__init__(namespace=GROUP, on_load_failure_callback=_reraise)

    def list_entry_points(self) -> list[EntryPoint]:
        return [self._chosen]


def _reraise(_manager: object, _entry_point: EntryPoint, error: BaseException) -> None:
    raise error


def load_plugin(declared: DeclaredPlugin) -> SqePlugin:
    """Import a plugin and make it; every failure is a PluginError that names plugin, distribution and version."""
    fault = find_fault(declared)
    if fault is not None:
        raise PluginError(_sentence(declared, fault), hint=_reinstall(declared))
    try:
        loaded: Any = _ChosenPlugin(declared.entry_point).extensions[0].plugin
    except (Exception, SystemExit) as exc:
        raise _explain(declared, exc) from exc
    if not (isinstance(loaded, type) and issubclass(loaded, SqePlugin)):
        raise PluginError(_sentence(declared, f"{declared.target} is no subclass of SqePlugin"))
    try:
        return loaded()
    except Exception as exc:
        raise PluginError(_sentence(declared, f"cannot be made: {_describe(exc)}")) from exc


def _sentence(declared: DeclaredPlugin, fault: str) -> str:
    return f"The {declared.label}: {fault}"


def _reinstall(declared: DeclaredPlugin) -> str:
    return f"pip install --upgrade --force-reinstall {declared.distribution}"


def _explain(declared: DeclaredPlugin, error: BaseException) -> PluginError:
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        own = declared.module
        if own == error.name or own.startswith(error.name + "."):
            fault = f"is not installed completely, its module {error.name} is missing"
            return PluginError(_sentence(declared, fault), hint=_reinstall(declared))
        if error.name == "sqe_core" or error.name.startswith("sqe_core."):
            fault = f"needs {error.name}, which this version of sqe-core does not have"
            hint = f"pip install --upgrade {declared.distribution} sqe-core"
            return PluginError(_sentence(declared, fault), hint=hint)
        fault = f"is installed, but needs the Python module '{error.name}'"
        return PluginError(_sentence(declared, fault), hint=_reinstall(declared))
    attribute = declared.target.partition(":")[2]
    if isinstance(error, AttributeError) and error.name == attribute and isinstance(error.obj, ModuleType):
        return PluginError(_sentence(declared, f"its module {declared.module} has no {attribute}"))
    return PluginError(_sentence(declared, f"cannot be imported: {_describe(error)}"), hint=_reinstall(declared))


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
