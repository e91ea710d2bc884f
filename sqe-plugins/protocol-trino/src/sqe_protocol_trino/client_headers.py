"""What a request of Trino's clients says in its headers: login, client, and the state that the client keeps."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus, unquote_plus

from multidict import CIMultiDictProxy

from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    ClientState,
    Credential,
    ErrorCode,
    InvalidCredentialsError,
    NoCredential,
    Secret,
    SessionChanges,
    UserError,
)
from sqe_protocol_trino.prepared_text import all_unpacked, packed

_ROLE = re.compile(r"(ROLE|ALL|NONE)(?:\{(.+)\})?")
_LONGEST_LABEL = 256
_SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class ClientHeaders:
    """The headers of Trino's protocol, of one request."""

    headers: CIMultiDictProxy[str]
    prefix: str = "X-Trino-"

    def text(self, name: str) -> str | None:
        """Return one header; None where it is missing or empty."""
        return (self.headers.get(self.prefix + name) or "").strip() or None

    def listed(self, name: str) -> Iterator[str]:
        """Return the entries of a header, which may come several times and have several each."""
        for line in self.headers.getall(self.prefix + name, []):
            yield from (entry.strip() for entry in line.split(",") if entry.strip())

    def pairs(self, name: str) -> dict[str, str]:
        """Return the entries of a header as names and values.

        Raises:
            UserError: an entry without a value.
        """
        found: dict[str, str] = {}
        for entry in self.listed(name):
            key, equals, value = entry.partition("=")
            if not equals or not key.strip():
                raise UserError(f"The header {self.prefix}{name} cannot be read", code=ErrorCode.INVALID_ARGUMENTS)
            found[unquote_plus(key.strip())] = unquote_plus(value.strip())
        return found

    @property
    def user(self) -> str | None:
        """Who the client says its user is, which is no proof of it (AUTHN-9)."""
        return self.text("User")

    @property
    def source(self) -> str | None:
        """What the client calls itself."""
        return (self.text("Source") or "")[:_LONGEST_LABEL] or None

    @property
    def capabilities(self) -> frozenset[str]:
        """What the client knows to do."""
        return frozenset(entry.upper() for entry in self.listed("Client-Capabilities"))

    def state(self) -> ClientState:
        """Return what the client keeps.

        Raises:
            UserError: a header that cannot be read.
        """
        schema = self.text("Schema")
        properties = self.pairs("Session")
        return ClientState(
            catalog=self.text("Catalog"),
            schema=tuple(schema.split(".")) if schema else None,
            properties=properties,
            prepared=all_unpacked(self.pairs("Prepared-Statement")),
            roles=self._roles(),
            time_zone=self.text("Time-Zone"),
            transaction=self._transaction(),
        )

    def _transaction(self) -> str | None:
        found = self.text("Transaction-Id")
        return None if found is None or found.upper() == "NONE" else found

    def _roles(self) -> tuple[str, ...] | None:
        """Return the roles that count, those chosen for a catalog too; None for all of them."""
        chosen: dict[str, tuple[str, ...] | None] = {}
        for catalog, value in self.pairs("Role").items():
            found = _ROLE.fullmatch(value)
            if found is None or (found[1] == "ROLE") != bool(found[2]):
                raise UserError(f"The header {self.prefix}Role cannot be read", code=ErrorCode.INVALID_ARGUMENTS)
            chosen[catalog] = None if found[1] == "ALL" else (found[2],) if found[2] else ()
        if _SYSTEM in chosen:
            return chosen[_SYSTEM]
        if not chosen or None in chosen.values():
            return None
        return tuple(role for roles in chosen.values() for role in roles or ())


def credential(header: str | None) -> Credential:
    """Return what an `Authorization` header presents.

    Raises:
        InvalidCredentialsError: it cannot be read.
    """
    if header is None:
        return NoCredential()
    kind, _, value = header.strip().partition(" ")
    value = value.strip()
    if kind.lower() == "bearer" and value:
        return BearerCredential(token=Secret(value))
    if kind.lower() != "basic":
        raise InvalidCredentialsError
    try:
        text = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidCredentialsError from None
    username, colon, password = text.partition(":")
    if not colon:
        raise InvalidCredentialsError
    return BasicCredential(username=username, password=Secret(password))


def change_headers(changes: SessionChanges, prefix: str) -> list[tuple[str, str]]:
    """Return what a statement changed, for the client to keep.

    Args:
        changes: what it changed.
        prefix: of the headers' names.
    """
    found: list[tuple[str, str]] = []
    if changes.catalog is not None:
        found.append(("Set-Catalog", _encoded(changes.catalog)))
    if changes.schema is not None:
        found.append(("Set-Schema", _encoded(".".join(changes.schema))))
    found += [("Set-Session", pair) for pair in _pairs(changes.set_properties)]
    found += [("Clear-Session", _encoded(name)) for name in changes.reset_properties]
    if changes.all_roles:
        found.append(("Set-Role", f"{_SYSTEM}=ALL"))
    elif changes.roles is not None:
        roles = [f"{_SYSTEM}={quote_plus(f'ROLE{{{role}}}')}" for role in changes.roles] or [f"{_SYSTEM}=NONE"]
        found += [("Set-Role", role) for role in roles]
    if changes.path is not None:
        found.append(("Set-Path", _encoded(changes.path)))
    if changes.started_transaction is not None:
        found.append(("Started-Transaction-Id", changes.started_transaction))
    if changes.cleared_transaction:
        found.append(("Clear-Transaction-Id", "true"))
    packed_texts = {name: packed(text) for name, text in changes.added_prepared.items()}
    found += [("Added-Prepare", pair) for pair in _pairs(packed_texts)]
    found += [("Deallocated-Prepare", _encoded(name)) for name in changes.removed_prepared]
    return [(prefix + name, value) for name, value in found]


def _pairs(values: Mapping[str, str]) -> Iterator[str]:
    return (f"{_encoded(name)}={_encoded(value)}" for name, value in values.items())


def _encoded(text: str) -> str:
    """Whatever a user wrote: nothing of it ends a header, or begins another one (TRI-6)."""
    return quote_plus(text)
