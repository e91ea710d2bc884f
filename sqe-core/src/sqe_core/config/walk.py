"""Going through every key of a configuration, or of its classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any

from sqe_core.config.binder import field_hints, without_none
from sqe_core.config.origin import KeyPath
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.values import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbuilt:
    """What a key or its table says is not built yet, and whether its value asks for it; None: each key for itself."""

    sentence: str
    path: KeyPath
    asked: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A key that holds a value and no table. `default` is MISSING where there is none."""

    path: KeyPath
    value: Any
    default: Any
    metadata: Mapping[str, Any]
    unbuilt: Unbuilt | None = None

    @property
    def differs(self) -> bool:
        return bool(self.value != self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a class, whatever its value will be."""

    path: KeyPath
    hint: Any
    default: Any
    metadata: Mapping[str, Any]


def leaves(config: Any, path: KeyPath = (), above: Unbuilt | None = None) -> Iterator[Leaf]:
    """Every key of a configuration with its value; the keys of plugins' kinds as they were written."""
    for field in fields(config):
        value = getattr(config, field.name)
        # The keys of a kind stand in the table itself, beside those of the core.
        below = path if field.metadata.get("remainder") else (*path, field.name)
        yield from _leaves_of(value, below, field, _unbuilt(field, value, below) or above)


def _unbuilt(field: Field[Any], value: Any, path: KeyPath) -> Unbuilt | None:
    sentence, asked = field.metadata.get("unbuilt"), field.metadata.get("asked")
    return Unbuilt(sentence=sentence, path=path, asked=asked(value) if asked else None) if sentence else None


def _leaves_of(value: Any, path: KeyPath, field: Field[Any], unbuilt: Unbuilt | None) -> Iterator[Leaf]:
    if isinstance(value, PluginTable):
        for key, node in value.entries.items():
            yield Leaf(path=(*path, key), value=node.plain(), default=MISSING, metadata={"raw": True})
    elif _is_table(value):
        yield from leaves(value, path, unbuilt)
    elif isinstance(value, Mapping) and any(map(_is_table, value.values())):
        for name, item in sorted(value.items()):
            yield from _leaves_of(item, (*path, name), field, unbuilt)
    elif isinstance(value, tuple) and any(map(_is_table, value)):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index), unbuilt)
    else:
        default = default_of(field)
        yield Leaf(path=path, value=value, default=default, metadata=field.metadata, unbuilt=unbuilt)


def keys(config_type: Any, path: KeyPath = (), unbuilt: str | None = None) -> Iterator[Key]:
    """Every key of a dataclass and of the tables below it; `*` stands for free names and array entries."""
    for field in fields(config_type):
        if field.metadata.get("remainder"):
            continue
        hint = without_none(field_hints(config_type)[field.name])
        table, below = _table_in(hint, (*path, field.name))
        missing = field.metadata.get("unbuilt", unbuilt)
        if table is not None:
            yield from keys(table, below, missing)
        else:
            metadata = {**field.metadata, **({"unbuilt": missing} if missing else {})}
            yield Key(path=below, hint=hint, default=default_of(field), metadata=metadata)


def _table_in(hint: Any, path: KeyPath) -> tuple[Any, KeyPath]:
    if isinstance(hint, type) and is_dataclass(hint) and hint is not Share:
        return hint, path
    arguments = [item for item in getattr(hint, "__args__", ()) if is_dataclass(item) and item is not PluginTable]
    return (arguments[0], (*path, "*")) if arguments else (None, path)


def default_of(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _is_table(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, Share)
