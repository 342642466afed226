from __future__ import annotations

import sys

import pika
import pytest

from fakeamqp import Broker


@pytest.fixture
def broker():
    with Broker() as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            for queue in ("orders", "refunds"):
                channel.queue_declare(queue, durable=True)
        yield broker


@pytest.fixture(autouse=True)
def no_idle_connections():
    """Executors keep connections for their next task, and these tests are the executors."""
    yield
    if pool := sys.modules.get("fakeamqp.spark.wire.pool"):
        pool.close_idle()


@pytest.fixture
def query(broker, tmp_path):
    from compat_tests.unit.spark.micro_batches import Query

    queries = []

    def make(**options):
        if options.get("ackMode", "spool") == "spool":
            # An interval that never passes: only what Spark asks for is stored.
            options = {"spoolDir": tmp_path / "spool", "spoolFlushInterval": "1h", **options}
        queries.append(Query(broker, **{"queue": "orders", **options}))
        return queries[-1]

    yield make
    for each in queries:
        each.stop()
