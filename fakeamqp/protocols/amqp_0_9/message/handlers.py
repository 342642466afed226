"""The methods of class message, which must be sent in requests.

The specification shows no other way. Without the number of a request, an ok could not be assigned to a
transfer (message/request-frames).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.message import consuming, publishing
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["HANDLERS"]

_REQUESTS: dict[type[Method], Callable[[Amqp09Channel, Any], None]] = {
    m.MessageTransfer: publishing.transfer,
    m.MessageConsume: consuming.consume,
    m.MessageCancel: consuming.cancel,
    m.MessageGet: consuming.get,
    m.MessageRecover: consuming.recover,
    m.MessageOpen: publishing.open_,
    m.MessageClose: publishing.close,
    m.MessageAppend: publishing.append,
    m.MessageCheckpoint: publishing.checkpoint,
    m.MessageResume: publishing.resume,
    m.MessageQos: consuming.qos,
}
_RESPONSES: tuple[type[Method], ...] = (m.MessageOk, m.MessageEmpty, m.MessageReject, m.MessageOffset)


def _requested(handler: Callable[[Amqp09Channel, Any], None], channel: Amqp09Channel, method: Method) -> None:
    if channel.class_state(Requests).current is None:
        raise ProtocolError(
            "command-invalid", f"{method.NAME} must be sent in a request frame, not in a method frame"
        )
    handler(channel, method)


def _response(channel: Amqp09Channel, method: Method) -> None:
    raise ProtocolError("command-invalid", f"{method.NAME} must be sent in a response frame")


HANDLERS: dict[type[Method], Callable[[Amqp09Channel, Any], None]] = {
    **{method: partial(_requested, handler) for method, handler in _REQUESTS.items()},
    **dict.fromkeys(_RESPONSES, _response),
}
