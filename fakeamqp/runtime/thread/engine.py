"""The engine: one lock and one thread that run a broker.

The loop thread sleeps in the selector. On input or a due timer it takes the lock, runs connections and
timers, writes the output, and releases the lock. A test's thread takes the lock with `with engine:`, reads or
changes the broker, and the output is written when it leaves. The broker is not accessed in any other way, so
the model needs no further locks.

The loop and all else that needs sockets is imported by the first start.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from typing import TYPE_CHECKING, ClassVar, TypeVar

from fakeamqp.errors import check_timeout
from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.engine import Engine, nothing
from fakeamqp.runtime.errors import EngineError
from fakeamqp.runtime.thread.lock import FairLock, LifeLock, Signal

if TYPE_CHECKING:
    import socket

    from typing_extensions import Self

    from fakeamqp.model.operations import Operations
    from fakeamqp.model.timers import Timers, TimeSource
    from fakeamqp.runtime.connection_driver import Accept
    from fakeamqp.runtime.dialing import DialedConnection, Target
    from fakeamqp.runtime.thread.coalescing import Coalescing
    from fakeamqp.runtime.thread.listener import ThreadListener
    from fakeamqp.runtime.thread.loop import Loop
    from fakeamqp.runtime.tls import ServerTLS

# Real seconds after which a thread that waits for another's call checks whether it is abandoned.
_PATIENCE = 0.25
# A loop that does not end within this many real seconds is stuck in a handler; `stop` raises then.
_STOP_SECONDS = 30.0

T = TypeVar("T")

_engines: weakref.WeakSet[ThreadEngine] = weakref.WeakSet()


class ThreadEngine(Engine):
    """The lock, the loop thread and the transports of one broker.

    `transport_timers`, on a `RealClock`, are needed if `clock` is not a real one, so that moving the clock
    does not disconnect peers; by default they are `timers`.
    """

    _loop: Loop | None = None
    _listeners: tuple[ThreadListener, ...] = ()
    coalescing: ClassVar[type[Coalescing] | None] = None
    """When clients are left alone for a moment, if not as `Coalescing` has it."""

    def __init__(
        self,
        clock: TimeSource,
        timers: Timers,
        accept: Accept,
        *,
        operations: Operations,
        transport_timers: Timers | None = None,
        before_flush: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(
            clock,
            timers,
            accept,
            clock if transport_timers is None else RealClock(),
            timers if transport_timers is None else transport_timers,
            operations,
            before_flush,
        )
        self._lock = FairLock()
        self._life = LifeLock(self._lock)
        self._thread: threading.Thread | None = None
        self._suspended: tuple[int, Callable[[], bool]] | None = None
        """What said when a slice is over, until the call at this depth of the lock ends."""
        _engines.add(self)

    # -- life cycle

    def start(self) -> None:
        from fakeamqp.runtime.thread.loop import Loop

        if self._loop is not None and self._loop.stopping:
            self.stop()  # requested on the loop thread, and not complete yet
        with self._lock:
            if self._loop is not None:
                return
            loop = Loop(self, self.coalescing)
            loop.wrap = self._wrap
            thread = threading.Thread(target=self._run, args=(loop,), name="fakeamqp", daemon=True)
            self._loop, self._thread = loop, thread
            try:
                thread.start()
            except BaseException:
                self._close(loop)  # The thread may run: it waits for the lock, and finds no loop then.
                self._thread = None
                raise
            if self.stepped is not None:
                self.stepped.attach(self.settle)

    def stop(self) -> None:
        """Any thread may call it. On the loop thread it takes effect when the turn ends. A thread inside
        `with engine:` releases the lock while the loop ends.
        """
        thread = self._thread
        loop = self._loop
        if loop is not None:
            loop.stopping = True
            loop.wake()
        if thread is None or thread is threading.current_thread():
            return
        with self._lock.released():
            thread.join(_STOP_SECONDS)
        if thread.is_alive():
            raise EngineError(f"the loop thread did not end within {_STOP_SECONDS:g} s: a handler is stuck")
        self._thread = None

    def _run(self, loop: Loop) -> None:
        with self._lock:
            if self._loop is not loop:
                return  # `start` was interrupted.
        try:
            loop.run(self._lock)
        except BaseException as error:
            loop.failures.record("the loop", error)
        finally:
            with self._lock:
                self._close(loop)

    def _abandon(self) -> None:
        """In a forked child: the thread does not exist, and the sockets belong to the parent."""
        self._lock.after_fork()
        self._life.after_fork()
        loop, self._loop, self._thread = self._loop, None, None
        listeners, self._listeners = self._listeners, ()
        if loop is not None:
            loop.abandon()
        for listener in listeners:
            listener.abandon()

    # -- the lock

    def __enter__(self) -> Self:
        """Take the lock; no other thread accesses the broker until it is released. Reentrant."""
        self._lock.acquire()
        try:
            if self._lock.depth > 1:
                self._run_whole()
                return self
            loop = self._loop
            if loop is not None:
                loop.operations.pauses = None  # An interrupted call may have left it.
                self._suspended = None
                if loop.operations.pending or loop.handover is not None:
                    self._finish_others(loop)
                loop.take_left()
                if loop.late is not None and threading.current_thread() is not self._thread:
                    loop.settle_late()
            if self.stepped is not None:
                self.stepped.follow()
        except BaseException:
            self._lock.release()
            raise
        return self

    def _run_whole(self) -> None:
        """A call within a turn or a call: its operations end before it does.

        The caller may be in the midst of a connection's input, and a restart must not leave a part behind.
        """
        loop = self._loop
        if loop is not None and loop.operations.pauses is not None:
            self._suspended = self._lock.depth, loop.operations.pauses
            loop.operations.pauses = None

    def _go_on(self) -> None:
        """Undo `_run_whole` at the end of the call that did it."""
        loop, suspended = self._loop, self._suspended
        if suspended is not None and suspended[0] == self._lock.depth:
            self._suspended = None
            if loop is not None:
                loop.operations.pauses = suspended[1]

    def _finish_others(self, loop: Loop) -> None:
        """Wait for the end of another thread's call, and have the loop's thread carry out all operations.

        So a test's thread never sees a part of one. The loop's thread carries them out because an exception
        in a test's thread (Ctrl-C) must not end an operation.
        """
        from fakeamqp.runtime.turns import Waiter

        while self._loop is loop and not loop.stopping:
            in_call = self._other_call(loop)
            if not in_call and not loop.operations.pending:
                break
            taken = Signal()
            waiter = Waiter(lambda: True, taken.set)
            loop.waiters.append(waiter)
            loop.hurried += not in_call
            try:
                loop.wake()
                with self._lock.released():
                    # The call may have been abandoned.
                    taken.wait(_PATIENCE if in_call else None)
            finally:
                loop.hurried -= not in_call
                if waiter in loop.waiters:
                    loop.waiters.remove(waiter)
        loop.finish_operations()

    def _other_call(self, loop: Loop) -> bool:
        """Whether another thread is in the midst of a call, and has handed the lock over."""
        handover = loop.handover
        if handover is None:
            return False
        if handover.abandoned:
            loop.handover = None
            return False
        return handover.thread != threading.get_ident()

    @contextmanager
    def in_slices(self) -> Iterator[Callable[[], None]]:
        """Other threads that enter the engine wait until the caller leaves it.

        Within a turn, or within another call, the function does nothing.
        """
        loop = self._loop
        if loop is None or self._lock.depth > 1 or threading.current_thread() is self._thread:
            yield nothing
            return
        from fakeamqp.runtime.thread.lock import Slices

        slices = Slices(self._lock, loop)
        try:
            yield slices.between
        finally:
            slices.end()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None and not self._lock.held():
            return  # A signal handler raised while this thread waited to have the lock back.
        try:
            if self._lock.depth > 1:
                self._go_on()
            elif self._loop is not None:
                self._leave(self._loop)
        finally:
            self._lock.release()

    def _leave(self, loop: Loop) -> None:
        loop.flush()
        if loop.waiters and loop.handover is None:
            loop.check_waiters()
        if loop.dirty or loop.oversleeps():
            loop.wake()

    def take_input(self) -> None:
        if threading.current_thread() is self._thread:
            raise EngineError("the loop thread cannot process further input during its turn")
        super().take_input()

    def settle(self) -> None:
        """Process all input that has arrived, at its time, and then follow the clock.

        For code that moves the wall clock, before and after. Does nothing if this thread is inside the
        engine.
        """
        if self.stepped is None or self._lock.held():
            return
        with self._lock:
            if self._loop is not None:
                self._finish_others(self._loop)
            with self.in_slices() as between:
                self.stepped.follow(noticed=False, between=between)
            if self._loop is not None:
                self._loop.take_input()
                self._leave(self._loop)

    def look(self) -> FairLock:
        return self._lock

    def in_turn(self) -> bool:
        return threading.current_thread() is self._thread

    def one_by_one(self) -> AbstractContextManager[object]:
        """The loop thread does not wait, since the others may wait for its end."""
        return nullcontext() if self.in_turn() else self._life

    def released(self) -> AbstractContextManager[None]:
        return self._lock.released()

    def wait_until(self, predicate: Callable[[], object], timeout: float, every: float | None = None) -> bool:
        check_timeout(timeout)
        if threading.current_thread() is self._thread:
            raise EngineError("the loop thread cannot wait for the loop")
        from fakeamqp.runtime.turns import Waiter

        decided = Signal()
        waiter = Waiter(predicate, decided.set)
        with self:
            if waiter.check() or self._loop is None:
                return waiter.outcome
            self._leave(self._loop)
            self._loop.waiters.append(waiter)
            if self._loop.coalescing.ends < inf:
                self._loop.wake()
            try:
                with self._lock.released():
                    self._watch(decided, timeout, every or timeout)
            finally:
                if self._loop is not None and waiter in self._loop.waiters:
                    self._loop.waiters.remove(waiter)
            if not waiter.holds and waiter.error is None:
                if self._loop is not None:
                    self._finish_others(self._loop)
                if self.stepped is not None:
                    self.stepped.follow()
                waiter.check()
            return waiter.outcome

    def _watch(self, decided: Signal, timeout: float, every: float) -> None:
        now = RealClock.now
        ends = now() + timeout
        while not decided.wait(min(every, ends - now())) and now() < ends:
            with self:
                pass  # Leaving the engine evaluates the predicates.

    async def wait_until_async(
        self, predicate: Callable[[], object], timeout: float, every: float | None = None
    ) -> bool:
        check_timeout(timeout)
        loop = self._loop
        if loop is None:
            return self.wait_until(predicate, timeout)
        return await loop.wait(predicate, timeout, every)

    def give_peers_time(self, predicate: Callable[[], object], timeout: float) -> None:
        if self._loop is not None:
            self.wait_until(predicate, timeout)

    async def call_async(self, function: Callable[[], T]) -> T:
        import asyncio

        return await asyncio.to_thread(function)

    # -- peers

    def listen_on(
        self, host: str, port: int = 0, *, tls: ServerTLS | None = None
    ) -> tuple[ThreadListener, ...]:
        """Listen on a port; `localhost` is 127.0.0.1 and, where the machine has it, ::1."""
        from fakeamqp.runtime.addresses import listen_on
        from fakeamqp.runtime.thread.listener import ThreadListener

        with self._lock:
            loop = self._running_loop()

            def listen(address: str, wanted: int) -> ThreadListener:
                return ThreadListener(
                    loop, self._lock, self._accept, address, wanted, tls, refusing=self._refusing
                )

            listeners = listen_on(listen, host, port)
            self._listeners += listeners
            return listeners

    def connect_socketpair(self) -> socket.socket:
        import socket

        from fakeamqp.runtime.connection_driver import ConnectionDriver
        from fakeamqp.runtime.transport import TcpTransport

        with self:
            loop = self._running_loop()
            ours, theirs = socket.socketpair()
            self._socketpairs += 1
            driver = ConnectionDriver(
                loop, TcpTransport(ours), self._accept, ("socketpair", self._socketpairs, "socketpair", 0)
            )
            try:
                loop.check_room(ours)
                driver.start()
            except BaseException:
                theirs.close()
                driver.close()
                raise
            return theirs

    def dial(self, targets: Sequence[Target], connection: DialedConnection) -> None:
        from fakeamqp.runtime.dialing import Dialing

        Dialing(self._running_loop(), targets, connection)

    def _running_loop(self) -> Loop:
        if self._loop is None:
            raise EngineError("the engine does not run; call start() first")
        return self._loop


def _abandon_all() -> None:
    for engine in list(_engines):
        engine._abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
