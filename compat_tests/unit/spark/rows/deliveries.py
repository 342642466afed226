"""Messages of every shape that a quorum queue delivers again and again, and what their digests are."""

from __future__ import annotations

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.identity import content_digest
from fakeamqp.spark.wire.connection import WireConnection

HEADERS = {"z": 1, "a": "text", "t": Timestamp(7), "n": None, "x": b"\xff", "l": [1], "d": {"z": 1, "a": 2}}
#: Tags that RabbitMQ writes in another way, and two fields with one name.
ODD = b"\x20\x80\x00\x00\x00\x15\x01zI\x00\x00\x00\x01\x01aL\x00\x00\x00\x00\x00\x00\x00\x07\x01aV\x01m"
SHAPES = {
    "none": BasicProperties().encode(),
    "empty headers": BasicProperties(headers={}, content_type="a/b", message_id="m", timestamp=7).encode(),
    "no headers": BasicProperties(content_encoding="gzip", message_id="m", delivery_mode=2).encode(),
    "headers": BasicProperties(headers=HEADERS, message_id="m", expiration="600000").encode(),
    "odd headers": ODD,
    "not UTF-8": BasicProperties(headers={"\udcff": "\udcfe"}, message_id="\udcff").encode(),
    "dead letter": BasicProperties(headers={"x-death": [{"count": 1}], "x-delivery-count": 7}).encode(),
}
DELIVERIES = 3


def check(url: str) -> None:
    """Each message has one digest, which no other one has, whatever the broker adds when it redelivers."""
    queue = "digests"
    seen: dict[str, list[bytes]] = {shape: [] for shape in SHAPES}
    counted: list[bool] = []

    def receive(_tag: int, _redelivered: bool, _route: bytes, properties: bytes, body: bytes) -> None:
        seen[body.decode()].append(content_digest(properties, b""))
        counted.append(b"x-delivery-count" in properties)

    with WireConnection(read_options({"amqp.url": url, "queue": queue}).connection) as connection:
        channel = connection.channel()
        declare = m.QueueDeclare(queue=queue, durable=True, arguments={"x-queue-type": "quorum"})
        channel.call(declare)
        publish = method_frame(channel.number, m.BasicPublish(exchange="", routing_key=queue).encode())
        for shape, octets in SHAPES.items():
            content = content_frames(channel.number, 60, octets, shape.encode(), 100_000)
            connection.send(publish + b"".join(content))
        for _ in range(DELIVERIES):
            counted.clear()
            channel.qos(len(SHAPES))
            channel.consume(queue, receive)
            channel.wait_for(lambda: len(counted) == len(SHAPES), 30, "deliver all messages")
            channel.nack(0, multiple=True, requeue=True)
            channel.close()
            channel = connection.channel()
        channel.call(m.QueueDelete(queue=queue))
    assert all(counted), "the queue has counted no return"
    assert {shape: len(digests) for shape, digests in seen.items()} == dict.fromkeys(SHAPES, DELIVERIES)
    assert {shape: len(set(digests)) for shape, digests in seen.items()} == dict.fromkeys(SHAPES, 1)
    assert len({digests[0] for digests in seen.values()}) == len(SHAPES)
