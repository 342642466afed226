"""The engine's lock: reentrant, and fair to whoever waits."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from compat_tests.tools.runtimes import is_locked
from compat_tests.unit.runtime.fakes import SECONDS
from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.thread import lock as lock_module
from fakeamqp.runtime.thread.lock import FairLock


def test_lock_is_reentrant_and_owned_by_one_thread() -> None:
    lock = FairLock()
    held_elsewhere: list[bool] = []
    lock.acquire()
    lock.acquire()
    assert lock.held() and lock.depth == 2
    other = threading.Thread(target=lambda: held_elsewhere.append(lock.held()))
    other.start()
    other.join()
    assert held_elsewhere == [False]
    lock.release()
    assert lock.held() and lock.depth == 1
    lock.release()
    assert not lock.held() and lock.depth == 0


def test_waiting_thread_gets_the_lock_before_the_releasing_thread_gets_back() -> None:
    """A thread that releases and takes again at once, as a busy loop does, lets a waiting one through."""
    lock = FairLock()
    clock = RealClock()
    order: list[str] = []

    def enter() -> None:
        lock.acquire()
        order.append("waited")
        lock.release()

    for _ in range(50):
        order.clear()
        lock.acquire()
        waiting = threading.Thread(target=enter, daemon=True)
        waiting.start()
        deadline = clock.now() + SECONDS
        while not is_locked(lock._turnstile):
            assert clock.now() < deadline, "who waits for the lock does not hold the turnstile"
        lock.release()
        lock.acquire()
        order.append("came back")
        lock.release()
        waiting.join()
        assert order == ["waited", "came back"]


def test_released_context_gives_up_the_lock_and_restores_its_depth() -> None:
    lock = FairLock()
    with lock.released():
        pass
    assert not lock.held()
    lock.acquire()
    lock.acquire()
    with lock.released():
        assert not lock.held()
    assert lock.held() and lock.depth == 2


def test_interrupted_release_of_the_lock_is_not_undone() -> None:
    class Interrupting:
        def __init__(self, lock: threading.RLock) -> None:  # type: ignore[valid-type]
            self.lock = lock

        def release(self) -> None:
            raise KeyboardInterrupt

        def __getattr__(self, name: str) -> object:
            return getattr(self.lock, name)

    lock = FairLock()
    lock.acquire()
    inner = lock._lock
    lock._lock = Interrupting(inner)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        lock.release()
    lock._lock = inner
    with lock.released():
        pass
    assert not lock.held()


def test_lock_can_be_released_only_by_its_holder() -> None:
    lock = FairLock()
    with pytest.raises(RuntimeError, match="does not hold"):
        lock.release()
    caught: list[RuntimeError] = []

    def release() -> None:
        try:
            lock.release()
        except RuntimeError as error:
            caught.append(error)

    lock.acquire()
    other = threading.Thread(target=release)
    other.start()
    other.join()
    assert len(caught) == 1
    assert lock.held()
    lock.release()


class Guard:
    """A context manager that takes the lock for its user."""

    def __init__(self, lock: FairLock) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def wanted(lock: FairLock) -> threading.Thread:
    """A thread that takes the lock and releases it; it has begun to wait."""

    def take() -> None:
        lock.acquire()
        lock.release()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("again", [False, True], ids=["another thread", "the same"])
def test_lock_is_taken_over_after_its_holder_returned_without_release(
    again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.001)
    lock = FairLock()

    def leaves() -> None:
        lock.acquire()

    leaves()
    if again:
        lock.acquire()
        assert lock.depth == 1
        lock.release()
    thread = wanted(lock)
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_running_holder_keeps_the_lock_while_its_frames_are_inspected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A generator that has yielded has no callers: that must not be taken for a holder that has left."""
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.001)
    lock = FairLock()
    inner, looked_at, suspended, looked_again, done = (threading.Event() for _ in range(5))
    looks: list[None] = []
    released: list[None] = []
    current_frames = sys._current_frames

    def stale() -> dict[int, FrameType]:
        found = current_frames()
        looks.append(None)
        if len(looks) == 1:
            looked_at.set()
            assert suspended.wait(SECONDS)
        elif len(looks) > 3:
            looked_again.set()
        return found

    def steps() -> Iterator[None]:
        inner.set()
        while not looked_at.is_set():
            pass
        yield

    def hold() -> None:
        work = steps()
        lock.acquire()
        try:
            next(work)
            suspended.set()
            looked_again.wait(SECONDS)
        finally:
            lock.release()
            released.append(None)
            done.set()

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert inner.wait(SECONDS)
    monkeypatch.setattr(sys, "_current_frames", stale)
    waiter = wanted(lock)
    assert done.wait(SECONDS)
    waiter.join(SECONDS)
    assert released and not waiter.is_alive()


def test_a_lock_in_use_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.001)
    looks: list[None] = []
    in_use = FairLock._in_use

    def counted(self: FairLock, frame: FrameType | None) -> bool:
        looks.append(None)
        return in_use(self, frame)

    monkeypatch.setattr(FairLock, "_in_use", counted)
    lock = FairLock()

    def generator() -> Iterator[None]:
        with Guard(lock):
            yield

    suspended = generator()
    with contextlib.ExitStack() as stack:
        for hold in (Guard(lock), contextlib.contextmanager(lambda: suspended)(), None):
            with hold or contextlib.nullcontext():
                if hold is None:
                    stack.enter_context(Guard(lock))
                looks.clear()
                thread = wanted(lock)
                while len(looks) < 5:
                    thread.join(0.001)
                assert thread.is_alive() and lock.held()
            if hold is not None:
                thread.join(SECONDS)
                assert not thread.is_alive()
