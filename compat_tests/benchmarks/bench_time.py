"""Time that a test moves: a retry ladder, and many messages that expire."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.benchmarks import expiry
from compat_tests.benchmarks.ladder import climb
from fakeamqp import Broker

MANY = 100_000


def bench_retry_ladder(benchmark: Any) -> None:
    with Broker(clock="virtual") as broker:
        benchmark(climb, broker)


@pytest.mark.parametrize("dead_lettered", [False, True], ids=["dropped", "dead-lettered"])
def bench_expiry(benchmark: Any, dead_lettered: bool) -> None:
    def filled() -> tuple[tuple[Any, ...], dict[str, Any]]:
        server, _client = expiry.fill(MANY, dead_lettered=dead_lettered)
        return (expiry.TIME_TO_LIVE * MANY,), {"server": server}

    benchmark.pedantic(lambda seconds, server: server.advance(seconds), setup=filled, rounds=3)
