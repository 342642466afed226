"""Scenarios of sessions: begin, handles and windows."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER
from fakeamqp.protocols.amqp_1_0.codec import composites as c


@each(plain={}, handles={"handle_max": 7}, window={"incoming_window": 1}, id={"next_outgoing_id": 77})
def begin(play: Play, fields: dict[str, Any]) -> None:
    peer = play.peer().open()
    peer.wait_for(c.Open)
    peer.begin(3, **fields)
    peer.note()


@scenario
def second_begin(play: Play) -> None:
    peer = play.peer().session()
    peer.begin()
    peer.note()


@scenario
def end(play: Play) -> None:
    peer = play.peer().session()
    peer.send(c.End())
    peer.note()
    peer.begin()
    peer.note()


@scenario
def echo_without_handle(play: Play) -> None:
    peer = play.peer().session()
    peer.flow(echo=True)
    peer.note()


@scenario
def flow_ahead(play: Play) -> None:
    peer = play.peer().session()
    peer.flow(next_incoming_id=5)
    peer.note()


@scenario
def large_handle(play: Play) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, play.declare(), 256)
    peer.note()


@scenario
def handle_in_use(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 3)
    peer.attach(SENDER, queue, 3, name="other")
    peer.note()


@each(flow=c.Flow(incoming_window=10, next_outgoing_id=0, outgoing_window=10, handle=5, link_credit=1))
def unattached(play: Play, body: c.Composite) -> None:
    peer = play.peer().session()
    peer.send(body)
    peer.note()


@scenario
def unattached_transfer(play: Play) -> None:
    peer = play.peer().session()
    peer.transfer(3)
    peer.note()


@scenario
def unattached_detach(play: Play) -> None:
    peer = play.peer().session()
    peer.send(c.Detach(handle=3, closed=True))
    peer.note()


@scenario
def client_window(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().open()
    peer.begin(incoming_window=2)
    peer.wait_for(c.Begin)
    peer.sender(queue, 0)
    for _ in range(5):
        peer.transfer(0)
    peer.note()
    peer.attach(RECEIVER, queue, 1)
    peer.note()
    peer.flow(1, link_credit=10, incoming_window=2)
    peer.note("two")
    peer.flow(next_incoming_id=2, incoming_window=1)
    peer.note("one more")


@scenario
def window_is_granted_again(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    for _ in range(210):
        peer.transfer(0, settled=True)
    peer.note()
