"""Routes of portable queues to a broker in this process, or to one at a URL; errors of portable queues."""

from __future__ import annotations

import asyncio
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.connection import PeerAddress
from fakeamqp.errors import FakeAMQPError, check_timeout
from fakeamqp.faults.port import NullTap
from fakeamqp.inspect.hints import loop_hint, span, wait_report
from fakeamqp.protocols.negotiation import accept
from fakeamqp.replay.target import remote_broker

if TYPE_CHECKING:
    from fakeamqp.broker import Broker
    from fakeamqp.connection import Connection
    from fakeamqp.replay.target import ReplayLogin
    from fakeamqp.trace import Recorder


class BadQueue(FakeAMQPError, TypeError):
    """A queue cannot be declared like this: an argument is invalid, or contradicts another one."""

    __module__ = "fakeamqp.portable"


class RequestRefused(FakeAMQPError):
    """The broker refused a request.

    Attributes:
        code: the reply code, such as 404.
    """

    __module__ = "fakeamqp.portable"

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class NoAnswer(FakeAMQPError):
    """There was no answer: the broker does not run, or has closed the connection, or takes too long."""

    __module__ = "fakeamqp.portable"


_PATIENCE = 10.0
"""Seconds within which a broker must answer a request."""
_PAUSES = (0.005, 0.01, 0.02, 0.05)
"""Seconds between the requests of a wait to a broker at a URL; the last pause is repeated."""
_READ = 64 << 10


class ToBroker:
    """The way to a broker in this process, with any runtime and any clock.

    It uses no socket, so neither a thread nor an event loop has to run. Its frames bypass faults and the
    trace, and no list has its connection, which belongs to the test and not to the app.

    Args:
        broker: the broker.
        url: its URL, with the account and the virtual host.
    """

    def __init__(self, broker: Broker, url: str) -> None:
        self._broker = broker
        self.login: ReplayLogin = remote_broker(url, _PATIENCE).login
        self.lock: AbstractContextManager[object] = broker._engine
        """Held during a request. The broker's thread holds it while it evaluates a condition."""

    @property
    def running(self) -> bool:
        """Whether the broker runs."""
        return self._broker.running

    def connect(self) -> InProcessLine:
        """Open a connection inside the engine; raises NoAnswer if the broker does not run."""
        if not self.running:
            raise NoAnswer("the broker of the test does not run; start it first")
        return InProcessLine(self._broker)

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition holds after a turn of the broker; return whether it holds."""
        return self._broker._engine.wait_until(holds, timeout)

    async def wait_until_async(self, holds: Callable[[], bool], timeout: float) -> bool:
        """`wait_until` for coroutines: it does not block the event loop."""
        return await self._broker._engine.wait_until_async(holds, timeout)

    def span(self, timeout: float) -> str:
        """How long a wait was, for its error; the broker may have ended it early."""
        return self._broker._reader.read(lambda state: span(state, timeout))

    def hint(self, awaitable: str) -> str:
        """Lines for the error of a wait: hints, what the broker holds, and the latest events."""
        return self._broker._reader.read(lambda state: wait_report(state, awaitable))


class InProcessLine:
    """The bytes of a connection to a broker in this process. Its methods are called inside the engine."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._state = broker._state
        peer = PeerAddress("amqp_queue", 0, "broker")
        apart: Any = _Apart(broker)
        self._connection: Any = accept(apart, peer, self._use)

    def _use(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def ended(self) -> bool:
        """Whether the broker has ended the connection, or was reset."""
        # A reset replaces each virtual host by a new object of the same name.
        opened = self._connection.virtual_host
        known = opened is not None and self._state.virtual_hosts.get(opened.name) is opened
        return not (known and self._broker.running)

    def send(self, octets: bytes) -> None:
        """Send bytes."""
        self._connection.receive(octets)

    def receive(self) -> bytes:
        """The next bytes; b"" once the broker has ended the connection; raises NoAnswer without any."""
        octets = self._pending()
        if not octets:  # A long operation has not ended.
            self._state.operations.finish()
            octets = self._pending()
        if not octets and not (self._connection.finished or self._connection.aborted):
            raise NoAnswer("the broker of the test has not answered")
        return octets

    def _pending(self) -> bytes:
        octets = b"".join(self._connection.pending())
        self._connection.sent(len(octets))
        return octets

    def close(self) -> None:
        """Close the connection without sending connection.close."""
        self._connection.receive_eof()


class _Apart:
    """The state of a broker for one connection that no list has, and whose frames bypass the broker's tap."""

    def __init__(self, broker: Broker) -> None:
        self._state = broker._state
        self.tap = _Taken(broker._recorder)
        self.connections: dict[object, None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


class _Taken(NullTap):
    """Records in the trace the messages that the connection takes."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        """See `Tap.event`."""
        if event == "delivered" and self._recorder is not None:
            self._recorder.event(event, connection, message, *values)


class ToURL:
    """The way to a broker at a URL, over a socket.

    Args:
        url: of the broker; amqps uses the certificate authorities that Python trusts.
    """

    def __init__(self, url: str) -> None:
        self._target = remote_broker(url, _PATIENCE)
        self.login: ReplayLogin = self._target.login
        self.lock: AbstractContextManager[object] = threading.RLock()
        """Held during a request: those of a test's threads follow each other."""
        self.running: bool = True

    def connect(self) -> SocketLine:
        """Open a connection; raises NoBroker."""
        return SocketLine(self._target.connect())

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition holds, which is evaluated at intervals; return whether it holds."""
        check_timeout(timeout)
        ends = time.monotonic() + timeout
        pauses = chain(_PAUSES, repeat(_PAUSES[-1]))
        while not holds():
            if (left := ends - time.monotonic()) <= 0:
                return False
            time.sleep(min(next(pauses), left))
        return True

    async def wait_until_async(self, holds: Callable[[], bool], timeout: float) -> bool:
        """`wait_until` for coroutines: another thread evaluates the condition."""
        check_timeout(timeout)
        ends = time.monotonic() + timeout
        pauses = chain(_PAUSES, repeat(_PAUSES[-1]))
        while not await asyncio.to_thread(holds):
            if (left := ends - time.monotonic()) <= 0:
                return False
            await asyncio.sleep(min(next(pauses), left))
        return True

    def span(self, timeout: float) -> str:
        """How long a wait was, for its error."""
        return f"{timeout:g} s"

    def hint(self, awaitable: str) -> str:
        """A hint if the wait has blocked the event loop."""
        said = loop_hint(awaitable) if awaitable else ""
        return said and f"\n{said}"


class SocketLine:
    """The bytes of a connection over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock

    @property
    def ended(self) -> bool:
        """Whether the broker has ended the connection: between requests it sends nothing else."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    def send(self, octets: bytes) -> None:
        """Send bytes; raises NoAnswer."""
        try:
            self._socket.sendall(octets)
        except OSError as error:
            raise NoAnswer(f"the broker has ended the connection: {error}") from None

    def receive(self) -> bytes:
        """The next bytes; b"" once the broker has ended the connection; raises NoAnswer without any."""
        try:
            return self._socket.recv(_READ)
        except TimeoutError:
            raise NoAnswer(f"the broker has not answered within {_PATIENCE:g} s") from None
        except OSError:
            return b""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


BrokerRoute: TypeAlias = ToBroker | ToURL
"""The way to a broker."""
