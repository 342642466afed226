"""The acknowledgement modes: what they promise, and what they do not."""

from __future__ import annotations

import pytest

from compat_tests.unit.spark.micro_batches import MOMENTS, Died, publish, values
from fakeamqp.spark.queue.channel import ConsumingChannel
from fakeamqp.spark.queue.store import Store

each_mode = pytest.mark.parametrize("mode", ["spool", "commit", "none"])
each_unspooled = pytest.mark.parametrize("mode", ["commit", "none"])


def check_guarantee(mode, seen, count):
    """What a mode without a spool promises of so many messages."""
    if mode == "commit":
        assert set(seen) == set(range(count))
    else:
        assert len(set(seen)) == len(seen)
        assert set(seen) <= set(range(count))


@each_mode
def test_batch_reads_message_published_before_batch(broker, query, mode):
    job = query(ackMode=mode).start()
    for number in range(30):
        publish(broker, number)
        assert values(job.batch()) == [number]
    assert job.batch() == []


@each_mode
def test_prefetch_smaller_than_batch_loses_no_message(broker, query, mode):
    publish(broker, *range(50))
    job = query(ackMode=mode, prefetch=4, maxMessagesPerTrigger=20).start()
    assert sorted(values(job.all())) == list(range(50))


@each_unspooled
def test_available_now_of_unspooled_mode_reads_only_messages_present_at_start(broker, query, mode):
    publish(broker, *range(25))
    job = query(ackMode=mode, maxMessagesPerTrigger=10).start(available_now=True)
    publish(broker, *range(100, 110))
    assert values(job.all()) == list(range(25))


@each_unspooled
def test_lost_connection_is_opened_again_and_ack_mode_keeps_its_guarantee(broker, query, mode):
    publish(broker, *range(20))
    job = query(ackMode=mode, maxMessagesPerTrigger=5, prefetch=10).start()
    job.batch()
    for connection in broker.connections:
        connection.close()
    check_guarantee(mode, values(job.all()), 20)


@each_unspooled
def test_rows_that_go_with_their_channel_while_a_batch_is_planned(broker, query, mode, monkeypatch):
    """No batch would be planned, or one of rows that are gone, and a query with availableNow would end."""
    publish(broker, *range(20))
    job = query(ackMode=mode, maxMessagesPerTrigger=5, prefetch=10).start()
    job.batch()
    store, hand_out = job.reader._running.store, Store.hand_out
    broker.wait_for(lambda: store.next >= 10)

    def lose_rows_before(self, *arguments):
        monkeypatch.undo()
        self.new_channel()
        for connection in broker.connections:
            connection.close()
        return hand_out(self, *arguments)

    monkeypatch.setattr(Store, "hand_out", lose_rows_before)
    assert len(job.batch()) > 0


def test_commit_mode_acknowledges_batch_when_next_batch_starts(broker, query):
    publish(broker, *range(10))
    job = query(ackMode="commit", maxMessagesPerTrigger=6).start()
    job.batch()
    assert broker.queue("orders").unacked == 10
    job.batch()
    broker.queue("orders").wait_for(ready=0, unacked=4)
    job.stop()
    broker.queue("orders").wait_for(ready=4, unacked=0)


@pytest.mark.parametrize("moment", MOMENTS)
@each_unspooled
def test_query_that_dies_loses_no_message_in_commit_mode_and_repeats_none_at_most_once(
    broker, query, mode, moment
):
    publish(broker, *range(30))
    job = query(ackMode=mode, maxMessagesPerTrigger=10, **({"prefetch": 5} if mode == "none" else {})).start()
    job.batch()
    with pytest.raises(Died):
        job.batch(die=moment)
    job.planned.clear()  # A batch that is repeated is empty: it promises no more.
    check_guarantee(mode, values(job.start().all()), 30)


def test_unknown_batch_repeated_in_commit_mode_is_empty_and_no_message_is_lost(broker, query):
    publish(broker, *range(10))
    job = query(ackMode="commit", maxMessagesPerTrigger=4).start()
    with pytest.raises(Died):
        job.batch(die="logged")
    job.start()
    assert job.sink[0] == []
    assert values(job.all()) == list(range(10))


def test_at_most_once_mode_acknowledges_messages_before_batch_is_processed(broker, query):
    publish(broker, *range(10))
    job = query(ackMode="none").start()
    with pytest.raises(Died):
        job.batch(die="asked")
    assert (broker.queue("orders").ready, broker.queue("orders").unacked) == (0, 0)


def test_at_most_once_mode_takes_at_most_prefetch_messages_while_acks_are_lost(broker, query):
    publish(broker, *range(10))
    with broker.faults.on("basic.ack").drop():
        job = query(ackMode="none", prefetch=4).start()
        job.batch()
        assert broker.queue("orders").ready == 6


def test_at_most_once_mode_reads_each_message_once_when_ack_is_lost_with_connection(broker, query):
    publish(broker, *range(4))
    job = query(ackMode="none").start()
    # The acknowledgement is lost on its way, and the connection before the broker has answered anything else.
    with broker.faults.on("basic.ack").disconnect().once():
        assert values(job.all()) == list(range(4))
    assert (broker.queue("orders").ready, broker.queue("orders").unacked) == (0, 0)


def test_rows_acknowledged_after_status_request_wait_for_next_batch(broker, query, monkeypatch):
    """The answer says nothing about them: they would be in two batches if the connection were lost."""
    job = query(ackMode="none").start()
    publish(broker, 1, 2)
    settle = ConsumingChannel._settle

    def settle_while_more_is_stored(self):
        qos = self._channel.qos

        def qos_and_store_more(*arguments):
            qos(*arguments)
            publish(broker, 3)
            while not self._buffer:
                self._connection.turn(0.1)
            self.flush()

        monkeypatch.undo()
        self._channel.qos = qos_and_store_more
        settle(self)
        self._channel.qos = qos

    monkeypatch.setattr(ConsumingChannel, "_settle", settle_while_more_is_stored)
    assert values(job.batch()) == [1, 2]
    assert values(job.batch()) == [3]
