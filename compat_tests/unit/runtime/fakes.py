"""Stand-ins for what the runtime is given: connections, a clock, timers on it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakeamqp.model.operations import Operations
from fakeamqp.model.timers import Timers
from fakeamqp.runtime import RealClock, ThreadEngine
from fakeamqp.runtime.connection_driver import OPEN
from fakeamqp.runtime.thread.listener import ThreadListener
from fakeamqp.runtime.tls import ServerTLS

SECONDS = 20
"""When a test that waits in vain gives up."""


@dataclass(eq=False)
class EchoConnection:
    """Speaks the simplest protocol: what comes in goes out again, piece by piece."""

    peer: Any
    notify: Callable[[Any], None]
    name: str = "echo"
    finished: bool = False
    reading: bool = True
    aborted: bool = False
    resets: bool = False
    occupied: bool = False
    paced: bool = False
    on_reset: Callable[[], None] | None = None
    received: bytearray = field(default_factory=bytearray)
    chunks: list[int] = field(default_factory=list)
    output: list[bytes] = field(default_factory=list)
    taken: list[list[bytes]] = field(default_factory=list)
    sent_bytes: int = 0
    eofs: int = 0

    def receive(self, data: bytes) -> None:
        self.received += data
        self.chunks.append(len(data))
        self.on_data(data)

    def on_data(self, data: bytes) -> None:
        self.write(data)

    def receive_eof(self) -> None:
        self.eofs += 1

    def pending(self) -> list[bytes]:
        output, self.output = self.output, []
        if output:
            self.taken.append(output)
        return output

    def sent(self, count: int) -> None:
        self.sent_bytes += count

    def next_deadline(self) -> float | None:
        return None

    def write(self, *pieces: bytes) -> None:
        self.output.extend(pieces)
        self.notify(self)

    def finish(self) -> None:
        self.finished = True
        self.notify(self)

    def set_reading(self, reading: bool) -> None:
        self.reading = reading
        self.notify(self)

    def abort(self) -> None:
        self.aborted = True
        self.notify(self)


class Echoes:
    """Accepts peers with one kind of connection and remembers them, oldest first."""

    def __init__(self, kind: type[EchoConnection] = EchoConnection) -> None:
        self.kind = kind
        self.accepted: list[EchoConnection] = []

    def __call__(self, peer: Any, notify: Callable[[Any], None]) -> EchoConnection:
        connection = self.kind(peer, notify)
        self.accepted.append(connection)
        return connection


class PortEngine(ThreadEngine):
    """An engine with the calls that only tests need."""

    def listen(
        self, host: str = "127.0.0.1", port: int = 0, *, tls: ServerTLS | None = None
    ) -> ThreadListener:
        return self.listen_on(host, port, tls=tls)[0]

    @property
    def listeners(self) -> tuple[ThreadListener, ...]:
        return tuple(each for each in self._listeners if not each._closed)

    @property
    def connections(self) -> list[Any]:
        """The connections with an open transport, oldest first."""
        with self.look():
            drivers = [] if self._loop is None else list(self._loop.drivers)
            return [driver.connection for driver in drivers if driver.state is OPEN]

    def client(self) -> socket.socket:
        """A connected socket that does not wait for ever."""
        client = self.connect_socketpair()
        client.settimeout(SECONDS)
        return client

    def wake(self) -> None:
        if self._loop is not None:
            self._loop.wake()


def real_engine(accept: Any, **options: Any) -> PortEngine:
    clock = RealClock()
    return PortEngine(clock, Timers(clock), accept, operations=Operations(), **options)
