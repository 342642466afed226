"""Which redelivered messages a spool drops: those that it stored over an earlier channel, and no others."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter

import pika
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import scaled
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.micro_batches import Query, values
from compat_tests.unit.spark.wire.played import NO_PROPERTIES, Connection, encoded
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue.channel import ConsumerState, ConsumingChannel
from fakeamqp.spark.queue.spool import Spool
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.rows.record_batches import DeliveredRow


def return_all(broker, count, queue="orders"):
    """Mark the messages of a queue redelivered, as a batch read of it does."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        for _ in range(count):
            channel.basic_get(queue)
        channel.basic_nack(0, multiple=True, requeue=True)


@pytest.mark.parametrize("lost", [False, True])
def test_different_messages_of_same_id_are_all_read_after_batch_read_returned_them(broker, query, lost):
    for number in range(3000):
        broker.publish(str(number), routing_key="orders", message_id=f"m{number % 400}")
    return_all(broker, 3000)
    job = query(maxMessagesPerTrigger=500, prefetch=1000, spoolFlushRows=100).start()
    if lost:
        job.batch()
        for connection in broker.connections:
            connection.close()
    assert values(job.all()) == list(range(3000))


def test_equal_messages_are_all_read_after_batch_read_returned_them(broker, query):
    for _ in range(10):
        broker.publish("7", routing_key="orders", message_id="m")
    return_all(broker, 10)
    job = query(maxMessagesPerTrigger=3).start()
    assert values(job.all()) == [7] * 10
    assert job.reader.reportLatestOffset()["metrics"]["dropped"] == 0


def test_message_id_mode_drops_other_message_of_same_id_from_earlier_channel(broker, tmp_path):
    job = Query(broker, queue="orders", spoolDir=tmp_path / "spool", dedupe="message_id").start()
    broker.publish("1", routing_key="orders", message_id="m")
    assert values(job.all()) == [1]
    job.stop()
    for body in "23":
        broker.publish(body, routing_key="orders", message_id="m")
    return_all(broker, 2)
    assert values(job.start().all()) == [1, 3]
    assert job.reader.reportLatestOffset()["metrics"]["dropped"] == 1
    job.stop()


# --- the spool --------------------------------------------------------------------------------------------


def row(body, queue="q", **properties):
    return DeliveredRow(1, False, b"\x00\x01q", encoded(**properties), body, queue, 0, 0)


@pytest.fixture
def spool(tmp_path):
    """A function that opens a spool again and again."""
    stores = []

    def make(**more):
        for each in stores:
            each.close()
        found = read_options(
            {"amqp.url": "amqp://h", "queue": "q", "spoolDir": str(tmp_path / "spool"), **more},
            streaming=True,
        )
        stores.append(Spool(found, chosen_columns(found)))
        stores[-1].new_channel()
        return stores[-1]

    yield make
    for each in stores:
        each.close()


def test_row_of_earlier_channel_stands_for_one_redelivery_of_the_present_one(spool):
    store = spool()
    store.add([row(b"1", message_id="a"), row(b"1", message_id="a"), row(b"2", message_id="b")])
    a, b = encoded(message_id="a"), encoded(message_id="b")
    assert not store.repeats("q", a, b"1"), "the channel does not redeliver what it has delivered"
    store.new_channel()
    store.add([row(b"2", message_id="b")])
    found = [store.repeats("q", *each) for each in [(a, b"1"), (b, b"2"), (a, b"1"), (a, b"1"), (b, b"2")]]
    assert found == [True, True, True, False, False]
    store.new_channel()
    assert [store.repeats("q", b, b"2") for _ in range(3)] == [True, True, False]
    assert spool().repeats("q", a, b"1"), "after a restart"


def test_messages_that_differ_or_have_no_id_are_not_repetitions(spool):
    def filled(dedupe):
        store = spool(columns="offset", dedupe=dedupe)
        store.add([row(b"1", message_id="a", app_id="x"), row(b"2"), row(b"3", message_id="", queue="r")])
        store.new_channel()
        return store

    same = {"message_id": "a", "app_id": "x"}
    counted = {**same, "headers": {"x-delivery-count": 2, "x-acquired-count": 3}}
    with cases() as case:
        for queue, body, properties, by_content, by_id in [
            ("q", b"1", same, True, True),
            ("q", b"1", counted, True, True),
            ("q", b"9", same, False, True),
            ("q", b"1", {"message_id": "a"}, False, True),
            ("q", b"1", {**same, "headers": {"k": 1}}, False, True),
            ("q", b"1", {**same, "message_id": "b"}, False, False),
            ("r", b"1", same, False, False),
            ("q", b"2", {}, False, False),
            ("r", b"3", {"message_id": "y"}, False, False),
            ("r", b"3", {"message_id": ""}, False, False),
        ]:
            for dedupe, expected in (("content", by_content), ("message_id", by_id), ("none", False)):
                with case(queue, body, properties, dedupe):
                    assert filled(dedupe).repeats(queue, encoded(**properties), body) == expected
    store = filled("content")
    for malformed in (b"", b"\x00", NO_PROPERTIES, b"\x00\x80"):
        assert not store.repeats("q", malformed, b"")


def test_malformed_property_list_is_stored(spool):
    store = spool()
    store.add(
        [row(b"1")._replace(properties=malformed) for malformed in (b"", b"\x00\x80", b"\x00\x80\x09m")]
    )
    assert store.next == 3


def test_segments_have_digests_only_of_messages_with_id_and_only_by_content(spool):
    for dedupe, names in [
        ("content", ["offset", "queue", "_digest"]),
        ("message_id", ["offset", "queue", "message_id"]),
        ("none", ["offset"]),
    ]:
        store = spool(columns="offset", dedupe=dedupe)
        store.add([row(b"1", message_id="a"), row(b"2")])
        stored = store._blocks[-1].load()
        assert stored.schema.names == names
        if dedupe == "content":
            digest, nothing = stored.column("_digest").to_pylist()
            assert (len(digest), nothing) == (12, None)


def test_segments_without_digests_are_compared_by_message_id_only(spool):
    """Earlier versions wrote such segments."""
    store = spool(dedupe="message_id")
    store.add([row(b"1", message_id="a")])
    a = encoded(message_id="a")
    assert not spool(dedupe="content").repeats("q", a, b"1")
    assert spool(dedupe="message_id").repeats("q", a, b"1")


def test_rows_stand_for_redeliveries_as_far_back_as_segments_are_kept(spool):
    store = spool(columns="value", prefetch="2")
    ids = [encoded(message_id=name) for name in "abcdefgh"]
    for number, name in enumerate("abcdefgh"):
        store.add([row(b"%d" % number, message_id=name)])
    store.new_channel()
    assert store.repeats("q", ids[0], b"0")
    store.commit(8)  # Of four rows, twice the prefetch, messages may come again.
    assert [block.first for block in store._blocks] == [4, 5, 6, 7]
    store.new_channel()
    found = [store.repeats("q", each, b"%d" % number) for number, each in enumerate(ids)]
    assert found == [False] * 4 + [True] * 4
    for number in range(8, 12):
        store.add([row(b"%d" % number, message_id="x")])
    store.commit(12)
    assert store._repetitions._rows is None, "nothing is left of what it counts"
    assert not store.repeats("q", ids[7], b"7")


# --- any sequence of events -------------------------------------------------------------------------------


class Model:
    """A queue, and a consumer with a spool, whose channel, process or acknowledgements may be lost."""

    def __init__(self, folder, dedupe):
        self.options = read_options(
            {
                "amqp.url": "amqp://h",
                "queue": "q",
                "spoolDir": folder,
                "dedupe": dedupe,
                "spoolSync": "none",
                "columns": "offset",
                "prefetch": "1000",
            },
            streaming=True,
        )
        self.messages = []  # Identity by number.
        self.queue = []  # The ready messages, as (number, redelivered).
        self.delivered = {}  # Numbers by delivery tag, without an acknowledgement that the broker has got.
        self.rows = Counter()  # By number.
        self.channel_of_row = {}  # Of the first one, by number.
        self.dropped = []
        self.channels = 0
        self.store = self.channel = None
        self.start()

    def start(self):
        """A new process."""
        if self.store is not None:
            self.store.close()
        self.store = Spool(self.options, chosen_columns(self.options))
        self.add, self.store.add = self.store.add, self.stores
        self.state = ConsumerState()
        self.consume()

    def stores(self, rows):
        self.add(rows)
        for each in rows:
            number = self.numbers[each.tag]
            self.rows[number] += 1
            self.channel_of_row.setdefault(number, self.channels)

    def consume(self):
        self.numbers = {}
        self.channels += 1
        self.connection = Connection()
        self.channel = ConsumingChannel(self.connection, self.options, self.store, self.state)

    def publish(self, message_id, content):
        self.queue.append((len(self.messages), False))
        self.messages.append((message_id, content))

    def batch_read(self):
        self.queue = [(number, True) for number, _ in self.queue]

    def deliver(self, count):
        for number, redelivered in self.queue[:count]:
            message_id, content = self.messages[number]
            tag = self.connection.channels[0].tag + 1
            self.numbers[tag] = self.delivered[tag] = number
            before = sum(self.state.dropped.values())
            properties = encoded(message_id=message_id) if message_id else NO_PROPERTIES
            self.connection.deliver(content, properties=properties, redelivered=redelivered)
            if sum(self.state.dropped.values()) > before:
                self.dropped.append((self.channels, number, self.channel_of_row.get(number)))
        del self.queue[:count]

    def flush(self):
        self.channel.flush()

    def commit(self, rows):
        self.store.hand_out(0, self.store.committed + rows)
        self.store.commit(self.store.committed + rows)

    def lose(self, acks, process):
        """The broker gets only the first acknowledgements of the channel, and delivers what is left again."""
        sent = [call[2] for call in self.connection.calls if call[1] == "ack"][:acks]
        acked = max(sent, default=0)
        self.queue[:0] = [(number, True) for tag, number in self.delivered.items() if tag > acked]
        self.delivered = {}
        self.start() if process else self.consume()

    def drain(self):
        self.deliver(len(self.queue))
        self.flush()


few = st.integers(0, 4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(["", "a", "b"]), st.sampled_from([b"x", b"y", b"z"])),
        st.tuples(st.just("batch_read")),
        st.tuples(st.just("deliver"), few),
        st.tuples(st.just("flush")),
        st.tuples(st.just("commit"), few),
        st.tuples(st.just("lose"), few, st.booleans()),
    ),
    max_size=40,
)
CRASHED = [("publish", "a", b"x"), ("deliver", 1), ("flush",), ("lose", 0, True)]


def played(events, dedupe):
    folder = tempfile.mkdtemp()
    model = None
    try:
        model = Model(folder, dedupe)
        for name, *arguments in events:
            getattr(model, name)(*arguments)
        model.drain()
        return model
    finally:
        if model is not None:
            model.store.close()
        shutil.rmtree(folder)


@given(steps, st.sampled_from(["content", "message_id", "none"]))
@example(CRASHED, "content")
@example([*CRASHED, ("deliver", 1), ("flush",), ("lose", 0, False), ("deliver", 1)], "content")
@example([("publish", "a", b"x"), *CRASHED, ("deliver", 2)], "content")
@settings(max_examples=scaled(150), deadline=None, suppress_health_check=list(HealthCheck))
def test_messages_of_distinct_content_are_never_lost_and_only_repetitions_are_dropped(events, dedupe):
    """Whatever is lost in between, and whatever ids they share; with `message_id`, ids are distinct, too."""
    published = [index for index, event in enumerate(events) if event[0] == "publish"]
    for number, index in enumerate(published):
        name, message_id, content = events[index]
        if dedupe == "message_id":
            message_id = message_id and f"{message_id}{number}"
        events[index] = name, message_id, content + b"%d" % number
    model = played(events, dedupe)
    assert sorted(model.rows) == list(range(len(published))), "a message is lost"
    for channel, _, stored in model.dropped:
        assert stored is not None and stored < channel, "a message was dropped that is no repetition"
    if dedupe == "none":
        assert not model.dropped
    else:
        twice = [number for number, count in model.rows.items() if count > 1 and model.messages[number][0]]
        assert not twice, "a repetition was stored"


@given(steps, st.sampled_from(["content", "message_id"]))
@settings(max_examples=scaled(150), deadline=None, suppress_health_check=list(HealthCheck))
def test_each_row_of_an_earlier_channel_absorbs_at_most_one_equal_message_per_channel(events, dedupe):
    model = played(events, dedupe)

    def identity(number):
        message_id, content = model.messages[number]
        return message_id if dedupe == "message_id" else (message_id, content)

    for channel in range(1, model.channels + 1):
        rows = Counter(identity(number) for number, at in model.channel_of_row.items() if at < channel)
        dropped = Counter(identity(number) for at, number, _ in model.dropped if at == channel)
        assert not dropped - rows
    assert set(map(identity, model.rows)) == set(map(identity, range(len(model.messages))))
