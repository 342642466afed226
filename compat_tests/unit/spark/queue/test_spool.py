"""What a query by way of a spool reads, how much at a time, and how it travels."""

from __future__ import annotations

import json
import os
import pickle

import pika
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import ReadAllAvailable, publish, values
from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue.reader import QueueStreamReader
from fakeamqp.spark.rows.columns import chosen_columns

# --- the barrier and batches ------------------------------------------------------------------------------


def test_offset_column_is_row_number_in_spool(broker, query):
    publish(broker, 1, 2, 3)
    job = query(maxMessagesPerTrigger=2).start()
    assert [(row["offset"], int(row["value"])) for row in job.all()] == [(0, 1), (1, 2), (2, 3)]
    assert json.loads(job.end)["next"] == 3


def test_messages_published_between_batches_are_spooled_without_request(broker, query):
    job = query(spoolFlushInterval="1ms").start()
    job.batch()
    publish(broker, *range(10))
    broker.queue("orders").wait_for(ready=0, unacked=0)
    assert values(job.batch()) == list(range(10))


# --- AvailableNow and old versions of Spark -----------------------------------------------------------------


def test_available_now_reads_only_messages_present_at_start(broker, query):
    publish(broker, *range(25))
    job = query(maxMessagesPerTrigger=10).start(available_now=True)
    publish(broker, *range(100, 130))
    assert values(job.all()) == list(range(25))
    job.stop()
    broker.queue("orders").wait_for(ready=30, unacked=0)
    assert values(job.start(available_now=True).all()) == [*range(25), *range(100, 130)]


@pytest.mark.parametrize("limit", [None, ReadAllAvailable()], ids=["rows", "all"])
def test_available_now_logs_ready_messages_not_delivered_to_query(broker, query, caplog, limit):
    """Another app is the single active consumer."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("alone", durable=True, arguments={"x-single-active-consumer": True})
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume("alone", lambda *_: None)
        publish(broker, *range(5), queue="alone")
        job = query(queue="alone", idleTimeout="10ms").start(available_now=True)
        assert job.batch(limit=limit) == []
    assert "'alone': 4 messages are ready, and the broker delivers none of them" in caplog.text


def test_first_batch_without_limit_has_all_messages(broker, query):
    publish(broker, *range(25))
    job = query(modern=False, maxMessagesPerTrigger=10, prefetch=5, spoolMaxBytes=1).start()
    assert len(job.batch()) == 25
    publish(broker, *range(25, 40))
    assert [len(job.batch()) > 0, len(job.all())] == [True, 40]


def test_without_a_limit_later_batches_honour_the_option(broker, query):
    job = query(modern=False, maxMessagesPerTrigger=10).start()
    assert job.batch() == []
    publish(broker, *range(25))
    assert [len(job.batch()) for _ in range(4)] == [10, 10, 5, 0]


# --- columns ----------------------------------------------------------------------------------------------


def test_rows_have_only_chosen_columns(broker, query):
    publish(broker, 1)
    rows = query(columns="value,routing_key").start().all()
    assert rows == [{"value": b"1", "routing_key": "orders"}]


def test_unstored_column_is_refused_or_null_if_fail_on_data_loss_is_false(broker, query):
    publish(broker, *range(4))
    job = query(columns="value", maxMessagesPerTrigger=2).start()
    job.batch()
    job.stop()
    job.options["columns"] = "value,routing_key"
    with pytest.raises(SpoolError, match="no column 'routing_key'"):
        job.start().batch()
    job.kill()
    job.options["failOnDataLoss"] = "false"
    assert [row.get("routing_key") for row in job.start().all()] == [None] * 4


@pytest.mark.parametrize("transport", ["inline", "file"])
def test_a_large_batch_is_cut_into_tasks(broker, query, transport):
    publish(broker, *range(12_000))
    job = query(transport=transport, minPartitions=3, spoolFlushRows=5000, maxMessagesPerTrigger=20_000)
    job.start()
    broker.queue("orders").wait_for(ready=0)
    assert values(job.all()) == list(range(12_000))
    parts = job.reader.partitions(*map(json.loads, job.offsets[0]))
    assert len(parts) >= 3
    if transport == "inline":
        assert max(len(pickle.dumps(part)) for part in parts) < 1000 << 10


# --- readers that only plan, and two queries --------------------------------------------------------------


def test_unused_reader_creates_no_folder_or_connection(broker, tmp_path):
    folder = tmp_path / "never"
    options = read_options(
        {"amqp.url": broker.url, "queue": "orders", "spoolDir": str(folder)}, streaming=True
    )
    reader = QueueStreamReader(options, chosen_columns(options))
    assert len(pickle.dumps(reader)) < 4096
    reader.stop()
    assert not folder.exists() and not broker.connections


def test_second_query_on_same_spool_is_refused(query, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.queue.folder.FolderLock.__init__.__defaults__", (0.0,))
    query().start()
    with pytest.raises(SpoolError, match=f"another source of this one .process {os.getpid()} on") as caught:
        query().start()
    assert "in use by another query, or" in str(caught.value)
    assert "as in a self-join, write them to a table first" in str(caught.value)


def test_many_small_segments_are_read_as_one_record_batch(broker, query):
    publish(broker, *range(60))
    job = query(spoolFlushRows=2).start()
    job.batch()
    (part,) = job.reader.partitions(*map(json.loads, job.offsets[0]))
    assert [batch.num_rows for batch in job.reader.read(part)] == [60]
