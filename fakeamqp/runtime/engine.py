"""The engine runs a broker: it moves bytes and time, and lets one caller at a time into the model.

There are two: `runtime.thread` runs the broker in a thread of its own, `runtime.event_loop` in the event loop
of the test. The model, the protocols, faults and the trace know neither.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fakeamqp.runtime.errors import Failures

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from typing_extensions import Self

    from fakeamqp.model.operations import Operations
    from fakeamqp.model.timers import Timers, TimeSource
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.connection_driver import Accept, Wrap
    from fakeamqp.runtime.dialing import DialedConnection, Target
    from fakeamqp.runtime.listener import Listener
    from fakeamqp.runtime.turns import LateOutcomes, Turns

T = TypeVar("T")


class Engine:
    """Runs one broker.

    `with engine:` enters it: the block has the broker for itself, and its output is written when the
    outermost block ends. The broker is not accessed in any other way.

    `transport_clock` and its timers are for handshakes and lingering transports. Turns carry `operations` out
    in slices, and call `before_flush` before their output is written.
    """

    _loop: Turns | None = None
    """What takes the turns; None while the engine does not run."""
    _listeners: Sequence[Listener] = ()

    def __init__(
        self,
        clock: TimeSource,
        timers: Timers,
        accept: Accept,
        transport_clock: TimeSource,
        transport_timers: Timers,
        operations: Operations,
        before_flush: Callable[[], object] | None,
    ) -> None:
        self.clock = clock
        self.timers = timers
        self.transport_clock = transport_clock
        self.transport_timers = transport_timers
        self.operations = operations
        self.before_flush = before_flush
        #: The clock if it is a stepped one, which the engine moves; otherwise None.
        self.stepped: SteppedClock | None = cast("SteppedClock", clock) if hasattr(clock, "step_to") else None
        #: Exceptions caused by bugs, in order. Empty, whatever peers do.
        self.failures: Failures = Failures()
        if self.stepped is not None:
            self.stepped.timers, self.stepped.failed = timers, self.failures.record
        #: The late outcomes; None without races. Set it before the start.
        self.late: LateOutcomes | None = None
        self._accept = accept
        self._wrap: Wrap | None = None
        self._refusing = False
        self._socketpairs = 0
        self._turns_before = 0
        """The turns of earlier starts."""

    # -- life cycle

    @property
    def running(self) -> bool:
        """Whether the engine takes turns, and serves peers."""
        return self._loop is not None

    @property
    def turns(self) -> int:
        """The number of turns. It does not change while the broker is idle."""
        turns = self._loop
        return self._turns_before if turns is None else self._turns_before + turns.turns

    @property
    def seed(self) -> int | str | None:
        """The seed of the event loop that the broker runs in, if it is a simulation with a seed."""
        return None

    def start(self) -> None:
        """Begin to take turns. Does nothing while the engine runs."""
        raise NotImplementedError

    def stop(self) -> None:
        """Write pending output, and close every port and connection. Idempotent."""
        raise NotImplementedError

    async def stopped(self) -> None:
        """Return when nothing of `stop` is left to be done by the caller's event loop."""

    def _close(self, turns: Turns) -> None:
        if self.stepped is not None:
            self.stepped.detach()
        for listener in self._listeners:
            listener.close()
        self._listeners = ()
        turns.close()
        self._turns_before += turns.turns
        self._loop = None

    # -- access

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        raise NotImplementedError

    def look(self) -> AbstractContextManager[Any]:
        """Enter only to look at the broker, such as from outside a test. Keep it short.

        Nothing moves for it, unlike with `with engine:`: time does not follow, an idle clock stays idle, and
        long operations are not carried to their end, so that a part of one may be seen.
        """
        raise NotImplementedError

    def released(self) -> AbstractContextManager[None]:
        """Let others enter meanwhile, at whatever depth the caller is inside, to wait for one of them."""
        return nullcontext()

    def one_by_one(self) -> AbstractContextManager[object]:
        """Wait until another thread's start, stop or restart of the broker has ended."""
        return nullcontext()

    def in_turn(self) -> bool:
        """Whether the caller is inside a turn, and must not wait for those that enter the engine."""
        raise NotImplementedError

    @contextmanager
    def in_slices(self) -> Iterator[Callable[[], None]]:
        """Inside the engine: do something long, and let peers be served meanwhile, if they can be.

        Yields a function to be called between two steps, at which the broker is consistent.
        """
        yield nothing

    def carry_out(self, steps: Iterator[object]) -> None:
        """Inside the engine: carry out an operation `in_slices`."""
        with self.in_slices() as between:
            for _ in steps:
                between()

    def take_input(self) -> None:
        """Inside the engine: process all input that has arrived, and write the output."""
        if self._loop is not None:
            self._loop.take_input()

    def flush(self) -> None:
        """Inside the engine: write all output that can be written."""
        if self._loop is not None:
            self._loop.flush_all()

    def wait_until(self, predicate: Callable[[], object], timeout: float, every: float | None = None) -> bool:
        """Wait until `predicate()` is true, at most `timeout` seconds; return whether it was.

        The predicate is evaluated inside the engine, now and at the end of every turn, so it may read the
        whole broker; and after `every` seconds without a turn, for predicates about more than the broker. An
        exception that it raises is raised here. The seconds are real; in an event loop, those of its clock.
        Raises EngineError if the caller would wait for itself.
        """
        raise NotImplementedError

    async def wait_until_async(
        self, predicate: Callable[[], object], timeout: float, every: float | None = None
    ) -> bool:
        """`wait_until` for coroutines: it does not block the event loop of the caller.

        A broker in a thread evaluates the predicate in that thread. A cancelled wait ends at once.
        """
        raise NotImplementedError

    def give_peers_time(self, predicate: Callable[[], object], timeout: float) -> None:
        """Wait until `predicate()` is true, at most `timeout` seconds, unless that would block peers."""

    async def call_async(self, function: Callable[[], T]) -> T:
        """Call a function that moves the broker, such as its clock, from a coroutine.

        What peers have sent is processed before, and what the call has caused has reached them afterwards, as
        far as that can be seen.
        """
        raise NotImplementedError

    def quiet(self) -> bool:
        """Whether there is nothing to do right now: all input read, all output sent, no timer due.

        Bytes that are under way in an event loop are not seen.
        """
        with self:
            return self._loop is None or self._loop.quiet()

    # -- peers

    def connect_socketpair(self) -> socket.socket:
        """A connected socket whose other end the engine serves, without a port or a listener.

        The caller owns the socket. It is blocking, unless the engine and the caller share an event loop. The
        peer address is `socketpair` and a sequence number. Raises EngineError if there is no room for one.
        """
        raise NotImplementedError

    def dial(self, targets: Sequence[Target], connection: DialedConnection) -> None:
        """Open a transport for a connection: to the first of the targets that can be reached."""
        raise NotImplementedError

    def wrap_connections(self, wrap: Wrap | None) -> None:
        """Wrap every connection, open ones and later ones; None ends that.

        A wrapper is removed as soon as it holds nothing back. The setting survives `stop` and `start`.
        """
        with self:
            self._wrap = wrap
            turns = self._loop
            if turns is None:
                return
            turns.wrap = wrap
            for driver in list(turns.drivers):
                if wrap is not None:
                    driver.wrap(wrap)
                elif driver.wrapping is not None:
                    driver.notify()

    def refuse(self, refusing: bool) -> None:
        """Have all connections refused, or (False) accept them again. The setting survives a restart.

        Raises PortInUse if another socket has taken a port meanwhile.
        """
        with self:
            self._refusing = refusing
            for listener in self._listeners:
                listener.refuse(refusing)

    def disconnect_all(self) -> None:
        """Write pending output and close the transport of every connection. Listeners stay open."""
        with self:
            if self._loop is not None:
                self._loop.disconnect_all()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"<{type(self).__name__} {state} turns={self.turns}>"


def nothing() -> None:
    """The steps of a call that is not cut into slices."""
