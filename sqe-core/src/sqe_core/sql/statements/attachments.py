"""ATTACH, DETACH and secrets, once recognised. `text` never holds what is secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sqe_core.spi.identity import Secret
from sqe_core.sql.statement import Statement, StatementKind


class Attach(Statement, kind=StatementKind.ATTACH):
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


class Detach(Statement, kind=StatementKind.DETACH):
    name: str
    if_exists: bool = False


class CreateSecret(Statement, kind=StatementKind.SECRET):
    """CREATE SECRET name (TYPE type, key value). `lasting` None lets the server's configuration decide."""

    name: str
    type: str
    values: Mapping[str, Secret]
    lasting: bool | None = None
    if_not_exists: bool = False
    replace: bool = False


class DropSecret(Statement, kind=StatementKind.SECRET):
    name: str
    if_exists: bool = False


class ShowSecrets(Statement, kind=StatementKind.SHOW):
    like: str | None = None
