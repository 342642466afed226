"""basic.publish: checks a complete content, passes it to the model, and answers the publisher."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from fakeamqp.model.dead_letters import claimed_deaths
from fakeamqp.model.erlang import Atom, pretty, term
from fakeamqp.model.errors import ContentTooLarge, ModelError, PreconditionFailed, ResourceError
from fakeamqp.model.messages.message import Message, time_to_live
from fakeamqp.model.queues import Queue
from fakeamqp.model.routing import (
    PSEUDO_QUEUE,
    ReplyAddress,
    carbon_copies,
    is_reply_address,
    without_blind_copies,
)
from fakeamqp.protocols.amqp_0_9_1 import delivering
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.delivering import ENCODING
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.routing import Outcome
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
    from fakeamqp.protocols.amqp_0_9_1.malformed import MalformedContent
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

    _Check: TypeAlias = Callable[["BaseChannel", Message, "BasicProperties"], "BasicProperties | None"]

_DELIVERY_MODES = (None, 1, 2)


class Publish(Protocol):
    """basic.publish of either protocol."""

    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool


class PublishTarget:
    """Exchange, key and flags of a publish. Clients repeat them, so channels keep them by the method's bytes.

    `index` is that of the method, and `checked` the version of the access rules last checked.
    """

    __slots__ = ("checked", "exchange", "immediate", "index", "mandatory", "routing_key")

    def __init__(self, method: Publish) -> None:
        self.index: int = m.BasicPublish.INDEX
        self.exchange: str = method.exchange
        self.routing_key: str = method.routing_key
        self.mandatory: bool = method.mandatory
        self.immediate: bool = method.immediate
        self.checked: int = -1

    def authorise(self, channel: BaseChannel, *, key: bool) -> None:
        """Check that the user may publish to the exchange; with `key`, check the routing key too.

        Raises:
            AccessRefused: the user may not publish there, or the exchange is internal.
            NotFound: the exchange does not exist.
        """
        channel.authorise("write", "exchange", self.exchange)
        channel.virtual_host.routing.check_publishable(self.exchange)
        if key:
            authorise_keys(channel, self.exchange, (self.routing_key,))
        self.checked = channel.access.version


class UnreadableContent(PublishTarget):
    """A publish with properties that cannot be read: an error once the user may publish it."""

    __slots__ = ("_problem", "_target")

    def __init__(self, target: PublishTarget, problem: MalformedContent) -> None:
        super().__init__(target)
        self.index: int = target.index
        self._target = target
        self._problem = problem

    def authorise(self, channel: BaseChannel, *, key: bool) -> None:
        """Raise MalformedContent, if nothing else is wrong."""
        self._target.authorise(channel, key=channel.personality.publish_checks[0] == "topic-permission")
        raise self._problem


class UnknownContent(PublishTarget):
    """A method with a content that no client may send: an error once the content is complete."""

    __slots__ = ("_refusal",)

    def __init__(self, method: Method, refusal: ProtocolError) -> None:
        self.index: int = method.INDEX
        self.exchange = self.routing_key = ""
        self.mandatory = self.immediate = False
        self.checked = -1
        self._refusal = refusal

    def authorise(self, channel: BaseChannel, *, key: bool) -> None:
        """Raise the refusal."""
        raise self._refusal


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


# --- answers -----------------------------------------------------------------------------------------


def return_if_needed(
    channel: BaseChannel, target: PublishTarget, message: Message, plan: Outcome, *, unconsumed: bool
) -> None:
    """Return the message if its flags ask for it (basic.publish/mandatory-01, basic.publish/immediate-01)."""
    message = without_blind_copies(message)
    if unconsumed:
        delivering.return_message(
            channel, message, channel.connection.REPLIES.code("no-consumers"), "NO_CONSUMERS"
        )
    elif target.mandatory and not _routed(channel, message, plan):
        delivering.return_message(channel, message, channel.connection.REPLIES.code("no-route"), "NO_ROUTE")


def _routed(channel: BaseChannel, message: Message, plan: Outcome) -> bool:
    """True if the message has a queue; the personality decides if a reply address counts as one."""
    personality = channel.personality
    if personality.replies_are_routed:
        late = not message.exchange and is_reply_address(message.routing_key)
        return plan.routed or (late and personality.direct_reply_to and not personality.returns_late_replies)
    return any(not isinstance(queue, ReplyAddress) for queue in plan.queues)


# --- checks of properties -----------------------------------------------------------------------------


def needs_examination(properties: BasicProperties) -> bool:
    """True if a message has properties that `examine` must check."""
    headers = properties.headers
    return (
        properties.expiration is not None
        or properties.user_id is not None
        or properties.reply_to == PSEUDO_QUEUE
        or properties.delivery_mode not in _DELIVERY_MODES
        or bool(headers and ("CC" in headers or "BCC" in headers or "x-death" in headers))
    )


def authorise_keys(channel: BaseChannel, exchange: str, keys: Iterable[str]) -> None:
    """For a topic exchange, check that the user may publish with these keys."""
    if channel.virtual_host.exchanges.require(exchange).type_name == "topic":
        for key in keys:
            channel.access.check_topic(channel.user, channel.virtual_host.name, "write", exchange, key)


def examine(channel: BaseChannel, message: Message, properties: BasicProperties, fresh: bool) -> None:
    """Check and apply the properties that the broker interprets, in the personality's order.

    `fresh` is True if the routing key has not been checked before.
    """
    channel.virtual_host.routing.check_publishable(message.exchange)
    headers = properties.headers or {}
    copies = "CC" in headers or "BCC" in headers
    # Only the relevant checks run. Measured with an expiration: 1.1 times the messages per second.
    for check in _relevant_checks(
        channel.personality.publish_checks,
        properties.reply_to is not None,
        properties.expiration is not None,
        copies,
        copies or fresh,
        properties.user_id is not None,
        "x-death" in headers,
        properties.delivery_mode not in _DELIVERY_MODES,
    ):
        changed = check(channel, message, properties)
        if changed is not None:
            message.properties = properties = changed
            message.properties_bytes = changed.encode()


def _check_reply_to(
    channel: BaseChannel, message: Message, properties: BasicProperties
) -> BasicProperties | None:
    """Replace the name of the pseudo-queue by the channel's reply address."""
    if properties.reply_to != PSEUDO_QUEUE or not channel.personality.direct_reply_to:
        return None
    if channel.reply_address is None:
        raise PreconditionFailed("fast reply consumer does not exist")
    return properties.replace(reply_to=channel.reply_address.name)


def _check_expiration(
    channel: BaseChannel, message: Message, properties: BasicProperties
) -> BasicProperties | None:
    """Set the message's time to live, and by personality normalize the number in the property."""
    if properties.expiration is None or not channel.personality.expiration_is_ttl:
        return None
    message.expiry = time_to_live(properties.expiration)
    # A 0-10 delivery carries the remaining time to live.
    message.published_at = channel.connection.broker.clock.time()
    if properties.expiration[0] not in "+-0" or not channel.personality.rewrites_expirations:
        return None
    return properties.replace(expiration=str(int(properties.expiration)))


def _check_delivery_mode(_channel: BaseChannel, _message: Message, properties: BasicProperties) -> None:
    """Refuse a delivery mode that is neither transient nor persistent (RabbitMQ: measured on 3.10.8)."""
    raise PreconditionFailed(f"invalid message: {{delivery_mode_unknown,{properties.delivery_mode}}}")


def _check_copies(channel: BaseChannel, message: Message, properties: BasicProperties) -> None:
    """Read the additional routing keys from the headers CC and BCC."""
    headers = properties.headers
    if headers and ("CC" in headers or "BCC" in headers) and channel.personality.routes_by_cc_headers:
        message.copies = carbon_copies(headers)


def _check_topic_permission(channel: BaseChannel, message: Message, _properties: BasicProperties) -> None:
    """Check that the user may publish with the routing key and the CC and BCC keys read so far."""
    copies = () if message.copies is None else message.copies.keys
    authorise_keys(channel, message.exchange, (message.routing_key, *copies))


def _check_user_id(channel: BaseChannel, _message: Message, properties: BasicProperties) -> None:
    """Check that user-id names the publisher, unless it has the tag impersonator (RabbitMQ: documented)."""
    user = channel.user
    user_id = properties.user_id
    if user_id is None or user_id == user.name or not channel.personality.checks_user_id:
        return
    if "impersonator" not in user.tags:
        raise PreconditionFailed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )


def _check_deaths(
    channel: BaseChannel, message: Message, properties: BasicProperties
) -> BasicProperties | None:
    """Use the x-death header that a client sent as the message's history, by personality in the broker's
    format.
    """
    if not channel.personality.takes_deaths_from_clients:
        return None
    kept = channel.personality.keeps_claimed_deaths
    message.history = history = claimed_deaths(properties.headers or {}, kept=kept)
    if history is None or kept:
        return None
    return properties.with_headers({"x-death": [death.table() for death in history.deaths]})


_CHECKS: dict[str, _Check] = {
    "reply-to": _check_reply_to,
    "expiration": _check_expiration,
    "copies": _check_copies,
    "topic-permission": _check_topic_permission,
    "user-id": _check_user_id,
    "deaths": _check_deaths,
    "delivery-mode": _check_delivery_mode,
}
"""Name in `Personality.publish_checks` -> check. A check returns the properties if it changes them."""


@cache
def _relevant_checks(
    names: tuple[str, ...],
    reply_to: bool,
    expiration: bool,
    copies: bool,
    topic_permission: bool,
    user_id: bool,
    deaths: bool,
    delivery_mode: bool,
) -> tuple[_Check, ...]:
    """Return the relevant checks among `names`, in the same order."""
    wanted = {
        "reply-to": reply_to,
        "expiration": expiration,
        "copies": copies,
        "topic-permission": topic_permission,
        "user-id": user_id,
        "deaths": deaths,
        "delivery-mode": delivery_mode,
    }
    return tuple(_CHECKS[name] for name in names if wanted[name])


def too_large(channel: BaseChannel, size: int) -> ModelError:
    """Return the error for a body of `size` bytes, which exceeds the limit (reply-code/content-too-large)."""
    personality = channel.personality
    text = f"message size {size} is larger than configured max size {personality.largest_message}"
    refusal = (
        PreconditionFailed
        if personality.largest_message_condition == "precondition-failed"
        else ContentTooLarge
    )
    return refusal(text)
