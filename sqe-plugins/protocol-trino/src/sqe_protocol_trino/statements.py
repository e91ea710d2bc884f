"""The statements that clients have: found by their owners only, bounded, and forgotten when nobody comes for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from sqe_core.spi import ResourcesError, ShuttingDownError
from sqe_protocol_trino.chain import Chain
from sqe_protocol_trino.config import TrinoConfig

_KEPT_SECS = 60.0
"""How long the last page can be read again."""


class Statements:
    """All statements of this listener. The event loop's.

    Args:
        config: bounds.
        idle_secs: who does not come for a page for so long, does not come again.
    """

    def __init__(self, config: TrinoConfig, idle_secs: float) -> None:
        self._most, self._idle_secs = config.max_statements, idle_secs
        self._most_of_a_user = config.max_statements_per_user
        self._chains: dict[str, Chain] = {}
        # A thread for each, and kept for the next one: to start one holds up the event loop.
        self._threads = ThreadPoolExecutor(config.max_statements, thread_name_prefix="sqe-trino")
        self._closing = False

    def add(self, chain: Chain, run: Callable[[], None]) -> None:
        """Run a statement in a thread of its own.

        Raises:
            ResourcesError: there are too many.
        """
        if self._closing:
            raise ShuttingDownError("The server is shutting down")
        if self._is_full(chain.owner):
            self._forget_ended()
        if self._is_full(chain.owner):
            raise ResourcesError("Too many statements are under way", retry_after_secs=1)
        self._chains[chain.id] = chain
        try:
            self._threads.submit(run)
        except RuntimeError:  # no more threads
            del self._chains[chain.id]
            raise ResourcesError("Too many statements are under way", retry_after_secs=1) from None

    def _is_full(self, owner: tuple[str, str]) -> bool:
        """Whether there are too many, or too many of one user, who would keep the others out."""
        count = len(self._chains)
        return count >= self._most or (count >= self._most_of_a_user and len(self.of(owner)) >= self._most_of_a_user)

    def find(self, query_id: str, owner: tuple[str, str]) -> Chain | None:
        """Return a statement of a user; what is somebody else's is not there (TRI-3)."""
        chain = self._chains.get(query_id)
        return chain if chain is not None and chain.owner == owner else None

    def of(self, owner: tuple[str, str]) -> Sequence[Chain]:
        """Return the statements of a user."""
        return [chain for chain in self._chains.values() if chain.owner == owner]

    def _forget_ended(self) -> None:
        for chain in [chain for chain in self._chains.values() if chain.ended]:
            self._drop(chain)

    def sweep(self) -> None:
        """End what nobody came for, and forget what ended."""
        now = time.monotonic()
        for chain in list(self._chains.values()):
            if chain.is_awaited:
                continue  # somebody waits for its page right now
            if now - chain.touched > (min(_KEPT_SECS, self._idle_secs) if chain.ended else self._idle_secs):
                self._drop(chain)

    def _drop(self, chain: Chain) -> None:
        self._chains.pop(chain.id, None)
        if chain.ended:
            chain.forget()
        else:  # cancelling may wait for the engine: not here
            threading.Thread(target=chain.forget, daemon=True).start()

    async def drain(self, secs: float) -> None:
        """Take nothing new, let clients fetch what is theirs, and end the rest."""
        self._closing = True
        deadline = time.monotonic() + secs
        while time.monotonic() < deadline and not all(chain.ended for chain in self._chains.values()):
            await asyncio.sleep(0.02)
        for chain in list(self._chains.values()):
            self._drop(chain)
        self._threads.shutdown(wait=False)
