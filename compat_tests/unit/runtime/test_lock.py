"""The engine's lock: reentrant, and fair to whoever waits."""

from __future__ import annotations

import threading

import pytest

from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.lock import EngineLock

SECONDS = 20


def test_reentrant_and_owned_by_one_thread() -> None:
    lock = EngineLock()
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


def test_who_waits_comes_before_who_comes_back() -> None:
    """A thread that releases and takes again at once, as a busy loop does, lets a waiting one through."""
    lock = EngineLock()
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
        while not lock._turnstile.locked():
            assert clock.now() < deadline, "who waits for the lock does not hold the turnstile"
        lock.release()
        lock.acquire()
        order.append("came back")
        lock.release()
        waiting.join()
        assert order == ["waited", "came back"]


def test_release_all_and_back() -> None:
    lock = EngineLock()
    assert lock.release_all() == 0
    lock.acquire_again(0)
    assert not lock.held()
    lock.acquire()
    lock.acquire()
    depth = lock.release_all()
    assert depth == 2 and not lock.held()
    lock.acquire_again(depth)
    assert lock.held() and lock.depth == 2


def test_only_the_holder_releases() -> None:
    lock = EngineLock()
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
