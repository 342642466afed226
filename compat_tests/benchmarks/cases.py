"""What is timed inside the process: codecs, routing, and whole conversations without sockets.

A case makes what it needs and returns a function to time; `operations` says how many of what it counts
one call of that function does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from compat_tests.fuzz.streams import RICH_HEADERS
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ, edit_table, encode_table

__all__ = ["CASES", "Case"]

Timed = Callable[[], object]
BODY = b"x" * 100
MANY = 1000


@dataclass(frozen=True)
class Case:
    """One thing to time."""

    group: str
    name: str
    make: Callable[[], Timed]
    operations: int = 1


CASES: list[Case] = []


def case(group: str, name: str, operations: int = 1) -> Callable[[Callable[[], Timed]], Callable[[], Timed]]:
    def enter(make: Callable[[], Timed]) -> Callable[[], Timed]:
        CASES.append(Case(group, name, make, operations))
        return make

    return enter


# --- codecs ---------------------------------------------------------------------------------------------


@case("codec", "decode basic.publish")
def _() -> Timed:
    octets = m.BasicPublish(exchange="events", routing_key="orders.created").encode()
    return lambda: m.BasicPublish.decode(octets, RABBITMQ)


@case("codec", "encode basic.deliver")
def _() -> Timed:
    method = m.BasicDeliver(consumer_tag="ctag1.1", delivery_tag=1, exchange="events", routing_key="a.b")
    return method.encode


@case("codec", "decode queue.declare with arguments")
def _() -> Timed:
    arguments = {"x-max-length": 10, "x-dead-letter-exchange": "dead", "x-message-ttl": 60_000}
    octets = m.QueueDeclare(queue="orders", durable=True, arguments=arguments).encode()
    return lambda: m.QueueDeclare.decode(octets, RABBITMQ)


@case("codec", "decode three properties")
def _() -> Timed:
    octets = BasicProperties(content_type="application/json", delivery_mode=2, message_id="1234").encode()
    return lambda: BasicProperties.decode(octets, 0, RABBITMQ)


@case("codec", "encode three properties")
def _() -> Timed:
    properties = BasicProperties(content_type="application/json", delivery_mode=2, message_id="1234")
    return properties.encode


@case("codec", "decode a table of every type")
def _() -> Timed:
    octets = encode_table(RICH_HEADERS)
    return lambda: RABBITMQ.decode(octets, 0, len(octets))


@case("codec", "encode a table of every type")
def _() -> Timed:
    return lambda: encode_table(RICH_HEADERS)


@case("codec", "change one field of that table")
def _() -> Timed:
    octets = encode_table(RICH_HEADERS)
    return lambda: edit_table(octets, {"number": 2})


# --- routing --------------------------------------------------------------------------------------------


def message(exchange: str, routing_key: str, **properties: Any) -> Message:
    return Message(exchange, routing_key, BasicProperties(**properties), BODY)


def topology() -> Any:
    """A virtual host with a thousand queues, bound in every way."""
    vhost = Server().vhost
    for number in range(MANY):
        queue = vhost.queues.declare(f"q{number}")
        vhost.bindings.bind("amq.direct", queue, f"key{number}")
        vhost.bindings.bind("amq.topic", queue, f"region{number % 10}.*.kind{number}.#")
        if number < 100:
            vhost.bindings.bind("amq.headers", queue, "", {"x-match": "all", "number": number, "kind": "a"})
        if number < 10:
            vhost.bindings.bind("amq.fanout", queue, "")
    return vhost


def routes(exchange: str, routing_key: str, *, remembered: bool, expected: int, **properties: Any) -> Timed:
    routing = topology().routing
    published = message(exchange, routing_key, **properties)
    assert len(routing.plan(published)[1].queues) == expected

    def plan() -> None:
        if not remembered:
            routing.invalidate()
        routing.plan(published)

    return plan


@case("routing", "direct, remembered")
def _() -> Timed:
    return routes("amq.direct", "key500", remembered=True, expected=1)


@case("routing", "direct, 1000 bindings")
def _() -> Timed:
    return routes("amq.direct", "key500", remembered=False, expected=1)


@case("routing", "topic, 1000 bindings")
def _() -> Timed:
    return routes("amq.topic", "region5.x.kind505.y.z", remembered=False, expected=1)


@case("routing", "headers, 100 bindings")
def _() -> Timed:
    return routes("amq.headers", "", remembered=False, expected=1, headers={"number": 50, "kind": "a"})


# --- whole conversations --------------------------------------------------------------------------------


def publish_bytes(
    exchange: str, routing_key: str, *, channel: int = 1, body: bytes = BODY, properties: bytes = b"\0\0"
) -> bytes:
    method = m.BasicPublish(exchange=exchange, routing_key=routing_key)
    return method_frame(channel, method.encode()) + b"".join(
        content_frames(channel, 60, properties, body, 100_000)
    )


def described(number: int) -> bytes:
    """Properties as many programs set them; `number` is the message's own."""
    headers = {"tenant": "a", "attempt": 1}
    properties = BasicProperties(
        content_type="application/json", message_id=str(UUID(int=number)), headers=headers
    )
    return properties.encode()


def conversation(*setup: m.Method, octets: bytes, channels: int = 1) -> tuple[Client, Timed]:
    """A client that sends `octets` over and over; what comes is counted and thrown away."""
    client = Server().client(channels=channels)
    client.declare("q")
    for method in setup:
        client.send(method)
    connection = client.connection

    def run() -> None:
        connection.receive(octets)
        connection.sent(sum(map(len, connection.pending())))

    return client, run


@case("broker", "publish, deliver without ack", MANY)
def _() -> Timed:
    setup = m.BasicConsume(queue="q", no_ack=True)
    return conversation(setup, octets=publish_bytes("", "q") * MANY)[1]


@case("broker", "publish, deliver, one multiple ack", MANY)
def _() -> Timed:
    octets = publish_bytes("", "q") * MANY
    octets += method_frame(1, m.BasicAck(delivery_tag=0, multiple=True).encode())
    return conversation(m.BasicConsume(queue="q"), octets=octets)[1]


@case("broker", "publish, deliver, each with properties of its own", MANY)
def _() -> Timed:
    octets = b"".join(publish_bytes("", "q", properties=described(number)) for number in range(MANY))
    octets += method_frame(1, m.BasicAck(delivery_tag=0, multiple=True).encode())
    return conversation(m.BasicConsume(queue="q"), octets=octets)[1]


@case("broker", "publish, confirm", MANY)
def _() -> Timed:
    octets = publish_bytes("", "q") * MANY + method_frame(1, m.QueuePurge(queue="q", no_wait=True).encode())
    return conversation(m.ConfirmSelect(), octets=octets)[1]


@case("broker", "publish, get without ack", MANY)
def _() -> Timed:
    get = method_frame(1, m.BasicGet(queue="q", no_ack=True).encode())
    return conversation(octets=(publish_bytes("", "q") + get) * MANY)[1]


@case("broker", "publish to a fanout of ten", MANY)
def _() -> Timed:
    server = Server()
    client = server.client()
    for number in range(10):
        client.declare(f"q{number}")
        client.bind(f"q{number}", "amq.fanout")
        client.consume(f"q{number}", no_ack=True)
    octets = publish_bytes("amq.fanout", "") * (MANY // 10)
    connection = client.connection

    def run() -> None:
        connection.receive(octets)
        connection.sent(sum(map(len, connection.pending())))

    return run


@case("broker", "deliver, ack one by one", MANY)
def _() -> Timed:
    client, _ = conversation(octets=b"")
    client.consume("q")
    octets = publish_bytes("", "q") * MANY
    connection = client.connection
    last = 0

    def run() -> None:
        nonlocal last
        connection.receive(octets)
        acks = b"".join(
            method_frame(1, m.BasicAck(delivery_tag=tag).encode()) for tag in range(last + 1, last + MANY + 1)
        )
        last += MANY
        connection.receive(acks)
        connection.sent(sum(map(len, connection.pending())))

    return run


@case("broker", "requeue a thousand and deliver them again", MANY)
def _() -> Timed:
    client, _ = conversation(octets=publish_bytes("", "q"))
    client.consume("q")
    connection = client.connection
    connection.receive(publish_bytes("", "q") * MANY)
    requeue = method_frame(1, m.BasicNack(delivery_tag=0, multiple=True, requeue=True).encode())

    def run() -> None:
        connection.receive(requeue)
        connection.sent(sum(map(len, connection.pending())))

    return run
