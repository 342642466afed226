"""What was acknowledged is on the disk, and a range of offsets stays what it is, whatever goes wrong."""

from __future__ import annotations

import logging
import os
import stat

import pytest

from compat_tests.unit.spark.micro_batches import MOMENTS, Died, publish, values
from fakeamqp.spark.errors import (
    AccessRefused,
    BrokerUnreachable,
    ChannelClosed,
    DataLoss,
    QueueNotFound,
    SpoolError,
)

# --- restarts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_query_continues_without_message_loss_or_duplicates(broker, query, moment, modern):
    publish(broker, *range(30))
    job = query(modern=modern, maxMessagesPerTrigger=10).start()
    job.batch()
    publish(broker, *range(30, 50))
    with pytest.raises(Died):
        job.batch(die=moment)
        job.batch(die=moment)
    publish(broker, *range(50, 60))
    assert values(job.start().all()) == list(range(60))


def test_query_with_new_checkpoint_continues_after_committed_rows_of_spool(broker, query):
    publish(broker, *range(10))
    first = query(maxMessagesPerTrigger=4).start()
    first.batch()
    first.batch()
    first.stop()
    assert values(query().start().all()) == list(range(4, 10))


def test_a_checkpoint_of_another_spool_is_refused(broker, query, tmp_path):
    publish(broker, *range(10))
    job = query().start()
    job.batch()
    job.stop()
    os.rename(tmp_path / "spool", tmp_path / "moved")
    publish(broker, 10)
    with pytest.raises(DataLoss, match="belongs to spool"):
        job.start().batch()
    job.stop()
    job.options["failOnDataLoss"] = "false"
    assert values(job.start().all()) == list(range(11))


# --- messages that come again -----------------------------------------------------------------------------


def crash_between_disk_and_ack(broker, job):
    """The rows are on the disk, and the broker never hears of it."""
    with broker.faults.on("basic.ack").drop():
        job.batch()
        job.kill()
        broker.queue("orders").wait_for(ready=(1, 1000), unacked=0)


def test_redelivered_messages_already_in_spool_are_dropped(broker, query, caplog):
    publish(broker, *range(10))
    job = query().start()
    crash_between_disk_and_ack(broker, job)
    publish(broker, *range(10, 15))
    with caplog.at_level(logging.WARNING, "fakeamqp.spark"):
        assert values(job.start().all()) == list(range(15))
    broker.queue("orders").wait_for(ready=0, unacked=0)
    assert caplog.text.count("dropped") == 1
    assert "dropped redelivered messages that the spool has already: 10 of queue 'orders'" in caplog.text
    assert "By option dedupe=content" in caplog.text
    assert job.reader.reportLatestOffset()["metrics"]["dropped"] == 10


@pytest.mark.parametrize(
    ("options", "properties"),
    [({"dedupe": "none"}, {"message_id": "m"}), ({}, {})],
    ids=["no dedupe", "no id"],
)
def test_message_redelivered_after_crash_is_read_twice_without_dedupe_or_message_id(
    broker, query, options, properties
):
    broker.publish(b"1", routing_key="orders", **properties)
    job = query(**options).start()
    crash_between_disk_and_ack(broker, job)
    assert values(job.start().all()) == [1, 1]


# --- connections ------------------------------------------------------------------------------------------


def closing(method, **when):
    """Have the broker close the channel of the next one of these methods."""

    def disturb(broker):
        rule = broker.faults.on(method, direction="sent" if when else "received")
        return rule.close_channel(406, "PRECONDITION_FAILED", **when).once()

    return disturb


DISTURBANCES = {
    "lost connections": lambda broker: [connection.close() for connection in broker.connections],
    "a cut within a delivery": lambda broker: (
        broker.faults.on("basic.deliver").cut(after="header").on_call(3)
    ),
    "a channel closed on an ack": closing("basic.ack"),
    "a channel closed behind the count": closing("queue.declare-ok", when="after"),
    "a channel closed behind the barrier": closing("basic.qos-ok", when="after"),
    "a cancelled consumer": lambda broker: broker.queue("orders").cancel_consumers(),
    "a restart of the broker": lambda broker: broker.restart(),
}


@pytest.mark.parametrize("disturb", DISTURBANCES.values(), ids=DISTURBANCES)
def test_disturbed_query_consumes_again_and_loses_no_message(broker, query, disturb):
    publish(broker, *range(10), delivery_mode=2)
    job = query(queue="orders,refunds", maxMessagesPerTrigger=4, prefetch=4).start()
    job.batch()
    rule = disturb(broker)
    publish(broker, *range(10, 20))
    assert sorted(values(job.all())) == list(range(20))
    assert getattr(rule, "hits", 1) == 1


def test_unreachable_broker_fails_query_without_message_loss(broker, query):
    publish(broker, *range(10), delivery_mode=2)
    job = query(maxMessagesPerTrigger=4, reconnectTimeout="100ms").start()
    job.batch()
    broker.stop()
    with pytest.raises(BrokerUnreachable, match="tried again for"):
        job.all()
    job.stop()
    broker.start()
    publish(broker, *range(10, 12), delivery_mode=2)
    assert values(job.start().all()) == list(range(12))


@pytest.mark.parametrize(
    ("disturb", "kind", "said"),
    [
        (
            lambda broker: broker.queue("orders").delete(),
            QueueNotFound,
            r"cannot consume from queue 'orders': .*404 .*Declare it first",
        ),
        (
            lambda broker: broker.faults.on("queue.declare").close_channel(406, "never"),
            ChannelClosed,
            "never",
        ),
    ],
    ids=["deleted", "closed at every declare"],
)
def test_queue_that_stays_unusable_fails_query_with_its_cause(broker, query, disturb, kind, said):
    job = query(reconnectTimeout="100ms").start()
    job.batch()
    disturb(broker)
    with pytest.raises(kind, match=rf"{said}.*tried again for [0-9.]+ s"):
        job.batch()


def test_missing_queue_fails_query_at_once_with_queue_not_found(query):
    said = r"cannot consume from queue 'nothing': .*404 .*the source declares no queues"
    with pytest.raises(QueueNotFound, match=said):
        query(queue="nothing", reconnectTimeout="1h").start().batch()


def test_queue_without_read_permission_fails_query_at_once_with_access_refused(broker, query):
    only = {"user": "guest", "vhost": "/", "configure": "", "write": "", "read": "refunds"}
    broker.load_definitions({"permissions": [only]})
    with pytest.raises(AccessRefused, match=r"cannot consume from queue 'orders': .*403 .*permission 'read'"):
        query(reconnectTimeout="1h").start().batch()


def test_connection_lost_during_first_basic_consume_is_opened_again(broker, query):
    publish(broker, 1)
    with broker.faults.on("basic.consume").disconnect().once():
        assert values(query().start().all()) == [1]


def test_a_refused_login_fails_at_once(broker, query):
    with pytest.raises(BrokerUnreachable, match="guest"):
        query(**{"amqp.password": "wrong", "reconnectTimeout": "1h"}).start().batch()


def test_planned_batch_is_read_from_spool_without_broker(broker, query):
    publish(broker, *range(4))
    job = query(reconnectTimeout="1h").start()
    with pytest.raises(Died):
        job.batch(die="logged")
    broker.stop()
    assert values(job.start().seen) == list(range(4))


# --- room -------------------------------------------------------------------------------------------------


def test_full_disk_fails_batch_and_leaves_message_in_queue(broker, query, monkeypatch):
    publish(broker, 1)
    job = query().start()

    def full(_file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SpoolError, match=r"No space left on device; .*still in the queue"):
        job.batch()
    monkeypatch.undo()
    job.stop()
    broker.queue("orders").wait_for(ready=1, unacked=0)
    assert values(job.start().all()) == [1]


def test_spool_file_is_synced_before_rename_and_folder_after_rename(broker, query, monkeypatch):
    steps, fsync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def named(old, new):
        steps.append("name")
        replace(old, new)

    publish(broker, 1)
    job = query().start()
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", named)
    assert values(job.all()) == [1]
    assert steps and steps == ["file", "name", "folder"] * (len(steps) // 3)


def test_spool_without_sync_calls_no_fsync(broker, query, monkeypatch):
    monkeypatch.delattr(os, "fsync")
    publish(broker, 1)
    assert values(query(spoolSync="none").start().all()) == [1]
