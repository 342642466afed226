"""How a query ends: as Spark ends it, as a crash does, and as the broker does."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pika
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import Query, publish, values
from fakeamqp import Broker

SOURCE = """
import sys
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue.reader import QueueStreamReader

given = dict(pair.split("=", 1) for pair in sys.argv[1:])
options = read_options(given, streaming=True)
reader = QueueStreamReader(options, chosen_columns(options))
try:
    print(reader.latestOffset(), flush=True)
    for count in sys.stdin:
        while not reader._query().consumer.wait_for_more(int(count) - 1, timeout=60):
            pass
        print(count, end="", flush=True)
finally:
    reader.stop()
"""


@pytest.fixture
def source(broker, tmp_path):
    """A process such as Spark has one for the source of each query."""
    options = {
        "amqp.url": broker.url,
        "queue": "orders",
        "spoolDir": str(tmp_path / "spool"),
        "spoolFlushInterval": "1h",
    }
    given = [f"{key}={value}" for key, value in options.items()]
    process = subprocess.Popen(
        [sys.executable, "-c", SOURCE, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_sigterm_stores_and_acknowledges_delivered_messages(broker, query, source):
    publish(broker, *range(10))
    source.stdin.write(b"10\n")
    source.stdin.flush()
    assert source.stdout.readline() == b"10\n"  # It has what the broker has sent.
    source.send_signal(signal.SIGTERM)
    source.send_signal(signal.SIGTERM)
    assert source.wait() == 128 + signal.SIGTERM
    stored = query().start()
    left = broker.queue("orders").ready
    assert sorted(values(stored.all())) == list(range(10))
    assert left == 0


def test_sigkill_releases_the_spool(broker, query, source):
    publish(broker, *range(10))
    source.kill()
    assert sorted(values(query().start().all())) == list(range(10))


def test_query_waits_for_ending_query_on_same_spool(broker, query, source):
    begun = []
    threading.Timer(0.2, lambda: (begun.append(True), source.send_signal(signal.SIGTERM))).start()
    query().start()
    assert begun


def test_message_held_longer_than_consumer_timeout_is_read_by_new_consumer(tmp_path):
    with Broker(clock="virtual", personality="rabbitmq-4.2") as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("orders")
        folder = tmp_path / "spool"
        job = Query(broker, queue="orders", spoolDir=folder, spoolFlushInterval="1h", prefetch=10).start()
        job.batch()
        publish(broker, 1)
        broker.queue("orders").wait_for(unacked=1)
        first = broker.consumers[0].tag
        # Longer than RabbitMQ waits for an acknowledgement.
        broker.clock.advance(3600)
        assert values(job.all()) == [1]
        assert broker.consumers[0].tag != first
        job.stop()
