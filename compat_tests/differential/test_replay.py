"""A real RabbitMQ answers clients that are replayed as the broker did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from compat_tests.trace.happenings import busy, calls
from fakeamqp import Broker
from fakeamqp.replay import replay


@pytest.fixture(scope="module")
def node() -> Iterator[RabbitMQNode]:
    reason = available()
    if reason is not None:
        pytest.skip(reason)
    with RabbitMQNode() as node:
        yield node


@pytest.mark.parametrize("happening", [busy, calls])
def test_a_real_rabbitmq_answers_the_same(node, happening):
    # The nodes at hand are old ones.
    with Broker(personality="rabbitmq-3.13") as broker:
        happening(broker)
        assert broker.wait_for(lambda: not broker.connections)
        outcome = replay(broker.trace, url=node.url, timeout=20)
    assert outcome.same, str(outcome)
