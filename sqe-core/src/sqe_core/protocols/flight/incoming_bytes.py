"""How many bytes of clients' rows the server holds: calls that wait with big messages do not fill it (LIM-2)."""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType

from sqe_core.spi.errors import ResourcesError

# With what gRPC keeps of a message it may be twice as much. One user has room for the biggest batch.
MOST_BYTES = 1 << 30
MOST_BYTES_OF_USER = 384 << 20
_RETRY_SECS = 1


class ByteBudget:
    """Counts what the calls hold.

    Args:
        most: of all users together.
        most_of_user: of one.
    """

    def __init__(self, most: int = MOST_BYTES, most_of_user: int = MOST_BYTES_OF_USER) -> None:
        self._most = most
        self._most_of_user = most_of_user
        # Reentrant: a call that nobody reads on is closed by the garbage collector, anywhere.
        self._lock = threading.RLock()
        self._total = 0
        self._of_users: Counter[tuple[str, str]] = Counter()

    @property
    def total(self) -> int:
        """What is held now."""
        return self._total

    def of(self, user: tuple[str, str]) -> HeldBytes:
        """Return what one call of a user holds: nothing yet."""
        return HeldBytes(self, user)

    def change(self, user: tuple[str, str], by: int) -> None:
        """Count more bytes, or fewer; refuse more when they are too many."""
        with self._lock:
            if by > 0 and self._of_users[user] + by > self._most_of_user:
                raise _too_much(f"Your calls would hold more than {self._most_of_user} bytes at once")
            if by > 0 and self._total + by > self._most:
                raise _too_much("The server holds as many bytes of its clients as it can")
            self._total += by
            self._of_users[user] += by
            if not self._of_users[user]:
                del self._of_users[user]


class HeldBytes:
    """What one call holds until it ends: a context manager that frees it.

    Args:
        budget: where it counts.
        user: for whom.
    """

    def __init__(self, budget: ByteBudget, user: tuple[str, str]) -> None:
        self._budget = budget
        self._user = user
        self._message = self._dictionaries = self._rows = 0

    def message(self, size: int) -> None:
        """Hold a message, or the batch that it became, instead of the one before."""
        self._budget.change(self._user, size - self._message)
        self._message = size

    def dictionaries(self, size: int) -> None:
        """Hold dictionaries, which stay until the stream ends."""
        self._budget.change(self._user, size - self._dictionaries)
        self._dictionaries = size

    def rows(self, size: int) -> None:
        """Hold rows that were taken from messages, until the call ends."""
        self._budget.change(self._user, size - self._rows)
        self._rows = size

    def __enter__(self) -> HeldBytes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.message(0)
        self.dictionaries(0)
        self.rows(0)


def _too_much(message: str) -> ResourcesError:
    return ResourcesError(message, hint="send smaller batches, or fewer at once", retry_after_secs=_RETRY_SECS)
