"""No clock of a broker goes beyond the year 9999, which no datetime can hold."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from fakeamqp import Broker
from fakeamqp.errors import ClockError

END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


@pytest.mark.parametrize("seconds", [1e12, 1e300, 10**300, 10**400, timedelta(days=999_999_999)])
def test_a_clock_does_not_advance_beyond_the_year_9999(seconds: Any):
    with Broker(clock="virtual") as broker:
        before = broker.clock.now()
        with pytest.raises(ClockError, match=r"year 9999|too large"):
            broker.clock.advance(seconds)
        assert broker.clock.now() == before
        broker.clock.advance_to(END)
        assert broker.clock.now() == END
        with pytest.raises(ClockError, match="year 9999"):
            broker.clock.advance(1)


@pytest.mark.parametrize("when", [253_402_300_800, 1e15, 1e300, 10**400])
def test_a_time_beyond_the_year_9999_is_refused(when: Any):
    with pytest.raises(ClockError, match=r"year 9999|too large"):
        Broker(clock="virtual", now=when)
    with Broker(clock="virtual") as broker, pytest.raises(ClockError, match=r"year 9999|too large"):
        broker.clock.advance_to(when)


def test_a_timer_beyond_the_year_9999_is_not_reached():
    with Broker(clock="virtual", now=END - timedelta(seconds=10)) as broker:
        broker.load_definitions(
            {"queues": [{"name": "q", "durable": True, "arguments": {"x-message-ttl": 4_000_000_000}}]}
        )
        broker.publish(b"", routing_key="q", expiration="4000000000")
        assert "expires" in str(broker.clock.timers[0])
        with pytest.raises(ClockError, match="year 9999"):
            broker.clock.advance_to_next()
        assert broker.clock._engine.stepped.jump() is None  # type: ignore[union-attr]
        broker.clock.rate = 1e9
        assert broker.clock.now() <= END
        repr(broker.clock)
        str(broker.trace.timeline())


def test_a_message_with_a_timestamp_beyond_the_year_9999_can_be_shown():
    with Broker() as broker:
        broker.load_definitions({"queues": [{"name": "q", "durable": True}]})
        broker.publish(b"", routing_key="q", timestamp=2**63)
        repr(broker.queue("q").messages)
        str(broker.trace.timeline())
        broker.trace.html()
