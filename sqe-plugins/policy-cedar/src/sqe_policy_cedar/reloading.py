"""The policies in force: read again when their files change, and nothing in force while the files are broken.

The last version that worked is no answer to a broken one: the change may have been a revocation.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqe_core.spi import ErrorCode, ExternalError
from sqe_policy_cedar.bundle import Bundle, make_bundle
from sqe_policy_cedar.files import PolicyFileError, PolicyFiles, Stamp

_log = logging.getLogger(__name__)

CHECK_SECS = 1.0


class PolicyStore:
    """Hands out the policies in force, to many threads."""

    def __init__(self, files: PolicyFiles, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._files = files
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._bundle: Bundle | None = None
        self._fault = ""
        self._stamp: Stamp | None = None
        self._checked_at: float | None = None

    def current(self) -> Bundle:
        """Return the policies, no older than a second.

        Raises:
            ExternalError: they are broken; the log and `check` say how.
        """
        # Whoever waits here waits for the new version: the old one may grant what was just revoked.
        with self._lock:
            now = self._monotonic()
            if self._checked_at is None or now - self._checked_at >= CHECK_SECS:
                self._refresh()
                self._checked_at = self._monotonic()
            if self._bundle is None:
                raise ExternalError("The Cedar policies cannot be used", code=ErrorCode.EXECUTION_FAILED)
            return self._bundle

    def look_again(self) -> None:
        """Look at the files at the next question, however short ago the last time was."""
        with self._lock:
            self._checked_at = None

    def check(self) -> None:
        """Raise when the policies cannot be used; the text is for the operator.

        Raises:
            ExternalError: which file is wrong, and why.
        """
        self.look_again()
        try:
            self.current()
        except ExternalError as error:
            raise ExternalError(f"The Cedar policies cannot be used: {self._fault}", code=error.code) from error

    def _refresh(self) -> None:
        try:
            if self._stamp is not None and self._files.stamp() == self._stamp:
                return
            texts, stamp = self._files.read()
            if self._bundle is None or self._bundle.version != texts.digest:
                self._bundle = make_bundle(texts)
                _log.info("Cedar: %d policies are in force, version %s", len(self._bundle.policies), texts.digest)
            self._stamp, self._fault = stamp, ""
        except PolicyFileError as error:
            self._break(str(error))
        except OSError as error:
            self._break(f"{error.filename}: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - Cedar's own errors too: whatever it is, nothing is in force
            self._break(f"{type(error).__name__} while they were read")

    def _break(self, fault: str) -> None:
        if fault != self._fault:
            _log.error("Cedar: every statement is refused until the policies are repaired: %s", fault)
        # No stamp: it is read again until it works, at most once a second.
        self._bundle, self._stamp, self._fault = None, None, fault
