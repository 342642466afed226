"""What a proxy costs: pika with a RabbitMQ, directly and through a `Proxy`, in turns.

    python -m compat_tests.benchmarks.proxy [--series 4.3] [--rounds 7]

The proxy runs in a thread of the client's process, as in a test. A ratio is the time through the proxy by the
time of the direct connection beside it; printed are their median, and the smallest and the largest.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

from compat_tests.benchmarks.load import rabbitmq_serving
from compat_tests.benchmarks.side_by_side import pika_steps as steps
from fakeamqp import Proxy

_BODY = b"x" * 100
_CASES: dict[str, tuple[Callable[[str, int, bytes], Iterator[None]], int]] = {
    "publish, then consume": (steps.consumed, 10_000),
    "publish with confirms": (steps.confirmed, 3_000),
}


def seconds(case: str, url: str) -> float:
    """The time of a case."""
    function, count = _CASES[case]
    run = function(url, count, _BODY)
    next(run)
    began = time.perf_counter()
    next(run)
    took = time.perf_counter() - began
    next(run, None)
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", default="4.3")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with rabbitmq_serving(options.series) as address:
        direct = f"amqp://guest:guest@{address.host}:{address.port}/%2F"
        with Proxy(direct) as proxy:
            for case in _CASES:
                pairs = [(seconds(case, direct), seconds(case, proxy.url)) for _ in range(options.rounds)]
                ratios = sorted(through / alone for alone, through in pairs)
                print(
                    f"{case:24}{statistics.median(ratios):.2f} times the time of a direct connection "
                    f"({ratios[0]:.2f} to {ratios[-1]:.2f}), "
                    f"{statistics.median(alone for alone, _ in pairs):.2f} s directly"
                )


if __name__ == "__main__":
    main()
