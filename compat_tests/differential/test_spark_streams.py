"""The tests of readers that know a stream again, on RabbitMQ of the default personality's series."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.differential.broker_of_node import BrokerOfNode
from compat_tests.differential.test_spark_suites import of_node, series, suite_of  # noqa: F401
from compat_tests.unit.spark.conftest import no_idle_connections  # noqa: F401
from compat_tests.unit.spark.stream import test_identity
from compat_tests.unit.spark.stream.conftest import follow, log, source  # noqa: F401
from compat_tests.unit.spark.stream.test_identity import read_ten  # noqa: F401


@pytest.fixture
def broker(of_node: BrokerOfNode) -> BrokerOfNode:  # noqa: F811
    of_node.channel.exchange_delete("orders")
    for queue in (
        "log",
        "short",
        "orders",
        "orders-east",
        "more",
        *(f"orders-{number}" for number in range(6)),
    ):
        of_node.channel.queue_delete(queue)
    return of_node


# They need segments of 400 bytes. RabbitMQ has larger ones, and counts what is in them every five seconds.
_RETENTION = {
    f"test_identity_{name}"
    for name in (
        "retention_of_read_messages_raises_no_data_loss",
        "retention_of_unread_messages_raises_data_loss",
        "batch_of_new_stream_begins_at_its_first_retained_message",
    )
}
globals().update(
    (name, test) for name, test in suite_of(test_identity, "log", "follow") if name not in _RETENTION
)
