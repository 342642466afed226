"""The loop: wait until something can move, move it, flush once, wait again."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fakeamqp.runtime.clock import EngineClock, TimerQueue
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.link import Link, Wrap
    from fakeamqp.runtime.lock import EngineLock

__all__ = ["Failure", "Failures", "Loop", "Source", "Waiter"]

_log = logging.getLogger("fakeamqp.runtime")

_LONGEST_SLEEP = 86_400.0
# By so many seconds the loop may sleep longer than it ought to, where the length of its sleep is a guess.
_TOO_EARLY = 0.001
# When a test moves time: how often to look whether still more input has come, or output become ready.
_MOST_ROUNDS = 64


class Failures(list["Failure"]):
    """Bugs of the broker that surfaced in the engine, in order. Empty, whatever peers do."""

    def record(self, activity: str, error: BaseException) -> None:
        """Keep and log a bug."""
        self.append(Failure(activity, error))
        _log.error("bug in fakeamqp: %s: %r", activity, error, exc_info=error)


@dataclass(frozen=True)
class Failure:
    """A bug of the broker that surfaced in the engine. Peers never cause one, whatever they send."""

    activity: str
    error: BaseException

    def __str__(self) -> str:
        return f"{self.activity}: {self.error!r}"


class Source(Protocol):
    """What the selector can report ready. Called with the engine's lock held."""

    @property
    def name(self) -> str:
        """For logs."""
        ...

    def ready(self, mask: int) -> None:
        """Readable and/or writable, as a mask of `selectors` events."""
        ...

    def failed(self) -> None:
        """An exception escaped from `ready`: give up, harm nobody else."""
        ...


class Waiter:
    """A thread that waits until something holds, judged by the loop at the end of each turn."""

    __slots__ = ("error", "event", "holds", "predicate")

    def __init__(self, predicate: Callable[[], object]) -> None:
        self.predicate = predicate
        self.event = threading.Event()
        self.holds = False
        self.error: BaseException | None = None

    def judge(self) -> bool:
        """Ask the predicate; True when the waiting is over."""
        try:
            self.holds = bool(self.predicate())
        except BaseException as error:
            self.error = error
        if self.holds or self.error is not None:
            self.event.set()
            return True
        return False


class _Waker:
    """A pair of sockets: a byte written to one end from any thread ends the loop's sleep."""

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
        # An error means full, so that the loop is about to wake up, or closed, so that nobody sleeps.
        with suppress(OSError):
            self._write.send(b"\0")

    def ready(self, _mask: int) -> None:
        # Cleared only here, under the lock and before the turn looks at anything else: whoever skipped
        # a wake-up because of the flag had made its change before.
        self._read.recv(4096)
        self._awake = False

    def failed(self) -> None:
        pass

    def close(self) -> None:
        self._read.close()
        self._write.close()


class Loop:
    """One selector and what it watches, the links to flush, and the sleep until the next timer.

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
        stepped: SteppedClock | None = None,
    ) -> None:
        self.clock = clock
        #: The same clock where its time moves in steps, which the loop and the engine take.
        self.stepped = stepped
        self.timers = timers
        self.transport_clock = transport_clock
        self.transport_timers = transport_timers
        self.failures = failures
        self.links: dict[Link, None] = {}
        #: Puts something around every connection, where somebody wants that.
        self.wrap: Wrap | None = None
        self.dirty: list[Link] = []
        self.waiters: list[Waiter] = []
        self.turns = 0
        self.stopping = False
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
        """Turn until `stopping` is set. The body of the loop thread."""
        self._thread_id = threading.get_ident()
        timeout: float | None = 0.0
        while not self.stopping:
            timeout = self._turn(lock, timeout)

    def _turn(self, lock: EngineLock, timeout: float | None) -> float | None:
        takes = self._takes
        try:
            events = self._selector.select(timeout)
        except OSError:
            # Where select() takes sets of sockets, one that another thread closed meanwhile is an error.
            if not self._unwatched_elsewhere:
                raise
            events = []
        lock.acquire()
        try:
            self.turns += 1
            self._unwatched_elsewhere = False
            if self.stepped is not None:
                # First, so that input is dealt with in its time. What another thread took is no news.
                news = takes == self._takes and any(key.data is not self._waker for key, _mask in events)
                self._follow(self.stepped, news, bool(events))
            for key, mask in events:
                source: Source = key.data
                try:
                    source.ready(mask)
                except Exception as error:
                    self.give_up_on(source, "input", error)
            self._run_due(self.timers)
            if self.transport_timers is not self.timers:
                self._run_due(self.transport_timers)
            self.flush()
            if self.waiters:
                self.judge()
            return self._sleep()
        finally:
            lock.release()

    def _run_due(self, timers: TimerQueue) -> None:
        while True:
            try:
                timers.run_due()
                return
            except Exception as error:  # the one timer is gone, the others are still due
                self.record("timer", error)

    def _follow(self, clock: SteppedClock, news: bool, stirred: bool) -> None:
        clock.follow(self.timers, self.record, noticed=news)
        if stirred:
            clock.stirred()
        elif (instant := clock.jump(self.timers)) is not None:
            if self.quiet():
                clock.step_to(instant, self.timers, self.record)
                clock.moved()
                clock.stirred()
            else:
                clock.not_idle()

    def take_input(self) -> None:
        """Deal with everything that has arrived, and send what comes of it.

        The loop may have been told of the same input and find nothing any more; it takes no harm.
        """
        self._takes += 1
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
        """Flush until nothing more can be sent for now."""
        for _ in range(_MOST_ROUNDS):
            if not self.dirty:
                return
            self.flush()

    def quiet(self) -> bool:
        """Whether there is nothing to do right now: all input read, all output sent, no timer due."""
        self.flush()
        if self.dirty or any(link.rest or link.transport.backlog for link in self.links):
            return False
        due = self.timers.next_due()
        return not (due is not None and due <= self.clock.now()) and not self.readable()

    def _sleep(self) -> float | None:
        due = self.timers.next_due()
        transport_due = None if self.transport_timers is self.timers else self.transport_timers.next_due()
        self._due = (inf if due is None else due, inf if transport_due is None else transport_due)
        if self.dirty:
            return 0.0
        if self.stepped is not None:
            timeout = self._own_sleep(self.stepped)
        else:
            timeout = None if due is None else self.clock.seconds_until(due)
        if transport_due is not None:
            transport_timeout = self.transport_clock.seconds_until(transport_due)
            if timeout is None or (transport_timeout is not None and transport_timeout < timeout):
                timeout = transport_timeout
        # A message may live ten years; no selector sleeps that long.
        return None if timeout is None else min(timeout, _LONGEST_SLEEP)

    def _own_sleep(self, clock: SteppedClock) -> float | None:
        """How long a clock that moves in steps lets the loop sleep; remembered for `oversleeps`."""
        timeout = clock.sleep(self.timers)
        self._awake_at = inf if timeout is None else self.transport_clock.now() + timeout
        return timeout

    def oversleeps(self) -> bool:
        """Whether the loop, asleep, would miss a timer that was set after it fell asleep."""
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
        """Write out every dirty link once. Links that get dirty meanwhile wait for the next round."""
        dirty = self.dirty
        if not dirty:
            return
        self.dirty = []
        for link in dirty:
            link.dirty = False
            try:
                link.write()
                link.settle()
            except Exception as error:
                self.give_up_on(link, "output", error)

    def judge(self) -> None:
        """Let go of the waiters for whom the waiting is over."""
        self.waiters = [waiter for waiter in self.waiters if not waiter.judge()]

    # -- what the selector watches

    def watch(self, source: Source, fileno: int, before: int, after: int) -> None:
        """Change the events that `source` is told of from mask `before` to mask `after`; 0 is none."""
        if not after:
            self._selector.unregister(fileno)
        elif not before:
            self._selector.register(fileno, after, source)
        else:
            self._selector.modify(fileno, after, source)
        if threading.get_ident() != self._thread_id:
            # A select() that is under way may not notice the change by itself.
            self._unwatched_elsewhere = True
            self.wake()

    def readable(self) -> bool:
        """Whether any watched source has something for us right now."""
        return any(key.data is not self._waker for key, _mask in self._selector.select(0))

    def wake(self) -> None:
        """End the loop's sleep. Any thread, lock or no lock."""
        self._waker.wake()

    # -- bugs

    def give_up_on(self, source: Source, activity: str, error: BaseException) -> None:
        """A bug surfaced in `source`: record it and drop this source only."""
        self.record(f"{activity} of {source.name}", error)
        try:
            source.failed()
        except Exception as second:
            self.record(f"cleaning up {source.name}", second)

    def record(self, activity: str, error: BaseException) -> None:
        """Keep and log a bug."""
        self.failures.record(activity, error)

    # -- the end

    def disconnect_all(self) -> None:
        """Close every link, each as gently as can be done at once."""
        for link in list(self.links):
            try:
                link.close_gently()
            except Exception as error:
                self.record(f"closing {link.name}", error)

    def close(self) -> None:
        """Close everything this loop holds."""
        self.disconnect_all()
        self.dirty = []
        self.judge()
        for waiter in self.waiters:
            waiter.event.set()
        self._selector.close()
        self._waker.close()

    def abandon(self) -> None:
        """Close our copies of all descriptors and do nothing else: for a forked child."""
        # First the selector, whole: to unregister one by one would change the parent's as well.
        with suppress(OSError):  # a kqueue does not even exist in the child
            self._selector.close()
        self._waker.close()
        for link in list(self.links):
            link.abandon()
        self.links.clear()
        self.dirty = []
        self.waiters = []
