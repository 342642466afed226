"""Checks of a published content of class basic: permissions, and the properties that the broker interprets.

`PublishTarget` is a decoded basic.publish. Clients publish repeatedly with a few exchanges and keys, so each
channel caches targets by the bytes of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Protocol

from fakeamqp.model.dead_letters import claimed_deaths
from fakeamqp.model.errors import ContentTooLarge, ModelError, PreconditionFailed
from fakeamqp.model.messages.message import time_to_live
from fakeamqp.model.routing import (
    PSEUDO_QUEUE,
    ReplyAddress,
    carbon_copies,
    is_reply_address,
    without_blind_copies,
)
from fakeamqp.protocols.amqp_0_9_1 import delivering

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
    from fakeamqp.protocols.amqp_0_9_1.malformed import MalformedContent
    from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

    _Check: TypeAlias = Callable[["BaseChannel", Message, "BasicProperties"], "BasicProperties | None"]

__all__ = [
    "PublishTarget",
    "UnknownContent",
    "UnreadableContent",
    "authorise",
    "examine",
    "needs_examination",
    "return_if_needed",
    "too_large",
]

_PUBLISH = 60 << 16 | 40


class Publish(Protocol):
    """basic.publish of either protocol."""

    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool


class PublishTarget:
    """Exchange, key and flags of a publish.

    `index` is that of the method, and `checked` the version of the access rules last checked.
    """

    __slots__ = ("checked", "exchange", "immediate", "index", "mandatory", "routing_key")

    def __init__(self, method: Publish) -> None:
        self.index: int = _PUBLISH
        self.exchange: str = method.exchange
        self.routing_key: str = method.routing_key
        self.mandatory: bool = method.mandatory
        self.immediate: bool = method.immediate
        self.checked: int = -1

    def authorise(self, channel: BaseChannel, *, key: bool) -> None:
        """See the function `authorise`."""
        authorise(channel, self, key=key)


class UnreadableContent(PublishTarget):
    """A publish with properties that cannot be read: an error once the user may publish it."""

    __slots__ = ("_problem", "_target")

    def __init__(self, target: PublishTarget, problem: MalformedContent) -> None:
        super().__init__(target)
        self.index: int = target.index
        self._target = target
        self._problem = problem

    def authorise(self, channel: BaseChannel, *, key: bool) -> None:
        """See the base class.

        Raises:
            MalformedContent: always, if nothing else is wrong.
        """
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
        """See the base class.

        Raises:
            ProtocolError: always.
        """
        raise self._refusal


_DELIVERY_MODES = (None, 1, 2)


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


def authorise(channel: BaseChannel, target: PublishTarget, *, key: bool) -> None:
    """Check that the user may publish to the exchange; with `key`, check the routing key too.

    Raises:
        AccessRefused: the user may not publish there, or the exchange is internal.
        NotFound: the exchange does not exist.
    """
    channel.authorise("write", "exchange", target.exchange)
    channel.virtual_host.routing.check_publishable(target.exchange)
    if key:
        _authorise_keys(channel, target.exchange, (target.routing_key,))
    target.checked = channel.access.version


def _authorise_keys(channel: BaseChannel, exchange: str, keys: Iterable[str]) -> None:
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
    _authorise_keys(channel, message.exchange, (message.routing_key, *copies))


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
