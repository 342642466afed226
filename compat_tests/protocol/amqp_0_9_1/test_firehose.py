"""The firehose: what amq.rabbitmq.trace gets. The differential cases compare it with RabbitMQ."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.policies import ParameterError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

TRACE = "amq.rabbitmq.trace"


def watched(server: Server) -> tuple[Client, Client]:
    """A client, and another one that consumes what the firehose copies."""
    server.state.virtual_host("/").set_firehose(True)
    client, watcher = server.client(), server.client()
    watcher.declare("trace").bind("trace", TRACE, "#").consume("trace", no_ack=True)
    return client, watcher


def copies(watcher: Client) -> list[tuple[str, dict[str, Any], bytes]]:
    """Routing key, headers and body of each copy that has come."""
    found = []
    while watcher.inbox:
        delivery = watcher.delivery()
        assert delivery.method.exchange == TRACE
        found.append((delivery.method.routing_key, delivery.properties.headers or {}, delivery.body))
    return found


@pytest.mark.needs("inspection")
def test_copies_of_publish_and_delivery_name_connection_user_queues_and_properties(rabbitmq: Server) -> None:
    client, watcher = watched(rabbitmq)
    client.declare("q").consume("q", no_ack=True)
    client.fill("q", b"body", content_type="text/plain", headers={"a": 1}, delivery_mode=2)
    assert client.bodies() == [b"body"]
    name = next(iter(rabbitmq.state.connections)).name
    whence = {"vhost": "/", "connection": name, "channel": 1, "user": "guest"}
    message = {
        "exchange_name": "",
        "routing_keys": ["q"],
        "properties": {"delivery_mode": 2, "headers": {"a": 1}, "content_type": "text/plain"},
        "node": "fakeamqp@localhost",
    }
    assert copies(watcher) == [
        ("publish.", {**message, **whence, "routed_queues": ["q"]}, b"body"),
        ("deliver.q", {**message, **whence, "redelivered": 0}, b"body"),
    ]


@pytest.mark.needs("inspection")
def test_get_is_copied_with_its_redelivered_flag(rabbitmq: Server) -> None:
    client, watcher = watched(rabbitmq)
    client.declare("q").fill("q", b"m").get("q")
    client.send(m.BasicReject(delivery_tag=1, requeue=True)).get("q")
    assert [(key, headers.get("redelivered")) for key, headers, _ in copies(watcher)] == [
        ("publish.", None),
        ("deliver.q", 0),
        ("deliver.q", 1),
    ]


@pytest.mark.needs("inspection")
def test_firehose_copy_with_routing_key_over_255_bytes_is_left_out(rabbitmq: Server) -> None:
    # RabbitMQ (measured on 4.0.5 and 4.3.6) ends the connection that is sent one with 541.
    client, watcher = watched(rabbitmq)
    for name in ("q" * 248, "q" * 247):
        assert client.declare(name).fill(name, b"m").get(name) is not None
    assert [key for key, _, _ in copies(watcher)] == ["publish.", "publish.", "deliver." + "q" * 247]


@pytest.mark.needs("inspection", "several personalities")
@pytest.mark.parametrize("kind", ["fanout", "direct", "topic", "headers"])
def test_queues_of_a_copied_message_are_in_descending_order(rabbitmq: Server, kind: str) -> None:
    # RabbitMQ: measured on 4.0.5 and 4.3.6; 3.10.8 has them in ascending order.
    for rewrites_headers, order in ((True, "dcba"), (False, "abcd")):
        client, watcher = watched(rabbitmq.varied(rewrites_headers=rewrites_headers))
        for name in "cabd":
            client.declare(name).bind(name, f"amq.{kind}", "k")
        client.publish(exchange=f"amq.{kind}", routing_key="k")
        assert [headers["routed_queues"] for _, headers, _ in copies(watcher)] == [list(order)]


@pytest.mark.needs("inspection")
def test_keys_of_a_message_for_the_default_exchange_are_sorted_and_each_named_once(rabbitmq: Server) -> None:
    # RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6.
    client, watcher = watched(rabbitmq)
    client.publish(routing_key="m", headers={"CC": ["z", "a", "z", "B"], "BCC": ["m"]})
    assert [headers["routed_queues"] for _, headers, _ in copies(watcher)] == [["B", "a", "m", "z"]]


@pytest.mark.needs("inspection")
def test_x_death_count_is_still_64_bit_in_firehose_copy_of_delivery(rabbitmq: Server) -> None:
    client, watcher = watched(rabbitmq)
    client.declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    client.fill("q", b"m").get("q")
    client.send(m.BasicReject(delivery_tag=1)).get("dead")
    delivered = [frame for frame in watcher.inbox if b"deliver.dead" in frame.payload]
    assert len(delivered) == 1
    header = watcher.inbox[watcher.inbox.index(delivered[0]) + 1].payload
    assert b"\x05countl\0\0\0\0\0\0\0\x01" in header  # A 64-bit integer, as RabbitMQ sends it.


@pytest.mark.needs("inspection")
def test_published_copy_of_a_transaction_does_not_wait_for_the_commit(rabbitmq: Server) -> None:
    client, watcher = watched(rabbitmq)
    client.declare("q").perform(m.TxSelect()).fill("q", b"m")
    assert [key for key, _, _ in copies(watcher)] == ["publish."]
    client.perform(m.TxRollback())
    assert copies(watcher) == []


@pytest.mark.needs("inspection")
def test_delivery_of_a_firehose_copy_is_not_copied_again(rabbitmq: Server) -> None:
    client, watcher = watched(rabbitmq)
    client.declare("q").bind("q", TRACE, "deliver.#")
    client.fill("q", b"m").consume("q", no_ack=True)
    assert client.bodies() == [
        b"m",
        b"m",
    ]  # The message, then the copy of its delivery, of which none is made.
    assert [key for key, _, _ in copies(watcher)] == ["publish.", "deliver.q"]


@pytest.mark.needs("inspection")
def test_firehose_is_switched_for_open_channels_and_off_by_a_restart(rabbitmq: Server) -> None:
    client, watcher = watched(rabbitmq)
    host = rabbitmq.state.virtual_host("/")
    host.set_firehose(False)
    client.fill("nowhere", b"1")
    host.set_firehose(True)
    client.fill("nowhere", b"2")
    assert [body for _, _, body in copies(watcher)] == [b"2"]
    host.restart()
    assert host.firehose is None


def test_spec_personality_refuses_to_switch_firehose_on(spec: Server) -> None:
    with pytest.raises(ParameterError, match="personality 'spec' has no firehose"):
        spec.state.virtual_host("/").set_firehose(True)
