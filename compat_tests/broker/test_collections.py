from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fakeamqp import Broker, Permission, TopicPermission
from fakeamqp.errors import BrokerError
from fakeamqp.inspect import NoSuchConsumer, NoSuchExchange, NoSuchVirtualHost

DEFINITIONS = {
    "vhosts": [{"name": "/"}, {"name": "shop"}],
    "queues": [
        {"name": "orders", "vhost": "/", "durable": True},
        {"name": "orders", "vhost": "shop", "durable": True},
        {"name": "bills", "vhost": "shop", "durable": True},
    ],
}


@pytest.fixture
def shop(broker: Broker) -> Broker:
    broker.load_definitions(DEFINITIONS)
    return broker


def test_collection_is_counted_iterated_and_narrowed(shop: Broker) -> None:
    assert [(each.virtual_host, each.name) for each in shop.queues] == [
        ("/", "orders"),
        ("shop", "orders"),
        ("shop", "bills"),
    ]
    assert (len(shop.queues), len(shop.queues.of("shop")), len(shop.queues.named("orders"))) == (3, 2, 2)
    assert [each.virtual_host for each in shop.queues.of("shop").named("orders")] == ["shop"]
    assert (shop.queues.of("/")[0].name, shop.queues[-1].name) == ("orders", "bills")


def test_collection_contains_names_and_views(shop: Broker) -> None:
    assert "bills" in shop.queues
    assert "bills" not in shop.queues.of("/")
    assert shop.queues[0] in shop.queues
    assert "amq.topic" in shop.exchanges


def test_collection_of_unknown_virtual_host_names_the_nearest(shop: Broker) -> None:
    with pytest.raises(NoSuchVirtualHost, match="did you mean 'shop'"):
        shop.queues.of("shpo")


def test_collection_shows_its_entries(shop: Broker) -> None:
    assert repr(shop.queues.of("/")) == "<1 queues:\n  <queue 'orders' ready=0 unacked=0 consumers=0>\n>"
    assert repr(shop.consumers) == "<no consumers>"


def test_call_of_a_collection_names_the_new_way(shop: Broker) -> None:
    with pytest.raises(TypeError, match=r"write broker.queues.of\('shop'\)"):
        shop.queues("shop")  # type: ignore[operator]


def test_connections_and_channels_have_names(broker: Broker, channel: Any) -> None:
    [connection] = broker.connections
    assert connection.name in broker.connections
    assert list(broker.connections.of("/").named(connection.name)) == [connection]
    assert channel.channel_number in broker.channels


def test_exchange_handle_reads_anew_and_raises_while_there_is_none(broker: Broker, channel: Any) -> None:
    events = broker.exchange("events")
    assert (events.exists, repr(events)) == (False, "<exchange 'events' does not exist>")
    channel.exchange_declare("event", "fanout")
    with pytest.raises(NoSuchExchange, match="did you mean 'event'"):
        events.bindings  # noqa: B018
    channel.exchange_declare("events", "topic")
    channel.queue_declare("orders")
    channel.queue_bind("orders", "events", "order.*")
    assert (events.exists, events.type, events.durable) == (True, "topic", False)
    assert [each.destination for each in events.bindings] == ["orders"]
    assert repr(events) == repr(events.view()) == "<exchange 'events' type=topic bindings=1>"


def test_consumer_handle_reads_anew_and_raises_while_there_is_none(broker: Broker, channel: Any) -> None:
    billing = broker.consumer("billing")
    assert (billing.exists, repr(billing)) == (False, "<consumer 'billing' does not exist>")
    channel.queue_declare("orders")
    channel.basic_qos(prefetch_count=3)
    channel.basic_consume("orders", lambda *_: None, consumer_tag="billing")
    assert (billing.exists, billing.queue, billing.prefetch, billing.unacked) == (True, "orders", 3, 0)
    with pytest.raises(NoSuchConsumer, match=r"no consumer 'biling' .* did you mean 'billing'"):
        broker.consumer("biling").view()
    other = channel.connection.channel()
    other.basic_consume("orders", lambda *_: None, consumer_tag="billing")
    with pytest.raises(
        NoSuchConsumer, match=r"2 consumers .* take one of broker.consumers.named\('billing'\)"
    ):
        billing.queue  # noqa: B018


def test_admin_sets_permissions_at_run_time(broker: Broker) -> None:
    broker.admin.add_user("ann", "secret", permissions={})
    broker.admin.set_permissions("ann", ("", "^orders$", ""))
    broker.admin.set_topic_permissions("ann", "amq.topic", TopicPermission(write="^a", read="^a"))
    [ann] = [each for each in broker._state.access.users.values() if each.name == "ann"]
    assert ann.permissions == {"/": Permission("", "^orders$", "")}
    assert list(ann.topic_permissions) == [("/", "amq.topic")]
    broker.admin.clear_topic_permissions("ann")
    broker.admin.clear_permissions("ann")
    assert (ann.permissions, ann.topic_permissions, broker.admin.users) == ({}, {}, ("guest", "ann"))


@pytest.mark.parametrize(
    "change",
    [
        lambda admin: admin.set_permissions("an", Permission()),
        lambda admin: admin.set_topic_permissions("an", "amq.topic", TopicPermission()),
        lambda admin: admin.clear_topic_permissions("an"),
    ],
)
def test_permissions_of_unknown_user_are_refused(broker: Broker, change: Callable[[Any], None]) -> None:
    broker.admin.add_user("ann", "secret")
    with pytest.raises(BrokerError, match="there is no user 'an'; did you mean 'ann'"):
        change(broker.admin)


def test_broker_has_at_most_40_public_members() -> None:
    members = [name for name in dir(Broker) if not name.startswith("_")]
    assert len(members) <= 40, members
