"""Reads from an X.509 certificate what the TLS layers of Python do not give: its names, and when it ends.

Only certificates whose chain TLS has verified come here; nothing is verified again. A structure that is not understood
is a ValueError.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

_ATTRIBUTES = {
    "2.5.4.3": "commonName",
    "2.5.4.5": "serialNumber",
    "2.5.4.6": "countryName",
    "2.5.4.7": "localityName",
    "2.5.4.8": "stateOrProvinceName",
    "2.5.4.10": "organizationName",
    "2.5.4.11": "organizationalUnitName",
    "0.9.2342.19200300.100.1.1": "userId",
    "0.9.2342.19200300.100.1.25": "domainComponent",
    "1.2.840.113549.1.9.1": "emailAddress",
}
_SPECIAL = re.compile(r"([\\,+=<>;\"#])")

Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What a certificate says; names as pairs, as in `CertificateCredential`."""

    subject: Names
    issuer: Names
    alternative_names: Names
    not_after: datetime
    serial_number: int = 0


def read_certificate(der: bytes) -> Certificate:
    """Read a certificate in DER. Raises ValueError."""
    # Heavy, and most servers are shown no certificates.
    from cryptography import x509

    try:
        with warnings.catch_warnings():
            # Serial numbers that are 0 or negative exist.
            warnings.simplefilter("ignore")
            certificate = x509.load_der_x509_certificate(der)
            return Certificate(
                subject=names_of(certificate.subject),
                issuer=names_of(certificate.issuer),
                alternative_names=tuple(_alternatives(certificate)),
                not_after=certificate.not_valid_after_utc,
                serial_number=certificate.serial_number,
            )
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError("no X.509 certificate") from error


def names_of(name: x509.Name) -> Names:
    """Return a distinguished name as pairs. Raises ValueError."""
    pairs = [(_ATTRIBUTES.get(each.oid.dotted_string, each.oid.dotted_string), each.value) for each in name]
    if not all(isinstance(value, str) for _, value in pairs):
        raise ValueError("a name in an encoding that is not known")
    return tuple((attribute, str(value)) for attribute, value in pairs)


def distinguished(names: Names) -> str:
    """Write a distinguished name so that different ones stay different."""
    return ",".join(attribute + "=" + _SPECIAL.sub(r"\\\1", value) for attribute, value in names)


def _alternatives(certificate: x509.Certificate) -> Iterator[tuple[str, str]]:
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return
    for name in extension.value:
        match name:
            case x509.RFC822Name():
                yield "email", name.value
            case x509.DNSName():
                yield "DNS", name.value
            case x509.UniformResourceIdentifier():
                yield "URI", name.value
            case x509.IPAddress():
                yield "IP Address", str(name.value)
