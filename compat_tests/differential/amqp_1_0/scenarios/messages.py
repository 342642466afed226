"""Scenarios of messages: what the broker keeps, adds and converts."""

from __future__ import annotations

from uuid import UUID

from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, Play, each
from compat_tests.scripted.amqp_1_0 import filters, message, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Byte,
    Char,
    Float,
    Int,
    Milliseconds,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)

BODIES = {
    "data": message(b"abc"),
    "empty_data": message(b""),
    "two_data": section(0x75, b"one") + section(0x75, b"two"),
    "value": message("text"),
    "map": message({"a": 1, Symbol("b"): [UInt(5), None]}),
    "null": section(0x77, None),
    "sequence": section(0x76, [1, "a"]) + section(0x76, []),
    "footer": message(b"x", footer={Symbol("x-f"): 1}),
    "delivery_annotations": message(b"x", delivery_annotations={Symbol("x-d"): 1}),
    "header": message(b"x", header=c.Header(durable=True, priority=7, ttl=100000)),
    "transient": message(b"x", header=c.Header(durable=False)),
    "counted": message(b"x", header=c.Header(delivery_count=5, first_acquirer=True)),
    "annotations": message(b"x", annotations={Symbol("x-a"): 1, Symbol("x-opt-b"): "t"}),
    "own_names": message(b"x", annotations={Symbol("x-exchange"): "e", Symbol("x-routing-key"): "k"}),
    "properties": message(
        b"x",
        properties=c.Properties(
            message_id="m",
            user_id=b"guest",
            to="t",
            subject="s",
            reply_to="r",
            correlation_id=ULong(5),
            content_type=Symbol("a/b"),
            content_encoding=Symbol("e"),
            absolute_expiry_time=1000,
            creation_time=2000,
            group_id="g",
            group_sequence=3,
            reply_to_group_id="rg",
        ),
    ),
    "application": message(
        b"x",
        application={
            "b": True,
            "ub": UByte(1),
            "us": UShort(2),
            "ui": UInt(3),
            "ul": ULong(4),
            "by": Byte(-1),
            "sh": Short(-2),
            "in": Int(-3),
            "lo": -4,
            "fl": Float(1.5),
            "do": 2.5,
            "ch": Char("c"),
            "ts": Milliseconds(1234),
            "uu": UUID(int=5),
            "bi": b"\xff",
            "st": "s",
            "sy": Symbol("y"),
            "nu": None,
        },
    ),
}


@each(**{f"{name}_{kind}": (kind, octets) for kind in KINDS for name, octets in BODIES.items()})
def passes(play: Play, value: tuple[str, bytes]) -> None:
    """A message through a queue."""
    kind, octets = value
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=octets)
    peer.note()
    stream = {"terminus": {"filter": filters(offset_spec="first")}} if kind == "stream" else {}
    peer.receiver(queue, 1, 5, **stream)
    peer.note()
