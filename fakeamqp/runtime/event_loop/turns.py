"""The turns of a broker in an event loop: one for each piece of input, and one when a timer is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from selectors import EVENT_READ
from typing import TYPE_CHECKING

from fakeamqp.runtime.event_loop.stream import StreamTransport
from fakeamqp.runtime.turns import SelectorSource, Turns

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Handle, TimerHandle
    from contextvars import Context

    from fakeamqp.runtime.connection_driver import ConnectionDriver
    from fakeamqp.runtime.engine import Engine

# In an iteration, the loops of asyncio run what was called soon, then what the selector reports, then timers
# that are due, the oldest first. So a timer that is due for this many seconds comes where the selector does.
_OVERDUE = 86_400.0


class Arrivals:
    """Calls functions in the next iteration of a loop, after all that is called soon in this one.

    That is when a socket becomes readable at the earliest. Code that calls something soon, or wakes a task,
    after it has sent bytes relies on it: an answer cannot come before that.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._coming: deque[tuple[Callable[[], object], Context]] = deque()

    def call(self, callback: Callable[[], object], *, context: Context) -> None:
        if not self._coming:
            self._poll()
        self._coming.append((callback, context))

    def _poll(self) -> None:
        self._loop.call_at(self._loop.time() - _OVERDUE, self._arrive)

    def _arrive(self) -> None:
        coming, self._coming = self._coming, deque()
        try:
            while coming:
                callback, context = coming.popleft()
                context.run(callback)
        finally:
            if coming:  # KeyboardInterrupt, for example, which ends the loop. It may be run again.
                self._coming = coming + self._coming
                self._poll()


class LoopTurns(Turns):
    """Takes turns in callbacks of an event loop, which are never nested.

    All calls come from the thread of the loop. `inside` says whether the broker is being accessed: input that
    comes meanwhile has to wait.
    """

    def __init__(self, loop: AbstractEventLoop, inside: Callable[[], bool], engine: Engine) -> None:
        super().__init__(engine)
        self._loop = loop
        self._inside = inside
        self._streams: dict[SelectorSource, StreamTransport] = {}
        """The stream of each driver."""
        self._readable: dict[ConnectionDriver, int] = {}
        """The drivers with news, and which."""
        self._soon: Handle | None = None
        self._alarm: TimerHandle | None = None
        self.in_turn: bool = False

    # -- streams

    def adopt(self, stream: StreamTransport, driver: ConnectionDriver) -> None:
        self._streams[driver] = stream
        stream.driver = driver

    def ready(self, stream: StreamTransport, mask: int) -> None:
        """A stream has input, room for output, or has been lost."""
        driver = stream.driver
        if driver is None:
            return
        if stream.lost.is_set():
            self._streams.pop(driver, None)
            stream.driver = None
        self._readable[driver] = self._readable.get(driver, 0) | mask
        if self._inside() or self.in_turn:
            self.wake()
        else:
            self.take()

    def watch(self, source: SelectorSource, fileno: int, before: int, after: int) -> None:
        """An event loop tells of room for output without being asked."""
        if source in self._streams:
            self._streams[source].read(bool(after & EVENT_READ))

    def readable(self) -> bool:
        """Whether there is input that was not read. Bytes under way are not seen."""
        return bool(self._readable)

    # -- turns

    def wake(self) -> None:
        if self._soon is None and not self.stopping:
            self._soon = self._loop.call_soon(self.take)

    def take(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self.stopping:
            return
        self.in_turn = True
        try:
            self._take()
        finally:
            self.in_turn = False
            self.operations.pauses = None
        self.rest()

    def _take(self) -> None:
        self.turns += 1
        began = self.transport_clock.now()
        news, self._readable = self._readable, {}
        stepped, operations = self.stepped, self.operations
        if stepped is not None:
            self._follow(stepped, bool(news), bool(news))
        self._begin_slice()
        for driver, mask in news.items():
            try:
                driver.ready(mask)
            except BaseException as error:  # A function of the test may raise SystemExit.
                self.give_up_on(driver, "input", error)
        self._run_due(self.timers, None if stepped is not None else self._slice_over)
        if self.transport_timers is not self.timers:
            self._run_due(self.transport_timers)
        if operations.pending:
            self._continue()
        if self.costly:
            self.serve_costly()
        self.flush()
        self.count_busy(began)
        # While an operation is under way, a predicate would see a part of it.
        if self.waiters and not operations.pending:
            self.check_waiters()

    def rest(self) -> None:
        """Have the next turn taken when it is due."""
        timeout = self._sleep()
        if timeout == 0.0 or self._readable:
            self.wake()
            return
        alarm = self._alarm
        if timeout is None:
            if alarm is not None:
                alarm.cancel()
                self._alarm = None
            return
        when = self._loop.time() + timeout
        if alarm is not None:
            if not alarm.cancelled() and alarm.when() <= when:
                return  # Too early is harmless: that turn sets the next one.
            alarm.cancel()
        self._alarm = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._inside():
            self.wake()
        else:
            self.take()

    def _news(self) -> list[tuple[SelectorSource, int]]:
        news, self._readable = self._readable, {}
        return list(news.items())

    def leave(self) -> None:
        """The broker has been accessed: write the output, and set the next turn."""
        self.flush()
        if self.waiters and not self.operations.pending:
            self.check_waiters()
        self.rest()

    def close(self) -> None:
        self.stopping = True
        super().close()
        for handle in (self._soon, self._alarm):
            if handle is not None:
                handle.cancel()
        self._soon = self._alarm = None
