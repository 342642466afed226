"""A query that would read what it writes is refused, and copies are not taken for one."""

from __future__ import annotations

import pytest

from fakeamqp.spark.causes import cause_of


@pytest.fixture
def broker(amqp_broker):
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


def write(rows, url, **options):
    rows.write.format("amqp").options(**{"amqp.url": url, **options}).mode("append").save()


def test_routing_key_option_overrides_destination_of_read_rows(rows, broker):
    write(rows, broker.url, routingKey="b")
    [copy] = broker.queue("b").messages
    assert (copy.exchange, copy.routing_key, broker.queue("a").ready) == ("", "b", 1)


def test_a_batch_may_put_messages_back(rows, broker, tmp_path):
    """Such as those of a backup."""
    rows.write.parquet(str(tmp_path / "backup"))
    backup = rows.sparkSession.read.parquet(str(tmp_path / "backup"))
    write(backup, broker.url)
    assert broker.queue("a").ready == 2


def write_stream(spark, broker, folder, **options):
    url = {"amqp.url": broker.url}
    rows = spark.readStream.format("amqp").options(**url, queue="a", spoolDir=str(folder / "spool")).load()
    write = rows.writeStream.format("amqp").options(**{**url, **options}).trigger(availableNow=True)
    write.start(checkpointLocation=str(folder / "checkpoint")).awaitTermination()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "OptionError: the query may read its own messages"),
        (
            {"routingKey": "a"},
            "PublishError: row 0 of the task cannot be sent: it would go back to the queue",
        ),
    ],
    ids=["as read", "own queue"],
)
def test_messages_of_a_stream_do_not_go_back_to_their_queue(spark, broker, tmp_path, options, said):
    with pytest.raises(Exception, match="a") as caught:
        write_stream(spark, broker, tmp_path, **options)
    assert cause_of(caught.value).removeprefix("fakeamqp.spark.errors.").startswith(said)
    broker.wait_until_idle()
    assert not broker.published


def test_messages_of_a_stream_go_to_another_queue_with_the_columns_of_the_source(spark, broker, tmp_path):
    write_stream(spark, broker, tmp_path, routingKey="b")
    assert [message.body for message in broker.queue("b").messages] == [b"1"]
