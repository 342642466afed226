"""Scenarios of single active consumers: which link is told that it is active, and when."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer
from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, QUEUES, Play, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Int, Symbol


def rivals(play: Play, kind: str = "quorum", **arguments: Any) -> tuple[str, Peer, Peer]:
    """A queue with a single active consumer, and two peers."""
    queue = play.declare(kind, x_single_active_consumer=True, **arguments)
    return queue, play.peer("one").session(), play.peer("two").session()


@each(**KINDS)
def active_without_single(play: Play, kind: str) -> None:
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.attach(RECEIVER, queue)
    peer.note("attached")
    peer.flow(0, link_credit=0)
    peer.note("no credit")
    peer.flow(0, link_credit=1)
    peer.note("credit")
    peer.flow(0, link_credit=2, echo=True)
    peer.note("echo")


@each(**QUEUES)
def active_changes(play: Play, kind: str) -> None:
    queue, one, two = rivals(play, kind)
    one.attach(RECEIVER, queue)
    one.note("attached")
    one.flow(0, link_credit=5)
    one.note("credit")
    two.attach(RECEIVER, queue)
    two.note("attached")
    two.flow(0, link_credit=5)
    two.note("credit")
    one.send(c.Detach(handle=0, closed=True))
    one.note("detached")
    two.note("one has gone")
    one.attach(RECEIVER, queue)
    one.note("attached again")
    one.flow(0, link_credit=3, echo=True)
    one.note("credit again")
    two.send(c.Close())
    two.note("closed")
    one.note("two has gone")


@scenario
def active_without_credit(play: Play) -> None:
    queue, one, two = rivals(play)
    one.receiver(queue)
    two.receiver(queue)
    one.send(c.Detach(handle=0, closed=True))
    one.note("detached")
    two.note("one has gone")
    two.flow(0, link_credit=3)
    two.note("credit")
    two.flow(0, link_credit=3, echo=True)
    two.note("echo")


@scenario
def active_by_priority(play: Play) -> None:
    """A consumer of a higher priority becomes active."""
    queue, one, two = rivals(play)
    one.receiver(queue, 0, 5)
    one.note("one")
    two.receiver(queue, 0, properties={Symbol("rabbitmq:priority"): Int(5)})
    two.note("two")
    one.note("one after")
    two.flow(0, link_credit=5)
    two.note("credit")
    one.note("one at last")


@scenario
def active_by_priority_with_messages(play: Play) -> None:
    """A consumer that holds messages is active until it has settled them."""
    queue, one, two = rivals(play)
    one.receiver(queue, 0, 5)
    one.note("one")
    one.sender(queue, 1)
    one.transfer(1)
    one.note("sent")
    two.receiver(queue, 0, 5, properties={Symbol("rabbitmq:priority"): Int(5)})
    two.note("two")
    one.transfer(1)
    one.note("sent again")
    one.settle(c.Accepted(), 0)
    one.note("settled")
    two.note("two after")


@scenario
def active_drained(play: Play) -> None:
    queue, one, two = rivals(play)
    one.receiver(queue)
    one.flow(0, link_credit=5, drain=True)
    one.note("one")
    two.receiver(queue)
    two.flow(0, link_credit=5, drain=True)
    two.note("two")


@scenario
def active_in_one_session(play: Play) -> None:
    queue, one, _ = rivals(play)
    one.receiver(queue, 0, 5)
    one.receiver(queue, 1, 5)
    one.note("both")
    one.send(c.Detach(handle=0, closed=True))
    one.note("changed")


@scenario
def active_with_messages(play: Play) -> None:
    """Messages that return go to the consumer that follows."""
    queue, one, two = rivals(play)
    one.sender(queue, 1)
    one.transfer(1).transfer(1)
    one.note("sent")
    one.receiver(queue, 0, 5)
    one.note("one")
    two.receiver(queue, 0, 5)
    two.note("two")
    one.send(c.Detach(handle=0, closed=True))
    one.note("detached")
    two.note("one has gone")
