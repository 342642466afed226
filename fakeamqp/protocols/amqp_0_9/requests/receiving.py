"""Dispatch of received request and response frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST
from fakeamqp.protocols.amqp_0_9.codec.requests import decode_request
from fakeamqp.protocols.amqp_0_9.requests.channel_state import Requests
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

__all__ = ["receive"]


def receive(connection: Amqp09Connection, frame_type: int, number: int, payload: bytes) -> None:
    """Pass a request or a response to its channel.

    Raises:
        ProtocolError: the channel is not open; or see `Requests.receive_request` and `receive_response`.
    """
    if connection.state is ConnectionState.CLOSING:
        return
    channel = connection.channels.get(number)
    if channel is None:
        _receive_without_channel(connection, frame_type, number, payload)
    elif frame_type == FRAME_REQUEST:
        channel.class_state(Requests).receive_request(payload)
    else:
        channel.class_state(Requests).receive_response(payload)


def _receive_without_channel(
    connection: Amqp09Connection, frame_type: int, number: int, payload: bytes
) -> None:
    """Process a frame for channel 0, or for a channel that is not open: a request can open it."""
    connection.method_index = 0
    if number == 0:
        raise ProtocolError(
            "channel-error",
            f"expected a method frame on channel 0, got a frame of type {frame_type}",
        )
    if connection.state is not ConnectionState.OPEN:
        raise ProtocolError(
            "unexpected-frame", f"a frame of type {frame_type} on channel {number} before connection.open"
        )
    if frame_type != FRAME_REQUEST:
        raise ProtocolError("channel-error", f"a response on channel {number}, which is not open")
    request = decode_request(payload)
    method = connection.decode(request.method)
    if isinstance(method, m.ChannelResume):
        # The request numbers of the resumed channel continue, so this request has no legal number.
        raise ProtocolError("command-invalid", "channel.resume must not be sent in a request")
    connection.opening_request = request
    try:
        connection.open_channel(number, method)
    finally:
        connection.opening_request = None
