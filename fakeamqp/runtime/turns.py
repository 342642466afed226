"""A turn of a broker: process input, run due timers and long operations, write the output once.

What waits for input and wakes the broker up is in the subclasses: a thread of its own with a selector
(`runtime.thread`), or the event loop of the test (`runtime.event_loop`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fakeamqp.model.operations import Operations
    from fakeamqp.model.timers import Timers, TimeSource
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.connection_driver import ConnectionDriver, Wrap
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.runtime.errors import Failures

_log = logging.getLogger("fakeamqp.runtime")

_LONGEST_SLEEP = 86_400.0
# The tolerance, in seconds, for a sleep whose length is an estimate.
_TOO_EARLY = 0.001
# The maximum number of rounds of output in a flush of everything.
MOST_ROUNDS = 64
_TURN_SECONDS = 0.01
# How long operations go on in a turn, and how long the first slice of one may last, in real seconds.
_SLICE_SECONDS = 0.005
# How long the expensive input of all connections goes on in a turn, in real seconds.
_COSTLY_SECONDS = 0.02
# A turn that took longer, in real seconds, does not count as time in which peers could have done something.
_LONG_TURN = 0.05


class SelectorSource:
    """An object with a descriptor in the selector. Its methods are called with the engine's lock held."""

    __slots__ = ()

    @property
    def name(self) -> str:
        raise NotImplementedError

    def ready(self, mask: int) -> None:
        """Readable and/or writable, as a mask of `selectors` events."""
        raise NotImplementedError

    def failed(self) -> None:
        """`ready` raised an exception: close this source only, if it is to be closed."""


class LateOutcomes(Protocol):
    """The late outcomes of a broker with races."""

    @property
    def pending(self) -> bool:
        """Whether any outcome is still late."""
        ...

    def settle(self) -> None:
        """Carry out all late outcomes now."""
        ...


class Waiter:
    """Waits for a predicate, which is evaluated at the end of each turn.

    `release` is called once, when the predicate is true or has raised, or when the broker stops.
    """

    __slots__ = ("error", "expired", "holds", "predicate", "release")

    def __init__(self, predicate: Callable[[], object], release: Callable[[], object]) -> None:
        self.predicate: Callable[[], object] = predicate
        self.release: Callable[[], object] = release
        self.holds: bool = False
        self.error: BaseException | None = None
        #: Whether the next evaluation is the last one.
        self.expired: bool = False

    def check(self) -> bool:
        """Evaluate the predicate; True if nothing is left to wait for."""
        try:
            self.holds = bool(self.predicate())
        except BaseException as error:
            self.error = error
        if self.holds or self.error is not None or self.expired:
            self.release()
            return True
        return False

    @property
    def outcome(self) -> bool:
        """Whether the predicate is true; an exception that it raised is raised here."""
        if self.error is not None:
            raise self.error
        return self.holds


class Turns:
    """The connections of a broker, its timers and operations, and what a turn does with them."""

    log = _log

    def __init__(self, engine: Engine) -> None:
        self.clock: TimeSource = engine.clock
        self.timers: Timers = engine.timers
        self.transport_clock: TimeSource = engine.transport_clock
        self.transport_timers: Timers = engine.transport_timers
        self.failures: Failures = engine.failures
        self.operations: Operations = engine.operations
        self.stepped: SteppedClock | None = engine.stepped
        self.before_flush: Callable[[], object] | None = engine.before_flush
        self.late: LateOutcomes | None = engine.late
        self.drivers: dict[ConnectionDriver, None] = {}
        #: Wraps every connection, unless None.
        self.wrap: Wrap | None = None
        self.dirty: list[ConnectionDriver] = []
        #: Drivers with expensive input that waits, in the order in which they are served.
        self.costly: dict[ConnectionDriver, None] = {}
        self.waiters: list[Waiter] = []
        self.turns = 0
        self.stopping = False
        #: How long one connection may process input in a turn while others wait, in real seconds.
        self.turn_seconds: float = _TURN_SECONDS
        #: How many wait for the end of all operations, which are not cut into slices meanwhile.
        self.hurried = 0
        self._slice_ends: float | None = None
        self._due = (inf, inf)
        self._awake_at = inf

    # -- the interface of subclasses

    def watch(self, source: SelectorSource, fileno: int, before: int, after: int) -> None:
        """Change the events that `source` is watched for from mask `before` to mask `after`; 0 is none."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Whether there is input that was not read."""
        raise NotImplementedError

    def wake(self) -> None:
        raise NotImplementedError

    def _news(self) -> list[tuple[SelectorSource, int]]:
        """The sources with input that has arrived, and which events, for `take_input`."""
        raise NotImplementedError

    def input_came(self, driver: ConnectionDriver, octets: int) -> None:
        """So many bytes of a client were read."""

    # -- expensive input

    def serve_costly(self) -> None:
        """Let drivers process expensive input, one after the other, until their share of the turn is over."""
        end = self.transport_clock.now() + min(_COSTLY_SECONDS, self.turn_seconds)
        for driver in list(self.costly):
            self.costly.pop(driver, None)
            try:
                driver.go_on()
            except BaseException as error:  # A function of the test may raise SystemExit.
                self.give_up_on(driver, "input", error)
            if self.turn_seconds < inf and self.transport_clock.now() >= end:
                return

    def count_busy(self, since: float) -> None:
        """Note that a turn has ended, which began at `since` on the clock of the transports.

        It counts if it was long, or if it has left something to do: then peers have waited for their share.
        """
        took = self.transport_clock.now() - since
        if took > _LONG_TURN or self.costly or self.operations.pending:
            self.operations.busy_seconds += took

    # -- long operations

    def _begin_slice(self) -> None:
        self._slice_ends = None  # It begins when it is first asked for: most turns have no operation.
        self.operations.pauses = None if self.hurried else self._slice_over

    def _slice_over(self) -> bool:
        if self._slice_ends is None:
            self._slice_ends = self.slice_end()
        return self.transport_clock.now() >= self._slice_ends

    def slice_end(self) -> float:
        """When a slice ends that begins now, on the clock of the transports."""
        return self.transport_clock.now() + _SLICE_SECONDS

    def _continue(self) -> None:
        self._begin_slice()
        try:
            self.operations.step()
        except Exception as error:
            self.failures.record("an operation", error)

    def finish_operations(self) -> None:
        operations = self.operations
        while operations.pending:
            try:
                operations.finish()
            except Exception as error:  # this operation is removed
                self.failures.record("an operation", error)

    def _run_due(self, timers: Timers, pauses: Callable[[], bool] | None = None, until: float = inf) -> None:
        while True:
            try:
                timers.run_due(pauses, until)
                return
            except Exception as error:  # this timer is removed; the others are still due
                self.failures.record("timer", error)

    def _follow(self, clock: SteppedClock, news: bool, active: bool) -> None:
        clock.follow(noticed=news)
        if active:
            clock.note_activity()
        elif (instant := clock.jump()) is not None:
            if self.quiet():
                clock.step_to(instant)
                clock.moved()
                clock.note_activity()
            else:
                clock.not_idle()

    def settle_late(self) -> None:
        """Carry out all late outcomes, because a caller enters the engine."""
        late = self.late
        while late is not None and late.pending:
            try:
                late.settle()
            except Exception as error:
                self.failures.record("a late outcome", error)

    def flush_all(self) -> None:
        """Flush until no more output can be written for now."""
        for _ in range(MOST_ROUNDS):
            if not self.dirty:
                return
            self.flush()

    def quiet(self) -> bool:
        """Whether the broker is idle: all input read, all output written, no timer due."""
        self.flush()
        if (
            self.dirty
            or self.costly
            or self.operations.pending
            or (self.late is not None and self.late.pending)
            or any(driver.rest or driver.transport.backlog for driver in self.drivers)
        ):
            return False
        due = self.timers.next_due()
        return not (due is not None and due <= self.clock.now()) and not self.readable()

    def _sleep(self) -> float | None:
        """How long nothing has to be done, in real seconds; noted for `oversleeps`."""
        due = self.timers.next_due()
        transport_due = None if self.transport_timers is self.timers else self.transport_timers.next_due()
        self._due = (inf if due is None else due, inf if transport_due is None else transport_due)
        if self.dirty or self.costly or self.operations.pending:
            return 0.0
        if self.stepped is not None:
            timeout = self.stepped.sleep()
            self._awake_at = inf if timeout is None else self.transport_clock.now() + timeout
        else:
            timeout = None if due is None else max(0.0, due - self.clock.now())
        if transport_due is not None:
            transport_timeout = max(0.0, transport_due - self.transport_clock.now())
            timeout = transport_timeout if timeout is None else min(timeout, transport_timeout)
        # A message TTL can be ten years; selectors have a maximum timeout.
        return None if timeout is None else min(timeout, _LONGEST_SLEEP)

    def oversleeps(self) -> bool:
        """Whether the sleeping loop would miss a timer that was set after it fell asleep."""
        due = self.timers.next_due()
        if self.stepped is not None:
            timeout = self.stepped.sleep()
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

    def take_input(self) -> None:
        """Process all input that has arrived, however long it takes, and write the output."""
        before, self.turn_seconds = self.turn_seconds, inf
        try:
            self.serve_costly()
            self.flush()  # Processes input that was left for the next turn.
            for _ in range(MOST_ROUNDS):
                news = self._news()
                if not news and not self.dirty:
                    break
                for source, mask in news:
                    try:
                        source.ready(mask)
                    except Exception as error:
                        self.give_up_on(source, "input", error)
                self.flush()
            self._run_due(self.timers)
            self.flush_all()
        finally:
            self.turn_seconds = before

    def check_waiters(self) -> None:
        self.waiters = [waiter for waiter in self.waiters if not waiter.check()]

    # -- bugs

    def give_up_on(self, source: SelectorSource, activity: str, error: BaseException) -> None:
        """Record an exception of `source`, and close this source only."""
        self.failures.record(f"{activity} of {source.name}", error)
        try:
            source.failed()
        except Exception as second:
            self.failures.record(f"cleaning up {source.name}", second)

    # -- closing

    def close(self) -> None:
        """Carry out all operations, close every driver, and release all waiters."""
        self.finish_operations()
        self.disconnect_all()
        self.dirty = []
        self.check_waiters()
        for waiter in self.waiters:
            waiter.release()

    def disconnect_all(self) -> None:
        """Close every driver without losing output that was written."""
        for driver in list(self.drivers):
            try:
                driver.close_gently()
            except Exception as error:
                self.failures.record(f"closing {driver.name}", error)
