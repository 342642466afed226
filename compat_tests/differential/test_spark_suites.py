"""The tests of the readers of queues and of the sink, on RabbitMQ of the default personality's series.

`test_spark_streams` and `test_spark_super_streams` are those of the readers of streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from types import ModuleType

import pika
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.differential.broker_of_node import BrokerOfNode
from compat_tests.differential.comparison import SERIES
from compat_tests.unit.spark.conftest import query  # noqa: F401
from compat_tests.unit.spark.queue import test_ack_modes, test_back_pressure, test_redelivery, test_spool
from compat_tests.unit.spark.queue.test_back_pressure import held  # noqa: F401
from compat_tests.unit.spark.shards import test_shards
from compat_tests.unit.spark.shards.test_shards import dies_once, sharded  # noqa: F401
from compat_tests.unit.spark.sink import test_sink
from compat_tests.unit.spark.sink.test_sink import elsewhere, stopped, task  # noqa: F401


@pytest.fixture(scope="module", params=[SERIES["4.3"]], ids=str)
def series(request):
    return request.param


@pytest.fixture(scope="module")
def of_node(series, nodes) -> Iterator[BrokerOfNode]:
    node = nodes.beside(series.name).node
    parameters = pika.URLParameters(node.url)
    parameters.heartbeat = 0
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield BrokerOfNode(node, channel)


@pytest.fixture
def broker(of_node) -> BrokerOfNode:
    for queue in ("alone", "log", "events-0", "events-1", "events-2"):
        of_node.channel.queue_delete(queue)
    of_node.channel.exchange_delete("events")
    of_node.declare("orders", "refunds", "q")
    return of_node


def suite_of(module: ModuleType, *fixtures: str) -> Iterator[tuple[str, object]]:
    """The tests that take a broker or one of the fixtures, by their names and that of the module."""
    suite = module.__name__.rpartition(".test_")[2]
    for name, function in vars(module).items():
        if name.startswith("test_") and {"broker", *fixtures} & signature(function).parameters.keys():
            yield f"test_{suite}_{name.removeprefix('test_')}", function


for suite in (test_spool, test_back_pressure, test_ack_modes, test_redelivery, test_shards, test_sink):
    globals().update(suite_of(suite))
