"""The two sides of a proxied connection, as the runtime moves their bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.protocols.base.proxied.client_leg import ClientLeg

MOST_UNSENT = 1024 * 1024
"""Bytes for one side that make the proxy stop reading from the other side."""
MOST_WAITING = 16 * 1024
"""Bytes that may wait for the rest of a content: clients send each of its frames for itself."""
_TLS_ALERT = b"\x15\x03"
_WANTS_TLS = "if that port is one for TLS, give the proxy the URL with amqps://"


class Leg:
    """One side of a proxied connection, as the runtime sees it: see `fakeamqp.connection.Connection`."""

    occupied = False
    paced = False

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.finished: bool = False
        self.aborted: bool = False
        self.resets: bool = False
        self.unsent: int = 0
        """Bytes that the transport has not accepted yet."""
        self.other: Leg
        self.ended: bool = False
        """True once the peer has ended its side of the transport."""
        self._octets: list[bytes | memoryview] = []
        self._told = False
        """True if the runtime knows that there are bytes to send."""
        self._paused = False
        self._notify: Callable[[], object] = lambda: None

    def join(self, other: Leg) -> None:
        """Name the other leg."""
        self.other = other

    def has_ended(self) -> bool:
        """Note the end of the transport; returns whether it was known."""
        known, self.ended = self.ended, True
        return known

    @property
    def reading(self) -> bool:
        return not self._paused and self.other.unsent < MOST_UNSENT

    def pause(self, paused: bool) -> None:
        """Stop reading from the transport, or continue."""
        self._paused = paused
        self._notify()

    def write(self, octets: bytes, *, more: bool = False) -> None:
        """Add bytes to send. With `more`, they may wait for what completes a content."""
        if octets and not (self.finished or self.aborted):
            self.unsent += len(octets)
            self._octets.append(octets)
            if not self._told and not (more and self.unsent < MOST_WAITING):
                self._told = True
                self._notify()

    def pending(self) -> list[bytes | memoryview]:
        self._told = False
        octets, self._octets = self._octets, []
        return octets

    def sent(self, count: int) -> None:
        before, self.unsent = self.unsent, self.unsent - count
        if before >= MOST_UNSENT > self.unsent:
            self.other._notify()

    def end(self, *, reset: bool = False, at_once: bool = False) -> None:
        """End the transport: once all is sent, unless `at_once`."""
        self.resets = self.resets or reset
        self.finished = self.finished or not at_once
        self.aborted = self.aborted or at_once
        self._notify()

    def on_reset(self) -> None:
        """The peer has reset the transport: so does the other leg, when it ends."""
        self.other.resets = True

    def next_deadline(self) -> float | None:
        return None


class BrokerLeg(Leg):
    """The leg to the broker. What is written before it is connected waits."""

    def __init__(self, client: ClientLeg) -> None:
        super().__init__(f"{client.name} (to the broker)")
        self.heard: bool = False
        """True once the broker has sent something."""
        self.serve(client)

    def serve(self, client: ClientLeg) -> None:
        """Pass on for this client's leg from now on."""
        self._client = client
        self._cutter = client.new_cutter()
        self.join(client)
        client.join(self)

    def connected(self, notify: Callable[[], object]) -> None:
        """The transport is open; `notify` has the runtime look at the leg."""
        self._notify = notify
        notify()

    def receive(self, data: bytes) -> None:
        client = self._client
        if client.ended:  # It may still read; the connection is over for its views and the trace.
            client.write(self._cutter.rest() + data)
            return
        if not self.heard:
            self.heard = True
            client.stop_timer()
            if data.startswith(_TLS_ALERT) and not client.unknown:
                client.broker_refused(f"it answers with a TLS alert; {_WANTS_TLS}")
                return
        if client.unknown:
            client.write(data)
            return
        for frame_type, number, payload, octets in self._cutter.cut(data):
            if frame_type < 0:
                client.broker_sent_no_frame(octets, self._cutter.malformed)
            else:
                client.receive_from_broker(frame_type, number, payload, octets)
        client.pass_waiting()

    def receive_eof(self) -> None:
        if self.has_ended():
            return
        if not (self.heard or self._client.gone):
            self._client.broker_refused(f"it has closed the connection without an answer; {_WANTS_TLS}")
        else:
            self._client.broker_gone(self._cutter.rest())

    def refused(self, why: str) -> None:
        """There is no transport: the broker cannot be reached, or its TLS failed."""
        self.has_ended()
        self._client.broker_refused(why)

    def __repr__(self) -> str:
        return f"<BrokerLeg of {self._client.name}>"
