"""A query that would read what it writes is refused, and copies are not taken for one."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from fakeamqp import Broker
from fakeamqp.spark.causes import cause_of


@pytest.fixture
def broker(amqp_broker: Broker) -> Broker:
    amqp_broker.load_definitions(
        {
            "queues": [{"name": name, "durable": True} for name in ("a", "b")],
            "exchanges": [{"name": "events", "type": "fanout"}],
            "bindings": [
                {"source": "events", "destination": "a", "destination_type": "queue", "routing_key": ""}
            ],
        }
    )
    amqp_broker.publish(b"1", exchange="events", routing_key="k")
    return amqp_broker


@pytest.fixture
def rows(spark, broker):
    return spark.read.format("amqp").options(**{"amqp.url": broker.url, "queue": "a"}).load()


def write(rows, url: str, **options: str) -> None:
    rows.write.format("amqp").options(**{"amqp.url": url, **options}).mode("append").save()


def test_what_is_read_goes_where_the_options_say(rows, broker):
    write(rows, broker.url, routingKey="b")
    [copy] = broker.queue("b").messages
    assert (copy.exchange, copy.routing_key, broker.queue("a").ready) == ("", "b", 1)


BACK = "OptionError: the query would read its own messages: its rows come from 'a'"


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (lambda rows: rows, {}, f"{BACK}, and have the exchange and the routing key that led there"),
        (lambda rows: rows.select("value"), {"routingKey": "a"}, BACK),
        (
            lambda rows: rows.select(
                F.upper("message_id").alias("message_id"), "queue", F.lit("x").alias("value")
            ),
            {"routingKeyColumn": "queue"},
            "PublishError: row 0 of the task cannot be sent: it would go to queue 'a', which the query reads",
        ),
    ],
    ids=["same columns", "same queue", "queue in a row"],
)
def test_messages_do_not_go_back_to_their_queue(rows, broker, change, options, said):
    with pytest.raises(Exception, match="a") as caught:
        write(change(rows), broker.url, **options)
    assert said in cause_of(caught.value)
    assert broker.queue("a").ready == 1


def test_nor_in_a_stream(spark, broker, amqp_stream):
    with pytest.raises(Exception, match="STREAM_FAILED"):
        amqp_stream.run_available(lambda rows: rows.select("value"), queue="a", routingKey="a")
    assert BACK in amqp_stream.cause


def test_a_queue_of_the_same_name_on_another_broker_is_another_queue(rows):
    with Broker(definitions={"queues": [{"name": "a", "durable": True}]}) as other:
        write(rows, other.url, routingKey="a")
        assert other.queue("a").ready == 1
