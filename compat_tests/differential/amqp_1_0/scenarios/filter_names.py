"""Scenarios of filters whose name is no symbol."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, filled
from compat_tests.scripted.amqp_1_0 import RECEIVER
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, UInt, ULong

_VALUES: dict[str, Any] = {
    "bare": "first",
    "described": Described(Symbol("rabbitmq:stream-offset-spec"), "first"),
}


@each(number=ULong(1), uint=UInt(1), binary=b"x", null=None, boolean=True, text="x")
def filter_names(play: Play, name: Any) -> None:
    for kind in ("classic", "stream"):
        for value in _VALUES.values():
            queue, peer = filled(play, kind, 1)
            peer.attach(RECEIVER, queue, 1, terminus={"filter": {name: value}})
            peer.note(kind)
            peer.flow(1, link_credit=10)
            peer.note()
