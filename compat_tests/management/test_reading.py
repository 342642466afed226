"""Requests read the broker without holding it up, and rates follow its clock."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timezone
from decimal import Decimal
from fractions import Fraction

import pika
import pytest

from compat_tests.management.client import Api
from fakeamqp import Broker
from fakeamqp.management import context
from fakeamqp.management.context import Management
from fakeamqp.management.counters import Counter, History
from fakeamqp.management.resource import _encoded
from fakeamqp.management.values import jsonable


@pytest.fixture
def broker():
    with Broker(management=True, clock="virtual") as broker:
        yield broker


@pytest.fixture
def api(broker):
    return Api(broker.management_url)


class Engine:
    """Counts how often it is entered."""

    entered = 0

    def __enter__(self):
        self.entered += 1

    def __exit__(self, *_):
        pass


def test_a_long_list_is_read_in_slices_between_which_others_use_the_broker(monkeypatch):
    monkeypatch.setattr(context, "_SLICE_SECONDS", 0.0)
    management = object.__new__(Management)
    management.engine, management._state = Engine(), None
    assert management.read_each(lambda _: range(5), lambda number: number or None) == [1, 2, 3, 4]
    assert management.engine.entered == 1 + 5 + 1  # the list, each number, and that there are no more


def test_a_request_is_answered_while_a_test_thread_waits_inside_the_broker(broker, api):
    """What a request reads is not held up by a wait, which lets others use the broker."""
    seen = threading.Event()
    waits = threading.Thread(target=broker.wait_for, args=(seen.is_set, 30.0))
    waits.start()
    try:
        assert api.get("whoami")["name"] == "guest"
    finally:
        seen.set()
        broker.publish(b"", routing_key="nowhere")  # a turn, after which the wait looks again
        waits.join()


def test_the_bytes_of_messages_are_those_of_their_bodies(broker, api):
    api.put("queues/%2F/q", {"durable": True})
    broker.publish(b"12345", routing_key="q", delivery_mode=2)
    broker.publish(b"123", routing_key="q")
    queue = api.get("queues/%2F/q")
    assert (queue["message_bytes"], queue["message_bytes_persistent"]) == (8, 5)
    assert (queue["messages"], queue["messages_persistent"]) == (2, 1)


def test_a_rate_is_the_mean_of_five_seconds_of_the_brokers_clock(broker, api):
    api.put("queues/%2F/q", {})
    for _ in range(10):
        broker.publish(b"", routing_key="q")
    broker.clock.advance(1)
    assert api.get("queues/%2F/q")["message_stats"]["publish_details"] == {"rate": 2.0}
    broker.clock.advance(10)
    stats = api.get("queues/%2F/q")["message_stats"]
    assert (stats["publish"], stats["publish_details"]) == (10, {"rate": 0.0})


def test_samples_go_back_in_time(broker, api):
    api.put("queues/%2F/q", {})
    broker.publish(b"", routing_key="q")
    broker.clock.advance(20)
    broker.publish(b"", routing_key="q")
    broker.clock.advance(1)
    details = api.get("queues/%2F/q?msg_rates_age=20&msg_rates_incr=10")["message_stats"]["publish_details"]
    assert [each["sample"] for each in details["samples"]] in ([2, 1, 0], [2, 1, 1], [1, 1, 0], [1, 1, 1])
    times = [each["timestamp"] for each in details["samples"]]
    assert [times[0] - each for each in times] == [0, 10_000, 20_000]


def test_counters_forget_what_no_request_can_ask_for():
    counter = Counter()
    for second in range(8000):
        counter.add(float(second))
    assert counter.total == 8000
    assert len(counter._by_second) < 7500
    assert counter.since(7990.0) == 9
    assert History(60, 60).details(counter, 8000.0, 8000.0)["samples"][0]["sample"] <= 8000


def test_a_sample_is_the_total_of_its_instant():
    counter = Counter()
    for second in range(100):
        counter.add(float(second), 2)
    details = History(40, 20).details(counter, 99.0, 1099.0)
    assert details["samples"] == [
        {"sample": 162, "timestamp": 1_080_000},
        {"sample": 122, "timestamp": 1_060_000},
        {"sample": 82, "timestamp": 1_040_000},
    ]
    assert (details["avg_rate"], details["avg"]) == (2.0, 122.0)


def test_a_broker_without_the_api_has_no_tap_that_counts():
    from fakeamqp.trace.recorder import Recorder

    assert type(Broker()._state.tap) is Recorder
    assert Broker(trace=0)._state.tap is None


def test_deliveries_and_acknowledgements_are_counted_by_queue_and_channel(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.queue_declare("q")
    for _ in range(3):
        channel.basic_publish("", "q", b"x")
    for method, _, _ in (channel.basic_get("q"), channel.basic_get("q", auto_ack=True)):
        del method
    channel.basic_ack(1)
    channel.basic_consume("q", lambda *_: None, auto_ack=True)
    broker.wait_until_idle()
    stats = api.get("queues/%2F/q")["message_stats"]
    counted = {name: stats[name] for name in ("publish", "get", "get_no_ack", "ack", "deliver_no_ack")}
    assert counted == {"publish": 3, "get": 1, "get_no_ack": 1, "ack": 1, "deliver_no_ack": 1}
    assert api.get("channels")[0]["message_stats"]["deliver_get"] == 3
    delivered = [event.facts for event in broker.trace.events if event.name == "delivered"]
    assert [facts["channel"] for facts in delivered] == [1, 1, 1], "the trace sees them as without the API"
    connection.close()
    broker.reset()
    assert api.get("overview")["message_stats"] == {}


def test_views_count_what_clients_do_and_what_goes_over_the_wire(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel, transactional = connection.channel(), connection.channel()
    transactional.tx_select()
    for queue in ("q", "gone"):
        channel.queue_declare(queue)
    channel.queue_delete("gone")
    channel.basic_get("q")
    channel.basic_publish("", "nowhere", b"", mandatory=True)
    broker.wait_until_idle()
    churn = api.get("overview")["churn_rates"]
    assert {name: count for name, count in churn.items() if not name.endswith("_details")} == {
        **{"channel_closed": 0, "channel_created": 2, "connection_closed": 0, "connection_created": 1},
        **{"queue_created": 2, "queue_declared": 2, "queue_deleted": 1},
    }
    host, (client,) = api.get("vhosts/%2F"), api.get("connections")
    stats = host["message_stats"]
    assert (stats["get_empty"], stats["return_unroutable"]) == (1, 1)
    octets = {name: client[name] for name in ("recv_oct", "send_oct")}
    assert {name: host[name] for name in octets} == octets
    assert octets["recv_oct"] != octets["send_oct"] and all(octets.values())
    first, second = sorted(api.get("channels"), key=lambda each: each["number"])
    assert (first["transactional"], second["transactional"]) == (False, True)
    assert first["message_stats"]["get_empty"] == 1
    assert api.get("queues/%2F/q")["storage_version"] == 2
    connection.close()
    broker.wait_until_idle()
    assert api.get("overview")["churn_rates"]["connection_closed"] == 1


def test_a_redeclared_queue_has_no_counts_of_the_deleted_one(broker, api):
    for numbers in (True, False):
        assert api.put("queues/%2F/q", {}).status == 201
        if numbers:
            broker.publish(b"", routing_key="q")
        assert ("message_stats" in api.get("queues/%2F/q")) is numbers
        api.delete("queues/%2F/q")


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_replicated_queues_show_the_node_as_their_only_member(broker, api, kind):
    api.put("queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": kind}})
    queue = api.get("queues/%2F/q")
    node = queue["node"]
    assert (queue["leader"], queue["members"], queue["online"]) == (node, [node], [node])


def test_consumers_have_capacity_while_they_wait_for_messages(broker, api):
    def capacity():
        broker.wait_until_idle()
        queue = api.get("queues/%2F/q")
        return queue["consumer_capacity"], queue["consumer_utilisation"]

    channel = pika.BlockingConnection(pika.URLParameters(broker.url)).channel()
    channel.queue_declare("q")
    assert capacity() == (0, 0)
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume("q", lambda *_: None)
    assert capacity() == (1.0, 1.0)
    for _ in range(2):
        broker.publish(b"", routing_key="q")
    assert capacity() == (0, 0)
    channel.connection.close()


def test_faults_and_the_trace_see_what_they_see_without_the_api(broker, api):
    fault = broker.faults.on("basic.publish").drop().once()
    api.put("queues/%2F/q", {})
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.basic_publish("", "q", b"dropped")
    channel.basic_publish("", "q", b"kept")
    broker.queue("q").wait_for(ready=1)
    assert fault.hits
    assert api.get("queues/%2F/q")["message_stats"]["publish"] == 1
    assert "basic.publish" in str(broker.trace.timeline())
    connection.close()


def test_quorum_queue_counts_ready_messages_of_high_and_normal_priority():
    """RabbitMQ 4.0: priorities above 4 are high."""
    with Broker(management=True, personality="rabbitmq-4.0") as broker:
        api = Api(broker.management_url)
        api.put("queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
        for priority in (0, 4, 4, 5, 9):
            broker.publish(b"", routing_key="q", priority=priority)
        queue = api.get("queues/%2F/q")
        assert (queue["messages_ready_high"], queue["messages_ready_normal"]) == (2, 3)


def test_answers_have_no_nan():
    assert json.loads(_encoded([{"a": [float("nan"), 1]}])) == [{"a": ["nan", 1]}]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime(1970, 1, 1, 0, 1, tzinfo=timezone.utc), 60),
        (Decimal("1.5"), 1.5),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (-1.5, -1.5),
        (Fraction(1, 2), "1/2"),
        ((1, {2: [None, True]}), [1, {"2": [None, True]}]),
    ],
)
def test_values_of_every_type_are_shown_as_json(value, shown):
    assert jsonable(value) == shown
    assert type(jsonable(value)) is type(shown)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_that_are_not_utf8_are_shown_with_replacement_characters(kind):
    assert jsonable({"name": [kind(b"caf\xc3\xa9 \xff")]}) == {"name": ["caf\xe9 \ufffd"]}
