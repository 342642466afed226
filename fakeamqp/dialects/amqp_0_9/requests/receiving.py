"""Where request and response frames go that have come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9.requests.room import Requests
from fakeamqp.dialects.amqp_0_9_x.replies import ProtocolError
from fakeamqp.dialects.connection_states import ConnectionState
from fakeamqp.wire.amqp_0_9 import methods as m
from fakeamqp.wire.amqp_0_9.constants import FRAME_REQUEST
from fakeamqp.wire.amqp_0_9.requests import decode_request

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.endpoint import Endpoint

__all__ = ["receive"]


def receive(endpoint: Endpoint, frame_type: int, number: int, payload: bytes) -> None:
    """A request or a response has come.

    Raises:
        ProtocolError: there is no such channel; or see `Requests.receive_request` and `receive_response`.
    """
    if endpoint.state is ConnectionState.CLOSING:
        return
    channel = endpoint.channels.get(number)
    if channel is None:
        _receive_elsewhere(endpoint, frame_type, number, payload)
    elif frame_type == FRAME_REQUEST:
        channel.rooms(Requests).receive_request(payload)
    else:
        channel.rooms(Requests).receive_response(payload)


def _receive_elsewhere(endpoint: Endpoint, frame_type: int, number: int, payload: bytes) -> None:
    """A frame for channel 0, or for a channel that is not open: a request can open it."""
    endpoint.note_method(0)
    if number == 0:
        raise ProtocolError(
            endpoint.personality.content_on_channel_zero,
            f"expected a method frame on channel 0, got a frame of type {frame_type}",
        )
    if endpoint.state is not ConnectionState.OPEN:
        raise ProtocolError(
            "unexpected-frame", f"a frame of type {frame_type} on channel {number} before connection.open"
        )
    if frame_type != FRAME_REQUEST:
        raise ProtocolError("channel-error", f"a response on channel {number}, which is not open")
    request = decode_request(payload)
    method = endpoint.decode(request.method)
    if isinstance(method, m.ChannelResume):
        # It would be the first request of one channel and none of the other.
        raise ProtocolError("command-invalid", "channel.resume has come in a request, and opens a channel")
    endpoint.opening_request = request
    try:
        endpoint.open_channel(number, method)
    finally:
        endpoint.opening_request = None
