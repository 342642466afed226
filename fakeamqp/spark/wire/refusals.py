"""What a broker says when it closes a channel or a connection, and the errors that it becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.spark.errors import (
    AccessRefused,
    ChannelClosed,
    ConnectionLost,
    QueueNotFound,
    QueueRefused,
    SparkError,
)

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.spark.wire.connection import WireConnection

_ADVICE = {
    404: (QueueNotFound, "Declare it first, or correct the name: the source declares no queues"),
    403: (AccessRefused, "The user needs the permission 'read' for it"),
    405: (QueueRefused, "It is an exclusive queue of another connection, or has an exclusive consumer"),
}


class Refusal(NamedTuple):
    """The reply code and the reply text of a broker that closes a channel or a connection."""

    reply_code: int
    reply_text: str


def refused(what: str, error: ConnectionLost) -> SparkError:
    """The error for a request that the broker may have refused, by the reply code.

    Args:
        what: what was not possible, such as `cannot consume from queue 'orders'`.
        error: of the request.

    Returns:
        QueueNotFound, AccessRefused or another QueueRefused if the broker has closed the channel in answer;
        otherwise a ConnectionLost.
    """
    if not isinstance(error, ChannelClosed):
        return type(error)(f"{what}: {error}")
    kind, advice = _ADVICE.get(error.reply_code, (QueueRefused, ""))
    return kind(f"{what}: {error}" + (f". {advice}" if advice else ""))


def refusal_of(connection: WireConnection, method: Method) -> ChannelClosed | None:
    """The broker's refusal of a request, which has a channel of its own; None if it accepts the request.

    Raises:
        ConnectionLost: the connection has ended.
    """
    channel = connection.channel()
    try:
        channel.call(method)
    except ChannelClosed as refusal:
        return refusal
    channel.close()
    return None
