"""The login chain: providers in the order of the configuration, bounded in time and in attempts (AUTHN-4 to 10).

Whatever is wrong with a credential, the client reads one constant text. What a provider said goes to the log.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from sqe_core.session.addresses import is_loopback
from sqe_core.session.attempts import LoginAttempts
from sqe_core.session.bounded_calls import BoundedCalls, NoThreadError, TookTooLongError
from sqe_core.spi.auth import (
    AuthProvider,
    AwsCredential,
    BasicCredential,
    BearerCredential,
    BrowserLoginFinish,
    BrowserLoginStart,
    CertificateCredential,
    ClientInfo,
    Credential,
    DeviceLogin,
    LoginRequest,
    NoCredential,
    SupportsBrowserLogin,
    SupportsDeviceLogin,
)
from sqe_core.spi.errors import (
    AccessDeniedError,
    ErrorCode,
    ExternalError,
    InternalError,
    InvalidCredentialsError,
    NotSupportedError,
    ResourcesError,
    SqeError,
)
from sqe_core.spi.factory import Clock, Metrics, NoMetrics, SystemClock
from sqe_core.spi.identity import Identity, is_clean_name

_log = logging.getLogger(__name__)

T = TypeVar("T")
IdentityT = TypeVar("IdentityT", Identity, Identity | None)

# Logins that wait for an identity provider; one that hangs must not take every thread of the server.
_MOST_AT_ONCE = 64
_MOST_RENEWALS_AT_ONCE = 32
_LONGEST_SECRET = 16 * 1024
_MOST_MEMBERSHIPS = 10_000
_KEY_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


_KINDS = {
    NoCredential: "nothing",
    BasicCredential: "user name and password",
    BearerCredential: "bearer",
    CertificateCredential: "certificate",
    AwsCredential: "AWS keys",
}


def _without(credential: Credential, reason: str) -> str:
    """Take a credential out of what a provider says of it."""
    match credential:
        case BearerCredential(token=secret) | BasicCredential(password=secret):
            return reason.replace(secret.reveal(), "…") if secret.reveal() else reason
    return reason


def _log_refusal(request: LoginRequest, refused: InvalidCredentialsError) -> None:
    """Whoever runs the server reads who was refused and why; nothing of the credential but the id of its key."""
    client, credential = request.client, request.credential
    key_id = refused.key_id or (credential.access_key_id if isinstance(credential, AwsCredential) else "")
    fields = {
        "event": "login_failed",
        "address": client.address or "",
        "protocol": client.protocol,
        "provider": refused.provider,
        "credential": _KINDS.get(type(credential), type(credential).__name__),
        "key_id": key_id if _KEY_ID.fullmatch(key_id) else "",
        "reason": _without(credential, refused.reason) or "the provider refused it",
    }
    _log.warning(
        "login failed from %s over %s with %s%s%s: %s",
        fields["address"] or "an unknown address",
        fields["protocol"],
        fields["credential"],
        f" {fields['key_id']}" if fields["key_id"] else "",
        # In brackets: `api_key: no` would be taken for a secret with its name, and hidden.
        f" ({fields['provider']})" if fields["provider"] else "",
        fields["reason"],
        extra={"fields": fields},
    )


class LoginChain:
    """Asks the providers. Safe for use from many threads.

    Args:
        providers: name and provider, in order.
        attempts: counts failures.
        timeout_secs: how long one login may take, all providers together.
        allow_insecure_transport: accept credentials over connections that others can read.
        clock: what expiries are compared with.
        metrics: where logins are counted.
        role_mappings: the roles that an outside role, group or subject stands for, whichever provider names it.
    """

    def __init__(
        self,
        providers: Sequence[tuple[str, AuthProvider]],
        *,
        attempts: LoginAttempts | None = None,
        timeout_secs: float = 30,
        allow_insecure_transport: bool = False,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        role_mappings: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._role_mappings = role_mappings
        self._providers = tuple(providers)
        self._by_name = dict(self._providers)
        if len(self._by_name) != len(self._providers):
            raise InternalError("two login providers have one name")
        self.attempts = LoginAttempts() if attempts is None else attempts
        self.timeout_secs = timeout_secs
        self._allow_insecure_transport = allow_insecure_transport
        self._clock = clock or SystemClock()
        self._metrics = metrics or NoMetrics()
        self._calls = BoundedCalls()
        self._slots = threading.BoundedSemaphore(_MOST_AT_ONCE)
        # Of their own: renewals that hang must not keep those out who log in elsewhere, and strangers whose logins hang
        # must not keep those from working who are in.
        self._renewal_slots = threading.BoundedSemaphore(_MOST_RENEWALS_AT_ONCE)
        self._revocation_slots = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def authenticate(self, request: LoginRequest) -> Identity:
        """Return who it is.

        Raises:
            InvalidCredentialsError: nobody vouches for this credential; with the constant text.
            AccessDeniedError: the connection is readable by others, or another user was asked for.
            ResourcesError: too many attempts, or too slow an identity provider.
            ExternalError: an identity provider did not answer.
            InternalError: a provider failed.
        """
        began = time.monotonic()
        provider, status = "", "error"
        try:
            identity = self._authenticate(request)
            provider, status = identity.provider, "success"
            return identity
        except InvalidCredentialsError as refused:
            provider, status = refused.provider, "failure"
            _log_refusal(request, refused)
            raise
        except AccessDeniedError:
            status = "failure"
            raise
        except ResourcesError:
            status = "refused"
            raise
        finally:
            self._metrics.count("sqe_auth_attempts_total", labels={"provider": provider, "status": status})
            self._metrics.observe("sqe_auth_duration_seconds", time.monotonic() - began)

    def _authenticate(self, request: LoginRequest) -> Identity:
        self.refuse_plaintext(request.credential, request.client)
        attempt = self.attempts.begin(request.client.address, account_of(request.credential))
        try:
            if not _is_plausible(request.credential):
                raise InvalidCredentialsError(reason="it is none that any provider could take")
            identity = self._in_time(lambda abandoned: self._ask(request, abandoned))
        except InvalidCredentialsError:
            attempt.failed()
            raise
        except BaseException:
            attempt.unjudged()
            raise
        attempt.succeeded(identity.username)
        refuse_other_user(identity, request.client)
        return identity

    def refuse_plaintext(self, credential: Credential, client: ClientInfo) -> None:
        """Raise when a credential came over a connection that others can read; no provider sees it."""
        if not isinstance(credential, NoCredential):
            self.refuse_readable(client)

    def refuse_readable(self, client: ClientInfo) -> None:
        """Raise when others can read a connection over which a credential would go, one way or the other."""
        if not (self._allow_insecure_transport or client.secure or is_loopback(client.address)):
            raise AccessDeniedError(
                "Logins need an encrypted connection",
                hint="connect with TLS; for development the server can set security.allow_insecure_transport",
            )

    def offers(self, capability: type[object]) -> bool:
        """Whether a provider has logins of a kind, `SupportsBrowserLogin` or `SupportsDeviceLogin`."""
        return any(isinstance(provider, capability) for _, provider in self._providers)

    def browser_login_url(self, start: BrowserLoginStart) -> str:
        """Return the address to send a browser to. Raises SqeError."""
        name, provider = self._first(SupportsBrowserLogin)
        ask = partial(provider.browser_login_url, start)
        return self._in_time(lambda abandoned: self._guarded(name, ask))

    def finish_browser_login(self, finish: BrowserLoginFinish) -> Identity:
        """Return who came back from the browser. Raises what `authenticate` raises."""
        name, provider = self._first(SupportsBrowserLogin)
        return self._vouched(name, partial(provider.finish_browser_login, finish))

    def begin_device_login(self) -> DeviceLogin:
        """Ask for a code to show. Raises SqeError."""
        name, provider = self._first(SupportsDeviceLogin)
        return self._in_time(lambda abandoned: self._guarded(name, provider.begin_device_login))

    def poll_device_login(self, login: DeviceLogin) -> Identity | None:
        """Return who logged in on another device; None while nobody has. Raises what `authenticate` raises."""
        name, provider = self._first(SupportsDeviceLogin)
        return self._vouched(name, partial(provider.poll_device_login, login))

    def _first(self, capability: type[T]) -> tuple[str, T]:
        for name, provider in self._providers:
            if isinstance(provider, capability):
                return name, provider
        raise NotSupportedError("no login provider has logins of this kind")

    def _vouched(self, name: str, ask: Callable[[], IdentityT]) -> IdentityT:
        """Ask a provider who somebody is that presented no credential here."""
        status = "error"
        try:
            identity = self._in_time(lambda abandoned: self._guarded(name, ask))
            if identity is not None:
                identity = self._accepted(identity, name)
            status = "success" if identity is not None else "pending"
        except InvalidCredentialsError:
            status = "failure"
            raise
        finally:
            if status != "pending":
                self._metrics.count("sqe_auth_attempts_total", labels={"provider": name, "status": status})
        return identity

    def is_revoked(self, identity: Identity) -> bool:
        """Say whether an identity was revoked. Asked before each statement (JWT-9).

        Raises:
            SqeError: the provider could not say; the statement must not run.
        """
        provider = self._by_name.get(identity.provider)
        if provider is None:
            return True
        if type(provider).is_revoked is AuthProvider.is_revoked:
            return False
        ask = partial(provider.is_revoked, identity)
        return self._in_time(lambda abandoned: self._guarded(identity.provider, ask), self._revocation_slots)

    def refreshes(self, identity: Identity) -> bool:
        """Whether the provider of an identity renews tokens at all."""
        provider = self._by_name.get(identity.provider)
        return provider is not None and type(provider).refresh is not AuthProvider.refresh

    def refresh(self, identity: Identity) -> Identity | None:
        """Return an identity with new tokens, from the provider that issued it and no other (AUTHN-4).

        None when there is nothing to renew it with.

        Raises:
            InvalidCredentialsError: the provider does not renew it any more.
            SqeError: the provider could not say; ask again.
        """
        provider = self._by_name.get(identity.provider)
        if provider is None:
            raise InvalidCredentialsError

        def ask() -> Identity | None:
            try:
                return provider.refresh(identity)
            except NotSupportedError:
                return None

        status = "error"
        try:
            renewed = self._in_time(lambda abandoned: self._guarded(identity.provider, ask), self._renewal_slots)
            if renewed is not None:
                renewed = self._accepted(renewed, identity.provider)
            status = "success" if renewed is not None else "unsupported"
        except InvalidCredentialsError:
            status = "failure"
            raise
        finally:
            labels = {"provider": identity.provider, "status": status}
            self._metrics.count("sqe_auth_refreshes_total", labels=labels)
        return renewed

    def check(self) -> None:
        """Raise when logins cannot work."""
        for _, provider in self._providers:
            provider.check()

    def close(self) -> None:
        """Free what the providers hold; one that fails does not keep the others."""
        for name, provider in self._providers:
            with suppress(SqeError):
                self._guarded(name, provider.close)
        self._calls.close()

    def _ask(self, request: LoginRequest, abandoned: threading.Event) -> Identity:
        for name, provider in self._providers:
            if abandoned.is_set():
                break
            identity = self._guarded(name, partial(provider.authenticate, request))
            if identity is not None:
                return self._accepted(identity, name)
        raise InvalidCredentialsError(reason="no provider takes it")

    def _guarded(self, name: str, call: Callable[[], T]) -> T:
        """Call a provider; its own words never leave."""
        try:
            return call()
        except InvalidCredentialsError as error:
            refused = InvalidCredentialsError(reason=error.reason, key_id=error.key_id)
            refused.provider = name
            raise refused from None
        except ExternalError as error:
            _log.warning("login provider %s: %s", name, error)
            raise unavailable() from None
        except Exception as error:  # noqa: BLE001 - whatever a provider raises, the login fails closed (AUTHN-4)
            # Messages of foreign exceptions may hold addresses and headers (OBS-2): only where it was.
            frames = traceback.extract_tb(error.__traceback__)
            where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
            _log.error("login provider %s failed: %s%s", name, type(error).__name__, where)
            raise _broken() from None

    def _accepted(self, identity: Identity, name: str) -> Identity:
        fault = _fault_of(identity, name)
        if fault:
            _log.error("login provider %s made an identity that cannot be used: %s", name, fault)
            raise _broken()
        if identity.expires_at is not None and identity.expires_at <= self._clock.now():
            raise InvalidCredentialsError
        return with_mapped_roles(identity, self._role_mappings)

    def _in_time(self, call: Callable[[threading.Event], T], slots: threading.BoundedSemaphore | None = None) -> T:
        """Make a call that a hanging identity provider cannot hold on to; its thread is given up."""
        deadline = time.monotonic() + self.timeout_secs
        slots = slots or self._slots
        if not slots.acquire(timeout=self.timeout_secs):
            raise _too_slow()
        held = slots

        def run(abandoned: threading.Event) -> T:
            try:
                return call(abandoned)
            finally:
                held.release()

        try:
            return self._calls.make(run, timeout_secs=deadline - time.monotonic())
        except TookTooLongError:
            _log.error("a login took longer than %g s and was given up", self.timeout_secs)
            raise _too_slow() from None
        except NoThreadError:
            held.release()
            raise _too_slow() from None


def refuse_other_user(identity: Identity, client: ClientInfo) -> None:
    """Raise when a client asks to be somebody else than it logged in as (AUTHN-9)."""
    if identity.personal and client.requested_user not in (None, identity.username):
        raise AccessDeniedError("The requested user is not the one that logged in")


def with_mapped_roles(identity: Identity, mappings: Mapping[str, Sequence[str]]) -> Identity:
    """Add the roles that the roles, groups and subject of an identity stand for.

    Names are compared whole. The user name is not looked at: in many directories people choose theirs.
    """
    if not mappings:
        return identity
    names = (*identity.roles, *identity.groups, identity.subject)
    mapped = frozenset(role for name in names for role in mappings.get(name, ()))
    return identity if mapped <= identity.roles else replace(identity, roles=identity.roles | mapped)


def account_of(credential: Credential) -> str | None:
    match credential:
        case BasicCredential(username=name):
            return name
        case AwsCredential(access_key_id=name):
            return name
    return None


def unavailable() -> ExternalError:
    """What clients read when an identity provider does not answer."""
    return ExternalError("Logins are not possible right now; try again later", code=ErrorCode.CATALOG_UNAVAILABLE)


def _broken() -> InternalError:
    return InternalError("The login failed because of an error in the server")


def _too_slow() -> ResourcesError:
    return ResourcesError("The login took too long", code=ErrorCode.QUERY_TIMEOUT, retry_after_secs=5)


def _is_plausible(credential: Credential) -> bool:
    """Bounds before any provider computes with what a stranger sent (LIM-2, JWT-6)."""
    match credential:
        case BasicCredential(username=name, password=secret):
            return is_clean_name(name) and len(secret.reveal()) <= _LONGEST_SECRET
        case BearerCredential(token=secret):
            return 0 < len(secret.reveal()) <= _LONGEST_SECRET
        case AwsCredential(access_key_id=name, secret_access_key=secret, session_token=token):
            lengths = (len(secret.reveal()), len(token.reveal()) if token else 0)
            return is_clean_name(name) and max(lengths) <= _LONGEST_SECRET
        case CertificateCredential(der=der):
            return len(der) <= 4 * _LONGEST_SECRET
    return True


def _fault_of(identity: Identity, name: str) -> str | None:
    """Say what is wrong with an identity, without repeating it (AUTHN-10)."""
    if identity.provider != name:
        return "it names another provider"
    if not (identity.issuer and identity.subject and identity.username):
        return "issuer, subject or user name are missing"
    if identity.expires_at is not None and identity.expires_at.tzinfo is None:
        return "its expiry has no time zone"
    if len(identity.roles) + len(identity.groups) > _MOST_MEMBERSHIPS:
        return "too many roles and groups"
    texts = (identity.issuer, identity.subject, identity.username, *identity.roles, *identity.groups)
    return None if all(map(is_clean_name, texts)) else "names with control characters, or too long"
