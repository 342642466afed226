"""What the engine in a thread and the one in an event loop have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fakeamqp.runtime.errors import Failures

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from typing_extensions import Self

    from fakeamqp.connection import Connection
    from fakeamqp.runtime.clock import EngineClock, TimerQueue
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.connection_driver import Accept, Wrap
    from fakeamqp.runtime.turns import LateOutcomes, PendingOperations, TurnParts, Turns

__all__ = ["EngineBase"]


class EngineBase:
    """The parts of one broker that turns work on, and the calls that are the same in both engines.

    Args:
        clock: the broker's clock. The engine moves a `SteppedClock`.
        timers: the broker's timers, on that clock.
        accept: creates the sans-I/O connection for a new peer.
        transport_clock: the clock of handshakes and lingering transports.
        transport_timers: the timers on that clock.
        operations: the broker's long operations, which turns carry out in slices.
        before_flush: called inside the engine before the output of a turn is written.
    """

    def __init__(
        self,
        clock: EngineClock,
        timers: TimerQueue,
        accept: Accept,
        transport_clock: EngineClock,
        transport_timers: TimerQueue,
        operations: PendingOperations | None,
        before_flush: Callable[[], object] | None,
    ) -> None:
        self.clock = clock
        self.timers = timers
        #: The clock if it is a stepped one, which the engine moves; otherwise None.
        self.stepped: SteppedClock | None = cast("SteppedClock", clock) if hasattr(clock, "step_to") else None
        #: Exceptions caused by bugs, in order. Empty, whatever peers do.
        self.failures: Failures = Failures()
        self._accept = accept
        self._transport_timers = transport_timers
        self._transport_clock = transport_clock
        self._operations = operations
        self._before_flush = before_flush
        #: What happens late, if anything does; set it before the start.
        self.late: LateOutcomes | None = None
        self._wrap: Wrap | None = None
        self._refusing = False
        self._socketpairs = 0
        self._turns_before = 0
        """The turns of earlier starts."""

    # -- the interface of subclasses

    @property
    def _current(self) -> Turns | None:
        """What takes the turns; None while the engine does not run."""
        raise NotImplementedError

    def look(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    # -- what is the same

    def _parts(self) -> TurnParts:
        from fakeamqp.runtime.turns import NoOperations, TurnParts

        return TurnParts(
            self.clock,
            self.timers,
            self._transport_clock,
            self._transport_timers,
            self.failures,
            self._operations or NoOperations(),
            self.stepped,
            self._before_flush,
            self.late,
        )

    @property
    def running(self) -> bool:
        """Whether the engine takes turns, and serves peers."""
        return self._current is not None

    @property
    def turns(self) -> int:
        """The number of turns. It does not change while the broker is idle."""
        turns = self._current
        return self._turns_before if turns is None else self._turns_before + turns.turns

    def flush(self) -> None:
        """Inside the engine: write all output that can be written."""
        turns = self._current
        if turns is not None:
            turns.flush_all()

    def quiet(self) -> bool:
        """Whether there is nothing to do right now: all input read, all output sent, no timer due.

        Bytes that are under way in an event loop are not seen.
        """
        with self:
            turns = self._current
            return turns is None or turns.quiet()

    @property
    def connections(self) -> list[Connection]:
        """The connections with an open transport, oldest first."""
        with self.look():
            turns = self._current
            drivers = [] if turns is None else list(turns.drivers)
            return [each for driver in drivers if (each := driver.open_connection) is not None]

    def wrap_connections(self, wrap: Wrap | None) -> None:
        """Wrap every connection, open ones and later ones; None ends that.

        A wrapper is removed as soon as it holds nothing back. The setting survives `stop` and `start`.
        """
        with self:
            self._wrap = wrap
            turns = self._current
            if turns is None:
                return
            turns.wrap = wrap
            for driver in list(turns.drivers):
                if wrap is not None:
                    driver.wrap(wrap)
                elif driver.wrapping is not None:
                    driver.notify()

    def disconnect_all(self) -> None:
        """Write pending output and close the transport of every connection. Listeners stay open."""
        with self:
            turns = self._current
            if turns is not None:
                turns.disconnect_all()
