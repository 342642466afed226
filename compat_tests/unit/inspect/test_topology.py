from __future__ import annotations

import dataclasses

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.inspect import NoSuchExchange, NoSuchQueue, NoSuchVirtualHost
from fakeamqp.inspect.topology import (
    consumer_views,
    exchange_view,
    exchange_views,
    policy_views,
    queue_view,
    queue_views,
)
from fakeamqp.model.operations import carry_out
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def test_queue_view_has_the_declared_options_and_arguments(server: Server, client: Client):
    client.declare("orders", durable=True, auto_delete=True, arguments={"x-max-length": 5})
    queue = queue_view(server.state, "orders")
    assert (queue.name, queue.virtual_host) == ("orders", "/")
    assert (queue.durable, queue.exclusive, queue.owner, queue.auto_delete) == (True, False, None, True)
    assert queue.arguments == {"x-max-length": 5, "x-queue-type": "classic"}
    assert (queue.ready, queue.unacked, queue.consumers, queue.messages, queue.bindings) == (0, 0, (), (), ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        queue.ready = 1


def test_exclusive_queue_view_names_the_owning_connection(server: Server, client: Client):
    client.declare("mine", exclusive=True)
    queue = queue_view(server.state, "mine")
    assert (queue.exclusive, queue.owner) == (True, client.connection.name)


def test_queue_view_repr_has_counts_of_ready_and_unacked_messages(server: Server, client: Client):
    client.declare("orders")
    for _ in range(4):
        client.publish(routing_key="orders")
    client.get("orders")
    assert repr(queue_view(server.state, "orders")) == "<queue 'orders' ready=3 unacked=1 consumers=0>"


def test_consumer_views_are_in_order_of_subscription(server: Server):
    client = server.client(channels=2)
    client.declare("orders")
    client.call(m.BasicQos(prefetch_count=2), m.BasicQosOk, 1)
    client.consume("orders", "first", arguments={"x-priority": 7})
    client.consume("orders", "second", channel=2, no_ack=True)
    for _ in range(3):
        client.publish(routing_key="orders")
    first, second = queue_view(server.state, "orders").consumers
    assert (first.tag, first.queue, first.connection, first.channel) == (
        "first",
        "orders",
        client.connection.name,
        1,
    )
    assert (first.prefetch, first.unacked, first.no_ack, first.priority) == (2, 2, False, 7)
    assert first.arguments == {"x-priority": 7}
    assert (second.tag, second.channel, second.prefetch, second.unacked, second.no_ack) == (
        "second",
        2,
        0,
        0,
        True,
    )
    where = client.connection.name
    assert repr(first) == (
        f"<consumer 'first' of queue 'orders' on {where} channel 1 unacked=2 prefetch=2 priority=7>"
    )
    assert repr(second) == f"<consumer 'second' of queue 'orders' on {where} channel 2 no_ack>"


def test_consumer_view_shows_the_lowest_applicable_prefetch(server: Server, client: Client):
    client.declare("orders")
    client.call(m.BasicQos(prefetch_count=10), m.BasicQosOk)
    client.call(m.BasicQos(prefetch_count=4, global_=True), m.BasicQosOk)
    client.consume("orders", exclusive=True)
    [consumer] = queue_view(server.state, "orders").consumers
    assert (consumer.prefetch, consumer.exclusive) == (4, True)
    assert repr(consumer).endswith("unacked=0 prefetch=4 exclusive>")


def test_binding_views_are_shown_for_queues_and_exchanges(server: Server, client: Client):
    client.declare("orders")
    client.call(m.ExchangeDeclare(exchange="events", type="topic", durable=True), m.ExchangeDeclareOk)
    client.call(m.ExchangeBind(destination="events", source="amq.fanout"), m.ExchangeBindOk)
    client.bind("orders", "events", "order.*", arguments={"why": "test"})
    events = exchange_view(server.state, "events")
    assert (events.name, events.type, events.durable, events.auto_delete, events.internal) == (
        "events",
        "topic",
        True,
        False,
        False,
    )
    [binding] = events.bindings
    assert (binding.source, binding.destination, binding.destination_kind) == ("events", "orders", "queue")
    assert (binding.routing_key, binding.arguments) == ("order.*", {"why": "test"})
    assert queue_view(server.state, "orders").bindings == (binding,)
    [between] = exchange_view(server.state, "amq.fanout").bindings
    assert (between.destination, between.destination_kind) == ("events", "exchange")
    assert repr(events) == "<exchange 'events' type=topic durable bindings=1>"
    assert repr(binding) == "<binding 'events' -> 'orders' by 'order.*' arguments={'why': 'test'}>"
    assert repr(between) == "<binding 'amq.fanout' -> exchange 'events' by ''>"


def test_queue_and_exchange_views_are_in_declaration_order(server: Server, client: Client):
    for name in ("b", "a"):
        client.declare(name)
        client.call(m.ExchangeDeclare(exchange=name, type="direct"), m.ExchangeDeclareOk)
    assert [each.name for each in queue_views(server.state)] == ["b", "a"]
    exchanges = [each.name for each in exchange_views(server.state).of("/")]
    assert exchanges[-2:] == ["b", "a"]
    assert "amq.topic" in exchanges


def test_views_cover_all_virtual_hosts_or_a_given_virtual_host(server: Server, client: Client):
    shop = server.state.add_virtual_host("shop")
    shop.queues.declare("orders")
    client.declare("q")
    client.consume("q", "tag")
    names = [(each.virtual_host, each.name) for each in queue_views(server.state)]
    assert names == [("/", "q"), ("shop", "orders")]
    assert queue_views(server.state).of("shop") == (queue_view(server.state, "orders", "shop"),)
    assert {each.virtual_host for each in exchange_views(server.state)} == {"/", "shop"}
    assert {each.virtual_host for each in exchange_views(server.state).of("shop")} == {"shop"}
    assert [each.tag for each in consumer_views(server.state)] == ["tag"]
    assert consumer_views(server.state).of("shop") == ()
    carry_out(shop.policies.setting("cap", {"pattern": "", "definition": {"max-length": 1}, "priority": 0}))
    assert [each.name for each in policy_views(server.state)] == ["cap"]
    assert policy_views(server.state).of("/") == ()


def test_a_missing_queue_names_the_near_match(server: Server, client: Client):
    with pytest.raises(NoSuchQueue, match="no queue 'x' in virtual host '/'; there is none at all"):
        queue_view(server.state, "x")
    client.declare("orders")
    client.declare("invoices")
    with pytest.raises(NoSuchQueue, match="no queue 'order' in virtual host '/'; did you mean 'orders'"):
        queue_view(server.state, "order")
    with pytest.raises(LookupError, match="there are 'orders', 'invoices'"):
        queue_view(server.state, "zzz")


def test_a_missing_exchange_or_virtual_host_names_the_near_match(server: Server):
    with pytest.raises(NoSuchExchange, match=r"no exchange 'amq.topics' .* did you mean 'amq.topic'"):
        exchange_view(server.state, "amq.topics")
    server.state.add_virtual_host("tenant-1")
    for views in (queue_views, exchange_views, consumer_views, policy_views):
        with pytest.raises(NoSuchVirtualHost, match="no virtual host 'tenant1'; did you mean 'tenant-1'"):
            views(server.state).of("tenant1")


def test_virtual_hosts_are_separate_and_named_in_view_reprs(server: Server, client: Client):
    server.state.add_virtual_host("other").queues.declare("there")
    assert queue_views(server.state).of("/") == ()
    assert [each.name for each in queue_views(server.state).of("other")] == ["there"]
    view = queue_view(server.state, "there", "other")
    assert repr(view) == "<queue 'there' in virtual host 'other' ready=0 unacked=0 consumers=0>"
    assert "in virtual host 'other' type=direct" in repr(exchange_view(server.state, "", "other"))


def test_undelivered_dead_letters_of_a_quorum_queue_are_counted_as_set_aside() -> None:
    server = Server("rabbitmq-4.3")
    client = server.client()
    held = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "nowhere-yet",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    client.declare("held", durable=True, arguments=held)
    client.publish(routing_key="held", expiration="1000")
    server.advance(2)
    queue = queue_view(server.state, "held")
    assert (queue.ready, queue.set_aside) == (0, 1)
    assert repr(queue) == "<queue 'held' ready=0 unacked=0 consumers=0 set_aside=1>"


def test_classic_queue_sets_no_message_aside(server: Server) -> None:
    client = server.client()
    client.declare("plain")
    client.publish(routing_key="plain")
    assert queue_view(server.state, "plain").set_aside == 0
