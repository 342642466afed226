"""Scenarios of consumer timeouts, which quorum queues have since RabbitMQ 4.3."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, QUEUES, Play, each, filled, scenario
from compat_tests.scripted.amqp_1_0 import filters
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Int, Symbol, UInt, ULong

_TIMEOUT = 1000
PROPERTY = {Symbol("rabbitmq:consumer-timeout"): UInt(_TIMEOUT)}


OUTCOMES = {
    "accepted": c.Accepted(),
    "rejected": c.Rejected(),
    "released": c.Released(),
    "modified": c.Modified(delivery_failed=True),
}


@each(**QUEUES)
def timeout_argument(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 2, **({} if kind == "classic" else {"x_consumer_timeout": _TIMEOUT}))
    peer.receiver(queue, 1, 1)
    peer.note("got")
    peer.stage.pass_time(2.5)
    peer.note("late")
    play.count(queue)


@each(**QUEUES)
def timeout_property(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 1)
    peer.receiver(queue, 1, 1, properties=PROPERTY)
    peer.note("got")
    peer.stage.pass_time(2.5)
    peer.note("late")
    play.count(queue)


@each(int=Int(_TIMEOUT), long=_TIMEOUT, ulong=ULong(_TIMEOUT), text="1000")
def timeout_property_types(play: Play, value: Any) -> None:
    """Only a uint is a timeout."""
    queue, peer = filled(play, "quorum", 1)
    peer.receiver(queue, 1, 1, properties={Symbol("rabbitmq:consumer-timeout"): value})
    peer.note("got")
    peer.stage.pass_time(2.5)
    peer.note("not late")


@each(uint=UInt(5), long=5, text="5", int=Int(5))
def priority_types(play: Play, value: Any) -> None:
    """Only an int is a priority."""
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    peer.receiver(queue, 1, 5)
    peer.receiver(queue, 2, 5, properties={Symbol("rabbitmq:priority"): value})
    peer.transfer(0)
    peer.note()


@each(**OUTCOMES, unsettled=None)
def timeout_settled(play: Play, state: Any) -> None:
    """The client settles what was taken back, and gets messages again."""
    queue, peer = filled(play, "quorum", 2)
    peer.receiver(queue, 1, 1, properties=PROPERTY)
    peer.note("got")
    peer.stage.pass_time(2.5)
    peer.note("late")
    if state is None:
        peer.settle(c.Released(), 0, settled=False)
    else:
        peer.settle(state, 0)
    peer.note("settled")
    peer.flow(1, link_credit=3, delivery_count=1)
    peer.note("credit")
    play.count(queue)


@scenario
def timeout_without_settling(play: Play) -> None:
    """A consumer gets nothing as long as it has not settled."""
    queue, peer = filled(play, "quorum", 3)
    peer.receiver(queue, 1, 1, properties=PROPERTY)
    peer.note("got")
    peer.stage.pass_time(2.5)
    peer.note("late")
    peer.flow(1, link_credit=3, delivery_count=1, echo=True)
    peer.note("credit")
    other = play.peer("other").session()
    other.receiver(queue, 0, 5)
    other.note("got")
    peer.send(c.Detach(handle=1, closed=True))
    peer.note("detached")
    other.note("got more")


@scenario
def timeout_several(play: Play) -> None:
    """All that was held too long, in one disposition."""
    queue, peer = filled(play, "quorum", 4)
    peer.receiver(queue, 1, 4, properties=PROPERTY)
    peer.note("got")
    peer.settle(c.Accepted(), 1)
    peer.stage.pass_time(2.5)
    peer.note("late")
    peer.settle(c.Released(), 0, 3)
    peer.note("settled")
    play.count(queue)


@each(detach=c.Detach(handle=1, closed=True), end=c.End(), lost=None)
def timeout_ends(play: Play, body: c.Composite | None) -> None:
    """A message that was taken back does not return again."""
    queue, peer = filled(play, "quorum", 1)
    peer.receiver(queue, 1, 1, properties=PROPERTY)
    peer.note("got")
    peer.stage.pass_time(2.5)
    peer.note("late")
    if body is None:
        peer.transport.drop()
    else:
        peer.send(body)
        peer.note("ended")
    other = play.peer("other").session()
    other.receiver(queue, 0, 5)
    other.note("got")


@scenario
def timeout_single_active(play: Play) -> None:
    """The next consumer becomes active."""
    queue, peer = filled(play, "quorum", 2, x_single_active_consumer=True)
    peer.receiver(queue, 1, 1, properties=PROPERTY)
    peer.note("got")
    other = play.peer("other").session()
    other.receiver(queue, 0, 5)
    other.note("waits")
    peer.stage.pass_time(2.5)
    peer.note("late")
    other.note("active")
    peer.settle(c.Released(), 0)
    peer.note("settled")


@scenario
def timeout_settled_link(play: Play) -> None:
    """Messages that come settled have no timeout."""
    queue, peer = filled(play, "quorum", 1)
    peer.receiver(queue, 1, 1, snd_settle_mode=1, properties=PROPERTY)
    peer.note("got")
    peer.stage.pass_time(2.5)
    peer.note("nothing")
    play.count(queue)


@each(**KINDS)
def settled_tags(play: Play, kind: str) -> None:
    """The tags of deliveries that come settled."""
    queue, peer = filled(play, kind, 3)
    terminus = {"filter": filters(offset_spec="first")} if kind == "stream" else {}
    peer.receiver(queue, 1, 5, snd_settle_mode=1, terminus=terminus)
    for _, body, _ in peer.frames():
        if isinstance(body, c.Transfer):
            play.lines.append(f"{body.delivery_tag!r} {body.settled}")
