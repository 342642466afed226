from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the Spark examples need PySpark: pip install 'fakeamqp[spark]'")

from stock_table import CHANGES, StockTable, into

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel
    from pyspark.sql import SparkSession

    from fakeamqp.spark.testing import AmqpStream


@pytest.fixture
def send(amqp_spark: SparkSession, pika_channel: BlockingChannel) -> Iterator[Callable[..., None]]:
    """Sends the changes of articles."""
    pika_channel.queue_declare(CHANGES, durable=True)
    pika_channel.confirm_delivery()

    def send(**left: int) -> None:
        for article, number in left.items():
            pika_channel.basic_publish("", CHANGES, json.dumps({"article": article, "left": number}).encode())

    yield send
    pika_channel.queue_delete(CHANGES)  # Needed only where the broker is a real one.


@pytest.fixture
def table(tmp_path: Path) -> StockTable:
    (tmp_path / "table").mkdir()
    return StockTable(tmp_path / "table")


def stock(table: StockTable, spark: SparkSession) -> dict[str, int]:
    return {row.article: row.left for row in table.rows(spark).collect()}


def test_newest_change_of_article_replaces_its_row(
    send: Callable[..., None], table: StockTable, amqp_stream: AmqpStream, amqp_spark: SparkSession
) -> None:
    send(plums=40, pears=7)
    amqp_stream.start(into(table), queue=CHANGES)
    amqp_stream.process_all()
    send(plums=39)
    send(plums=38, figs=5)
    amqp_stream.process_all()
    assert stock(table, amqp_spark) == {"plums": 38, "pears": 7, "figs": 5}


def test_batch_that_runs_again_after_crash_is_merged_once(
    send: Callable[..., None], table: StockTable, amqp_stream: AmqpStream, amqp_spark: SparkSession
) -> None:
    send(plums=40)
    amqp_stream.start(into(table), queue=CHANGES)
    amqp_stream.process_all()
    with amqp_stream.crash():  # The batch is in the table, and Spark does not know that.
        send(plums=39)
    merged = table.batch
    amqp_stream.restart()
    amqp_stream.process_all()
    assert table.batch == merged
    send(pears=7)
    amqp_stream.process_all()
    assert stock(table, amqp_spark) == {"plums": 39, "pears": 7}
