"""Out-of-band frames: what they say travels by another transport (oob/format).

Which one the client says when it opens a channel (oob/configured-by-open); a test has registered it. On the
connection goes the frame, without its payload, so that everything stays in order. The client sends its
methods and contents either way. To the client contents go out-of-band with their methods; all else does not.
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
from fakeamqp.protocols.framed.codec.frames import FRAME_HEADER as HEADER
from fakeamqp.protocols.framed.codec.frames import FRAME_OVERHEAD, frame
from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.registrations import OutOfBandTransport
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

__all__ = ["agreed", "receive", "use"]

_PLACEHOLDERS = {
    FRAME_METHOD: FRAME_OOB_METHOD,
    FRAME_HEADER: FRAME_OOB_HEADER,
    FRAME_BODY: FRAME_OOB_BODY,
}


def agreed(connection: Amqp09Connection, name: str) -> OutOfBandTransport | None:
    """The transport that channel.open asks for; None where it asks for none.

    Raises:
        NotImplementedHere: there is none of this name.
    """
    if not name:
        return None
    transport = connection.broker.extensions[Registrations].transports.get(name)
    if transport is None:
        raise NotImplementedHere(f"there is no out-of-band transport '{name}'")
    return transport


def receive(connection: Amqp09Connection, frame_type: int, number: int, payload: bytes) -> None:
    """An out-of-band frame has come: go on as if its payload had come with it.

    Raises:
        ProtocolError: the channel was not opened with a transport for it (oob/unconfigured), or the transport
            has no payload for it, or there is one in the frame.
    """
    channel = connection.channels.get(number)
    if channel is None or channel.transport is None:
        connection.note_method(0)
        raise ProtocolError(
            "frame-error", f"an out-of-band frame on channel {number}, which has no out-of-band transport"
        )
    if payload:
        connection.note_method(0)
        raise ProtocolError("frame-error", f"an out-of-band frame has no payload, got {len(payload)} bytes")
    octets = channel.transport.take()
    if octets is None:
        connection.note_method(0)
        raise ProtocolError("frame-error", "the payload of an out-of-band frame has not come")
    if frame_type == FRAME_OOB_METHOD:
        channel.receive_method(octets)
    elif frame_type == FRAME_OOB_HEADER:
        channel.receive_header(octets)
    else:
        channel.receive_body(octets)


def use(channel: Amqp09Channel, transport: OutOfBandTransport) -> None:
    """Have a channel use a transport."""
    channel.transport = transport
    channel.outbox = _Outbox(channel.connection, channel.number, transport)


class _Outbox:
    """Takes contents for the client in place of the connection's outbox, and has them go out-of-band."""

    def __init__(self, connection: Amqp09Connection, number: int, transport: OutOfBandTransport) -> None:
        self._connection = connection
        self._number = number
        self._transport = transport
        self._broken = False

    def write(self, octets: bytes) -> None:
        """Add whole frames: their payloads go by the transport, and they themselves without."""
        if self._broken:
            return
        position = 0
        frames = []
        try:
            while position < len(octets):
                frame_type, number, size = HEADER.unpack_from(octets, position)
                following = position + FRAME_OVERHEAD + size
                placeholder = _PLACEHOLDERS.get(frame_type)
                if placeholder is None:  # The response that a content follows: there is no such frame.
                    frames.append(octets[position:following])
                else:
                    self._transport.put(octets[following - size - 1 : following - 1])
                    frames.append(frame(placeholder, number, b""))
                position = following
        except ModelError as problem:
            # Whoever delivers is in the middle of something: the end has to wait until that is done.
            self._broken = True
            error = problem
            connection, number = self._connection, self._number
            connection.after(0, lambda: connection.fail(number, error), "ends with its out-of-band transport")
        self._connection.outbox.write(b"".join(frames))
