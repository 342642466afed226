"""The protocol header selects the protocol of a new connection (0-9-1/protocol-header/*).

A client first sends eight bytes. The registry's row for this header creates the connection. To any other
header the broker answers with a header that the personality chooses, and closes the transport.
"""

from __future__ import annotations

from collections.abc import Callable

from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.model.personality import Personality
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols import registry
from fakeamqp.protocols.base.handshakes import HandshakeLog, HandshakeTimeout, PendingHandshakes, no_header

_HANDSHAKE_TIMEOUT = 10.0


class Negotiation:
    """A connection that reads the protocol header, and makes the connection of that protocol.

    It passes that to `notify`; from then on nothing calls the negotiation.
    """

    reading = True
    occupied = False
    paced = False
    on_reset = None
    resets = False

    def __init__(self, state: BrokerState, peer: PeerAddress, notify: Callable[[Connection], None]) -> None:
        self.name: str = peer.name
        self.finished: bool = False
        self.aborted: bool = False
        self._state = state
        self._peer = peer
        self._notify = notify
        self._octets = b""
        self._answer: list[bytes | memoryview] = []
        self._timeout = HandshakeTimeout(
            state,
            _HANDSHAKE_TIMEOUT,
            f"connection {peer.name} closes without a protocol header",
            self._time_out,
        )
        self._pending = state.extensions[PendingHandshakes]
        self._pending.begin(self, peer.name, self._give_up)

    def __repr__(self) -> str:
        return f"<Negotiation {self.name}>"

    def receive(self, data: bytes) -> None:
        if self.finished or self.aborted:
            return
        octets = self._octets = self._octets + data
        if len(octets) < 8:
            # The first four bytes show whether this can become a protocol header.
            if not (b"AMQP".startswith(octets[:4]) or self._state.personality.awaits_whole_header):
                self._refuse(octets)
            return
        row = registry.by_header(octets[:8])
        if row is None or row.name in self._state.personality.unspoken_protocols:
            self._refuse(octets)
            return
        self._end()
        connection = row.connection(self._state, self._peer, self._notify, octets[:8])
        self._notify(connection)
        if len(octets) > 8:
            connection.receive(octets[8:])

    def receive_eof(self) -> None:
        self._end()
        self.aborted = True

    def pending(self) -> list[bytes | memoryview]:
        answer, self._answer = self._answer, []
        return answer

    def sent(self, count: int) -> None:
        """Nothing depends on when the answer is sent."""

    def next_deadline(self) -> float | None:
        return self._timeout.due

    def _time_out(self) -> None:
        late = f"sent no protocol header within {_HANDSHAKE_TIMEOUT:g} seconds"
        self._state.extensions[HandshakeLog].warning("%s %s", self.name, late)
        self._give_up(f"it {late}")

    def _give_up(self, why: str) -> None:
        self._end()
        self.aborted = True
        self._report(why)
        self._notify(self)

    def _refuse(self, octets: bytes) -> None:
        sent = no_header(octets)
        self._state.extensions[HandshakeLog].warning("%s %s", self.name, sent)
        self._end()
        self._report(f"it {sent}")
        self.finished = True
        self._answer.append(_answer_to(octets, self._state.personality))
        self._notify(self)

    def _end(self) -> None:
        self._timeout.cancel()
        self._pending.end(self)

    def _report(self, why: str) -> None:
        if self._state.tap is not None:
            self._state.tap.connection(self.name, "refused", why)


def _answer_to(octets: bytes, personality: Personality) -> bytes:
    """The protocol header for a client that sent no known one; later versions of 0-9-1 get that of 0-9-1."""
    if octets.startswith(b"AMQP\0\0") and octets[6] >= 9:
        return registry.PROTOCOLS[0].headers[0]
    return personality.header_for_others


def accept(state: BrokerState, peer: PeerAddress, notify: Callable[[Connection], None]) -> Connection:
    """Return a connection for a transport that has just been opened.

    It reads the protocol header. Then the connection of the protocol takes its place.

    Args:
        state: the broker.
        peer: the client's address.
        notify: called inside the engine, with the connection to use from now on: when it has taken the place
            of the one before, has bytes to send, has started or stopped reading, has finished or has aborted.
    """
    return Negotiation(state, peer, notify)
