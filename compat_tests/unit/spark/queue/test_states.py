"""Whatever happens in whatever order: nothing is lost, and nothing reaches an idempotent sink twice."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from contextlib import ExitStack

import pika
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import scaled
from compat_tests.unit.spark.micro_batches import MOMENTS, Died, Query, publish, values
from fakeamqp import Broker

numbers = itertools.count()


class Spooling(RuleBasedStateMachine):
    """A query on a queue, publishers, another consumer, and accidents."""

    def __init__(self):
        super().__init__()
        self.stack = ExitStack()
        self.broker = self.stack.enter_context(Broker(trace=0, history=0))
        self.folder = tempfile.mkdtemp()
        self.stack.callback(shutil.rmtree, self.folder)
        self.other = pika.BlockingConnection(pika.URLParameters(self.broker.url))
        self.stack.callback(self.other.close)
        self.channel = self.other.channel()
        for queue in ("orders", "refunds"):
            self.channel.queue_declare(queue, durable=True)
        self.published = set()
        self.taken = set()
        self.alive = False

    @initialize(
        modern=st.booleans(),
        most=st.integers(1, 5),
        window=st.integers(1, 8),
        rows=st.integers(1, 4),
        room=st.sampled_from(["1", "4k", "1g"]),
        transport=st.sampled_from(["inline", "file"]),
        interval=st.sampled_from(["1ms", "1h"]),
    )
    def begin(self, modern, most, window, rows, room, transport, interval):
        self.query = Query(
            self.broker,
            modern=modern,
            queue="orders,refunds",
            spoolDir=self.folder,
            idleTimeout="10ms",
            maxMessagesPerTrigger=most,
            prefetch=window,
            spoolFlushRows=rows,
            spoolMaxBytes=room,
            spoolFlushInterval=interval,
            transport=transport,
            columns="value,offset",
        )

    @rule(queue=st.sampled_from(["orders", "refunds"]), count=st.integers(1, 9))
    def messages_are_published(self, queue, count):
        for number in itertools.islice(numbers, count):
            publish(self.broker, number, queue=queue, delivery_mode=2)
            self.published.add(number)

    @precondition(lambda self: not self.alive)
    @rule(available_now=st.booleans())
    def the_query_starts(self, available_now):
        self.query.start(available_now=available_now and self.query.modern)
        self.alive = True

    @precondition(lambda self: self.alive)
    @rule(die=st.sampled_from([None, None, None, *MOMENTS]))
    def a_batch_runs(self, die):
        try:
            self.query.batch(die=die)
        except Died:
            self.alive = False

    @precondition(lambda self: self.alive)
    @rule()
    def the_query_is_stopped(self):
        self.query.stop()
        self.alive = False

    @precondition(lambda self: self.alive)
    @rule()
    def the_query_is_killed(self):
        self.query.kill()
        self.alive = False

    @precondition(lambda self: self.alive)
    @rule(batch=st.booleans())
    def it_dies_between_disk_and_acknowledgement(self, batch):
        with self.broker.faults.on("basic.ack", connection="spark").drop().optional():
            if batch:
                self.query.batch()
            self.query.kill()
        self.alive = False

    @rule()
    def connections_are_lost(self):
        for connection in self.broker.connections:
            # A query whose first connection cannot be opened fails, and is not tried again.
            if connection.connection_name == "spark" and connection.channels:
                connection.close()

    @rule()
    def consumers_are_cancelled(self):
        self.broker.queue("orders").cancel_consumers()

    @rule(count=st.integers(1, 3))
    def another_consumer_takes_some(self, count):
        for _ in range(count):
            got, _, body = self.channel.basic_get("orders")
            if got is not None:
                self.channel.basic_ack(got.delivery_tag)
                self.taken.add(int(body))

    @rule()
    def another_consumer_takes_one_and_gives_it_back(self):
        got, _, _ = self.channel.basic_get("refunds")
        if got is not None:
            self.channel.basic_reject(got.delivery_tag, requeue=True)

    def teardown(self):
        try:
            if hasattr(self, "query"):
                if self.alive:
                    self.query.stop()
                self.query.start()
                seen = values(self.query.all())
                assert len(set(seen)) == len(seen), "a message reached the sink twice"
                assert set(seen) | self.taken == self.published, "a message is lost"
                places = [row["offset"] for row in self.query.seen]
                assert places == list(range(len(seen))), "the rows are not in the order of the spool"
                self.query.stop()
        finally:
            self.stack.close()


TestSpooling = Spooling.TestCase
TestSpooling.settings = settings(
    max_examples=scaled(20), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
