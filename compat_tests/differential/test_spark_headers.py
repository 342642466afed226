"""Properties in Spark on RabbitMQ: headers come back exactly, and a digest is the same in each delivery."""

from __future__ import annotations

import pika
import pytest

from compat_tests.differential.comparison import SERIES
from compat_tests.unit.spark.rows import deliveries, round_trip

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("series", SERIES.values(), ids=str)
def test_each_header_type_survives_spark_round_trip_on_rabbitmq(beside):
    url = beside.node.url
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        for headers_format in ("map", "json"):
            channel.queue_declare("headers")
            round_trip.check(url, "headers", headers_format)
            channel.queue_delete("headers")


@pytest.mark.parametrize("series", [SERIES["4.0"], SERIES["4.3"]], ids=str)
def test_digest_is_the_same_in_each_delivery_by_rabbitmq(beside):
    deliveries.check(beside.node.url)
