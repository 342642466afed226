"""Scenarios of connections and sessions: openings in one piece, limits, windows, several sessions."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import QUEUES, Play, each, filled, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, WINDOW, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol


@scenario
def pipelined(play: Play) -> None:
    """All frames up to a publish and a flow at once, as proton and rhea send them."""
    queue = play.declare()
    peer = play.peer().open().begin()
    peer.attach(SENDER, queue, 0)
    peer.attach(RECEIVER, queue, 1)
    peer.flow(1, link_credit=3)
    peer.note()
    peer.transfer(0)
    peer.note("published")


@scenario
def pipelined_to_the_end(play: Play) -> None:
    peer = play.peer().open().begin()
    peer.send(c.End())
    peer.send(c.Close())
    peer.note()


@each(
    tiny_frames={"max_frame_size": 100},
    least_frames={"max_frame_size": 512},
    short_idle={"idle_time_out": 999},
    least_idle={"idle_time_out": 1000},
    no_idle={"idle_time_out": 0},
    zero_channels={"channel_max": 0},
    long_container={"container_id": "c" * 500},
    empty_container={"container_id": ""},
    capabilities={
        "offered_capabilities": (Symbol("a"),),
        "desired_capabilities": (Symbol("b"),),
        "outgoing_locales": (Symbol("en-US"),),
    },
    properties={"properties": {Symbol("product"): "p", Symbol("connection_name"): "n"}},
)
def open_limits(play: Play, fields: dict[str, Any]) -> None:
    peer = play.peer().open(**fields)
    play.stage.pass_time(3.6)
    peer.note()


@scenario
def several_sessions(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().open()
    peer.wait_for(c.Open)
    for channel in (0, 1, 63):
        peer.begin(channel)
        peer.note(f"begin {channel}")
    for channel in (0, 1):
        peer.send(_attach(SENDER, queue), channel)
        peer.note(f"attach {channel}")
    peer.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), 1, message(b"one"))
    peer.note("published")
    peer.send(c.End(), 1)
    peer.note("ended")
    peer.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), 1, message(b"two"))
    peer.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), 0, message(b"three"))
    peer.note("after")
    peer.begin(1)
    peer.note("again")
    play.count(queue)


def _attach(role: bool, address: str) -> c.Attach:
    from compat_tests.scripted.amqp_1_0 import attach

    return attach(role, address)


@scenario
def error_ends_one_session(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.begin(1)
    peer.note()
    peer.transfer(7)
    peer.note("error")
    peer.send(_attach(SENDER, queue), 1)
    peer.note("other session")


@each(zero=0, one=1, few=3, many=2000)
def incoming_windows(play: Play, window: int) -> None:
    """Deliveries as far as the client's window admits them."""
    queue, _ = filled(play, "classic", 5)
    peer = play.peer("reader").open()
    peer.begin(incoming_window=window)
    peer.note()
    peer.attach(RECEIVER, queue, 0)
    peer.flow(0, link_credit=10, incoming_window=window)
    peer.note("granted")
    peer.flow(next_incoming_id=None, incoming_window=window + 2)
    peer.note("more")


@each(**QUEUES)
def credit_in_steps(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 8)
    peer.receiver(queue, 1)
    count = 0
    for credit, came in ((1, 1), (3, 3), (0, 0), (2, 2)):
        peer.flow(1, link_credit=credit, delivery_count=(peer.first_count + count) & 0xFFFFFFFF)
        peer.note(f"credit {credit}")
        count += came
    peer.flow(1, link_credit=50, delivery_count=(peer.first_count + count) & 0xFFFFFFFF, drain=True)
    peer.note("drained")
    peer.transfer(0)
    peer.note("published")


@each(
    **{
        f"{name}_{kind}": (kind, fields)
        for kind in QUEUES
        for name, fields in (
            ("no_count", {"link_credit": 2, "delivery_count": None}),
            ("echo", {"link_credit": 2, "echo": True}),
            ("drain_echo", {"link_credit": 2, "drain": True, "echo": True}),
            ("drain_nothing", {"link_credit": 0, "drain": True}),
            ("no_credit", {"echo": True}),
            ("available", {"link_credit": 1, "available": 7}),
            ("properties", {"link_credit": 1, "properties": {Symbol("a"): 1}}),
            ("batch", {"link_credit": 5000}),
        )
    }
)
def flows(play: Play, value: tuple[str, dict[str, Any]]) -> None:
    kind, fields = value
    queue, peer = filled(play, kind, 3)
    peer.receiver(queue, 1)
    peer.flow(1, **fields)
    peer.note()
    peer.flow(1, **{**fields, "echo": True})
    peer.note("echo")


@scenario
def credit_taken_back(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.receiver(queue, 1, 5)
    peer.flow(1, link_credit=0, delivery_count=peer.first_count)
    peer.note()
    peer.sender(queue, 0)
    peer.transfer(0)
    peer.note("published")


@each(**QUEUES)
def single_active(play: Play, kind: str) -> None:
    queue = play.declare(kind, x_single_active_consumer=True)
    first = play.peer("first").session()
    first.receiver(queue, 0, 5)
    first.note("attached")
    second = play.peer("second").session()
    second.receiver(queue, 0, 5)
    second.note("attached")
    sender = play.peer("sender").session()
    sender.sender(queue)
    sender.transfer()
    first.note("first")
    second.note("none")
    first.settle(c.Accepted(), 0)
    first.send(c.Detach(handle=0, closed=True))
    first.note("detached")
    second.note("active")
    sender.transfer()
    second.note("second")


@each(**QUEUES)
def in_rotation(play: Play, kind: str) -> None:
    """Two links of one connection and one of another take turns."""
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.receiver(queue, 1, 10)
    peer.note("1")
    peer.receiver(queue, 2, 10)
    peer.note("2")
    other = play.peer("other").session()
    other.receiver(queue, 0, 10)
    other.note("3")
    peer.sender(queue, 0)
    for number in range(6):
        peer.transfer(0, message(b"%d" % number))
        peer.note(f"{number}")
        other.note(f"{number}")


@scenario
def same_name_twice(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(SENDER, queue, 0, name="link")
    peer.note()
    peer.attach(SENDER, queue, 1, name="link")
    peer.note("again")
    peer.transfer(0)
    peer.transfer(1)
    peer.note("published")


@scenario
def reattached(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    for _ in range(2):
        peer.sender(queue, 0)
        peer.transfer(0)
        peer.note()
        peer.send(c.Detach(handle=0, closed=True))
        peer.note("detached")
    play.count(queue)


@scenario
def empty_frames(play: Play) -> None:
    peer = play.peer().session()
    for _ in range(3):
        peer.raw(EMPTY_FRAME)
    peer.begin(1)
    peer.note()


@scenario
def parts_of_two_messages(play: Play) -> None:
    """The parts of messages of two links come in turn."""
    first, second = play.declare(), play.declare(suffix="r")
    peer = play.peer().session()
    peer.sender(first, 0)
    peer.sender(second, 1)
    octets = message(b"abcdef")
    for handle in (0, 1):
        said = {"handle": handle, "delivery_id": handle, "delivery_tag": b"t%d" % handle, "more": True}
        peer.send(c.Transfer(**said), payload=octets[:4])
    for handle in (1, 0):
        peer.send(c.Transfer(handle=handle), payload=octets[4:])
        peer.note()
    play.count(first)
    play.count(second)


@scenario
def aborted(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=message()[:5], more=True)
    peer.send(c.Transfer(handle=0, aborted=True))
    peer.note()
    play.count(queue)


@scenario
def detached_in_the_middle(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=message()[:5], more=True)
    peer.send(c.Detach(handle=0, closed=True))
    peer.note()
    play.count(queue)


@each(
    no_id={"delivery_id": None},
    no_tag={"delivery_tag": None},
    long_tag={"delivery_tag": b"t" * 33},
    empty_tag={"delivery_tag": b""},
    format={"message_format": 5},
    state={"state": c.Accepted()},
    resume={"resume": True},
    batchable={"batchable": True},
    second={"rcv_settle_mode": 1},
    settled_null={"settled": None},
)
def transfer_fields(play: Play, fields: dict[str, Any]) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=message(b"m"), **fields)
    found = peer.note()
    if not any(isinstance(each.what, (c.End, c.Detach)) for each in found):
        peer.receiver(queue, 1, 2)
        peer.note("received")


@scenario
def same_tag_twice(play: Play) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(delivery_tag=b"t")
    peer.transfer(delivery_tag=b"t")
    peer.note()


@scenario
def ids_that_jump(play: Play) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    for number in (5, 100, 7, 7):
        peer.transfer(delivery_id=number)
        peer.note(f"{number}")


@scenario
def ids_that_wrap(play: Play) -> None:
    peer = play.peer().open()
    peer.wait_for(c.Open)
    peer.begin(next_outgoing_id=4294967294)
    peer.note()
    peer.sender(play.declare())
    for number in (4294967294, 4294967295, 0, 1):
        peer.transfer(delivery_id=number)
    peer.note()
    peer.flow(incoming_window=WINDOW, next_outgoing_id=2)
    peer.note("flow")


@each(closed=True, open=False)
def detach_of_receiver(play: Play, closed: bool) -> None:
    queue, peer = filled(play, "quorum", 2)
    peer.receiver(queue, 1, 1)
    peer.note()
    peer.send(c.Detach(handle=1, closed=closed, error=c.Error(condition=Symbol("x:y"), description="text")))
    peer.note("detached")
    peer.receiver(queue, 2, 5)
    peer.note("again")


@scenario
def exclusive_link_property(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.receiver(queue, 0, 1, properties={Symbol("rabbitmq:exclusive"): True})
    peer.note()
    peer.receiver(queue, 1, 1)
    peer.note("second")


@each(
    end=c.End(error=c.Error(condition=Symbol("a:b"))), close=c.Close(error=c.Error(condition=Symbol("a:b")))
)
def ends_with_errors(play: Play, body: c.Composite) -> None:
    peer = play.peer().session()
    peer.send(body)
    peer.note()
