"""Scenarios of publishers: transfers and their outcomes."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, QUEUES, Play, each, scenario
from compat_tests.scripted.amqp_1_0 import message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Symbol,
    ULong,
)


@each(**KINDS)
def publish(play: Play, kind: str) -> None:
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.sender(queue)
    for _ in range(3):
        peer.transfer()
    peer.note()
    play.count(queue)


@each(unrouted="/exchanges/amq.direct/nothing", fanout="/exchanges/amq.fanout")
def unroutable(play: Play, address: str) -> None:
    peer = play.peer().session()
    peer.sender(address)
    peer.transfer()
    peer.note()
    peer.transfer(settled=True)
    peer.note("settled")


@each(**QUEUES)
def refused(play: Play, kind: str) -> None:
    queue = play.declare(kind, x_max_length=1, x_overflow="reject-publish")
    peer = play.peer().session()
    peer.sender(queue)
    for _ in range(4):
        peer.transfer()
        peer.note()


@scenario
def several_transfers(play: Play) -> None:
    queue = play.declare()
    octets = message(b"abcdef" * 10)
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=octets[:20], more=True)
    peer.send(c.Transfer(handle=0, more=True), payload=octets[20:30])
    peer.send(c.Transfer(handle=0), payload=octets[30:])
    peer.note()
    peer.receiver(queue, 1, 5)
    peer.note()


@scenario
def other_delivery_id(play: Play) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=message()[:5], more=True)
    peer.send(c.Transfer(handle=0, delivery_id=9), payload=message()[5:])
    peer.note()


@each(settled=(1, False), unsettled=(0, True), mixed=(2, True))
def mode_against_flag(play: Play, value: tuple[int, bool]) -> None:
    mode, settled = value
    peer = play.peer().session()
    peer.sender(play.declare(), snd_settle_mode=mode)
    peer.transfer(settled=settled)
    peer.note()


@scenario
def beyond_credit(play: Play) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    for _ in range(90):
        peer.transfer(settled=True)
    peer.note()


@each(
    no_body=message(None, properties=c.Properties(subject="s")),
    nothing=b"",
    garbage=b"\0\x53\x10\x45",
    annotation=message(annotations={Symbol("k"): 1}),
    number_annotation=message(annotations={ULong(1): 1}),
    string_annotation=message(annotations={"x-a": 1}),
)
def unreadable(play: Play, octets: bytes) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=octets)
    peer.note()


@each(
    missing=None,
    bad="nonsense",
    no_exchange="/exchanges/none/k",
    no_queue="/queues/none",
    unrouted="/exchanges/amq.direct/nothing",
    internal="/exchanges/amq.rabbitmq.trace/x",
)
def anonymous_terminus(play: Play, to: str | None) -> None:
    peer = play.peer().session()
    peer.sender(None)
    peer.transfer(payload=message(properties=c.Properties(to=to)))
    peer.note()
    peer.transfer(payload=message(properties=c.Properties(to=to)), settled=True)
    peer.note("settled")


@scenario
def anonymous_routed(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(None)
    peer.transfer(payload=message(properties=c.Properties(to=queue)))
    peer.note()
    play.count(queue)


@each(same=b"guest", other=b"other")
def user_id(play: Play, user: bytes) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=message(properties=c.Properties(user_id=user)))
    peer.note()


@scenario
def copies(play: Play) -> None:
    first, second = play.declare(), play.declare(suffix="r")
    name = play.exchange("direct")
    play.bind(name, first, "a")
    play.bind(name, second, "b")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}/a")
    peer.transfer(payload=message(annotations={Symbol("x-cc"): ["b"]}))
    peer.note()
    peer.receiver(first, 1, 5)
    peer.receiver(second, 2, 5)
    peer.note()


@each(text="b", numbers=[1])
def bad_copies(play: Play, value: Any) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=message(annotations={Symbol("x-cc"): value}))
    peer.note()


@scenario
def two_queues(play: Play) -> None:
    first = play.declare()
    second = play.declare(suffix="r", x_max_length=0, x_overflow="reject-publish")
    name = play.exchange("fanout")
    play.bind(name, first, "")
    play.bind(name, second, "")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}")
    peer.transfer()
    peer.note()
    play.count(first)
