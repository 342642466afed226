"""Out-of-band frames: their payloads travel over another transport (oob/format).

channel.open names the transport (oob/configured-by-open), which a test has registered. The connection carries
each frame without its payload, which keeps the order of all frames. A client may send methods and contents
either way. The broker sends contents and their methods out-of-band, and other methods on the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import ModelError, NotImplementedHere
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_BODY,
    FRAME_HEADER,
    FRAME_METHOD,
    FRAME_OOB_BODY,
    FRAME_OOB_HEADER,
    FRAME_OOB_METHOD,
)
from fakeamqp.protocols.amqp_0_9.registrations import Registrations
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_HEADER as HEADER, FRAME_OVERHEAD, frame
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message
    from fakeamqp.protocols.amqp_0_9.registrations import OutOfBandTransport
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

_PLACEHOLDERS = {
    FRAME_METHOD: FRAME_OOB_METHOD,
    FRAME_HEADER: FRAME_OOB_HEADER,
    FRAME_BODY: FRAME_OOB_BODY,
}


def agreed(connection: Amqp09Connection, name: str) -> OutOfBandTransport | None:
    """Return the transport that channel.open names; None if it names none, or one to be ignored."""
    if not name:
        return None
    transport = connection.broker.extensions[Registrations].transports.get(name)
    if transport is None and not connection.choices.as_in_rabbitmq:
        raise NotImplementedHere(f"there is no out-of-band transport '{name}'")
    return transport


def receive(connection: Amqp09Connection, frame_type: int, number: int, payload: bytes) -> None:
    """Process an out-of-band frame: take its payload from the transport, and handle it like any other frame.

    Source of its errors: oob/unconfigured.
    """
    channel = connection.channels.get(number)
    if channel is None or channel.transport is None:
        connection.method_index = 0
        raise ProtocolError(
            "frame-error", f"an out-of-band frame on channel {number}, which has no out-of-band transport"
        )
    if payload:
        connection.method_index = 0
        raise ProtocolError("frame-error", f"an out-of-band frame has no payload, got {len(payload)} bytes")
    octets = channel.transport.take()
    if octets is None:
        connection.method_index = 0
        raise ProtocolError("frame-error", "the payload of an out-of-band frame has not arrived")
    if frame_type == FRAME_OOB_METHOD:
        channel.receive_method(octets)
    elif frame_type == FRAME_OOB_HEADER:
        channel.receive_header(octets)
    else:
        channel.receive_body(octets)


def use(channel: Amqp09Channel, transport: OutOfBandTransport) -> None:
    """Make a channel use a transport."""
    channel.transport = transport
    channel.outbox = _Outbox(channel.connection, channel.number, transport)


class _Outbox:
    """Replaces the connection's outbox for contents, and sends them out-of-band."""

    def __init__(self, connection: Amqp09Connection, number: int, transport: OutOfBandTransport) -> None:
        self._connection = connection
        self._number = number
        self._transport = transport
        self._broken = False

    def write_pieces(self, pieces: list[bytes | memoryview], message: Message | None = None) -> None:
        """As `write`."""
        self.write(b"".join(pieces))

    def write(self, octets: bytes) -> None:
        """Send the payloads of whole frames over the transport, and the frames without payload."""
        if self._broken:
            return
        position = 0
        frames = []
        try:
            while position < len(octets):
                frame_type, number, size = HEADER.unpack_from(octets, position)
                following = position + FRAME_OVERHEAD + size
                placeholder = _PLACEHOLDERS.get(frame_type)
                if placeholder is None:  # A response frame before a content has no out-of-band form.
                    frames.append(octets[position:following])
                else:
                    self._transport.put(octets[following - size - 1 : following - 1])
                    frames.append(frame(placeholder, number, b""))
                position = following
        except ModelError as problem:
            # The close is deferred until the current dispatch returns.
            self._broken = True
            error = problem
            connection, number = self._connection, self._number
            connection.after(
                0,
                lambda: connection.fail(number, error),
                "closes after an error of its out-of-band transport",
            )
        self._connection.outbox.write(b"".join(frames))
