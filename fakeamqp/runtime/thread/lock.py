"""The engine's lock: fair, survives exceptions from signal handlers, and is handed over by long calls."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from threading import Lock, RLock, get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from fakeamqp.runtime.thread.loop import Loop

_PATIENCE = 0.25
"""Real seconds after which a thread that waits for the lock checks whether it is abandoned."""
_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


class FairLock:
    """A fair reentrant lock that survives exceptions from signal handlers.

    The loop thread releases the lock for a moment in each turn. A plain `RLock` would mostly give it back to
    a busy loop before a waiting thread has woken up. Here every thread takes a second lock, the turnstile,
    first. A thread that waits for the lock holds the turnstile, so the loop queues behind a waiting test
    thread.

    Ctrl-C and pytest-timeout raise at any bytecode of the main thread, also in `__exit__`, before it could
    release. So the lock notes the frame that took it. If this frame has ended, the lock is abandoned: the
    next thread that wants it, the same or another, takes it over.
    """

    __slots__ = ("_frame", "_lock", "_owner", "_releasing", "_turnstile", "depth")

    def __init__(self) -> None:
        # Each is taken once by its owner. They know their owner even if a signal comes at once.
        self._turnstile = RLock()
        self._lock = RLock()
        self._owner = 0
        self._frame: FrameType | None = None
        self._releasing = False
        self.depth: int = 0

    def held(self) -> bool:
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take the lock, or increase its depth if this thread holds it; return whether it does."""
        lock = self._lock
        if lock._is_owned():  # type: ignore[attr-defined]
            if self._in_use(sys._getframe()):
                self.depth += 1
                return True
            lock.release()
        turnstile = self._turnstile
        # Not `with turnstile`: from Python 3.14 on, a signal handler may raise after `__enter__` has taken it
        # and before the block begins, and nothing would release it.
        try:
            if not turnstile.acquire(blocking):
                return False
            while not self._lock.acquire(True, _PATIENCE if blocking else 0):
                if self._abandoned():
                    self._lock = RLock()
                elif not blocking:
                    turnstile.release()
                    return False
            self._note(_user(sys._getframe(1)))
            turnstile.release()
            return True
        except BaseException:
            if turnstile._is_owned():  # type: ignore[attr-defined]
                turnstile.release()
            if self.held():
                self._lock.release()
            raise

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Decrease the depth; the outermost level releases the lock."""
        if not self.held():
            raise RuntimeError("the engine lock is released by a thread that does not hold it")
        if self.depth > 1:
            self.depth -= 1
        else:
            self._let_go()

    def released(self) -> AbstractContextManager[None]:
        """Let others have the lock, at whatever depth this thread holds it, to wait for one of them."""
        return _Released(self)

    def _note(self, frame: FrameType | None) -> None:
        self._owner = get_ident()
        self._frame = frame
        self._releasing = False
        self.depth = 1

    def _let_go(self) -> None:
        self._releasing = True
        self._frame = None
        self.depth = 0
        self._lock.release()

    def _abandoned(self) -> bool:
        """Whether the frame that took the lock has ended without a release. The turnstile must be held."""
        frame = sys._current_frames().get(self._owner)
        at = frame and frame.f_lasti
        if self._in_use(frame):
            return False
        # The owner may have run on meanwhile. A generator that has yielded has lost its callers, so that the
        # frame that took the lock is not found; or the lock is being released. The next look will see.
        return frame is sys._current_frames().get(self._owner) and at == (frame and frame.f_lasti)

    def _in_use(self, frame: FrameType | None) -> bool:
        """Whether the frame that took the lock is on the stack of its thread, whose innermost is `frame`."""
        if self._frame is None and not self._releasing:
            return True
        while frame is not None:
            if frame is self._frame or (self._releasing and frame.f_code is FairLock._let_go.__code__):
                return True
            frame = frame.f_back
        return False

    def after_fork(self) -> None:
        """In a forked child: drop the locks of threads that do not exist here, and keep this thread's."""
        held = self.held()
        self._turnstile = RLock()
        self._lock = RLock()
        if held:
            self._lock.acquire()
        else:
            self._frame = None
            self.depth = 0


class _Released:
    """The context in which a thread lets others have a lock.

    Not a generator: `Handover.abandoned` walks the frames of this thread from another one, and the frame of a
    generator loses its caller when it yields.
    """

    def __init__(self, lock: FairLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        # An exception of a signal handler may have ended a release in its midst: that is not undone.
        self._hold = (lock.depth, lock._frame) if lock.held() and not lock._releasing else None
        if lock.held():
            lock._let_go()

    def __exit__(self, *_: object) -> None:
        if self._hold is not None:
            self._lock.acquire()
            self._lock.depth, self._lock._frame = self._hold


class LifeLock(FairLock):
    """Held by a thread that starts, stops or restarts a broker, until it is done.

    A thread that holds the engine's lock lets others have it while it waits: they may need it to end.
    """

    __slots__ = ("_engine_lock",)

    def __init__(self, engine_lock: FairLock) -> None:
        super().__init__()
        self._engine_lock = engine_lock

    def __enter__(self) -> None:
        if not self.acquire(blocking=False):
            with self._engine_lock.released():
                self.acquire()


class Signal:
    """Tells one thread that something has happened: an `Event` that survives exceptions from signal handlers.

    A thread that is interrupted while it waits for an `Event` may leave the lock of the event taken, and
    `set` blocks for ever. Here `set` never blocks.
    """

    __slots__ = ("_unset",)

    def __init__(self) -> None:
        self._unset = Lock()
        self._unset.acquire()

    def set(self) -> None:
        """Let the waiting thread go on. Only one thread sets a signal; setting it again does nothing."""
        if self._unset.locked():
            self._unset.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the signal is set, at most so many real seconds; return whether it is.

        Once this has returned True, the signal is not waited for again.
        """
        return self._unset.acquire(True, -1 if timeout is None else max(timeout, 0.0))


def _user(frame: FrameType | None) -> FrameType | None:
    """The frame with the `with` statement that the lock is taken for; None if that says nothing."""
    while frame is not None and frame.f_code.co_name == "__enter__":
        frame = frame.f_back
    # A generator's frame is on no stack while it is suspended, and an ExitStack outlives `enter_context`.
    if frame is None or frame.f_code.co_flags & _SUSPENDED or frame.f_globals["__name__"] == "contextlib":
        return None
    return frame


class Handover:
    """A long call of a test's thread that has released the engine's lock for one turn of the loop."""

    __slots__ = ("frame", "thread", "turned")

    def __init__(self, frame: FrameType) -> None:
        self.frame: FrameType = frame
        self.thread: int = threading.get_ident()
        self.turned: Signal = Signal()
        """Set when the turn has ended."""

    @property
    def abandoned(self) -> bool:
        """Whether an exception of a signal handler has ended the call before it could say so."""
        found = sys._current_frames().get(self.thread)
        while found is not None and found is not self.frame:
            found = found.f_back
        return found is None


class Slices:
    """The slices of a long call of a test's thread, between which the loop's thread takes turns.

    A call that moves time past many timers, or changes many objects, holds the engine's lock. Between two of
    its steps, once a slice is over and a peer waits for something, it hands the lock to the loop's thread for
    one turn. Where no peer waits, it holds the lock until it has ended, so that nothing depends on how fast
    the machine is. Other threads of the test wait for the end of the call.
    """

    __slots__ = ("_before", "_ends", "_lock", "_loop")

    def __init__(self, lock: FairLock, loop: Loop) -> None:
        self._lock = lock
        self._loop = loop
        self._begin()

    def _begin(self) -> None:
        self._ends = self._loop.slice_end()
        self._before = {
            requester: len(waiting) for requester, waiting in self._loop.operations.pending.items()
        }
        self._loop.operations.pauses = self._over

    def end(self) -> None:
        """The call has ended: operations run to their end again."""
        self._loop.operations.pauses = None

    def between(self) -> None:
        """A step has ended. Finish the operations that it has begun, and let peers be served if it is time.

        An operation that lasts longer than the slice is left to the turns of the loop.
        """
        loop = self._loop
        pending = loop.operations.pending
        if pending:
            begun = [
                (requester, waiting)
                for requester, waiting in pending.items()
                if len(waiting) > self._before.get(requester, 0)
            ]
            while not loop.stopping and any(
                pending.get(requester) is waiting for requester, waiting in begun
            ):
                self._hand_over()
        if self._over():
            self._hand_over()

    def _over(self) -> bool:
        """Whether the slice is over and a peer waits for something."""
        loop = self._loop
        if loop.transport_clock.now() < self._ends or loop.stopping:
            return False
        if loop.awaited():
            return True
        self._ends = loop.slice_end()
        return False

    def _hand_over(self) -> None:
        """Release the lock for one turn of the loop."""
        loop = self._loop
        loop.operations.pauses = None
        before = loop.handover
        loop.handover = handover = Handover(sys._getframe())
        try:
            loop.wake()
            with self._lock.released():
                handover.turned.wait()
        finally:
            loop.handover = before
        self._begin()
