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
from fakeamqp.protocols.base.handshake_timeout import HandshakeTimeout
from fakeamqp.protocols.base.limited_log import HandshakeLog
from fakeamqp.protocols.base.pending_handshakes import PendingHandshakes

__all__ = ["Negotiation", "accept"]

_HANDSHAKE_TIMEOUT = 10.0

_HINTS = (
    (b"GET ", "this looks like an HTTP request; this port speaks AMQP"),
    (b"POST", "this looks like an HTTP request; this port speaks AMQP"),
    (b"\x16\x03", "this looks like a TLS hello; this port speaks plain AMQP (use Broker(tls=True) for TLS)"),
    (b"AMQP\x00\x01", "AMQP 1.0 is not supported"),
    (b"AMQP\x03", "AMQP 1.0 (SASL) is not supported"),
)


class Negotiation:
    """A connection that reads the protocol header, then delegates to the connection of that protocol."""

    def __init__(self, state: BrokerState, peer: PeerAddress, notify: Callable[[Connection], None]) -> None:
        self._state = state
        self._peer = peer
        self._notify = notify
        self._octets = b""
        self._answer: list[bytes | memoryview] = []
        self._refused = False
        self._lost = False
        self._chosen: Connection | None = None
        self._handshake_timeout = HandshakeTimeout(
            state,
            _HANDSHAKE_TIMEOUT,
            f"connection {peer.name} closes without a protocol header",
            self._give_up,
        )
        self._pending = state.extensions[PendingHandshakes]
        self._pending.begin(self, peer.name)

    def __repr__(self) -> str:
        return f"<Negotiation {self.name}>" if self._chosen is None else repr(self._chosen)

    @property
    def chosen(self) -> Connection | None:
        """The connection of the protocol; None until the header is complete."""
        return self._chosen

    @property
    def name(self) -> str:
        return self._peer.name

    @property
    def finished(self) -> bool:
        return self._refused if self._chosen is None else self._chosen.finished

    @property
    def reading(self) -> bool:
        return True if self._chosen is None else self._chosen.reading

    @property
    def occupied(self) -> bool:
        return self._chosen is not None and self._chosen.occupied

    @property
    def aborted(self) -> bool:
        return self._lost if self._chosen is None else self._chosen.aborted

    @property
    def resets(self) -> bool:
        return False if self._chosen is None else self._chosen.resets

    def receive(self, data: bytes) -> None:
        if self._chosen is not None:
            self._chosen.receive(data)
            return
        if self._refused or self._lost:
            return
        octets = self._octets = self._octets + data
        if len(octets) < 8:
            # The first four bytes show whether this can become a protocol header.
            if not (b"AMQP".startswith(octets[:4]) or self._state.personality.awaits_whole_header):
                self._refuse(octets)
            return
        row = registry.by_header(octets[:8])
        if row is None:
            self._refuse(octets)
            return
        self._handshake_timeout.cancel()
        self._pending.end(self)
        self._octets = b""
        self._chosen = row.connection(self._state, self._peer, lambda _: self._notify(self), octets[:8])
        if len(octets) > 8:
            self._chosen.receive(octets[8:])

    def receive_eof(self) -> None:
        self._handshake_timeout.cancel()
        self._pending.end(self)
        if self._chosen is not None:
            self._chosen.receive_eof()
        else:
            self._lost = True

    def pending(self) -> list[bytes | memoryview]:
        if self._chosen is not None:
            return self._chosen.pending()
        answer, self._answer = self._answer, []
        return answer

    def sent(self, count: int) -> None:
        if self._chosen is not None:
            self._chosen.sent(count)

    def next_deadline(self) -> float | None:
        if self._chosen is not None:
            return self._chosen.next_deadline()
        return self._handshake_timeout.due

    def _refuse(self, octets: bytes) -> None:
        hint = next((f": {hint}" for start, hint in _HINTS if octets.startswith(start)), "")
        log = self._state.extensions[HandshakeLog]
        log.warning("%s sent %r instead of a protocol header%s", self._peer.name, octets[:8], hint)
        self._handshake_timeout.cancel()
        self._pending.end(self)
        if self._state.tap is not None:
            sent = f"it sent {octets[:8]!r} instead of a protocol header{hint}"
            self._state.tap.connection(self._peer.name, "refused", sent)
        self._refused = True
        self._answer.append(_answer_to(octets, self._state.personality))
        self._notify(self)

    def _give_up(self) -> None:
        log = self._state.extensions[HandshakeLog]
        log.warning("%s sent no protocol header within %g seconds", self._peer.name, _HANDSHAKE_TIMEOUT)
        self._lost = True
        self._pending.end(self)
        if self._state.tap is not None:
            late = f"it sent no protocol header within {_HANDSHAKE_TIMEOUT:g} seconds"
            self._state.tap.connection(self._peer.name, "refused", late)
        self._notify(self)

    def give_way(self) -> None:
        self._handshake_timeout.cancel()
        self._lost = True
        if self._state.tap is not None:
            self._state.tap.connection(self._peer.name, "refused", "too many connections have not logged in")
        self._notify(self)


def _answer_to(octets: bytes, personality: Personality) -> bytes:
    """The protocol header for a client that sent no known one; later versions of 0-9-1 get that of 0-9-1."""
    if octets.startswith(b"AMQP\0\0") and octets[6] >= 9:
        return registry.PROTOCOLS[0].headers[0]
    return personality.header_for_others


def accept(state: BrokerState, peer: PeerAddress, notify: Callable[[Connection], None]) -> Connection:
    """Return a connection for a transport that has just been opened.

    The connection calls `notify`, inside the engine, when it has bytes to send, has started or stopped
    reading, has finished or has aborted.
    """
    return Negotiation(state, peer, notify)
