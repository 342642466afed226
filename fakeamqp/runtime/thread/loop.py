"""The loop of the thread: wait for I/O or a timer, process it, write the output once, wait again."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING

from fakeamqp.runtime.addresses import check_room
from fakeamqp.runtime.errors import SelectorFull
from fakeamqp.runtime.thread.coalescing import Coalescing
from fakeamqp.runtime.turns import SelectorSource, Turns, Waiter

if TYPE_CHECKING:
    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime.connection_driver import ConnectionDriver
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.runtime.thread.lock import FairLock, Handover


class _Waker(SelectorSource):
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
        try:
            self._awake = True
            self._send()
        except BaseException:  # A signal handler raised. With the flag set, nobody else sends the byte.
            self._send()
            raise

    def _send(self) -> None:
        # An error means that the socket is full, so the loop wakes up, or closed, so there is no loop.
        with suppress(OSError):
            self._write.send(b"\0")

    def ready(self, _mask: int) -> None:
        # The flag is cleared only here, under the lock and at the beginning of the turn: a thread that
        # skipped its wake-up because of the flag had made its change before.
        self._read.recv(4096)
        self._awake = False

    def close(self) -> None:
        self._read.close()
        self._write.close()


class Loop(Turns):
    """Takes turns on a thread, which sleeps in a selector between two of them.

    Everything but `wake` needs the engine's lock.
    """

    def __init__(self, engine: Engine, coalescing: type[Coalescing] | None = None) -> None:
        super().__init__(engine)
        #: The thread that lets the loop take a turn in the midst of a call.
        self.handover: Handover | None = None
        self._thread_id: int | None = None
        self._unwatched_elsewhere = False
        self._takes = 0
        self._posted: deque[Callable[[], object]] = deque()
        self._closed = False
        self.coalescing: Coalescing = (coalescing or Coalescing)(self)
        self.input_came: Callable[[ConnectionDriver, int], None] = self.coalescing.note  # type: ignore[assignment]
        self._selector = DefaultSelector()
        self._waker = _Waker()
        try:
            check_room(self._selector, self._waker)
        except SelectorFull:
            self._selector.close()
            self._waker.close()
            raise
        self._selector.register(self._waker.fileno(), EVENT_READ, self._waker)

    # -- the turn

    def run(self, lock: FairLock) -> None:
        """Run turns until `stopping` is set. The body of the loop thread."""
        self._thread_id = threading.get_ident()
        timeout: float | None = 0.0
        while not self.stopping:
            try:
                timeout = self._turn(lock, timeout)
            except Exception:
                raise
            except BaseException as error:  # KeyboardInterrupt or SystemExit, by a function of the test.
                self.failures.record("a turn", error)
                timeout = 0.0

    def _turn(self, lock: FairLock, timeout: float | None) -> float | None:
        takes = self._takes
        expected = self.handover
        coalescing = self.coalescing
        if coalescing.ends < inf:
            left = max(coalescing.ends - self.transport_clock.now(), 0.0)
            if timeout is None or left < timeout:
                timeout = left
        try:
            events = self._selector.select(timeout)
        except OSError:
            # select() on sets of sockets raises if another thread has closed one meanwhile.
            if not self._unwatched_elsewhere:
                raise
            events = []
        seen = self.transport_clock.now()
        lock.acquire()
        try:
            self.turns += 1
            self._unwatched_elsewhere = False
            self._call_posted()
            if self.handover is not None and self.handover.abandoned:
                self.handover = None
            handover, stepped = self.handover, self.stepped
            operations = self.operations
            self._begin_slice()
            came = coalescing.ends < inf and coalescing.take()  # Before time moves.
            if stepped is not None and handover is None:
                # First, so that input is processed at its time. Input that another thread took is no news.
                news = takes == self._takes and (
                    came or any(key.data is not self._waker for key, _mask in events)
                )
                self._follow(stepped, news, came or bool(events))
                self._begin_slice()
            for key, mask in events:
                source: SelectorSource = key.data
                try:
                    source.ready(mask)
                except BaseException as error:  # A function of the test may raise SystemExit.
                    self.give_up_on(source, "input", error)
            # A timer that is due after `select` may wait for input that the next one reports.
            if stepped is None:
                self._run_due(self.timers, self._slice_over, seen)
            elif handover is None or not stepped.moving:  # Else the thread that moves time runs them.
                self._run_due(self.timers)
            if self.transport_timers is not self.timers:
                self._run_due(self.transport_timers, None, seen)
            if operations.pending:
                self._continue()
            if self.costly:
                self.serve_costly()
            self.flush()
            coalescing.decide(self.transport_clock.now(), allowed=self._may_coalesce())
            # While an operation or a call is under way, a predicate would see a part of it.
            if self.waiters and not operations.pending and handover is None:
                self.check_waiters()
            # The events of this turn may be older than the handover: the next turn has those it is about.
            # A function that was posted after `_call_posted` may have sent no byte of its own.
            return self._sleep() if self.handover is expected and not self._posted else 0.0
        finally:
            self.operations.pauses = None
            self.count_busy(seen)
            if expected is not None and self.handover is expected:
                expected.turned.set()
            lock.release()

    def _may_coalesce(self) -> bool:
        """Whether nobody waits for input that a client may have sent."""
        return (
            not self.waiters
            and self.handover is None
            and (self.stepped is None or self.stepped.autojump is None)
        )

    def take_input(self) -> None:
        # The selector may have reported the same input to `_turn`, which then finds none; that is harmless.
        self._takes += 1
        self.coalescing.end()
        super().take_input()

    def take_left(self) -> None:
        """Process all that clients have sent that were left alone, because a caller enters the engine."""
        before, self.turn_seconds = self.turn_seconds, inf  # No input is put off.
        try:
            self.coalescing.take()
        finally:
            self.turn_seconds: float = before

    def _news(self) -> list[tuple[SelectorSource, int]]:
        return [
            (key.data, mask)
            for key, mask in self._selector.select(0)
            if mask & EVENT_READ and key.data is not self._waker
        ]

    def awaited(self) -> bool:
        """Whether a turn would do something that peers wait for, other than to send them output."""
        if (
            self.operations.pending
            or self.costly
            or self.readable()
            or [each for each in self.dirty if each.rest]
        ):
            return True
        timers = self.transport_timers
        due = timers.next_due()
        return due is not None and due <= self.transport_clock.now()

    # -- the selector

    def check_room(self, sock: socket.socket) -> None:
        """Check that the selector can watch one more socket. Raises SelectorFull."""
        # Not all of the drivers are watched at present.
        check_room(self._selector, sock, (driver.transport for driver in self.drivers))

    def watch(self, source: SelectorSource, fileno: int, before: int, after: int) -> None:
        selector = self._selector
        change = selector.modify if before else selector.register
        # A signal handler may have raised between an earlier change and its note.
        if not after:
            with suppress(KeyError):
                selector.unregister(fileno)
        else:
            try:
                change(fileno, after, source)
            except KeyError:
                # `modify` would not tell the system of events that were those of a closed descriptor, too.
                with suppress(KeyError):
                    selector.unregister(fileno)
                selector.register(fileno, after, source)
        if threading.get_ident() != self._thread_id:
            # A running select() may not notice the change.
            self._unwatched_elsewhere = True
            self.wake()

    def readable(self) -> bool:
        if self.coalescing.ends < inf:
            return True
        ready = self._selector.select(0)
        return len(ready) > 1 or bool(ready and ready[0][0].data is not self._waker)

    def wake(self) -> None:
        """Wake the loop. Any thread may call it, with or without the lock."""
        self._waker.wake()

    def post(self, function: Callable[[], object]) -> None:
        """Have a function called in the next turn. Any thread may call this, and does not wait for the lock.

        Once the loop is closed, the function is called at once.
        """
        self._posted.append(function)
        self.wake()
        if self._closed:
            self._call_posted()

    def _call_posted(self) -> None:
        while self._posted:
            try:
                function = self._posted.popleft()
            except IndexError:  # Another thread has taken the last one.
                return
            function()

    async def wait(self, predicate: Callable[[], object], timeout: float, every: float | None) -> bool:
        """All calls of the predicate are made in turns of this loop."""
        import asyncio

        caller = asyncio.get_running_loop()
        decided = caller.create_future()

        def decide() -> None:
            if not decided.done():
                decided.set_result(None)

        def release() -> None:
            if timer is not None:
                timer.cancel()
            with suppress(RuntimeError):  # The caller's loop has been closed.
                caller.call_soon_threadsafe(decide)

        waiter = Waiter(predicate, release)
        timers, now = self.transport_timers, self.transport_clock.now
        ends = now() + timeout
        timer: Timer | None = None

        def look() -> None:
            """Have the predicate evaluated at the end of this turn."""
            nonlocal timer
            left = ends - now()
            waiter.expired = left <= 0
            if not waiter.expired:
                due = now() + (left if every is None else min(every, left))
                timer = timers.call_at(due, look, "a wait of a coroutine")

        def begin() -> None:
            if self._closed:
                waiter.check()
                release()
                return
            self.settle_late()
            self.waiters.append(waiter)
            look()

        def end() -> None:
            release()
            if waiter in self.waiters:
                self.waiters.remove(waiter)

        self.post(begin)
        try:
            await decided
        except BaseException:
            self.post(end)
            raise
        return waiter.outcome

    def close(self) -> None:
        super().close()
        self._closed = True
        self._call_posted()
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
        self.dirty: list[ConnectionDriver] = []
        self.waiters: list[Waiter] = []
