"""Tests written with `amqp_queue` run on a real RabbitMQ: none is skipped, and no queue is left."""

from __future__ import annotations

import pytest

from compat_tests.differential.comparison import SERIES
from compat_tests.plugin.conftest import write_tests  # noqa: F401
from compat_tests.plugin.test_queues import SUITE, TESTS


@pytest.mark.parametrize("series", [SERIES["4.0"], SERIES["4.3"]], ids=str)
def test_suite_with_amqp_queue_passes_on_rabbitmq_and_leaves_no_queue(series, beside, write_tests):  # noqa: F811
    write_tests(SUITE).run("-rs", f"--amqp-real-url={beside.node.url}", passed=TESTS)
    assert "orders-" not in beside.node.evaluate("rabbit_amqqueue:list_names()")
