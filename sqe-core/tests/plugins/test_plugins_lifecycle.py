"""Start in order, stop in reverse, roll back."""

from __future__ import annotations

import logging

import pytest

from sqe_core.plugins.lifecycle import TRANSITIONS, Component, Lifecycle, LifecycleState
from sqe_core.spi import InternalError, StartupError


class Recorder:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def component(self, name: str, *, start_fails: bool = False, stop_fails: bool = False) -> Component:
        def start() -> None:
            self.calls.append(f"start {name}")
            if start_fails:
                raise StartupError(f"{name} cannot start")

        def stop() -> None:
            self.calls.append(f"stop {name}")
            if stop_fails:
                raise RuntimeError("stuck")

        return Component(name=name, start=start, stop=stop)


def test_starts_in_order_and_stops_in_reverse() -> None:
    recorder = Recorder()
    lifecycle = Lifecycle([recorder.component(name) for name in "abc"])
    lifecycle.start()
    assert lifecycle.state is LifecycleState.RUNNING
    lifecycle.stop()
    lifecycle.stop()
    assert lifecycle.state is LifecycleState.STOPPED
    assert recorder.calls == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]


def test_failed_start_rolls_back_and_raises() -> None:
    recorder = Recorder()
    lifecycle = Lifecycle([recorder.component("a"), recorder.component("b"), recorder.component("c", start_fails=True)])
    with pytest.raises(StartupError, match="c cannot start"):
        lifecycle.start()
    assert lifecycle.state is LifecycleState.FAILED
    assert recorder.calls == ["start a", "start b", "start c", "stop b", "stop a"]
    lifecycle.stop()
    assert lifecycle.state is LifecycleState.FAILED


def test_failed_stop_does_not_keep_others_from_stopping(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    lifecycle = Lifecycle([recorder.component("a"), recorder.component("b", stop_fails=True)])
    lifecycle.start()
    with caplog.at_level(logging.ERROR):
        lifecycle.stop()
    assert recorder.calls[-2:] == ["stop b", "stop a"]
    assert "b failed to stop" in caplog.text


def test_stop_while_starting_is_obeyed() -> None:
    recorder = Recorder()
    lifecycle: Lifecycle
    signal = Component(name="signal", start=lambda: lifecycle.stop())
    lifecycle = Lifecycle([recorder.component("a"), signal, recorder.component("never")])
    lifecycle.start()
    assert lifecycle.state is LifecycleState.STOPPED
    assert recorder.calls == ["start a", "stop a"]


def test_stop_before_start() -> None:
    lifecycle = Lifecycle([])
    lifecycle.stop()
    assert lifecycle.state is LifecycleState.STOPPED
    with pytest.raises(InternalError, match="cannot go from stopped to starting"):
        lifecycle.start()


def test_starting_twice_is_an_error() -> None:
    lifecycle = Lifecycle([])
    lifecycle.start()
    with pytest.raises(InternalError, match="cannot go from running to starting"):
        lifecycle.start()


def test_table_names_every_state_and_ends() -> None:
    assert set(TRANSITIONS) == set(LifecycleState)
    assert {state for state, following in TRANSITIONS.items() if not following} == {
        LifecycleState.STOPPED,
        LifecycleState.FAILED,
    }
