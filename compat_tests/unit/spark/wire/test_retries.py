"""How long a lost connection is tried again: the whole time, and no longer than is of use."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as some

from compat_tests.fuzz.profile import examples
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, LoginRefused, UnreadableAnswer
from fakeamqp.spark.wire import retries as module
from fakeamqp.spark.wire.retries import LONGEST_PAUSE, RetryBudget

LOST = ConnectionLost("it ended")


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


def attempts(timeout, lasts=0.0):
    """When attempts fail that take some seconds each, counted from the first failure."""
    clock, failures = Clock(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", clock)
        retries = RetryBudget(timeout)
        with pytest.raises(ConnectionLost, match=r"^it ended \(tried again for "):
            while True:
                assert len(failures) < 10_000, "they have no end"
                failures.append(clock.now - 100.0)
                clock.now += retries.pause(LOST) + lasts
    return failures


@examples(60)
@given(some.floats(0, 200), some.floats(0, 12))
@example(timeout=5e-324, lasts=0.0)  # Too short to change the clock.
def test_the_last_attempt_is_at_the_end_of_the_time(timeout, lasts):
    failures = attempts(timeout, lasts)
    assert timeout - 1e-9 <= failures[-1]
    assert all(failure < timeout for failure in failures[:-1])
    assert failures[-1] - timeout <= lasts + 1e-9
    assert all(later - earlier <= LONGEST_PAUSE + lasts + 1e-9 for earlier, later in pairwise(failures))


def test_pauses_grow_and_begin_again_after_a_success(monkeypatch):
    monkeypatch.setattr(module, "time", Clock())
    retries = RetryBudget(60)
    first = [retries.pause(LOST) for _ in range(8)]
    assert first == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    retries.succeeded()
    assert retries.pause(LOST) == 0.05


def test_errors_that_another_attempt_would_repeat_are_raised_at_once():
    retries = RetryBudget(60)
    with pytest.raises(LoginRefused, match=r"^wrong password$"):
        retries.pause(LoginRefused("wrong password"))
    with pytest.raises(UnreadableAnswer, match=r"^year 10000$"):
        retries.pause(UnreadableAnswer("year 10000"))
    with pytest.raises(BrokerUnreachable, match="no broker"):
        RetryBudget(0).pause(BrokerUnreachable("no broker"))
