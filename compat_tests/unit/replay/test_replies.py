"""Replies put together and compared."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp
from fakeamqp.replay.peer import Names, RecordedReply, ReplyAssembler, same
from fakeamqp.trace.truncation import Truncated


def feed(*frames: tuple[int, bytes], assembler: ReplyAssembler | None = None) -> list[RecordedReply]:
    assembler = assembler or ReplyAssembler()
    return [reply for kind, payload in frames for reply in assembler.feed(kind, 1, payload)]


def delivery(*body: bytes, size: int | None = None, **properties: object) -> RecordedReply:
    size = sum(map(len, body)) if size is None else size
    header = CONTENT_HEADER.pack(60, 0, size) + BasicProperties(**properties).encode()  # type: ignore[arg-type]
    (reply,) = feed(
        (1, m.BasicDeliver(consumer_tag="t", delivery_tag=7, routing_key="q").encode()),
        (2, header),
        *((3, part) for part in body),
    )
    return reply


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.data())
def test_confirms_are_the_same_however_they_are_gathered(steps, data):
    """All of 1..n are settled, in pieces, each singly or with all before it."""
    last = sum(steps)
    singly = feed(*((1, m.BasicAck(delivery_tag=tag).encode()) for tag in range(1, last + 1)))
    frames, below = [], 0
    for step in steps:
        # Some of the piece first, then what ends it.
        for tag in data.draw(st.lists(st.integers(below + 1, below + step), unique=True)):
            frames.append((1, m.BasicAck(delivery_tag=tag).encode()))
        below += step
        frames.append((1, m.BasicAck(delivery_tag=below, multiple=True).encode()))
    gathered = feed(*frames)
    assert sorted(map(str, gathered)) == sorted(map(str, singly))
    assert {reply.order_key for reply in gathered} == {("confirm", tag) for tag in range(1, last + 1)}


def test_confirms_begin_anew_with_the_channel():
    assembler = ReplyAssembler()
    ack = (1, m.BasicAck(delivery_tag=1, multiple=True).encode())
    assert len(feed(ack, ack, assembler=assembler)) == 1
    again = feed((1, m.ChannelOpenOk().encode()), ack, assembler=assembler)
    assert [reply.order_key for reply in again] == [("answer",), ("confirm", 1)]


def test_a_nack_is_no_ack():
    (ack,), (nack,) = (
        feed((1, m.BasicAck(delivery_tag=1).encode())),
        feed((1, m.BasicNack(delivery_tag=1).encode())),
    )
    assert ack.order_key == nack.order_key and not same(ack, nack, Names())


def test_a_reply_is_complete_with_its_content():
    reply = delivery(b"ab", b"c", message_id="m1")
    assert (reply.order_key, reply.body, reply.body_size) == (("delivery", "t"), [b"ab", b"c"], 3)
    assert reply.properties is not None and reply.properties.message_id == "m1"
    assert delivery().body == []


def test_octets_out_of_place_are_replies_of_their_own():
    (reply,) = feed((3, b"x"))
    assert reply.method is None and not same(reply, reply, Names())


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (delivery(b"abc"), delivery(b"a", b"bc"), True),
        (delivery(b"abc"), delivery(b"abd"), False),
        (delivery(b"abc"), delivery(b"ab"), False),
        (delivery(b"a", message_id="1"), delivery(b"a", message_id="2"), False),
        (delivery(b"a", headers={"at": Timestamp(1)}), delivery(b"a", headers={"at": Timestamp(2)}), True),
        (delivery(b"a", headers={"x": [{"at": Timestamp(1)}]}), delivery(b"a", headers={"x": [{}]}), False),
        (delivery(Truncated(b"abcd", 2), size=4), delivery(b"ab\0\0"), True),
        (delivery(Truncated(b"abcd", 2), size=4), delivery(b"ax\0\0"), False),
        (delivery(Truncated(b"abcd", 2), size=4), delivery(b"ab\0"), False),
    ],
)
def test_contents(one: RecordedReply, other: RecordedReply, equal: bool):
    assert same(one, other, Names()) is equal


def test_names_that_were_made_up_are_learnt_and_translated():
    names = Names()
    (one,) = feed((1, m.QueueDeclareOk(queue="amq.gen-1").encode()))
    (other,) = feed((1, m.QueueDeclareOk(queue="amq.gen-2").encode()))
    assert same(one, other, names)
    assert names.of("amq.gen-1") == "amq.gen-2"
    assert names.of("no queue 'amq.gen-1' in vhost '/'") == "no queue 'amq.gen-2' in vhost '/'"
    assert names.of({"x-dead-letter-routing-key": ["amq.gen-1", Timestamp(1)]}) == {
        "x-dead-letter-routing-key": ["amq.gen-2", Timestamp(1)]
    }
    (mine,), (yours,) = (feed((1, m.QueueDeclareOk(queue=name).encode())) for name in ("mine", "yours"))
    assert not same(mine, yours, names)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (m.ConnectionStart(server_properties={"a": 1}), m.ConnectionStart(mechanisms=b"PLAIN"), True),
        (m.ConnectionStart(version_minor=9), m.ConnectionStart(version_minor=8), False),
        (m.ConnectionTune(frame_max=1), m.ConnectionTune(frame_max=2), False),
        (m.QueueDeclareOk(queue="q", message_count=1), m.QueueDeclareOk(queue="q"), False),
        (m.ChannelOpenOk(), m.ChannelCloseOk(), False),
    ],
)
def test_methods(one: Method, other: Method, equal: bool):
    assert same(*feed((1, one.encode())), *feed((1, other.encode())), Names()) is equal
