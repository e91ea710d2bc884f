"""Whether the server lives, whether it can serve, and what it says about itself to anybody (OBS-6: nothing more)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from sqe_core.spi.errors import SqeError
from sqe_core.spi.protocol import ServerStatus
from sqe_http.listener import HttpAnswer, HttpRequest, Route

_log = logging.getLogger(__name__)

CHECK_SECS = 5.0
_FRESH_SECS = 1.0


class Probe:
    """A check that may take long, asked by many: one runs at a time, and its answer holds for a moment.

    Args:
        name: what it is called in the log.
        check: raises when the thing cannot be used.
        timeout_secs: after that it counts as failed, though it may still be running.
        fresh_secs: how long an answer holds.
    """

    def __init__(
        self,
        name: str,
        check: Callable[[], None],
        *,
        timeout_secs: float = CHECK_SECS,
        fresh_secs: float = _FRESH_SECS,
    ) -> None:
        self.name = name
        self._check = check
        self._timeout_secs = timeout_secs
        self._fresh_secs = fresh_secs
        self._changed = threading.Condition()
        self._running_since: float | None = None
        self._ended = float("-inf")
        self._passed = False
        self._said: bool | None = None
        self.error: Exception | None = None
        """Why it failed when it last did."""

    def begin(self) -> None:
        """Start the check, unless it runs or was just done."""
        with self._changed:
            if self._running_since is not None or time.monotonic() - self._ended < self._fresh_secs:
                return
            self._running_since = time.monotonic()
        threading.Thread(target=self._run, name=f"sqe-check-{self.name}", daemon=True).start()

    def passed(self) -> bool:
        """Wait for the check that `begin` started, as long as it may take, and say how it ended."""
        with self._changed:
            since = self._running_since
            if since is None:
                return self._passed
            left = since + self._timeout_secs - time.monotonic()
            done = self._changed.wait_for(lambda: self._running_since != since, max(left, 0))
            if not done:
                self._say(False, f"no answer in {self._timeout_secs:g} s")
            return done and self._passed

    def _run(self) -> None:
        fault = ""
        try:
            self._check()
        except Exception as error:  # noqa: BLE001 - whatever a backend raises means that it cannot be used
            # Libraries put addresses and headers into their texts (OBS-2); ours were written to be read.
            fault = error.message if isinstance(error, SqeError) else type(error).__name__
            self.error = error
            _log.debug("the check of %s failed", self.name, exc_info=True)
        with self._changed:
            self._passed = not fault
            self._ended = time.monotonic()
            self._running_since = None
            self._say(not fault, fault)
            self._changed.notify_all()

    def _say(self, passed: bool, fault: str) -> None:
        """Log a change, and no more: probes come every few seconds."""
        if self._said is not passed:
            if not passed:
                _log.warning("%s cannot be used: %s", self.name, fault)
            elif self._said is not None:
                _log.info("%s can be used again", self.name)
            self._said = passed


class Readiness:
    """Whether statements can run now.

    Args:
        engine_ready: whether the engine runs statements.
        draining: whether the server is about to end.
        catalogs: the check of each catalog.
    """

    def __init__(
        self,
        *,
        engine_ready: Callable[[], bool],
        draining: Callable[[], bool],
        catalogs: Sequence[Probe] = (),
    ) -> None:
        self._engine_ready = engine_ready
        self._draining = draining
        self._catalogs = tuple(catalogs)

    def failed(self) -> tuple[str, ...]:
        """Return the names of the checks that fail; which catalog it is, only the log says."""
        if self._draining():
            return ("draining",)
        failed = [] if self._engine_ready() else ["engine"]
        for probe in self._catalogs:
            probe.begin()
        if not all(probe.passed() for probe in self._catalogs):
            failed.append("catalogs")
        return tuple(failed)


def health_routes(readiness: Readiness, status: Callable[[], ServerStatus]) -> Mapping[str, Route]:
    def healthz(request: HttpRequest) -> HttpAnswer:
        return HttpAnswer.of_text("ok")

    def readyz(request: HttpRequest) -> HttpAnswer:
        failed = readiness.failed()
        if failed:
            return HttpAnswer.of_json({"status": "unavailable", "failed": failed}, 503)
        return HttpAnswer.of_json({"status": "ready"})

    def about(request: HttpRequest) -> HttpAnswer:
        known = status()
        return HttpAnswer.of_json({"version": known.version, "state": known.state.value})

    return {"/healthz": healthz, "/readyz": readyz, "/api/v1/status": about}
