from __future__ import annotations

from typing import Any

import pika
import pika.exceptions
import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20


def connect(broker: Broker, **parameters: Any) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port, **parameters))


def next_message(channel: Any, queue: str) -> Any:
    """What a consumer of the queue gets next: method, properties and body."""
    message = next(channel.consume(queue, inactivity_timeout=SECONDS))
    assert message[0] is not None, "nothing came"
    return message


def test_from_connect_to_ack(reach: Reach) -> None:
    ssl_options = reach.context and pika.SSLOptions(reach.context, reach.host)
    parameters = pika.ConnectionParameters(reach.host, reach.port, ssl_options=ssl_options)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.exchange_declare("events", "topic", durable=True)
        channel.queue_declare("orders", durable=True)
        channel.queue_bind("orders", "events", "order.*")
        channel.confirm_delivery()
        large = bytes(range(256)) * 1024  # Several frames.
        channel.basic_publish("events", "order.created", large, pika.BasicProperties(headers={"n": 1}))
        reach.broker.queue("orders").wait_for(ready=1)

        method, properties, body = next_message(channel, "orders")
        assert (method.routing_key, method.redelivered, properties.headers) == (
            "order.created",
            False,
            {"n": 1},
        )
        assert body == large
        assert reach.broker.queue("orders").unacked == 1
        channel.basic_ack(method.delivery_tag)
        channel.cancel()
        reach.broker.queue("orders").wait_for(ready=0, unacked=0, consumers=0)
    reach.broker.wait_for(lambda: not reach.broker.connections)


def test_get_reject_and_requeue(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        assert channel.basic_get("orders") == (None, None, None)
        for body in (b"1", b"2"):
            channel.basic_publish("", "orders", body)
        method, _, body = channel.basic_get("orders")
        assert (body, method.message_count, method.redelivered) == (b"1", 1, False)
        channel.basic_reject(method.delivery_tag, requeue=True)
        method, _, body = channel.basic_get("orders")
        assert (body, method.message_count, method.redelivered) == (b"1", 1, True)
        channel.basic_nack(method.delivery_tag, requeue=False)
        method, _, body = channel.basic_get("orders", auto_ack=True)
        assert (body, method.redelivered) == (b"2", False)
        broker.queue("orders").wait_for(ready=0, unacked=0)


def test_prefetch_count_limits_unacked_messages_of_a_consumer(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        for number in range(5):
            channel.basic_publish("", "orders", str(number).encode())
        channel.basic_qos(prefetch_count=2)
        held: list[int] = []
        channel.basic_consume("orders", lambda _c, method, _p, _b: held.append(method.delivery_tag))
        while len(held) < 2:
            connection.process_data_events(SECONDS)
        broker.queue("orders").wait_for(ready=3, unacked=2)
        channel.basic_ack(held[-1], multiple=True)
        while len(held) < 4:
            connection.process_data_events(SECONDS)
        broker.queue("orders").wait_for(ready=1, unacked=2)


def test_mandatory_messages_come_back(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.UnroutableError) as caught:
            channel.basic_publish("", "nowhere", b"lost", mandatory=True)
        (returned,) = caught.value.messages
        assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
        assert returned.body == b"lost"


def test_a_full_queue_refuses_with_a_nack(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("small", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        channel.basic_publish("", "small", b"fits")
        with pytest.raises(pika.exceptions.NackError):
            channel.basic_publish("", "small", b"does not")


@pytest.mark.parametrize(
    ("mistake", "code", "text"),
    [
        (
            lambda c: c.queue_declare("absent", passive=True),
            404,
            "NOT_FOUND - no queue 'absent' in vhost '/'",
        ),
        (
            lambda c: c.queue_declare("orders", durable=True),
            406,
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'orders' in vhost '/': "
            "received 'true' but current is 'false'",
        ),
        (
            lambda c: c.exchange_delete("amq.direct"),
            403,
            "ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed",
        ),
        (
            lambda c: c.exchange_declare("odd", "no-such-type"),
            406,
            "PRECONDITION_FAILED - unknown exchange type 'no-such-type'",
        ),
    ],
)
def test_mistakes_close_the_channel_only(broker: Broker, mistake: Any, code: int, text: str) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        with pytest.raises(ChannelClosedByBroker) as caught:
            mistake(channel)
        assert (caught.value.reply_code, caught.value.reply_text) == (code, text)
        connection.channel().queue_declare("orders", passive=True)


def test_another_connection_s_exclusive_queue_is_locked(broker: Broker) -> None:
    with connect(broker) as one, connect(broker) as other:
        name = one.channel().queue_declare("", exclusive=True).method.queue
        with pytest.raises(ChannelClosedByBroker) as caught:
            other.channel().queue_declare(name, passive=True)
        assert caught.value.reply_code == 405
    broker._reader.wait_for(lambda state: not state.virtual_hosts["/"].queues)


def test_wrong_passwords_and_virtual_hosts(broker: Broker) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError, match="403"):
        connect(broker, credentials=pika.PlainCredentials("guest", "wrong"))
    expected = "530.*NOT_ALLOWED - vhost absent not found"
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match=expected):
        connect(broker, virtual_host="absent")


@pytest.mark.parametrize(("wanted", "agreed"), [(7, 7), (0, 0), (None, 60)])
def test_heartbeats_are_negotiated(broker: Broker, wanted: int | None, agreed: int) -> None:
    with connect(broker, heartbeat=wanted):
        assert [each.heartbeat for each in broker.connections] == [agreed]


def test_heartbeats_keep_an_idle_connection_alive_and_silence_ends_it(broker: Broker) -> None:
    with connect(broker, heartbeat=1) as talking:
        silent = connect(broker, heartbeat=1)
        # Whoever processes events sends heartbeats; who does not is taken for dead.
        while len(broker.connections) == 2:
            talking.process_data_events(0.1)
        talking.channel().queue_declare("still-here")
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            silent.channel()


def test_deleting_a_queue_cancels_its_consumers(broker: Broker) -> None:
    with connect(broker) as connection, connect(broker) as other:
        channel = connection.channel()
        channel.queue_declare("orders")
        cancelled: list[str] = []
        channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
        tag = channel.basic_consume("orders", lambda *_: None)
        other.channel().queue_delete("orders")
        while not cancelled:
            connection.process_data_events(SECONDS)
        assert cancelled == [tag]


def test_a_blocked_broker_tells_publishers(broker: Broker) -> None:
    with connect(broker, blocked_connection_timeout=None) as connection:
        told: list[str] = []
        connection.add_on_connection_blocked_callback(lambda _, frame: told.append(frame.method.reason))
        connection.add_on_connection_unblocked_callback(lambda _, frame: told.append("unblocked"))
        channel = connection.channel()
        channel.queue_declare("orders")
        alarm = broker.faults.memory_alarm()
        channel.basic_publish("", "orders", b"held back")
        while told != ["low on memory"]:
            connection.process_data_events(SECONDS)
        alarm.remove()
        while told != ["low on memory", "unblocked"]:
            connection.process_data_events(SECONDS)
        broker.queue("orders").wait_for(ready=1)


def test_the_secret_can_be_updated(broker: Broker) -> None:
    with connect(broker) as connection:
        connection.update_secret("guest", "renewed")
        connection.channel().queue_declare("orders")


def test_transactions(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        channel.tx_select()
        channel.basic_publish("", "orders", b"dropped")
        channel.tx_rollback()
        channel.basic_publish("", "orders", b"kept")
        assert broker.queue("orders").ready == 0
        channel.tx_commit()
        assert [message.body for message in broker.queue("orders").messages] == [b"kept"]


def test_connection_closed_by_the_operator_gets_its_code_and_text(broker: Broker) -> None:
    connection = connect(broker)
    (handle,) = broker.connections
    handle.close(320, "CONNECTION_FORCED - for repairs")
    with pytest.raises(ConnectionClosedByBroker) as caught:
        while True:
            connection.process_data_events(SECONDS)
    assert (caught.value.reply_code, caught.value.reply_text) == (320, "CONNECTION_FORCED - for repairs")
