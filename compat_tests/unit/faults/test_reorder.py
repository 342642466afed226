"""`reorder()`: a delivery changes places with the next one of its channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.unit.faults.amqp_0_10 import server as server_0_10
from compat_tests.unit.faults.server import FaultServer
from compat_tests.unit.faults.test_sent import bodies_and_tags, consumer
from fakeamqp.faults import FaultError, Faults, Rule
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def unsettled(server: FaultServer) -> dict[int, bytes]:
    """The bodies of the unsettled deliveries of the only channel, by tag."""
    (connection,) = server.state.connections
    ledger = connection.channels[1].ledger  # type: ignore[attr-defined]
    assert list(ledger.outstanding) == sorted(ledger.outstanding)
    assert all(tag == delivery.tag for tag, delivery in ledger.outstanding.items())
    return {tag: delivery.queued.message.body for tag, delivery in ledger.outstanding.items()}


def test_reordered_delivery_follows_the_next_delivery_and_tags_stay_ascending(server: FaultServer) -> None:
    rule = server.faults.on("basic.deliver", body=b"1").reorder()
    client = consumer(server, b"1", b"2", b"3")
    assert bodies_and_tags(client) == [(b"2", 1), (b"1", 2), (b"3", 3)]
    assert unsettled(server) == {1: b"2", 2: b"1", 3: b"3"}
    assert (rule.hits, rule.held) == (1, 0)
    assert "basic.deliver" in str(rule) and "let the next one overtake it" in str(rule)


@pytest.mark.parametrize(
    ("ack", "left"),
    [
        (m.BasicAck(delivery_tag=1), {2: b"1", 3: b"3"}),
        (m.BasicAck(delivery_tag=2), {1: b"2", 3: b"3"}),
        (m.BasicAck(delivery_tag=1, multiple=True), {2: b"1", 3: b"3"}),
        (m.BasicAck(delivery_tag=2, multiple=True), {3: b"3"}),
        (m.BasicAck(delivery_tag=0, multiple=True), {}),
    ],
    ids=["first", "second", "up to the first", "up to the second", "all"],
)
def test_an_ack_settles_the_message_that_came_with_its_tag(
    server: FaultServer, ack: m.BasicAck, left: dict[int, bytes]
) -> None:
    server.faults.on("basic.deliver").reorder().once()
    client = consumer(server, b"1", b"2", b"3")
    client.send(ack)
    assert unsettled(server) == left


def test_a_rejected_delivery_returns_to_its_place(server: FaultServer) -> None:
    server.faults.on("basic.deliver").reorder().once()
    client = consumer(server, b"1", b"2")
    assert bodies_and_tags(client) == [(b"2", 1), (b"1", 2)]
    client.call(m.BasicCancel(consumer_tag="tag"), m.BasicCancelOk)
    client.send(m.BasicReject(delivery_tag=2, requeue=True))
    assert [queued.message.body for queued in server.vhost.queues["q"].ready] == [b"1"]
    assert unsettled(server) == {1: b"2"}


def test_reorder_swaps_deliveries_in_pairs(server: FaultServer) -> None:
    rule = server.faults.on("basic.deliver").reorder()
    client = consumer(server, b"1", b"2", b"3", b"4", no_ack=True)
    assert bodies_and_tags(client) == [(b"2", 1), (b"1", 2), (b"4", 3), (b"3", 4)]
    assert rule.hits == 2
    assert not unsettled(server)


@pytest.mark.parametrize("end", [Rule.remove, Rule.release], ids=["removed", "released"])
def test_a_delivery_without_a_successor_is_sent_when_its_rule_is_removed_or_released(
    server: FaultServer, end: Callable[[Rule], object]
) -> None:
    rule = server.faults.on("basic.deliver").reorder()
    client = consumer(server, b"1")
    assert (rule.held, bodies_and_tags(client)) == (1, [])
    end(rule)
    assert (rule.held, bodies_and_tags(client)) == (0, [(b"1", 1)])
    client.send(m.BasicAck(delivery_tag=1))
    assert not unsettled(server)


def test_a_delivery_without_a_successor_returns_to_its_queue_with_its_connection(server: FaultServer) -> None:
    rule = server.faults.on("basic.deliver").reorder()
    client = consumer(server, b"1")
    client.connection.receive_eof()
    assert rule.held == 0
    assert [queued.message.body for queued in server.vhost.queues["q"].ready] == [b"1"]


def test_a_delivery_is_overtaken_on_its_own_channel_only(server: FaultServer) -> None:
    server.faults.on("basic.deliver", body=b"1").reorder()
    client = consumer(server, b"1")
    client.open_channel(2)
    client.declare("other")
    client.consume("other", channel=2)
    client.publish(b"elsewhere", routing_key="other")
    assert client.delivery(2).body == b"elsewhere"
    client.publish(b"2", routing_key="q")
    assert bodies_and_tags(client) == [(b"2", 1), (b"1", 2)]


def test_a_duplicate_is_overtaken_with_its_delivery(server: FaultServer) -> None:
    server.faults.on("basic.deliver", body=b"1").duplicate().reorder()
    client = consumer(server, b"1", b"2")
    assert bodies_and_tags(client) == [(b"2", 1), (b"1", 2), (b"1", 3)]
    assert unsettled(server) == {1: b"2", 2: b"1"}
    client.send(m.BasicAck(delivery_tag=3))
    client.send(m.BasicAck(delivery_tag=2, multiple=True))
    assert not unsettled(server)


def test_overtaken_transfer_of_0_10_keeps_its_id() -> None:
    server = server_0_10.FaultServer()
    session = server.session_with("q", b"consumer")
    session.subscribe("q")
    server.faults.on("message.transfer", direction="sent", body=b"one").reorder()
    for body in (b"one", b"two", b"three"):
        session.publish(body)
    assert [(each.id, each.body) for each in session.transfers()] == [(1, b"two"), (0, b"one"), (2, b"three")]
    session.accept(1)
    assert list(session.end.ledger.outstanding) == [0, 2]


@pytest.mark.parametrize(
    ("methods", "how", "error"),
    [
        (
            ("basic.publish",),
            {},
            "reorder.. is for basic.deliver and message.transfer, not for a basic.publish",
        ),
        (("basic.get-ok",), {}, "not for a basic.get-ok"),
        (("confirm",), {}, "not for a publisher confirm"),
        (("message.transfer",), {}, "direction='sent'"),
        (("message.transfer",), {"direction": "sent", "protocol": "0-9"}, "in 0-9 a transfer is a request"),
        (("basic.deliver", "message.transfer"), {"direction": "sent"}, "make a rule for each"),
    ],
    ids=["publish", "get", "confirm", "received", "0-9", "both"],
)
def test_reorder_of_a_method_without_an_order_is_an_error(
    faults: Faults, methods: tuple[str, ...], how: dict[str, Any], error: str
) -> None:
    with pytest.raises(FaultError, match=error):
        faults.on(*methods, **how).reorder()


def test_deliveries_keep_their_order_after_the_reorder_rule_is_removed(server: FaultServer) -> None:
    client: Client = consumer(server, b"1", b"2")
    with server.faults.on("basic.deliver").reorder():
        client.publish(b"3", routing_key="q")
        client.publish(b"4", routing_key="q")
    client.publish(b"5", routing_key="q")
    assert bodies_and_tags(client) == [(b"1", 1), (b"2", 2), (b"4", 3), (b"3", 4), (b"5", 5)]
