from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the Spark examples need PySpark: pip install 'fakeamqp[spark]'")

import pika
from price_sales import ASIDE, ASIDE_QUEUE, BOOKS, BOOKS_QUEUE, PRICES, SALES, declare, drain, lines, waiting
from pyspark.testing import assertDataFrameEqual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pika.adapters.blocking_connection import BlockingChannel
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from fakeamqp.faults import Faults
    from fakeamqp.spark.testing import AmqpStream


class Tills:
    """The tills that send sales, and the books that they end up in."""

    def __init__(self, channel: BlockingChannel) -> None:
        declare(channel)
        channel.confirm_delivery()
        self._channel = channel

    def send(self, body: bytes, **properties: Any) -> None:
        self._channel.basic_publish("", SALES, body, pika.BasicProperties(**properties))

    def sell(self, sale: str, product: str, pieces: int = 1) -> None:
        self.send(json.dumps({"sale": sale, "product": product, "pieces": pieces}).encode())

    def messages(self, queue: str) -> list[tuple[pika.BasicProperties, bytes]]:
        """Take all messages from a queue, as pairs of properties and body."""
        found: list[tuple[pika.BasicProperties, bytes]] = []
        while (message := self._channel.basic_get(queue, auto_ack=True))[0] is not None:
            found.append(message[1:])
        return found

    def count(self, queue: str) -> int:
        count: int = self._channel.queue_declare(queue, passive=True).method.message_count
        return count


@pytest.fixture
def tills(amqp_spark: SparkSession, pika_channel: BlockingChannel) -> Iterator[Tills]:
    yield Tills(pika_channel)
    # Needed only where the broker is a real one.
    for queue in (SALES, BOOKS_QUEUE, ASIDE_QUEUE):
        pika_channel.queue_delete(queue)
    for exchange in (BOOKS, ASIDE):
        pika_channel.exchange_delete(exchange)


@pytest.fixture
def prices(amqp_spark: SparkSession) -> DataFrame:
    rows = [("apple", "fruit", Decimal("0.50")), ("leek", "vegetables", Decimal("1.20"))]
    return amqp_spark.createDataFrame(rows, PRICES)


@pytest.fixture
def night(amqp_stream: AmqpStream, prices: DataFrame) -> Callable[[], StreamingQuery]:
    """Runs the job as it runs every night."""

    def night() -> StreamingQuery:
        return amqp_stream.run_available(
            lambda messages: drain(messages, prices, amqp_stream.options()), queue=SALES
        )

    return night


def test_lines_have_the_amount_and_go_where_their_category_goes(
    amqp_spark: SparkSession, prices: DataFrame
) -> None:
    """Without a broker, and without a stream."""
    bodies = [
        '{"sale": "s-1", "product": "apple", "pieces": 3}',
        '{"sale": "s-2", "product": "leek", "pieces": 1}',
        '{"sale": "s-3", "product": "durian", "pieces": 1}',
    ]
    messages = amqp_spark.createDataFrame(
        [(body, SALES) for body in bodies], "value STRING, routing_key STRING"
    )
    expected = amqp_spark.createDataFrame(
        [
            ('{"sale":"s-1","product":"apple","pieces":3,"amount":1.50}', BOOKS, "sale.fruit", "s-1"),
            ('{"sale":"s-2","product":"leek","pieces":1,"amount":1.20}', BOOKS, "sale.vegetables", "s-2"),
            (bodies[2], ASIDE, SALES, None),
        ],
        "value STRING, exchange STRING, routing_key STRING, message_id STRING",
    )
    assertDataFrameEqual(lines(messages, prices).drop("headers"), expected)


def test_a_look_takes_nothing_out(amqp_spark: SparkSession, tills: Tills, amqp_stream: AmqpStream) -> None:
    for sale, product in (("s-1", "apple"), ("s-2", "apple"), ("s-3", "leek")):
        tills.sell(sale, product)
    queue = amqp_spark.read.format("amqp").options(**amqp_stream.options(queue=SALES)).load()
    expected = amqp_spark.createDataFrame([("apple", 2), ("leek", 1)], "product STRING, sales BIGINT")
    assertDataFrameEqual(waiting(queue), expected)
    assert tills.count(SALES) == 3


def test_a_night_takes_out_all_that_is_there(tills: Tills, night: Callable[[], StreamingQuery]) -> None:
    tills.sell("s-1", "apple", 3)
    tills.sell("s-2", "leek", -1)
    night()
    assert tills.count(SALES) == 0
    tills.sell("s-3", "apple", 1)
    night()
    booked = [
        (properties.message_id, json.loads(body)["amount"])
        for properties, body in tills.messages(BOOKS_QUEUE)
    ]
    assert sorted(booked) == [("s-1", 1.5), ("s-2", -1.2), ("s-3", 0.5)]


def test_what_cannot_be_priced_is_put_aside_and_can_be_sold_again(
    tills: Tills, night: Callable[[], StreamingQuery], amqp_spark: SparkSession, amqp_stream: AmqpStream
) -> None:
    tills.sell("s-1", "durian")
    tills.sell("s-2", "apple", 0)
    tills.send(b"an apple", message_id="m-1", headers={"till": "3"})
    night()
    aside = {body: properties.headers["x-reason"] for properties, body in tills.messages(ASIDE_QUEUE)}
    assert aside == {
        b'{"sale": "s-1", "product": "durian", "pieces": 1}': "no price for durian",
        b'{"sale": "s-2", "product": "apple", "pieces": 0}': "nothing was sold",
        b"an apple": "not JSON",
    }
    assert tills.count(BOOKS_QUEUE) == 0


def test_a_night_that_crashes_is_made_up_for(
    tills: Tills, night: Callable[[], StreamingQuery], amqp_stream: AmqpStream
) -> None:
    """Spark had not noted that the lines were sent, so it sends them again, under the same ids."""
    sales = [f"s-{number}" for number in range(200)]
    for sale in sales:
        tills.sell(sale, "apple")
    with amqp_stream.crash():
        night()
    assert tills.count(SALES) == 0
    night()
    booked = [(properties.message_id, body) for properties, body in tills.messages(BOOKS_QUEUE)]
    assert set(Counter(booked).values()) == {2}
    assert sorted(dict(booked)) == sorted(sales)


def test_a_broker_that_goes_away_at_night_loses_nothing(
    tills: Tills, night: Callable[[], StreamingQuery], amqp_faults: Faults
) -> None:
    amqp_faults.on("basic.deliver", queue=SALES).on_call(50).disconnect("reset")
    sales = [f"s-{number}" for number in range(200)]
    for sale in sales:
        tills.sell(sale, "leek")
    night()
    assert sorted(properties.message_id for properties, _ in tills.messages(BOOKS_QUEUE)) == sorted(sales)
