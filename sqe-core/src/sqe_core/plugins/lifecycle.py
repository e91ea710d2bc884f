"""Starting in order, stopping in reverse, rolling back when a start fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from sqe_core.spi.errors import InternalError

_log = logging.getLogger(__name__)


class LifecycleState(Enum):
    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


TRANSITIONS: Mapping[LifecycleState, frozenset[LifecycleState]] = {
    LifecycleState.NEW: frozenset({LifecycleState.STARTING, LifecycleState.STOPPED}),
    LifecycleState.STARTING: frozenset({LifecycleState.RUNNING, LifecycleState.STOPPING, LifecycleState.FAILED}),
    LifecycleState.RUNNING: frozenset({LifecycleState.STOPPING}),
    LifecycleState.STOPPING: frozenset({LifecycleState.STOPPED}),
    LifecycleState.STOPPED: frozenset(),
    LifecycleState.FAILED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Something that starts and stops. `stop` is called exactly when `start` has returned."""

    name: str
    start: Callable[[], object] = lambda: None
    stop: Callable[[], object] = lambda: None


class Lifecycle:
    """Components that live together. `stop` may come at any time, from a signal handler too."""

    def __init__(self, components: Sequence[Component]) -> None:
        self._components = tuple(components)
        self._started: list[Component] = []
        self._state = LifecycleState.NEW
        self._stop_wanted = False
        self._lock = threading.RLock()

    @property
    def state(self) -> LifecycleState:
        return self._state

    def start(self) -> None:
        """Start everything in order. When one fails, the started ones are stopped and its error is raised.

        A `stop` that comes meanwhile is obeyed after the component that is just starting.
        """
        self._enter(LifecycleState.STARTING)
        for component in self._components:
            if self._stop_wanted:
                break
            try:
                component.start()
            except BaseException:
                self._stop_started()
                self._enter(LifecycleState.FAILED)
                raise
            self._started.append(component)
        with self._lock:
            if not self._stop_wanted:
                self._enter(LifecycleState.RUNNING)
                return
        self._finish()

    def stop(self) -> None:
        """Stop everything in reverse order; a component that fails to stop is logged. Idempotent."""
        with self._lock:
            match self._state:
                case LifecycleState.NEW:
                    self._enter(LifecycleState.STOPPED)
                    return
                case LifecycleState.STARTING:
                    self._stop_wanted = True
                    return
                case LifecycleState.STOPPING | LifecycleState.STOPPED | LifecycleState.FAILED:
                    return
            self._enter(LifecycleState.STOPPING)
        self._stop_started()
        self._enter(LifecycleState.STOPPED)

    def _finish(self) -> None:
        self._enter(LifecycleState.STOPPING)
        self._stop_started()
        self._enter(LifecycleState.STOPPED)

    def _enter(self, state: LifecycleState) -> None:
        with self._lock:
            if state not in TRANSITIONS[self._state]:
                raise InternalError(f"a lifecycle cannot go from {self._state.value} to {state.value}")
            self._state = state

    def _stop_started(self) -> None:
        while self._started:
            component = self._started.pop()
            try:
                component.stop()
            except Exception:  # noqa: BLE001 - the others have to be stopped too
                _log.exception("%s failed to stop", component.name)
