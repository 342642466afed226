"""The cases that are measured side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from compat_tests.benchmarks.side_by_side import aio_pika_steps, pika_steps, proton_steps
from compat_tests.benchmarks.side_by_side.targets import IN_LOOP, IN_THREAD, WITHOUT_1_0

__all__ = ["CASES", "Case", "Steps"]

Steps = Callable[[str, int, bytes], Iterator[None] | AsyncIterator[None]]
_KB = 1000


@dataclass(frozen=True)
class Case:
    """What a client does many times."""

    name: str
    steps: Steps
    """From the URL, the number of operations and a body: prepares, is measured, closes; see `pika_steps`."""
    count: int
    """The operations of one run: a tenth to a fifth of a second on a quiet machine."""
    body: int = 100
    threads: int = 1
    """How many clients share the operations, each with a connection."""
    timed: bool = False
    """Whether the tables show the time of an operation, not how many there are in a second."""
    only: str | None = None
    """The one target that it is about."""

    def on(self, target: str) -> bool:
        """Whether it is measured there: blocking clients would block the event loop of a broker."""
        client = self.name.partition(":")[0]
        if self.only is not None:
            return target == self.only
        if client == "proton" and target in WITHOUT_1_0:
            return False
        return target != IN_LOOP or client not in ("pika", "proton")


CASES = (
    Case("pika: publish", pika_steps.published, 3000),
    Case("pika: publish, 10 kB", pika_steps.published, 1500, 10 * _KB),
    Case("pika: publish then consume", pika_steps.consumed, 2000),
    Case("pika: publish then consume, 10 kB", pika_steps.consumed, 1000, 10 * _KB),
    Case("pika: publish then consume, 4 threads", pika_steps.consumed, 2000, threads=4),
    Case("pika: publish then consume, 10 kB, 4 threads", pika_steps.consumed, 1000, 10 * _KB, threads=4),
    Case("pika: consume, ack each", pika_steps.acknowledged, 1500),
    Case("pika: consume, ack every 50", partial(pika_steps.acknowledged, batch=50), 2000),
    Case("pika: confirmed publish, window 1", pika_steps.confirmed, 600),
    Case("pika: confirmed publish, window 1, 10 kB", pika_steps.confirmed, 500, 10 * _KB),
    Case("pika: confirmed publish, window 1, 4 threads", pika_steps.confirmed, 600, threads=4),
    Case("pika: confirmed publish, window 100", partial(pika_steps.confirmed_in_a_window, window=100), 2000),
    Case("pika: declare", pika_steps.declared, 600, timed=True),
    Case("pika: get", pika_steps.got, 600, timed=True),
    Case("pika: connect to close", pika_steps.conversations, 15, timed=True),
    Case("pika: broker start to stop", pika_steps.broker_per_test, 15, timed=True, only=IN_THREAD),
    Case("aio-pika: publish", aio_pika_steps.published, 1500),
    Case("aio-pika: publish then consume", aio_pika_steps.consumed, 1000),
    Case("aio-pika: publish then consume, 10 kB", aio_pika_steps.consumed, 700, 10 * _KB),
    Case("aio-pika: consume, ack each", aio_pika_steps.acknowledged, 1000),
    Case("aio-pika: consume, ack every 50", partial(aio_pika_steps.acknowledged, batch=50), 1500),
    Case("aio-pika: confirmed publish, window 1", aio_pika_steps.confirmed, 500),
    Case("aio-pika: confirmed publish, window 100", partial(aio_pika_steps.confirmed, window=100), 1000),
    Case("aio-pika: declare", aio_pika_steps.declared, 500, timed=True),
    Case("aio-pika: get", aio_pika_steps.got, 500, timed=True),
    Case("aio-pika: connect to close", aio_pika_steps.conversations, 40, timed=True),
    Case("aio-pika: broker start to stop", aio_pika_steps.broker_per_test, 40, timed=True, only=IN_LOOP),
    Case("proton: confirmed publish", proton_steps.confirmed, 2000),
    Case("proton: consume, accept each", proton_steps.consumed, 2000),
    Case("simulation: test with 20 messages", aio_pika_steps.simulated, 10, timed=True, only=IN_LOOP),
)
