"""Scenarios of limits of queues: lengths, times to live, priorities, sizes."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, QUEUES, Play, each, filled, scenario
from compat_tests.scripted.amqp_1_0 import filters, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c

OVERFLOWS: dict[str, dict[str, Any]] = {
    "drop": {"x_max_length": 2},
    "drop_bytes": {"x_max_length_bytes": 20},
    "reject": {"x_max_length": 2, "x_overflow": "reject-publish"},
    "reject_bytes": {"x_max_length_bytes": 20, "x_overflow": "reject-publish"},
    "none": {"x_max_length": 0},
}


@each(**{f"{name}_{kind}": (kind, said) for kind in QUEUES for name, said in OVERFLOWS.items()})
def overflow(play: Play, value: tuple[str, dict[str, Any]]) -> None:
    kind, arguments = value
    dead = play.declare("classic", suffix="dead")
    said = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": dead.removeprefix("/queues/")}
    queue = play.declare(kind, **said, **arguments)
    peer = play.peer().session()
    peer.sender(queue)
    for number in range(5):
        peer.transfer(payload=message(b"%d" % number * 5))
        peer.note()
    play.count(queue)
    peer.receiver(dead, 2, 10)
    peer.note("dead")


@scenario
def overflow_to_dead_letters(play: Play) -> None:
    dead = play.declare("classic", suffix="dead")
    said = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": dead.removeprefix("/queues/")}
    queue = play.declare("classic", x_max_length=1, x_overflow="reject-publish-dlx", **said)
    peer = play.peer().session()
    peer.sender(queue)
    for number in range(3):
        peer.transfer(payload=message(b"%d" % number))
        peer.note()
    peer.receiver(dead, 2, 10)
    peer.note("dead")


@each(
    **{
        f"{name}_{kind}": (kind, arguments, header)
        for kind in QUEUES
        for name, arguments, header in (
            ("message", {}, c.Header(ttl=100)),
            ("queue", {"x_message_ttl": 100}, None),
            ("both", {"x_message_ttl": 100000}, c.Header(ttl=100, priority=3, durable=True)),
            ("kept", {"x_message_ttl": 100000}, c.Header(ttl=100000)),
        )
    }
)
def expiring(play: Play, value: tuple[str, dict[str, Any], Any]) -> None:
    kind, arguments, header = value
    dead = play.declare(kind, suffix="dead")
    said = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": dead.removeprefix("/queues/")}
    queue = play.declare(kind, **said, **arguments)
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=message() if header is None else message(header=header))
    peer.note()
    play.stage.pass_time(0.6)
    play.count(queue)
    peer.receiver(dead, 1, 5)
    peer.note("dead")


@each(
    **{
        f"{name}_{kind}": (kind, arguments)
        for kind, arguments_of in (
            ("classic", {"three": {"x_max_priority": 3}, "none": {}}),
            ("quorum", {"none": {}}),
        )
        for name, arguments in arguments_of.items()
    }
)
def prioritised(play: Play, value: tuple[str, dict[str, Any]]) -> None:
    kind, arguments = value
    queue = play.declare(kind, **arguments)
    peer = play.peer().session()
    peer.sender(queue)
    for number, priority in enumerate((1, None, 9, 3, 0, 5, 200)):
        peer.transfer(payload=message(b"%d" % number, header=c.Header(priority=priority)))
        peer.frames()
    peer.receiver(queue, 1, 20)
    found = [each for each in peer.frames() if isinstance(each.what, c.Transfer)]
    # The tags of classic queues with priorities are terms of Erlang.
    play.lines += [each.payload.hex() for each in found]


@each(**KINDS)
def large(play: Play, kind: str) -> None:
    """A message in many transfers, in both directions."""
    queue = play.declare(kind)
    peer = play.peer().session(max_frame_size=4096)
    peer.sender(queue, 0)
    octets = message(bytes(range(256)) * 100, application={"a": "b" * 300})
    peer.deliveries = 0
    for start in range(0, len(octets), 3000):
        more = start + 3000 < len(octets)
        said: dict[str, Any] = {"delivery_id": 0, "delivery_tag": b"0", "more": more}
        peer.transfer(payload=octets[start : start + 3000], **said)
    peer.note()
    stream = {"terminus": {"filter": filters(offset_spec="first")}} if kind == "stream" else {}
    peer.receiver(queue, 1, 5, **stream)
    found = [each for each in peer.frames() if isinstance(each.what, c.Transfer)]
    play.lines += [f"{each.what!r} {len(each.payload)}" for each in found]
    play.lines.append(str(b"".join(each.payload for each in found).endswith(octets[-5000:])))


@each(**QUEUES)
def many(play: Play, kind: str) -> None:
    """More messages than one batch of credit."""
    queue, peer = filled(play, kind, 60)
    peer.receiver(queue, 1, 1000)
    found = [each for each in peer.frames() if isinstance(each.what, c.Transfer)]
    play.lines.append(f"{len(found)} {found[-1].what!r}")
    peer.settle(c.Accepted(), 0, 30)
    peer.settle(c.Released(), 31, 59)
    peer.note("settled")
    play.count(queue)


@each(
    **{
        f"{name}_{kind}": (kind, settled)
        for kind in KINDS
        for name, settled in (("settled", True), ("unsettled", False))
    }
)
def queue_deleted_after(play: Play, value: tuple[str, bool]) -> None:
    """The queue of a sender is deleted after a publish."""
    kind, settled = value
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(settled=settled)
    peer.note()
    play.manager.ask("DELETE", queue)
    peer.note("deleted")
    peer.transfer()
    peer.note("later")


@each(**QUEUES)
def rejected_with_ttl(play: Play, kind: str) -> None:
    dead = play.declare(kind, suffix="dead")
    queue = play.declare(
        kind, x_dead_letter_exchange="", x_dead_letter_routing_key=dead.removeprefix("/queues/")
    )
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=message(header=c.Header(ttl=60000, priority=2, durable=True)))
    peer.receiver(queue, 1, 1)
    peer.frames()
    peer.settle(c.Rejected(), 0)
    peer.receiver(dead, 2, 1)
    peer.note("dead")


@each(**{f"{count}_{kind}": (kind, count) for kind in QUEUES for count in (1, 3)})
def chained_dead_letters(play: Play, value: tuple[str, int]) -> None:
    """A message dies in several queues one after the other, and in one of them twice."""
    kind, count = value
    last = play.declare(kind, suffix="last")
    middle = play.declare(
        kind,
        suffix="middle",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=last.removeprefix("/queues/"),
        x_message_ttl=100,
    )
    queue = play.declare(
        kind, x_dead_letter_exchange="", x_dead_letter_routing_key=middle.removeprefix("/queues/")
    )
    peer = play.peer().session()
    peer.sender(queue)
    for number in range(count):
        peer.transfer(payload=message(b"%d" % number, header=c.Header(ttl=50_000)))
    peer.frames()
    peer.receiver(queue, 1, count)
    peer.frames()
    peer.settle(c.Rejected(), 0, count - 1)
    peer.frames()
    play.stage.pass_time(0.6)
    peer.receiver(last, 2, count)
    peer.note("last")
    client = play.older()
    peer.settle(c.Released(), count, 2 * count - 1)
    peer.frames()
    told = client.do(1, "basic.get", queue=last.removeprefix("/queues/"))
    play.lines += [line.replace("time=", "\n").partition("\n")[0] for line in told]


@scenario
def dead_letter_of_older(play: Play) -> None:
    """A message of 0-9-1 dies; 1.0 reads it."""
    for kind in QUEUES:
        dead = play.declare(kind, suffix=f"dead-{kind}")
        queue = play.declare(
            kind,
            suffix=kind,
            x_dead_letter_exchange="",
            x_dead_letter_routing_key=dead.removeprefix("/queues/"),
        )
        client = play.older()
        name = queue.removeprefix("/queues/")
        props = {"expiration": "60000", "headers": {"a": 1, "x-b": 2}, "delivery_mode": 2}
        client.publish(1, routing_key=name, props=props, body=b"m")
        client.barrier(1)
        client.do(1, "basic.get", queue=name)
        client.do(1, "basic.reject", delivery_tag=1, requeue=0)
        peer = play.peer(kind).session()
        peer.receiver(dead, 0, 1)
        peer.note()


@each(**QUEUES)
def at_least_once(play: Play, kind: str) -> None:
    """Dead letters of a quorum queue that are confirmed."""
    dead = play.declare(kind, suffix="dead")
    queue, peer = filled(
        play,
        "quorum",
        2,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=dead.removeprefix("/queues/"),
        x_dead_letter_strategy="at-least-once",
        x_overflow="reject-publish",
    )
    peer.receiver(queue, 1, 2)
    peer.frames()
    peer.settle(c.Rejected(), 0)
    peer.frames()
    peer.settle(c.Modified(undeliverable_here=True, delivery_failed=True), 1)
    peer.receiver(dead, 2, 5)
    peer.note()
