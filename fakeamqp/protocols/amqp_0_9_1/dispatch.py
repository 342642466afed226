"""Which function deals with which method of an open channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1 import access, basic, channel, confirm, exchange, queue, tx

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

    Handler: TypeAlias = Callable[[Amqp091Channel, Any], None]

__all__ = ["HANDLERS"]

HANDLERS: dict[int, Handler] = {
    method.INDEX: handler
    for room in (access, basic, channel, confirm, exchange, queue, tx)
    for method, handler in room.HANDLERS.items()
}
"""Class and method id as one number -> handler. Channel 0 has its own in `connection`."""
