"""What `sqe doctor` asks over the network: login providers and their clocks, catalogs, policy engines, stores.

Each is asked in a thread of its own, all at once, and given up when it does not answer: a server that hangs or is down
keeps none of the others from being looked at. What is printed holds no secret of the configuration.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqe_core import __version__
from sqe_core.bootstrap.instances import Instance, configured_instances, objections
from sqe_core.catalog.local_places import places_of
from sqe_core.cli.doctor.examinations import Finding, Level
from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.checks.production import configured_secrets
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.login_chain import login_chain
from sqe_core.observe.logging import redact_secrets
from sqe_core.plugins.kinds import ExtensionPoint
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.catalog import CatalogBackend, CatalogContext
from sqe_core.spi.errors import ConfigError, ExternalError, SqeError, StartupError
from sqe_core.spi.grants import GrantStoreContext
from sqe_http.client import Bounds, HttpClient
from sqe_http.deadline import Tls
from sqe_http.errors import HttpFailedError, Reason

# All of it, so that `sqe doctor` itself answers in time.
PATIENCE_SECS = 12.0
_REQUEST_SECS = 5.0
# Tokens are accepted up to the first difference (JWT-5), and refused now and then from the second on.
_TOO_FAR_SECS, _FAR_SECS = 30.0, 5.0
# A stamp in whole seconds says no more.
_STAMP_SECS = 1.0
_ABSENT = (Reason.UNREACHABLE, Reason.LATE, Reason.UNTRUSTED)
_LOOK = "check its address, port and certificate, whether it runs, and what is between"
_ADDRESSES = ("issuer", "jwks_url", "token_url", "token_endpoint", "introspection_url")
_PORTS = {"postgresql": 5432, "postgres": 5432, "mysql": 3306}
_SHORTEST_SECRET = 4
_SECRET_WORDS = ("secret", "password", "token", "key")

Say = Callable[[Level, str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One thing to ask, and what it is called when it does not answer."""

    subject: str
    name: str
    ask: Callable[[Say], None]


def examine_servers(
    loaded: LoadedConfig, plugins: PluginManager | None = None, *, patience_secs: float = PATIENCE_SECS
) -> Iterator[Finding]:
    """Ask everything that the configuration names."""
    plugins = plugins or PluginManager(sqe_version=__version__)
    found_secrets = configured_secrets(loaded.config, _SECRET_WORDS)
    hidden = [secret for _, secret in found_secrets if len(secret) >= _SHORTEST_SECRET]
    found = configured_instances(loaded, plugins, rehearsal=True).found
    tasks = [*_instances(found), *_clocks(loaded), *_stores(loaded)]
    for task, findings in zip(tasks, _ask_all(tasks, patience_secs), strict=True):
        for level, subject, text in findings:
            yield Finding(level, subject, _without(hidden, text))
        if not findings:
            text = f"{task.name} did not answer within {patience_secs:g} s; check its address, and what is between"
            yield Finding(Level.PROBLEM, task.subject, _without(hidden, text))


def _ask_all(tasks: Sequence[_Task], patience_secs: float) -> Iterator[Sequence[tuple[Level, str, str]]]:
    """Yield what each said; nothing when it was not done in time."""
    answers: list[list[tuple[Level, str, str]]] = [[] for _ in tasks]
    done = [threading.Event() for _ in tasks]

    def run(index: int, task: _Task) -> None:
        found: list[tuple[Level, str, str]] = []
        try:
            task.ask(lambda level, subject, text: found.append((level, subject, text)))
        except SqeError as error:
            why = f": {error.__cause__}" if isinstance(error.__cause__, SqeError) else ""
            hint = f"; {error.hint}" if error.hint else ""
            found.append((Level.PROBLEM, task.subject, f"{task.name} cannot be used: {error.message}{why}{hint}"))
        except Exception as error:  # noqa: BLE001 - whatever it raises, the others are looked at
            # Its text may hold addresses with credentials (OBS-2).
            found.append((Level.PROBLEM, task.subject, f"{task.name} failed with {type(error).__name__}"))
        answers[index] = found
        done[index].set()

    deadline = time.monotonic() + patience_secs
    for item in enumerate(tasks):
        threading.Thread(target=run, args=item, name="sqe-doctor", daemon=True).start()
    for index, event in enumerate(done):
        yield answers[index] if event.wait(max(0.0, deadline - time.monotonic())) else ()


_SUBJECTS = {
    ExtensionPoint.AUTH: "login",
    ExtensionPoint.CATALOG: "catalog",
    ExtensionPoint.POLICY: "policy",
    ExtensionPoint.GRANTS: "grants",
    ExtensionPoint.LINEAGE: "lineage",
}


def _instances(found: Sequence[Instance]) -> Iterator[_Task]:
    """Everything that a plugin makes and that can say whether it works."""
    for instance in found:
        if instance.kind is None or instance.kind.point not in _SUBJECTS:
            continue
        subject, name = _SUBJECTS[instance.kind.point], instance.label

        def ask(say: Say, instance: Instance = instance, subject: str = subject, name: str = name) -> None:
            with ExitStack() as made:
                try:
                    product = _made(instance, found, made)
                except (ConfigError, StartupError):  # told with the configuration
                    say(Level.NOTE, subject, f"{name} was not asked: its settings have faults")
                    return
                if not instance.context.production_mode:
                    for objection in objections(instance, product):
                        text = objection.replace(": refused by production_mode: ", ": ")
                        say(Level.NOTE, "production", f"would be refused: {text}")
                if isinstance(product, CatalogBackend) and type(product).check is CatalogBackend.check:
                    _connect(instance.table.get("url"))
                product.check()
                places = places_of(product) if isinstance(product, CatalogBackend) and not product.read_only else ()
                locked = [place for place in places if place.exists() and not os.access(place, os.W_OK)]
            if locked:
                say(Level.PROBLEM, subject, f"{name} cannot be written: {locked[0]} is not this user's to write")
                return
            say(Level.OK, subject, f"{name} can be used")

        yield _Task(subject=subject, name=name, ask=ask)


def _made(instance: Instance, found: Sequence[Instance], made: ExitStack) -> Any:
    """The object; a store of grants gets the catalogs that it writes to."""
    backends: dict[str, CatalogBackend] = {}
    if isinstance(instance.context, GrantStoreContext):
        for other in found:
            if isinstance(other.context, CatalogContext):
                with suppress(SqeError):  # told of the catalog itself
                    backends[other.name] = made.enter_context(closing(other.create()))
        return made.enter_context(closing(instance.create(catalogs=lambda: backends)))
    return made.enter_context(closing(instance.create()))


def _connect(url: object) -> None:
    """See that somebody listens where the engine alone can ask more, such as at a database."""
    parts = urlsplit(url) if isinstance(url, str) else None
    port = parts and (parts.port or _PORTS.get(parts.scheme))
    if parts is None or not parts.hostname or not port:
        return
    try:
        socket.create_connection((parts.hostname, port), timeout=_REQUEST_SECS).close()
    except OSError as error:
        what = error.strerror or "it does not answer"
        raise ExternalError(f"{parts.hostname}:{port} cannot be reached: {what}", hint=_LOOK) from None


def _stores(loaded: LoadedConfig) -> Iterator[_Task]:
    stores = [loaded.config.storage, *(catalog.storage for _, catalog in configured_catalogs(loaded.config))]
    for url in dict.fromkeys(store.s3_endpoint for store in stores if store is not None and store.s3_endpoint):
        name = f"store {_shown(url)}"

        def ask(say: Say, url: str = url, name: str = name) -> None:
            try:
                _ask(name, url, Tls())
            except HttpFailedError as failure:
                # Whatever it says to nobody in particular: it is there.
                if failure.reason in _ABSENT:
                    say(Level.PROBLEM, "storage", f"{failure}; {_LOOK}")
                    return
            say(Level.OK, "storage", f"{name} answers")

        yield _Task(subject="storage", name=name, ask=ask)


def _clocks(loaded: LoadedConfig) -> Iterator[_Task]:
    """The identity provider's clock: a token that is too young or too old by ours is refused."""
    if loaded.config.auth is None:
        return
    asked: set[str] = set()
    for entry in login_chain(loaded.config):
        for key in _ADDRESSES:
            url = entry.options.get(key)
            if not isinstance(url, str) or not url.startswith(("https://", "http://")):
                continue
            if urlsplit(url).netloc in asked:
                continue
            asked.add(urlsplit(url).netloc)
            file = entry.options.get("ca_file")
            tls = Tls(
                ca_file=Path(file).expanduser() if isinstance(file, str) else None,
                skip_verify=entry.options.get("tls_skip_verify") is True,
            )
            name = f"identity provider {_shown(url)}"
            yield _Task(subject="clock", name=name, ask=partial(_compare_clocks, name, url, tls))


def _compare_clocks(name: str, url: str, tls: Tls, say: Say) -> None:
    try:
        skew_secs = _ask(name, url, tls)
    except HttpFailedError as failure:
        if failure.reason in _ABSENT:
            say(Level.PROBLEM, "login", f"{failure}; {_LOOK}")
        else:
            say(Level.NOTE, "clock", f"{failure}; compare its clock by hand")
        return
    if skew_secs is None:
        say(Level.NOTE, "clock", f"{name} does not say what time it is; compare it by hand")
        return
    off = abs(skew_secs)
    text = f"this machine is {off:.0f} s {'behind' if skew_secs > 0 else 'ahead of'} {name}"
    if off > _TOO_FAR_SECS:
        say(Level.PROBLEM, "clock", f"{text}: good tokens are refused; set both by NTP")
    elif off > _FAR_SECS:
        say(Level.NOTE, "clock", f"{text}; set both by NTP")
    else:
        say(Level.OK, "clock", f"as {name} says, to a few seconds")


def _ask(name: str, url: str, tls: Tls) -> float | None:
    """Return how far the clock of whoever answers is ahead of ours; None when it does not tell the time.

    Raises:
        HttpFailedError: nobody answers, or not as should be.
    """
    bounds = Bounds(timeout_secs=_REQUEST_SECS, connections=1)
    headers = {"User-Agent": f"sqe-doctor/{__version__}"}
    with closing(HttpClient(name, bounds, tls=tls, headers=headers)) as client:
        began = time.time()
        return client.send("GET", url, read=lambda answer: _skew(answer.headers.get("date"), began, time.time()))


def _skew(stamp: str | None, began: float, ended: float) -> float | None:
    """How far the other clock is ahead of ours; what the request and the stamp leave open counts for nobody."""
    try:
        told = parsedate_to_datetime(stamp or "").timestamp()
    except (ValueError, OverflowError):
        return None
    if told > ended:
        return told - ended
    return min(0.0, told + _STAMP_SECS - began)


def _shown(url: str) -> str:
    """An address without what may be a secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _without(hidden: Sequence[str], text: str) -> str:
    for secret in hidden:
        text = text.replace(secret, "[redacted]")
    return redact_secrets(text)
