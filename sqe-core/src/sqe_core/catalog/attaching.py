"""ATTACH, DETACH and secrets, carried out: for everybody who is connected, until the process ends.

Who may is decided before. What goes wrong at a location is told in words of ours that are always the same on a server:
whoever attaches must not learn from errors what answers at an address, or which files there are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqe_core.catalog.backends import ATTACHED_FILE
from sqe_core.catalog.local_places import LocalPlaces, local_paths
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.catalog.secret_store import Secrets, checked
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.engine.port import EngineExecutionError
from sqe_core.spi.catalog import AttachRequest, CatalogBackend, CatalogContext, CatalogFactory, Jar
from sqe_core.spi.errors import (
    ConfigError,
    EngineLostError,
    ErrorCode,
    ExternalError,
    NotSupportedError,
    ObjectNotFoundError,
    PluginError,
    ResourcesError,
    SqeError,
    UserError,
)
from sqe_core.spi.names import RESERVED_PREFIXES
from sqe_core.sql.statements.attachments import Attach, CreateSecret

_log = logging.getLogger(__name__)

# What means something else than a catalog, to us or to the engine.
_RESERVED = frozenset({"system", INFORMATION_SCHEMA, "spark_catalog", "session", "global_temp", "default", "temp"})
_NEVER_IN_A_NAME = frozenset('/\\:#`"$.\0')
_LONGEST_NAME = 128
_MOST_ATTACHED = 200
_DOES_NOT_ANSWER = "There is no catalog of this type at this location, or it does not answer"

Probe = Callable[[Mount], None]
"""Asks a catalog for something, as whoever attaches it; raises when it does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRules:
    """What ATTACH goes by.

    Attributes:
        factory_of: the factory of a TYPE; raises PluginError.
        context: what a factory is offered.
        places: what must not be reached on this machine; None for people at their own machine, who may all.
        engine_jars: groups of jars, and jars of plugins, that the engine runs with.
        shared_identity: whether catalogs may be used at which everybody is one identity (AUTHN-3).
    """

    factory_of: Callable[[str], CatalogFactory[Any]]
    context: CatalogContext = field(default_factory=CatalogContext)
    places: LocalPlaces | None = None
    engine_jars: frozenset[str | Jar] = frozenset()
    shared_identity: bool = True


class Attachments:
    """Attached catalogs and secrets of one process. Safe for use from many threads.

    `changed` is called when a name means another catalog than before, to forget what was decided about it.
    """

    def __init__(
        self,
        registry: CatalogRegistry,
        rules: AttachRules,
        secrets: Secrets | None = None,
        *,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._rules = rules
        self._secrets = secrets or Secrets()
        self._changed = changed
        self._lock = threading.Lock()
        # Names and secrets of catalogs that are being attached: asking one of them may take long.
        self._coming: dict[str, str | None] = {}

    # Secrets

    def create_secret(self, wanted: CreateSecret) -> None:
        """CREATE SECRET. Who is attached with the secret already goes on with what it was."""
        if wanted.if_not_exists and wanted.name in self._secrets.read():
            return
        self._secrets.create(
            checked(wanted.name, wanted.type, wanted.values), lasting=wanted.lasting, replace=wanted.replace
        )

    def drop_secret(self, name: str, *, if_exists: bool = False) -> None:
        """DROP SECRET, unless a catalog is attached with it."""
        with self._lock:
            if if_exists and name not in self._secrets.read():
                return
            users = sorted(
                {mount.name for mount in self._registry.mounts() if mount.secret == name}
                | {coming for coming, secret in self._coming.items() if secret == name}
            )
            if users:
                raise UserError(
                    f"secret '{name}' is used by catalog '{users[0]}'",
                    code=ErrorCode.INVALID_ARGUMENTS,
                    hint=f"DETACH {', '.join(users)} first",
                )
            self._secrets.drop(name)

    def secrets(self) -> Sequence[tuple[str, str]]:
        """Return name and type of every secret, by name."""
        return sorted((secret.name, secret.type) for secret in self._secrets.read().values())

    # Catalogs

    def attach(self, wanted: Attach, probe: Probe) -> None:
        """Mount a catalog that answers, for everybody. What fails leaves nothing behind."""
        with self._reserved(wanted) as former:
            if former is not None and wanted.if_not_exists:
                return
            request = AttachRequest(
                name=wanted.name,
                location=wanted.location,
                options=wanted.options,
                secret=self._secrets.find(wanted.secret) if wanted.secret is not None else None,
            )
            factory, settings = self._understood(wanted.type, request)
            with self._made(factory, settings, request) as backend:
                mount = Mount(name=wanted.name, backend=backend, attached=True, secret=wanted.secret)
                with self._told(request):
                    backend.check()
                    probe(mount)
                with self._lock:
                    if former is not None and self._registry.holds(former):
                        self._registry.replace(former, mount)
                    else:
                        self._registry.add(mount)
        self._changed()

    def detach(self, name: str, *, if_exists: bool = False) -> None:
        """Take an attached catalog away, from everybody. Statements that read it go on."""
        with self._lock:
            mount = self._registry.find(name)
            if mount is not None and not mount.attached:
                raise UserError(
                    f"catalog '{name}' is not attached",
                    code=ErrorCode.INVALID_ARGUMENTS,
                    hint="it belongs to the configuration, and goes with it",
                )
            if mount is None:
                if if_exists:
                    return
                raise ObjectNotFoundError(f"catalog '{name}' is not attached", code=ErrorCode.CATALOG_NOT_FOUND)
            self._registry.remove(mount)
        self._changed()

    @contextmanager
    def _reserved(self, wanted: Attach) -> Iterator[Mount | None]:
        """Nobody else attaches under this name, or drops the secret, meanwhile; gives what has the name now."""
        with self._lock:
            former = self._check_name(wanted)
            self._coming[wanted.name] = wanted.secret
        try:
            yield former
        finally:
            with self._lock:
                del self._coming[wanted.name]

    def _check_name(self, wanted: Attach) -> Mount | None:
        name = wanted.name
        if (
            name.lower() in _RESERVED
            or name.lower().startswith(RESERVED_PREFIXES)
            or _NEVER_IN_A_NAME.intersection(name)
            or not name.isprintable()
            or len(name) > _LONGEST_NAME
        ):
            raise _refused("A catalog cannot have this name", "choose another one")
        former = self._registry.find(name)
        if former is not None and not former.attached:
            raise _refused(f"catalog '{name}' already exists and is not attached", "choose another name")
        if former is not None and not (wanted.replace or wanted.if_not_exists):
            raise _refused(f"catalog '{name}' is already attached; DETACH it first", "or use ATTACH OR REPLACE")
        if name in self._coming:
            raise _refused(f"catalog '{name}' is being attached by somebody else", "wait a moment")
        known = {*self._registry.names(), *self._coming} - {name}
        if name.casefold() in {other.casefold() for other in known}:
            raise _refused(f"catalog '{name}' would differ from another one in upper and lower case only", None)
        if former is None and sum(mount.attached for mount in self._registry.mounts()) >= _MOST_ATTACHED:
            raise ResourcesError(f"There can be {_MOST_ATTACHED} attached catalogs", hint="DETACH one first")
        return former

    def _understood(self, kind: str, request: AttachRequest) -> tuple[CatalogFactory[Any], Any]:
        """Find who makes such catalogs, and its settings. Nothing is reached yet."""
        try:
            factory = self._rules.factory_of(kind)
        except PluginError as error:
            raise _refused(error.message, error.hint) from error
        try:
            settings = factory.attach(request)
        except (ConfigError, ValueError) as error:
            raise _refused("This location or one of the options does not fit the TYPE", None) from error
        return factory, settings

    @contextmanager
    def _made(self, factory: CatalogFactory[Any], settings: Any, request: AttachRequest) -> Iterator[CatalogBackend]:
        """Make the backend; unless it is mounted in the end, it is closed again, and files that it made are removed."""
        rules = self._rules
        if rules.context.production_mode and request.location.lower().startswith("http://"):
            raise NotSupportedError("In production a catalog is reached over https")
        others = [mount.backend for mount in self._registry.mounts() if mount.name != request.name]
        if rules.places is not None:
            rules.places.check(request.location, others)
        with _leaves_no_files(request.location):
            with self._told(request):
                backend = factory.create(request.name, settings, rules.context)
            try:
                if rules.places is not None:
                    rules.places.check_made(backend, others)
                if backend.identity_mode == "shared" and not rules.shared_identity:
                    raise NotSupportedError(
                        "Everybody would be one identity at this catalog, which this server does not allow",
                        hint="security.allow_shared_service_identity waives it",
                    )
                needed = set(backend.required_jars()) - rules.engine_jars
                missing = sorted(jar if isinstance(jar, str) else jar.label for jar in needed)
                if any(isinstance(jar, Jar) for jar in needed):
                    raise NotSupportedError(
                        f"The engine runs without {', '.join(missing)}, which this catalog needs",
                        hint="a catalog of this type in the configuration brings it at the next start",
                    )
                if missing:
                    groups = ", ".join(f'"{group}"' for group in missing)
                    raise NotSupportedError(
                        f"The engine runs without the jars of {', '.join(missing)}, which this catalog needs",
                        hint=f"start it with jar_groups = [{groups}] in [engine]"
                        f" (sqe-cli: SQE_ENGINE__JAR_GROUPS={','.join(missing)}), and attach again",
                    )
                yield backend
            except BaseException:
                with suppress(Exception):
                    backend.close()
                raise

    @contextmanager
    def _told(self, request: AttachRequest) -> Iterator[None]:
        """Whatever comes back from a location becomes one text; people at their own machine read a little more."""
        try:
            yield
        except (NotSupportedError, ResourcesError, EngineLostError):
            raise
        except Exception as error:  # noqa: BLE001 - a plugin, its libraries and the engine may raise anything here
            reason = error.failure.condition if isinstance(error, EngineExecutionError) else type(error).__name__
            _log.warning("catalog %s was not attached: %s", request.name, reason)
            message, hint = _DOES_NOT_ANSWER, "check the location, the options and the secret"
            if self._rules.places is not None:
                hint += "; the server's log has the kind of the error"
            elif isinstance(error, SqeError):
                message = f"{message}: {_without(error.message, request)}"
            elif isinstance(error, EngineExecutionError):
                message = f"{message} ({reason.rpartition('.')[2]})"
            raise ExternalError(message, code=ErrorCode.CATALOG_UNAVAILABLE, hint=hint) from None


def _refused(message: str, hint: str | None) -> UserError:
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, hint=hint)


def _without(message: str, request: AttachRequest) -> str:
    """Take out of a message what may be a login."""
    values = list(request.options.values())
    if request.secret is not None:
        values += [value.reveal() for value in request.secret.values.values()]
    if not local_paths(request.location):
        values.append(request.location)
    for value in sorted((value for value in values if value), key=len, reverse=True):
        message = message.replace(value, "…")
    return message


@contextmanager
def _leaves_no_files(location: str) -> Iterator[None]:
    """A folder that was empty, or not there, is so again when ATTACH fails."""
    paths = [path for path in local_paths(location) if not (path / ATTACHED_FILE).exists()]
    absent = [path for path in paths if not path.exists()]
    try:
        yield
    except BaseException:
        for path in paths:
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    Path(f"{path / ATTACHED_FILE}{suffix}").unlink()
        for path in absent:
            with suppress(OSError):
                path.rmdir()
        raise
