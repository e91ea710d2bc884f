"""The names that clients may call this server by: those of its certificate, of the renewed one, too."""

from __future__ import annotations

import logging
from pathlib import Path

from cryptography import x509

_log = logging.getLogger("sqe_core.trino")


class CertificateNames:
    """Knows the names of the certificate in a file.

    Args:
        cert_file: the chain; its first certificate counts.
    """

    def __init__(self, cert_file: Path) -> None:
        self._file = cert_file
        self._stamp = -1
        self._names: frozenset[str] = frozenset()

    def __contains__(self, name: object) -> bool:
        """Whether a client that asks for a name finds it in the certificate."""
        self._read()
        if not isinstance(name, str) or not name:
            return False
        return name in self._names or f"*.{name.partition('.')[2]}" in self._names

    def _read(self) -> None:
        try:
            stamp = self._file.stat().st_mtime_ns
            if stamp != self._stamp:
                self._stamp = stamp
                self._names = _names(self._file.read_bytes())
        except (OSError, ValueError) as error:
            _log.warning("the names of the certificate cannot be read: %s", type(error).__name__)


def _names(pem: bytes) -> frozenset[str]:
    certificate = x509.load_pem_x509_certificate(pem)
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(name.lower() for name in found.get_values_for_type(x509.DNSName))
