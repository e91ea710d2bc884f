"""Reads from an X.509 certificate what the TLS layers of Python do not give: its names, and when it ends.

Only certificates whose chain TLS has verified come here; nothing is verified again. A structure that is not understood
is a ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address

_INTEGER, _OID, _OCTETS, _EXTENSIONS = 0x02, 0x06, 0x04, 0xA3
_VERSION = 0xA0
_UTC_TIME, _GENERAL_TIME = 0x17, 0x18
_SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"
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
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x16: "ascii", 0x14: "latin-1", 0x1E: "utf-16-be", 0x1C: "utf-32-be"}
_ALTERNATIVES = {0x81: "email", 0x82: "DNS", 0x86: "URI"}
_ADDRESS = 0x87
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
    try:
        (_, outer), *rest = _elements(der)
        if rest:
            raise ValueError("bytes after the certificate")
        fields = [field for field in _elements(next(_elements(outer))[1]) if field[0] != _VERSION]
        issuer, validity, subject = (content for _, content in fields[2:5])
        serial_tag, serial = fields[0]
        if serial_tag != _INTEGER or not serial:
            raise ValueError("no serial number")
        _, (time_tag, end) = _elements(validity)
        extensions = [content for tag, content in fields[6:] if tag == _EXTENSIONS]
        return Certificate(
            subject=_name(subject),
            issuer=_name(issuer),
            alternative_names=tuple(_alternatives(extensions[0])) if extensions else (),
            not_after=_time(time_tag, end),
            serial_number=int.from_bytes(serial, "big", signed=True),
        )
    except (StopIteration, IndexError, UnicodeDecodeError, RuntimeError) as error:
        raise ValueError("no X.509 certificate") from error


def read_name(der: bytes) -> Names:
    """Read a distinguished name in DER, as it stands in a certificate. Raises ValueError."""
    try:
        ((_, content),) = _elements(der)
        return _name(content)
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError("no distinguished name") from error


def distinguished(names: Names) -> str:
    """Write a distinguished name so that different ones stay different."""
    return ",".join(attribute + "=" + _SPECIAL.sub(r"\\\1", value) for attribute, value in names)


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split DER into tags and contents."""
    at = 0
    while at < len(data):
        tag, first = data[at], data[at + 1]
        at += 2
        length = first
        if first & 0x80:
            size = first & 0x7F
            if not 1 <= size <= 4:
                raise ValueError("a length that DER does not have")
            length = int.from_bytes(data[at : at + size], "big")
            at += size
        if tag & 0x1F == 0x1F or at + length > len(data):
            raise ValueError("no DER")
        yield tag, data[at : at + length]
        at += length


def _name(content: bytes) -> Names:
    pairs: list[tuple[str, str]] = []
    for _, group in _elements(content):
        for _, attribute in _elements(group):
            (_, oid), (tag, value) = _elements(attribute)
            dotted = _dotted(oid)
            encoding = _ENCODINGS.get(tag)
            if encoding is None:
                raise ValueError("a name in an encoding that is not known")
            pairs.append((_ATTRIBUTES.get(dotted, dotted), value.decode(encoding)))
    return tuple(pairs)


def _alternatives(content: bytes) -> Iterator[tuple[str, str]]:
    for _, extensions in _elements(content):
        for _, extension in _elements(extensions):
            parts = list(_elements(extension))
            if _dotted(parts[0][1]) != _SUBJECT_ALTERNATIVE_NAME or parts[-1][0] != _OCTETS:
                continue
            for _, names in _elements(parts[-1][1]):
                for tag, value in _elements(names):
                    if tag in _ALTERNATIVES:
                        yield _ALTERNATIVES[tag], value.decode("ascii")
                    elif tag == _ADDRESS:
                        yield "IP Address", str(ip_address(value))


def _dotted(oid: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _time(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        # RFC 5280: years from 50 on are those of the last century.
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif tag != _GENERAL_TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
