"""The sink and the source of Spark on RabbitMQ: every type of a header comes back exactly."""

from __future__ import annotations

import pika
import pytest

from compat_tests.differential.comparison import SERIES
from compat_tests.unit.spark.round_trip import check

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("series", SERIES.values(), ids=str)
def test_each_header_type_survives_spark_round_trip_on_rabbitmq(beside):
    url = beside.node.url
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        for headers_format in ("map", "json"):
            channel.queue_declare("headers")
            check(url, "headers", headers_format)
            channel.queue_delete("headers")
