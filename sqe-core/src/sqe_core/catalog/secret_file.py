"""Secrets in a file: encrypted with AES-256-GCM, readable by its owner alone, replaced as a whole or not at all.

    {"format": "sqe-secrets", "version": 1, "nonce": "<base64>", "sealed": "<base64>"}

Names, types and values are sealed together, so nothing of them shows and nobody puts one entry in the place of another.
The key lies elsewhere: whoever gets at a copy of the file, in a backup for example, has nothing. Whoever can read the
memory of the server has the secrets anyway.

Every change reads the file again, under a lock that all servers with this file share, and renames a finished file over
the old one.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import json
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqe_core.catalog.secret_store import SecretStore, checked
from sqe_core.spi.catalog import AttachSecret
from sqe_core.spi.errors import ErrorCode, ExternalError, SqeError, StartupError
from sqe_core.spi.identity import Secret

KEY_BYTES = 32

_FORMAT = "sqe-secrets"
_VERSION = 1
_NONCE_BYTES = 12
_MOST_BYTES = 256 * 1024 * 1024
_MODE = 0o600
_KEY_HINT = "`openssl rand -base64 32` prints one"


def parse_key(text: Secret) -> Secret:
    """Return a key as it was written; raises StartupError unless it is 32 bytes in base64."""
    try:
        found = base64.b64decode(text.reveal().strip(), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != KEY_BYTES:
        raise StartupError(f"session.secrets_key is {KEY_BYTES} random bytes in base64", hint=_KEY_HINT)
    return Secret(text.reveal().strip())


def read_or_make_key(path: Path) -> Secret:
    """Return the key in a file that its owner alone can read; the first call makes it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make_key(path)
        with _private(path) as file:
            return parse_key(Secret(os.read(file, 4096).decode("ascii", "replace")))
    except _NotPrivateError as error:
        raise StartupError(f"The key file {path} {error}", hint=error.hint) from error
    except OSError as error:
        raise StartupError(f"The key file {path} cannot be used: {error.strerror or error}") from error


def new_key() -> Secret:
    return Secret(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode())


def _make_key(path: Path) -> None:
    """A finished file appears under the name; of two servers that make one, the second finds the first's."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
    try:
        os.write(file, f"{new_key().reveal()}\n".encode())
        os.fsync(file)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.close(file)
        temporary.unlink(missing_ok=True)


class SecretFile(SecretStore):
    """Secrets in one file. Nothing is kept in memory between two uses.

    Its folder must exist, and nobody else may be able to write there. A StartupError says that the file cannot be read,
    that others can read it, that it is damaged, or that another key sealed it.
    """

    def __init__(self, path: Path, key: Secret) -> None:
        # Imported for those alone who keep secrets: it delays every start.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._path = path
        self._lock = threading.Lock()
        self._cipher: Any = AESGCM(base64.b64decode(parse_key(key).reveal()))
        try:
            _check_folder(path.parent)
            self.read()
        except ExternalError as error:
            raise StartupError(error.message, hint=error.hint) from error
        except OSError as error:
            raise StartupError(f"The file of secrets {path} cannot be used: {error.strerror or error}") from error

    def read(self) -> Mapping[str, AttachSecret]:
        try:
            with _private(self._path) as file:
                size = os.fstat(file).st_size
                if size > _MOST_BYTES:
                    raise self._unusable("is too large")
                with os.fdopen(os.dup(file), "rb") as opened:
                    return self._open(opened.read())
        except FileNotFoundError:
            return MappingProxyType({})
        except _NotPrivateError as error:
            raise self._unusable(str(error), hint=error.hint) from error
        except OSError as error:
            raise self._unusable("cannot be read") from error

    def change(self, change: Callable[[dict[str, AttachSecret]], None]) -> None:
        with self._lock, self._locked():
            changed = dict(self.read())
            change(changed)
            try:
                self._replace(self._seal(changed))
            except OSError as error:
                raise self._unusable("cannot be written") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """No other server changes the file meanwhile. The lock is on a file of its own, which is never replaced."""
        try:
            lock = os.open(
                self._path.with_name(f"{self._path.name}.lock"),
                os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
                _MODE,
            )
        except OSError as error:
            raise self._unusable("cannot be locked") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, content: bytes) -> None:
        pattern = f".{self._path.name}.*.tmp"
        for left in self._path.parent.glob(pattern):
            left.unlink(missing_ok=True)  # by somebody who ended in the middle; nobody else is here now
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}.tmp")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
            os.rename(temporary, self._path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _seal(self, found: Mapping[str, AttachSecret]) -> bytes:
        plain = json.dumps(
            [
                {
                    "name": one.name,
                    "type": one.type,
                    "values": {key: value.reveal() for key, value in one.values.items()},
                }
                for one in found.values()
            ]
        ).encode()
        nonce = secrets.token_bytes(_NONCE_BYTES)
        written = {
            "format": _FORMAT,
            "version": _VERSION,
            "nonce": base64.b64encode(nonce).decode(),
            "sealed": base64.b64encode(self._cipher.encrypt(nonce, plain, _associated(_VERSION))).decode(),
        }
        return json.dumps(written).encode() + b"\n"

    def _open(self, content: bytes) -> Mapping[str, AttachSecret]:
        from cryptography.exceptions import InvalidTag

        try:
            written = json.loads(content)
            if written["format"] != _FORMAT or written["version"] != _VERSION:
                raise ValueError("another format")
            nonce, sealed = (base64.b64decode(written[key], validate=True) for key in ("nonce", "sealed"))
            plain = self._cipher.decrypt(nonce, sealed, _associated(_VERSION))
            return MappingProxyType({one["name"]: _secret_of(one) for one in json.loads(plain)})
        except InvalidTag:
            hint = (
                "start with the key that it was written with; without it, remove the file and create the secrets anew"
            )
            raise self._unusable("was changed, or was written with another key", hint=hint) from None
        except (ValueError, KeyError, TypeError, AttributeError, SqeError):
            # The cause is not told: it may quote what it could not read.
            raise self._unusable("is damaged", hint="restore it, or remove it and create the secrets anew") from None

    def _unusable(self, why: str, *, hint: str | None = None) -> ExternalError:
        return ExternalError(f"The file of secrets {self._path.name} {why}", code=ErrorCode.STORAGE_ERROR, hint=hint)


class _NotPrivateError(Exception):
    """A file that is not ours alone."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def _secret_of(entry: Mapping[str, Any]) -> AttachSecret:
    values = {str(key): Secret(str(value)) for key, value in entry["values"].items()}
    return checked(str(entry["name"]), str(entry["type"]), values)


def _associated(version: int) -> bytes:
    return f"{_FORMAT} {version}".encode()


def _check_folder(folder: Path) -> None:
    mode = folder.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise StartupError(f"Everybody can replace files in {folder}", hint=f"chmod o-w {folder}")


@contextmanager
def _private(path: Path) -> Iterator[int]:
    """Open a file that is ours and that nobody else can read; a link is nobody's."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise _NotPrivateError("is no plain file")
        if found.st_uid != os.geteuid():
            raise _NotPrivateError("belongs to somebody else", hint="run the server as the owner of its files")
        if found.st_mode & 0o077:
            raise _NotPrivateError("can be read or written by others", hint=f"chmod 600 {path}")
        yield file
    finally:
        os.close(file)
