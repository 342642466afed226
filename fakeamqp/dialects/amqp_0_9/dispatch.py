"""Which function deals with which method of an open channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.dialects.amqp_0_9 import (
    access,
    basic,
    channel,
    dtx,
    exchange,
    file,
    message,
    queue,
    stream,
    tunnel,
    tx,
)
from fakeamqp.dialects.amqp_0_9.requests import ping

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.dialects.amqp_0_9.channel_end import ChannelEnd

    Handler: TypeAlias = Callable[[ChannelEnd, Any], None]

__all__ = ["HANDLERS"]

HANDLERS: dict[int, Handler] = {
    method.INDEX: handler
    for room in (access, basic, channel, dtx, exchange, file, message, ping, queue, stream, tunnel, tx)
    for method, handler in room.HANDLERS.items()
}
"""Class and method id as one number -> handler. Channel 0 has its own in `connection`."""
