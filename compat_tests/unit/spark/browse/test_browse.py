"""A batch read of queues: all that is there, in order, and nothing is taken out."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pika
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.micro_batches import publish, table, values
from fakeamqp import Broker
from fakeamqp.spark.browse import BrowseReader, QueuePartition, delivery_limit
from fakeamqp.spark.browse.snapshot import _BorrowedMessages
from fakeamqp.spark.errors import (
    AccessRefused,
    ConnectionLost,
    DeliveryLimit,
    OptionError,
    QueueNotFound,
    SparkError,
)
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.wire.management import QueueDetails

KINDS = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "quorum without limit": {"x-queue-type": "quorum", "x-delivery-limit": -1},
}


@pytest.fixture
def channel(broker):
    """A channel of another client."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        yield connection.channel()


@pytest.fixture
def begun(broker, monkeypatch):
    """A read of 100 messages that keeps 50 of them until Spark has taken them."""
    publish(broker, *range(100))
    monkeypatch.setattr("fakeamqp.spark.wire.exact._LARGEST_WINDOW", 49)
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 50)

    def begin():
        browse = reader(broker)
        batches = browse.read(*browse.partitions())
        assert next(batches).num_rows == 50
        assert broker.queue("orders").ready == 50
        return batches

    return begin


def reader(broker, **options):
    found = read_options({"amqp.url": broker.url, "queue": "orders", "idleTimeout": "50ms", **options})
    return BrowseReader(found, chosen_columns(found))


def rows(broker, **options):
    browse = reader(broker, **options)
    return table(browse, browse.partitions()).to_pylist()


def meanwhile(monkeypatch, happens):
    """Have something happen when the task knows how many messages there are, and has the first one."""
    want_all = _BorrowedMessages.want_all

    def want_all_and_wait(self):
        want_all(self)
        monkeypatch.undo()
        happens()

    monkeypatch.setattr(_BorrowedMessages, "want_all", want_all_and_wait)


def bodies(broker, queue="orders"):
    return [int(message.body) for message in broker.queue(queue).messages]


@pytest.mark.parametrize("arguments", KINDS.values(), ids=KINDS)
def test_all_messages_are_read_in_order_and_stay_in_order(broker, channel, arguments):
    channel.queue_declare("all", durable=True, arguments=arguments)
    publish(broker, *range(300), queue="all")
    for redelivered in (False, True, True):
        found = rows(broker, queue="all")
        assert [(row["offset"], int(row["value"])) for row in found] == [(n, n) for n in range(300)]
        assert {row["redelivered"] for row in found} == {redelivered}
        assert {row["queue"] for row in found} == {"all"}
        assert bodies(broker, "all") == list(range(300))
        assert broker.queue("all").ready == 300


@pytest.mark.parametrize("arguments", KINDS.values(), ids=KINDS)
def test_batch_read_of_more_messages_than_largest_window_is_complete_and_in_order(
    broker, channel, arguments, monkeypatch
):
    monkeypatch.setattr("fakeamqp.spark.wire.exact._LARGEST_WINDOW", 100)
    channel.queue_declare("all", durable=True, arguments=arguments)
    publish(broker, *range(450), queue="all")
    assert values(rows(broker, queue="all")) == list(range(450))
    assert bodies(broker, "all") == list(range(450))
    assert broker.queue("all").ready == 450


def test_a_quorum_queue_gives_more_than_it_gives_a_consumer_without_a_window(broker, channel):
    channel.queue_declare("all", durable=True, arguments=KINDS["quorum"])
    publish(broker, *range(2100), queue="all")
    assert len(rows(broker, queue="all", columns="offset")) == 2100


BEFORE_4_3 = ["3.10", "3.13", "4.0", "4.2"]


@pytest.fixture
def of_version(request):
    """A broker of a version, with the quorum queue `orders` and the classic queue `plain`."""
    with Broker(personality=f"rabbitmq-{request.param}") as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.queue_declare("orders", durable=True, arguments=KINDS["quorum"])
            channel.queue_declare("plain", durable=True)
        publish(broker, 1, 2)
        yield broker, request.param


@pytest.mark.parametrize("of_version", BEFORE_4_3, indirect=True)
def test_batch_read_of_quorum_queue_before_4_3_is_refused_at_planning_unless_allowed(of_version):
    broker, version = of_version
    text = (
        f"a batch read of quorum queue 'orders' is refused: RabbitMQ {version} counts it as a return of all "
        "messages, and drops or dead-letters messages above its delivery limit, if it has one. Consume the "
        "queue with readStream, use RabbitMQ 4.3 or later, where batch reads do not count, set "
        "'managementUrl', .*, or accept the loss with allowDeliveryLimit=true"
    )
    with pytest.raises(DeliveryLimit, match=text):
        reader(broker, queue="plain,orders").partitions()
    assert [message.redelivered for message in broker.queue("orders").messages] == [False, False]
    assert rows(broker, queue="plain") == []
    assert values(rows(broker, allowDeliveryLimit="true")) == [1, 2]


LIMITED = [
    ("3.13", {}, {}, False),
    ("3.13", {"x-delivery-limit": 6}, {}, True),
    ("3.13", {"x-delivery-limit": -1}, {}, True),
    ("3.13", {}, {"delivery-limit": 6}, True),
    ("4.0", {}, {}, True),
    ("4.0", {"x-delivery-limit": -1}, {}, False),
    ("4.0", {"x-delivery-limit": -1}, {"delivery-limit": 6}, True),
    ("4.2", {}, {"delivery-limit": -1}, False),
    ("4.2", {"x-delivery-limit": 0}, {"delivery-limit": -1}, True),
    ("4.3", {"x-delivery-limit": 6}, {}, False),
]


def test_http_api_tells_which_quorum_queues_have_a_delivery_limit():
    with cases() as case:
        for version, arguments, policy, limited in LIMITED:
            definitions = {"queues": [{"name": name, "durable": True} for name in ("orders", "plain", "log")]}
            definitions["queues"][0]["arguments"] = {**KINDS["quorum"], **arguments}
            definitions["queues"][2]["arguments"] = {"x-queue-type": "stream"}
            if policy:
                definitions["policies"] = [{"name": "p", "pattern": "orders", "definition": policy}]
            with (
                case(version, arguments, policy),
                Broker(personality=f"rabbitmq-{version}", management=True, definitions=definitions) as broker,
            ):
                publish(broker, 1, 2)
                asking = {"managementUrl": broker.admin.management_url}
                assert rows(broker, queue="plain", **asking) == []
                with pytest.raises(OptionError, match="'log' is a stream: set option 'stream'"):
                    rows(broker, queue="log", **asking)
                if limited:
                    text = "dead-letters messages above its delivery limit. .* do not count, or accept"
                    with pytest.raises(DeliveryLimit, match=text):
                        rows(broker, **asking)
                    assert values(rows(broker, allowDeliveryLimit="true", **asking)) == [1, 2]
                else:
                    for _ in range(25):
                        assert values(rows(broker, **asking)) == [1, 2]


def test_delivery_limit_of_policies_that_are_not_known_yet_counts_as_one():
    """RabbitMQ 4.0 tells none of a queue without statistics."""
    details = QueueDetails("quorum", {"x-delivery-limit": -1}, None)
    assert delivery_limit._has_limit(details, (4, 0))


@pytest.mark.parametrize("of_version", [*BEFORE_4_3, "4.3"], indirect=True)
def test_allowed_batch_reads_above_delivery_limit_drop_messages_where_they_count(of_version):
    broker, version = of_version
    limit = 20 if version in ("4.0", "4.2") else None
    for _ in range((limit or 30) + 1):
        assert values(rows(broker, allowDeliveryLimit="true")) == [1, 2]
    assert values(rows(broker, allowDeliveryLimit="true")) == ([] if limit else [1, 2])


@pytest.mark.parametrize("kind", ["returned", "all"])
@pytest.mark.parametrize("window", [65535, 100])
def test_batch_read_of_queue_with_delayed_retry_logs_warning(kind, window, monkeypatch, caplog):
    monkeypatch.setattr("fakeamqp.spark.wire.exact._LARGEST_WINDOW", window)
    monkeypatch.setattr("fakeamqp.spark.browse.snapshot._RETURN_SECONDS", 0.01)
    arguments = {**KINDS["quorum"], "x-delayed-retry-type": kind, "x-delayed-retry-min": 60_000}
    with (
        Broker(personality="rabbitmq-4.3") as broker,
        pika.BlockingConnection(pika.URLParameters(broker.url)) as connection,
    ):
        connection.channel().queue_declare("orders", durable=True, arguments=arguments)
        publish(broker, *range(250))
        assert values(rows(broker)) == list(range(250))
        assert "'orders' has only 0 ready messages after this read returned 250" in caplog.text
        assert "x-delayed-retry-type" in caplog.text
        assert rows(broker) == []


@pytest.mark.parametrize("arguments", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("others", [0, 1, 3])
def test_large_first_message_is_read_completely_and_stays_in_queue(broker, channel, arguments, others):
    """The first message is read with basic.get; the answer arrives long before the last frame."""
    channel.queue_declare("large", durable=True, arguments=arguments)
    sizes = [5_000_000, 200_000, 10, 1_000_000][: 1 + others]
    for size in sizes:
        channel.basic_publish("", "large", bytes(size))
    broker.wait_for(lambda: broker.queue("large").ready == len(sizes))
    for redelivered in (False, True):
        found = rows(broker, queue="large")
        assert [(len(row["value"]), row["redelivered"]) for row in found] == [
            (size, redelivered) for size in sizes
        ]
    assert [len(message.body) for message in broker.queue("large").messages] == sizes


def test_an_empty_queue_is_an_empty_table_at_once(broker):
    assert rows(broker, idleTimeout="1h") == []


def test_a_task_for_every_queue(broker):
    browse = reader(broker, queue="refunds,orders")
    planned = browse.partitions()
    assert planned == [QueuePartition("refunds"), QueuePartition("orders")]
    for number, queue in enumerate(["orders", "orders", "refunds"]):
        publish(broker, number, queue=queue)
        found = table(browse, planned).to_pylist()  # Spark plans once for all actions on a DataFrame.
        assert len(found) == number + 1
    assert [(row["queue"], int(row["value"])) for row in found] == [
        ("refunds", 2),
        ("orders", 0),
        ("orders", 1),
    ]


def test_messages_published_after_task_start_are_not_read(broker, monkeypatch):
    publish(broker, 1, 2)
    meanwhile(monkeypatch, lambda: publish(broker, 3, 4))
    assert values(rows(broker)) == [1, 2]
    assert [message.redelivered for message in broker.queue("orders").messages] == [True, True, False, False]


def test_messages_that_others_took_are_not_waited_for(broker, channel, monkeypatch):
    publish(broker, *range(5))
    meanwhile(monkeypatch, lambda: channel.basic_get("orders", auto_ack=True))
    assert values(rows(broker)) == [0, 2, 3, 4]
    meanwhile(monkeypatch, lambda: channel.queue_purge("orders"))
    assert values(rows(broker)) == [0]


SINGLE = {"x-queue-type": "quorum", "x-single-active-consumer": True}


@pytest.fixture
def single(request):
    """A channel of another client, and a quorum queue with a single active consumer."""
    with (
        Broker(personality=request.param) as broker,
        pika.BlockingConnection(pika.URLParameters(broker.url)) as connection,
    ):
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments=SINGLE)
        yield broker, channel


@pytest.mark.parametrize("single", ["rabbitmq-3.13", "rabbitmq-4.2", "rabbitmq-4.3"], indirect=True)
@pytest.mark.parametrize("window", [65535, 100])
def test_single_active_consumer_quorum_queue_is_read_unless_another_consumer_is_active(
    single, window, monkeypatch
):
    monkeypatch.setattr("fakeamqp.spark.wire.exact._LARGEST_WINDOW", window)
    broker, channel = single
    allowed = {"allowDeliveryLimit": "true"}
    assert rows(broker, **allowed) == []
    publish(broker, *range(250))
    for _ in range(2):
        assert values(rows(broker, **allowed)) == list(range(250))
    assert bodies(broker) == list(range(250))
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume("orders", lambda *_: None)
    with pytest.raises(SparkError, match=r"queue 'orders' has 249 ready messages, .* single active"):
        rows(broker, **allowed, **{"amqp.connectionTimeout": "1s"})


def test_closed_batch_reader_requeues_all_messages_in_order(broker, monkeypatch):
    publish(broker, *range(3000))
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 10)
    browse = reader(broker)
    [partition] = browse.partitions()
    batches = browse.read(partition)
    assert next(batches).num_rows < 3000
    assert broker.queue("orders").ready == 0
    batches.close()
    assert bodies(broker) == list(range(3000))
    assert broker.queue("orders").ready == 3000
    broker.wait_until_idle()
    assert not broker.queue("orders").consumers


def test_queue_that_does_not_exist_or_may_not_be_read_fails_at_planning(broker):
    with pytest.raises(QueueNotFound, match=r"cannot read queue 'nowhere': .*404.* Declare it first"):
        reader(broker, queue="orders,nowhere").partitions()
    broker.admin.add_user("writer", "w", permissions={"/": ("", ".*", "")})
    user = {"amqp.username": "writer", "amqp.password": "w"}
    with pytest.raises(AccessRefused, match=r"'orders': .*403.* needs the permission 'read'"):
        reader(broker, **user).partitions()


def test_a_lost_connection_is_an_error_and_no_end(broker, monkeypatch):
    publish(broker, *range(100))
    monkeypatch.setattr("fakeamqp.spark.wire.exact._LARGEST_WINDOW", 50)
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 10)
    browse = reader(broker, idleTimeout="1h")
    [partition] = browse.partitions()
    batches = browse.read(partition)
    next(batches)
    broker.connections[0].close(320, "maintenance")
    with pytest.raises(ConnectionLost, match="320"):
        list(batches)
    broker.wait_until_idle()
    assert broker.queue("orders").ready == 100


@pytest.mark.parametrize("count", [0, 3])
def test_batch_read_of_stream_given_as_queue_is_refused(broker, channel, count):
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    publish(broker, *range(count), queue="log")
    with pytest.raises(OptionError, match="'log' is a stream: set option 'stream'"):
        rows(broker, queue="log", idleTimeout="1h")


def test_a_task_that_waits_for_spark_is_given_time_to_answer_heartbeats(broker, begun):
    batches = begun()
    assert [connection.heartbeat for connection in broker.connections] == [600]
    batches.close()


def test_only_wanted_columns_are_made(broker):
    publish(broker, 1)
    assert rows(broker, columns="offset,message_id") == [{"offset": 0, "message_id": "m1"}]


def test_a_pickled_reader_is_small(broker):
    assert len(pickle.dumps(reader(broker))) < 4000


# --- turns --------------------------------------------------------------------------------------------------


@pytest.fixture
def in_a_task(monkeypatch):
    """Have this process run an attempt of a task, as a Python process of an executor does."""

    def run(attempt):
        context = SimpleNamespace(taskAttemptId=lambda: attempt)
        monkeypatch.setattr("pyspark.TaskContext._taskContext", context)

    return run


def test_concurrent_batch_reads_of_queue_return_all_messages_each(broker):
    publish(broker, *range(200))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: values(rows(broker)), range(8)))
    assert found == [list(range(200))] * 8


def test_batch_read_fails_if_other_read_of_queue_does_not_end_in_time(broker, begun):
    first = begun()
    with pytest.raises(SparkError, match=r"another batch read .* did not end within 0\.1 s.* cache\(\)"):
        rows(broker, reconnectTimeout="100ms")
    first.close()
    assert len(rows(broker, reconnectTimeout="0s")) == 100


def test_two_reads_in_one_task_do_not_wait_for_each_other(broker, begun, in_a_task):
    in_a_task(7)
    first = begun()
    with pytest.raises(SparkError, match=r"the same task already reads it, .* cache\(\) the DataFrame"):
        rows(broker, reconnectTimeout="1h")
    in_a_task(8)
    with pytest.raises(SparkError, match="another batch read"):
        rows(broker, reconnectTimeout="0s")
    assert sum(batch.num_rows for batch in first) == 50
    in_a_task(7)
    assert len(rows(broker)) == 100


def test_a_read_that_fits_into_a_record_batch_returns_it_before_spark_has_it(broker):
    publish(broker, *range(200))
    browse = reader(broker)
    batches = browse.read(*browse.partitions())
    assert next(batches).num_rows == 200
    assert broker.queue("orders").ready == 200
    for client in ("spark", "other"):  # Which has a connection of its own.
        assert len(rows(broker, reconnectTimeout="0s", **{"amqp.clientName": client})) == 200
    assert list(batches) == []


@pytest.mark.parametrize("permissions", [("", "", ".*"), ("^orders$", "", ".*")])
def test_user_without_permission_to_declare_lease_reads_without_lease(
    broker, begun, in_a_task, permissions, caplog
):
    caplog.set_level("INFO", "fakeamqp.spark")
    broker.admin.add_user("auditor", "a", permissions={"/": permissions})
    in_a_task(7)
    first = begun()
    user = {"amqp.username": "auditor", "amqp.password": "a"}
    assert len(rows(broker, **user)) == 50
    assert "reading queue 'orders' without a lease" in caplog.text
    first.close()
    assert len(rows(broker, **user)) == 100
    assert broker.queue("orders").ready == 100
