"""What every factory has in common, and what the core hands to `create`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

ConfigT = TypeVar("ConfigT")
"""The settings of one kind."""

_ValueT = TypeVar("_ValueT")
ContextT = TypeVar("ContextT", contravariant=True)
ProductT = TypeVar("ProductT", covariant=True)

_NO_LABELS: Mapping[str, str] = MappingProxyType({})


class Clock(Protocol):
    """The server's clock. Plugins that look at the time ask this one, so that tests can turn it."""

    def now(self) -> datetime:
        """Return the time, aware, in UTC."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the time, aware, in UTC."""
        return datetime.now(UTC)


class Metrics(Protocol):
    """Where plugins count. Names begin with `sqe_`; labels hold few, known values and no user or table names."""

    def count(self, name: str, amount: float = 1, labels: Mapping[str, str] = _NO_LABELS) -> None:
        """Add to a counter."""

    def gauge(self, name: str, value: float, labels: Mapping[str, str] = _NO_LABELS) -> None:
        """Set a gauge."""

    def observe(self, name: str, value: float, labels: Mapping[str, str] = _NO_LABELS) -> None:
        """Add a value to a histogram."""


class NoMetrics:
    """Counts nothing."""

    def count(self, name: str, amount: float = 1, labels: Mapping[str, str] = _NO_LABELS) -> None:
        """Do nothing."""

    def gauge(self, name: str, value: float, labels: Mapping[str, str] = _NO_LABELS) -> None:
        """Do nothing."""

    def observe(self, name: str, value: float, labels: Mapping[str, str] = _NO_LABELS) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """What the core offers to a factory.

    Args:
        clock: the server's clock.
        metrics: where to count.
        state_dir: a private folder that survives restarts, made at first use; None when nothing may be kept.
        production_mode: whether the server refuses unsafe settings.
        sqe_version: the version of the core, for user agents.
        rehearsal: `sqe config check` and `sqe doctor` want to know whether it would work: `create`, `check` and
            the `start` of observers then look, and make or change nothing on disk or elsewhere.

    Example:
        >>> PluginContext().production_mode
        False
    """

    clock: Clock = field(default_factory=SystemClock)
    metrics: Metrics = field(default_factory=NoMetrics)
    state_dir: Path | None = None
    production_mode: bool = False
    sqe_version: str = ""
    rehearsal: bool = False


class PluginFactory(ABC, Generic[ConfigT, ContextT, ProductT]):
    """Makes the objects of one kind. Plugins subclass the factory of their kind, not this class.

    `config_type` is a frozen dataclass. The core fills it from the TOML table that names the kind; its fields are
    the keys of that table. `create` is called once per table, on the main thread, and may use the network.

    What a field of a `config_type` may be, and what its metadata may say (all optional):

        str, int, float, bool, Secret, Path, an Enum, a Literal, X | None, tuple[X, ...], Mapping[str, X],
        another frozen dataclass for a sub-table
        setting(5, "…", minimum=1, maximum=60, unit="duration", secret=True, aliases=("…",), url=("https",),
                pattern=("[a-z]+", "lower-case letters"))

    Example:
        >>> @dataclass(frozen=True, slots=True, kw_only=True)
        ... class LdapConfig:
        ...     url: str = required("where the directory is", url=("ldaps",))
        ...     timeout_secs: int = setting(5, "how long it may take to answer")
    """

    kind: str
    """What the TOML says: `type = "<kind>"`. Lower-case letters, digits, `_` and `-`."""

    config_type: type[ConfigT]
    """A frozen, keyword-only dataclass; a factory without settings uses `NoConfig`."""

    @abstractmethod
    def create(self, name: str, config: ConfigT, context: ContextT) -> ProductT:
        """Make one object.

        Args:
            name: the name of this instance, unique among its kind's instances.
            config: the settings, checked for type.
            context: what the core offers.

        Raises:
            ConfigError: settings that contradict each other.
            StartupError: what is needed is not there.
        """


def setting(default: _ValueT, doc: str, **metadata: Any) -> _ValueT:
    """Describe a key of a `config_type` that has a default. Typed as the value, for which a dataclass field stands.

    Args:
        default: what counts where the key is not written.
        doc: what the key means.
        metadata: what else is said of it; see `PluginFactory`.
    """
    return field(default=default, metadata={"doc": doc, **metadata})


def required(doc: str, **metadata: Any) -> Any:
    """Describe a key of a `config_type` that has to be written.

    Args:
        doc: what the key means.
        metadata: what else is said of it; see `PluginFactory`.
    """
    return field(metadata={"doc": doc, **metadata})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoConfig:
    """The settings of a kind that has none."""
