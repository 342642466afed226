"""basic.publish: passes a complete content to the model, and returns it if necessary."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.messages.message import Message, StructuredMessage
from fakeamqp.model.transactions import PlannedPublish
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.delivering import ENCODING
from fakeamqp.protocols.amqp_0_9_1.publishing import (
    PublishTarget,
    examine,
    needs_examination,
    return_if_needed,
    too_large,
)

if TYPE_CHECKING:
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, CompleteContent

__all__ = ["begin", "publish"]


def begin(channel: Amqp09Channel, method: m.BasicPublish) -> None:
    """Handle basic.publish; its content follows."""
    channel.use_ticket(method.ticket, "write", "exchange", method.exchange)
    # The properties have the same bytes as in 0-9-1: see `ENCODING`.
    channel.expect_content(m.BasicPublish, BasicProperties, partial(publish, channel, PublishTarget(method)))


def publish(channel: Amqp09Channel, target: PublishTarget, content: CompleteContent[BasicProperties]) -> None:
    """Route a complete content, now or at commit, and return it if the client asked for that.

    Raises:
        NotFound: the exchange does not exist (basic.publish/missing-exchange).
        AccessRefused: the exchange is internal, or the user may not write to it.
        PreconditionFailed: a property is not acceptable, or the message is too large.
    """
    largest = channel.personality.largest_message
    if largest and len(content.body) > largest:
        raise too_large(channel, len(content.body))
    properties = content.properties
    meaningful = content.octets != b"\0\0" and needs_examination(properties)
    fresh = target.checked != channel.access.version
    if fresh:
        target.authorise(channel, key=not meaningful)
    message: Message
    make = StructuredMessage if content.children else Message
    message = make(
        target.exchange,
        target.routing_key,
        properties,
        content.body,
        ENCODING,
        content.octets,
        channel.connection.identity,
    )
    if isinstance(message, StructuredMessage):
        message.children = content.children
    if meaningful:
        examine(channel, message, properties, fresh)
    virtual_host = channel.virtual_host
    if channel.transaction is None:
        outcome = virtual_host.publish(message, target.immediate, target.mandatory, True)
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
            on_outcome=partial(_return_if_needed, channel, target, message),
        )
    )


def _return_if_needed(
    channel: Amqp09Channel, target: PublishTarget, message: Message, outcome: Outcome
) -> None:
    """Return the message if its flags ask for it."""
    if target.mandatory or outcome.unconsumed:
        return_if_needed(channel, target, message, outcome, unconsumed=outcome.unconsumed)
