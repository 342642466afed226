"""The firehose: the exchange amq.rabbitmq.trace gets a copy of what a virtual host takes and delivers.

RabbitMQ: documented, and measured on 3.10.8, 4.0.5 and 4.3.6. A published message is copied when it is
routed, in a transaction before the commit; a delivered one when it is sent, to a consumer or for basic.get.
Dead letters are copied only when they are delivered, and copies are not copied again. Where the key of a copy
would be too long there is none: RabbitMQ ends connections that are sent such a message with 541 (measured).
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.names import LONGEST_NAME, NODE, octets_of
from fakeamqp.model.routing import Router

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import ReadableProperties
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.virtual_host import VirtualHost

TRACE_EXCHANGE = "amq.rabbitmq.trace"

_PROPERTIES = ("cluster_id", *(each.name for each in reversed(fields(PlainProperties))))
"""In the order of RabbitMQ's table: the last of the class is the first."""


class PublishSource(NamedTuple):
    """The origin of a message: the name of the connection, the number of the channel, and the user."""

    connection: str
    channel: int
    user: str


TEST = PublishSource("Broker.publish", 0, "rmq-internal")
"""What a test publishes. RabbitMQ has channel 0 where no channel publishes, and this user for itself (tagged
source of 4.0)."""


class _Headers(dict[str, Any]):
    """The headers of a copied message; `encoded_fields` has them as they were received."""

    __slots__ = ("encoded_fields",)
    encoded_fields: bytes


class Firehose:
    """The firehose of one virtual host, while it is on."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        self.publisher: PublishSource | None = None
        """The source of the message that is routed next. Other routed messages are not copied."""
        self._virtual_host = virtual_host
        self._rewrites_headers: bool = virtual_host.state.personality.rewrites_headers

    def published(self, message: Message, outcome: Outcome) -> None:
        """Copy a message that was routed, if `publisher` is known."""
        source, self.publisher = self.publisher, None
        if source is None:
            return
        # Measured: the default exchange names queues that do not exist, too. Where headers are rewritten, all
        # other exchanges name queues in descending order.
        names = {queue.name for queue in outcome.queues} if message.exchange else set(_routing_keys(message))
        queues = sorted(names, reverse=bool(message.exchange) and self._rewrites_headers)
        headers = {**self._origin(source), "routed_queues": queues}
        self._copy(message, f"publish.{message.exchange}", headers)

    def delivered(self, source: PublishSource, queue: str, message: Message, redelivered: bool) -> None:
        """Copy a message that was sent to a client."""
        headers = {"redelivered": int(redelivered), **self._origin(source)}
        self._copy(message, f"deliver.{queue}", headers)

    def _origin(self, source: PublishSource) -> dict[str, Any]:
        return {"vhost": self._virtual_host.name, **source._asdict()}

    def _copy(self, message: Message, key: str, headers: dict[str, Any]) -> None:
        if message.exchange == TRACE_EXCHANGE or octets_of(key) > LONGEST_NAME:
            return
        headers = {
            "exchange_name": message.exchange,
            "routing_keys": _routing_keys(message),
            "properties": _table(message.properties),
            "node": NODE,
            **headers,
        }
        if self._rewrites_headers:
            headers = dict(sorted(headers.items()))
        copy = Message(TRACE_EXCHANGE, key, PlainProperties(headers=headers), message.body)
        self._virtual_host.offer(copy, self._virtual_host.routing.route(copy), mandatory=True)


class TracingRouter(Router):
    """The routing of a virtual host whose firehose is on."""

    __slots__ = ("_firehose",)

    def __init__(self, virtual_host: VirtualHost, firehose: Firehose) -> None:
        super().__init__(virtual_host)
        self._firehose = firehose

    def plan(self, message: Message, alternates: bool = True) -> tuple[Message, Outcome]:
        """Plan the routing, and publish the copy before the message."""
        message, outcome = super().plan(message, alternates)
        self._firehose.published(message, outcome)
        return message, outcome


def _routing_keys(message: Message) -> list[str]:
    return [message.routing_key, *(message.copies.keys if message.copies is not None else ())]


def _table(properties: ReadableProperties) -> dict[str, Any]:
    """The properties that a message has. Integers have 32 bits, also those that do not fit (measured)."""
    found: dict[str, Any] = {}
    for name in _PROPERTIES:
        value = getattr(properties, name, None)
        if isinstance(value, dict):
            found[name] = _headers(properties, value)
        elif isinstance(value, int):
            found[name] = (value + 0x80000000) % 0x100000000 - 0x80000000
        elif value is not None:
            found[name] = value
    return found


def _headers(properties: ReadableProperties, value: dict[str, Any]) -> dict[str, Any]:
    exact = properties.exact_headers()
    if exact is None:
        return value
    headers = _Headers(value)
    headers.encoded_fields = b"".join(
        bytes((len(octets := name.encode("utf-8", "surrogateescape")),)) + octets + encoded
        for name, _, encoded in exact
    )
    return headers
