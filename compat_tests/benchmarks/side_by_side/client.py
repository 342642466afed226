"""A client in a process of its own: `python -m ...side_by_side.client CASE TARGET [URL]`.

For each number that it reads it does the case so many times, and writes a `Measured` as a line of JSON. A
broker in this process is started for each number anew. Another one is at the URL; without a URL it is started
here, so that a profiler sees one case only (see `profile`).
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, nullcontext
from dataclasses import asdict, dataclass
from typing import cast

from compat_tests.benchmarks.side_by_side.cases import CASES, Case
from compat_tests.benchmarks.side_by_side.targets import IN_LOOP, IN_THREAD, running
from fakeamqp import Broker

__all__ = ["Measured", "measure"]

_PATIENCE = 120
"""Seconds after which a measurement ends with the process."""


@dataclass(frozen=True)
class Measured:
    """What one operation took, on average."""

    time: float
    """Microseconds."""
    processor: float
    """Microseconds of processor time of the client's process, with the broker if that is inside."""
    switches: float
    """How often a thread of this process gave up the processor to wait."""


class Meter:
    """Measures a `with` block that does so many operations."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __enter__(self) -> Meter:
        gc.collect()
        self._before = resource.getrusage(resource.RUSAGE_SELF)
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._started
        before, after = self._before, resource.getrusage(resource.RUSAGE_SELF)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        switches = after.ru_nvcsw - before.ru_nvcsw
        self.measured = Measured(
            round(seconds / self._count * 1e6, 2),
            round(processor / self._count * 1e6, 2),
            round(switches / self._count, 3),
        )


def measure(case: Case, target: str, url: str, count: int) -> Measured:
    """Do a case so many times, on a broker in this process or at the URL."""
    if inspect.isasyncgenfunction(case.steps):
        return asyncio.run(_measure_async(case, target, url, count))
    with Broker() if target == IN_THREAD else nullcontext() as broker:
        each = count // case.threads
        clients = [
            case.steps(broker.url if broker else url, each, bytes(case.body)) for _ in range(case.threads)
        ]
        with ThreadPoolExecutor(case.threads) as threads:
            clients = cast("list[Iterator[None]]", clients)
            for client in clients:
                next(client)
            with Meter(each * case.threads) as meter:
                if case.threads == 1:
                    next(clients[0])
                else:
                    list(threads.map(next, clients))
            for client in clients:
                next(client, None)
    return meter.measured


async def _measure_async(case: Case, target: str, url: str, count: int) -> Measured:
    async with AsyncExitStack() as running:
        if target in (IN_THREAD, IN_LOOP):
            runtime = "asyncio" if target == IN_LOOP else "thread"
            url = (await running.enter_async_context(Broker(runtime=runtime))).url
        client = cast("AsyncIterator[None]", case.steps(url, count, bytes(case.body)))
        await anext(client)
        with Meter(count) as meter:
            await anext(client)
        await anext(client, None)
    return meter.measured


def main() -> None:
    """See the module."""
    [name, target, url] = [*sys.argv[1:], ""][:3]
    [case] = [each for each in CASES if each.name == name]
    with nullcontext() if url else running(target) as address:
        for line in sys.stdin:
            signal.alarm(_PATIENCE)
            measured = measure(case, target, url if address is None else address.url, int(line))
            print(json.dumps(asdict(measured)), flush=True)
            signal.alarm(0)


if __name__ == "__main__":
    main()
