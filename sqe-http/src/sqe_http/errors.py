"""Why there is no answer. It is nobody's error of SQE yet: whoever asks says which one it is to him."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    UNREACHABLE = "no connection, or it ended without an answer"
    LATE = "the time is over"
    UNTRUSTED = "its certificate names somebody else, or nobody vouches for it"
    REDIRECTED = "it answered with a redirect"
    UNREADABLE = "it answered with something else than was asked for"
    TOO_LARGE = "the answer is larger than allowed"
    CROWDED = "our own requests fill the pool"
    SPARED = "it failed several times, and is left alone for a while"


class HttpFailedError(Exception):
    """There is no answer; its text is a sentence without secrets.

    Args:
        reason: what went wrong.
        text: the sentence.
        again: whether another try may help.
        of_server: whether it says something about the server's health.
    """

    def __init__(self, reason: Reason, text: str, *, again: bool = False, of_server: bool = True) -> None:
        super().__init__(text)
        self.reason = reason
        self.again = again
        self.of_server = of_server
