"""A real RabbitMQ answers clients that are replayed as the broker did."""

from __future__ import annotations

import pytest

from compat_tests.differential.comparison import SERIES
from compat_tests.trace.happenings import busy, calls
from fakeamqp import Broker
from fakeamqp.replay import replay


@pytest.mark.parametrize("series", SERIES.values(), ids=str)
@pytest.mark.parametrize("happening", [busy, calls])
def test_rabbitmq_gives_same_replies_to_replayed_trace(series, beside, happening):
    with Broker(personality=series.personality) as broker:
        happening(broker)
        broker.wait_for(lambda: not broker.connections)
        outcome = replay(broker.trace, url=beside.node.url, timeout=20)
    assert outcome.same, str(outcome)
