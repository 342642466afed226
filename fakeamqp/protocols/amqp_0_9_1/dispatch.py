"""The handler of each method on an open channel."""

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
    for module in (access, basic, channel, confirm, exchange, queue, tx)
    for method, handler in module.HANDLERS.items()
}
"""Method index (class id << 16 | method id) -> handler. The handlers of channel 0 are in `connection`."""
