"""The handler of each method on an open channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
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
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9_1.dispatch import by_name, refusing
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

    Handler: TypeAlias = Callable[[Amqp09Channel, Any], None]


def _requested(handler: Handler, channel: Amqp09Channel, method: Method) -> None:
    if channel.class_state(Requests).current is None:
        raise ProtocolError(
            "command-invalid", f"{method.NAME} must be sent in a request frame, not in a method frame"
        )
    handler(channel, method)


def _response(channel: Amqp09Channel, method: Method) -> None:
    raise ProtocolError("command-invalid", f"{method.NAME} must be sent in a response frame")


def _handlers() -> dict[int, Handler]:
    """Methods of class message must be sent in requests, or else are responses (message/request-frames)."""
    found: dict[int, Handler] = {}
    modules = (access, basic, channel, dtx, exchange, file, message, queue, stream, tunnel, tx)
    known = by_name(m.METHODS.values(), *modules)
    for index, method in m.METHODS.items():
        handler = known.get(method)
        if method.NAME.startswith("message."):
            found[index] = _response if handler is None else partial(_requested, handler)
        elif handler is not None:
            found[index] = handler
    return found


HANDLERS: dict[int, Handler] = _handlers()
"""Method index (class id << 16 | method id) -> handler. The handlers of channel 0 are in `connection`."""


@cache
def handlers(absent: tuple[str, ...]) -> Mapping[int, Handler]:
    """See `amqp_0_9_1.dispatch.handlers`."""
    return refusing(HANDLERS, m.METHODS, absent)
