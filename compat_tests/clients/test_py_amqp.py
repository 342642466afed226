from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import amqp
import amqp.transport
import pytest

from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20


@contextmanager
def opened(host: str, port: int, **options: Any) -> Iterator[amqp.Connection]:
    """A connection that is closed at the end, whatever state it is in."""
    with closing(amqp.Connection(f"{host}:{port}", connect_timeout=SECONDS, **options)) as connection:
        yield connection


@contextmanager
def closing(connection: amqp.Connection) -> Iterator[amqp.Connection]:
    try:
        connection.connect()
        yield connection
        connection.close()
    finally:
        connection.collect()


def events(connection: amqp.Connection, until: Callable[[], object]) -> None:
    while not until():
        connection.drain_events(timeout=SECONDS)


def round_trip(connection: amqp.Connection, broker: Broker) -> None:
    channel = connection.channel()
    channel.exchange_declare("events", "direct", durable=True, auto_delete=False)
    channel.queue_declare("orders", durable=True, auto_delete=False)
    channel.queue_bind("orders", "events", "created")
    headers = {"text": "ä", "number": 1 << 40, "yes": True, "list": [1, {"deep": None}]}
    message = amqp.Message(b"first", application_headers=headers, delivery_mode=2)
    channel.basic_publish_confirm(message, "events", "created")
    broker.queue("orders").wait_for(ready=1)

    got: list[Any] = []
    tag = channel.basic_consume("orders", callback=got.append)
    events(connection, lambda: len(got) == 1)
    assert (got[0].body, got[0].headers) == (b"first", headers)
    channel.basic_reject(got[0].delivery_tag, requeue=True)
    events(connection, lambda: len(got) == 2)
    assert (got[0].delivery_info["redelivered"], got[1].delivery_info["redelivered"]) == (False, True)
    channel.basic_ack(got[1].delivery_tag)
    channel.basic_cancel(tag)
    broker.queue("orders").wait_for(ready=0, unacked=0, consumers=0)
    channel.close()


def test_from_connect_to_ack(reach: Reach) -> None:
    options = (
        {} if reach.context is None else {"ssl": {"ca_certs": reach.ca_file, "server_hostname": reach.host}}
    )
    with opened(reach.host, reach.port, confirm_publish=True, **options) as connection:
        round_trip(connection, reach.broker)


class OverSocket(amqp.Connection):
    """A connection over a socket that is connected already."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(confirm_publish=True)
        self._sock = sock

    def Transport(self, host: str, connect_timeout: float, *_: Any, **__: Any) -> Any:
        class Given(amqp.transport.TCPTransport):
            def _connect(this, *_: Any) -> None:
                this.sock = self._sock

            def _set_socket_options(this, _: Any) -> None:
                pass  # Those of TCP do not fit.

        return Given(host, connect_timeout)


def test_over_a_socketpair(broker: Broker) -> None:
    with closing(OverSocket(broker.connect())) as connection:
        round_trip(connection, broker)


def test_get(broker: Broker) -> None:
    with opened(broker.host, broker.port) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        assert channel.basic_get("orders") is None
        for body in (b"1", b"2"):
            channel.basic_publish(amqp.Message(body), routing_key="orders")
        first = channel.basic_get("orders")
        assert (first.body, first.delivery_info["message_count"]) == (b"1", 1)
        channel.basic_recover(requeue=True)
        again = channel.basic_get("orders", no_ack=True)
        assert (again.body, again.delivery_info["redelivered"]) == (b"1", True)
        broker.queue("orders").wait_for(ready=1, unacked=0)


def test_mandatory_messages_come_back(broker: Broker) -> None:
    with opened(broker.host, broker.port, confirm_publish=True) as connection:
        channel = connection.channel()
        returned: list[Any] = []
        channel.events["basic_return"].add(lambda *given: returned.append(given))
        channel.basic_publish(amqp.Message(b"lost"), routing_key="nowhere", mandatory=True)
        events(connection, lambda: returned)
        error, exchange, routing_key, message = returned[0]
        assert (error.reply_code, error.reply_text) == (312, "NO_ROUTE")
        assert (exchange, routing_key) == ("", "nowhere")
        assert message.body == b"lost"


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        (lambda c: c.queue_declare("absent", passive=True), amqp.NotFound),
        (lambda c: c.queue_declare("orders", durable=True, auto_delete=False), amqp.PreconditionFailed),
        (lambda c: c.queue_declare("amq.mine"), amqp.AccessRefused),
        (lambda c: c.queue_delete("orders", if_empty=True), amqp.PreconditionFailed),
    ],
)
def test_mistakes_close_the_channel_only(broker: Broker, mistake: Any, error: type[Exception]) -> None:
    with opened(broker.host, broker.port) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", auto_delete=False)
        channel.basic_publish(amqp.Message(b""), routing_key="orders")
        with pytest.raises(error):
            mistake(channel)
        connection.channel().queue_declare("orders", passive=True)


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_login(broker: Broker, mechanism: str) -> None:
    with opened(broker.host, broker.port, login_method=mechanism):
        assert broker.connections[0].user == "guest"
    with (
        pytest.raises(amqp.AccessRefused, match=f"refused using authentication mechanism {mechanism}"),
        opened(broker.host, broker.port, login_method=mechanism, password="wrong"),
    ):
        pass
    with pytest.raises(amqp.NotAllowed), opened(broker.host, broker.port, virtual_host="absent"):
        pass


@pytest.mark.parametrize("wanted", [0, 11])
def test_heartbeats_are_negotiated(broker: Broker, wanted: int) -> None:
    with opened(broker.host, broker.port, heartbeat=wanted) as connection:
        assert connection.heartbeat == wanted
        assert broker.connections[0].heartbeat == wanted


def test_deleting_a_queue_cancels_its_consumers(broker: Broker) -> None:
    with opened(broker.host, broker.port) as connection, opened(broker.host, broker.port) as other:
        channel = connection.channel()
        channel.queue_declare("orders", auto_delete=False)
        cancelled: list[str] = []
        tag = channel.basic_consume("orders", callback=lambda _: None, on_cancel=cancelled.append)
        other.channel().queue_delete("orders")
        events(connection, lambda: cancelled)
        assert cancelled == [tag]


def test_a_blocked_broker_tells_publishers(broker: Broker) -> None:
    told: list[str] = []
    with opened(
        broker.host, broker.port, on_blocked=told.append, on_unblocked=lambda: told.append("unblocked")
    ) as connection:
        alarm = broker.faults.memory_alarm()
        connection.channel().basic_publish(amqp.Message(b""), routing_key="nowhere")
        events(connection, lambda: told)
        alarm.remove()
        events(connection, lambda: len(told) == 2)
    assert told == ["connection blocked, see broker logs", "unblocked"]  # Its words, whatever the reason.


def test_transactions(broker: Broker) -> None:
    with opened(broker.host, broker.port) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", auto_delete=False)
        channel.tx_select()
        channel.basic_publish(amqp.Message(b"dropped"), routing_key="orders")
        channel.tx_rollback()
        channel.basic_publish(amqp.Message(b"kept"), routing_key="orders")
        channel.tx_commit()
        assert [each.body for each in broker.queue("orders").messages] == [b"kept"]
