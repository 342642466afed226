"""The event loop: wait for I/O or a timer, process it, write the output once, wait again."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from math import inf
from selectors import EVENT_READ, DefaultSelector
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fakeamqp.runtime.clock import EngineClock, TimerQueue
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.connection_driver import ConnectionDriver, Wrap
    from fakeamqp.runtime.failures import Failures
    from fakeamqp.runtime.lock import EngineLock
    from fakeamqp.runtime.slices import Handover

__all__ = ["Loop", "Operations", "Source", "Waiter"]

_log = logging.getLogger("fakeamqp.runtime")

_LONGEST_SLEEP = 86_400.0
# The tolerance, in seconds, for a sleep whose length is an estimate.
_TOO_EARLY = 0.001
# The maximum number of rounds of input and output before a test moves time.
_MOST_ROUNDS = 64
_TURN_SECONDS = 0.01
# How long operations go on in a turn, and how long the first slice of one may last, in real seconds.
_SLICE_SECONDS = 0.005


class Source(Protocol):
    """An object with a descriptor in the selector. Its methods are called with the engine's lock held."""

    @property
    def name(self) -> str:
        """For logs."""
        ...

    def ready(self, mask: int) -> None:
        """Readable and/or writable, as a mask of `selectors` events."""
        ...

    def failed(self) -> None:
        """`ready` raised an exception: close this source only."""
        ...


class Operations(Protocol):
    """The long operations of a broker, which turns of the loop carry out in slices."""

    pauses: Callable[[], bool] | None
    """Whether the slice is over; None if operations run to their end."""

    @property
    def pending(self) -> Mapping[Any, Sized]:
        """Those that have not ended yet, by the connection that asked for them."""
        ...

    def step(self) -> None:
        """Go on until the slice is over."""
        ...

    def finish(self) -> None:
        """Carry out all operations to their end."""
        ...


class NoOperations:
    """Of a broker whose operations are all short."""

    pauses: Callable[[], bool] | None = None
    pending: Mapping[Any, Sized] = MappingProxyType({})

    def step(self) -> None:
        """See `Operations`."""

    def finish(self) -> None:
        """See `Operations`."""


class Waiter:
    """A thread that waits for a predicate, which the loop evaluates at the end of each turn."""

    __slots__ = ("error", "event", "holds", "predicate")

    def __init__(self, predicate: Callable[[], object]) -> None:
        self.predicate = predicate
        self.event = threading.Event()
        self.holds = False
        self.error: BaseException | None = None

    def check(self) -> bool:
        """Evaluate the predicate; True if the thread can stop waiting."""
        try:
            self.holds = bool(self.predicate())
        except BaseException as error:
            self.error = error
        if self.holds or self.error is not None:
            self.event.set()
            return True
        return False


class _Waker:
    """A pair of sockets: a byte written to one of them, from any thread, wakes the loop."""

    name = "wake-up"

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._awake = False

    def fileno(self) -> int:
        return self._read.fileno()

    def wake(self) -> None:
        if self._awake:
            return
        self._awake = True
        # An error means that the socket is full, so the loop wakes up, or closed, so there is no loop.
        with suppress(OSError):
            self._write.send(b"\0")

    def ready(self, _mask: int) -> None:
        # The flag is cleared only here, under the lock and at the beginning of the turn: a thread that
        # skipped its wake-up because of the flag had made its change before.
        self._read.recv(4096)
        self._awake = False

    def failed(self) -> None:
        pass

    def close(self) -> None:
        self._read.close()
        self._write.close()


class Loop:
    """One selector with its sources, the drivers to flush, and the sleep until the next timer.

    Everything but `wake` needs the engine's lock.
    """

    log = _log

    def __init__(
        self,
        clock: EngineClock,
        timers: TimerQueue,
        transport_clock: EngineClock,
        transport_timers: TimerQueue,
        failures: Failures,
        operations: Operations,
        stepped: SteppedClock | None = None,
        before_flush: Callable[[], object] | None = None,
    ) -> None:
        self.operations = operations
        self.clock = clock
        #: Called before the output of a turn is written.
        self.before_flush = before_flush
        #: The same clock if it is a stepped one, which the loop and the engine move.
        self.stepped = stepped
        self.timers = timers
        self.transport_clock = transport_clock
        self.transport_timers = transport_timers
        self.failures = failures
        self.drivers: dict[ConnectionDriver, None] = {}
        #: Wraps every connection, unless None.
        self.wrap: Wrap | None = None
        self.dirty: list[ConnectionDriver] = []
        self.waiters: list[Waiter] = []
        self.turns = 0
        self.stopping = False
        #: How long one connection may process input in a turn while others wait, in real seconds.
        self.turn_seconds = _TURN_SECONDS
        #: How many threads wait for the end of all operations, which are not cut into slices meanwhile.
        self.hurried = 0
        #: The thread that lets the loop take a turn in the midst of a call.
        self.handover: Handover | None = None
        self._slice_ends: float | None = None
        self._thread_id: int | None = None
        self._unwatched_elsewhere = False
        self._due = (inf, inf)
        self._awake_at = inf
        self._takes = 0
        self._selector = DefaultSelector()
        self._waker = _Waker()
        self._selector.register(self._waker.fileno(), EVENT_READ, self._waker)

    # -- the turn

    def run(self, lock: EngineLock) -> None:
        """Run turns until `stopping` is set. The body of the loop thread."""
        self._thread_id = threading.get_ident()
        timeout: float | None = 0.0
        while not self.stopping:
            try:
                timeout = self._turn(lock, timeout)
            except Exception:
                raise
            except BaseException as error:  # KeyboardInterrupt or SystemExit, by a function of the test.
                self.record("a turn", error)
                timeout = 0.0

    def _turn(self, lock: EngineLock, timeout: float | None) -> float | None:
        takes = self._takes
        expected = self.handover
        try:
            events = self._selector.select(timeout)
        except OSError:
            # select() on sets of sockets raises if another thread has closed one meanwhile.
            if not self._unwatched_elsewhere:
                raise
            events = []
        lock.acquire()
        try:
            self.turns += 1
            self._unwatched_elsewhere = False
            if self.handover is not None and self.handover.abandoned:
                self.handover = None
            handover, stepped = self.handover, self.stepped
            if stepped is not None and handover is None:
                # First, so that input is processed at its time. Input that another thread took is no news.
                news = takes == self._takes and any(key.data is not self._waker for key, _mask in events)
                self._follow(stepped, news, bool(events))
            operations = self.operations
            self._begin_slice(operations)
            for key, mask in events:
                source: Source = key.data
                try:
                    source.ready(mask)
                except BaseException as error:  # A function of the test may raise SystemExit.
                    self.give_up_on(source, "input", error)
            if stepped is None:
                self._run_due(self.timers, self._slice_over)
            elif handover is None or not stepped.moving:  # Else the thread that moves time runs them.
                self._run_due(self.timers)
            if self.transport_timers is not self.timers:
                self._run_due(self.transport_timers)
            if operations.pending:
                self._continue(operations)
            self.flush()
            # While an operation or a call is under way, a predicate would see a part of it.
            if self.waiters and not operations.pending and handover is None:
                self.check_waiters()
            # The events of this turn may be older than the handover: the next turn has those it is about.
            return self._sleep() if self.handover is expected else 0.0
        finally:
            self.operations.pauses = None
            if expected is not None and self.handover is expected:
                expected.turned.set()
            lock.release()

    # -- long operations

    def _begin_slice(self, operations: Operations) -> None:
        self._slice_ends = None  # It begins when it is first asked for: most turns have no operation.
        operations.pauses = None if self.hurried else self._slice_over

    def _slice_over(self) -> bool:
        if self._slice_ends is None:
            self._slice_ends = self.slice_end()
        return self.transport_clock.now() >= self._slice_ends

    def slice_end(self) -> float:
        """When a slice ends that begins now, on the clock of the transports."""
        return self.transport_clock.now() + _SLICE_SECONDS

    def awaited(self) -> bool:
        """Whether a turn would do something that peers wait for, other than to send them output."""
        if self.operations.pending or self.readable() or [each for each in self.dirty if each.rest]:
            return True
        timers = self.transport_timers
        due = timers.next_due()
        return due is not None and due <= self.transport_clock.now()

    def _continue(self, operations: Operations) -> None:
        """Give operations a slice of their own."""
        self._begin_slice(operations)
        try:
            operations.step()
        except Exception as error:
            self.record("an operation", error)

    def finish_operations(self) -> None:
        """Carry out all operations to their end."""
        operations = self.operations
        while operations.pending:
            try:
                operations.finish()
            except Exception as error:  # this operation is removed
                self.record("an operation", error)

    def _run_due(self, timers: TimerQueue, pauses: Callable[[], bool] | None = None) -> None:
        while True:
            try:
                timers.run_due(pauses)
                return
            except Exception as error:  # this timer is removed; the others are still due
                self.record("timer", error)

    def _follow(self, clock: SteppedClock, news: bool, active: bool) -> None:
        clock.follow(self.timers, self.record, noticed=news)
        if active:
            clock.note_activity()
        elif (instant := clock.jump(self.timers)) is not None:
            if self.quiet():
                clock.step_to(instant, self.timers, self.record)
                clock.moved()
                clock.note_activity()
            else:
                clock.not_idle()

    def take_input(self) -> None:
        """Process all input that has arrived, and write the output.

        The selector may have reported the same input to the loop, which then finds none; that is harmless.
        """
        self._takes += 1
        self.turn_seconds = inf
        try:
            self._take_input()
        finally:
            self.turn_seconds = _TURN_SECONDS

    def _take_input(self) -> None:
        self.flush()  # Processes input that was left for the next turn.
        for _ in range(_MOST_ROUNDS):
            events = [
                (key.data, mask)
                for key, mask in self._selector.select(0)
                if mask & EVENT_READ and key.data is not self._waker
            ]
            if not events:
                break
            for source, mask in events:
                try:
                    source.ready(mask)
                except Exception as error:
                    self.give_up_on(source, "input", error)
            self.flush()
        self._run_due(self.timers)
        self.flush_all()

    def flush_all(self) -> None:
        """Flush until no more output can be written for now."""
        for _ in range(_MOST_ROUNDS):
            if not self.dirty:
                return
            self.flush()

    def quiet(self) -> bool:
        """Whether the broker is idle: all input read, all output written, no timer due."""
        self.flush()
        if (
            self.dirty
            or self.operations.pending
            or any(driver.rest or driver.transport.backlog for driver in self.drivers)
        ):
            return False
        due = self.timers.next_due()
        return not (due is not None and due <= self.clock.now()) and not self.readable()

    def _sleep(self) -> float | None:
        due = self.timers.next_due()
        transport_due = None if self.transport_timers is self.timers else self.transport_timers.next_due()
        self._due = (inf if due is None else due, inf if transport_due is None else transport_due)
        if self.dirty or self.operations.pending:
            return 0.0
        if self.stepped is not None:
            timeout = self._own_sleep(self.stepped)
        else:
            timeout = None if due is None else self.clock.seconds_until(due)
        if transport_due is not None:
            transport_timeout = self.transport_clock.seconds_until(transport_due)
            if timeout is None or (transport_timeout is not None and transport_timeout < timeout):
                timeout = transport_timeout
        # A message TTL can be ten years; selectors have a maximum timeout.
        return None if timeout is None else min(timeout, _LONGEST_SLEEP)

    def _own_sleep(self, clock: SteppedClock) -> float | None:
        """How long the loop may sleep with a stepped clock; stored for `oversleeps`."""
        timeout = clock.sleep(self.timers)
        self._awake_at = inf if timeout is None else self.transport_clock.now() + timeout
        return timeout

    def oversleeps(self) -> bool:
        """Whether the sleeping loop would miss a timer that was set after it fell asleep."""
        due = self.timers.next_due()
        if self.stepped is not None:
            timeout = self.stepped.sleep(self.timers)
            if timeout is not None and self.transport_clock.now() + timeout < self._awake_at - _TOO_EARLY:
                return True
        elif due is not None and due < self._due[0]:
            return True
        if self.transport_timers is self.timers:
            return False
        due = self.transport_timers.next_due()
        return due is not None and due < self._due[1]

    def flush(self) -> None:
        """Write the output of every dirty driver once. Drivers that become dirty meanwhile wait for the next
        round.
        """
        if self.before_flush is not None:
            self.before_flush()
        dirty = self.dirty
        if not dirty:
            return
        self.dirty = []
        for driver in dirty:
            driver.dirty = False
            try:
                driver.write()
                driver.settle()
            except Exception as error:
                self.give_up_on(driver, "output", error)

    def check_waiters(self) -> None:
        """Release the waiters whose predicates are true."""
        self.waiters = [waiter for waiter in self.waiters if not waiter.check()]

    # -- the selector

    def watch(self, source: Source, fileno: int, before: int, after: int) -> None:
        """Change the events that `source` is watched for from mask `before` to mask `after`; 0 is none."""
        if not after:
            self._selector.unregister(fileno)
        elif not before:
            self._selector.register(fileno, after, source)
        else:
            self._selector.modify(fileno, after, source)
        if threading.get_ident() != self._thread_id:
            # A running select() may not notice the change.
            self._unwatched_elsewhere = True
            self.wake()

    def readable(self) -> bool:
        """Whether any watched source is ready now."""
        ready = self._selector.select(0)
        return len(ready) > 1 or bool(ready and ready[0][0].data is not self._waker)

    def wake(self) -> None:
        """Wake the loop. Any thread may call it, with or without the lock."""
        self._waker.wake()

    # -- bugs

    def give_up_on(self, source: Source, activity: str, error: BaseException) -> None:
        """Record an exception of `source`, and close this source only."""
        self.record(f"{activity} of {source.name}", error)
        try:
            source.failed()
        except Exception as second:
            self.record(f"cleaning up {source.name}", second)

    def record(self, activity: str, error: BaseException) -> None:
        """Keep and log a bug."""
        self.failures.record(activity, error)

    # -- closing

    def disconnect_all(self) -> None:
        """Close every driver without losing output that was written."""
        for driver in list(self.drivers):
            try:
                driver.close_gently()
            except Exception as error:
                self.record(f"closing {driver.name}", error)

    def close(self) -> None:
        """Close everything this loop holds."""
        self.finish_operations()
        self.disconnect_all()
        self.dirty = []
        self.check_waiters()
        for waiter in self.waiters:
            waiter.event.set()
        if self.handover is not None:
            self.handover.turned.set()
        self._selector.close()
        self._waker.close()

    def abandon(self) -> None:
        """Close all descriptors and do nothing else: for a forked child."""
        # The selector first: unregistering the descriptors one by one would change the parent's selector,
        # too.
        with suppress(OSError):  # a kqueue does not exist in the child
            self._selector.close()
        self._waker.close()
        for driver in list(self.drivers):
            driver.abandon()
        self.drivers.clear()
        self.dirty = []
        self.waiters = []
