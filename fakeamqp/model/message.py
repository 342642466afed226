"""One message, whatever protocol it came by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from typing_extensions import Self

if TYPE_CHECKING:
    from fakeamqp.model.carbon_copies import Copies
    from fakeamqp.model.dead_letter import Deaths

__all__ = [
    "Child",
    "FieldValue",
    "FileMessage",
    "Headers",
    "Message",
    "Properties",
    "StreamMessage",
    "StructuredMessage",
]

FieldValue: TypeAlias = "bool | int | float | str | bytes | Decimal | list[Any] | dict[str, Any] | None"
Headers: TypeAlias = "dict[str, Any]"


class Properties(Protocol):
    """What the model reads of a message's properties; each protocol's decoded properties have these."""

    @property
    def content_type(self) -> str | None:
        """MIME type of the body."""

    @property
    def content_encoding(self) -> str | None:
        """MIME encoding of the body."""

    @property
    def headers(self) -> Headers | None:
        """Application headers, or None where the message has none."""

    @property
    def delivery_mode(self) -> int | None:
        """2 = persistent; anything else, and absence, is not."""

    @property
    def priority(self) -> int | None:
        """0 (lowest) upwards."""

    @property
    def correlation_id(self) -> str | None:
        """For the application."""

    @property
    def reply_to(self) -> str | None:
        """For the application; direct reply-to rewrites it."""

    @property
    def expiration(self) -> str | None:
        """Time to live in milliseconds, as text."""

    @property
    def message_id(self) -> str | None:
        """For the application."""

    @property
    def timestamp(self) -> int | None:
        """Seconds since 1970."""

    @property
    def type(self) -> str | None:
        """For the application."""

    @property
    def user_id(self) -> str | None:
        """The publishing user, validated where the personality does so."""

    @property
    def app_id(self) -> str | None:
        """For the application."""

    def header_tag(self, name: str) -> str | None:
        """The letter of the wire type that a header came with; None where it did not come over a wire."""

    def with_headers(
        self, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
    ) -> Self:
        """A copy with some headers set and some taken out; the others keep their encoding.

        `ordered` puts them in the order of their names' bytes.
        """

    def replace(self, **changes: Any) -> Self:
        """A copy with other values for some properties."""


class Child(NamedTuple):
    """A content that another one holds (0-9: content/child-contents).

    `properties_bytes` are its property flags and list as they came, `class_id` says of which class they are.
    """

    class_id: int
    properties_bytes: bytes
    body: bytes
    children: tuple[Child, ...] = ()


class Message:
    """A message as it was published.

    `properties_bytes` is the encoding the properties arrived in and `encoding` the name of the protocol
    family it belongs to, so that a delivery over the same family forwards the bytes as received.
    `expiry` is the time to live of the message's own expiration in seconds, if it has one.
    `secured` says that the publisher was told the broker has it, so that not even a crash may lose it.
    `copies` are further routing keys it was published with, `history` the deaths it has behind it,
    `failures` how often clients failed to deal with it in the quorum queue it died in.
    `number` counts what was published while somebody watched, from 1; copies and dead letters have that of
    the message they were made of, and 0 is none.
    `content_class` is the AMQP class its content belongs to, and `children` what the content holds beside its
    body. Nearly all messages are basic and have none, so what is different is a `StructuredMessage`.
    Messages are shared by all queues they were routed to and otherwise never changed.
    """

    content_class: str = "basic"
    children: tuple[Child, ...] = ()

    __slots__ = (
        "body",
        "copies",
        "encoding",
        "exchange",
        "expiry",
        "failures",
        "history",
        "number",
        "properties",
        "properties_bytes",
        "published_at",
        "publisher",
        "routing_key",
        "secured",
    )

    def __init__(
        self,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        encoding: str = "",
        properties_bytes: bytes = b"",
        publisher: object = None,
        expiry: float | None = None,
        published_at: float = 0.0,
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.properties = properties
        self.body = body
        self.encoding = encoding
        self.properties_bytes = properties_bytes
        self.publisher = publisher
        self.expiry = expiry
        self.published_at = published_at
        self.secured = False
        self.copies: Copies | None = None
        self.history: Deaths | None = None
        self.failures = 0
        self.number = 0

    @property
    def headers(self) -> Headers:
        """The application headers; empty where there are none."""
        return self.properties.headers or {}

    @property
    def persistent(self) -> bool:
        """True where the message survives a restart in a durable queue (basic/property-delivery-mode)."""
        return self.properties.delivery_mode == 2

    @property
    def priority(self) -> int:
        """The priority; absence counts as 0."""
        return self.properties.priority or 0

    def with_properties(self, properties: Properties) -> Message:
        """The same message with other properties."""
        make = Message
        if self.children or self.content_class != "basic":
            make = _KINDS[self.content_class]
        copy = make(
            self.exchange,
            self.routing_key,
            properties,
            self.body,
            publisher=self.publisher,
            expiry=self.expiry,
            published_at=self.published_at,
        )
        copy.secured = self.secured
        copy.copies = self.copies
        copy.history = self.history
        copy.failures = self.failures
        copy.number = self.number
        if isinstance(copy, StructuredMessage):
            copy.children = self.children
        return copy

    def __repr__(self) -> str:
        shown = self.body if len(self.body) <= 40 else self.body[:37] + b"..."
        return f"<Message {shown!r} exchange={self.exchange!r} routing_key={self.routing_key!r}>"


class StructuredMessage(Message):
    """A message that has child contents. It is like any other, and `children` is set once it is made."""

    # No slots: so it can have what other messages have in common.


class FileMessage(StructuredMessage):
    """A message of class file. It, too, may have child contents."""

    content_class = "file"


class StreamMessage(StructuredMessage):
    """A message of class stream. It, too, may have child contents."""

    content_class = "stream"


_KINDS: dict[str, type[StructuredMessage]] = {
    "basic": StructuredMessage,
    "file": FileMessage,
    "stream": StreamMessage,
}
