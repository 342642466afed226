"""Messages to the client: transfers, whose response is the acknowledgement.

A body that does not fit into a frame is sent by reference: message.open, message.append for each piece, the
transfer that names the reference, message.close. The broker does not wait for the responses to these
requests, and only the response to the transfer has an effect.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.property_mapping import encode_transfer, to_transfer
from fakeamqp.protocols.amqp_0_9.requests import Requests

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.protocols.amqp_0_9.message.channel_state import Messages

__all__ = ["transfer"]

_BESIDES_PIECE = 12
"""Bytes of a message.append without the name of the reference and the piece."""


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
        messages: the class state of the channel.
        destination: the name of the destination.
        queue: the name of the message's queue.
        message: the message.
        redelivered: True if it was delivered before.
        delivery: the delivery that the response settles; None without acknowledgement.
        consumer: True for a consumer, False for message.get.
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
    limit = connection.body_limit - requests.overhead
    by_reference = len(octets) > limit
    reference = b""
    if by_reference:
        reference = messages.next_reference()
        octets = encode_transfer(method, table, Body(reference, by_reference=True))
        if not channel.fits(len(octets) + requests.overhead, "a transfer"):
            if delivery is not None:
                messages.ledger.enter(requests.state.outgoing.send((), None), delivery)
            return
        _send_body(requests, reference, message.body, limit - _BESIDES_PIECE - len(reference))
    number = requests.state.outgoing.last + 1
    if delivery is not None:
        messages.ledger.enter(number, delivery)
    tap = connection.broker.tap
    if tap is not None:
        tag = destination if consumer else None
        tap.event("delivered", connection, message, queue, tag, channel.number, number, redelivered)
    requests.request(m.MessageTransfer, octets, messages)
    if by_reference:
        requests.request(m.MessageClose, m.MessageClose(reference=reference).encode())


def _send_body(requests: Requests, reference: bytes, body: bytes, limit: int) -> None:
    """Open a reference, and append a body to it in pieces of at most `limit` bytes."""
    requests.request(m.MessageOpen, m.MessageOpen(reference=reference).encode())
    for start in range(0, len(body), limit):
        piece = m.MessageAppend(reference=reference, octets=body[start : start + limit])
        requests.request(m.MessageAppend, piece.encode())


def _expiration(message: Message) -> int:
    """Return when the message expires, as a POSIX timestamp in seconds; 0 is never.

    Source: message.transfer/expiration.
    """
    if message.expiry is None or not message.published_at:
        return 0
    return int(message.published_at) + ceil(message.expiry)
