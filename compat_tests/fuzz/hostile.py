"""Whole frames that say strange things: any method, with fields that are legal on the wire and nowhere else.

Mutated bytes rarely get past the decoder. These always do, and their names are drawn mostly from those
that exist, so that what they ask for meets real queues, exchanges, consumers and messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import reduce
from typing import Any

from hypothesis import strategies as st

from compat_tests.fuzz.streams import Client
from compat_tests.unit.codec.strategies import escaped, field_values
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

__all__ = ["headers", "methods", "named", "names", "prepared", "programs", "properties"]

QUEUES = ("plain", "mortal", "lone", "mine", "new", "newer")
EXCHANGES = ("", "amq.direct", "amq.fanout", "amq.topic", "amq.headers", "topics", "inner")
TAGS = ("one", "two", "three")
NAMES = (*QUEUES, *EXCHANGES, *TAGS, "amq.rabbitmq.reply-to", "amq.gen-1", "a.b", "#", "*")

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "x-message-ttl": (0, 1, 10_000),
    "x-expires": (1, 5, 10_000),
    "x-max-length": (0, 1, 2),
    "x-max-length-bytes": (0, 1, 20),
    "x-max-priority": (0, 1, 255),
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx"),
    "x-dead-letter-exchange": EXCHANGES,
    "x-dead-letter-routing-key": (*QUEUES, "x" * 256),
    "x-single-active-consumer": (True, False),
    "x-queue-type": ("classic", "quorum"),
    "x-match": ("all", "any", "all-with-x", "any-with-x"),
    "x-priority": (-1, 0, 2**40),
    "x-consumer-timeout": (1000,),
    "alternate-exchange": EXCHANGES,
    "number": (1, 1.0, "1"),
}
"""What an argument may well be; sometimes it is something else."""
HEADERS = ("x-death", "CC", "BCC", "x-first-death-queue", "x-last-death-reason", "number", "text")

# Sampled, not built: what is drawn from nested strategies costs thirty times the run itself.
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**40,
    1.5,
    float("nan"),
    float("-inf"),
    "",
    "text",
    "x" * 300,
    escaped(b"\xff\xfe"),
    b"\xff",
    Decimal("1E-255"),
    Timestamp(2**64 - 1),
    {},
    {"": {"x-death": []}},
    [],
    [[None], {"queue": []}, "plain"],
    reduce(lambda inner, _: [{"deeper": inner}], range(20), 0),
)


def named(known: Mapping[int, type[Method]], **classes: str) -> tuple[type[Method], ...]:
    """Methods by their names, as often as they are named."""
    by_name = {method.NAME: method for method in known.values()}
    return tuple(by_name[f"{name}.{each}"] for name, methods in classes.items() for each in methods.split())


# What only some methods are worth: those a client would never send end the connection and teach little.
USUAL = named(
    m.METHODS,
    basic="ack cancel consume get nack qos recover reject",
    channel="open close",
    confirm="select",
    exchange="bind declare delete unbind",
    queue="bind declare declare declare delete purge unbind",
    tx="commit rollback select",
)
REFERENCES = st.sampled_from((b"one", b"two", b"", b"\xff" * 300))
BODIES = st.builds(Body, REFERENCES, st.booleans())


def names() -> st.SearchStrategy[str]:
    return st.sampled_from((*NAMES, *NAMES, "ü" * 127, "x" * 255, escaped(b"\xff"), "a b\r\n", ".."))


def values() -> st.SearchStrategy[Any]:
    return st.sampled_from(VALUES)


def arguments() -> st.SearchStrategy[dict[str, Any]]:
    """Mostly sound, so that the declaration comes about."""
    return st.dictionaries(st.sampled_from(tuple(ARGUMENTS)), st.integers(0, 30), max_size=4).map(_chosen)


def _chosen(numbers: dict[str, int]) -> dict[str, Any]:
    if "x-dead-letter-routing-key" in numbers:
        numbers.setdefault("x-dead-letter-exchange", numbers["x-dead-letter-routing-key"])
    chosen: dict[str, Any] = {}
    for name, number in numbers.items():
        usual = ARGUMENTS[name]
        chosen[name] = VALUES[number - 20] if number > 25 else usual[number % len(usual)]
    return chosen


def deaths() -> st.SearchStrategy[Any]:
    entry = st.dictionaries(
        st.sampled_from(["queue", "reason", "count", "exchange", "routing-keys", "time"]),
        st.one_of(st.sampled_from(QUEUES), st.sampled_from(["rejected", "expired", "maxlen"]), values()),
        max_size=4,
    )
    return st.lists(entry | values(), max_size=3) | values()


def headers() -> st.SearchStrategy[dict[str, Any]]:
    value = st.one_of(st.lists(names() | values(), max_size=3), values(), deaths())
    return st.dictionaries(st.sampled_from(HEADERS), value, max_size=3)


@st.composite
def methods(
    draw: st.DrawFn,
    usual: tuple[type[Method], ...] = USUAL,
    every: Collection[type[Method]] = m.METHODS.values(),
) -> Method:
    """Any method, those that are usual more often."""
    method = draw(st.sampled_from(usual * 3 + tuple(every)))
    fields: dict[str, Any] = {}
    for name, kind in method.LAYOUT:
        if kind == "table":
            fields[name] = draw(arguments())
        elif name == "type":
            fields[name] = draw(st.sampled_from(["direct", "fanout", "topic", "headers", "x"]))
        elif name == "out_of_band":
            fields[name] = draw(st.sampled_from(["", "memory", "broken", "none such"]))
        elif kind == "shortstr" and not name.startswith("reserved"):
            fields[name] = draw(names())
        elif name in ("passive", "if_unused", "if_empty", "no_wait"):
            fields[name] = draw(st.sampled_from((False, False, False, True)))
        elif name in ("delivery_tag", "prefetch_count"):
            fields[name] = draw(st.integers(0, 4) | field_values(kind))
        elif name in ("reference", "channel_id", "body"):
            fields[name] = draw(REFERENCES if name != "body" else BODIES)
        elif name.startswith("reserved") or name in ("prefetch_size", "ticket"):
            continue
        else:
            fields[name] = draw(field_values(kind))
    return method(**fields)


@st.composite
def properties(draw: st.DrawFn) -> BasicProperties:
    if draw(st.booleans()):
        return BasicProperties()
    fields = {
        "headers": draw(st.none() | headers()),
        "priority": draw(st.none() | st.integers(0, 255)),
        "expiration": draw(st.none() | st.sampled_from(["0", "1", "5", "-1", "9" * 30, "٣", ""])),
        "reply_to": draw(st.none() | st.sampled_from(["amq.rabbitmq.reply-to", "plain"])),
        "user_id": draw(st.sampled_from([None, None, "guest", "stranger"])),
        "timestamp": draw(st.none() | st.just(2**64 - 1)),
    }
    return BasicProperties(**fields)


@st.composite
def publishes(draw: st.DrawFn, channel: int) -> bytes:
    method = m.BasicPublish(
        exchange=draw(st.sampled_from(EXCHANGES) | names()),
        routing_key=draw(names()),
        mandatory=draw(st.booleans()),
        immediate=draw(st.sampled_from([False, False, False, True])),
    )
    body = draw(st.binary(max_size=20))
    frames = content_frames(channel, 60, draw(properties()).encode(), body, draw(st.sampled_from([3, 1000])))
    return method_frame(channel, method.encode()) + b"".join(frames)


@st.composite
def steps(draw: st.DrawFn) -> bytes:
    channel = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return draw(publishes(channel))
    method = draw(methods())
    return method_frame(0 if method.NAME.startswith("connection.") else channel, method.encode())


def programs() -> st.SearchStrategy[list[bytes]]:
    """What a client does after `prepared`."""
    return st.lists(steps(), min_size=1, max_size=12)


def topology(client: Client) -> list[bytes]:
    """Queues that are not empty, and exchanges."""
    mortal = {"x-dead-letter-exchange": "amq.fanout", "x-max-length": 3, "x-message-ttl": 10_000}
    return client.send(
        m.QueueDeclare(queue="plain", durable=True),
        m.QueueDeclare(queue="mortal", arguments=mortal),
        m.QueueDeclare(queue="lone", arguments={"x-single-active-consumer": True}),
        m.QueueDeclare(queue="mine", exclusive=True, arguments={"x-max-priority": 3}),
        m.ExchangeDeclare(exchange="topics", type="topic", arguments={"alternate-exchange": "inner"}),
        m.ExchangeDeclare(exchange="inner", type="fanout", auto_delete=True),
        m.QueueBind(queue="plain", exchange="amq.fanout"),
        m.QueueBind(queue="mine", exchange="inner"),
        m.QueueBind(queue="mortal", exchange="topics", routing_key="#"),
        *[client.publish("", name, b"first") for name in QUEUES[:4] for _ in range(2)],
    )


def prepared(*, strict: bool) -> bytes:
    """An open connection with two channels, queues that are not empty, consumers that hold something."""
    client = Client(strict=strict)
    return b"".join(
        [
            *client.handshake(),
            *client.open(1, 2),
            *topology(client),
            *client.send(
                m.ExchangeBind(source="topics", destination="inner", routing_key="a.#"),
                m.QueueBind(queue="plain", exchange="amq.headers", arguments={"x-match": "any", "number": 1}),
                m.BasicGet(queue="mortal"),
                m.BasicConsume(queue="plain", consumer_tag="one", no_ack=True),
                m.BasicQos(prefetch_count=1),
                m.BasicConsume(queue="lone", consumer_tag="two"),
            ),
            *client.send(
                m.BasicConsume(queue="lone", consumer_tag="three"),
                m.BasicGet(queue="mine"),
                channel=2,
            ),
        ]
    )
