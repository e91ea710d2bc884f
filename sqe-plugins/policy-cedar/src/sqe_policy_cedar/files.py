"""The files of the policies: read whole, bounded, and looked at again when they change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqe_policy_cedar.config import CedarConfig

MAX_POLICY_BYTES = 4 << 20
"""Of all policy files together."""
MAX_POLICY_FILES = 1000
MAX_SCHEMA_BYTES = 1 << 20
MAX_ENTITY_BYTES = 16 << 20
_ATTEMPTS = 3


class PolicyFileError(ValueError):
    """Files that cannot be used; the text is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """All files, as one state of them."""

    policies: tuple[tuple[str, str], ...]
    schema: str | None
    entities: str | None
    catalog: str | None = None
    """The one of names without."""

    @property
    def digest(self) -> str:
        """What tells two states apart."""
        state = repr((self.policies, self.schema, self.entities))
        return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()[:16]


Stamp = tuple[tuple[str, int, int, int, int], ...]
"""Name, inode, size and both times of each file. Writing to a file cannot leave its change time alone."""


class PolicyFiles:
    def __init__(self, config: CedarConfig) -> None:
        if config.policies_path is None:
            raise PolicyFileError("policies_path is missing")
        self._policies = _absolute(config.policies_path)
        self._schema = None if config.schema_path is None else _absolute(config.schema_path)
        self._catalog = config.catalog
        self._entities = None if config.entities_path is None else _absolute(config.entities_path)

    def stamp(self) -> Stamp:
        """Return what changes when the files do; raises OSError."""
        return tuple(_stamp_of(path) for path in self._paths())

    def read(self) -> tuple[Texts, Stamp]:
        """Read all files in one state of them.

        Raises:
            PolicyFileError: a file is missing, too large or no text, or they change all the time.
        """
        for _ in range(_ATTEMPTS):
            try:
                before = self.stamp()
                texts = self._texts()
                if self.stamp() == before:
                    return texts, before
            except OSError as error:
                raise PolicyFileError(f"{error.filename or self._policies}: {error.strerror or error}") from error
        raise PolicyFileError(f"{self._policies}: the files change while they are read")

    def _texts(self) -> Texts:
        policies: list[tuple[str, str]] = []
        left = MAX_POLICY_BYTES
        for path in self._policy_paths():
            text, size = _read(path, left, f"the policies hold more than {MAX_POLICY_BYTES} bytes")
            left -= size
            policies.append((path.name, text))
        if not policies:
            raise PolicyFileError(f"{self._policies}: there is no *.cedar file in it")
        return Texts(
            policies=tuple(policies),
            schema=_optional(self._schema, MAX_SCHEMA_BYTES),
            entities=_optional(self._entities, MAX_ENTITY_BYTES),
            catalog=self._catalog,
        )

    def _paths(self) -> Iterator[Path]:
        yield from self._policy_paths()
        yield from (path for path in (self._schema, self._entities) if path is not None)

    def _policy_paths(self) -> list[Path]:
        if not self._policies.is_dir():
            return [self._policies]
        with os.scandir(self._policies) as entries:
            names = sorted(each.name for each in entries if each.name.endswith(".cedar") and each.name[0] != ".")
        if len(names) > MAX_POLICY_FILES:
            raise PolicyFileError(f"{self._policies}: there are more than {MAX_POLICY_FILES} files in it")
        return [self._policies / name for name in names]


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _stamp_of(path: Path) -> tuple[str, int, int, int, int]:
    state = path.stat()
    return str(path), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _optional(path: Path | None, most: int) -> str | None:
    return None if path is None else _read(path, most, f"it holds more than {most} bytes")[0]


def _read(path: Path, most: int, complaint: str) -> tuple[str, int]:
    if not path.is_file():
        raise PolicyFileError(f"{path}: is no file" if path.exists() else f"{path}: does not exist")
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise PolicyFileError(f"{path}: {complaint}")
    try:
        return content.decode("utf-8"), len(content)
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"{path}: is no UTF-8 text") from error
