"""Contents of classes file and stream: publish, encode, return.

A consumer gets the content and its properties as its own protocol and class encode them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.messages.contents import publish_content
from fakeamqp.model.messages.message import FileMessage, StreamMessage, identity_of
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.codec.constants import ReturnCode, SegmentType
from fakeamqp.protocols.amqp_0_10.properties import FILE_ENCODING, STREAM_ENCODING, ContentProperties
from fakeamqp.protocols.amqp_0_10.states import SessionState

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = [
    "FILE",
    "STREAM",
    "ContentClass",
    "ContentTarget",
    "authorise",
    "header",
    "message",
    "note_publish",
    "publish",
]


@dataclass(frozen=True)
class ContentClass:
    """The differences between the two classes."""

    encoding: str
    message: type[FileMessage | StreamMessage]
    returns: type[commands.FileReturn | commands.StreamReturn]


FILE = ContentClass(FILE_ENCODING, FileMessage, commands.FileReturn)
STREAM = ContentClass(STREAM_ENCODING, StreamMessage, commands.StreamReturn)


class ContentTarget(NamedTuple):
    """The destination of a content, and the conditions of its return."""

    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool

    @classmethod
    def of(cls, command: commands.FilePublish | commands.StreamPublish) -> ContentTarget:
        """The fields of a publish; a blank exchange is the default one (file.publish/exchange-default)."""
        return cls(
            command.exchange or "",
            command.routing_key or "",
            bool(command.mandatory),
            bool(command.immediate),
        )


def authorise(session: ServerSession, target: ContentTarget) -> None:
    """Check that the client may publish to the exchange.

    Raises:
        NotFound: the exchange does not exist.
        AccessRefused: permissions do not allow it, or the exchange is internal.
    """
    session.authorise("write", "exchange", target.exchange)
    session.virtual_host.routing.check_publishable(target.exchange)
    if session.virtual_host.exchanges.require(target.exchange).type_name == "topic":
        host = session.virtual_host.name
        session.access.check_topic(session.user, host, "write", target.exchange, target.routing_key)


def message(
    session: ServerSession, kind: ContentClass, target: ContentTarget, octets: bytes | None, body: bytes
) -> Message:
    """The message of a content; `octets` is its header segment.

    Raises:
        SegmentError: the header segment is invalid, or has no properties of the class.
    """
    properties = ContentProperties.decode(kind.encoding, octets)
    made = kind.message(
        target.exchange,
        target.routing_key,
        properties,
        body,
        kind.encoding,
        octets or b"",
        identity_of(session.connection),
    )
    note_publish(session, made)
    return made


def note_publish(session: ServerSession, message: Message) -> None:
    """Set when a message was published, and that a completion confirms it."""
    message.published_at = session.broker.clock.time()
    message.secured = True


def header(kind: ContentClass, message: Message) -> bytes:
    """The header segment of a message: as received, or converted from another protocol or class."""
    if message.encoding != kind.encoding:
        properties = ContentProperties.of(kind.encoding, message.properties)
        message.properties_bytes, message.encoding = properties.encode(), kind.encoding
    return message.properties_bytes


# --- publishing --------------------------------------------------------------------------------------


def publish(
    session: ServerSession,
    kind: ContentClass,
    target: ContentTarget,
    message: Message,
    transaction: Transaction | None,
) -> None:
    """Route a message, now or when the transaction is committed, and return it if necessary.

    Source: file/transactions.
    """
    size, largest = len(message.body), session.personality.largest_message
    if largest and size > largest:
        text = f"message size {size} is larger than configured max size {largest}"
        send_back(session, kind, message, ReturnCode.CONTENT_TOO_LARGE, text)
        return
    publish_content(
        session.virtual_host,
        message,
        mandatory=target.mandatory,
        immediate=target.immediate,
        on_outcome=partial(_return_if_needed, session, kind, target, message),
        transaction=transaction,
    )


def _return_if_needed(
    session: ServerSession, kind: ContentClass, target: ContentTarget, message: Message, outcome: Outcome
) -> None:
    """Return a message if its flags ask for it, and a message that a full queue refused."""
    if outcome.unconsumed:
        send_back(
            session, kind, message, ReturnCode.NO_CONSUMERS, "no consumer can take the message immediately"
        )
    elif target.mandatory and not outcome.routed:
        send_back(session, kind, message, ReturnCode.NO_ROUTE, "the message is not routed to any queue")
    elif outcome.refused:
        send_back(session, kind, message, ReturnCode.CONTENT_TOO_LARGE, str(outcome))


def send_back(
    session: ServerSession, kind: ContentClass, message: Message, code: ReturnCode, text: str
) -> None:
    """Return a message to its publisher, if the session still exists (file.return/content)."""
    if session.state not in (SessionState.ATTACHED, SessionState.DETACHED):
        return
    session.virtual_host.message_outcomes.returned(message, code, text, session.channel)
    command = kind.returns(
        reply_code=code, reply_text=text[:200], exchange=message.exchange, routing_key=message.routing_key
    )
    session.outgoing.send(
        (
            (SegmentType.COMMAND, command.encode()),
            (SegmentType.HEADER, header(kind, message)),
            (SegmentType.BODY, message.body),
        )
    )
