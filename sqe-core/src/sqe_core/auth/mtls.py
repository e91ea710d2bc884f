"""The login provider `mtls`: the client certificate that TLS has verified says who it is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from sqe_core.auth.certificate import Certificate, Names, distinguished, read_certificate
from sqe_core.auth.revocation import RevocationLists
from sqe_core.spi.auth import AuthProvider, AuthProviderFactory, CertificateCredential, LoginRequest
from sqe_core.spi.errors import ConfigError, InvalidCredentialsError, StartupError
from sqe_core.spi.factory import Clock, PluginContext, setting
from sqe_core.spi.identity import Identity, is_clean_name

_log = logging.getLogger(__name__)

_SERIAL = "certificate_serial"
_AUTHORITY = "certificate_authority"
_COMMON_NAME = frozenset({"commonName", "CN", "2.5.4.3"})
_UNIT = frozenset({"organizationalUnitName", "OU", "2.5.4.11"})
_ALTERNATIVES = {"dns": "DNS", "email": "email", "uri": "URI"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MtlsConfig:
    """What of a certificate counts, and which do not count any more."""

    user_from: Literal["cn", "dns", "email", "uri"] = setting(
        "cn", "the user name: the common name, or the one alternative name of that kind"
    )

    extract_ou: bool = setting(True, "organizational units (OU) are groups")
    extract_san: bool = setting(True, "alternative names (DNS, email, URI) are groups")
    crl_files: tuple[Path, ...] = setting(
        (), "revocation lists (PEM or DER), read again when they change; empty checks none"
    )
    client_ca_file: Path | None = setting(None, "who signs the lists; default: `ca_file` of [coordinator.tls]")


class MtlsProvider(AuthProvider):
    """Vouches for the user name of a certificate. Authority and whole subject together say who it is.

    With lists of revocation, the serial number does too: a session ends when its own certificate is withdrawn.
    """

    def __init__(self, name: str, config: MtlsConfig, clock: Clock) -> None:
        self._name = name
        self._config = config
        self._clock = clock
        self._lists = self._read_lists() if config.crl_files else None

    def authenticate(self, request: LoginRequest) -> Identity | None:
        credential = request.credential
        if not isinstance(credential, CertificateCredential):
            return None
        read = _read(credential.der)
        subject = credential.subject or (read.subject if read else ())
        issuer = credential.issuer or (read.issuer if read else ())
        alternatives = credential.alternative_names or (read.alternative_names if read else ())
        users = self._users(subject, alternatives)
        groups = self._groups(subject, alternatives)
        authority, person = f"sqe:{self._name}:{distinguished(issuer)}", distinguished(subject)
        # Two names would be two people.
        if len(users) != 1 or not all(map(is_clean_name, (authority, person, users[0], *groups))):
            raise InvalidCredentialsError(reason="the certificate names no user, or several")
        return Identity(
            issuer=authority,
            subject=person,
            username=users[0],
            provider=self._name,
            groups=groups,
            claims=MappingProxyType(self._proof(read)),
            expires_at=self._expiry(read),
        )

    def is_revoked(self, identity: Identity) -> bool:
        """Whether the certificate of a session was withdrawn meanwhile."""
        if self._lists is None:
            return False
        serial, authority = identity.claims.get(_SERIAL), identity.claims.get(_AUTHORITY)
        if not isinstance(serial, str) or not isinstance(authority, str):
            return True
        return self._lists.is_revoked(authority, int(serial, 16))

    def check(self) -> None:
        """Raise when the revocation lists as they are now cannot be used."""
        if self._lists is not None:
            try:
                self._lists.check()
            except ConfigError as error:
                raise StartupError(
                    f"The login provider '{self._name}' cannot use its revocation lists: {error}"
                ) from None

    def _read_lists(self) -> RevocationLists:
        files = [path.expanduser() for path in self._config.crl_files]
        if self._config.client_ca_file is None:
            raise StartupError(
                f"The login provider '{self._name}' does not know who signs its revocation lists",
                hint="set `ca_file` of [coordinator.tls], or `client_ca_file` beside `crl_files`",
            )
        try:
            return RevocationLists(files, self._config.client_ca_file.expanduser(), self._clock)
        except ConfigError as error:
            raise StartupError(f"The login provider '{self._name}' cannot use its revocation lists: {error}") from None

    def _proof(self, certificate: Certificate | None) -> dict[str, str]:
        """Return which certificate it is, which none of the lists holds."""
        if certificate is None:
            if self._lists is not None:
                raise InvalidCredentialsError
            return {}
        authority = distinguished(certificate.issuer)
        if self._lists is not None and self._lists.is_revoked(authority, certificate.serial_number):
            _log.warning("login provider %s: a certificate was shown that is revoked", self._name)
            raise InvalidCredentialsError(reason="the certificate is revoked", key_id=f"{certificate.serial_number:x}")
        return {_SERIAL: f"{certificate.serial_number:x}", _AUTHORITY: authority}

    def _users(self, subject: Names, alternatives: Names) -> list[str]:
        kind = self._config.user_from
        if kind == "cn":
            return [value for attribute, value in subject if attribute in _COMMON_NAME]
        return [value for attribute, value in alternatives if attribute == _ALTERNATIVES[kind]]

    def _groups(self, subject: Names, alternatives: Names) -> frozenset[str]:
        units = [value for attribute, value in subject if attribute in _UNIT] if self._config.extract_ou else []
        names = [value for _, value in alternatives] if self._config.extract_san else []
        return frozenset((*units, *names))

    def _expiry(self, certificate: Certificate | None) -> datetime | None:
        if certificate is None:
            return None
        if certificate.not_after <= self._clock.now():
            serial = f"{certificate.serial_number:x}"
            raise InvalidCredentialsError(reason="the certificate has expired", key_id=serial)
        return certificate.not_after


def _read(der: bytes) -> Certificate | None:
    """Read the certificate itself; None when the transport gave its names alone."""
    if not der:
        return None
    try:
        return read_certificate(der)
    except ValueError:
        raise InvalidCredentialsError from None


class MtlsFactory(AuthProviderFactory[MtlsConfig]):
    kind = "mtls"
    config_type = MtlsConfig

    def create(self, name: str, config: MtlsConfig, context: PluginContext) -> MtlsProvider:
        return MtlsProvider(name, config, context.clock)
