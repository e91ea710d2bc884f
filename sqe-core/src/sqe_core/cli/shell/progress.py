"""The live line under a long statement, or under a first start. Only on a terminal, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqe_core.cli.shell.console import Console
from sqe_core.cli.shell.terminal_text import cut, escape_unprintable

if TYPE_CHECKING:
    from sqe_core.cli.backend import Backend
    from sqe_core.engine.port import Progress

_QUIET_SECONDS = 1.0
"""Shorter statements show nothing."""

_REDRAW_SECONDS = 0.2
_BAR_WIDTH = 20


def bar(share: float) -> str:
    """Draw a share between 0 and 1."""
    share = min(max(share, 0.0), 1.0)
    done = int(share * _BAR_WIDTH)
    return f"[{'#' * done}{'.' * (_BAR_WIDTH - done)}] {int(share * 100):3d}%"


def duration(seconds: float) -> str:
    """Write how long something took, as short as is useful."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min {rest:02d} s" if hours else f"{minutes} min {rest:02d} s"


def describe(progress: Progress, seconds: float) -> str:
    """Say in one line how far a statement is."""
    # What matters most comes first: a narrow terminal cuts the end.
    parts = [bar(progress.tasks_done / progress.tasks)] if progress.tasks else []
    parts += [f"{int(seconds)} s", "Ctrl-C cancels"]
    if progress.rows:
        parts.append(f"{progress.rows:,} rows")
    if progress.tasks:
        parts.append(f"{progress.tasks_done}/{progress.tasks} tasks, {progress.tasks_active} running")
    if progress.stages:
        parts.append(f"{progress.stages_done}/{progress.stages} stages")
    return "  ".join(parts)


class EngineSteps:
    """What the engine last said about its own start. Told from other threads, read by the main one."""

    def __init__(self) -> None:
        self._last: tuple[str, float | None] = ("", None)

    def listen(self, what: str, share: float | None) -> None:
        """Take a step; the listener of `Backend.on_engine_progress`."""
        self._last = (what, share)

    def describe(self) -> str:
        """Say what the engine is doing, or nothing when it never said."""
        what, share = self._last
        if not what:
            return ""
        return f"{bar(share)}  {escape_unprintable(what)}" if share is not None else escape_unprintable(what)


class ProgressLine:
    """Draws and removes the line. Every method is for the main thread."""

    def __init__(
        self,
        console: Console,
        backend: Backend,
        steps: EngineSteps,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._backend = backend
        self._steps = steps
        self._clock = clock
        self._began = clock()
        self._drawn_at = 0.0
        self._shown = False
        self.suspended = not console.can_redraw
        self.cancelling = False

    def begin(self) -> None:
        self._began = self._clock()
        self._drawn_at = self._began
        self.cancelling = False

    def tick(self) -> None:
        """Redraw when it is time to."""
        now = self._clock()
        if self.suspended or now - self._began < _QUIET_SECONDS or now - self._drawn_at < _REDRAW_SECONDS:
            return
        self._drawn_at = now
        columns, _ = self._console.size()
        self._console.draw(f"\r\x1b[K{cut(self._text(now - self._began), max(columns - 1, 1))}")
        self._shown = True

    def clear(self) -> None:
        """Remove the line, before anything else is written."""
        if self._shown:
            self._console.draw("\r\x1b[K")
            self._shown = False

    def _text(self, seconds: float) -> str:
        if self.cancelling:
            return "Cancelling …"
        try:
            state = self._backend.engine_state().value
            if state in ("preparing", "starting", "lost"):
                verb = {"preparing": "Preparing", "starting": "Starting", "lost": "Restarting"}[state]
                return f"{verb} the engine, {int(seconds)} s  {self._steps.describe()}".rstrip()
            progress = self._backend.progress()
        except Exception:  # noqa: BLE001 a progress line must never make a statement fail
            progress = None
        if progress is None:
            return f"{int(seconds)} s  Ctrl-C cancels"
        return describe(progress, seconds)
