"""Contents of classes file and stream: publish, encode, return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.model.messages.staging import publish_content
from fakeamqp.protocols.amqp_0_9.access import use_ticket
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.message_properties import (
    FILE_ENCODING,
    STREAM_ENCODING,
    FileMessageProperties,
    StreamMessageProperties,
)
from fakeamqp.protocols.amqp_0_9_1.replies import short_text
from fakeamqp.protocols.amqp_0_9_1.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

    Publish: TypeAlias = m.FilePublish | m.StreamPublish

__all__ = ["FILE", "STREAM", "ContentClass", "authorise", "octets", "publish"]


@dataclass(frozen=True)
class ContentClass:
    """The differences between the two classes."""

    number: int
    encoding: str
    properties: type[FileMessageProperties | StreamMessageProperties]
    returns: type[m.FileReturn | m.StreamReturn]


FILE = ContentClass(m.FilePublish.CLASS_ID, FILE_ENCODING, FileMessageProperties, m.FileReturn)
STREAM = ContentClass(m.StreamPublish.CLASS_ID, STREAM_ENCODING, StreamMessageProperties, m.StreamReturn)


def authorise(channel: Amqp09Channel, method: Publish) -> None:
    """Check that the client may publish; a blank name is the default exchange (file.publish/exchange-01).

    Raises:
        NotFound: the exchange does not exist.
        AccessRefused: ticket or permissions do not allow it, or the exchange is internal.
        NotAllowed: the ticket belongs to another channel.
    """
    name, virtual_host = method.exchange, channel.virtual_host
    use_ticket(channel, method.ticket, "write", "exchange", name)
    channel.authorise("write", "exchange", name)
    virtual_host.routing.check_publishable(name)
    if virtual_host.exchanges.require(name).type_name == "topic":
        channel.access.check_topic(channel.user, virtual_host.name, "write", name, method.routing_key)


def octets(kind: ContentClass, message: Message) -> bytes:
    """Return flags and list of the properties: as received, or converted from another protocol's."""
    if message.encoding != kind.encoding:
        properties = message.properties
        if not isinstance(properties, kind.properties):
            properties = kind.properties.of(properties)
        message.properties_bytes, message.encoding = properties.encode(), kind.encoding
    return message.properties_bytes


def publish(
    channel: Amqp09Channel,
    kind: ContentClass,
    method: Publish,
    message: Message,
    transaction: Transaction | None,
) -> None:
    """Route a message, now or when the transaction is committed, and return it if necessary."""
    message.published_at = channel.connection.broker.clock.time()
    publish_content(
        channel.virtual_host,
        message,
        mandatory=method.mandatory,
        immediate=method.immediate,
        on_outcome=partial(_return_if_needed, channel, kind, method, message),
        transaction=transaction,
    )


def _return_if_needed(
    channel: Amqp09Channel, kind: ContentClass, method: Publish, message: Message, outcome: Outcome
) -> None:
    """Return a message if its flags ask for it, and a file that a full queue refused (file/02)."""
    if outcome.unconsumed:
        _return(channel, kind, message, "no-consumers", "no consumer can take the message immediately")
    elif method.mandatory and not outcome.routed:
        _return(channel, kind, message, "no-route", "the message is not routed to any queue")
    elif outcome.refused and message.content_class == "file":
        _return(channel, kind, message, "content-too-large", str(outcome))


def _return(channel: Amqp09Channel, kind: ContentClass, message: Message, condition: str, text: str) -> None:
    """Return a message to its publisher, if the channel is still open (file.return/content)."""
    if channel.state is not ChannelState.OPEN:
        return
    code = channel.connection.REPLIES.code(condition)
    channel.virtual_host.message_outcomes.returned(message, code, text, channel.number)
    channel.send_content(
        kind.returns(
            reply_code=code,
            reply_text=short_text(text),
            exchange=message.exchange,
            routing_key=message.routing_key,
        ),
        kind.number,
        octets(kind, message),
        message.body,
        message.children,
    )
