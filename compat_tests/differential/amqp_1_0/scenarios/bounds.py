"""Scenarios of odd encodings: counts that are wrong, arrays without width, values in sections cut short."""

from __future__ import annotations

import re
from struct import pack
from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import QUEUES, Play, each, filled, scenario
from compat_tests.scripted.amqp_1_0 import message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import PROTOCOL_HEADER, SASL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt, encode_value

_BODY = message(b"body")


def compound(count: int, *items: bytes, code: int = 0xC0, missing: int = 0) -> bytes:
    """A list or a map with this count; `missing` bytes more are announced than there are."""
    octets = b"".join(items)
    if code in (0xC0, 0xC1, 0xE0):
        return bytes((code, len(octets) + 1 + missing, count)) + octets
    return pack(">BII", code, len(octets) + 4 + missing, count) + octets


_PLAIN = (encode_value(Symbol("PLAIN")), encode_value(b"\0guest\0guest"))
_BEGIN = (b"\x40", b"\x43", encode_value(UInt(100)), encode_value(UInt(100)))


@each(
    right=(2, 4, 0xC0),
    more=(3, 5, 0xC0),
    fewer=(1, 3, 0xC0),
    none=(0, 0, 0xC0),
    many=(255, 255, 0xC0),
    huge=(0xFFFFFFFF, 0xFFFFFFFF, 0xD0),
)
def counts_of_lists(play: Play, counts: tuple[int, int, int]) -> None:
    """The items of a list are those that fill it, whatever their count."""
    login, begin, code = counts
    peer = play.peer()
    peer.raw(SASL_HEADER)
    peer.raw(frame(1, 0, b"\0\x53\x41" + compound(login, *_PLAIN, code=code)))
    peer.raw(PROTOCOL_HEADER)
    peer.send(c.Open(container_id="test"))
    peer.raw(frame(0, 0, b"\0\x53\x11" + compound(begin, *_BEGIN, code=code)))
    peer.note()


def application(*items: bytes, count: int = 2, code: int = 0xC1, missing: int = 0) -> bytes:
    return b"\0\x53\x74" + compound(count, *items, code=code, missing=missing) + _BODY


def annotations(value: bytes) -> bytes:
    return b"\0\x53\x72" + compound(2, encode_value(Symbol("x-a")), value, code=0xC1) + _BODY


_KEY = encode_value("a")


@each(
    count=application(_KEY, b"\x41", count=200),
    no_count=application(_KEY, b"\x41", count=0),
    odd=application(_KEY),
    list=application(_KEY, b"\x41", code=0xC0),
    cut=application(_KEY, b"\xa1\x20a"),
    unknown_type=application(_KEY, b"\x3f"),
    bad_boolean=application(_KEY, b"\x56\x07"),
    properties_cut=b"\0\x53\x73" + compound(1, b"\xa1\x20a") + _BODY,
    properties_map=b"\0\x53\x73" + compound(0, code=0xC1) + _BODY,
    header_type=b"\0\x53\x70" + compound(1, b"\xa1\1a") + _BODY,
    too_long=application(_KEY, b"\x41", missing=90),
    array_beyond=annotations(b"\xe0\3\3\x50\1"),
    infinite=annotations(b"\x82\x7f\xf0\0\0\0\0\0\0"),
    no_utf_8=application(_KEY, b"\xa1\1\xff"),
)
def odd_sections(play: Play, payload: bytes) -> None:
    """A publish of it, and what a consumer gets."""
    queue = play.declare()
    peer = play.peer().session().sender(queue, 0)
    peer.transfer(payload=payload)
    peer.note()
    other = play.peer("other").session().receiver(queue, 1, credit=5)
    other.note()
    # RabbitMQ's text has the position of the octet.
    play.lines = [re.sub(r"parse message: .* \)", "parse message: ...)", line) for line in play.lines]


_HALF = 1 << 31


@each(
    credit={"link_credit": UInt(_HALF - 1)},
    half={"link_credit": UInt(_HALF)},
    most={"link_credit": UInt(0xFFFFFFFF)},
    window={"incoming_window": UInt(_HALF - 1), "link_credit": 1},
    half_window={"incoming_window": UInt(_HALF), "link_credit": 1},
    most_window={"incoming_window": UInt(0xFFFFFFFF), "link_credit": 1},
    outgoing={"next_outgoing_id": UInt(0xFFFFFFFF), "outgoing_window": UInt(0xFFFFFFFF), "link_credit": 1},
    behind={"delivery_count": UInt(0xFFFFFFFF), "link_credit": 2},
    far_behind={"delivery_count": UInt(_HALF + 1), "link_credit": 1},
    half_behind={"delivery_count": UInt(_HALF), "link_credit": 0},
    ahead={"delivery_count": UInt(5), "link_credit": 1},
    far_ahead={"delivery_count": UInt(_HALF - 1), "link_credit": 1},
    seen={"next_incoming_id": UInt(0xFFFFFFF0), "link_credit": 1},
    long_ago={"next_incoming_id": UInt(_HALF + 5), "link_credit": 1},
    half_ago={"next_incoming_id": UInt(_HALF), "link_credit": 1},
    early={"next_incoming_id": UInt(1), "link_credit": 1},
)
def numbers_at_their_limits(play: Play, fields: dict[str, Any]) -> None:
    """Flows with serial numbers that are far from those of the broker, in 4.2 and later."""
    queue, _ = filled(play, "classic", 3)
    peer = play.peer("peer").session()
    peer.receiver(queue, 1)
    peer.flow(1, **fields)
    peer.note()


@scenario
def transfers_at_the_limit(play: Play) -> None:
    """Ids of transfers and delivery counts that wrap around."""
    queue = play.declare()
    peer = play.peer("peer").open().begin(next_outgoing_id=UInt(0xFFFFFFFF))
    peer.wait_for(c.Begin)
    peer.sender(queue, 0, initial_delivery_count=UInt(0xFFFFFFFE))
    for number in range(90):
        peer.deliveries = (0xFFFFFFFD + number) & 0xFFFFFFFF
        peer.transfer()
        if number < 4:  # Not to be grouped into a range that wraps around.
            peer.note()
    peer.note()


@each(**QUEUES)
def closed_window(play: Play, kind: str) -> None:
    """Credit for many messages, and a window for one: what the link has taken waits in the session."""
    queue, _ = filled(play, kind, 160)
    slow = play.peer("slow").open().begin(incoming_window=1)
    slow.wait_for(c.Begin)
    slow.receiver(queue, 1, snd_settle_mode=1)
    slow.flow(1, incoming_window=1, link_credit=UInt(1000))
    slow.note()
    play.count(queue)
    other = play.peer("other").session().receiver(queue, 1, credit=200)
    play.lines.append(f"{len(other.frames())} for another")
    slow.flow(None, incoming_window=UInt(1000))
    play.lines.append(f"{len(slow.frames())} when it is open")
