"""Timers, run in a deterministic order.

A timer is due at an instant of its clock. Due timers run in the order (due, sequence), where the sequence is
the order in which they were created. This module neither sleeps nor reads the machine's time: the clock gives
the time, and the owner of the timers calls `Timers.run_due` when one is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import TypeAlias

Label: TypeAlias = "str | Callable[[], str]"
"""A timer's description, to which "in 4.2 s" can be appended; or a function that returns it."""

MARGIN = 1e-9
"""Seconds by which a timer may fire early: instants are sums of floats."""

# Below this many entries a heap full of cancelled timers is too small to be worth rebuilding.
_COMPACT_FROM = 64


class TimeSource:
    """Where the broker's time comes from.

    A subclass defines `now` and `time`; the other methods default to those of a clock that runs by itself.
    """

    __slots__ = ()

    def now(self) -> float:
        """The instant that timers are compared with: seconds, never going back, origin arbitrary."""
        raise NotImplementedError

    def time(self) -> float:
        """Wall time in seconds since the epoch, for timestamps."""
        raise NotImplementedError

    @property
    def holds_peers(self) -> bool:
        """Whether clients' own timers follow this clock as well, so that their heartbeats can be overdue."""
        return True

    @property
    def holds_newcomers(self) -> bool:
        """Whether clients have to finish their handshake in time on this clock."""
        return self.holds_peers

    def held_since(self) -> float:
        """The instant since which clients' timers follow this clock; earlier silence does not count."""
        return float("-inf")

    def heading(self) -> float:
        """The instant to which time is being moved while timers run; otherwise `now()`."""
        return self.now()

    def hint(self) -> str:
        """A hint for the error of a wait that failed because this clock stands still; otherwise ""."""
        return ""


class Timer:
    """One callback to run at one instant. Created by `Timers.call_at`."""

    __slots__ = ("_callback", "_label", "_revise", "_timers", "awaits_peer", "due", "housekeeping")

    def __init__(
        self,
        due: float,
        callback: Callable[[], object],
        label: Label,
        housekeeping: bool,
        awaits_peer: bool,
        revise: Callable[[], float | None] | None,
        timers: Timers,
    ) -> None:
        self.due: float = due
        self.housekeeping: bool = housekeeping
        self.awaits_peer: bool = awaits_peer
        self._label = label
        self._revise = revise
        self._callback: Callable[[], object] | None = callback
        self._timers: Timers | None = timers

    @property
    def active(self) -> bool:
        """True until the timer has run or was cancelled."""
        return self._callback is not None

    @property
    def words(self) -> str:
        """The timer's description."""
        return self._label if isinstance(self._label, str) else self._label()

    def cancel(self) -> None:
        """Prevent the timer from running and release its callback. Does nothing if it already ran."""
        timers = self._timers
        self._callback = self._revise = self._timers = None
        if timers is not None:
            timers._one_cancelled()

    def _take(self) -> Callable[[], object] | None:
        callback = self._callback
        self._callback = self._revise = self._timers = None
        return callback

    def __repr__(self) -> str:
        state = "active" if self.active else "done"
        return f"<Timer {self.words or 'unnamed'} due={self.due:.3f} {state}>"


class Timers:
    """A heap of timers on one clock, with lazy deletion.

    Cancelling is O(1): the entry stays in the heap without its callback until it surfaces, or until most
    of the heap is cancelled and it is rebuilt.
    """

    __slots__ = ("_cancelled", "_heap", "_sequence", "clock")

    def __init__(self, clock: TimeSource) -> None:
        self.clock: TimeSource = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = count()
        self._cancelled = 0

    def __len__(self) -> int:
        """The number of active timers."""
        return len(self._heap) - self._cancelled

    def call_at(
        self,
        due: float,
        callback: Callable[[], object],
        label: Label = "",
        *,
        housekeeping: bool = False,
        awaits_peer: bool = False,
        revise: Callable[[], float | None] | None = None,
    ) -> Timer:
        """Call `callback()` once the clock's `now()` has reached `due` (seconds on that clock).

        An instant in the past is allowed and means the next `run_due`.

        Args:
            due: the instant, in seconds on the clock.
            callback: called with no arguments.
            label: describes the timer; a function is only called when the description is read.
            housekeeping: the timer recurs as long as a client is connected, such as a heartbeat; moving time
                to the next timer passes over it.
            awaits_peer: a client's next step cancels the timer; before time moves past it, the mover may wait
                a moment for the client.
            revise: for a timer that is not moved when it is needed later or no longer: returns the instant at
                which it is needed as things are, or None. `pending` asks it. At `due` the timer runs in any
                case, and its callback sets another.
        """
        timer = Timer(due, callback, label, housekeeping, awaits_peer, revise, self)
        heappush(self._heap, (due, next(self._sequence), timer))
        return timer

    def next_due(self) -> float | None:
        """The instant of the earliest active timer, or None when there is none."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if entry[2].active:
                return entry[0]
            heappop(heap)
            self._cancelled -= 1
        return None

    def pending(self) -> Iterator[Timer]:
        """The active timers that are needed, in the order in which they will run. Change nothing meanwhile.

        The first few are found cheaply, however many there are: the heap is walked from its top.
        """
        heap = self._heap
        # The last field says whether this is the position of a timer that is needed later than it runs.
        front = [(*heap[0][:2], 0, False)] if heap else []
        while front:
            due, sequence, index, later = heappop(front)
            timer = heap[index][2]
            if later:
                yield timer
                continue
            if timer.active:
                needed = due if timer._revise is None else timer._revise()
                if needed is not None:
                    timer.due = max(due, needed)
                    if timer.due > due:
                        heappush(front, (timer.due, sequence, index, True))
                    else:
                        yield timer
            for below in (2 * index + 1, 2 * index + 2):
                if below < len(heap):
                    heappush(front, (*heap[below][:2], below, False))

    def run_due(self, pauses: Callable[[], bool] | None = None, until: float = inf) -> int:
        """Run every timer that is due, including due timers that these schedule. Returns how many ran.

        `pauses`, if given, is asked after each: once it is true, the others run at the next call. So do those
        that are due after `until`.

        An exception from a callback propagates; the timer that raised it counts as run, and the others that
        are due run at the next call.
        """
        heap = self._heap
        if not heap:
            return 0
        ran = 0
        now = min(self.clock.now(), until)
        while heap and heap[0][0] <= now:
            callback = heappop(heap)[2]._take()
            if callback is None:
                self._cancelled -= 1
                continue
            ran += 1
            callback()
            if pauses is not None and pauses():
                break
            now = min(self.clock.now(), until)
        return ran

    def _one_cancelled(self) -> None:
        self._cancelled += 1
        heap = self._heap
        if len(heap) >= _COMPACT_FROM and self._cancelled * 2 > len(heap):
            # In place: `run_due` may be iterating over this very list further up the stack.
            heap[:] = [entry for entry in heap if entry[2].active]
            heapify(heap)
            self._cancelled = 0


class Deadline:
    """Calls a function at one instant, `due`; None means never."""

    __slots__ = ("_callback", "_timer", "_timers", "due")

    def __init__(self, timers: Timers, callback: Callable[[], None]) -> None:
        self.due: float | None = None
        self._timers = timers
        self._callback = callback
        self._timer: Timer | None = None

    def set(self, due: float | None, label: Label = "") -> None:
        """Move the timer to an instant. Does nothing if that is `due` already."""
        if due == self.due:
            return
        self.stop()
        self.due = due
        self._timer = None if due is None else self._timers.call_at(due, self._fire, label)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._timer = self.due = None
        self._callback()
