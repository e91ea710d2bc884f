"""`sqe auth`: makes, lists and revokes the API keys of a keys file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqe_core.auth.api_key import ApiKeyConfig
from sqe_core.auth.key_file import (
    DEFAULT_PREFIX,
    KeyEntry,
    append_entry,
    entry_id,
    hash_key,
    is_hash,
    make_key,
    parse,
    remove_entry,
)
from sqe_core.config.binder import bind
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.login_chain import login_chain
from sqe_core.spi.errors import ConfigError
from sqe_core.spi.identity import Secret, is_clean_name


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlace:
    """Where keys are kept, and what they begin with."""

    path: Path
    prefix: str = DEFAULT_PREFIX


def place_of(loaded: LoadedConfig) -> KeyPlace:
    """Return the keys file of a configuration. Raises ConfigError when it has none, or several."""
    providers = [entry for entry in login_chain(loaded.config) if entry.kind == "api_key"]
    if len(providers) != 1:
        how_many = "no" if not providers else "more than one"
        raise ConfigError(
            (f"the configuration has {how_many} login provider `api_key`; name the file with --keys-file",)
        )
    settings, faults = bind(providers[0].options, ApiKeyConfig)
    if settings is None:
        raise ConfigError(faults)
    return KeyPlace(path=settings.keys_file.expanduser(), prefix=settings.key_prefix)


def make(
    place: KeyPlace, *, user: str, groups: Sequence[str] = (), roles: Sequence[str] = (), description: str = ""
) -> tuple[Secret, str]:
    """Make a key and keep its hash; return the key, which nobody can read again, and a note for people."""
    if not all(map(is_clean_name, (user, *groups, *roles))):
        raise ConfigError(("a user, group or role is empty, too long, or holds control characters",))
    key = make_key(place.prefix)
    entry = KeyEntry(
        key=Secret(hash_key(key)),
        user=user,
        description=description,
        groups=tuple(groups),
        roles=tuple(roles),
    )
    append_entry(place.path, entry)
    return key, f"Key {entry_id(entry)} of {user}: {place.path} holds its hash, it is shown only now"


def lines(place: KeyPlace) -> Iterator[str]:
    """Describe the entries of the file, a line each, and no key."""
    try:
        content = place.path.read_bytes()
    except OSError as error:
        raise ConfigError((f"cannot read {place.path}: {error.strerror}",)) from None
    rows = [("ID", "USER", "GROUPS", "ROLES", "KEPT AS", "DESCRIPTION")]
    rows += [_row(entry) for entry in parse(content, place.path)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def revoke(place: KeyPlace, wanted: str) -> str:
    """Take an entry out of the file, which servers notice at the next login or statement."""
    entry = remove_entry(place.path, wanted)
    return f"Key {wanted} of {entry.user} is revoked"


def _row(entry: KeyEntry) -> tuple[str, str, str, str, str, str]:
    kept = "hash" if is_hash(entry.key) else "plain"
    return entry_id(entry), entry.user, _joined(entry.groups), _joined(entry.roles), kept, entry.description


def _joined(names: tuple[str, ...]) -> str:
    return ",".join(names) or "-"
