"""Which plugins are installed, read from their `entry_points.txt` and nothing else: no plugin is imported here.

A distribution says three things, all static text:

    [sqe.plugins]          auth-oidc          = sqe_auth_oidc.plugin:OidcPlugin   the plugin and its name
    [sqe.plugins.kinds]    auth.oidc_password = sqe_auth_oidc.plugin:OidcPlugin   each kind that it provides
    [sqe.plugins.spi]      1.0                = sqe_auth_oidc.plugin:OidcPlugin   the SPI it was made for

Distributions are read one by one: `importlib.metadata.entry_points()` raises for all of them when one file is damaged.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, DistributionFinder, EntryPoint, MetadataPathFinder, distributions

from sqe_core.plugins.kinds import Kind
from sqe_core.spi.hooks import SPI_VERSION

GROUP = "sqe.plugins"
KINDS_GROUP = "sqe.plugins.kinds"
SPI_GROUP = "sqe.plugins.spi"
CORE_DISTRIBUTION = "sqe-core"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPlugin:
    """An installed plugin, as its distribution describes it."""

    name: str
    distribution: str
    version: str
    target: str = ""
    """`module:Class`."""
    kinds: frozenset[Kind] = frozenset()
    spi: str | None = None
    fault: str | None = None
    """What is wrong with the description itself."""

    @property
    def label(self) -> str:
        """For messages: `plugin auth-oidc (sqe-auth-oidc 1.2.0)`."""
        return f"plugin {self.name} ({self.distribution} {self.version})"

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def entry_point(self) -> EntryPoint:
        return EntryPoint(name=self.name, value=self.target, group=GROUP)


def discover(path: Sequence[str] | None = None) -> tuple[DeclaredPlugin, ...]:
    """Return every installed plugin by name, the faulty ones too.

    Args:
        path: folders to look into instead of `sys.path`.
    """
    found: dict[str, Distribution] = {}
    for place, distribution in enumerate(_distributions(path)):
        # The first of a name is the one that an import would find.
        name = _header(distribution, "Name")
        found.setdefault(name.lower().replace("_", "-").replace(".", "-") if name else f"#{place}", distribution)
    declared = [plugin for distribution in found.values() for plugin in _plugins_of(distribution)]
    # The core first.
    return tuple(
        sorted(declared, key=lambda each: (each.distribution != CORE_DISTRIBUTION, each.name, each.distribution))
    )


def find_fault(plugin: DeclaredPlugin) -> str | None:
    """Say what would keep a plugin from being loaded, as far as that can be seen without importing it."""
    if plugin.fault:
        return plugin.fault
    if plugin.spi is None:
        return f"does not say in [{SPI_GROUP}] which SPI it was made for"
    if not _supports(plugin.spi):
        return f"needs SPI {plugin.spi}, this is {SPI_VERSION}"
    top = plugin.module.partition(".")[0]
    try:
        # Looks for the top-level package only: looking deeper would import it.
        missing = importlib.util.find_spec(top) is None
    except (ImportError, ValueError):
        missing = True
    return f"its package {top} is missing" if missing else None


def _distributions(path: Sequence[str] | None) -> Iterable[Distribution]:
    if path is None:
        return distributions()
    return MetadataPathFinder.find_distributions(DistributionFinder.Context(path=list(path)))


def _header(distribution: Distribution, key: str) -> str | None:
    try:
        metadata = distribution.metadata
    except (OSError, ValueError):
        return None
    # The protocol of this mapping has no `get`, and a missing key warns from Python 3.12 on.
    return metadata[key] if key in metadata else None  # noqa: SIM401


def _plugins_of(distribution: Distribution) -> Iterator[DeclaredPlugin]:
    try:
        text = distribution.read_text("entry_points.txt")
    except (OSError, ValueError):
        return  # not even text: nobody can say whose it is
    if text is None or GROUP not in text:
        return
    name, version = _header(distribution, "Name"), _header(distribution, "Version")
    if name is None or version is None:
        folder = getattr(getattr(distribution, "_path", None), "name", "an unnamed folder")
        yield _faulty(str(folder), "?", "its METADATA file is missing or damaged")
        return
    try:
        entry_points = tuple(distribution.entry_points)
    except Exception as exc:  # noqa: BLE001 - a damaged file of somebody else, reported as such
        yield _faulty(name, version, f"its entry_points.txt cannot be read ({exc})")
        return
    yield from _read(name, version, entry_points)


def _faulty(distribution: str, version: str, fault: str) -> DeclaredPlugin:
    return DeclaredPlugin(name=distribution, distribution=distribution, version=version, fault=fault)


def _read(distribution: str, version: str, entry_points: Sequence[EntryPoint]) -> Iterator[DeclaredPlugin]:
    def of_group(group: str) -> list[EntryPoint]:
        return [entry_point for entry_point in entry_points if entry_point.group == group]

    plugins = of_group(GROUP)
    # A distribution is made for one SPI, all its plugins with it.
    versions = [point.name for point in of_group(SPI_GROUP)]
    for plugin in plugins:
        kinds, faults = _read_kinds(point.name for point in of_group(KINDS_GROUP) if point.value == plugin.value)
        if not _is_reference(plugin.value):
            faults.append(f"{plugin.value!r} is not of the form module:Class")
        if len(versions) > 1:
            faults.append(f"names {len(versions)} versions of the SPI")
        yield DeclaredPlugin(
            name=plugin.name,
            distribution=distribution,
            version=version,
            target=plugin.value,
            kinds=kinds,
            spi=versions[0] if versions else None,
            fault="; ".join(faults) or None,
        )
    known = {plugin.value for plugin in plugins}
    for stray in {point.value for group in (KINDS_GROUP, SPI_GROUP) for point in of_group(group)} - known:
        yield _faulty(distribution, version, f"{stray} has kinds or an SPI version, but no entry in [{GROUP}]")


def _read_kinds(names: Iterable[str]) -> tuple[frozenset[Kind], list[str]]:
    kinds, faults = set(), []
    for name in names:
        try:
            kinds.add(Kind.parse(name))
        except ValueError:
            faults.append(f"declares {name!r}, which is no kind of an extension point")
    return frozenset(kinds), faults


def _is_reference(value: str) -> bool:
    module, colon, attribute = value.partition(":")
    parts = [*module.split("."), *attribute.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def _supports(required: str) -> bool:
    major, dot, minor = required.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        return False
    own_major, own_minor = SPI_VERSION.split(".")
    return int(major) == int(own_major) and int(minor) <= int(own_minor)
