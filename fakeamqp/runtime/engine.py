"""The engine runs a broker: it moves bytes and time, and lets one caller at a time into the model.

Two engines implement the interface: `runtime.thread` runs the broker in a thread of its own,
`runtime.event_loop` in the event loop of the test. The model, the protocols, faults and the trace know
neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from typing_extensions import Self

    from fakeamqp.connection import Connection
    from fakeamqp.runtime.clock import EngineClock, TimerQueue
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.connection_driver import Wrap
    from fakeamqp.runtime.errors import Failures
    from fakeamqp.runtime.turns import LateOutcomes

__all__ = ["Engine", "Listening"]

T = TypeVar("T")


class Listening(Protocol):
    """A port, or an address in memory, at which peers are accepted."""

    @property
    def address(self) -> tuple[str, int]:
        """Numeric host and port."""
        ...

    def resume(self) -> None:
        """Accept peers (again) on the same port. Raises `PortInUse` if another socket has taken it."""
        ...

    def pause(self) -> None:
        """Refuse connections, but keep the port for `resume`."""
        ...


class Engine(Protocol):
    """Runs one broker.

    `with engine:` enters it: the block has the broker for itself, and its output is written when the
    outermost block ends. The broker is not accessed in any other way.
    """

    clock: EngineClock
    timers: TimerQueue
    stepped: SteppedClock | None
    """The clock if it is a stepped one, which the engine moves; otherwise None."""
    late: LateOutcomes | None
    """The late outcomes; None without races. Set it before the start."""
    failures: Failures
    """Exceptions caused by bugs, in order. Empty, whatever peers do."""

    # -- life cycle

    @property
    def running(self) -> bool:
        """Whether peers can be served."""
        ...

    @property
    def turns(self) -> int:
        """The number of turns. It does not change while the broker is idle."""
        ...

    def start(self) -> None:
        """Begin to take turns. Does nothing while the engine runs."""
        ...

    def stop(self) -> None:
        """Write pending output, and close every port and connection. Idempotent."""
        ...

    async def stopped(self) -> None:
        """Return when nothing of `stop` is left to be done by the caller's event loop."""
        ...

    @property
    def seed(self) -> int | str | None:
        """The seed of the event loop that the broker runs in, if it is a simulation with a seed."""
        ...

    # -- access

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def look(self) -> AbstractContextManager[None]:
        """Enter only to look at the broker: no time passes, and no output is written."""
        ...

    def released(self) -> AbstractContextManager[None]:
        """Let others enter meanwhile, at whatever depth the caller is inside, to wait for one of them."""
        ...

    def one_by_one(self) -> AbstractContextManager[object]:
        """Wait until another thread's start, stop or restart of the broker has ended."""
        ...

    def in_turn(self) -> bool:
        """Whether the caller is inside a turn, and must not wait for those that enter the engine."""
        ...

    def in_slices(self) -> AbstractContextManager[Callable[[], None]]:
        """Inside the engine: do something long, and let peers be served meanwhile, if they can be.

        Yields a function to be called between two steps, at which the broker is consistent.
        """
        ...

    def carry_out(self, steps: Iterator[object]) -> None:
        """Inside the engine: carry out an operation `in_slices`."""
        ...

    def take_input(self) -> None:
        """Inside the engine: process all input that has arrived, and write the output."""
        ...

    def flush(self) -> None:
        """Inside the engine: write all output that can be written."""
        ...

    def wait_until(self, predicate: Callable[[], object], timeout: float, every: float | None = None) -> bool:
        """Wait until `predicate()` is true, at most `timeout` seconds; return whether it was.

        The predicate is evaluated inside the engine, now and at the end of every turn, so it may read the
        whole broker. An exception that it raises is raised here.

        Args:
            predicate: a function without arguments.
            timeout: in real seconds; in an event loop, in seconds of its clock.
            every: evaluate it also after each span of so many seconds without a turn, for predicates about
                more than the broker.

        Raises:
            EngineError: the caller would wait for itself.
        """
        ...

    async def wait_until_async(
        self, predicate: Callable[[], object], timeout: float, every: float | None = None
    ) -> bool:
        """`wait_until` for coroutines: it does not block the event loop of the caller.

        A broker in a thread evaluates the predicate in that thread. A cancelled wait ends at once.
        """
        ...

    def give_peers_time(self, predicate: Callable[[], object], timeout: float) -> None:
        """Wait until `predicate()` is true, at most `timeout` seconds, unless that would block peers."""
        ...

    async def call_async(self, function: Callable[[], T]) -> T:
        """Call a function that moves the broker, such as its clock, from a coroutine.

        What peers have sent is processed before, and what the call has caused has reached them afterwards, as
        far as that can be seen.
        """
        ...

    def quiet(self) -> bool:
        """Whether there is nothing to do right now: all input read, all output sent, no timer due."""
        ...

    # -- peers

    @property
    def connections(self) -> list[Connection]:
        """The connections with an open transport, oldest first."""
        ...

    def connect_socketpair(self) -> socket.socket:
        """A connected socket whose other end the engine serves. The caller owns it.

        It is blocking, unless the engine and the caller share an event loop.

        Raises:
            EngineError: the engine does not run, or has no sockets.
        """
        ...

    def wrap_connections(self, wrap: Wrap | None) -> None:
        """Wrap every connection, open ones and later ones; None ends that."""
        ...

    def refuse(self, refusing: bool) -> None:
        """Have all connections refused, or (False) accept them again. The setting survives a restart."""
        ...

    def disconnect_all(self) -> None:
        """Write pending output and close the transport of every connection. Listeners stay open."""
        ...
