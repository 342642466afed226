"""Long calls of a test's thread, which let the loop's thread take turns meanwhile.

A call that moves time past many timers, or changes many objects, holds the engine's lock. Between two of its
steps, once a slice is over and a peer waits for something, it hands the lock to the loop's thread for one
turn. Where no peer waits, it holds the lock until it has ended, so that nothing depends on how fast the
machine is. Other threads of the test wait for the end of the call.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from fakeamqp.runtime.thread.lock import Signal, on_stack

if TYPE_CHECKING:
    from types import FrameType

    from fakeamqp.runtime.thread.lock import FairLock
    from fakeamqp.runtime.thread.loop import Loop

__all__ = ["Handover", "Slices"]


class Handover:
    """That a thread, in the midst of a call, waits for a turn of the loop."""

    __slots__ = ("frame", "thread", "turned")

    def __init__(self, frame: FrameType) -> None:
        self.frame: FrameType = frame
        self.thread: int = threading.get_ident()
        self.turned: Signal = Signal()
        """Set when the turn has ended."""

    @property
    def abandoned(self) -> bool:
        """Whether an exception of a signal handler has ended the call before it could say so."""
        return not on_stack(self.frame, self.thread)


class Slices:
    """The slices of one call, made and used inside the engine."""

    __slots__ = ("_before", "_ends", "_lock", "_loop")

    def __init__(self, lock: FairLock, loop: Loop) -> None:
        self._lock = lock
        self._loop = loop
        self._begin()

    def _begin(self) -> None:
        self._ends = self._loop.slice_end()
        self._before = {asker: len(waiting) for asker, waiting in self._loop.operations.pending.items()}
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
                (asker, waiting)
                for asker, waiting in pending.items()
                if len(waiting) > self._before.get(asker, 0)
            ]
            while not loop.stopping and any(pending.get(asker) is waiting for asker, waiting in begun):
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
            hold = self._lock.release_all()
            try:
                handover.turned.wait()
            finally:
                self._lock.acquire_again(hold)
        finally:
            loop.handover = before
        self._begin()
