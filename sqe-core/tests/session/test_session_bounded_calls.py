"""Calls in threads that are kept: answers, errors, time, and what does not stay behind."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from sqe_core.session import bounded_calls
from sqe_core.session.bounded_calls import BoundedCalls, NoThreadError, TookTooLongError


@pytest.fixture
def calls() -> Iterator[BoundedCalls]:
    made = BoundedCalls()
    yield made
    made.close()


def test_answers_and_errors_come_back(calls: BoundedCalls) -> None:
    assert calls.make(lambda abandoned: 7, timeout_secs=5) == 7
    assert calls.make(lambda abandoned: None, timeout_secs=5) is None
    with pytest.raises(SystemExit):
        calls.make(lambda abandoned: exit(3), timeout_secs=5)


def test_a_thread_is_kept_for_the_next_call(calls: BoundedCalls) -> None:
    def own(abandoned: threading.Event) -> int:
        return threading.get_ident()

    threads = {calls.make(own, timeout_secs=5) for _ in range(50)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_a_call_that_hangs_is_given_up_and_told_so(calls: BoundedCalls) -> None:
    told = threading.Event()

    def hang(abandoned: threading.Event) -> None:
        if abandoned.wait(10):
            told.set()

    began = time.monotonic()
    with pytest.raises(TookTooLongError):
        calls.make(hang, timeout_secs=0.05)
    assert time.monotonic() - began < 5
    assert told.wait(5)
    assert calls.make(lambda abandoned: "next", timeout_secs=5) == "next"


def test_many_at_once_do_not_get_each_others_answers(calls: BoundedCalls, race) -> None:
    def work(number: int) -> list[int]:
        return [calls.make(lambda abandoned: number, timeout_secs=10) for _ in range(200)]

    assert race(*(lambda number=number: work(number) for number in range(16))) == [[n] * 200 for n in range(16)]
    assert len(calls._idle) <= bounded_calls._MOST_IDLE


@pytest.mark.rule("SESS-6")
def test_a_thread_that_waits_holds_nothing_of_the_last_call(calls: BoundedCalls) -> None:
    class Credential: ...

    held = Credential()
    seen = weakref.ref(held)

    def use(abandoned: threading.Event, credential: Credential = held) -> bool:
        return credential is not None

    assert calls.make(use, timeout_secs=5)
    del held, use
    deadline = time.monotonic() + 5
    while seen() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert seen() is None


def test_a_machine_without_threads(calls: BoundedCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(NoThreadError):
        calls.make(lambda abandoned: 1, timeout_secs=5)


def test_closing_ends_the_threads_that_wait(calls: BoundedCalls) -> None:
    thread = calls.make(lambda abandoned: threading.current_thread(), timeout_secs=5)
    calls.close()
    thread.join(5)
    assert not thread.is_alive()
    last = calls.make(lambda abandoned: threading.current_thread(), timeout_secs=5)
    last.join(5)
    assert not last.is_alive()
