"""Ctrl-C and pytest-timeout raise anywhere in the test's thread: the broker goes on, and can be stopped.

A signal handler raises between two bytecodes. The tests raise at one such place after the other.
"""

from __future__ import annotations

import contextlib
import gc
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pika
import pika.exceptions
import pytest
from freezegun import freeze_time

import fakeamqp
from compat_tests.benchmarks.load import Address
from compat_tests.benchmarks.stalls import PROBED, Talker
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.runtime import turns
from fakeamqp.runtime.clock import wall
from fakeamqp.runtime.intercept import patches
from fakeamqp.runtime.thread import engine as engine_module, lock as lock_module

pytestmark = pytest.mark.threads_only

PROTOCOL_HEADER = b"AMQP\0\0\x09\x01"
PACKAGE = Path(fakeamqp.__file__).parent
INTERRUPTED = {str(path) for path in [PACKAGE / "broker.py", *(PACKAGE / "runtime").rglob("*.py")]}
"""Not `threading`: the start of a thread does not survive it."""
MOST = 5_000


class Interrupt(BaseException):
    """As KeyboardInterrupt, which would end pytest where it gets out."""


def interrupted_at(place: int, function: Callable[[], object], *also: str) -> bool:
    """Call a function and raise where a signal handler may for the n-th time; False if it ends before.

    CPython runs signal handlers when a function begins and when one written in C has returned, from Python
    3.14 on also when this is the `__enter__` of a lock.

    Args:
        place: n, from 0.
        function: without arguments.
        also: files in which it raises too, beside those of `INTERRUPTED`.
    """
    left = place
    files = INTERRUPTED.union(also)

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename in files:
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise Interrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    except Interrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


def places(step: int = 1) -> Iterator[int]:
    yield from range(0, MOST, step)
    raise AssertionError(f"the function can be interrupted at more than {MOST} places")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for abandoned locks at once."""
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.001)
    monkeypatch.setattr(engine_module, "_PATIENCE", 0.001)


def answers(broker: Broker) -> bool:
    """Whether the loop goes on."""
    with socket.create_connection((broker.host, broker.port), timeout=30) as client:
        client.sendall(PROTOCOL_HEADER)
        return client.recv(1) == b"\1"


def all_ended() -> bool:
    """Whether the loops' threads end."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("fakeamqp")]
    for thread in threads:
        thread.join(30)
    return not any(thread.is_alive() for thread in threads)


def test_broker_works_after_an_interrupted_call() -> None:
    with Broker() as broker:
        for place in places():
            if not interrupted_at(place, lambda: broker.admin.virtual_hosts):
                break
            assert answers(broker), place
            assert broker.admin.virtual_hosts == ("/",), place
        assert place > 10


def test_broker_works_after_an_interrupted_wait() -> None:
    over: list[None] = []
    with Broker() as broker:

        def wait() -> None:
            assert not broker._engine.wait_until(lambda: over, timeout=0.001)

        wait()  # An import that is interrupted may keep the interpreter's lock: wait once before.
        for place in places():
            if not interrupted_at(place, wait, threading.__file__):
                break
            over.append(None)  # The interrupt may have left the predicate.
            assert answers(broker), place
            over.clear()
        assert place > 20


def test_an_address_can_be_intercepted_after_an_interrupted_interception() -> None:
    connect = socket.socket.connect
    with Broker() as broker:

        def intercept() -> None:
            with broker.intercept("rabbit.test:5672"):
                pass

        for place in places():
            if not interrupted_at(place, intercept):
                break
            while patches._active:  # What was interrupted at its beginning or its end.
                patches.remove(patches._active[0])
            with broker.intercept("rabbit.test:5672"):
                socket.create_connection(("rabbit.test", 5672)).close()
            assert socket.socket.connect is connect, place
        assert place > 50


def test_wall_clock_listener_is_called_after_an_interrupted_hook() -> None:
    told: list[None] = []

    def follow() -> None:
        told.append(None)

    def hook() -> None:
        wall.add_listener(follow)
        wall.remove_listener(follow)

    for place in places(step=3):
        reached = interrupted_at(place, hook)
        wall.add_listener(follow)
        told.clear()
        with freeze_time("2026-01-01"):
            assert told, place
        wall.remove_listener(follow)
        wall.remove_listener(follow)
        if not reached:
            break
    assert place > 10


def test_the_broker_stops_after_an_interrupted_call() -> None:
    for place in places():
        broker = Broker().start()
        reached = interrupted_at(place, lambda broker=broker: broker.admin.virtual_hosts)
        broker.stop()
        assert all_ended(), place
        if not reached:
            break


# A socket that was just made is left to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_interrupted_start_can_be_repeated() -> None:
    for place in places():
        broker = Broker()
        reached = interrupted_at(place, broker.start)
        broker.stop()
        assert all_ended(), place
        with broker:
            assert answers(broker), place
        if not reached:
            break


def test_an_interrupted_stop_can_be_repeated() -> None:
    for place in places():
        broker = Broker().start()
        reached = interrupted_at(place, broker.stop)
        broker.stop()
        assert all_ended(), place
        if not reached:
            break


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("management", [False, True], ids=["plain", "with-the-http-api"])
@pytest.mark.parametrize("call", [Broker.start, Broker.stop], ids=["start", "stop"])
def test_a_broker_starts_after_an_interrupted_start_or_stop(
    call: Callable[[Broker], None], management: bool
) -> None:
    for place in places(20 if management else 1):
        broker = Broker(management=management)
        if call is Broker.stop:
            broker.start()
        reached = interrupted_at(place, partial(call, broker))
        with broker:
            for _ in range(3):
                assert answers(broker), place
            if management:
                socket.create_connection((broker.host, broker.admin.management_port)).close()
        assert all_ended(), place
        if not reached:
            break


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("call", [Broker.restart, Broker.reset], ids=["restart", "reset"])
def test_broker_works_after_a_reset_following_an_interrupted_restart_or_reset(
    call: Callable[[Broker], None],
) -> None:
    with Broker() as broker, ThreadPoolExecutor(1) as other:
        for place in places():
            reached = interrupted_at(place, partial(call, broker), contextlib.__file__)
            other.submit(broker.reset).result(30)
            assert broker.admin.virtual_hosts == ("/",), place
            assert answers(broker), place
            other.submit(broker.restart).result(30)
            assert answers(broker), place
            if not reached:
                break
        assert broker.admin.failures == ()
    assert all_ended()
    gc.collect()  # Sockets that were just made.


def test_broker_works_after_an_interrupted_long_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_SLICE_SECONDS", 0.0)
    with Broker(clock="virtual") as broker:
        asking = Talker(Address("broker", broker.host, broker.port))
        asking.declare(PROBED)
        state = broker._state

        def advance() -> None:
            # Each timer is followed by a turn of the loop, for the client that asks in it.
            broker.clock.advance(3)

        for place in places():
            for due in (1, 2):
                ask = partial(asking.say, m.QueueDeclare(queue=PROBED, passive=True))
                state.timers.call_at(state.clock.now() + due, ask, "asks")
            if not interrupted_at(place, advance):
                break
            assert broker.admin.virtual_hosts == ("/",), place
            assert asking.count(PROBED) == 0, place
            broker.clock.advance(5)
            assert answers(broker), place
            broker.queue(PROBED).wait_for(ready=0, timeout=20)
            asking.close()
            asking = Talker(Address("broker", broker.host, broker.port))
        asking.close()
        assert place > 50
        assert broker.admin.failures == ()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_exit_exception_in_a_fault_function_does_not_end_the_broker(error: type[BaseException]) -> None:
    def raises(_: object) -> None:
        raise error

    with Broker() as broker:
        broker.faults.on("connection.start-ok").call(raises)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(pika.URLParameters(broker.url))
        assert isinstance(broker.admin.failures[0], error)
        broker.faults.clear()
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()
