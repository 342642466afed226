"""One message, independent of the protocol it was published with, and the identity of its publisher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.dead_letters import Deaths
    from fakeamqp.model.memory import Charge
    from fakeamqp.model.routing import Copies

__all__ = [
    "Child",
    "FieldValue",
    "FileMessage",
    "Headers",
    "Identity",
    "Message",
    "ReadableProperties",
    "StreamMessage",
    "StructuredMessage",
    "identity_of",
]


class Identity:
    """Tells the publisher of a message from others, without keeping its connection in memory.

    Args:
        name: the name of the connection; None for a queue that dead-letters messages.
    """

    __slots__ = ("__weakref__", "name")

    def __init__(self, name: str | None = None) -> None:
        self.name: str | None = name

    def __repr__(self) -> str:
        return f"<Identity of {self.name}>"


def identity_of(owner: object) -> object:
    """The identity of a connection, or what the model knows as an owner without one."""
    return getattr(owner, "identity", owner)


FieldValue: TypeAlias = "bool | int | float | str | bytes | Decimal | list[Any] | dict[str, Any] | None"
Headers: TypeAlias = "dict[str, Any]"


class ReadableProperties(Protocol):
    """The message properties that the model reads; each protocol's decoded properties provide them."""

    @property
    def content_type(self) -> str | None:
        """MIME type of the body."""

    @property
    def content_encoding(self) -> str | None:
        """MIME encoding of the body."""

    @property
    def headers(self) -> Headers | None:
        """Application headers, or None if the message has none."""

    @property
    def delivery_mode(self) -> int | None:
        """2 means persistent; any other value, or None, means transient."""

    @property
    def priority(self) -> int | None:
        """From 0 (lowest) upwards."""

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
        """The publishing user, validated if the personality does so."""

    @property
    def app_id(self) -> str | None:
        """For the application."""

    def header_tag(self, name: str) -> str | None:
        """The letter of the field type that encoded a header; None if it was not decoded from a frame."""

    def exact_headers(self) -> tuple[tuple[str, Any, bytes], ...] | None:
        """Name, value and encoded value of every header, if these are known."""

    def last_headers(self) -> Mapping[str, Any]:
        """The headers; of several with one name that a client sent, the last instead of the first."""

    def with_headers(
        self, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
    ) -> Self:
        """A copy with some headers set and some removed; the others keep their encoding.

        `ordered` sorts them by the bytes of their names.
        """

    def replace(self, **changes: Any) -> Self:
        """A copy with new values for some properties."""


class Child(NamedTuple):
    """A content nested in another one (0-9: content/child-contents).

    `properties_bytes` are its property flags and property list as received, of the class `class_id`.
    """

    class_id: int
    properties_bytes: bytes
    body: bytes
    children: tuple[Child, ...] = ()


class Message:
    """A message as it was published. All queues that it was routed to share the same object.

    Attributes:
        properties_bytes: the encoded properties as received. A delivery over the same protocol family
            forwards them.
        encoding: the name of that protocol family.
        expiry: the time to live from the message's own expiration, in seconds, if it has one.
        charge: what the message counts of the broker's memory, None until it is stored. Copies share it.
        secured: the publish was confirmed or committed, so that a crash may not lose the message.
        copies: further routing keys from the headers CC and BCC.
        history: its deaths, if it was dead-lettered.
        failures: the failed deliveries counted by the quorum queue that it was dead-lettered from.
        number: counts the messages published while a tap is installed, from 1; copies and dead letters have
            the number of the original, and 0 means none.
        content_class: the AMQP class of its content.
        children: the nested contents. Nearly all messages are of class basic and have none; the others are
            `StructuredMessage`s.
    """

    content_class: str = "basic"
    children: tuple[Child, ...] = ()

    __slots__ = (
        "body",
        "charge",
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
        properties: ReadableProperties,
        body: bytes,
        encoding: str = "",
        properties_bytes: bytes = b"",
        publisher: object = None,
        expiry: float | None = None,
        published_at: float = 0.0,
    ) -> None:
        self.exchange: str = exchange
        self.routing_key: str = routing_key
        self.properties: ReadableProperties = properties
        self.body: bytes = body
        self.encoding: str = encoding
        self.properties_bytes: bytes = properties_bytes
        self.publisher: object = publisher
        self.expiry: float | None = expiry
        self.published_at: float = published_at
        self.secured: bool = False
        self.copies: Copies | None = None
        self.history: Deaths | None = None
        self.failures: int = 0
        self.number: int = 0
        self.charge: Charge | None = None

    @property
    def headers(self) -> Headers:
        """The application headers; empty where there are none."""
        return self.properties.headers or {}

    @property
    def persistent(self) -> bool:
        """True if the message survives a restart in a durable queue (basic/property-delivery-mode)."""
        return self.properties.delivery_mode == 2

    @property
    def priority(self) -> int:
        """The priority; 0 if it is absent."""
        return self.properties.priority or 0

    def with_properties(self, properties: ReadableProperties) -> Message:
        """A copy of the message with other properties."""
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
        copy.charge = self.charge
        if isinstance(copy, StructuredMessage):
            copy.children = self.children
        return copy

    def __repr__(self) -> str:
        shown = self.body if len(self.body) <= 40 else self.body[:37] + b"..."
        return f"<Message {shown!r} exchange={self.exchange!r} routing_key={self.routing_key!r}>"


class StructuredMessage(Message):
    """A message that may have child contents. `children` is set after its creation."""

    # Without __slots__, instances can override the class attributes `content_class` and `children`.


class FileMessage(StructuredMessage):
    """A message of class file. It may have child contents as well."""

    content_class = "file"


class StreamMessage(StructuredMessage):
    """A message of class stream. It may have child contents as well."""

    content_class = "stream"


_KINDS: dict[str, type[StructuredMessage]] = {
    "basic": StructuredMessage,
    "file": FileMessage,
    "stream": StreamMessage,
}
