"""The handler of each method on an open channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9 import (
    access,
    basic,
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
from fakeamqp.protocols.amqp_0_9.requests import ping
from fakeamqp.protocols.amqp_0_9_1 import channel
from fakeamqp.protocols.base.absent import is_absent, refuse_if_absent

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

    Handler: TypeAlias = Callable[[Amqp09Channel, Any], None]

__all__ = ["HANDLERS", "handlers"]

HANDLERS: dict[int, Handler] = {
    method.INDEX: handler
    for each in (access, basic, channel, dtx, exchange, file, message, ping, queue, stream, tunnel, tx)
    for method, handler in each.HANDLERS.items()
}
"""Method index (class id << 16 | method id) -> handler. The handlers of channel 0 are in `connection`."""


@cache
def handlers(absent: tuple[str, ...]) -> Mapping[int, Handler]:
    """The handlers of a broker that is made without some classes and methods, whose handlers refuse them."""
    return {
        index: partial(_refuse, absent) if is_absent(m.METHODS[index].NAME, absent) else handler
        for index, handler in HANDLERS.items()
    }


def _refuse(absent: tuple[str, ...], channel: Amqp09Channel, method: Method) -> None:
    refuse_if_absent(method.NAME, absent)
