"""A real RabbitMQ answers clients that are replayed as the broker did."""

from __future__ import annotations

import pytest

from compat_tests.differential.comparison import SERIES
from compat_tests.trace.happenings import busy, calls
from compat_tests.trace.sessions import record, sessions
from fakeamqp import Broker
from fakeamqp.replay import replay
from fakeamqp.trace import load


@pytest.mark.parametrize("series", SERIES.values(), ids=str)
@pytest.mark.parametrize("happening", [busy, calls])
def test_rabbitmq_gives_same_replies_to_replayed_trace(series, beside, happening):
    with Broker(personality=series.personality) as broker:
        happening(broker)
        broker.wait_for(lambda: not broker.connections)
        outcome = replay(broker.trace, url=beside.node.url, timeout=20)
    assert outcome.same, str(outcome)


@pytest.mark.parametrize("series", [SERIES["4.3"]], ids=str)
@pytest.mark.parametrize("client", sessions())
def test_session_recorded_through_a_proxy_is_replayed_as_the_same(series, beside, client, tmp_path):
    path = tmp_path / "session.jsonl"
    try:
        record(client, beside.node.url, path)
    except (FileNotFoundError, ImportError) as missing:
        pytest.skip(f"needs {missing.filename if isinstance(missing, OSError) else missing.name}")
    recorded = load(path)
    replay(recorded, personality=series.personality).expect_same()
    replay(recorded, url=beside.node.url, timeout=20).expect_same()
