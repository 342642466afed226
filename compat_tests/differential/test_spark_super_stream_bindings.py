"""The tests of partitions by bindings, on RabbitMQ of the default personality's series with its HTTP API."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pika
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.differential.broker_of_node import BrokerOfNode
from compat_tests.differential.comparison import SERIES
from compat_tests.differential.rabbitmq_node import available
from compat_tests.differential.test_spark_suites import suite_of
from compat_tests.management.recording import node_with_api
from compat_tests.unit.spark.conftest import no_idle_connections  # noqa: F401
from compat_tests.unit.spark.stream import test_super_stream_bindings
from compat_tests.unit.spark.stream.conftest import follow, log  # noqa: F401
from compat_tests.unit.spark.stream.test_super_stream_bindings import (  # noqa: F401
    DEFINITIONS,
    REGIONS,
    api,
    pattern,
    regions,
    source,
)


@pytest.fixture(scope="module", params=[SERIES["4.3"]], ids=str)
def of_node(request: pytest.FixtureRequest) -> Iterator[BrokerOfNode]:
    version = request.param.name
    if (obstacle := available(version)) is not None:
        pytest.skip(obstacle)
    with node_with_api(version) as (node, url):
        node.import_definitions(DEFINITIONS)
        parameters = pika.URLParameters(node.url)
        parameters.heartbeat = 0
        with pika.BlockingConnection(parameters) as connection:
            broker = BrokerOfNode(node, connection.channel())
            broker.admin = SimpleNamespace(management_url=url)
            yield broker


@pytest.fixture
def broker(of_node: BrokerOfNode) -> BrokerOfNode:
    for exchange in ("orders", "copies"):
        of_node.channel.exchange_delete(exchange)
    partitions = (f"orders-{name}" for name in ("0", "africa", *REGIONS))
    matched = "audit.1", "audit.2", "audit.3", "my.audit.1", "audit.1.old", "orders"
    for queue in ("log", "audit", *matched, *partitions):
        of_node.channel.queue_delete(queue)
    return of_node


globals().update(suite_of(test_super_stream_bindings, "log", "follow"))
