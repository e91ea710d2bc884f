"""How a configuration dataclass describes its keys: defaults, limits, secrets, and a line for the reader.

Everything is in `dataclasses.field` metadata, so that a plugin can say the same in its own frozen `config_type` with
`setting` and `required` of the SPI. The keys of that metadata:

    doc          what the key means, one sentence
    minimum, maximum, above   limits of a number; `above` excludes the limit itself
    unit         "bytes" (an int, written "64KB"), "duration" (a float of seconds, written "24h")
    secret       True: the value is a `Secret`, `{ env = "X" }` and `{ file = "…" }` are read, and it is never shown
    aliases      other spellings of the key
    url          a tuple of schemes: the value is an absolute URL of one of them
    optional     True: an empty URL means none
    one_or_many  True: a tuple that may also be written as one value
    refused      mapping of values to the reason why this one is refused
    pattern      (regular expression, what is expected)
    spark        what the key becomes on Spark, where that is not evident
    no_effect    why the key does nothing, or nothing yet; whoever writes it is told
    unbuilt      what is not built yet, so that a server that is asked for it does not start; of a table, for its keys
    asked        whether a value of an `unbuilt` key or table asks for it; without this every one but the default does
    protocol     the kind of protocol that listens on this port
    sink         the kind of lineage sink that this key stands for
    unsafe       mapping of values to the reason why production_mode refuses them
    remainder    True: takes the keys of the table that belong to a plugin's kind
    inlined      name of a sub-table whose keys mean the same as keys of this table
    inlinable    True: the key may stand in that sub-table
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, TypeVar

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.values import parse_bytes
from sqe_core.spi.identity import Secret

T = TypeVar("T")

HTTP = ("http", "https")
UNREAD = "nothing reads it yet"
PEER = ("https", "http", "grpc+tls", "grpcs", "grpc", "spark")


def size(default: int | str, doc: str, **metadata: Any) -> int:
    """A key of a byte size; the default is written as in a file."""
    return field(default=parse_bytes(default), metadata={"doc": doc, "unit": "bytes", **metadata})


def secret(doc: str, **metadata: Any) -> Secret | None:
    """A key whose value never prints; absent by default."""
    return field(default=None, metadata={"doc": doc, "secret": True, **metadata})


def port(default: int, doc: str, **metadata: Any) -> int:
    """A TCP port; 0 turns the listener off."""
    return field(default=default, metadata={"doc": doc, "minimum": 0, "maximum": 65535, **metadata})


def section(config_type: type[T], doc: str = "", **metadata: Any) -> T:
    """A table that always exists, because each of its keys has a default."""
    return field(default_factory=config_type, metadata={"doc": doc, **metadata})


def mapping(doc: str, **metadata: Any) -> Mapping[str, Any]:
    """A table with free names, empty by default."""
    return field(default_factory=lambda: MappingProxyType({}), metadata={"doc": doc, **metadata})


def remainder(doc: str, **metadata: Any) -> PluginTable:
    """The keys of a table that belong to a plugin's kind."""
    return field(default_factory=PluginTable, metadata={"doc": doc, "remainder": True, **metadata})
