"""Messages to the client: transfers, whose response is the acknowledgement.

A body that does not fit a frame goes by reference: opened, appended in pieces, named by the transfer, and
closed, without waiting for the responses to all that. Only that to the transfer counts.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.crossing import encode_transfer, to_transfer
from fakeamqp.protocols.amqp_0_9.frame_limit import fits
from fakeamqp.protocols.amqp_0_9.requests import Requests

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.protocols.amqp_0_9.message.channel_state import Messages

__all__ = ["transfer"]

_BESIDES_PIECE = 12
"""Bytes of a message.append beside the name of the reference and what is appended."""


def transfer(
    messages: Messages,
    destination: str,
    queue: str,
    message: Message,
    redelivered: bool,
    delivery: Delivery | None,
    *,
    consumer: bool = True,
) -> None:
    """Send one message to a destination.

    Args:
        messages: those of the channel.
        destination: what the client calls it.
        queue: where the message comes from.
        message: the message.
        redelivered: whether it was delivered before.
        delivery: what the response settles; None where it settles nothing.
        consumer: whether somebody consumes there, and has not asked for this one message.
    """
    channel = messages.channel
    connection = channel.connection
    requests = channel.class_state(Requests)
    values, table = to_transfer(message.properties)
    method = m.MessageTransfer(
        destination=destination,
        redelivered=redelivered,
        expiration=_expiration(message),
        exchange=message.exchange,
        routing_key=message.routing_key,
        **values,
    )
    octets = encode_transfer(method, table, Body(message.body))
    room = connection.body_limit - requests.overhead
    by_reference = len(octets) > room
    reference = b""
    if by_reference:
        reference = messages.next_reference()
        octets = encode_transfer(method, table, Body(reference, by_reference=True))
        if not fits(channel, len(octets) + requests.overhead, "a transfer"):
            if delivery is not None:
                messages.ledger.enter(requests.memory.outgoing.send((), None), delivery)
            return
        _send_body(requests, reference, message.body, room - _BESIDES_PIECE - len(reference))
    number = requests.memory.outgoing.last + 1
    if delivery is not None:
        messages.ledger.enter(number, delivery)
    tap = connection.broker.tap
    if tap is not None:
        tag = destination if consumer else None
        tap.delivered(message, queue, tag, connection, channel.number, number, redelivered)
    requests.request(m.MessageTransfer, octets, messages)
    if by_reference:
        requests.request(m.MessageClose, m.MessageClose(reference=reference).encode())


def _send_body(requests: Requests, reference: bytes, body: bytes, limit: int) -> None:
    """Open a reference, and append a body to it in pieces of so many bytes."""
    requests.request(m.MessageOpen, m.MessageOpen(reference=reference).encode())
    for start in range(0, len(body), limit):
        piece = m.MessageAppend(reference=reference, octets=body[start : start + limit])
        requests.request(m.MessageAppend, piece.encode())


def _expiration(message: Message) -> int:
    """The second from which on the message is no good (message.transfer/expiration); 0 is never."""
    if message.expiry is None or not message.published_at:
        return 0
    return int(message.published_at) + ceil(message.expiry)
