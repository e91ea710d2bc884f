"""The keys of our kinds in sqe.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqe_core.spi import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class BadgeConfig:
    """`[[auth.providers]]` with `type = "badge"`."""

    key: Secret = field(metadata={"secret": True, "doc": "the key that signs badges"})
    issuer: str = field(default="acme", metadata={"doc": "what identities name as their issuer"})

    def __post_init__(self) -> None:
        if len(self.key.reveal()) < 16:
            raise ValueError("key has to have 16 characters or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderConfig:
    """`[catalogs.<name>]` with `type = "folder"`."""

    path: Path = field(metadata={"doc": "a local folder of Iceberg tables"})
    writable: bool = field(default=False, metadata={"doc": "whether statements may write"})
