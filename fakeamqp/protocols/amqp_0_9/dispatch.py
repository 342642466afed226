"""Which function deals with which method of an open channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9 import (
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
from fakeamqp.protocols.amqp_0_9.requests import ping

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

    Handler: TypeAlias = Callable[[Amqp09Channel, Any], None]

__all__ = ["HANDLERS"]

HANDLERS: dict[int, Handler] = {
    method.INDEX: handler
    for each in (access, basic, channel, dtx, exchange, file, message, ping, queue, stream, tunnel, tx)
    for method, handler in each.HANDLERS.items()
}
"""Class and method id as one number -> handler. Channel 0 has its own in `connection`."""
