"""The handler of each method on an open channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
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
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.dispatch import refusing

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

    Handler: TypeAlias = Callable[[Amqp09Channel, Any], None]

__all__ = ["HANDLERS", "handlers"]

HANDLERS: dict[int, Handler] = {
    method.INDEX: handler
    for each in (access, basic, channel, dtx, exchange, file, message, queue, stream, tunnel, tx)
    for method, handler in each.HANDLERS.items()
}
"""Method index (class id << 16 | method id) -> handler. The handlers of channel 0 are in `connection`."""


@cache
def handlers(absent: tuple[str, ...]) -> Mapping[int, Handler]:
    """See `amqp_0_9_1.dispatch.handlers`."""
    return refusing(HANDLERS, m.METHODS, absent)
