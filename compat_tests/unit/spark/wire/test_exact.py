"""A consumer of a number of messages, on a connection that the test plays."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import Channel, Connection, refusal
from fakeamqp.spark.errors import ConnectionLost, QueueNotFound, QueueRefused
from fakeamqp.spark.wire import exact
from fakeamqp.spark.wire.exact import ExactConsumer


@pytest.fixture
def connection(monkeypatch):
    found = Connection()
    monkeypatch.setattr(exact, "time", found)
    return found


def test_windows_follow_one_another_with_as_many_messages_as_are_wanted(connection, monkeypatch):
    monkeypatch.setattr(exact, "_LARGEST_WINDOW", 2)
    consumer = ExactConsumer(connection, "q", 3, priority=-1, first=40)
    connection.turns = [
        lambda: connection.deliver(b"0", b"11"),
        lambda: connection.deliver(b"2", redelivered=True),
    ]
    assert consumer.turn(5.0) is None
    assert (consumer.missing, consumer.arrived) == (1, 2)
    window = [(1, "qos", 2), (1, "consume", "q", {"x-priority": -1})]
    assert connection.calls == window
    assert consumer.turn(5.0) is None
    # The first consumer would stay the single active one.
    after = [(1, "cancel", "q 1"), (1, "discard"), (2, "qos", 1), (2, "consume", "q", {"x-priority": -1})]
    assert connection.calls == window + after
    assert (consumer.missing, consumer.arrived, consumer.redelivered) == (0, 3, 1)
    found = consumer.take()
    assert [(row.body, row.offset, row.queue, row.tag, row.redelivered) for row in found] == [
        (b"0", 40, "q", 1, False),
        (b"11", 41, "q", 2, False),
        (b"2", 42, "q", 1, True),
    ]
    assert {row.received_at for row in found} == {7}
    assert consumer.take() == []


def test_consumer_without_priority_has_no_arguments(connection):
    ExactConsumer(connection, "q", 1).turn(0.0)
    assert connection.calls[1] == (1, "consume", "q")


def test_turn_without_messages_returns_count_of_queue_and_adds_to_idle_time(connection):
    consumer = ExactConsumer(connection, "q", 9)
    connection.ready = [9, 2, 9, 3]
    assert [consumer.turn(2.0), consumer.turn(0.5)] == [2, 3]
    assert (consumer.idle, connection.pauses) == (2.5, [2.0, 0.5])
    connection.turns = [lambda: connection.deliver(b"a")]
    assert consumer.turn(2.0) is None
    assert consumer.idle == 0.0
    connection.ready = [9, lambda: (connection.deliver(b"b"), 0)[1]]
    connection.now += 100.0  # Spark had the connection's thread.
    assert consumer.turn(2.0) is None  # The message came while the queue counted.
    assert consumer.idle == 0.0


def test_turn_waits_for_rest_of_message_that_comes_in_pieces(connection):
    consumer = ExactConsumer(connection, "q", 9)

    def piece():
        connection.now += 0.5

    connection.turns = [piece, piece, lambda: connection.deliver(b"large")]
    assert consumer.turn(2.0) is None
    assert connection.pauses == [2.0, 1.5, 1.0]
    assert len(connection.calls) == 2


def test_opening_of_consumer_is_no_idle_time(connection):
    def answer():
        connection.now += 60.0

    connection.answering = answer
    connection.ready = [4]
    consumer = ExactConsumer(connection, "q", 9)
    assert consumer.turn(2.0) == 4
    assert consumer.idle == 2.0


def test_messages_that_come_while_consumer_is_opened_end_the_turn(connection, monkeypatch):
    consume = Channel.consume

    def consume_and_deliver(self, *given):
        tag = consume(self, *given)
        connection.deliver(b"a")
        return tag

    monkeypatch.setattr(Channel, "consume", consume_and_deliver)
    assert ExactConsumer(connection, "q", 9).turn(2.0) is None
    assert connection.pauses == []


def test_repeated_messages_arrive_and_are_no_rows(connection):
    asked = []

    def repeats(properties, body):
        asked.append((properties, body))
        return body == b"again"

    consumer = ExactConsumer(connection, "q", 4, repeats=repeats)
    connection.turns = [
        lambda: (
            connection.deliver(b"again"),
            connection.deliver(b"again", b"b", properties=b"\x00\x00", redelivered=True),
            connection.deliver(b"c"),
        )
    ]
    consumer.turn(1.0)
    assert [(row.body, row.offset) for row in consumer.take()] == [(b"again", 0), (b"b", 1), (b"c", 2)]
    assert (consumer.arrived, consumer.redelivered, consumer.missing) == (4, 2, 0)
    assert asked == [(b"\x00\x00", b"again"), (b"\x00\x00", b"b")]
    consumer.acknowledge()
    assert connection.calls[-1] == (1, "ack", 4, "multiple")


def test_batch_is_complete_by_rows_or_bytes(connection, monkeypatch):
    with cases() as case:
        for rows, octets, complete in [(2, 99, True), (3, 99, False), (9, 10, True), (9, 11, False)]:
            with case(rows, octets):
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", rows)
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_BYTES", octets)
                consumer = ExactConsumer(connection, "q", 9)
                connection.turns = [
                    lambda: connection.deliver(b"123", b"123")
                ]  # And two bytes of flags each.
                consumer.turn(1.0)
                assert consumer.has_batch == complete
                consumer.take()
                assert not consumer.has_batch


def test_late_messages_of_cancelled_consumer_are_neither_stored_nor_acknowledged(connection, monkeypatch):
    """RabbitMQ may send them after its answer to basic.cancel."""
    monkeypatch.setattr(exact, "_LARGEST_WINDOW", 2)
    consumer = ExactConsumer(connection, "q", 5)
    connection.turns = [lambda: connection.deliver(b"0", b"1"), lambda: connection.deliver(b"2")]
    consumer.turn(1.0)
    consumer.turn(1.0)
    connection.calls.clear()
    consumer.cancel()
    consumer.cancel()
    connection.deliver(b"late")
    assert (consumer.arrived, len(consumer.take())) == (3, 3)
    consumer.acknowledge()
    consumer.close()
    assert connection.calls == [
        (2, "cancel", "q 2"),
        (2, "discard"),
        (1, "ack", 2, "multiple"),
        (2, "ack", 1, "multiple"),
        (1, "close"),
        (2, "close"),
    ]


def test_acknowledgements_that_come_too_late_are_connection_lost(connection):
    consumer = ExactConsumer(connection, "q", 1)
    connection.turns = [lambda: connection.deliver(b"0")]
    consumer.turn(1.0)
    consumer.acknowledge()
    connection.channels[0].lost = "the broker closed the channel: 406 ... timed out"
    with pytest.raises(ConnectionLost, match=r"406 \.\.\. timed out"):
        consumer.close()
    assert connection.calls[-1] == (1, "close")


def test_channel_without_messages_is_closed_without_acknowledgement(connection):
    consumer = ExactConsumer(connection, "q", 5)
    consumer.turn(1.0)
    connection.calls.clear()
    consumer.acknowledge()
    consumer.close()
    assert connection.calls == [(1, "close")]


def lose(connection, channel):
    """End a channel, or the connection for channel 0."""
    if channel:
        connection.channels[channel - 1].lost = "cancelled"
    else:
        connection.lost = "cancelled"


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_end_of_any_channel_or_of_connection_is_connection_lost(connection, monkeypatch, channel):
    """The messages of a channel that has ended may be delivered again."""
    monkeypatch.setattr(exact, "_LARGEST_WINDOW", 2)
    consumer = ExactConsumer(connection, "q", 9)
    connection.turns = [lambda: connection.deliver(b"0", b"1"), lambda: connection.deliver(b"2")]
    consumer.turn(1.0)
    consumer.turn(1.0)
    connection.turns = [lambda: lose(connection, channel)]
    with pytest.raises(ConnectionLost, match="cannot read queue 'q': cancelled"):
        consumer.turn(1e9)


def test_refused_consumer_and_closed_channel_are_queue_refused_by_cause(connection):
    connection.refuses = {"q": refusal(404, "NOT_FOUND - no queue 'q'")}
    with pytest.raises(QueueNotFound, match=r"cannot read queue 'q': .*404 NOT_FOUND.* Declare it first"):
        ExactConsumer(connection, "q", 1).turn(1.0)
    connection.refuses = {}
    consumer = ExactConsumer(connection, "q", 1)

    def close():
        closed = refusal(406, "PRECONDITION_FAILED - delivery acknowledgement timed out")
        connection.channels[-1].lost, connection.channels[-1].closed = str(closed), (406, closed.reply_text)

    connection.turns = [close]
    with pytest.raises(QueueRefused, match=r"cannot read queue 'q': .* acknowledgement timed out"):
        consumer.turn(1e9)
