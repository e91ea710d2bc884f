"""The login provider `mtls`: the client certificate that TLS has verified says who it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from sqe_core.auth.certificate import Certificate, Names, read_certificate
from sqe_core.spi.auth import AuthProvider, AuthProviderFactory, CertificateCredential, LoginRequest
from sqe_core.spi.errors import InvalidCredentialsError
from sqe_core.spi.factory import Clock, PluginContext
from sqe_core.spi.identity import Identity, is_clean_name

_COMMON_NAME = frozenset({"commonName", "CN", "2.5.4.3"})
_UNIT = frozenset({"organizationalUnitName", "OU", "2.5.4.11"})
_SPECIAL = re.compile(r"([\\,+=<>;\"#])")


@dataclass(frozen=True, slots=True, kw_only=True)
class MtlsConfig:
    """What of a certificate counts, beside its common name."""

    extract_ou: bool = field(default=True, metadata={"doc": "organizational units (OU) are groups"})
    extract_san: bool = field(default=True, metadata={"doc": "alternative names (DNS, email, URI) are groups"})


class MtlsProvider(AuthProvider):
    """Vouches for the common name of a certificate. Authority and whole subject together say who it is."""

    def __init__(self, name: str, config: MtlsConfig, clock: Clock) -> None:
        self._name = name
        self._config = config
        self._clock = clock

    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Return whose certificate it is."""
        credential = request.credential
        if not isinstance(credential, CertificateCredential):
            return None
        read = _read(credential.der)
        subject = credential.subject or (read.subject if read else ())
        issuer = credential.issuer or (read.issuer if read else ())
        alternatives = credential.alternative_names or (read.alternative_names if read else ())
        common_names = [value for attribute, value in subject if attribute in _COMMON_NAME]
        groups = self._groups(subject, alternatives)
        authority, person = f"sqe:{self._name}:{_distinguished(issuer)}", _distinguished(subject)
        # Two common names would be two people.
        if len(common_names) != 1 or not all(map(is_clean_name, (authority, person, common_names[0], *groups))):
            raise InvalidCredentialsError
        return Identity(
            issuer=authority,
            subject=person,
            username=common_names[0],
            provider=self._name,
            groups=groups,
            expires_at=self._expiry(read),
        )

    def _groups(self, subject: Names, alternatives: Names) -> frozenset[str]:
        units = [value for attribute, value in subject if attribute in _UNIT] if self._config.extract_ou else []
        names = [value for _, value in alternatives] if self._config.extract_san else []
        return frozenset((*units, *names))

    def _expiry(self, certificate: Certificate | None) -> datetime | None:
        if certificate is None:
            return None
        if certificate.not_after <= self._clock.now():
            raise InvalidCredentialsError
        return certificate.not_after


def _read(der: bytes) -> Certificate | None:
    """Read the certificate itself; None when the transport gave its names alone."""
    if not der:
        return None
    try:
        return read_certificate(der)
    except ValueError:
        raise InvalidCredentialsError from None


def _distinguished(names: Names) -> str:
    """Write a distinguished name so that different ones stay different."""
    return ",".join(attribute + "=" + _SPECIAL.sub(r"\\\1", value) for attribute, value in names)


class MtlsFactory(AuthProviderFactory[MtlsConfig]):
    """Makes the provider of `type = "mtls"`."""

    kind = "mtls"
    config_type = MtlsConfig

    def create(self, name: str, config: MtlsConfig, context: PluginContext) -> MtlsProvider:
        """Make a provider."""
        return MtlsProvider(name, config, context.clock)
