"""A channel: requests and answers, contents however their frames arrive, and what the broker asks for."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as some

from compat_tests.fuzz.profile import examples
from compat_tests.unit.spark.wire.peers import NO_PROPERTIES, content, opened, options, received, sent
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME, content_frames, frame
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.base.codec import FrameError, WireError
from fakeamqp.spark.errors import ChannelClosed, ConnectionLost, UnreadableAnswer
from fakeamqp.spark.wire.channel import WireChannel
from fakeamqp.spark.wire.connection import WireConnection

ROUTE = b"\x01x\x03a.b"


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def connection(broker):
    with WireConnection(options(broker.url)) as connection:
        connection.channel().call_all(
            [m.QueueDeclare(queue="orders", durable=True), m.QueueDeclare(queue="refunds", durable=True)]
        )
        yield connection


@pytest.fixture
def channel(connection):
    return connection.channel()


class Received(list):
    """A receiver that keeps what it was called with."""

    def __call__(self, *content):
        self.append(content)

    @property
    def bodies(self):
        return [body for *_, body in self]


# --- contents however they arrive -------------------------------------------------------------------------


class Offline:
    """A connection without a socket, with one channel."""

    def __init__(self):
        self.connection = WireConnection(options())
        self.connection.abandon()
        self.channel = self.connection.channels[1] = WireChannel(self.connection, 1, 5.0)
        self.seen = []
        self.channel._consumers[b"c"] = self.channel.returned = lambda *content: self.seen.append(content)
        self.channel.confirms = self.seen.append

    def receive(self, octets):
        self.connection._receive(octets)


def deliver(tag, body, channel=1, consumer="c", limit=10):
    method = m.BasicDeliver(
        consumer_tag=consumer, delivery_tag=tag, redelivered=tag % 2 == 1, exchange="x", routing_key="a.b"
    )
    return content(method, body, channel, limit=limit)


RETURN = m.BasicReturn(reply_code=312, reply_text="NO_ROUTE", exchange="x", routing_key="a.b")
CONFIRM = m.BasicNack(delivery_tag=7, multiple=True)
PIECES = [
    (deliver(1, b"one"), (1, True, ROUTE, NO_PROPERTIES, b"one")),
    (deliver(2, b""), (2, False, ROUTE, NO_PROPERTIES, b"")),
    (deliver(3, b"m" * 25), (3, True, ROUTE, NO_PROPERTIES, b"m" * 25)),
    (deliver(3, b"m" * 2500, limit=1000), (3, True, ROUTE, NO_PROPERTIES, b"m" * 2500)),
    (content(RETURN, b"back"), (0, False, RETURN.encode(), NO_PROPERTIES, b"back")),
    (sent(CONFIRM, 1), CONFIRM),
    (HEARTBEAT_FRAME, None),
    (sent(m.BasicQosOk(), 1), None),
    (deliver(9, b"on a channel that is closed", channel=2), None),
    (deliver(4, b"of a consumer that is dropped", consumer="d"), None),
]


@given(some.lists(some.sampled_from(PIECES)), some.data())
def test_channel_receives_the_same_messages_wherever_the_bytes_are_cut(pieces, data):
    octets = b"".join(each for each, _ in pieces)
    cut = Offline()
    while octets:
        size = data.draw(some.integers(1, len(octets)))
        cut.receive(octets[:size])
        octets = octets[size:]
    assert cut.seen == [expected for _, expected in pieces if expected is not None]


@examples(300)
@given(some.lists(some.sampled_from(PIECES), min_size=1), some.data())
def test_no_bytes_make_another_error_than_that_they_cannot_be_read(pieces, data):
    octets = bytearray(b"".join(each for each, _ in pieces))
    for _ in range(data.draw(some.integers(1, 4))):
        octets[data.draw(some.integers(0, len(octets) - 1))] = data.draw(some.integers(0, 255))
    try:
        Offline().receive(bytes(octets))
    except (WireError, IndexError, struct.error):
        """These end the connection as unreadable."""


def test_frames_of_other_channels_may_come_between():
    frames = [sent(m.BasicDeliver(consumer_tag="c", delivery_tag=5), 1)]
    frames += content_frames(1, 60, NO_PROPERTIES, b"abcdef", 2)
    offline = Offline()
    for each in frames:
        offline.receive(each + HEARTBEAT_FRAME + sent(m.BasicAck(delivery_tag=1), 2))
    assert [body for *_, body in offline.seen] == [b"abcdef"]


DELIVER = sent(m.BasicDeliver(consumer_tag="c"), 1)
HEADER, BODY = content_frames(1, 60, NO_PROPERTIES, b"body", 10)


@pytest.mark.parametrize(
    "octets",
    [
        BODY,
        HEADER,
        deliver(1, b"") + BODY,
        deliver(1, b"one") + HEADER,
        DELIVER + BODY,
        DELIVER + HEADER + frame(3, 1, b"longer"),
        DELIVER + HEADER + DELIVER + HEADER,
        DELIVER + HEADER + HEADER,
    ],
)
def test_contents_out_of_order_are_an_error(octets):
    with pytest.raises(FrameError):
        Offline().receive(octets)


def test_content_out_of_order_ends_the_connection_as_unreadable():
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        peer.sendall(BODY)
        with pytest.raises(UnreadableAnswer, match="belongs to no method"):
            channel.count("q")


# --- requests ---------------------------------------------------------------------------------------------


def test_request_timeout_error_names_request(broker):
    with WireConnection(options(broker.url, **{"amqp.connectionTimeout": "2s"})) as connection:
        channel = connection.channel()
        channel._timeout = 0.05  # Only now: a busy machine may need longer for the login.
        broker.faults.on("queue.declare").drop()
        with pytest.raises(ConnectionLost, match=r"did not answer queue\.declare within 0\.05 s"):
            channel.count("q")


def test_several_requests_are_answered_in_order(channel):
    channel.call_all([])
    declare, delete = m.QueueDeclare(queue="orders", passive=True), m.QueueDelete(queue="refunds")
    answers = channel.call_all([declare, m.BasicQos(prefetch_count=1), delete])
    assert [answer.NAME for answer in answers] == ["queue.declare-ok", "basic.qos-ok", "queue.delete-ok"]


def test_refusal_of_one_of_several_requests_is_raised(channel):
    with pytest.raises(ChannelClosed, match="404 NOT_FOUND - no queue 'nowhere'") as caught:
        channel.call_all([m.BasicQos(prefetch_count=1), m.QueueDeclare(queue="nowhere", passive=True)])
    assert caught.value.reply_code == 404
    assert caught.value.reply_text.startswith("NOT_FOUND - no queue 'nowhere'")
    assert not channel.is_open
    for use in (channel.check, lambda: channel.count("orders"), lambda: channel.wait_for(bool, 5, "answer")):
        with pytest.raises(ChannelClosed, match="404"):
            use()
    channel.close()


def test_count_has_ready_messages_and_consumers(broker, channel, connection):
    channel.call(m.BasicConsume(queue="orders"))
    broker.publish(b"m", routing_key="refunds")
    assert (channel.count("orders").consumer_count, channel.count("refunds").message_count) == (1, 1)
    assert channel.settle("refunds") == 1


def test_settled_count_is_the_second_one():
    """The messages that RabbitMQ sends behind its first answer are here then."""
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        received(peer)
        turn, counts = connection.turn, [9, 7]

        def answer(left):
            peer.sendall(sent(m.QueueDeclareOk(queue="q", message_count=counts.pop(0)), 1))
            turn(left)

        connection.turn = answer
        assert channel.settle("q") == 7
        assert received(peer) == [m.QueueDeclare(queue="q", passive=True)] * 2


def test_acknowledgements_are_of_one_message_or_of_all_up_to_it():
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        received(peer)
        channel.ack(1)
        channel.ack(2, multiple=True)
        channel.nack(3)
        channel.nack(0, multiple=True, requeue=False)
        assert received(peer) == [
            m.BasicAck(delivery_tag=1),
            m.BasicAck(delivery_tag=2, multiple=True),
            m.BasicNack(delivery_tag=3, requeue=True),
            m.BasicNack(multiple=True, requeue=False),
        ]


def test_meanwhile_is_called_for_what_comes_before_the_answer(broker, channel):
    got, seen = Received(), []
    channel.consume("orders", got)
    broker.publish(b"m", routing_key="orders")
    broker.wait_for(lambda: broker.queue("orders").unacked == 1)
    assert got == []
    channel.qos(1, lambda: seen.append(len(got)))
    assert seen[-1] == 1


# --- consuming --------------------------------------------------------------------------------------------


def test_deliveries_have_tag_route_properties_and_body(broker, channel):
    got = Received()
    channel.qos(2)
    tag = channel.consume("orders", got)
    for body in (b"1", b"", b"3"):
        broker.publish(body, routing_key="orders")
    channel.wait_for(lambda: len(got) == 2, 5, "deliver")
    route = b"\x00\x06orders"
    assert got == [(1, False, route, NO_PROPERTIES, b"1"), (2, False, route, NO_PROPERTIES, b"")]
    channel.ack(2, multiple=True)
    channel.wait_for(lambda: len(got) == 3, 5, "deliver")
    channel.nack(3)
    channel.wait_for(lambda: len(got) == 4, 5, "deliver again")
    assert got[3][:2] == (4, True)
    assert [each.tag for each in broker.consumers] == [tag]


def test_messages_of_several_consumers_go_to_their_receivers(broker, channel):
    orders, refunds = Received(), Received()
    channel.consume("orders", orders)
    channel.consume("refunds", refunds, {"x-priority": 3})
    broker.publish(b"o", routing_key="orders")
    broker.publish(b"r", routing_key="refunds")
    channel.wait_for(lambda: orders and refunds, 5, "deliver")
    assert (orders.bodies, refunds.bodies) == ([b"o"], [b"r"])
    assert [each.arguments for each in broker.consumers] == [{}, {"x-priority": 3}]


def test_large_message_is_received_whole(broker, channel):
    got, body = Received(), bytes(range(256)) * 20_000
    broker.publish(body, routing_key="orders")
    broker.publish(b"next", routing_key="orders")
    channel.consume("orders", got)
    channel.wait_for(lambda: len(got) == 2, 10, "deliver")
    assert got.bodies == [body, b"next"]


def test_discarded_messages_and_those_after_cancel_stay_unacknowledged(broker, channel):
    got = Received()
    tag = channel.consume("orders", got)
    channel.discard()
    broker.publish(b"m", routing_key="orders")
    assert channel.settle("orders") == 0
    channel.cancel(tag)
    broker.publish(b"n", routing_key="orders")
    assert channel.settle("orders") == 1
    assert got == []
    assert broker.queue("orders").unacked == 1


def test_consumer_that_the_broker_cancels_is_lost_and_its_connection_is_not(broker, connection, channel):
    channel.consume("orders", Received())
    broker.queue("orders").delete()
    with pytest.raises(ConnectionLost, match="the broker cancelled a consumer; was its queue deleted"):
        channel.wait_for(lambda: False, 5, "deliver")
    channel.close()
    # RabbitMQ closes a connection that answers a notification.
    assert connection.channel().count("refunds").message_count == 0


def test_cancellation_that_asks_for_an_answer_is_answered():
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        connection.channel()
        received(peer)
        for no_wait, answers in ((True, []), (False, [m.BasicCancelOk(consumer_tag="c")])):
            peer.sendall(sent(m.BasicCancel(consumer_tag="c", no_wait=no_wait), 1))
            connection.turn(5)
            assert received(peer) == answers


# --- basic.get --------------------------------------------------------------------------------------------


def test_get_returns_the_rest_of_the_queue_and_none_if_it_is_empty(broker, channel):
    got, large = Received(), b"m" * 400_000
    broker.publish(large, routing_key="orders")
    broker.publish(b"2", routing_key="orders")
    assert channel.get("orders", got) == 1
    assert got == [(1, False, b"\x00\x06orders", NO_PROPERTIES, large)]
    assert channel.get("orders", got) == 0
    assert channel.get("orders", got) is None
    assert got.bodies == [large, b"2"]
    with pytest.raises(ChannelClosed, match="404"):
        channel.get("nowhere", got)


def test_message_of_a_get_may_come_in_pieces_and_each_has_the_whole_time(monkeypatch):
    got = Received()
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        answer = m.BasicGetOk(delivery_tag=1, exchange="x", routing_key="a.b", message_count=7)
        octets = content(answer, b"m" * 25)
        method_ends = octets.index(b"\xce") + 1
        pieces = [octets[:method_ends]]
        pieces += [octets[start : start + 20] for start in range(method_ends, len(octets), 20)]
        clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, time_ns=lambda: int(clock.now * 1e9))
        monkeypatch.setattr("fakeamqp.spark.wire.transport.time", clock)
        turn = connection.turn

        def slowly(left):
            peer.sendall(pieces.pop(0))
            clock.now += 4.0
            turn(left)

        channel._timeout, connection.turn = 5.0, slowly
        assert channel.get("q", got) == 7
        assert got == [(1, False, ROUTE, NO_PROPERTIES, b"m" * 25)]
        assert pieces == []


# --- publishing -------------------------------------------------------------------------------------------


def test_confirms_and_returns_go_to_their_receivers(broker, channel):
    confirms, returned = [], Received()
    channel.confirms, channel.returned = confirms.append, returned
    channel.call(m.ConfirmSelect())
    for key in ("orders", "nowhere"):
        publish = m.BasicPublish(routing_key=key, mandatory=True)
        channel.connection.send(content(publish, b"m", channel.number))
    channel.wait_for(lambda: sum(each.delivery_tag for each in confirms) >= 2 and returned, 5, "confirm")
    ((tag, redelivered, route, _, body),) = returned
    assert (tag, redelivered, body) == (0, False, b"m")
    assert m.BasicReturn.decode(route, RABBITMQ).routing_key == "nowhere"


def test_confirms_and_returns_that_nobody_takes_are_dropped(channel):
    channel.call(m.ConfirmSelect())
    publish = m.BasicPublish(routing_key="nowhere", mandatory=True)
    channel.connection.send(content(publish, b"m", channel.number))
    assert channel.count("orders").message_count == 0


def test_flow_of_the_broker_is_answered_and_known():
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        received(peer)
        for active in (False, True):
            peer.sendall(sent(m.ChannelFlow(active=active), 1))
            connection.turn(5)
            assert (channel.flowing, received(peer)) == (active, [m.ChannelFlowOk(active=active)])


# --- ends -------------------------------------------------------------------------------------------------


def test_closed_channel_gives_its_messages_back(broker, connection, channel):
    got = Received()
    broker.publish(b"m", routing_key="orders")
    channel.consume("orders", got)
    channel.wait_for(lambda: got, 5, "deliver")
    channel.close()
    channel.close()
    assert (broker.queue("orders").ready, broker.queue("orders").unacked) == (1, 0)
    assert channel.number not in connection.channels
    assert channel.lost is None


def test_nothing_is_sent_on_a_closed_channel(connection, channel):
    """RabbitMQ would close the connection."""
    other = connection.channel()
    with pytest.raises(ChannelClosed):
        channel.count("nowhere")
    other.close()
    for closed in (channel, other):
        closed.ack(1)
        closed.nack(1)
    with pytest.raises(ConnectionLost, match=r"^the channel is closed$"):
        other.count("orders")
    assert connection.channel().count("orders").message_count == 0


def test_messages_that_come_while_a_channel_closes_are_dropped():
    got = Received()
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        peer.sendall(sent(m.BasicConsumeOk(), 1))
        tag = channel.consume("q", got)
        peer.sendall(content(m.BasicDeliver(consumer_tag=tag), b"m") + sent(m.ChannelCloseOk(), 1))
        channel.close()
    assert got == []


def test_closed_channels_of_both_sides_have_their_number_until_the_last_answer():
    with opened() as (connection, peer):
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        channel = connection.channel()
        received(peer)
        peer.sendall(sent(m.ChannelClose(reply_code=404, reply_text="NOT_FOUND"), 1))
        peer.sendall(sent(m.ChannelCloseOk(), 1))
        channel.close()
        assert received(peer) == [m.ChannelClose(reply_code=200, reply_text="bye"), m.ChannelCloseOk()]
        assert channel.closed == (404, "NOT_FOUND")
        assert connection.channels == {}


def test_channel_cannot_be_closed_on_a_connection_that_is_lost(broker, connection, channel):
    broker.connections[0].close(320, "maintenance")
    with pytest.raises(ConnectionLost, match="320"):
        channel.close()
