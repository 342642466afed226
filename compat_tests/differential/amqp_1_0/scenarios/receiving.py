"""Scenarios of receivers: credit, settlement and redelivery."""

from __future__ import annotations

from compat_tests.differential.amqp_1_0.scenarios.play import QUEUES, Play, each, filled, scenario
from compat_tests.scripted.amqp_1_0 import message, sections
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Int,
    Symbol,
)


@each(**QUEUES)
def credit(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 6)
    peer.receiver(queue, 1)
    peer.note("none")
    peer.flow(1, link_credit=2)
    peer.note("two")
    peer.settle(c.Accepted(), 0, 1)
    peer.note("settled")
    peer.flow(1, link_credit=2, delivery_count=2)
    peer.note("two more")
    peer.flow(1, link_credit=0, delivery_count=4)
    peer.note("no more")


@each(**QUEUES)
def drain(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 2)
    peer.receiver(queue, 1)
    peer.flow(1, link_credit=5, drain=True)
    peer.note("drained")
    peer.flow(1, link_credit=5, drain=True, echo=True)
    peer.note("again")


@each(**QUEUES)
def echo(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 3)
    peer.receiver(queue, 1)
    peer.flow(1, link_credit=1, echo=True)
    peer.note()
    peer.flow(1, link_credit=0, echo=True)
    peer.note()


OUTCOMES = {
    "accepted": c.Accepted(),
    "rejected": c.Rejected(),
    "released": c.Released(),
    "modified": c.Modified(),
    "failed": c.Modified(delivery_failed=True),
    "undeliverable": c.Modified(undeliverable_here=True),
    "failed_undeliverable": c.Modified(delivery_failed=True, undeliverable_here=True),
    "annotated": c.Modified(delivery_failed=True, message_annotations={Symbol("x-a"): 1}),
    "received": c.Received(section_number=0, section_offset=0),
    "none": None,
}


@each(**{f"{name}_{kind}": (kind, name) for kind in QUEUES for name in OUTCOMES})
def outcomes(play: Play, value: tuple[str, str]) -> None:
    kind, name = value
    queue, peer = filled(play, kind, 2)
    peer.receiver(queue, 1, 1)
    peer.note()
    peer.settle(OUTCOMES[name], 0)
    peer.note("settled")
    play.count(queue)
    other = play.peer("other").session()
    other.receiver(queue, 0, 5)
    other.note()


@each(
    **{
        f"{name}_{kind}": (kind, name)
        for kind in QUEUES
        for name in ("rejected", "undeliverable", "failed_undeliverable")
    }
)
def dead_letters(play: Play, value: tuple[str, str]) -> None:
    kind, name = value
    dead = play.declare(suffix="dead")
    exchange = ""
    queue, peer = filled(
        play,
        kind,
        1,
        x_dead_letter_exchange=exchange,
        x_dead_letter_routing_key=dead.removeprefix("/queues/"),
    )
    peer.receiver(queue, 1, 1)
    peer.frames()
    peer.settle(OUTCOMES[name], 0)
    peer.note("settled")
    peer.receiver(dead, 2, 5)
    found = peer.frames()
    for _, body, payload in found:
        if isinstance(body, c.Transfer):
            play.lines.append(str(sorted(names_of(payload))))


def names_of(payload: bytes) -> list[str]:
    said = sections(payload)
    keys = [f"{key}={said['annotations'][key]!r}" for key in said["annotations"] if key != "x-opt-deaths"]
    deaths = [
        f"{key}={type(value).__name__} {value if 'time' not in key else ''}"
        for death in said["annotations"].get("x-opt-deaths", ())
        for key, value in death.items()
    ]
    return [*keys, *deaths, repr(said.get("header"))]


@each(range=(0, 2), reversed=(2, 0), beyond=(0, 50), unknown=(70, 80))
def ranges(play: Play, value: tuple[int, int]) -> None:
    queue, peer = filled(play, "classic", 4)
    peer.receiver(queue, 1, 4)
    peer.frames()
    peer.settle(c.Accepted(), *value, settled=False)
    peer.note()


@each(detach=c.Detach(handle=1, closed=True), end=c.End(), close=c.Close())
def lost(play: Play, body: c.Composite) -> None:
    for kind in QUEUES:
        queue = play.declare(kind, suffix=kind)
        peer = play.peer(kind).session()
        peer.sender(queue, 0)
        peer.transfer()
        peer.frames()
        peer.receiver(queue, 1, 1)
        peer.frames()
        peer.send(body)
        peer.note()
        if isinstance(body, c.Close):
            peer.transport.drop()
        other = play.peer("other").session()
        other.receiver(queue, 0, 5)
        other.note()


@scenario
def settled_deliveries(play: Play) -> None:
    queue, peer = filled(play, "classic", 2)
    peer.receiver(queue, 1, 5, snd_settle_mode=1)
    peer.note()
    play.count(queue)


@scenario
def split_deliveries(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session(max_frame_size=512)
    peer.sender(queue, 0)
    octets = message(b"x" * 1000)
    peer.transfer(payload=octets[:400], more=True)
    peer.send(c.Transfer(handle=0, more=True), payload=octets[400:800])
    peer.send(c.Transfer(handle=0), payload=octets[800:])
    peer.frames()
    peer.receiver(queue, 1, 5)
    found = peer.frames()
    play.lines += [f"{body!r} {len(payload)}" for _, body, payload in found if isinstance(body, c.Transfer)]


@scenario
def too_large_for_the_client(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    peer.transfer(payload=message(b"x" * 500))
    peer.frames()
    peer.receiver(queue, 1, 5, max_message_size=100)
    peer.note()


@scenario
def tags(play: Play) -> None:
    for kind in QUEUES:
        queue = play.declare(kind, suffix=kind)
        peer = play.peer(kind).session()
        peer.sender(queue, 0)
        peer.transfer().transfer()
        peer.frames()
        peer.receiver(queue, 1, 10)
        peer.note()
        peer.settle(c.Released(), 0)
        peer.note()
        peer.receiver(queue, 2, 10)
        peer.note()
        peer.settle(c.Accepted(), 2)
        peer.transfer()
        peer.note()


@scenario
def priorities(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.receiver(queue, 1, 5)
    peer.receiver(queue, 2, 5, properties={Symbol("rabbitmq:priority"): Int(5)})
    peer.sender(queue, 0)
    peer.transfer()
    peer.note()
