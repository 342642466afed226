"""The bytes that wait to be written to a client, and backpressure.

If a client does not read, the outbox first stops deliveries, so that messages wait in their queues and not
here. If other answers still accumulate, the broker stops handling the client's input too, from one frame to
the next.

The bodies of large messages are not copied: all outboxes refer to the same one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.subscription import Gate

if TYPE_CHECKING:
    from fakeamqp.model.memory import Charge
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.timers import Timer
    from fakeamqp.protocols.base.server_connection import ServerConnection

_LOOKS = 10
"""How often `SendTimeout` looks in each of its periods, so that it ends at most a tenth later."""


class Outbox:
    """The bytes that one connection has to send.

    `notify` is called when there are bytes to send, or when the backlog is over.
    """

    def __init__(self, connection: ServerConnection, notify: Callable[[], None]) -> None:
        self.gate: Gate = Gate()
        """Shut while deliveries are stopped."""
        self.used: bool = False
        """True if bytes were written since `Heartbeats` last set it to False."""
        self._connection = connection
        self._notify = notify
        self._octets: list[bytes | memoryview] = []
        self.deliveries: int = 0
        """How many of the bytes to send are a delivery each. Who writes one counts it."""
        self.deliveries_taken: int = 0
        """How many deliveries were taken last; 0 if anything else was."""
        self._large = False
        """Whether the bytes to send may contain large bodies."""
        self.backlogged: bool = False
        """True while so many bytes wait that the broker must not handle input of the client."""
        self.unsent: int = 0
        """Bytes that the transport has not accepted yet."""
        self.sent_bytes: int = 0
        """Bytes that the transport has accepted."""
        self._callbacks: deque[tuple[int, Callable[[], None]]] = deque()
        """Count of sent bytes -> callback, in ascending order."""
        self.shared: int = 0
        """Bytes of `unsent` that are charged with their messages."""
        self._shared_bodies: deque[tuple[int, Charge, int]] = deque()
        """For each message: count of sent bytes at its end, charge, and bytes of its body."""
        self._notified = False
        bounds = connection.broker.bounds
        self._delivery_limit = bounds.outbox_deliveries
        """Unsent bytes above which the connection gets no further deliveries."""
        self._read_limit = bounds.outbox_input
        """Unsent bytes from which on the broker neither handles nor reads the connection's input."""
        self.timeout: SendTimeout = SendTimeout(connection)

    def write(self, octets: bytes, past_tap: bool = False) -> None:
        """Add whole frames, or those that the tap returns for them."""
        tap = self._connection.broker.tap
        if tap is not None and not past_tap:
            octets = tap.sending(self._connection, octets)
            if not octets:
                return
        self._octets.append(octets)
        self.used = True
        self.unsent += len(octets)
        if self.unsent > self._delivery_limit:
            self._stop()
        if not self._notified:
            self.notify()

    def write_pieces(self, pieces: list[bytes | memoryview], message: Message | None = None) -> None:
        """Add whole frames in pieces, of which those that are views share the body of the message."""
        tap = self._connection.broker.tap
        if tap is not None:
            whole = b"".join(pieces)
            octets = tap.sending(self._connection, whole)
            if octets is not whole:
                if octets:
                    self.put(octets)
                return
        self._octets += pieces
        self._large = True
        self.used = True
        self.unsent += sum(map(len, pieces))
        shared = sum(len(each) for each in pieces if isinstance(each, memoryview))
        if message is not None and shared:
            # The charge of the message lasts until its body is sent.
            charge = self._connection.broker.memory.hold(message)
            self.shared += shared
            self._shared_bodies.append((self.sent_bytes + self.unsent, charge, shared))
        if self.unsent > self._delivery_limit:
            self._stop()
        if not self._notified:
            self.notify()

    def _stop(self) -> None:
        self.backlogged = self.unsent >= self._read_limit
        if self.gate.open:
            self.gate.shut()
            self.timeout.start()

    def put(self, octets: bytes) -> None:
        """Add bytes without showing them to the tap."""
        # The rare case pays for the additional call.
        self.write(octets, past_tap=True)

    def take(self) -> list[bytes | memoryview]:
        """Remove and return all bytes to send, in order. The first piece is a view if any may be."""
        octets, self._octets = self._octets, []
        self.deliveries_taken = self.deliveries if self.deliveries == len(octets) else 0
        self.deliveries = 0
        self._notified = False
        if self._large:
            self._large = False
            if octets:
                octets[0] = memoryview(octets[0])
        return octets

    def sent(self, count: int) -> None:
        """Count bytes that the transport accepted. Below half of the limit, deliveries continue."""
        self.unsent -= count
        self.sent_bytes += count
        while self._callbacks and self._callbacks[0][0] <= self.sent_bytes:
            self._callbacks.popleft()[1]()
        while self._shared_bodies and self._shared_bodies[0][0] <= self.sent_bytes:
            self.shared -= self._shared_bodies.popleft()[2]
        if self.backlogged and self.unsent < self._read_limit:
            self.backlogged = False
            self.notify()
        if not self.gate.open and self.unsent < self._delivery_limit // 2:
            self.gate.reopen()

    def when_sent(self, act: Callable[[], None]) -> None:
        """Call `act` once the transport has accepted all bytes written so far; there must be some."""
        self._callbacks.append((self.sent_bytes + self.unsent, act))

    def notify(self) -> None:
        """Have the runtime check this connection at the end of the turn."""
        self._notified = True
        self._notify()


class SendTimeout:
    """Aborts a connection whose client takes no output for `Personality.send_timeout` seconds.

    It runs on the client's clock, while so much output waits that deliveries are stopped. The time does not
    count in which the broker was too busy to send.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._timer: Timer | None = None
        self._taken = 0
        """How many bytes the client had taken at the last look."""
        self._looks = 0
        """How many looks in a row found no more."""
        self._busy = 0.0
        """How long the broker had been busy in all when the client took something, or when time was added."""

    def start(self) -> None:
        """Deliveries are stopped. Does nothing while it runs."""
        if self._timer is None and self._connection.personality.send_timeout:
            self._begin()
            self._set_timer()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._taken = self._connection.outbox.sent_bytes
        self._looks = 0
        self._busy = self._connection.broker.operations.busy_seconds

    def _set_timer(self, more: float = 0.0) -> None:
        delay = more or self._connection.personality.send_timeout / _LOOKS
        what = "checks for output that its client took"
        self._timer = self._connection.after_by_peer_clock(delay, self._look, what)

    def _look(self) -> None:
        self._timer = None
        outbox = self._connection.outbox
        if outbox.gate.open:
            return
        if outbox.sent_bytes != self._taken:
            self._begin()
        else:
            self._looks += 1
        if self._looks < _LOOKS:
            self._set_timer()
        elif busy := self._connection.broker.operations.busy_seconds - self._busy:
            self._busy += busy
            self._set_timer(busy)
        else:
            seconds = self._connection.personality.send_timeout
            self._connection.abort(f"the client took no output for {seconds:g} s")
