"""Scenarios of settlement: outcomes in turn, over links, with annotations, and beside clients of 0-9-1."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from compat_tests.differential.amqp_1_0.scenarios.play import QUEUES, Play, each, filled, scenario
from compat_tests.differential.amqp_1_0.scenarios.receiving import OUTCOMES
from compat_tests.scripted.amqp_1_0 import message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Byte,
    Float,
    Int,
    Milliseconds,
    Symbol,
    UByte,
    UInt,
    ULong,
)


def noted(**annotations: Any) -> c.Modified:
    """A modified outcome with annotations whose names begin with x-."""
    return c.Modified(message_annotations={Symbol(f"x-{name}"): value for name, value in annotations.items()})


TURNS = {
    "released_twice": ("released", "released"),
    "failed_twice": ("failed", "failed"),
    "released_failed": ("released", "failed"),
    "failed_released": ("failed", "released"),
    "modified_accepted": ("modified", "accepted"),
    "released_rejected": ("released", "rejected"),
    "failed_undeliverable": ("failed", "undeliverable"),
    "annotated_twice": ("annotated", "annotated"),
    "annotated_rejected": ("annotated", "rejected"),
    "thrice": ("failed", "released", "failed"),
}


@each(**{f"{name}_{kind}": (kind, turns) for kind in QUEUES for name, turns in TURNS.items()})
def in_turn(play: Play, value: tuple[str, tuple[str, ...]]) -> None:
    """One message gets an outcome after the other; what is left of it goes to a dead-letter queue."""
    kind, turns = value
    dead = play.declare(kind, suffix="dead")
    name = dead.removeprefix("/queues/")
    queue, peer = filled(play, kind, 1, x_dead_letter_exchange="", x_dead_letter_routing_key=name)
    peer.receiver(queue, 1)
    for index, turn in enumerate(turns):
        peer.flow(1, link_credit=1, delivery_count=(peer.first_count + index) & 0xFFFFFFFF)
        peer.note(f"{index}")
        peer.settle(OUTCOMES[turn], index)
    peer.flow(1, link_credit=1, delivery_count=(peer.first_count + len(turns)) & 0xFFFFFFFF)
    peer.note("at last")
    peer.receiver(dead, 2, 5)
    peer.note("dead")


@each(
    **{
        f"{name}_{kind}": (kind, value)
        for kind in QUEUES
        for name, value in (
            ("text", "t"),
            ("symbol", Symbol("s")),
            ("long", 5),
            ("int", Int(5)),
            ("uint", UInt(5)),
            ("ulong", ULong(5)),
            ("ubyte", UByte(5)),
            ("byte", Byte(-5)),
            ("boolean", True),
            ("float", Float(1.5)),
            ("double", 2.5),
            ("binary", b"\xff"),
            ("timestamp", Milliseconds(1000)),
            ("uuid", UUID(int=7)),
            ("null", None),
            ("list", [1, "a"]),
            ("map", {"a": 1}),
        )
    }
)
def annotated(play: Play, value: tuple[str, Any]) -> None:
    """An annotation of each type in a modified outcome."""
    kind, what = value
    queue, peer = filled(play, kind, 1)
    peer.receiver(queue, 1, 1)
    peer.frames()
    peer.settle(noted(a=what), 0)
    other = play.peer("other").session()
    other.receiver(queue, 0, 1)
    other.note()


@each(
    several={"x-b": 1, "x-a": 2, "x-c": 3},
    opt={"x-opt-a": 1},
    bad={"a": 1},
    deaths={"x-opt-deaths": 1},
)
def annotated_names(play: Play, value: dict[str, Any]) -> None:
    queue = play.declare("quorum")
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=message(annotations={Symbol("x-b"): "own", Symbol("x-z"): "own"}))
    peer.receiver(queue, 1, 1)
    peer.frames()
    peer.settle(c.Modified(message_annotations={Symbol(name): each for name, each in value.items()}), 0)
    peer.note("settled")
    other = play.peer("other").session()
    other.receiver(queue, 0, 1)
    other.note()


@each(**QUEUES)
def over_links(play: Play, kind: str) -> None:
    """A range of deliveries of two links."""
    first, peer = filled(play, kind, 2)
    second = play.declare(kind, suffix="r")
    peer.sender(second, 5)
    peer.transfer(5).transfer(5)
    peer.frames()
    peer.receiver(first, 1, 2)
    peer.note()
    peer.receiver(second, 2, 2)
    peer.note()
    peer.settle(c.Accepted(), 1, 2, settled=False)
    peer.note("settled")
    peer.send(c.Detach(handle=1, closed=True))
    peer.note("detached")
    peer.settle(c.Released(), 0, 3, settled=False)
    peer.note("rest")
    play.count(first)
    play.count(second)


@each(**QUEUES)
def settled_once_more(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 2)
    peer.receiver(queue, 1, 2)
    peer.frames()
    for state in (c.Released(), c.Accepted(), c.Rejected()):
        peer.settle(state, 0, settled=False)
        peer.note()
    play.count(queue)


@each(**QUEUES)
def in_reverse(play: Play, kind: str) -> None:
    """Messages are given back in another order than they came."""
    queue, peer = filled(play, kind, 4)
    peer.receiver(queue, 1, 4)
    peer.frames()
    for number in (2, 0, 3, 1):
        peer.settle(c.Released(), number)
    other = play.peer("other").session()
    other.receiver(queue, 0, 4)
    other.note()


@each(
    **{
        f"{how}_{kind}": (kind, how)
        for kind in QUEUES
        for how in ("reject", "nack", "nack-dead", "reject-dead")
    }
)
def older_returns(play: Play, value: tuple[str, str]) -> None:
    """A client of 0-9-1 gives a message back, or refuses it; what 1.0 sees of it."""
    kind, how = value
    dead = play.declare(kind, suffix="dead")
    name = dead.removeprefix("/queues/")
    queue, peer = filled(play, kind, 1, x_dead_letter_exchange="", x_dead_letter_routing_key=name)
    client = play.older()
    play.lines += client.do(1, "basic.get", queue=queue.removeprefix("/queues/"))
    client.do(1, f"basic.{how.partition('-')[0]}", delivery_tag=1, requeue=int("dead" not in how))
    peer.receiver(dead if "dead" in how else queue, 1, 1)
    peer.note()


@each(
    **{
        f"{name}_{kind}": (kind, name)
        for kind in QUEUES
        for name in ("released", "failed", "rejected", "annotated")
    }
)
def newer_returns(play: Play, value: tuple[str, str]) -> None:
    """A client of 1.0 gives back a message of 0-9-1; what 0-9-1 sees of it."""
    kind, name = value
    dead = play.declare(kind, suffix="dead")
    key = dead.removeprefix("/queues/")
    queue = play.declare(kind, x_dead_letter_exchange="", x_dead_letter_routing_key=key)
    client = play.older()
    headers = {"a": 1, "x-b": "c"}
    client.publish(1, routing_key=queue.removeprefix("/queues/"), props={"headers": headers}, body=b"m")
    client.barrier(1)
    peer = play.peer().session()
    peer.receiver(queue, 1, 1)
    peer.note()
    peer.settle(OUTCOMES[name], 0, settled=False)
    peer.note("settled")
    for queue_ in (queue, dead):
        found = client.do(1, "basic.get", queue=queue_.removeprefix("/queues/"))
        play.lines += [line.partition("time=")[0] for line in found]


@each(**QUEUES)
def shared_by_protocols(play: Play, kind: str) -> None:
    """Consumers of both protocols take turns."""
    queue = play.declare(kind)
    client = play.older()
    client.do(1, "basic.consume", queue=queue.removeprefix("/queues/"), consumer_tag="c")
    peer = play.peer().session()
    peer.receiver(queue, 1, 10)
    peer.note("attached")
    peer.sender(queue, 0)
    for number in range(4):
        peer.transfer(payload=message(b"%d" % number))
        peer.note(f"{number}")
        play.lines += client.barrier(1, 0.2)
    play.count(queue)


@each(**{f"{limit}_{kind}": (kind, limit) for kind in ("quorum",) for limit in (0, 1, 2)})
def delivery_limit(play: Play, value: tuple[str, int]) -> None:
    kind, limit = value
    dead = play.declare(kind, suffix="dead")
    queue, peer = filled(
        play,
        kind,
        1,
        x_delivery_limit=limit,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=dead.removeprefix("/queues/"),
    )
    peer.receiver(queue, 1)
    for index in range(4):
        peer.flow(1, link_credit=1, delivery_count=(peer.first_count + index) & 0xFFFFFFFF)
        found = peer.note(f"{index}")
        if not any(isinstance(each.what, c.Transfer) for each in found):
            break
        peer.settle(OUTCOMES["failed"], index)
    peer.receiver(dead, 2, 5)
    peer.note("dead")


@each(released=c.Released(), accepted=c.Accepted(), rejected=c.Rejected(), failed=OUTCOMES["failed"])
def from_stream(play: Play, state: c.Composite) -> None:
    queue = play.declare("stream")
    peer = play.peer().session()
    peer.receiver(queue, 1, 2)
    peer.sender(queue, 0)
    peer.transfer()
    peer.note()
    peer.settle(state, 0, settled=False)
    peer.note("settled")
    peer.transfer()
    peer.note("second")


@scenario
def disposition_of_sender(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer()
    peer.note()
    peer.send(c.Disposition(role=False, first=0, settled=True, state=c.Accepted()))
    peer.note("settled")


@each(end=c.End(), detach=c.Detach(handle=1, closed=False), close=c.Close())
def returned_to_others(play: Play, body: c.Composite) -> None:
    """Another link waits for what a client gives up."""
    for kind in QUEUES:
        queue = play.declare(kind, suffix=kind)
        peer = play.peer(kind).session()
        peer.sender(queue, 0)
        peer.transfer().transfer()
        peer.frames()
        peer.receiver(queue, 1, 2)
        peer.frames()
        other = play.peer(f"{kind} other").session()
        other.receiver(queue, 0, 5)
        other.note("waits")
        peer.send(body)
        peer.note("gives up")
        if isinstance(body, c.Close):
            peer.transport.drop()
        other.note("gets")


@scenario
def default_outcome(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    peer.transfer()
    peer.frames()
    said = {"default_outcome": c.Modified(delivery_failed=True), "outcomes": (Symbol("amqp:accepted:list"),)}
    peer.receiver(queue, 1, 1, terminus=said)
    peer.note()
    peer.settle(c.Released(), 0, settled=False)
    peer.note("settled")
