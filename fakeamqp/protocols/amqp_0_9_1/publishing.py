"""basic.publish: passes a complete content to the model, and answers the publisher."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.erlang import Atom, pretty, term
from fakeamqp.model.errors import PreconditionFailed, ResourceError
from fakeamqp.model.messages.message import Message
from fakeamqp.model.queues import Queue
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.delivering import ENCODING, check_message
from fakeamqp.protocols.amqp_0_9_1.publish_checks import (
    PublishTarget,
    examine,
    needs_examination,
    return_if_needed,
    too_large,
)
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

__all__ = ["PublishTarget", "begin", "check_message", "publish"]


def begin(channel: Amqp091Channel, method: m.BasicPublish) -> None:
    """Handle basic.publish; its content follows."""
    if method.immediate and not channel.personality.honours_immediate:
        raise ProtocolError("not-implemented", "immediate=true")
    channel.expect_publish(PublishTarget(method))


def publish(
    channel: Amqp091Channel, target: PublishTarget, properties: BasicProperties, octets: bytes, body: bytes
) -> None:
    """Route a complete content, and return or confirm it as the client asked.

    The checks run in RabbitMQ's order (measured).

    Raises:
        NotFound: the exchange does not exist.
        AccessRefused: the exchange is internal, or the user may not write to it.
        PreconditionFailed: a property is not acceptable, or the message is too large.
    """
    largest = channel.personality.largest_message
    if largest and len(body) > largest:
        raise too_large(channel, len(body))
    meaningful = octets != b"\0\0" and needs_examination(properties)
    fresh = target.checked != channel.access.version
    if fresh:
        target.authorise(channel, key=not meaningful)
    message = Message(
        target.exchange, target.routing_key, properties, body, ENCODING, octets, channel.connection.identity
    )
    if meaningful:
        examine(channel, message, properties, fresh)
    if channel.virtual_host.firehose is not None:
        channel.virtual_host.firehose.publisher = channel.source
    if channel.mode is None:
        outcome = channel.publisher.publish(message, target.immediate, target.mandatory, True)
        if target.mandatory or outcome.unconsumed:
            return_if_needed(channel, target, message, outcome, unconsumed=outcome.unconsumed)
    elif channel.transaction is not None:
        most = channel.personality.most_uncommitted_publishes
        if most and channel.transaction.publishes >= most:
            raise PreconditionFailed(f"transaction has reached the maximum of {most} uncommitted publishes")
        channel.connection.broker.memory.hold(message)
        channel.transaction.publish(
            partial(_publish_at_commit, channel, target, *channel.virtual_host.routing.plan(message))
        )
    else:
        # From confirm.select on every publish gets a tag, also one that is returned or refused.
        channel.published += 1
        tag = channel.published
        message.secured = channel.secures
        outcome = channel.publisher.publish(message, target.immediate, target.mandatory, True)
        if target.mandatory or outcome.unconsumed:
            return_if_needed(channel, target, message, outcome, unconsumed=outcome.unconsumed)
        channel.confirm(tag, outcome)


def _publish_at_commit(
    channel: Amqp091Channel, target: PublishTarget, message: Message, plan: Outcome
) -> bool:
    """Carry out a publish of a transaction, at commit, with the route decided when it arrived.

    RabbitMQ: measured.

    Returns:
        False if a full queue refused it, or by personality if one of its queues was deleted since.

    Raises:
        ResourceError: one of its queues was deleted since, by personality.
    """
    message.secured = True
    if channel.personality.commit_to_deleted == "by name":
        plan = _readdressed(channel, plan)
    gone = [queue for queue in plan.queues if queue.deleted and isinstance(queue, Queue)]
    if gone:
        _check_commit(channel, message, gone)
    remaining = replace(plan, queues=tuple(queue for queue in plan.queues if not queue.deleted))
    # A message that had a queue when it arrived is not returned, but for names that are unknown by now.
    returned = target.mandatory and not plan.queues
    outcome = channel.publisher.offer(message, remaining, immediate=target.immediate, mandatory=returned)
    if target.mandatory or outcome.unconsumed:
        return_if_needed(channel, target, message, plan, unconsumed=outcome.unconsumed)
    refused = (
        (*outcome.refused, *gone) if channel.personality.commit_to_deleted != "ignored" else outcome.refused
    )
    return not any(queue.fails_commits for queue in refused)


def _readdressed(channel: Amqp091Channel, plan: Outcome) -> Outcome:
    """The route with the queues that have the names of deleted ones now."""
    if not any(queue.deleted for queue in plan.queues):
        return plan
    queues = channel.virtual_host.queues
    found = (
        queues.get(each.name) if each.deleted and isinstance(each, Queue) else each for each in plan.queues
    )
    return replace(plan, queues=tuple(each for each in found if each is not None))


def _check_commit(channel: Amqp091Channel, message: Message, gone: Iterable[Queue]) -> None:
    """Check that a message of a transaction may go to the rest of its queues; these were deleted.

    Raises:
        ResourceError: the personality refuses it, and the name of one of them is unknown now.
    """
    if channel.personality.commit_to_deleted != "fails":
        return
    virtual_host = channel.virtual_host
    for queue in gone:
        if queue.name not in virtual_host.queues:
            detail = "the queue was deleted before the commit"
            virtual_host.message_outcomes.dropped(message, queue.name, "deleted", detail)
            raise ResourceError(_undeliverable(queue), ends_connection=True)


def _undeliverable(queue: Queue) -> str:
    """RabbitMQ's text for a queue that is not there, broken into lines as Erlang does."""
    text = "failed to deliver message: "
    where = term(queue.virtual_host.name), term(queue.name)
    whole = f"{{not_found,{{resource,{where[0]},queue,{where[1]}}}}}"
    if len(text) + len(whole) < 79:
        return text + whole
    indent = " " * (len(text) + 4)
    resource = (
        Atom("resource"),
        queue.virtual_host.name.encode("utf-8", "surrogateescape"),
        Atom("queue"),
        queue.name.encode("utf-8", "surrogateescape"),
    )
    return f"{text}{{not_found,\n{indent}{pretty(resource, indent)}}}"
