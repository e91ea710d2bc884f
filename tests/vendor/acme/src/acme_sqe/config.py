"""The keys of our kinds in sqe.toml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqe_core.spi import Secret, required, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class BadgeConfig:
    """`[[auth.providers]]` with `type = "badge"`."""

    key: Secret = required("the key that signs badges", secret=True)
    issuer: str = setting("acme", "what identities name as their issuer")

    def __post_init__(self) -> None:
        if len(self.key.reveal()) < 16:
            raise ValueError("key has to have 16 characters or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderConfig:
    """`[catalogs.<name>]` with `type = "folder"`."""

    path: Path = required("a local folder of Iceberg tables")
    writable: bool = setting(False, "whether statements may write")
