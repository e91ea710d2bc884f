"""Raw tables to frozen dataclasses, with every fault collected.

It reads any dataclass: ours, and the `config_type` of a plugin. `schema` lists the metadata that fields may carry.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sqe_core.config.origin import DEFAULT, Fault, KeyPath, Node, Origin, as_node, dotted, unknown_key
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.scalars import describe, read_scalar
from sqe_core.config.secrets import file_of, read_secret
from sqe_core.config.values import Share
from sqe_core.spi.identity import Secret

T = TypeVar("T")

_RANK = {"default": 0, "file": 1, "environment": 2, "flag": 3}


class _Invalid(Exception):
    """A value that cannot be used; its fault is recorded already."""


def bind(
    table: PluginTable | Mapping[str, Any],
    config_type: type[T],
    path: str = "",
    *,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> tuple[T | None, tuple[str, ...]]:
    """Turn a raw table into any frozen dataclass; the value is None when there are faults.

    A `PluginTable` knows its path and its environment; a plain mapping takes them from the arguments.
    """
    if not isinstance(table, PluginTable):
        table = PluginTable(path=(path,) if path else (), node=as_node(dict(table), DEFAULT), environ=environ)
    value, faults = bind_table(table, config_type)
    return value, tuple(map(str, faults))


def bind_table(table: PluginTable, config_type: type[T]) -> tuple[T | None, tuple[Fault, ...]]:
    """Turn the table of a plugin's kind into its dataclass; the value is None when there are faults."""
    binder = Binder(table.environ)
    wanted = {field.name for field in fields(cast(Any, config_type))}
    shared = {key: node for key, node in table.shared.items() if key in wanted}
    node = Node({**shared, **table.entries}, table.node.origin)
    value = binder.bind_table(node, config_type, table.path, also_known=table.core_keys)
    return (None if binder.faults else value), tuple(binder.faults)


@cache
def field_hints(config_type: Any) -> Mapping[str, Any]:
    # Compiling every annotation anew is most of what loading a configuration costs.
    return get_type_hints(config_type)


def without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        others = [argument for argument in get_args(hint) if argument is not NoneType]
        if len(others) == 1:
            return others[0]
    return hint


class Binder:
    """One run: collects faults, and the origin of every value."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.faults: list[Fault] = []
        self.origins: dict[KeyPath, Origin] = {}
        self.secret_files: dict[KeyPath, Path] = {}

    def bind_table(
        self, node: Node, config_type: type[T], path: KeyPath, *, also_known: tuple[str, ...] = ()
    ) -> T | None:
        """Bind a table; None when a required key is missing or wrong, or when the class itself refuses the values.

        A wrong value of a key with a default is recorded as a fault and the default stands in for it, so that the
        checks of the rest still run.
        """
        if not isinstance(node.value, dict):
            self._fault(path, node, f"expected a table, not {describe(node)}")
            return None
        declared = {field.name: field for field in fields(cast(Any, config_type)) if field.init}
        rest = next((field for field in declared.values() if field.metadata.get("remainder")), None)
        taken, left = self._assign(node, declared, rest, path)
        hints = field_hints(cast(Any, config_type))
        arguments: dict[str, Any] = {}
        complete = True
        for name, field in declared.items():
            if field is rest:
                arguments[name] = self._remainder(node, left, taken, declared, path)
                continue
            hint = hints[name]
            given = taken.get(name)
            if given is None and is_dataclass(hint) and hint is not Share:
                given = Node({}, DEFAULT)  # a table that always exists: its own keys have defaults
            try:
                if given is None:
                    self._default(node, field, (*path, name))
                else:
                    arguments[name] = self._value(given, hint, field.metadata, (*path, name))
            except _Invalid:
                complete = complete and _has_default(field)
        if rest is None:
            for key, unknown in left.items():
                known = [name for name in declared if not declared[name].metadata.get("remainder")]
                self._fault((*path, key), unknown, unknown_key(key, (*known, *also_known)))
        return self._construct(node, config_type, arguments, path) if complete else None

    def _construct(self, node: Node, config_type: type[T], arguments: dict[str, Any], path: KeyPath) -> T | None:
        try:
            return config_type(**arguments)
        except ValueError as error:
            # A plugin's __post_init__ may look at several keys at once.
            self._fault(path, node, str(error))
            return None

    def _assign(
        self, node: Node, declared: Mapping[str, Field[Any]], rest: Field[Any] | None, path: KeyPath
    ) -> tuple[dict[str, Node], dict[str, Node]]:
        """Sort the entries of a table by field: aliases, and the keys of an inlined sub-table, count as the field."""
        names = {name: name for name, field in declared.items() if field is not rest}
        for name, field in declared.items():
            names.update(dict.fromkeys(field.metadata.get("aliases", ()), name))
        taken: dict[str, Node] = {}
        left: dict[str, Node] = {}
        spelled: dict[str, str] = {}
        for key, entry, inlined in self._entries(node, rest, path):
            target, slot = (taken if key in names else left), names.get(key, key)
            if inlined and key in names and not declared[slot].metadata.get("inlinable"):
                self._fault((*path, inlined, key), entry, f'"{key}" belongs to {dotted(path)} itself')
                continue
            shown = f"{inlined}.{key}" if inlined else key
            earlier = target.get(slot)
            if earlier is not None and _RANK[earlier.origin.layer] == _RANK[entry.origin.layer]:
                self._fault((*path, slot), entry, f'given twice, as "{spelled[slot]}" and as "{shown}"')
            if earlier is None or _RANK[earlier.origin.layer] < _RANK[entry.origin.layer]:
                target[slot] = entry
                spelled[slot] = shown
        return taken, left

    def _entries(self, node: Node, rest: Field[Any] | None, path: KeyPath) -> list[tuple[str, Node, str]]:
        """The keys of a table and of its inlined sub-table; the third part names the sub-table, or is empty."""
        sub_table: str | None = rest.metadata.get("inlined") if rest else None
        entries: list[tuple[str, Node, str]] = []
        for key, entry in node.value.items():
            if key != sub_table:
                entries.append((key, entry, ""))
            elif isinstance(entry.value, dict):
                entries.extend((inner, value, key) for inner, value in entry.value.items())
            else:
                self._fault((*path, key), entry, f"expected a table, not {describe(entry)}")
        return entries

    def _remainder(
        self,
        node: Node,
        left: dict[str, Node],
        taken: dict[str, Node],
        declared: Mapping[str, Field[Any]],
        path: KeyPath,
    ) -> PluginTable:
        for key, entry in left.items():
            self.origins[(*path, key)] = entry.origin
        return PluginTable(
            path=path,
            node=Node(left, node.origin),
            shared=MappingProxyType(taken),
            core_keys=tuple(name for name, field in declared.items() if not field.metadata.get("remainder")),
            environ=self._environ,
        )

    def _plugin_table(self, node: Node, path: KeyPath) -> PluginTable:
        if not isinstance(node.value, dict):
            self._fault(path, node, f"expected a table, not {describe(node)}")
            raise _Invalid
        for key, entry in node.value.items():
            self.origins[(*path, key)] = entry.origin
        return PluginTable(path=path, node=node, environ=self._environ)

    def _default(self, node: Node, field: Field[Any], path: KeyPath) -> None:
        if not _has_default(field):
            self._fault(path, node, "is missing")
            raise _Invalid
        self.origins[path] = DEFAULT

    def _value(self, node: Node, hint: Any, metadata: Mapping[str, Any], path: KeyPath) -> Any:
        """Bind one value of any type that a key can have."""
        self.origins[path] = node.origin
        hint = without_none(hint)
        kind = get_origin(hint) or hint
        if hint is Secret or metadata.get("secret"):
            place = file_of(node)
            if place is not None:
                self.secret_files[path] = place
            return self._guard(node, path, lambda: read_secret(node, self._environ))
        if kind in (tuple, list, frozenset):
            return self._array(node, hint, metadata, path)
        if kind in (Mapping, dict) or getattr(kind, "__name__", "") == "Mapping":
            return self._mapping(node, hint, metadata, path)
        if hint is PluginTable:
            return self._plugin_table(self._parsed(node, path, "{"), path)
        if isinstance(hint, type) and is_dataclass(hint) and hint is not Share:
            bound = self.bind_table(self._parsed(node, path, "{"), hint, path)
            if bound is None:
                raise _Invalid
            return bound
        return self._guard(node, path, lambda: read_scalar(node, hint, metadata))

    def _guard(self, node: Node, path: KeyPath, read: Any) -> Any:
        try:
            return read()
        except ValueError as error:
            self._fault(path, node, str(error))
            raise _Invalid from None

    def _parsed(self, node: Node, path: KeyPath, opening: str) -> Node:
        """Words of the environment that stand for a table or an array are written as in a file."""
        if not (node.text and isinstance(node.value, str) and node.value.lstrip().startswith(opening)):
            return node
        try:
            document = tomllib.loads(f"value = {node.value.strip()}")
        except tomllib.TOMLDecodeError:
            document = {}
        if list(document) != ["value"]:
            self._fault(path, node, "cannot be read as a TOML value")
            raise _Invalid
        return as_node(document["value"], node.origin)

    def _array(self, node: Node, hint: Any, metadata: Mapping[str, Any], path: KeyPath) -> Any:
        node = self._parsed(node, path, "[")
        item_hint = (get_args(hint) or (Any,))[0]
        value = node.value
        if isinstance(value, dict):
            value = self._indexed(node, path)
        elif node.text and isinstance(value, str):
            parts = (part.strip() for part in value.split(","))
            value = [Node(part, node.origin, text=True) for part in parts if part]
        elif metadata.get("one_or_many") and not isinstance(value, list):
            value = [node]
        if not isinstance(value, list):
            wanted = f"an array of tables, [[{dotted(path)}]]" if _is_table(item_hint) else "an array"
            self._fault(path, node, f"expected {wanted}, not {describe(node)}")
            raise _Invalid
        items: list[Any] = []
        valid = True
        for index, item in enumerate(value):
            try:
                items.append(self._value(item, item_hint, metadata, (*path, index)))
            except _Invalid:
                valid = False
        if not valid and not _is_table(item_hint):
            raise _Invalid
        return frozenset(items) if get_origin(hint) is frozenset else tuple(items)

    def _indexed(self, node: Node, path: KeyPath) -> list[Node] | None:
        """Entries that only the environment gives, as `…__0__TYPE`."""
        if not node.value or not all(key.isdecimal() for key in node.value):
            return None
        if sorted(map(int, node.value)) != list(range(len(node.value))):
            first = min(node.value.items(), key=lambda entry: -int(entry[0]))[1]
            self._fault(path, first, f"array entries are counted from 0 without a gap, not {', '.join(node.value)}")
            raise _Invalid
        return [node.value[index] for index in sorted(node.value, key=int)]

    def _mapping(self, node: Node, hint: Any, metadata: Mapping[str, Any], path: KeyPath) -> Mapping[str, Any]:
        node = self._parsed(node, path, "{")
        if not isinstance(node.value, dict):
            self._fault(path, node, f"expected a table, not {describe(node)}")
            raise _Invalid
        item_hint = (get_args(hint) or (str, Any))[1]
        bound: dict[str, Any] = {}
        for key, item in node.value.items():
            try:
                bound[key] = self._value(item, item_hint, metadata, (*path, key))
            except _Invalid:
                continue
        return MappingProxyType(bound)

    def _fault(self, path: KeyPath, node: Node, message: str) -> None:
        self.faults.append(Fault(path, message, node.origin))


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _is_table(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)
