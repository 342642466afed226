"""Scenarios of streams: offsets and filters."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, filled
from compat_tests.scripted.amqp_1_0 import RECEIVER, filters, message
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Described,
    Symbol,
    UInt,
    ULong,
)


@each(first="first", last="last", next="next", number=ULong(1), bare=UInt(2))
def offsets(play: Play, value: Any) -> None:
    queue, peer = filled(play, "stream", 3)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": filters(offset_spec=value)})
    peer.flow(1, link_credit=10)
    peer.note()


@each(one="a", several=["a", "b"], none="z")
def stream_filters(play: Play, value: Any) -> None:
    queue = play.declare("stream")
    peer = play.peer().session()
    peer.sender(queue, 0)
    for name in ("a", "b", "c"):
        peer.transfer(payload=message(name.encode(), annotations={Symbol("x-stream-filter-value"): name}))
        peer.frames()
    peer.transfer(payload=message(b"unfiltered"))
    peer.frames()
    said = filters(offset_spec="first", filter=value, match_unfiltered=True)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": said})
    peer.flow(1, link_credit=10)
    found = peer.note()
    assert found


@each(
    undescribed={Symbol("rabbitmq:stream-offset-spec"): "first"},
    unknown={Symbol("x"): Described(Symbol("x"), 1)},
)
def odd_filters(play: Play, value: Any) -> None:
    queue, peer = filled(play, "stream", 2)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": value})
    peer.flow(1, link_credit=10)
    peer.note()
