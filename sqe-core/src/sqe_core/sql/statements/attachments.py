"""ATTACH, DETACH and secrets, once recognised. `text` never holds what is secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqe_core.spi.identity import Secret
from sqe_core.sql.statement import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach(Statement):
    """ATTACH '<location>' AS name (TYPE type, option value, SECRET secret).

    `options` has the other options with keys in lower case. Like the location, they may hold a login.
    """

    name: str
    type: str
    location: str = field(repr=False)
    options: Mapping[str, str] = field(repr=False)
    secret: str | None = None
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Detach(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSecret(Statement):
    """CREATE SECRET name (TYPE type, key value). `lasting` None lets the server's configuration decide."""

    name: str
    type: str
    values: Mapping[str, Secret]
    lasting: bool | None = None
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSecret(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSecrets(Statement):
    like: str | None = None
