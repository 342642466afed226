"""What is too long to be sent: a method or a content header goes in one frame, whatever was agreed on.

Its publisher's frames may have been larger than the receiver's are (frame/undeliverable-size).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["fits"]


def fits(channel: Amqp09Channel, size: int, what: str) -> bool:
    """Whether so many bytes go into a frame to the client; if not, its connection ends, which says why.

    It ends a moment later: who sends to one may be sending to others just now.
    """
    connection = channel.connection
    if size <= connection.body_limit:
        return True
    number = channel.number
    error = ProtocolError(
        "frame-error",
        f"{what} of {size} bytes is to be sent, and frame_max {connection.frame_max} does not allow for it",
    )
    connection.after(
        0, lambda: connection.fail(number, error), "ends for want of larger frames", housekeeping=True
    )
    return False
