"""basic.publish: from a complete content to the model, and what the publisher is told.

`Target` is what a basic.publish method says. Programs publish with the same few exchanges and keys
again and again, so targets are kept per channel under the octets of the method.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_1 import delivering
from fakeamqp.dialects.amqp_0_9_1.delivering import ENCODING
from fakeamqp.dialects.amqp_0_9_1.replies import CODES, ProtocolError
from fakeamqp.model.carbon_copies import carbon_copies, without_blind_copies
from fakeamqp.model.errors import ContentTooLarge, ModelError, PreconditionFailed
from fakeamqp.model.expiration import time_to_live
from fakeamqp.model.message import Message
from fakeamqp.model.outcome import Outcome
from fakeamqp.model.reply_to import PSEUDO_QUEUE
from fakeamqp.wire.amqp_0_9_1 import methods as m

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_1.channel_end import ChannelEnd
    from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties

__all__ = ["Target", "begin", "publish"]


class Target:
    """Where a publish goes. `checked` is the state of the access control it was last checked against."""

    __slots__ = ("checked", "exchange", "immediate", "mandatory", "routing_key")

    def __init__(self, method: m.BasicPublish) -> None:
        self.exchange = method.exchange
        self.routing_key = method.routing_key
        self.mandatory = method.mandatory
        self.immediate = method.immediate
        self.checked = -1


def begin(channel: ChannelEnd, method: m.BasicPublish) -> None:
    """basic.publish has come; its content follows."""
    if method.immediate and not channel.personality.honours_immediate:
        raise ProtocolError("not-implemented", "immediate=true")
    channel.expect_content(Target(method))


def publish(
    channel: ChannelEnd, target: Target, properties: BasicProperties, octets: bytes, body: bytes
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
        raise _too_large(channel, len(body))
    if target.checked != channel.access.version:
        _authorise(channel, target)
    virtual_host = channel.virtual_host
    expiry = None
    headers = properties.headers
    if octets != b"\0\0" and (
        properties.expiration is not None
        or properties.user_id is not None
        or properties.reply_to == PSEUDO_QUEUE
        or (headers and ("CC" in headers or "BCC" in headers))
    ):
        properties, octets, expiry = _examine(channel, target, properties, octets)
    message = Message(
        target.exchange, target.routing_key, properties, body, ENCODING, octets, channel.endpoint, expiry
    )
    if channel.mode is None:
        outcome = virtual_host.publish(message, immediate=target.immediate)
        if target.mandatory or outcome.unconsumed:
            _return(channel, target, message, routed=outcome.routed, unconsumed=outcome.unconsumed)
    elif channel.transaction is not None:
        channel.transaction.publish(partial(_perform, channel, target, *virtual_host.routing.plan(message)))
    else:
        # The tag counts from confirm.select on, whatever becomes of the message.
        channel.published += 1
        tag = channel.published
        message.secured = True
        outcome = virtual_host.publish(message, immediate=target.immediate)
        if target.mandatory or outcome.unconsumed:
            _return(channel, target, message, routed=outcome.routed, unconsumed=outcome.unconsumed)
        channel.confirm(tag, outcome)


def _perform(channel: ChannelEnd, target: Target, message: Message, plan: Outcome) -> bool:
    """A publish of a transaction, at commit. Where it goes was decided when it came (RabbitMQ: measured).

    Returns:
        False where a full queue refused it.
    """
    message.secured = True
    there = replace(plan, queues=tuple(queue for queue in plan.queues if not queue.deleted))
    outcome = channel.virtual_host.offer(message, there, immediate=target.immediate)
    if target.mandatory or outcome.unconsumed:
        _return(channel, target, message, routed=plan.routed, unconsumed=outcome.unconsumed)
    return outcome.accepted


def _return(channel: ChannelEnd, target: Target, message: Message, *, routed: bool, unconsumed: bool) -> None:
    """Send back what the publisher wants back (basic.publish/mandatory-01, basic.publish/immediate-01)."""
    message = without_blind_copies(message)
    if unconsumed:
        delivering.return_message(channel, message, CODES["no-consumers"], "NO_CONSUMERS")
    elif target.mandatory and not routed:
        delivering.return_message(channel, message, CODES["no-route"], "NO_ROUTE")


def _authorise(channel: ChannelEnd, target: Target) -> None:
    channel.authorise("write", "exchange", target.exchange)
    channel.virtual_host.routing.check_publishable(target.exchange)
    _authorise_keys(channel, target.exchange, (target.routing_key,))
    target.checked = channel.access.version


def _authorise_keys(channel: ChannelEnd, exchange: str, keys: Iterable[str]) -> None:
    """May the user publish with these keys, where the exchange is a topic exchange?"""
    if channel.virtual_host.exchange(exchange).type_name == "topic":
        for key in keys:
            channel.access.check_topic(channel.user, channel.virtual_host.name, "write", exchange, key)


def _examine(
    channel: ChannelEnd, target: Target, properties: BasicProperties, octets: bytes
) -> tuple[BasicProperties, bytes, float | None]:
    """Check and apply the properties that mean something to the broker.

    Returns:
        The properties as they go on, their octets, and the message's own time to live in seconds.
    """
    personality = channel.personality
    channel.virtual_host.routing.check_publishable(target.exchange)
    expiry = None
    if properties.reply_to == PSEUDO_QUEUE and personality.direct_reply_to:
        properties = _with_reply_address(channel, properties)
        octets = properties.encode()
    if properties.expiration is not None and personality.expiration_is_ttl:
        expiry = time_to_live(properties.expiration)
    if properties.headers and personality.routes_by_cc_headers:
        _authorise_keys(channel, target.exchange, carbon_copies(properties.headers).keys)
    if properties.user_id is not None and personality.checks_user_id:
        _check_user_id(channel, properties.user_id)
    return properties, octets, expiry


def _check_user_id(channel: ChannelEnd, user_id: str) -> None:
    """user-id must be the publisher's own, unless it may impersonate (RabbitMQ: documented)."""
    user = channel.user
    if user_id != user.name and "impersonator" not in user.tags:
        raise PreconditionFailed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )


def _with_reply_address(channel: ChannelEnd, properties: BasicProperties) -> BasicProperties:
    """Put the channel's own reply address in the place of the pseudo-queue's name."""
    if channel.reply_address is None:
        raise PreconditionFailed("fast reply consumer does not exist")
    return properties.replace(reply_to=channel.reply_address.name)


def _too_large(channel: ChannelEnd, size: int) -> ModelError:
    personality = channel.personality
    text = f"message size {size} is larger than configured max size {personality.largest_message}"
    refusal = (
        PreconditionFailed
        if personality.largest_message_condition == "precondition-failed"
        else ContentTooLarge
    )
    return refusal(text)
