"""TOML and environment to frozen dataclasses, every fault reported at once."""

from sqe_core.config.binder import bind
from sqe_core.config.loading import LoadedConfig, load, locate
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.sources import Sources

__all__ = ["LoadedConfig", "PluginTable", "Sources", "SqeConfig", "bind", "load", "locate"]
