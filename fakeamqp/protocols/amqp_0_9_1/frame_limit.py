"""The check of methods and content headers against frame_max.

A method or a content header cannot be split. If the publisher's frame_max is larger than the receiver's, it
can be too large for the receiver (frame/oversized-send; 0-9: frame/undeliverable-size).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
    from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

__all__ = ["fits"]


def fits(channel: BaseChannel, size: int, what: str) -> bool:
    """Return True if a payload of `size` bytes fits into a frame to the client; else close its connection.

    The close is deferred, since the caller may be delivering to other connections as well.
    """
    connection: Amqp091Connection[Any] = channel.connection
    if size <= connection.body_limit:
        return True
    number = channel.number
    error = ProtocolError(
        "frame-error",
        f"{what} of {size} bytes cannot be sent: it exceeds frame_max {connection.frame_max}",
    )
    connection.after(
        0, lambda: connection.fail(number, error), "closes because of its frame_max", housekeeping=True
    )
    return False
