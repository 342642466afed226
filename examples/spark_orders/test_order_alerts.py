from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the Spark examples need PySpark: pip install 'fakeamqp[spark]'")

import pika
from order_alerts import ALERTS, ALERTS_QUEUE, DEAD, ORDERS, POISON, SHOP, declare, results, totals
from pyspark.testing import assertDataFrameEqual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pika.adapters.blocking_connection import BlockingChannel
    from pyspark.sql import SparkSession

    from fakeamqp.faults import Faults
    from fakeamqp.spark.testing import AmqpStream

DAY = "2024-05-01"


class Shop:
    """Sends orders, and reads the messages that the job makes of them."""

    def __init__(self, channel: BlockingChannel) -> None:
        declare(channel)
        channel.confirm_delivery()
        self._channel = channel

    def send(self, body: bytes, **properties: Any) -> None:
        self._channel.basic_publish(SHOP, "order.placed", body, pika.BasicProperties(**properties))

    def order(self, order_id: str, customer: str, total: object, time: str) -> None:
        order = {"order_id": order_id, "customer": customer, "total": total, "at": f"{DAY}T{time}Z"}
        self.send(json.dumps(order).encode())

    def close_windows(self) -> None:
        """Send an order that is much newer than the others, which ends their windows."""
        self.order("the last", "nobody", 0, "23:59:59")

    def messages(self, queue: str) -> list[tuple[pika.BasicProperties, bytes]]:
        """Take all messages from a queue, as pairs of properties and body."""
        found: list[tuple[pika.BasicProperties, bytes]] = []
        while (message := self._channel.basic_get(queue, auto_ack=True))[0] is not None:
            found.append(message[1:])
        return found

    def alerts(self) -> list[tuple[str, float, int]]:
        """Customer, total and number of orders of every alert, sorted."""
        alerts = [json.loads(body) for _, body in self.messages(ALERTS_QUEUE)]
        return sorted((alert["customer"], alert["total"], alert["orders"]) for alert in alerts)


@pytest.fixture
def shop(amqp_spark: SparkSession, pika_channel: BlockingChannel) -> Iterator[Shop]:
    yield Shop(pika_channel)
    # Needed only where the broker is a real one.
    for queue in (ORDERS, ALERTS_QUEUE, POISON):
        pika_channel.queue_delete(queue)
    for exchange in (SHOP, ALERTS, DEAD):
        pika_channel.exchange_delete(exchange)


@pytest.fixture
def process_all(shop: Shop, amqp_stream: AmqpStream) -> Callable[[], None]:
    """Runs the job until it has processed all messages; the first call starts it."""

    def process_all() -> None:
        if amqp_stream.query is None:
            amqp_stream.start(results, queue=ORDERS, exchangeColumn="exchange")
        amqp_stream.process_all()

    return process_all


def test_totals_are_those_of_a_customer_and_five_minutes(amqp_spark: SparkSession) -> None:
    """The function `totals` needs no broker and no stream."""

    def at(minute: int, second: int = 0) -> datetime:
        return datetime(2024, 5, 1, 12, minute, second, tzinfo=timezone.utc)

    orders = amqp_spark.createDataFrame(
        [
            ("ann", Decimal(60), at(0)),
            ("ann", Decimal("40.50"), at(4, 59)),
            ("ann", Decimal(7), at(5)),
            ("bob", Decimal(8), at(5)),
        ],
        "customer STRING, total DECIMAL(10, 2), at TIMESTAMP",
    )
    expected = amqp_spark.createDataFrame(
        [
            ("ann", (at(0), at(5)), Decimal("100.50"), 2),
            ("ann", (at(5), at(10)), Decimal(7), 1),
            ("bob", (at(5), at(10)), Decimal(8), 1),
        ],
        "customer STRING, window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, total DECIMAL(20, 2), "
        "orders BIGINT",
    )
    assertDataFrameEqual(totals(orders), expected)


def test_who_orders_for_much_within_five_minutes_raises_an_alert(
    shop: Shop, process_all: Callable[[], None], pika_channel: BlockingChannel
) -> None:
    of_carl = pika_channel.queue_declare("", exclusive=True).method.queue
    pika_channel.queue_bind(of_carl, ALERTS, "alert.carl")
    shop.order("1", "ann", 60, "12:00:00")
    shop.order("2", "bob", 60, "12:00:00")
    shop.order("3", "ann", 40.5, "12:04:59")
    shop.order("4", "bob", 60, "12:05:00")
    shop.order("5", "carl", 200, "12:05:00")
    shop.close_windows()
    process_all()

    [(properties, body)] = shop.messages(of_carl)
    assert properties.message_id == "carl-1714565100"
    assert json.loads(body) == {
        "customer": "carl",
        "total": 200,
        "orders": 1,
        "from": "2024-05-01T12:05:00.000Z",
        "to": "2024-05-01T12:10:00.000Z",
    }
    assert shop.alerts() == [("ann", 100.5, 2), ("carl", 200, 1)]
    assert shop.messages(POISON) == []


def test_an_order_that_comes_twice_counts_once(shop: Shop, process_all: Callable[[], None]) -> None:
    """In one batch, and in a later one."""
    shop.order("1", "ann", 60, "12:00:00")
    shop.order("1", "ann", 60, "12:00:00")
    process_all()
    shop.order("1", "ann", 60, "12:00:00")
    shop.order("2", "ann", 50, "12:01:00")
    shop.close_windows()
    process_all()
    assert shop.alerts() == [("ann", 110, 2)]


def test_an_order_may_be_ten_minutes_late_and_no_more(
    shop: Shop, process_all: Callable[[], None], amqp_stream: AmqpStream
) -> None:
    shop.order("1", "ann", 101, "12:00:00")
    shop.order("2", "ann", 102, "12:30:00")
    process_all()
    shop.order("3", "ann", 500, "12:04:00")
    shop.order("4", "ann", 103, "12:21:00")
    shop.close_windows()
    process_all()

    assert shop.alerts() == [("ann", 101, 1), ("ann", 102, 1), ("ann", 103, 1)]
    assert amqp_stream.query is not None
    states = [state for batch in amqp_stream.query.recentProgress for state in batch.stateOperators]
    assert sum(state.numRowsDroppedByWatermark for state in states) == 1


def test_poison_is_put_aside_with_its_reason_and_stops_nothing(
    shop: Shop, process_all: Callable[[], None]
) -> None:
    good: dict[str, object] = {"order_id": "1", "customer": "ann", "total": 101, "at": f"{DAY}T12:00:00Z"}
    of_fields: dict[str, dict[str, object]] = {
        'field total is not a number of type DECIMAL(10,2): "dear"': {"total": "dear"},
        "field customer is null": {"customer": None},
        "the customer is no name": {"customer": "#"},
        "the total is negative": {"total": -1},
        "the order is of tomorrow": {"at": "2999-01-01T00:00:00Z"},
    }
    poison = {
        b"\xff": "not valid UTF-8",
        b"[]": "not a JSON object: []",
        **{json.dumps({**good, **wrong}).encode(): reason for reason, wrong in of_fields.items()},
    }
    for body in (*poison, json.dumps(good).encode()):
        shop.send(body)
    shop.send(b"a pear", message_id="m-1", headers={"tenant": "north", "tries": 3})
    shop.close_windows()
    process_all()

    assert shop.alerts() == [("ann", 101, 1)]
    *letters, (properties, body) = sorted(shop.messages(POISON), key=lambda letter: letter[1] == b"a pear")
    assert {body: properties.headers["x-reason"] for properties, body in letters} == poison
    assert (body, properties.message_id) == (b"a pear", "m-1")
    assert properties.headers == {
        "tenant": "north",
        "tries": "3",
        "x-reason": "not JSON",
        "x-original-exchange": SHOP,
        "x-original-routing-key": "order.placed",
        "x-original-queue": ORDERS,
    }


class Rush:
    """Many orders: a lost or duplicate order changes an alert."""

    customers = tuple(f"customer-{number}" for number in range(20))
    expected = sorted((customer, 15 * 10.0, 15) for customer in customers)

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def send(self, rounds: range = range(15)) -> None:
        for number in rounds:
            for customer in self.customers:
                self._shop.order(f"{customer}-{number}", customer, 10, f"12:00:{number:02}")


@pytest.fixture
def rush(shop: Shop) -> Rush:
    return Rush(shop)


def test_a_connection_that_drops_loses_nothing(
    shop: Shop, rush: Rush, process_all: Callable[[], None], amqp_faults: Faults
) -> None:
    """The source connects again by itself; what it had not put into its spool comes once more."""
    amqp_faults.on("basic.deliver", queue=ORDERS).on_call(200).disconnect("reset")
    rush.send()
    shop.close_windows()
    process_all()
    assert shop.alerts() == rush.expected


def test_a_connection_that_drops_while_alerts_are_sent_loses_none(
    shop: Shop, rush: Rush, process_all: Callable[[], None], amqp_faults: Faults
) -> None:
    """The sink publishes again what was not confirmed, under the same ids."""
    amqp_faults.on("basic.publish", exchange=ALERTS).on_call(5).disconnect("reset")
    rush.send()
    shop.close_windows()
    process_all()
    assert sorted(set(shop.alerts())) == rush.expected


def test_alerts_that_are_refused_are_sent_after_a_restart(
    shop: Shop, rush: Rush, process_all: Callable[[], None], amqp_stream: AmqpStream, amqp_faults: Faults
) -> None:
    """A full queue refuses one. The sink does not publish it again, so the query fails."""
    amqp_faults.on("basic.publish", exchange=ALERTS).on_call(5).nack()
    rush.send()
    shop.close_windows()
    amqp_stream.start(results, queue=ORDERS, exchangeColumn="exchange")
    amqp_stream.wait_failed()
    amqp_stream.restart()
    process_all()
    assert sorted(set(shop.alerts())) == rush.expected


def test_after_a_crash_alerts_may_come_twice_but_under_one_id(
    amqp_spark: SparkSession, shop: Shop, rush: Rush, process_all: Callable[[], None], amqp_stream: AmqpStream
) -> None:
    """The crash comes after alerts were sent, and before Spark has recorded it."""
    # Alerts come with the next message then, and not in a batch without any before the crash can be prepared.
    amqp_spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    try:
        rush.send()
        shop.close_windows()
        process_all()
        assert shop.alerts() == []
        with amqp_stream.crash():
            shop.close_windows()
        amqp_stream.restart()
        process_all()
    finally:
        amqp_spark.conf.unset("spark.sql.streaming.noDataMicroBatches.enabled")

    alerts = [(properties.message_id, body) for properties, body in shop.messages(ALERTS_QUEUE)]
    assert set(Counter(alerts).values()) == {2}
    by_id = dict(alerts)
    assert len(by_id) == len(set(alerts)) == len(rush.expected)
    assert {json.loads(body)["customer"] for body in by_id.values()} == set(rush.customers)


def test_a_crash_of_the_consumer_loses_nothing(
    shop: Shop, rush: Rush, process_all: Callable[[], None], amqp_stream: AmqpStream
) -> None:
    rush.send(range(8))
    process_all()
    rush.send(range(8, 15))
    amqp_stream.crash("source")
    amqp_stream.restart()
    shop.close_windows()
    process_all()
    assert shop.alerts() == rush.expected
