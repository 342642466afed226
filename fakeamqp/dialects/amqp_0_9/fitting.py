"""What is too long to be sent: a method or a content header goes in one frame, whatever was agreed on.

Its publisher's frames may have been larger than the receiver's are (frame/undeliverable-size).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_x.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.channel_end import ChannelEnd

__all__ = ["fits"]


def fits(channel: ChannelEnd, size: int, what: str) -> bool:
    """Whether so many octets go into a frame to the client; if not, its connection ends, which says why.

    It ends a moment later: who sends to one may be sending to others just now.
    """
    endpoint = channel.endpoint
    if size <= endpoint.body_limit:
        return True
    number = channel.number
    error = ProtocolError(
        "frame-error",
        f"{what} of {size} octets is to be sent, and frame_max {endpoint.frame_max} does not allow for it",
    )
    endpoint.after(0, lambda: endpoint.fail(number, error), "ends for want of larger frames", chore=True)
    return False
