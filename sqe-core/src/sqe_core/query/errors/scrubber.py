"""The last line before a text leaves (ERR-6): what must never be seen is replaced, and somebody is told.

Nothing should arrive here that needs it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from sqe_core.spi.errors import SqeError

_log = logging.getLogger(__name__)

HIDDEN = "…"
_MIN_SECRET_LENGTH = 6
# Our own generated names, also when the secret list is incomplete: a catalog alias or marker holds 128 random bits.
_GENERATED = re.compile(r"`?_sqe_[a-z]_[0-9a-f]{8,}`?(?:\s*\.\s*)?", re.IGNORECASE)
# The prefix before a name; alone it is a word of our own messages.
_PREFIX = re.compile(r"\b__?sqe_(?=\w)", re.IGNORECASE)


class Scrubber:
    """Replaces the secrets of one session in texts: catalog aliases, tokens and others that must not leave."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # The longest first: one secret may begin like another.
        known = sorted({secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, known)), re.IGNORECASE) if known else None

    def clean(self, text: str) -> str:
        """Return a text without secrets, and alarm when it held one; what only looks like ours, users can write."""
        cleaned = self.visible_text(text)
        if self._secrets is not None and self._secrets.search(text):
            # The text itself stays out of the log: it may hold a token (OBS-2).
            _log.error("A text that was about to leave held a secret; it was replaced")
        return cleaned

    def scrub(self, error: SqeError) -> SqeError:
        """Clean the texts of an error in place."""
        error.message = self.clean(error.message)
        error.args = (error.message,)
        if error.hint is not None:
            error.hint = self.clean(error.hint)
        return error

    def visible_text(self, text: str) -> str:
        """Return a text of the engine, where generated names are expected, as the user may read it."""
        text = _GENERATED.sub("", text)
        if self._secrets is not None:
            text = self._secrets.sub(HIDDEN, text)
        return _PREFIX.sub("", text)
