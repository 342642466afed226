"""The ways to a broker: to one in this process without a socket, and to one at a URL."""

from __future__ import annotations

import asyncio
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.connection import PeerAddress
from fakeamqp.faults.next_tap import NullTap
from fakeamqp.inspect.hints import loop_hint, wait_report
from fakeamqp.portable.errors import NotAnswered
from fakeamqp.protocols.negotiation import accept
from fakeamqp.replay.target import remote_broker

if TYPE_CHECKING:
    from fakeamqp.broker import Broker
    from fakeamqp.replay.peer import Login
    from fakeamqp.trace import Recorder

__all__ = ["Line", "Route", "ToBroker", "ToURL"]

_PATIENCE = 10.0
"""Seconds within which a broker must answer a request."""
_PAUSES = (0.005, 0.01, 0.02, 0.05)
"""Seconds between the questions to a broker at a URL; the last one goes on."""
_READ = 64 << 10


class Line(Protocol):
    """A connection without its protocol."""

    @property
    def ended(self) -> bool:
        """Whether the broker has ended it since the last answer, or has been reset."""

    def send(self, octets: bytes) -> None:
        """Send bytes."""

    def receive(self) -> bytes:
        """The bytes that come next; b"" once the broker has ended the connection.

        Raises:
            NotAnswered: none come.
        """

    def close(self) -> None:
        """Close without a word."""


class Route(Protocol):
    """The way to a broker.

    Attributes:
        login: the account, and the virtual host of the URL.
        lock: held during a request. Conditions of `wait_until` are evaluated with it.
    """

    login: Login

    @property
    def lock(self) -> AbstractContextManager[object]:
        """See above."""

    @property
    def running(self) -> bool:
        """Whether the broker runs, as far as that can be known."""

    def connect(self) -> Line:
        """A new connection.

        Raises:
            NotAnswered: the broker does not run.
            NoBroker: there is no broker at the URL.
        """

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition about the broker holds, at most `timeout` seconds; whether it did."""

    async def wait_until_async(self, holds: Callable[[], bool], timeout: float) -> bool:
        """`wait_until` for coroutines: it does not block the event loop."""

    def hint(self, awaitable: str) -> str:
        """What to add to the error of a wait that has timed out; see `fakeamqp.inspect.hints`."""


class ToBroker:
    """The way to a broker in this process, whatever runs it and whatever its clock is.

    No socket is used, so that nothing has to run meanwhile: neither a thread nor an event loop. Frames pass
    neither faults nor the trace, and the connection is in no list: it belongs to the test, not to the app.

    Args:
        broker: the broker.
        url: its URL, with the account and the virtual host.
    """

    def __init__(self, broker: Broker, url: str) -> None:
        self._broker = broker
        self.login = remote_broker(url, _PATIENCE).login

    @property
    def lock(self) -> AbstractContextManager[object]:
        """That of the engine, which the broker's thread holds where it evaluates a condition."""
        return self._broker._engine

    @property
    def running(self) -> bool:
        """See `Route`, here and below."""
        return self._broker.running

    def connect(self) -> InProcessLine:
        """Inside the engine."""
        if not self.running:
            raise NotAnswered("the broker of the test does not run; start it first")
        return InProcessLine(self._broker)

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Evaluates the condition after each turn of the broker."""
        return self._broker._engine.wait_until(holds, timeout)

    async def wait_until_async(self, holds: Callable[[], bool], timeout: float) -> bool:
        """The same in the event loop."""
        return await self._broker._engine.wait_until_async(holds, timeout)

    def hint(self, awaitable: str) -> str:
        """What holds the broker up, what it holds, and the latest events."""
        return self._broker._reader.read(lambda state: wait_report(state, awaitable))


class InProcessLine:
    """A connection to a broker in this process that hands bytes over in calls, inside the engine."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._state = broker._state
        peer = PeerAddress("amqp_queue", 0, "broker")
        apart: Any = _Apart(broker)
        self._connection: Any = accept(apart, peer, lambda _: None)

    @property
    def ended(self) -> bool:
        """A reset makes other virtual hosts of the same names."""
        opened = self._connection.chosen.virtual_host
        known = opened is not None and self._state.virtual_hosts.get(opened.name) is opened
        return not (known and self._broker.running)

    def send(self, octets: bytes) -> None:
        """See `Line`, here and below."""
        self._connection.receive(octets)

    def receive(self) -> bytes:
        """What the broker has answered: at once, or at the end of a long operation."""
        octets = self._pending()
        if not octets:
            self._state.operations.finish()
            octets = self._pending()
        if not octets and not (self._connection.finished or self._connection.aborted):
            raise NotAnswered("the broker of the test has not answered")
        return octets

    def _pending(self) -> bytes:
        octets = b"".join(self._connection.pending())
        self._connection.sent(len(octets))
        return octets

    def close(self) -> None:
        """End the transport."""
        self._connection.receive_eof()


class _Apart:
    """The state of a broker for one connection that is in no list, and whose frames pass no other tap."""

    def __init__(self, broker: Broker) -> None:
        self._state = broker._state
        self.tap = _Taken(broker._recorder)
        self.connections: dict[object, None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


class _Taken(NullTap):
    """Tells the trace of the messages that the connection takes, so that it shows where they went."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder

    def delivered(self, *facts: Any) -> None:
        """See `Tap`."""
        if self._recorder is not None:
            self._recorder.delivered(*facts)


class ToURL:
    """The way to a broker at a URL, over a socket.

    Args:
        url: of the broker; amqps uses the certificate authorities that Python trusts.
    """

    def __init__(self, url: str) -> None:
        self._target = remote_broker(url, _PATIENCE)
        self.login = self._target.login
        self._lock = threading.RLock()

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Threads of a test wait for each other."""
        return self._lock

    @property
    def running(self) -> bool:
        """See `Route`, here and below."""
        return True

    def connect(self) -> SocketLine:
        """A socket."""
        return SocketLine(self._target.connect())

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Asks again and again."""
        ends = time.monotonic() + timeout
        pauses = _pauses()
        while not holds():
            if (left := ends - time.monotonic()) <= 0:
                return False
            time.sleep(min(next(pauses), left))
        return True

    async def wait_until_async(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Asks in another thread."""
        ends = time.monotonic() + timeout
        pauses = _pauses()
        while not await asyncio.to_thread(holds):
            if (left := ends - time.monotonic()) <= 0:
                return False
            await asyncio.sleep(min(next(pauses), left))
        return True

    def hint(self, awaitable: str) -> str:
        """Whether the wait has blocked the event loop."""
        said = loop_hint(awaitable) if awaitable else ""
        return said and f"\n{said}"


def _pauses() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]


class SocketLine:
    """A connection over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock

    @property
    def ended(self) -> bool:
        """Between two requests a broker sends a close, or ends the stream; anything else is not expected."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    def send(self, octets: bytes) -> None:
        """See `Line`, here and below."""
        try:
            self._socket.sendall(octets)
        except OSError as error:
            raise NotAnswered(f"the broker has ended the connection: {error}") from None

    def receive(self) -> bytes:
        """Waits for bytes."""
        try:
            return self._socket.recv(_READ)
        except TimeoutError:
            raise NotAnswered(f"the broker has not answered within {_PATIENCE:g} s") from None
        except OSError:
            return b""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
