"""What a broker sends is cut the same however it arrives: contents to receivers, other frames to pika."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as some

from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME, content_frames, frame, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.methods import (
    BasicAck,
    BasicDeliver,
    BasicGetEmpty,
    BasicGetOk,
    BasicReturn,
    QueueDeclareOk,
)
from fakeamqp.protocols.base.codec import FrameError
from fakeamqp.spark.incoming import Contents, IncomingRows

ROUTE = b"\x01x\x03a.b"


def deliver(tag, body, channel=1, consumer="c", limit=10):
    method = BasicDeliver(
        consumer_tag=consumer, delivery_tag=tag, redelivered=tag % 2 == 1, exchange="x", routing_key="a.b"
    )
    return method_frame(channel, method.encode()) + b"".join(
        content_frames(channel, 60, b"\x00\x00", body, limit)
    )


class Log:
    """What came, in order."""

    def __init__(self):
        self.seen = []
        self.incoming = IncomingRows(lambda octets: self.seen.append(("pika", octets)))
        self.contents = self.incoming.channels[1] = Contents()
        self.contents.consumers[b"c"] = self.contents.got = self.contents.returned = self.receive

    def receive(self, *content):
        self.seen.append(content)

    def joined(self):
        """The same with neighbouring frames of pika's as one."""
        joined = []
        for each in self.seen:
            if each[0] == "pika" and joined and joined[-1][0] == "pika":
                joined[-1] = ("pika", joined[-1][1] + each[1])
            else:
                joined.append(each)
        return joined


RETURN = BasicReturn(reply_code=312, reply_text="NO_ROUTE", exchange="x", routing_key="a.b").encode()
RETURNED = method_frame(1, RETURN) + b"".join(content_frames(1, 60, b"\x00\x00", b"back", 10))
DECLARED = method_frame(1, QueueDeclareOk(queue="q", message_count=3).encode())
ELSEWHERE = deliver(9, b"for pika", channel=2)
PIECES = [
    (deliver(1, b"one"), (1, True, ROUTE, b"\x00\x00", b"one")),
    (DECLARED, None),
    (deliver(2, b""), (2, False, ROUTE, b"\x00\x00", b"")),
    (HEARTBEAT_FRAME, None),
    (ELSEWHERE, None),
    (deliver(3, b"m" * 25), (3, True, ROUTE, b"\x00\x00", b"m" * 25)),
    (RETURNED, (0, False, RETURN, b"\x00\x00", b"back")),
    (deliver(4, b"of another consumer", consumer="d"), ()),
    (method_frame(1, BasicAck(delivery_tag=1).encode()), None),
]


@given(some.lists(some.sampled_from(PIECES)), some.data())
def test_the_cuts_do_not_depend_on_how_octets_arrive(pieces, data):
    octets = b"".join(each for each, _ in pieces)
    whole, cut = Log(), Log()
    for octets_of_piece, delivery in pieces:
        if delivery is None:
            whole.seen.append(("pika", octets_of_piece))
        elif delivery:
            whole.seen.append(delivery)
    while octets:
        size = data.draw(some.integers(1, len(octets)))
        cut.incoming.receive(octets[:size])
        octets = octets[size:]
    assert cut.joined() == whole.joined()
    assert cut.incoming.taken == sum(len(each) for each, delivery in pieces if delivery is not None)


def test_frames_of_other_channels_may_come_between():
    one = deliver(1, b"m" * 25)
    log = Log()
    for start in range(0, len(one), 7):
        log.incoming.receive(one[start : start + 7])
    frames = [method_frame(1, BasicDeliver(consumer_tag="c", delivery_tag=5).encode())]
    frames += content_frames(1, 60, b"\x00\x00", b"abcdef", 2)
    for each in frames:
        log.incoming.receive(each + HEARTBEAT_FRAME)
    assert [each[-1] for each in log.seen if each[0] != "pika"] == [b"m" * 25, b"abcdef"]


def test_basic_get_answer_returns_message_and_count():
    log = Log()
    got = BasicGetOk(delivery_tag=1, exchange="x", routing_key="a.b", message_count=7)
    log.incoming.receive(method_frame(1, got.encode()) + b"".join(content_frames(1, 60, b"\0\0", b"m", 9)))
    assert (log.seen, log.contents.counted) == ([(1, False, ROUTE, b"\0\0", b"m")], 7)
    log.incoming.receive(method_frame(1, BasicGetEmpty().encode()))
    assert log.contents.counted == -1


@pytest.mark.parametrize(
    "octets",
    [
        frame(3, 1, b"body"),
        frame(2, 1, bytes(14)),
        deliver(1, b"") + frame(3, 1, b"body"),
        method_frame(1, BasicDeliver(consumer_tag="c").encode())
        + frame(2, 1, bytes(11) + b"\x01\x00\x00")
        + frame(3, 1, b"body"),
    ],
)
def test_contents_out_of_order_are_an_error(octets):
    with pytest.raises(FrameError):
        Log().incoming.receive(octets)


@pytest.mark.parametrize("octets", [b"AMQP\x00\x00\x09\x01", b"HTTP/1.1 400", HEARTBEAT_FRAME[:-1] + b"\x00"])
def test_octets_that_form_no_frame_are_passed_to_pika(octets):
    log = Log()
    log.incoming.receive(DECLARED + octets)
    assert log.joined() == [("pika", DECLARED + octets)]


def test_unexpected_message_contents_are_dropped():
    log = Log()
    log.incoming.channels[1] = Contents()
    got = BasicGetOk(delivery_tag=1, exchange="x", routing_key="a.b", message_count=7)
    answer = method_frame(1, got.encode()) + b"".join(content_frames(1, 60, b"\0\0", b"m", 9))
    log.incoming.receive(deliver(1, b"one") + RETURNED + answer + DECLARED)
    assert log.seen == [("pika", DECLARED)]
