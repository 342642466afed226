"""The engine that runs a broker inside the event loop of its test.

Everything happens in callbacks of the loop and in calls of its coroutines: one thing at a time, so there is
no lock and no thread. A call from another thread is refused, as is a wait that would block the loop.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fakeamqp.errors import check_timeout
from fakeamqp.runtime.addresses import check_room, listen_on
from fakeamqp.runtime.clock import EngineClock, TimerQueue
from fakeamqp.runtime.engine_base import EngineBase
from fakeamqp.runtime.errors import EngineError
from fakeamqp.runtime.event_loop.clock import LoopClock
from fakeamqp.runtime.event_loop.listener import (
    LoopListener,
    NetworkListener,
    SocketListener,
    has_sockets,
    selector_of,
)
from fakeamqp.runtime.event_loop.stream import StreamTransport
from fakeamqp.runtime.event_loop.turns import LoopTurns
from fakeamqp.runtime.turns import Waiter

if TYPE_CHECKING:
    import socket

    from typing_extensions import Self

    from fakeamqp.runtime.connection_driver import Accept
    from fakeamqp.runtime.tls import ServerTLS
    from fakeamqp.runtime.turns import PendingOperations

__all__ = ["LoopEngine"]

# How long peers may take to read the last output when the broker stops, in seconds of the loop's time.
_STOP_SECONDS = 5.0
# The event loop has delivered what was under way when so many of its rounds in a row were without a turn, at
# the latest after the second number: peers may talk without end.
_SILENT_ROUNDS = 4
_MOST_ROUNDS = 256

T = TypeVar("T")


class LoopEngine(EngineBase):
    """The turns and the transports of one broker in an event loop.

    Args:
        clock: the broker's clock. The engine moves a `SteppedClock`.
        timers: the broker's timers, on that clock.
        accept: creates the sans-I/O connection for a new peer.
        transport_clock: the clock of the event loop, for handshakes and lingering streams.
        transport_timers: the timers on that clock; None if they are `timers`.
        operations: the broker's long operations, which turns carry out in slices.
        before_flush: called inside the engine before the output of a turn is written.
    """

    def __init__(
        self,
        clock: EngineClock,
        timers: TimerQueue,
        accept: Accept,
        *,
        transport_clock: LoopClock,
        transport_timers: TimerQueue | None = None,
        operations: PendingOperations | None = None,
        before_flush: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(
            clock,
            timers,
            accept,
            transport_clock,
            timers if transport_timers is None else transport_timers,
            operations,
            before_flush,
        )
        self._loop_clock = transport_clock
        self._thread = 0
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._loop: LoopTurns | None = None
        self._listeners: list[LoopListener] = []
        self._streams: set[StreamTransport] = set()
        """Those that the event loop has opened and not closed yet."""
        self._depth = 0
        self._settling = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        """Those that were handed to the event loop."""

    # -- life cycle

    @property
    def seed(self) -> int | str | None:
        """The seed of the event loop, if it is a simulation with a seed."""
        # Before the start, it is that of the caller.
        seed = getattr(asyncio._get_running_loop() or self._event_loop, "seed", None)
        return seed if isinstance(seed, (int, str)) else None

    @property
    def lateness(self) -> Callable[..., float] | None:
        """Draws how late something is, if the event loop is a simulation with a schedule."""
        return self._of_simulation("lateness")

    @property
    def name_connection(self) -> Callable[[str, str], object] | None:
        """Takes the addresses and the name of a connection, if the event loop is a simulation."""
        return self._of_simulation("name_connection")

    def _of_simulation(self, name: str) -> Callable[..., Any] | None:
        found = getattr(asyncio._get_running_loop() or self._event_loop, name, None)
        return found if callable(found) else None

    @property
    def _current(self) -> LoopTurns | None:
        return self._loop

    def start(self) -> None:
        """Serve the running event loop. Does nothing while the engine runs.

        Raises:
            EngineError: no event loop runs in this thread.
        """
        if self._loop is not None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise EngineError(
                "a broker with runtime='asyncio' starts inside an event loop: use `async with broker:` in a "
                "coroutine, or leave the argument out to have a broker with a thread of its own"
            ) from None
        self._thread = threading.get_ident()
        self._event_loop = loop
        self._loop_clock.attach(loop)
        self._loop = LoopTurns(loop, lambda: self._depth > 0, self._parts())
        self._loop.wrap = self._wrap
        if self.stepped is not None:
            self.stepped.attach(self.settle)
        self._loop.rest()

    def stop(self) -> None:
        """Write pending output, and close every port and connection. Idempotent.

        The event loop closes the streams afterwards: see `stopped`.
        """
        turns = self._loop
        if turns is None:
            return
        self._check_thread()
        if self.stepped is not None:
            self.stepped.detach()
        for listener in self._listeners:
            listener.close()
        self._listeners = []
        turns.close()
        self._turns_before += turns.turns
        self._loop = None
        self._loop_clock.detach()

    async def stopped(self) -> None:
        """Return when the event loop has closed all streams."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        closing = list(self._streams)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_all_lost(closing), _STOP_SECONDS)
        for stream in closing:
            if not stream.lost.is_set():
                stream.abort()
        await _all_lost(closing)

    # -- access

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread and self._loop is not None:
            raise EngineError(
                "this broker runs in the event loop of another thread; use it there "
                "(loop.call_soon_threadsafe), or make it with runtime='thread' to use it from any thread"
            )

    def __enter__(self) -> Self:
        """Enter: what peers send meanwhile is processed later. Reentrant."""
        return self._enter()

    def _enter(self, *, as_peer: bool = False) -> Self:
        """Enter; a new peer does so without an end of what is under way, as if a turn accepted it."""
        self._check_thread()
        self._depth += 1
        turns = self._loop
        if turns is not None and self._depth == 1 and not turns.in_turn:
            if not as_peer:
                if turns.operations.pending:
                    turns.finish_operations()
                turns.settle_late()
            if self.stepped is not None:
                self.stepped.follow(self.timers, self.failures.record, noticed=not self._settling)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """On the outermost level, write the output."""
        try:
            turns = self._loop
            if turns is not None and self._depth == 1 and not turns.in_turn:
                turns.leave()
        finally:
            self._depth -= 1

    @contextmanager
    def look(self) -> Iterator[None]:
        """Enter only to look at the broker."""
        self._check_thread()
        yield

    @contextmanager
    def released(self) -> Iterator[None]:
        """Does nothing: the event loop has one thread, so no other caller waits to enter."""
        yield

    def one_by_one(self) -> AbstractContextManager[None]:
        """Does nothing: the event loop has one thread."""
        return self.released()

    def in_turn(self) -> bool:
        """Whether the caller is inside a turn."""
        return self._loop is not None and self._loop.in_turn

    @contextmanager
    def in_slices(self) -> Iterator[Callable[[], None]]:
        """Inside the engine: do something long. The event loop waits for its end."""
        yield _nothing

    def carry_out(self, steps: Iterator[object]) -> None:
        """Inside the engine: carry out an operation. The event loop waits for its end."""
        for _ in steps:
            pass

    def take_input(self) -> None:
        """Inside the engine: process all input that the event loop has delivered, and write the output."""
        if self._loop is not None:
            self._loop.take_input()

    def settle(self) -> None:
        """Process what the event loop has delivered, at its time, and then follow the clock."""
        turns = self._loop
        if self.stepped is None or turns is None or self._depth or turns.in_turn:
            return
        if threading.get_ident() != self._thread:
            return
        self._settling = True
        try:
            with self:
                turns.take_input()
        finally:
            self._settling = False

    # -- waits

    def wait_until(self, predicate: Callable[[], object], timeout: float, every: float | None = None) -> bool:
        """Whether the predicate is true; if it is not, waiting would block the event loop.

        Raises:
            EngineError: it is not true, and `timeout` is not 0.
        """
        check_timeout(timeout)
        with self:
            if predicate():
                return True
        if self._loop is None or timeout <= 0:
            return False
        _refuse_to_block()

    async def wait_until_async(
        self, predicate: Callable[[], object], timeout: float, every: float | None = None
    ) -> bool:
        """The timeout is in seconds of the loop's time."""
        check_timeout(timeout)
        loop = asyncio.get_running_loop()
        decided = loop.create_future()

        def release() -> None:
            if not decided.done():
                decided.set_result(None)

        waiter = Waiter(predicate, release)
        with self:
            if waiter.check() or self._loop is None:
                return waiter.outcome
        self._loop.waiters.append(waiter)
        ends = loop.time() + timeout
        try:
            while (left := ends - loop.time()) > 0:
                await asyncio.wait([decided], timeout=left if every is None else min(every, left))
                if decided.done():
                    break
                if loop.time() < ends:
                    with self:
                        pass  # Leaving the engine evaluates the predicates.
        finally:
            if self._loop is not None and waiter in self._loop.waiters:
                self._loop.waiters.remove(waiter)
        if not waiter.holds and waiter.error is None:
            with self:
                waiter.check()
        return waiter.outcome

    def give_peers_time(self, predicate: Callable[[], object], timeout: float) -> None:
        """Nothing: peers cannot go on before the caller returns to the event loop."""

    async def call_async(self, function: Callable[[], T]) -> T:
        await self._let_bytes_arrive()
        try:
            return function()
        finally:
            await self._let_bytes_arrive()

    async def _let_bytes_arrive(self) -> None:
        """Let the event loop deliver what is under way, until it has nothing more for the broker."""
        silent = 0
        for _ in range(_MOST_ROUNDS):
            before = self.turns
            await asyncio.sleep(0)
            silent = 0 if self.turns != before else silent + 1
            if silent == _SILENT_ROUNDS:
                return

    # -- peers

    async def listen_on(
        self, host: str, port: int = 0, *, tls: ServerTLS | None = None
    ) -> tuple[LoopListener, ...]:
        """Listen on a port; `localhost` is 127.0.0.1 and, where the machine has it, ::1.

        Raises:
            PortInUse: another socket uses the port.
            CannotListen: the address is not one of this machine, or not usable.
            EngineError: the engine does not run, or its event loop has no way to make connections.
        """
        _, loop = self._served()

        in_network = not has_sockets(loop)

        def welcome() -> StreamTransport:
            return self._welcome(tls, in_network=in_network)

        def listen(address: str, wanted: int) -> LoopListener:
            return SocketListener(
                loop,
                welcome,
                lambda sock: self._adopt(sock, tls),
                self._run,
                address,
                wanted,
                refusing=self._refusing,
            )

        listeners: tuple[LoopListener, ...]
        if in_network:
            listeners = (NetworkListener(loop, welcome, host, port, refusing=self._refusing),)
        else:
            listeners = listen_on(listen, host, port)
        self._listeners += listeners
        for listener in listeners:
            await listener.serving()
        return listeners

    def _served(self) -> tuple[LoopTurns, asyncio.AbstractEventLoop]:
        if self._loop is None or self._event_loop is None:
            raise EngineError("the engine does not run; start the broker first")
        return self._loop, self._event_loop

    def _welcome(
        self,
        tls: ServerTLS | None = None,
        addresses: tuple[str, int, str, int] | None = None,
        sock: socket.socket | None = None,
        *,
        in_network: bool = False,
    ) -> StreamTransport:
        turns = self._loop

        def opened(stream: StreamTransport) -> None:
            from fakeamqp.runtime.connection_driver import ConnectionDriver

            self._streams.add(stream)
            if turns is None or turns is not self._loop:
                stream.abort()
                return
            peer_host, peer_port = stream.address("peername")
            if in_network:
                # Its machines are all this one, where user guest may log in.
                peer_host = "127.0.0.1"
            between = addresses or (peer_host, peer_port, *stream.address("sockname"))
            transport = stream if tls is None else tls.over(stream)
            driver = ConnectionDriver(turns, transport, self._accept, between)
            turns.adopt(stream, driver)
            self._enter(as_peer=True)
            try:
                driver.start()
            except Exception as error:
                turns.give_up_on(driver, "accepting", error)
            finally:
                self.__exit__(None, None, None)

        def ready(stream: StreamTransport, mask: int) -> None:
            if turns is not None:
                turns.ready(stream, mask)

        def lost(stream: StreamTransport) -> None:
            self._streams.discard(stream)
            if sock is not None:
                # The transport of a Proactor loop would shut the socket down before, which makes a usual end
                # of a reset, and fails after one by the peer, so that the socket stays open.
                sock.close()

        return StreamTransport(opened, ready, lost)

    def connect_socketpair(self) -> socket.socket:
        """A connected, non-blocking socket, such as for `asyncio.open_connection(sock=...)`.

        Raises:
            EngineError: the engine does not run, or its event loop has no sockets, or no room for one.
        """
        import socket

        _, loop = self._served()
        if not has_sockets(loop):
            raise EngineError("the event loop of this broker has no sockets; connect to broker.url instead")
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self._socketpairs += 1
        try:
            self._adopt(ours, None, ("socketpair", self._socketpairs, "socketpair", 0))
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return theirs

    def _adopt(
        self,
        sock: socket.socket,
        tls: ServerTLS | None,
        addresses: tuple[str, int, str, int] | None = None,
    ) -> None:
        """Serve an accepted socket, as soon as the event loop runs.

        Raises:
            SelectorFull: the event loop cannot watch it.
        """
        _, loop = self._served()
        check_room(selector_of(loop), sock, self._sockets)
        self._sockets.add(sock)

        async def connect() -> None:
            # A peer may have gone meanwhile.
            with suppress(OSError):
                await loop.connect_accepted_socket(lambda: self._welcome(tls, addresses, sock), sock)

        self._run(connect())

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task, which `stopped` waits for."""
        _, loop = self._served()
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def refuse(self, refusing: bool) -> None:
        """Have all connections refused, or (False) accept them again."""
        with self:
            self._refusing = refusing
            for listener in self._listeners:
                listener.refuse(refusing)

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"<LoopEngine {state} turns={self.turns}>"


def _nothing() -> None:
    pass


def _refuse_to_block() -> NoReturn:
    raise EngineError(
        "this call would wait in the event loop that the broker runs in, and the broker for its end; await "
        "the form for coroutines instead, such as `await broker.queue(...).wait_for_async(...)`"
    )


async def _all_lost(streams: list[StreamTransport]) -> None:
    for stream in streams:
        await stream.lost.wait()
