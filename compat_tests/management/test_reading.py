"""Requests read the broker without holding it up, and rates follow its clock."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from datetime import datetime, timezone
from decimal import Decimal
from fractions import Fraction
from urllib.parse import quote

import pika
import pytest

from compat_tests.management.client import Api
from fakeamqp import Broker
from fakeamqp.management import context, history, listing
from fakeamqp.management.context import Management
from fakeamqp.management.counters import Counter, SampleHistory
from fakeamqp.management.resource import _encoded
from fakeamqp.management.values import jsonable


class Engine:
    """Counts how often it is entered."""

    entered = 0

    def __enter__(self):
        self.entered += 1

    def __exit__(self, *_):
        pass


def test_long_list_is_read_in_slices_that_release_the_broker(monkeypatch):
    monkeypatch.setattr(context, "_SLICE_SECONDS", 0.0)
    management = object.__new__(Management)
    management.engine, management._state = Engine(), None
    assert management.read_each(lambda _: range(5), lambda number: number or None) == [1, 2, 3, 4]
    assert management.engine.entered == 1 + 5 + 1  # the list, each number, and that there are no more
    monkeypatch.setattr(context, "_SLICE_SECONDS", 3600.0)
    management.engine = entered_twice = Engine()
    assert management.read_each(lambda _: range(5), lambda number: number) == [0, 1, 2, 3, 4]
    assert entered_twice.entered == 2  # the list, and all numbers


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


def test_message_bytes_of_a_queue_are_the_sizes_of_the_bodies(broker, api):
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


def test_rate_samples_cover_the_requested_age(broker, api):
    api.put("queues/%2F/q", {})
    broker.publish(b"", routing_key="q")
    broker.clock.advance(20)
    broker.publish(b"", routing_key="q")
    broker.clock.advance(1)
    details = api.get("queues/%2F/q?msg_rates_age=20&msg_rates_incr=10")["message_stats"]["publish_details"]
    assert [each["sample"] for each in details["samples"]] in ([2, 1, 0], [2, 1, 1], [1, 1, 0], [1, 1, 1])
    times = [each["timestamp"] for each in details["samples"]]
    assert [times[0] - each for each in times] == [0, 10_000, 20_000]


def test_counters_drop_samples_older_than_any_request_can_ask_for():
    counter = Counter()
    for second in range(8000):
        counter.add(float(second))
    assert counter.total == 8000
    assert len(counter._by_second) < 7500
    assert counter.since(7990.0) == 9
    assert SampleHistory(60, 60).details(counter, 8000.0, 8000.0)["samples"][0]["sample"] <= 8000


def test_a_sample_is_the_total_of_its_instant():
    counter = Counter()
    for second in range(100):
        counter.add(float(second), 2)
    details = SampleHistory(40, 20).details(counter, 99.0, 1099.0)
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


def test_deliveries_and_acknowledgements_are_counted_by_queue_and_channel(broker, api, channel):
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
    channel.connection.close()
    broker.reset()
    assert api.get("overview")["message_stats"] == {}


def test_views_count_gets_returns_and_bytes_of_clients(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel, transactional = connection.channel(), connection.channel()
    transactional.tx_select()
    for queue in ("q", "gone"):
        channel.queue_declare(queue)
    channel.queue_delete("gone")
    channel.basic_get("q")
    channel.basic_publish("", "nowhere", b"", mandatory=True)
    broker.wait_until_idle()
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


def test_churn_counts_the_end_of_every_channel_and_of_every_connection(broker, api):
    """Measured on RabbitMQ 4.3.6; a client that does not log in has a connection that is only closed."""

    def churn(*expected):
        broker.wait_until_idle()
        rates = api.get("overview")["churn_rates"]
        names = ("connection_created", "connection_closed", "channel_created", "channel_closed")
        assert tuple(rates[name] for name in names) == expected

    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    first, second, _ = (connection.channel() for _ in range(3))
    churn(1, 0, 3, 0)
    first.close()
    churn(1, 0, 3, 1)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        second.queue_declare("missing", passive=True)
    churn(1, 0, 3, 2)
    connection.channel()
    churn(1, 0, 4, 2)
    connection.close()
    churn(1, 1, 4, 4)
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        pika.BlockingConnection(pika.URLParameters(broker.url.replace("guest:guest", "guest:wrong")))
    churn(1, 2, 4, 4)
    with socket.create_connection((broker.host, broker.port)) as client:
        client.sendall(b"nonsense")
        client.recv(8)
    churn(1, 3, 4, 4)
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    connection.channel()._impl._send_method(pika.spec.Channel.Open())
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
        connection.process_data_events(30)
    churn(2, 4, 5, 5)
    for name in "pq":
        api.put(f"queues/%2F/{name}", {})
    api.delete("queues/%2F/q")
    rates = api.get("overview")["churn_rates"]
    assert [rates[name] for name in ("queue_created", "queue_declared", "queue_deleted")] == [2, 2, 1]


def test_channel_with_a_reused_number_has_no_counts_or_mode_of_the_old_channel(broker, api):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    for confirms in (True, False):
        channel = connection.channel(0x0103)
        channel.queue_declare("q")
        if confirms:
            channel.confirm_delivery()
        channel.basic_publish("amq.fanout", "", b"")
        channel.basic_get("q")
        broker.wait_until_idle()
        (seen,) = api.get("channels")
        counts = seen["message_stats"]
        assert (counts["publish"], counts["confirm"], counts["get_empty"]) == (1, int(confirms), 1)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("missing", passive=True)
    assert api.get("overview")["message_stats"]["confirm"] == 1
    connection.close()


def test_views_show_consumers_and_the_applied_policy(broker, api):
    broker.admin.set_policy("all", ".*", {"expires": 60_000})
    parameters = pika.URLParameters(broker.url.replace("guest:guest", "other:p"))
    api.put("users/other", {"password": "p", "tags": "management"})
    api.put("permissions/%2F/other", {"configure": ".*", "write": ".*", "read": ".*"})
    connections = [pika.BlockingConnection(each) for each in (pika.URLParameters(broker.url), parameters)]
    for number, connection in enumerate(connections):
        channel = connection.channel()
        if not number:
            channel.queue_declare("single", arguments={"x-single-active-consumer": True})
            channel.queue_declare("one")
            channel.basic_consume("one", print, exclusive=True, consumer_tag="alone")
        channel.basic_consume("single", print, consumer_tag=f"c{number}")
    broker.publish(b"", exchange="amq.topic", timestamp=60)
    single, one = api.get("queues/%2F/single"), api.get("queues/%2F/one")
    names = ("single_active_consumer_tag", "exclusive_consumer_tag", "policy", "head_message_timestamp")
    assert [single[name] for name in names] == ["c0", None, "all", None]
    assert [one[name] for name in names] == [None, "alone", "all", None]
    assert [each["active"] for each in single["consumer_details"]] == [True, False]
    assert [each["activity_status"] for each in single["consumer_details"]] == ["up", "waiting"]
    assert api.get("exchanges/%2F/amq.topic")["policy"] == "all"
    first, second = sorted(api.get("channels"), key=lambda each: each["user"])
    other = api.log_in("other", "p")
    assert [each["user"] for each in other.get("channels")] == ["other"]
    for channel, status in ((first, 401), (second, 200)):
        name = quote(channel["name"], safe="")
        assert api.request("GET", f"channels/{name}").status == 200
        assert other.request("GET", f"channels/{name}").status == status
    assert [each["consumer_tag"] for each in api.get(f"channels/{name}")["consumer_details"]] == ["c1"]
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_single_active_consumer_is_shown_and_other_consumers_wait(broker, api, kind):
    """The first one; after its end the waiting one of the highest priority."""
    channel = pika.BlockingConnection(pika.URLParameters(broker.url)).channel()
    channel.queue_declare(
        "q", durable=True, arguments={"x-queue-type": kind, "x-single-active-consumer": True}
    )
    for tag, priority in (("first", 5), ("low", 0), ("high", 5)):
        channel.basic_consume("q", print, consumer_tag=tag, arguments={"x-priority": priority})
    for active, cancelled in (("first", "first"), ("high", "high"), ("low", "low"), (None, None)):
        queue = api.get("queues/%2F/q")
        assert queue["single_active_consumer_tag"] == active
        states = {each["consumer_tag"]: each["activity_status"] for each in queue["consumer_details"]}
        assert [tag for tag, state in states.items() if state == "up"] == [active] * (active is not None)
        assert set(states.values()) <= {"up", "waiting"}
        if cancelled:
            channel.basic_cancel(cancelled)
    channel.connection.close()


def test_a_prefetch_count_is_shown_for_consumers_or_for_the_channel():
    with Broker(management=True, personality="rabbitmq-4.0") as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        for count, everywhere in ((7, False), (9, True)):
            channel.basic_qos(prefetch_count=count, global_qos=everywhere)
        (seen,) = Api(broker.admin.management_url).get("channels")
        assert (seen["prefetch_count"], seen["global_prefetch_count"]) == (7, 9)
        connection.close()


def test_a_list_has_no_more_samples_than_its_answer_can_hold(broker, api, monkeypatch):
    monkeypatch.setattr(history, "_MOST_IN_ALL", 30)
    for number in range(4):
        api.put(f"queues/%2F/q{number}", {})
        broker.publish(b"", routing_key=f"q{number}")
        reply = api.request("GET", "queues?msg_rates_age=50&msg_rates_incr=5")
        assert reply.status == (200 if number < 3 else 400)
    assert reply.json["reason"] == "Too many samples: more than 30 of all rows."


def test_redeclared_queue_has_no_counts_of_the_deleted_queue(broker, api):
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


def test_fault_rules_and_the_trace_work_with_the_api(broker, api, channel):
    fault = broker.faults.on("basic.publish").drop().once()
    api.put("queues/%2F/q", {})
    channel.basic_publish("", "q", b"dropped")
    channel.basic_publish("", "q", b"kept")
    broker.queue("q").wait_for(ready=1)
    assert fault.hits
    assert api.get("queues/%2F/q")["message_stats"]["publish"] == 1
    assert "basic.publish" in str(broker.trace.timeline())


def test_the_trace_of_a_broker_with_the_api_has_the_same_events():
    def traced(**how):
        with Broker(clock="virtual", **how) as broker:
            connection = pika.BlockingConnection(pika.URLParameters(broker.url))
            channel = connection.channel()
            channel.queue_declare("dead")
            arguments = {
                **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
                **{"x-max-length": 4, "x-overflow": "reject-publish"},
            }
            channel.queue_declare("q", arguments=arguments)
            channel.confirm_delivery()
            for _ in range(5):
                with suppress(pika.exceptions.NackError):
                    channel.basic_publish("", "q", b"")
            with suppress(pika.exceptions.UnroutableError):
                channel.basic_publish("", "nowhere", b"", mandatory=True)
            channel.basic_publish("", "nowhere", b"")
            for end in (channel.basic_ack, channel.basic_nack, channel.basic_reject):
                tag = channel.basic_get("q")[0].delivery_tag
                end(tag) if end == channel.basic_ack else end(tag, requeue=False)
            channel.basic_get("dead", auto_ack=True)
            channel.queue_delete("q")
            connection.close()
            broker.wait_until_idle()
            return [str(event.name) for event in broker.trace.events]

    assert traced(management=True) == traced()


def test_quorum_queue_counts_ready_messages_of_high_and_normal_priority():
    """RabbitMQ 4.0: priorities above 4 are high."""
    with Broker(management=True, personality="rabbitmq-4.0") as broker:
        api = Api(broker.admin.management_url)
        api.put("queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
        for priority in (0, 4, 4, 5, 9):
            broker.publish(b"", routing_key="q", priority=priority)
        queue = api.get("queues/%2F/q")
        assert (queue["messages_ready_high"], queue["messages_ready_normal"]) == (2, 3)


def test_numbers_are_sorted_before_null_and_tables_and_strings_last():
    values = ["b", "a", {"y": 1, "x": 2}, [2], None, 3, -1.5, True]
    in_order = [-1.5, True, 3, None, [2], {"y": 1, "x": 2}, "a", "b"]
    assert sorted(values, key=lambda value: listing._place({"of": {"it": value}}, ["of", "it"])) == in_order
    nothing = (1, 0, "")
    assert [listing._place({"of": 5}, path) for path in (["it"], ["of", "it"])] == [nothing, nothing]


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
def test_invalid_utf8_is_shown_with_replacement_characters(kind):
    assert jsonable({"name": [kind(b"caf\xc3\xa9 \xff")]}) == {"name": ["caf\xe9 \ufffd"]}
