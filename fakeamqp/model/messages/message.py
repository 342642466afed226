"""Messages and their properties, independent of the protocol they were published with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.arguments.values import LONGEST_TTL
from fakeamqp.model.erlang import Atom, pretty
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.memory import Charge

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.dead_letters import Deaths
    from fakeamqp.model.erlang import Plain
    from fakeamqp.model.memory import Memory
    from fakeamqp.model.routing import Copies
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost


_MOST_MESSAGES = 100
_MOST_OCTETS = 256 * 1024 * 1024


class Identity:
    """Tells the publisher of a message from others, without keeping its connection in memory.

    `name` is that of the connection; None for a queue that dead-letters messages.
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
        further_bytes: those that queues count besides the body.
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
        "further_bytes",
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
        self.further_bytes: int = 0
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
        copy.further_bytes = self.further_bytes
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


class Int64(int):
    """An integer that field tables encode as a 64-bit integer, however small it is: see `encode_table`."""

    field_tag = "l"


_INTEGER = re.compile("[+-]?[0-9]+")


def time_to_live(expiration: str) -> float:
    """The seconds of an `expiration` property; PreconditionFailed, with RabbitMQ's text, if it is illegal."""
    number = _INTEGER.match(expiration)
    if number is None:
        problem: Atom | tuple[Plain, ...] = Atom("no_integer")
    elif number.end() < len(expiration):
        problem = Atom("leftover_string"), expiration[number.end() :]
    elif int(expiration) < 0:
        problem = Atom("value_negative"), int(expiration)
    elif int(expiration) > LONGEST_TTL:
        problem = Atom("value_too_large"), int(expiration)
    else:
        return int(expiration) / 1000
    text = f"invalid expiration '{expiration}': "
    raise PreconditionFailed(text + pretty(problem, text))


class MessageProperties(TypedDict, total=False):
    """The properties of a message besides its headers. A property that is missing or None is absent.

    `timestamp` is in seconds since the epoch; `expiration` is in milliseconds, as text.
    """

    content_type: str | None
    content_encoding: str | None
    delivery_mode: int | None
    priority: int | None
    correlation_id: str | None
    reply_to: str | None
    expiration: str | None
    message_id: str | None
    timestamp: int | None
    type: str | None
    user_id: str | None
    app_id: str | None


class UnknownProperty(FakeAMQPError):
    """No message property has this name."""

    __module__ = "fakeamqp.errors"


@dataclass(frozen=True)
class PlainProperties:
    """Message properties as plain values (see `ReadableProperties`); None means absent."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None

    def exact_headers(self) -> tuple[tuple[str, Any, bytes], ...] | None:
        return None

    def last_headers(self) -> Mapping[str, Any]:
        return self.headers or {}

    def header_tag(self, name: str) -> str | None:
        return None

    def with_headers(
        self, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
    ) -> Self:
        headers = {**(self.headers or {}), **changes}
        for name in remove:
            headers.pop(name, None)
        if ordered:
            by_name = sorted(headers.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape"))
            headers = dict(by_name)
        return replace(self, headers=headers)

    def replace(self, **changes: Any) -> Self:
        return replace(self, **changes)


_NAMES = tuple(field.name for field in fields(PlainProperties))


def plain_properties(**values: Any) -> PlainProperties:
    """Properties from keyword arguments; UnknownProperty names the nearest match."""
    for name in values:
        if name not in _NAMES:
            near = nearest(name, _NAMES)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_NAMES)}"
            raise UnknownProperty(f"messages have no property {name!r}{hint}")
    if values.get("headers") is not None:
        values["headers"] = dict(values["headers"])
    return PlainProperties(**values)


class UnfinishedMessage:
    """A message as far as it has come: `header` is its header segment, `octets` its body's beginning."""

    __slots__ = ("charge", "header", "octets", "timer")

    def __init__(self, header: bytes | None, octets: bytes | bytearray) -> None:
        self.header: bytes | None = header
        self.octets: bytes | bytearray = octets
        self.timer: Timer | None = None
        self.charge: Charge | None = None

    def weigh(self, memory: Memory) -> None:
        """Charge the memory with what has come, for as long as this is kept."""
        if self.charge is None:
            self.charge = Charge(memory.unfinished, len(self.octets))
        else:
            self.charge.change(len(self.octets))


M = TypeVar("M", bound=UnfinishedMessage)


class UnfinishedMessages(Generic[M]):
    """What ended sessions have left behind in one virtual host, for others of the same user to resume.

    The sender has named each message, and said for how long it is worth keeping (resume-id, resume-ttl, or
    the identifier of what is staged). The latest hundred of at most 256 MiB together are kept, until the
    broker restarts.
    """

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._kept: dict[tuple[str, str], M] = {}
        self._octets = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, user: str, resume_id: str, message: M, ttl: float | None = None) -> None:
        """Keep this in place of what there is under the same id: for `ttl` seconds, or for as long as may be.

        Sources: message.delivery-properties/resume-id, message.delivery-properties/resume-ttl.
        """
        self.take(user, resume_id)
        if not message.octets:
            return
        message.weigh(self._virtual_host.state.memory)
        self._kept[user, resume_id] = message
        self._octets += len(message.octets)
        if ttl is not None:
            label = f"interrupted message {resume_id!r} is forgotten"
            message.timer = self._virtual_host.call_later(ttl, lambda: self.take(user, resume_id), label)
        while len(self._kept) > _MOST_MESSAGES or self._octets > _MOST_OCTETS:
            self.take(*next(iter(self._kept)))

    def take(self, user: str, resume_id: str) -> M | None:
        message = self._kept.pop((user, resume_id), None)
        if message is not None:
            self._octets -= len(message.octets)
            if message.timer is not None:
                message.timer.cancel()
        return message

    def clear(self) -> None:
        for user, resume_id in list(self._kept):
            self.take(user, resume_id)
