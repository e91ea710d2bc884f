"""The login provider `api_key`: random keys from a file, as a bearer or as the password of a Basic login."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sqe_core.auth.key_file import DEFAULT_PREFIX, ApiKey, KeyFile, KeyFileReader
from sqe_core.spi.auth import AuthProvider, AuthProviderFactory, BasicCredential, BearerCredential, LoginRequest
from sqe_core.spi.errors import ConfigError, InvalidCredentialsError, StartupError
from sqe_core.spi.factory import PluginContext, required, setting
from sqe_core.spi.identity import Identity, Secret

_log = logging.getLogger(__name__)

# The claim that says which entry of the file somebody logged in with.
_ENTRY = "api_key"
# The roles as they stand there: `role_mappings` may have added some since.
_ROLES = "api_key_roles"
_MOST_FORMER = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyConfig:
    keys_file: Path = required("TOML file with [[keys]]; read again when it changes")
    key_prefix: str = setting(DEFAULT_PREFIX, "what each key begins with; other credentials are left to others")


class ApiKeyProvider(AuthProvider):
    """Vouches for the users of the file. What begins with the prefix is its to judge."""

    def __init__(self, name: str, config: ApiKeyConfig, context: PluginContext) -> None:
        self._name = name
        self._prefix = config.key_prefix
        self._reader = KeyFileReader(
            config.keys_file.expanduser(), prefix=config.key_prefix, strict=context.production_mode
        )
        self._lock = threading.Lock()
        self._file = self._read()
        # What was in the file since the server started: whoever comes with such a key is named in the log.
        self._former: tuple[ApiKey, ...] = ()
        self._seen: tuple[int, ...] | None = self._file.version
        if any(not key.hashed for key in self._file.keys):
            _log.warning("login provider %s: %s holds plain keys; hash them", name, self._reader.path)

    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Return the user of a key, whatever user name a Basic login gives beside it."""
        key = self._key_of(request)
        if key is None:
            return None
        # Every entry is tried, so that the time does not tell where a key stands (AUTHN-8).
        found = [entry for entry in self._keys() if entry.fits(key)]
        former = [entry for entry in self._former if entry.fits(key)]
        match found, former:
            case [entry], _:
                return self._identity(entry)
            case [entry, *_], _:
                raise InvalidCredentialsError(reason="two entries of the keys file have it", key_id=entry.entry_id)
            case _, [entry, *_]:
                raise InvalidCredentialsError(reason="it was taken from the keys file", key_id=entry.entry_id)
        raise InvalidCredentialsError(reason="no entry of the keys file has this key")

    def is_revoked(self, identity: Identity) -> bool:
        """Whether the entry is gone, or gives other rights than it did at the login."""
        entry_id = identity.claims.get(_ENTRY)
        return not any(
            entry.entry_id == entry_id and _is_still(identity, self._identity(entry)) for entry in self._keys()
        )

    def check(self) -> None:
        """Raise when the file as it is now cannot be used."""
        self._read()

    def _key_of(self, request: LoginRequest) -> Secret | None:
        match request.credential:
            case BearerCredential(token=key) | BasicCredential(password=key):
                return key if key.reveal().startswith(self._prefix) else None
        return None

    def _identity(self, entry: ApiKey) -> Identity:
        return Identity(
            issuer=f"sqe:{self._name}",
            subject=entry.user,
            username=entry.user,
            provider=self._name,
            groups=entry.groups,
            roles=entry.roles,
            claims=MappingProxyType({_ENTRY: entry.entry_id, _ROLES: tuple(sorted(entry.roles))}),
        )

    def _keys(self) -> tuple[ApiKey, ...]:
        """Return the keys of the file, read again when it changed; a broken file keeps the last good keys."""
        version = self._reader.version()
        if version == self._seen:
            return self._file.keys
        with self._lock:
            if version != self._seen:
                self._seen = version
                before = self._file.keys
                try:
                    self._file = self._reader.read()
                except ConfigError as error:
                    for fault in error.faults:
                        _log.error("login provider %s: the keys stay as they were: %s", self._name, fault)
                else:
                    self._seen = self._file.version
                    now = {entry.entry_id for entry in self._file.keys}
                    gone = tuple(entry for entry in (*before, *self._former) if entry.entry_id not in now)
                    self._former = gone[:_MOST_FORMER]
                    _log.info("login provider %s: read %d keys", self._name, len(self._file.keys))
            return self._file.keys

    def _read(self) -> KeyFile:
        try:
            return self._reader.read()
        except ConfigError as error:
            raise StartupError(f"The login provider '{self._name}' cannot use its keys: {error}") from None


def _is_still(identity: Identity, now: Identity) -> bool:
    """Whether an entry says what it said when somebody logged in with it."""
    return (identity.key, identity.groups, dict(identity.claims)) == (now.key, now.groups, dict(now.claims))


class ApiKeyFactory(AuthProviderFactory[ApiKeyConfig]):
    kind = "api_key"
    config_type = ApiKeyConfig

    def create(self, name: str, config: ApiKeyConfig, context: PluginContext) -> ApiKeyProvider:
        return ApiKeyProvider(name, config, context)
