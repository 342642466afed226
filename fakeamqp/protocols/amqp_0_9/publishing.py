"""basic.publish: from a complete content to the model, and what the publisher gets back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.message import Message, StructuredMessage
from fakeamqp.model.transactions import PlannedPublish
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.framed.delivering import ENCODING
from fakeamqp.protocols.framed.publishing import (
    Target,
    authorise,
    examine,
    needs_examination,
    return_if_needed,
    too_large,
)

if TYPE_CHECKING:
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, Content

__all__ = ["begin"]


def begin(channel: Amqp09Channel, method: m.BasicPublish) -> None:
    """basic.publish has come; its content follows."""
    channel.use_ticket(method.ticket, "write", "exchange", method.exchange)
    # The properties are those of 0-9-1, to the octet: see `ENCODING`.
    channel.expect_content(m.BasicPublish, BasicProperties, partial(_publish, channel, Target(method)))


def _publish(channel: Amqp09Channel, target: Target, content: Content[BasicProperties]) -> None:
    """A content is complete: route it, now or at commit, and return it as was asked.

    Raises:
        NotFound: there is no such exchange (basic.publish/missing-exchange).
        AccessRefused: it is internal, or the user may not write to it.
        PreconditionFailed: a property is not acceptable, or the message is too large.
    """
    largest = channel.personality.largest_message
    if largest and len(content.body) > largest:
        raise too_large(channel, len(content.body))
    properties = content.properties
    meaningful = content.octets != b"\0\0" and needs_examination(properties)
    fresh = target.checked != channel.access.version
    if fresh:
        authorise(channel, target, key=not meaningful)
    message: Message
    make = StructuredMessage if content.children else Message
    message = make(
        target.exchange,
        target.routing_key,
        properties,
        content.body,
        ENCODING,
        content.octets,
        channel.connection,
    )
    if isinstance(message, StructuredMessage):
        message.children = content.children
    if meaningful:
        examine(channel, message, properties, fresh)
    virtual_host = channel.virtual_host
    if channel.transaction is None:
        outcome = virtual_host.publish(message, immediate=target.immediate, mandatory=target.mandatory)
        _return_if_needed(channel, target, message, outcome)
        return
    message, plan = virtual_host.routing.plan(message)
    channel.transaction.publish(
        PlannedPublish(
            virtual_host,
            message,
            plan,
            immediate=target.immediate,
            mandatory=target.mandatory,
            told=partial(_return_if_needed, channel, target, message),
        )
    )


def _return_if_needed(channel: Amqp09Channel, target: Target, message: Message, outcome: Outcome) -> None:
    """Send back what the publisher wants back."""
    if target.mandatory or outcome.unconsumed:
        return_if_needed(channel, target, message, outcome, unconsumed=outcome.unconsumed)
