"""What `sqe doctor` asks over the network: login providers and their clocks, catalogs, policy engines, stores.

Each is asked in a thread of its own, all at once, and given up when it does not answer: a server that hangs or is down
keeps none of the others from being looked at. What is printed holds no secret of the configuration.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from sqe_core import __version__
from sqe_core.bootstrap import state_dir
from sqe_core.cli.doctor.examinations import Finding, Level
from sqe_core.config.binder import bind
from sqe_core.config.catalog_names import mounted_catalogs
from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.login_chain import LoginProvider, login_chain
from sqe_core.config.origin import dotted
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.unbuilt import UNBUILT_GRANT_STORES
from sqe_core.observe.logging import redact_secrets
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.catalog import CatalogBackend, CatalogContext
from sqe_core.spi.errors import ExternalError, PluginError, SqeError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.grants import GrantStoreContext
from sqe_core.spi.identity import Secret

# All of it, so that `sqe doctor` itself answers in time.
PATIENCE_SECS = 12.0
_REQUEST_SECS = 5.0
_LARGEST_ANSWER = 256 * 1024
# Tokens are accepted up to the first difference (JWT-5), and refused now and then from the second on.
_TOO_FAR_SECS, _FAR_SECS = 30.0, 5.0
# A stamp in whole seconds says no more.
_STAMP_SECS = 1.0
_METADATA = "/.well-known/openid-configuration"
_ADDRESSES = ("issuer", "jwks_url", "token_url", "token_endpoint", "introspection_url")
_PORTS = {"postgresql": 5432, "postgres": 5432, "mysql": 3306}
# Their folders are looked at on this machine.
_LOCAL_CATALOGS = frozenset({"sqlite", "hadoop"})
# To make one would make its store.
_LOCAL_ENGINES = frozenset({"grants", "in-memory", "passthrough", "allow_all"})

_SHORTEST_SECRET = 4

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
    hidden = [secret for secret in _secrets(loaded.config) if len(secret) >= _SHORTEST_SECRET]
    tasks = [*_logins(loaded, plugins), *_clocks(loaded), *_catalogs(loaded, plugins)]
    tasks += [*_engines(loaded, plugins), *_grants(loaded, plugins), *_stores(loaded)]
    for task, findings in zip(tasks, _ask_all(tasks, patience_secs), strict=True):
        for level, subject, text in findings:
            yield Finding(level=level, subject=subject, text=_without(hidden, text))
        if not findings:
            text = f"{task.name} did not answer within {patience_secs:g} s; check its address, and what is between"
            yield Finding(level=Level.PROBLEM, subject=task.subject, text=_without(hidden, text))


def _ask_all(tasks: Sequence[_Task], patience_secs: float) -> Iterator[Sequence[tuple[Level, str, str]]]:
    """Yield what each said; nothing when it was not done in time."""
    answers: list[list[tuple[Level, str, str]]] = [[] for _ in tasks]
    done = [threading.Event() for _ in tasks]

    def run(index: int, task: _Task) -> None:
        found: list[tuple[Level, str, str]] = []
        try:
            task.ask(lambda level, subject, text: found.append((level, subject, text)))
        except SqeError as error:
            hint = f"; {error.hint}" if error.hint else ""
            found.append((Level.PROBLEM, task.subject, f"{task.name}: {error.message}{hint}"))
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


def _logins(loaded: LoadedConfig, plugins: PluginManager) -> Iterator[_Task]:
    subject = "login"
    if loaded.config.auth is None:
        return
    for entry in login_chain(loaded.config):
        name = f"login provider {entry.kind} ({dotted(entry.path)})"

        def ask(say: Say, entry: LoginProvider = entry, name: str = name) -> None:
            factory = plugins.auth_provider(entry.kind)
            settings, _ = bind(entry.options, factory.config_type)
            if settings is None:
                say(Level.NOTE, subject, f"{name} was not asked: its settings have faults")
                return
            context = PluginContext(sqe_version=__version__)
            with closing(factory.create(entry.kind, settings, context)) as provider:
                if provider.production_objection:
                    say(Level.NOTE, "production", f"would be refused: {provider.production_objection}")
                provider.check()
            say(Level.OK, subject, f"{name} can be used")

        yield _Task(subject=subject, name=name, ask=_unless_missing(ask))


def _catalogs(loaded: LoadedConfig, plugins: PluginManager) -> Iterator[_Task]:
    subject = "catalog"
    for entry in mounted_catalogs(loaded.config):
        if entry.kind in _LOCAL_CATALOGS:
            continue
        name = f"catalog {entry.name}"

        def ask(say: Say, entry: Any = entry, name: str = name) -> None:
            factory = plugins.catalog(entry.kind)
            settings, _ = bind(entry.config.options, factory.config_type)
            if settings is None:
                say(Level.NOTE, subject, f"{name} was not asked: its settings have faults")
                return
            vended = entry.config.require_vended_credentials
            context = CatalogContext(require_vended_credentials=vended, sqe_version=__version__)
            with closing(factory.create(entry.name, settings, context)) as backend:
                if type(backend).check is CatalogBackend.check:
                    _connect(entry.config.options.get("url"))
                backend.check()
            say(Level.OK, subject, f"{name} ({entry.kind}) answers")

        yield _Task(subject=subject, name=name, ask=_unless_missing(ask))


def _connect(url: object) -> None:
    """See that somebody listens where the engine alone can ask more, such as at a database."""
    parts = urlsplit(url) if isinstance(url, str) else None
    port = parts and (parts.port or _PORTS.get(parts.scheme))
    if parts is None or not parts.hostname or not port:
        return
    try:
        socket.create_connection((parts.hostname, port), timeout=_REQUEST_SECS).close()
    except OSError as error:
        fault = _Answer(error=error).fault("") or ""
        raise ExternalError(f"{parts.hostname}:{port} {fault}") from None


def _engines(loaded: LoadedConfig, plugins: PluginManager) -> Iterator[_Task]:
    subject = "policy"
    for kind in loaded.config.policy.engines:
        if kind in _LOCAL_ENGINES:
            continue
        name = f"policy engine {kind}"

        def ask(say: Say, kind: str = kind, name: str = name) -> None:
            factory = plugins.policy_enforcer(kind)
            settings, _ = bind(loaded.engine_table(kind), factory.config_type)
            if settings is None:
                say(Level.NOTE, subject, f"{name} was not asked: its settings have faults")
                return
            context = PluginContext(state_dir=state_dir(loaded.environ), sqe_version=__version__)
            with closing(factory.create(kind, settings, context)) as enforcer:
                enforcer.check()
            say(Level.OK, subject, f"{name} decides")

        yield _Task(subject=subject, name=name, ask=_unless_missing(ask))


def _grants(loaded: LoadedConfig, plugins: PluginManager) -> Iterator[_Task]:
    """Where GRANT and REVOKE are written, when that is no policy engine."""
    kind, subject = loaded.config.access_control.backend, "grants"
    if kind == "none" or kind in UNBUILT_GRANT_STORES:
        return
    name = f"store of grants {kind}"

    def ask(say: Say) -> None:
        factory = plugins.grant_store(kind)
        settings, _ = bind(loaded.grant_store_table(), factory.config_type)
        if settings is None:
            say(Level.NOTE, subject, f"{name} was not asked: its settings have faults")
            return
        with _backends(loaded, plugins) as backends:
            context = GrantStoreContext(sqe_version=__version__, catalogs=lambda: backends)
            with closing(factory.create(kind, settings, context)) as store:
                store.check()
        say(Level.OK, subject, f"{name} answers")

    yield _Task(subject=subject, name=name, ask=_unless_missing(ask))


@contextmanager
def _backends(loaded: LoadedConfig, plugins: PluginManager) -> Iterator[Mapping[str, CatalogBackend]]:
    """The catalogs that can be made; what is wrong with others is told of them."""
    with ExitStack() as made:
        backends: dict[str, CatalogBackend] = {}
        for entry in mounted_catalogs(loaded.config):
            if entry.kind in _LOCAL_CATALOGS:
                continue
            with suppress(SqeError):
                factory = plugins.catalog(entry.kind)
                settings, _ = bind(entry.config.options, factory.config_type)
                if settings is not None:
                    backend = factory.create(entry.name, settings, CatalogContext(sqe_version=__version__))
                    made.callback(backend.close)
                    backends[entry.name] = backend
        yield backends


def _stores(loaded: LoadedConfig) -> Iterator[_Task]:
    stores = [loaded.config.storage, *(catalog.storage for _, catalog in configured_catalogs(loaded.config))]
    for url in dict.fromkeys(store.s3_endpoint for store in stores if store is not None and store.s3_endpoint):
        name = f"store {_shown(url)}"

        def ask(say: Say, url: str = url, name: str = name) -> None:
            answer = _ask(url, None, skip_verify=False)
            # Whatever it says to nobody in particular: it is there.
            fault = answer.fault("the store's certificate has to be one that this machine trusts")
            say(Level.PROBLEM if fault else Level.OK, "storage", f"{name} {fault or 'answers'}")

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
            place = urlsplit(url).netloc
            if place in asked and key != "issuer":
                continue
            asked.add(place)
            ca_file, skip = entry.options.get("ca_file"), entry.options.get("tls_skip_verify")
            ask = _clock_of(url, issuer=key == "issuer", ca_file=ca_file, skip_verify=skip is True)
            yield _Task(subject="clock", name=f"identity provider {_shown(url)}", ask=ask)


def _clock_of(url: str, *, issuer: bool, ca_file: object, skip_verify: bool) -> Callable[[Say], None]:
    def ask(say: Say) -> None:
        name = f"identity provider {_shown(url)}"
        file = Path(ca_file).expanduser() if isinstance(ca_file, str) else None
        answer = _ask(url.rstrip("/") + _METADATA if issuer else url, file, skip_verify=skip_verify)
        fault = answer.fault("name its authority with `ca_file`")
        if fault is not None:
            say(Level.PROBLEM, "login", f"{name} {fault}")
            return
        if issuer:
            fault = _metadata_fault(answer, url)
            if fault is not None:
                say(Level.PROBLEM, "login", f"{name} {fault}")
        if answer.skew_secs is None:
            say(Level.NOTE, "clock", f"{name} does not say what time it is; compare it by hand")
            return
        off = abs(answer.skew_secs)
        text = f"this machine is {off:.0f} s {'behind' if answer.skew_secs > 0 else 'ahead of'} {name}"
        if off > _TOO_FAR_SECS:
            say(Level.PROBLEM, "clock", f"{text}: good tokens are refused; set both by NTP")
        elif off > _FAR_SECS:
            say(Level.NOTE, "clock", f"{text}; set both by NTP")
        else:
            say(Level.OK, "clock", f"as {name} says, to a few seconds")

    return ask


def _metadata_fault(answer: _Answer, issuer: str) -> str | None:
    hint = "for Keycloak that is https://<host>/realms/<realm>"
    if answer.status != 200:
        return f"answers {answer.status} for its metadata ({_METADATA}); check `issuer`: {hint}"
    try:
        metadata = json.loads(answer.body)
    except (ValueError, RecursionError):
        return f"answers something that is no JSON for its metadata ({_METADATA}); check `issuer`: {hint}"
    told = metadata.get("issuer") if isinstance(metadata, dict) else None
    if told != issuer:
        name = _shown(told) if isinstance(told, str) else "nothing"
        return f"calls itself {name} in its metadata; write that as `issuer`"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What came back, or why nothing did."""

    status: int = 0
    body: bytes = b""
    skew_secs: float | None = None
    error: Exception | None = None

    def fault(self, untrusted: str) -> str | None:
        """Say why there was no answer, and what to do about it; `untrusted` when its certificate is not trusted."""
        match self.error:
            case None:
                return None
            case ssl.SSLCertVerificationError():
                return f"has a certificate that is not trusted or of another name; {untrusted}"
            case ssl.SSLError():
                return "does not speak TLS as we do; check the port, and https against http"
            case socket.gaierror():
                return "has a name that nobody knows; check its address and DNS"
            case ConnectionRefusedError():
                return "refuses connections; check the port, and whether it runs"
            case TimeoutError():
                return f"does not answer within {_REQUEST_SECS:g} s; check its address, and what is between"
        return f"cannot be asked ({type(self.error).__name__}); check its address, and what is between"


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow none: whoever answers is who was named."""


def _opener(ca_file: Path | None, *, skip_verify: bool) -> OpenerDirector:
    context = ssl.create_default_context(cafile=ca_file)
    if skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return build_opener(ProxyHandler({}), _NoRedirects(), HTTPSHandler(context=context))


def _ask(url: str, ca_file: Path | None, *, skip_verify: bool) -> _Answer:
    try:
        opener = _opener(ca_file, skip_verify=skip_verify)
        request = Request(url, headers={"User-Agent": f"sqe-doctor/{__version__}"})  # noqa: S310 - http and https only
        began = time.time()
        try:
            with opener.open(request, timeout=_REQUEST_SECS) as response:
                status, headers, body = response.status, response.headers, response.read(_LARGEST_ANSWER)
        except HTTPError as refused:
            with refused:
                status, headers, body = refused.code, refused.headers, b""
        ended = time.time()
    except URLError as error:
        return _Answer(error=error.reason if isinstance(error.reason, Exception) else error)
    except Exception as error:  # noqa: BLE001 - it becomes a finding
        return _Answer(error=error)
    return _Answer(status=status, body=body, skew_secs=_skew(headers.get("Date"), began, ended))


def _skew(stamp: str | None, began: float, ended: float) -> float | None:
    """How far the other clock is ahead of ours; what the request and the stamp leave open counts for nobody."""
    try:
        told = parsedate_to_datetime(stamp or "").timestamp()
    except (ValueError, OverflowError):
        return None
    if told > ended:
        return told - ended
    return min(0.0, told + _STAMP_SECS - began)


def _unless_missing(ask: Callable[..., None]) -> Callable[[Say], None]:
    """What is not installed has been told with the configuration."""

    def guarded(say: Say) -> None:
        try:
            ask(say)
        except PluginError as error:
            say(Level.NOTE, "plugins", f"{error.message}{f'; {error.hint}' if error.hint else ''}")

    return guarded


def _shown(url: str) -> str:
    """An address without what may be a secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _without(hidden: Sequence[str], text: str) -> str:
    for secret in hidden:
        text = text.replace(secret, "[redacted]")
    return redact_secrets(text)


def _secrets(value: Any) -> Iterator[str]:
    """Every secret of a configuration; of a plugin's table what is called one, since only the plugin knows."""
    if isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, PluginTable):
        for key, node in value.entries.items():
            if isinstance(node.value, str) and key.endswith(("secret", "password", "token", "key")):
                yield node.value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _secrets(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _secrets(getattr(value, field.name))
