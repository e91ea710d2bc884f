"""Certificate revocation lists (CRL): which certificates of an authority do not count any more.

A list counts while it is signed by its authority and not past its own end. Of an authority without such a list nothing
can be said, so nobody of it gets in: forgetting to publish the next list must not bring withdrawn certificates back.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqe_core.auth.certificate import distinguished, names_of
from sqe_core.spi.errors import ConfigError, ExternalError
from sqe_core.spi.factory import Clock

if TYPE_CHECKING:
    from cryptography import x509

_log = logging.getLogger(__name__)

_LARGEST_FILE = 64 * 1024 * 1024
_PEM_LIST = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevocationList:
    """What one authority says, until when."""

    begins_at: datetime
    ends_at: datetime
    serial_numbers: frozenset[int]


class RevocationLists:
    """The lists of some files, read again when one of them changes. Safe for use from many threads.

    Args:
        files: the lists, in PEM or DER; a file in PEM may hold several.
        authorities: certificates in PEM of those who may sign them.
        clock: what the ends of lists are compared with.

    Raises:
        ConfigError: a file that cannot be used, with every fault.
    """

    def __init__(self, files: Sequence[Path], authorities: Path, clock: Clock) -> None:
        self._files = tuple(files)
        self._authorities = authorities
        self._clock = clock
        self._lock = threading.Lock()
        self._seen = self._versions()
        self._lists = self._read()

    def is_revoked(self, authority: str, serial_number: int) -> bool:
        """Whether a certificate was withdrawn.

        Raises:
            ExternalError: there is no list of this authority that counts now.
        """
        found = self._current().get(authority)
        if found is None:
            raise ExternalError("There is no revocation list of the authority of a client certificate")
        now = self._clock.now()
        if not found.begins_at <= now < found.ends_at:
            raise ExternalError(f"A revocation list counts from {found.begins_at} to {found.ends_at}, and it is {now}")
        return serial_number in found.serial_numbers

    def check(self) -> None:
        """Raise when the files as they are now cannot be used, or a list is over."""
        now = self._clock.now()
        for authority, found in self._read().items():
            if not found.begins_at <= now < found.ends_at:
                raise ConfigError((f"the list of {authority} counts until {found.ends_at}; fetch the next one",))

    def _current(self) -> dict[str, RevocationList]:
        """Return the lists; where a new file has faults, the last good ones count until their end."""
        versions = self._versions()
        if versions != self._seen:
            with self._lock:
                if versions != self._seen:
                    self._seen = versions
                    try:
                        self._lists = self._read()
                    except ConfigError as error:
                        for fault in error.faults:
                            _log.error("the revocation lists stay as they were: %s", fault)
                    else:
                        _log.info("read the revocation lists of %d authorities", len(self._lists))
        return self._lists

    def _versions(self) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(_version(path) for path in (*self._files, self._authorities))

    def _read(self) -> dict[str, RevocationList]:
        from cryptography import x509

        faults: list[str] = []
        lists: dict[str, RevocationList] = {}
        try:
            authorities = x509.load_pem_x509_certificates(_content(self._authorities))
        except (ConfigError, ValueError) as error:
            raise ConfigError((f"cannot read the authorities of client certificates: {_told(error)}",)) from None
        for path in self._files:
            try:
                for each in _lists_of(_content(path)):
                    name, found = _judged(each, authorities)
                    if name in lists:
                        raise ValueError("there is another list of the same authority")
                    lists[name] = found
            except (ConfigError, ValueError) as error:
                faults.append(f"{path}: {_told(error)}")
        if faults:
            raise ConfigError(tuple(faults))
        return lists


def _lists_of(content: bytes) -> list[x509.CertificateRevocationList]:
    from cryptography import x509

    blocks = _PEM_LIST.findall(content)
    if blocks:
        return [x509.load_pem_x509_crl(block + b"\n") for block in blocks]
    return [x509.load_der_x509_crl(content)]


def _judged(
    found: x509.CertificateRevocationList, authorities: Sequence[x509.Certificate]
) -> tuple[str, RevocationList]:
    """Return what a list says, and whose it is. Raises ValueError when it does not count."""
    # Such as "changes since the last list only", or "certificates of one kind only" (RFC 5280, 5.2).
    if any(extension.critical for extension in found.extensions):
        raise ValueError("only complete lists of one authority are understood")
    begins_at, ends_at = found.last_update_utc, found.next_update_utc
    if ends_at is None:
        raise ValueError("the list does not say until when it counts")
    if not any(_has_signed(authority, found) for authority in authorities):
        raise ValueError("the list is not signed by an authority of client certificates")
    numbers = frozenset(entry.serial_number for entry in found)
    name = distinguished(names_of(found.issuer))
    return name, RevocationList(begins_at=begins_at, ends_at=ends_at, serial_numbers=numbers)


def _has_signed(authority: x509.Certificate, found: x509.CertificateRevocationList) -> bool:
    from cryptography.exceptions import UnsupportedAlgorithm

    if authority.subject != found.issuer:
        return False
    try:
        return found.is_signature_valid(authority.public_key())  # type: ignore[arg-type]  # other keys are a TypeError
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return False


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError((error.strerror or type(error).__name__,)) from None
    if len(content) > _LARGEST_FILE:
        raise ConfigError((f"is larger than {_LARGEST_FILE} bytes",))
    return content


def _version(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _told(error: Exception) -> str:
    return "; ".join(error.faults) if isinstance(error, ConfigError) else str(error)
