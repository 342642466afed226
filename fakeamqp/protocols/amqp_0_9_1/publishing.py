"""basic.publish: from a complete content to the model, and what the publisher is told."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.message import Message
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.framed.delivering import ENCODING, check_message
from fakeamqp.protocols.framed.publishing import (
    Target,
    authorise,
    examine,
    needs_examination,
    return_if_needed,
    too_large,
)
from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

__all__ = ["Target", "begin", "check_message", "publish"]


def begin(channel: Amqp091Channel, method: m.BasicPublish) -> None:
    """basic.publish has come; its content follows."""
    if method.immediate and not channel.personality.honours_immediate:
        raise ProtocolError("not-implemented", "immediate=true")
    channel.expect_content(Target(method))


def publish(
    channel: Amqp091Channel, target: Target, properties: BasicProperties, octets: bytes, body: bytes
) -> None:
    """A content is complete: route it, and return or confirm it as was asked.

    What could be wrong is looked at in RabbitMQ's order (measured).

    Raises:
        NotFound: there is no such exchange.
        AccessRefused: it is internal, or the user may not write to it.
        PreconditionFailed: a property is not acceptable, or the message is too large.
    """
    largest = channel.personality.largest_message
    if largest and len(body) > largest:
        raise too_large(channel, len(body))
    meaningful = octets != b"\0\0" and needs_examination(properties)
    fresh = target.checked != channel.access.version
    if fresh:
        authorise(channel, target, key=not meaningful)
    virtual_host = channel.virtual_host
    message = Message(
        target.exchange, target.routing_key, properties, body, ENCODING, octets, channel.connection
    )
    if meaningful:
        examine(channel, message, properties, fresh)
    if channel.mode is None:
        outcome = virtual_host.publish(message, immediate=target.immediate, mandatory=target.mandatory)
        if target.mandatory or outcome.unconsumed:
            return_if_needed(channel, target, message, outcome, unconsumed=outcome.unconsumed)
    elif channel.transaction is not None:
        channel.transaction.publish(
            partial(_publish_at_commit, channel, target, *virtual_host.routing.plan(message))
        )
    else:
        # The tag counts from confirm.select on, whatever becomes of the message.
        channel.published += 1
        tag = channel.published
        message.secured = channel.secures
        outcome = virtual_host.publish(message, immediate=target.immediate, mandatory=target.mandatory)
        if target.mandatory or outcome.unconsumed:
            return_if_needed(channel, target, message, outcome, unconsumed=outcome.unconsumed)
        channel.confirm(tag, outcome)


def _publish_at_commit(channel: Amqp091Channel, target: Target, message: Message, plan: Outcome) -> bool:
    """A publish of a transaction, at commit. Where it goes was decided when it came (RabbitMQ: measured).

    Returns:
        False where a full queue refused it.
    """
    message.secured = True
    remaining = replace(plan, queues=tuple(queue for queue in plan.queues if not queue.deleted))
    # What is returned is what found no queue when it came, not what found its queues gone.
    returned = target.mandatory and not plan.queues
    outcome = channel.virtual_host.offer(message, remaining, immediate=target.immediate, mandatory=returned)
    if target.mandatory or outcome.unconsumed:
        return_if_needed(channel, target, message, plan, unconsumed=outcome.unconsumed)
    return not any(queue.fails_commits for queue in outcome.refused)
