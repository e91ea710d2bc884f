"""The file of API keys: what stands in it, how a key is hashed, and how entries are added and taken away.

    [[keys]]
    key = "hmac-sha256:<salt>:<digest>"    # or the key itself, where that is allowed
    user = "etl"
    description = "nightly load"
    groups = ["loaders"]
    roles = []

A key is 256 random bits, so one round of HMAC-SHA-256 with a salt is enough: nobody can guess what it hides, and all
entries can be tried at each login.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqe_core.config.binder import bind
from sqe_core.spi.errors import ConfigError
from sqe_core.spi.factory import required, setting
from sqe_core.spi.identity import Secret, is_clean_name

DEFAULT_PREFIX = "sqe_"

_HASH = "hmac-sha256"
_HASHED = re.compile(rf"{_HASH}:([0-9A-Za-z]{{16,128}}):([0-9a-f]{{64}})")
_LOOKS_HASHED = re.compile(r"[a-z0-9-]+:|\$")
_TABLE = re.compile(r"\s*\[\[\s*keys\s*\]\]\s*(#.*)?")
_ANY_TABLE = re.compile(r"\s*\[")
_KEY_BYTES = 32
_MOST_KEYS = 2000
_LARGEST_FILE = 4 * 1024 * 1024
_OTHERS_MAY_READ = 0o004


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    key: Secret = required("the key, or its hash", secret=True)
    user: str = required("who logs in with it")
    description: str = setting("", "what it is for")
    groups: tuple[str, ...] = setting((), "groups of the user")
    roles: tuple[str, ...] = setting((), "roles of the user")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    keys: tuple[KeyEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is kept in memory: never the key itself."""

    entry_id: str
    """What people call it; it says nothing about the key."""
    hashed: bool
    """Whether the file holds the hash."""
    salt: str = field(repr=False)
    digest: bytes = field(repr=False)
    user: str
    description: str
    groups: frozenset[str]
    roles: frozenset[str]

    def fits(self, key: Secret) -> bool:
        """Whether this is the entry of a key; takes the same time for every key of one length."""
        return hmac.compare_digest(self.digest, _digest(self.salt, key.reveal()))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFile:
    """A file that was read: its keys, and what changes when somebody writes it."""

    keys: tuple[ApiKey, ...]
    version: tuple[int, ...]


class KeyFileReader:
    """Reads one file again and again. Plain keys get one salt for the reader's life, so their ids stay.

    Args:
        path: the file.
        prefix: what each key begins with.
        strict: refuse plain keys, and a file that everybody can read.
    """

    def __init__(self, path: Path, *, prefix: str = DEFAULT_PREFIX, strict: bool = False) -> None:
        self.path = path
        self._prefix = prefix
        self._strict = strict
        self._salt = secrets.token_hex(16)

    def version(self) -> tuple[int, ...] | None:
        """Return what changes when somebody writes the file; None while there is none."""
        try:
            return _version(os.stat(self.path))
        except OSError:
            return None

    def read(self) -> KeyFile:
        """Read the file. Raises ConfigError with every fault, and none of the keys."""
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                content = file.read(_LARGEST_FILE + 1)
        except (OSError, ValueError) as error:
            raise ConfigError((f"cannot read {self.path}: {_reason(error)}",)) from None
        if len(content) > _LARGEST_FILE:
            raise ConfigError((f"{self.path} is larger than {_LARGEST_FILE} bytes",))
        if self._strict and found.st_mode & _OTHERS_MAY_READ:
            raise ConfigError((f"everybody on this machine can read {self.path} (chmod o-r)",))
        return KeyFile(keys=self._keys(content), version=_version(found))

    def _keys(self, content: bytes) -> tuple[ApiKey, ...]:
        entries = parse(content, self.path)
        if len(entries) > _MOST_KEYS:
            raise ConfigError((f"{self.path} has more than {_MOST_KEYS} keys",))
        keys = tuple(map(self._hashed, entries))
        faults: list[str] = []
        for index, (entry, key) in enumerate(zip(entries, keys, strict=True)):
            where = f"{self.path}: keys[{index}]"
            faults += [where + fault for fault in self._faults(entry)]
            # A plain key finds itself, and its hash when that stands there too.
            others = [other for other in keys if other.fits(entry.key)] if not key.hashed else []
            if len(others) > 1 or sum(other.digest == key.digest for other in keys) > 1:
                faults.append(f"{where}.key: stands there twice")
        if faults:
            raise ConfigError(tuple(faults))
        return keys

    def _faults(self, entry: KeyEntry) -> Iterator[str]:
        text = entry.key.reveal()
        if not _HASHED.fullmatch(text):
            if _LOOKS_HASHED.match(text):
                yield f".key: no hash that is known; expected {_HASH}:<salt>:<64 hexadecimal digits>"
            elif not text.startswith(self._prefix) or len(text) <= len(self._prefix):
                yield f".key: does not begin with {self._prefix!r} (key_prefix)"
            elif self._strict:
                yield ".key: a plain key; production_mode wants its hash (`sqe auth make-key` writes one)"
        if not is_clean_name(entry.user):
            yield ".user: is empty, too long, or holds control characters"
        if not all(map(is_clean_name, (*entry.groups, *entry.roles))):
            yield ": a group or role is empty, too long, or holds control characters"

    def _hashed(self, entry: KeyEntry) -> ApiKey:
        text = entry.key.reveal()
        match = _HASHED.fullmatch(text)
        salt = match[1] if match else self._salt
        digest = bytes.fromhex(match[2]) if match else _digest(salt, text)
        return ApiKey(
            entry_id=entry_id(entry),
            hashed=match is not None,
            salt=salt,
            digest=digest,
            user=entry.user,
            description=entry.description,
            groups=frozenset(entry.groups),
            roles=frozenset(entry.roles),
        )


def parse(content: bytes, path: Path) -> tuple[KeyEntry, ...]:
    """Read the entries of a file. Raises ConfigError."""
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ConfigError((f"{path}: is no UTF-8",)) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Never the line itself: it may be a key.
        place = re.search(r"\(at (line \d+, column \d+|end of document)\)", str(error))
        raise ConfigError((f"{path}: is no TOML{', ' + place[1] if place else ''}",)) from None
    entries, faults = bind(table, _Entries)
    if entries is None:
        raise ConfigError(tuple(f"{path}: {fault}" for fault in faults))
    return entries.keys


def entry_id(entry: KeyEntry) -> str:
    """Return what people call an entry. 32 bits of a hash: enough to tell keys apart, useless to find one."""
    return hashlib.sha256(b"sqe key id\0" + entry.key.reveal().encode()).hexdigest()[:8]


def is_hash(text: Secret) -> bool:
    """Whether an entry holds the hash of a key, and not the key."""
    return _HASHED.fullmatch(text.reveal()) is not None


def make_key(prefix: str = DEFAULT_PREFIX) -> Secret:
    """Return a new key: the prefix and 256 random bits."""
    return Secret(prefix + secrets.token_urlsafe(_KEY_BYTES))


def hash_key(key: Secret) -> str:
    """Return what the file holds instead of a key."""
    salt = secrets.token_hex(16)
    return f"{_HASH}:{salt}:{_digest(salt, key.reveal()).hex()}"


def append_entry(path: Path, entry: KeyEntry) -> None:
    """Add an entry to a file, which is made for its owner alone when there is none. Raises ConfigError."""
    with _rewriting(path) as rewrite:
        text = rewrite.text
        lines = ["[[keys]]", f"key = {_toml(entry.key.reveal())}", f"user = {_toml(entry.user)}"]
        if entry.description:
            lines.append(f"description = {_toml(entry.description)}")
        for name, values in (("groups", entry.groups), ("roles", entry.roles)):
            if values:
                lines.append(f"{name} = [{', '.join(map(_toml, values))}]")
        before = text.rstrip("\n") + "\n\n" if text.strip() else ""
        rewrite.replace(before + "\n".join(lines) + "\n", (*rewrite.entries, entry))


def remove_entry(path: Path, wanted: str) -> KeyEntry:
    """Take the entry of that id out of a file. Raises ConfigError."""
    with _rewriting(path, must_exist=True) as rewrite:
        found = [index for index, entry in enumerate(rewrite.entries) if entry_id(entry) == wanted]
        if len(found) != 1:
            raise ConfigError((f"{path} has {'no' if not found else 'more than one'} key {wanted}",))
        index = found[0]
        lines = rewrite.text.splitlines(keepends=True)
        starts = [number for number, line in enumerate(lines) if _TABLE.fullmatch(line.rstrip("\n"))]
        if index < len(starts):
            following = range(starts[index] + 1, len(lines))
            end = next((number for number in following if _ANY_TABLE.match(lines[number])), len(lines))
            while lines[end - 1].strip() == "" or lines[end - 1].lstrip().startswith("#"):
                end -= 1  # what stands there is about the next entry
            lines[starts[index] : end] = []
        rewrite.replace("".join(lines), (*rewrite.entries[:index], *rewrite.entries[index + 1 :]))
        return rewrite.entries[index]


@dataclass(slots=True)
class _Rewrite:
    path: Path
    text: str
    entries: tuple[KeyEntry, ...]
    owner: os.stat_result | None

    def replace(self, text: str, expected: Sequence[KeyEntry]) -> None:
        """Write the file anew, at once, when it then says what is expected; its comments stay."""
        try:
            says_so = parse(text.encode(), self.path) == tuple(expected)
        except ConfigError:
            says_so = False
        if not says_so:
            raise ConfigError((f"{self.path} is not written as [[keys]] tables; edit it by hand",))
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                if self.owner is not None:
                    os.fchmod(handle, self.owner.st_mode & 0o777)
                    with suppress(PermissionError):
                        os.fchown(handle, self.owner.st_uid, self.owner.st_gid)
                file.write(text)
                file.flush()
                os.fsync(handle)
            os.replace(name, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


@contextmanager
def _rewriting(path: Path, *, must_exist: bool = False) -> Iterator[_Rewrite]:
    """Read a file to write it again; other writers wait."""
    path = path.expanduser().resolve()
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigError((f"cannot open the folder {path.parent}: {_reason(error)}",)) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        owner: os.stat_result | None = None
        content = b""
        if must_exist or path.exists():
            owner = path.stat()
            content = path.read_bytes()
        yield _Rewrite(path=path, text=content.decode("utf-8"), entries=parse(content, path), owner=owner)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError((f"cannot change {path}: {_reason(error)}",)) from None
    finally:
        os.close(folder)


def _digest(salt: str, key: str) -> bytes:
    return hmac.new(salt.encode(), key.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _toml(text: str) -> str:
    escaped = "".join(
        f"\\u{ord(char):04x}" if ord(char) < 0x20 or ord(char) == 0x7F else char
        for char in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__
