"""Logins that are kept: who the identity provider of a server is, and the tokens it gave.

One file for each server, for its owner alone. The tokens stand in the keyring of the system where there is one, else
in the file. A login belongs to one server, issuer and client, and is never used for another.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from sqe_core.cli.login.http import LoginError
from sqe_core.cli.login.provider import DEFAULT_SCOPE, Client, Tokens
from sqe_core.spi.identity import Secret

_VERSION = 1
_IN_KEYRING = "keyring"
_LARGEST = 128 * 1024
_KEYRING_SERVICE = "sqe-cli"
# What a keyring's own authors call fit for use without being asked for.
_RECOMMENDED = 1


class Vault(Protocol):
    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a secret."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedLogin:
    """What is known of one server. Without tokens nobody is logged in, and the client is remembered."""

    client: Client
    tokens: Tokens | None = None


class LoginStore:
    """The saved login of one server.

    Args:
        server: the server's name here: how it is reached, host and port.
        folder: where the files are.
        find_vault: finds the keyring, which takes a while; None keeps the tokens in the file.
    """

    def __init__(self, server: str, folder: Path, find_vault: Callable[[], Vault | None]) -> None:
        self._server = server
        self._folder = folder
        self._find_vault = find_vault
        self._name = hashlib.sha256(server.encode()).hexdigest()[:32]
        self._path = folder / f"{self._name}.json"

    def read(self) -> SavedLogin | None:
        """Return what is saved; None when there is nothing.

        Raises:
            LoginError: there is something that others can read or have written.
        """
        document = self._read_file()
        if document is None or document.get("version") != _VERSION or document.get("server") != self._server:
            return None
        client = _client(document.get("client"))
        if client is None:
            return None
        kept = document.get("tokens")
        if kept == _IN_KEYRING:
            kept = self._from_vault()
            # Somebody else's file must not send these tokens elsewhere.
            if not isinstance(kept, dict) or kept.get("client") != document.get("client"):
                kept = None
        return SavedLogin(client=client, tokens=_tokens(kept))

    def write(self, login: SavedLogin) -> None:
        """Keep a login in place of the one that is there."""
        client = asdict(login.client)
        document: dict[str, Any] = {"version": _VERSION, "server": self._server, "client": client, "tokens": None}
        if login.tokens is not None:
            tokens = {"server": self._server, "client": client, **_written(login.tokens)}
            document["tokens"] = _IN_KEYRING if self._into_vault(tokens) else tokens
        if document["tokens"] != _IN_KEYRING:
            self._forget_in_vault()
        self._write_file(document)

    def forget_tokens(self) -> None:
        """Delete the tokens; who the identity provider is stays known."""
        saved = self.read()
        self._forget_in_vault()
        if saved is not None:
            self.write(SavedLogin(client=saved.client))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other shells from renewing the same login at the same time: a refresh token may be good for one use."""
        self._make_folder()
        with _opened(self._folder / f"{self._name}.lock", os.O_RDWR | os.O_CREAT) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @cached_property
    def _vault(self) -> Vault | None:
        return self._find_vault()

    def _read_file(self) -> Mapping[str, Any] | None:
        try:
            with _opened(self._path, os.O_RDONLY) as file:
                found = os.fstat(file)
                if found.st_uid != os.getuid() or found.st_mode & 0o077 or not stat.S_ISREG(found.st_mode):
                    raise LoginError(f"The saved login {self._path} can be used by others; delete it and log in again")
                raw = os.read(file, _LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LoginError(f"The saved login {self._path} cannot be read: {error.strerror}") from None
        try:
            document = json.loads(raw)
        except ValueError:
            return None
        return document if isinstance(document, dict) else None

    def _write_file(self, document: Mapping[str, Any]) -> None:
        try:
            self._make_folder()
            # Made for its owner alone, and never half written.
            descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=f".{self._name}")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(document, file)
                os.replace(name, self._path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            raise LoginError(f"The login cannot be saved in {self._folder}: {error.strerror}") from None

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = self._folder.stat()
        except OSError as error:
            raise LoginError(f"The login cannot be saved in {self._folder}: {error.strerror}") from None
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise LoginError(f"Others can write to {self._folder}; chmod 700 it")

    def _from_vault(self) -> Any:
        if self._vault is None:
            return None
        try:
            text = self._vault.get_password(_KEYRING_SERVICE, self._name)
            return json.loads(text) if text else None
        except Exception:  # noqa: BLE001 - a keyring that is locked or broken is one without this login
            return None

    def _into_vault(self, tokens: Mapping[str, Any]) -> bool:
        if self._vault is None:
            return False
        text = json.dumps(tokens)
        try:
            self._vault.set_password(_KEYRING_SERVICE, self._name, text)
            # Some keep the beginning of a long secret.
            return self._vault.get_password(_KEYRING_SERVICE, self._name) == text
        except Exception:  # noqa: BLE001 - locked, broken, or too small for a token: then the file
            return False

    def _forget_in_vault(self) -> None:
        if self._vault is not None:
            with contextlib.suppress(Exception):  # it is not there
                self._vault.delete_password(_KEYRING_SERVICE, self._name)


def default_folder(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "sqe" / "logins"


def system_vault() -> Vault | None:
    """Return the keyring of the system; None without one, or without the library."""
    try:
        import keyring
    except ImportError:
        return None
    try:
        vault = keyring.get_keyring()
        return vault if float(vault.priority) >= _RECOMMENDED else None
    except Exception:  # noqa: BLE001 - a broken keyring is none
        return None


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _client(found: object) -> Client | None:
    if not isinstance(found, dict):
        return None
    issuer, client_id = found.get("issuer"), found.get("client_id")
    scope, audience = found.get("scope", DEFAULT_SCOPE), found.get("audience")
    if not isinstance(issuer, str) or not isinstance(client_id, str) or not isinstance(scope, str):
        return None
    if audience is not None and not isinstance(audience, str):
        return None
    return Client(issuer=issuer, client_id=client_id, scope=scope, audience=audience)


def _written(tokens: Tokens) -> dict[str, Any]:
    return {
        "access_token": tokens.access_token.reveal(),
        "refresh_token": tokens.refresh_token.reveal() if tokens.refresh_token else None,
        "lifetime_secs": tokens.lifetime_secs,
        "expires_at": tokens.expires_at,
        "user": tokens.user,
    }


def _tokens(found: object) -> Tokens | None:
    if not isinstance(found, dict):
        return None
    access, refresh, user = found.get("access_token"), found.get("refresh_token"), found.get("user")
    lifetime, expiry = found.get("lifetime_secs"), found.get("expires_at")
    if not isinstance(access, str) or not isinstance(lifetime, int | float) or not isinstance(expiry, int | float):
        return None
    return Tokens(
        access_token=Secret(access),
        refresh_token=Secret(refresh) if isinstance(refresh, str) else None,
        lifetime_secs=float(lifetime),
        expires_at=float(expiry),
        user=user if isinstance(user, str) else None,
    )
