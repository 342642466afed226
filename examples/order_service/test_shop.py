from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from shop import EXCHANGE, AuditDesk, BillingDesk, OrderDesk, ShippingDesk

from fakeamqp import Broker


@dataclass
class Shop:
    connection: pika.BlockingConnection
    orders: OrderDesk
    billing: BillingDesk
    shipping: ShippingDesk
    audit: AuditDesk

    def run_until(self, done: Callable[[], object]) -> None:
        """Let the desks work until `done()`; pytest's time limit ends a test where that never happens."""
        while not done():
            self.connection.process_data_events(time_limit=0.1)


@pytest.fixture
def shop(pika_connection: BlockingConnection, pika_channel: BlockingChannel) -> Iterator[Shop]:
    yield Shop(
        pika_connection,
        OrderDesk(pika_connection),
        BillingDesk(pika_connection),
        ShippingDesk(pika_connection),
        AuditDesk(pika_connection),
    )
    # Needed only where the broker is a real one.
    for desk in (BillingDesk, ShippingDesk, AuditDesk):
        pika_channel.queue_delete(desk.queue)
    pika_channel.exchange_delete(EXCHANGE)


def test_an_order_goes_through_all_desks(shop: Shop) -> None:
    shop.orders.place("o-1", "eu", 4200)
    shop.run_until(lambda: len(shop.audit.log) == 3)

    assert shop.shipping.shipped == ["o-1"]
    assert shop.audit.log == ["o-1 placed in eu", "o-1 paid in eu", "o-1 shipped in eu"]


def test_an_order_from_overseas_is_billed_and_not_shipped(shop: Shop) -> None:
    shop.orders.place("o-1", "us", 4200)
    shop.orders.place("o-2", "uk", 4200)
    shop.run_until(lambda: len(shop.audit.log) == 5)

    assert "o-1 paid in us" in shop.audit.log
    assert shop.shipping.shipped == ["o-2"]


def test_nothing_is_sent_out_for_free(shop: Shop) -> None:
    shop.orders.place("o-1", "eu", 0)
    shop.run_until(lambda: len(shop.audit.log) == 2)

    assert shop.audit.log == ["o-1 placed in eu", "o-1 refused in eu"]
    assert shop.shipping.shipped == []


def test_each_desk_is_bound_to_what_it_cares_about(amqp_broker: Broker, shop: Shop) -> None:
    bindings = {
        (binding.destination, binding.routing_key) for binding in amqp_broker.exchange(EXCHANGE).bindings
    }
    assert bindings == {
        ("billing", "order.placed.*"),
        ("shipping", "order.paid.eu"),
        ("shipping", "order.paid.uk"),
        ("audit", "order.#"),
    }


def test_shipping_can_be_tested_without_the_other_desks(
    amqp_broker: Broker, pika_connection: BlockingConnection
) -> None:
    shipping = ShippingDesk(pika_connection)
    amqp_broker.publish(json={"id": "o-1"}, exchange=EXCHANGE, routing_key="order.paid.eu")
    while not shipping.shipped:
        pika_connection.process_data_events(time_limit=0.1)

    amqp_broker.expect_published(exchange=EXCHANGE, routing_key="order.shipped.eu", count=1)


def test_events_of_an_order_are_published_in_their_order(amqp_broker: Broker, shop: Shop) -> None:
    shop.orders.place("o-1", "eu", 4200)
    shop.run_until(lambda: len(shop.audit.log) == 3)

    assert [message.routing_key for message in amqp_broker.published] == [
        "order.placed.eu",
        "order.paid.eu",
        "order.shipped.eu",
    ]
