"""The engine that runs a broker inside the event loop of its test.

Everything happens in callbacks of the loop and in calls of its coroutines: one thing at a time, so there is
no lock and no thread. A call from another thread is refused, as is a wait that would block the loop.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fakeamqp.errors import check_timeout
from fakeamqp.runtime.addresses import check_room, listen_on
from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.engine import Engine
from fakeamqp.runtime.errors import EngineError
from fakeamqp.runtime.event_loop.listener import NetworkListener, SocketListener, has_sockets, selector_of
from fakeamqp.runtime.event_loop.stream import StreamTransport
from fakeamqp.runtime.event_loop.turns import LoopTurns
from fakeamqp.runtime.turns import Waiter

if TYPE_CHECKING:
    import socket

    from typing_extensions import Self

    from fakeamqp.model.operations import Operations
    from fakeamqp.model.timers import Timers, TimeSource
    from fakeamqp.runtime.connection_driver import Accept, ConnectionDriver
    from fakeamqp.runtime.dialing import DialedConnection, Target
    from fakeamqp.runtime.listener import Listener
    from fakeamqp.runtime.tls import ServerTLS

# How long peers may take to read the last output when the broker stops, in seconds of the loop's time.
_STOP_SECONDS = 5.0
# The event loop has delivered what was under way when so many of its rounds in a row were without a turn, at
# the latest after the second number: peers may talk without end.
_SILENT_ROUNDS = 4
_MOST_ROUNDS = 256

T = TypeVar("T")


class LoopClock(RealClock):
    """Follows `loop.time()`, which a simulation moves as it likes. It stands still while it has no loop.

    `now()` begins at 0.0, and continues where it was when the broker starts again in another loop.
    """

    def __init__(self) -> None:
        self._started_at = _wall_time_of(asyncio._get_running_loop())
        """Wall time at `now()` 0.0."""
        self._now = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._offset = 0.0

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is None and not self._now:
            self._started_at = _wall_time_of(loop)
        self._loop = loop
        self._offset = self._now - loop.time()

    def detach(self) -> None:
        self._now = self.now()
        self._loop = None

    def now(self) -> float:
        """Seconds of the loop's time since the broker was first started."""
        loop = self._loop
        return self._now if loop is None else self._offset + loop.time()

    def time(self) -> float:
        """Wall time in seconds since the epoch: that of the first start, and what has passed on the loop's
        clock since then.
        """
        return self._started_at + self.now()

    def __repr__(self) -> str:
        return f"<LoopClock {self.now():g}>"


def _wall_time_of(loop: asyncio.AbstractEventLoop | None) -> float:
    """Seconds since the epoch. A simulation has a wall clock of its own."""
    found: float = getattr(loop, "wall_time", RealClock().time)()
    return found


class LoopEngine(Engine):
    """The turns and the transports of one broker in an event loop; `transport_clock` follows this loop."""

    _loop: LoopTurns | None = None
    _listeners: tuple[Listener, ...] = ()

    def __init__(
        self,
        clock: TimeSource,
        timers: Timers,
        accept: Accept,
        *,
        operations: Operations,
        transport_clock: LoopClock,
        transport_timers: Timers,
        before_flush: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(clock, timers, accept, transport_clock, transport_timers, operations, before_flush)
        self._loop_clock = transport_clock
        self._thread = 0
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._streams: set[StreamTransport] = set()
        """Those that the event loop has opened and not closed yet."""
        self._depth = 0
        self._settling = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._dials: set[asyncio.Task[None]] = set()
        """Those of the tasks that connect to other brokers."""
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        """Those that were handed to the event loop."""

    # -- life cycle

    @property
    def seed(self) -> int | str | None:
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

    def start(self) -> None:
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
        self._loop = LoopTurns(loop, lambda: self._depth > 0, self)
        self._loop.wrap = self._wrap
        if self.stepped is not None:
            self.stepped.attach(self.settle)
        self._loop.rest()

    def stop(self) -> None:
        turns = self._loop
        if turns is None:
            return
        self._check_thread()
        self._close(turns)
        self._loop_clock.detach()

    async def stopped(self) -> None:
        for task in self._dials:
            task.cancel()
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
                self.stepped.follow(noticed=not self._settling)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            turns = self._loop
            if turns is not None and self._depth == 1 and not turns.in_turn:
                turns.leave()
        finally:
            self._depth -= 1

    @contextmanager
    def look(self) -> Iterator[None]:
        self._check_thread()
        yield

    def in_turn(self) -> bool:
        return self._loop is not None and self._loop.in_turn

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
        check_timeout(timeout)
        with self:
            if predicate():
                return True
        if self._loop is None or timeout <= 0:
            return False
        raise EngineError(
            "this call would wait in the event loop that the broker runs in, and the broker for its end; "
            "await the form for coroutines instead, such as `await broker.queue(...).wait_for.aio(...)`"
        )

    async def wait_until_async(
        self, predicate: Callable[[], object], timeout: float, every: float | None = None
    ) -> bool:
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
    ) -> tuple[Listener, ...]:
        """Listen on a port. Raises EngineError if the event loop has no way to make connections."""
        loop = self._served_loop()
        in_network = not has_sockets(loop)

        def welcome() -> StreamTransport:
            return self._welcome(tls, in_network=in_network)

        def adopt(sock: socket.socket) -> None:
            self._adopt(sock, tls)

        def listen(address: str, wanted: int) -> SocketListener:
            return SocketListener(loop, welcome, adopt, self._run, address, wanted, refusing=self._refusing)

        if not in_network:
            listeners: tuple[Listener, ...] = listen_on(listen, host, port)
            self._listeners += listeners
            return listeners
        listener = NetworkListener(loop, welcome, host, port, refusing=self._refusing)
        self._listeners += (listener,)
        await listener.serving()
        return (listener,)

    def _served_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._event_loop is None:
            raise EngineError("the engine does not run; start the broker first")
        return self._event_loop

    def _welcome(
        self,
        tls: ServerTLS | None = None,
        addresses: tuple[str, int, str, int] | None = None,
        sock: socket.socket | None = None,
        *,
        in_network: bool = False,
    ) -> StreamTransport:
        def drive(turns: LoopTurns, stream: StreamTransport) -> ConnectionDriver:
            from fakeamqp.runtime.connection_driver import ConnectionDriver

            peer_host, peer_port = stream.address("peername")
            if in_network:
                # Its machines are all this one, where user guest may log in.
                peer_host = "127.0.0.1"
            between = addresses or (peer_host, peer_port, *stream.address("sockname"))
            return ConnectionDriver(turns, stream if tls is None else tls.over(stream), self._accept, between)

        def lost() -> None:
            if sock is not None:
                # The transport of a Proactor loop would shut the socket down before, which makes a usual end
                # of a reset, and fails after one by the peer, so that the socket stays open.
                sock.close()

        return self._stream(drive, lost)

    def _stream(
        self, drive: Callable[[LoopTurns, StreamTransport], ConnectionDriver], lost: Callable[[], object]
    ) -> StreamTransport:
        """A stream that gets its driver from `drive` once it is open."""
        turns = self._loop

        def opened(stream: StreamTransport) -> None:
            self._streams.add(stream)
            if turns is None or turns is not self._loop:
                stream.abort()
                return
            driver = drive(turns, stream)
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

        def ended(stream: StreamTransport) -> None:
            self._streams.discard(stream)
            lost()

        return StreamTransport(opened, ready, ended)

    def dial(self, targets: Sequence[Target], connection: DialedConnection) -> None:
        task = self._run(self._dial(targets, connection))
        self._dials.add(task)
        task.add_done_callback(self._dials.discard)

    async def _dial(self, targets: Sequence[Target], connection: DialedConnection) -> None:
        problems: list[str] = []
        for target in targets:
            problem = await self._connect(target, connection)
            if problem is None:
                return
            problems.append(f"{target}: {problem}")
        with self:
            connection.refused("; ".join(problems))

    async def _connect(self, target: Target, connection: DialedConnection) -> str | None:
        """Connect to a target. Returns why that is not possible."""
        from fakeamqp.runtime.connection_driver import HANDSHAKE_SECONDS

        loop = self._served_loop()
        decided: asyncio.Future[str | None] = loop.create_future()

        def decide(problem: str | None) -> None:
            if not decided.done():
                decided.set_result(problem)

        def drive(turns: LoopTurns, stream: StreamTransport) -> ConnectionDriver:
            from fakeamqp.runtime.dialing import DialingDriver

            return DialingDriver(turns, stream, connection, target, decide)

        stream = self._stream(drive, lambda: decide("the stream was lost"))
        try:
            connecting = loop.create_connection(lambda: stream, target.host, target.port)
            await asyncio.wait_for(connecting, HANDSHAKE_SECONDS)
        except asyncio.TimeoutError:
            return "no answer in time"
        except (OSError, UnicodeError) as error:  # A name that cannot be encoded is none.
            return str(error)
        return await decided

    def connect_socketpair(self) -> socket.socket:
        import socket

        loop = self._served_loop()
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
        """Serve an accepted socket, as soon as the event loop runs. Raises SelectorFull."""
        loop = self._served_loop()
        check_room(selector_of(loop), sock, self._sockets)
        self._sockets.add(sock)

        async def connect() -> None:
            # A peer may have gone meanwhile.
            with suppress(OSError):
                await loop.connect_accepted_socket(lambda: self._welcome(tls, addresses, sock), sock)

        self._run(connect())

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task, which `stopped` waits for."""
        loop = self._served_loop()
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _all_lost(streams: list[StreamTransport]) -> None:
    for stream in streams:
        await stream.lost.wait()
