"""What CREATE SECRET keeps: by name, for all administrators, in memory or in an encrypted file."""

from __future__ import annotations

import threading
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, cast

from sqe_core.spi.catalog import AttachSecret
from sqe_core.spi.errors import ErrorCode, NotSupportedError, ObjectNotFoundError, ResourcesError, UserError
from sqe_core.spi.identity import Secret

SecretType = Literal["bearer", "basic", "aws"]

_MOST_SECRETS = 1000
_LONGEST_VALUE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_TYPES: Mapping[str, _Keys] = MappingProxyType(
    {
        "aws": _Keys(optional=("access_key_id", "secret_access_key", "session_token", "region", "profile")),
        "basic": _Keys(required=("username", "password")),
        "bearer": _Keys(required=("token",)),
    }
)
# What other systems call them.
_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {"s3": "aws", "iceberg": "bearer", "postgres": "basic", "mysql": "basic", "http": "bearer"}
)


def checked(name: str, type_: str, values: Mapping[str, Secret]) -> AttachSecret:
    """Return a secret that is of a known type and complete. No error repeats what may be a value."""
    keys = _TYPES.get(type_)
    if keys is None:
        other = _OTHER_NAMES.get(type_)
        hint = f"write TYPE {other}" if other else f"the types of secrets are {', '.join(_TYPES)}"
        raise _wrong("CREATE SECRET does not know this TYPE", hint)
    known = (*keys.required, *keys.optional)
    hint = f"a secret of type {type_} has {', '.join(key.upper() for key in known)}"
    if not values.keys() <= set(known):
        raise _wrong(f"A secret of type {type_} does not have one of these keys", hint)
    missing = [key.upper() for key in keys.required if not values.get(key)]
    if missing:
        raise _wrong(f"A secret of type {type_} needs {', '.join(missing)}", hint)
    if type_ == "aws":
        _check_aws(values)
    for key, value in values.items():
        _check_value(key, value.reveal())
    return AttachSecret(name=name, type=cast("SecretType", type_), values=MappingProxyType(dict(values)))


def _check_aws(values: Mapping[str, Secret]) -> None:
    if ("access_key_id" in values) != ("secret_access_key" in values):
        raise _wrong("A secret of type aws needs ACCESS_KEY_ID and SECRET_ACCESS_KEY together", None)
    if ("access_key_id" in values) == ("profile" in values):
        raise _wrong("A secret of type aws has either ACCESS_KEY_ID or PROFILE", None)
    if "session_token" in values and "profile" in values:
        raise _wrong("A secret of type aws has SESSION_TOKEN beside ACCESS_KEY_ID only", None)


def _check_value(key: str, value: str) -> None:
    if not value or len(value) > _LONGEST_VALUE:
        raise _wrong(f"The value of {key.upper()} is empty or too long", None)
    # A line break would begin another header, or another line of a file of settings.
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in value):
        raise _wrong(f"The value of {key.upper()} holds a control character", "check for a line break at its end")
    if key == "token" and not (value.isascii() and " " not in value):
        raise _wrong("The value of TOKEN holds a character that no token has", None)


class SecretStore(ABC):
    """Secrets by name. Safe for use from several threads; `change` is one step for everybody who uses the store."""

    @abstractmethod
    def read(self) -> Mapping[str, AttachSecret]:
        """Return all of them."""

    @abstractmethod
    def change(self, change: Callable[[dict[str, AttachSecret]], None]) -> None:
        """Change them, all or nothing: what `change` raises leaves everything as it was."""

    def put(self, secret: AttachSecret, *, replace: bool) -> None:
        def put(secrets: dict[str, AttachSecret]) -> None:
            if secret.name in secrets and not replace:
                raise exists(secret.name)
            if secret.name not in secrets and len(secrets) >= _MOST_SECRETS:
                raise ResourcesError(f"There can be {_MOST_SECRETS} secrets", hint="drop those that nobody needs")
            secrets[secret.name] = secret

        self.change(put)

    def drop(self, name: str) -> None:
        def drop(secrets: dict[str, AttachSecret]) -> None:
            if secrets.pop(name, None) is None:
                raise missing(name)

        self.change(drop)


class MemorySecrets(SecretStore):
    """Secrets that go with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: Mapping[str, AttachSecret] = MappingProxyType({})

    def read(self) -> Mapping[str, AttachSecret]:
        return self._secrets

    def change(self, change: Callable[[dict[str, AttachSecret]], None]) -> None:
        with self._lock:
            changed = dict(self._secrets)
            change(changed)
            self._secrets = MappingProxyType(changed)


class Secrets:
    """All secrets. A name is one secret, wherever that is kept; in `kept` are those that outlive the process."""

    def __init__(self, kept: SecretStore | None = None) -> None:
        self._memory = MemorySecrets()
        self._kept = kept
        self._lock = threading.Lock()

    def create(self, secret: AttachSecret, *, lasting: bool | None = None, replace: bool = False) -> None:
        """Keep a secret that was `checked`; `lasting` None is one that outlives the process where that is possible."""
        if lasting and self._kept is None:
            raise NotSupportedError(
                "Secrets are kept in memory here, until the process ends",
                hint="leave PERSISTENT out, or set session.secrets_path",
            )
        place: SecretStore = self._memory if self._kept is None or lasting is False else self._kept
        with self._lock:
            others = [store for store in self._stores if store is not place and secret.name in store.read()]
            if others and not replace:
                raise exists(secret.name)
            place.put(secret, replace=replace)
            for store in others:
                store.drop(secret.name)

    def drop(self, name: str) -> None:
        with self._lock:
            for store in self._stores:
                if name in store.read():
                    store.drop(name)
                    return
        raise missing(name)

    def find(self, name: str) -> AttachSecret:
        found = self.read().get(name)
        if found is None:
            raise missing(name)
        return found

    def read(self) -> Mapping[str, AttachSecret]:
        found: dict[str, AttachSecret] = {}
        for store in self._stores:
            found.update(store.read())
        return found

    @property
    def _stores(self) -> tuple[SecretStore, ...]:
        return (self._memory,) if self._kept is None else (self._kept, self._memory)


def exists(name: str) -> UserError:
    return UserError(
        f"secret '{name}' already exists",
        code=ErrorCode.INVALID_ARGUMENTS,
        hint="DROP it first, or use CREATE OR REPLACE SECRET",
    )


def missing(name: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(
        f"secret '{name}' does not exist", code=ErrorCode.INVALID_ARGUMENTS, hint="SHOW SECRETS lists them"
    )


def _wrong(message: str, hint: str | None) -> UserError:
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, hint=hint)
