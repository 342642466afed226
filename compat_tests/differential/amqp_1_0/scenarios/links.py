"""Scenarios of links: addresses, attach and detach."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, QUEUES, Play, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Described,
    Symbol,
)


@each(
    missing="/queues/none",
    missing_exchange="/exchanges/none",
    missing_exchange_key="/exchanges/none/k",
    no_exchange="/exchanges//k",
    default="/exchanges/amq.default/k",
    no_queue="/queues/",
    slash="/queues/a/b",
    three="/exchanges/a/b/c",
    key="/exchanges/amq.topic/a.b",
    plain_exchange="/exchanges/amq.fanout",
    internal="/exchanges/amq.rabbitmq.trace/x",
    anonymous=None,
)
def targets(play: Play, address: str | None) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, address)
    peer.note()


@each(
    missing="/queues/none",
    no_queue="/queues/",
    slash="/queues/a/b",
    none=None,
    exchange="/exchanges/amq.topic/a",
)
def sources(play: Play, address: str | None) -> None:
    peer = play.peer().session()
    peer.attach(RECEIVER, address)
    peer.note()


@each(**KINDS)
def attach_receiver(play: Play, kind: str) -> None:
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.attach(RECEIVER, queue)
    peer.note()
    play.count(queue)


@each(unsettled=0, settled=1, mixed=2)
def attach_modes(play: Play, mode: int) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(RECEIVER, queue, 0, snd_settle_mode=mode)
    peer.attach(SENDER, queue, 1, snd_settle_mode=mode)
    peer.note()


@each(
    recovery={"unsettled": {b"1": None}},
    incomplete={"incomplete_unsettled": True},
    second={"rcv_settle_mode": 1},
    second_settled={"rcv_settle_mode": 1, "snd_settle_mode": 1},
    outcomes={"terminus": {"outcomes": (Symbol("amqp:accepted:list"),)}},
    bad_outcomes={"terminus": {"outcomes": (Symbol("amqp:nope:list"),)}},
    size={"max_message_size": 5000},
    capabilities={"desired_capabilities": (Symbol("x"),)},
    filters={"terminus": {"filter": {Symbol("f"): Described(Symbol("f"), "x")}}},
    durable={"terminus": {"durable": 2, "expiry_policy": Symbol("never"), "timeout": 5}},
    copy={"terminus": {"distribution_mode": Symbol("copy")}},
)
def attach_fields(play: Play, fields: dict[str, Any]) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(RECEIVER, queue, **fields)
    peer.note()


@each(
    recovery={"unsettled": {b"1": None}},
    second={"rcv_settle_mode": 1},
    coordinator={"target": c.Coordinator()},
    durable={"terminus": {"durable": 1}},
    no_count={"initial_delivery_count": 9},
)
def attach_sender_fields(play: Play, fields: dict[str, Any]) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(SENDER, queue, **fields)
    peer.note()


@scenario
def no_source(play: Play) -> None:
    peer = play.peer().session()
    peer.attach(RECEIVER, "/queues/x", source=None)
    peer.note()


@scenario
def detach(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    peer.receiver(queue, 1)
    peer.send(c.Detach(handle=0, closed=True))
    peer.send(c.Detach(handle=1))
    peer.note()
    play.count(queue)


@scenario
def exclusive_queue(play: Play) -> None:
    name = f"{play.prefix}-ex"
    owner = play.peer("owner").session().managed()
    owner.ask("PUT", f"/queues/{name}", {"exclusive": True, "durable": False})
    peer = play.peer().session()
    peer.attach(RECEIVER, f"/queues/{name}")
    peer.note()


@scenario
def flow_after_refusal(play: Play) -> None:
    peer = play.peer().session()
    peer.attach(RECEIVER, "/queues/none")
    peer.flow(0, link_credit=1)
    peer.note()


@each(**QUEUES)
def queue_deleted(play: Play, kind: str) -> None:
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.receiver(queue, 0, 5)
    peer.sender(queue, 1)
    play.manager.ask("DELETE", queue)
    peer.note("deleted")
    peer.transfer(1)
    peer.note("sent")


@scenario
def exchange_deleted(play: Play) -> None:
    name = play.exchange("direct")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}/k", 1)
    play.manager.ask("DELETE", f"/exchanges/{name}")
    peer.transfer(1)
    peer.note("sent")
