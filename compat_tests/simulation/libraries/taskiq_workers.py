"""taskiq with taskiq-aio-pika."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from functools import partial
from typing import Any

from taskiq.api import run_receiver_task
from taskiq.receiver import Receiver
from taskiq_aio_pika import AioPikaBroker, Queue

from compat_tests.simulation.libraries.workload import (
    CHANNELS,
    CONNECTIONS,
    NETWORK,
    Faults,
    Workload,
    broken,
    returns,
    tell,
)
from fakeamqp import Broker

__all__ = ["WORKLOADS"]

_PACKAGES = ("taskiq-aio-pika", "taskiq", "aio-pika", "aiormq")
_SOURCE = "documentation of taskiq: by default a task is acknowledged when its result is saved"


def _broker(broker: Broker, **settings: Any) -> AioPikaBroker:
    return AioPikaBroker(broker.url, qos=5, reconnect_interval=1, **settings)


async def _worker(broker: Broker, faults: Faults, delay: float | None = None) -> None:
    settings = {} if delay is None else {"delay_queue": Queue(name="delays")}
    worker, client = _broker(broker, **settings), _broker(broker, **settings)
    worker.is_worker_process = True
    ran: set[int] = set()

    async def work(number: int) -> int:
        await asyncio.sleep(0.02)
        ran.add(number)
        return number

    worker.register_task(work, "work")
    task = client.register_task(work, "work")
    await worker.startup()
    await client.startup()
    receiving = asyncio.ensure_future(run_receiver_task(worker, max_async_tasks=4))
    kicked: set[int] = set()

    async def kick(number: int) -> Exception | None:
        kicker = task.kicker() if delay is None else task.kicker().with_labels(delay=delay)
        error = await tell(kicker.kiq(number), 120, "kiq")
        if error is None:
            kicked.add(number)
        return error

    with faults.on(broker):
        for number in range(50):
            await asyncio.sleep(0.4)
            await kick(number)
    await asyncio.sleep(60)
    error = await kick(4711)
    if error is not None:
        raise broken("kiq fails a minute after the faults", repr(error))
    await asyncio.sleep(60)
    if receiving.done():
        raise broken("the receiver has ended", repr(receiving))
    if 4711 not in ran:
        raise broken("the worker is not restored")
    if not kicked <= ran:
        raise broken("a task is not run", f"{sorted(kicked - ran)}")
    await broker.queue("taskiq").wait_until_consumed.aio()
    receiving.cancel()
    await returns(asyncio.wait({receiving}), 60, "the receiver")
    await returns(worker.shutdown(), 60, "shutdown")
    await returns(client.shutdown(), 60, "shutdown")


async def _outage(broker: Broker) -> None:
    worker = _broker(broker)
    worker.is_worker_process = True
    ran: set[int] = set()

    async def work(number: int) -> None:
        await asyncio.sleep(0.5)
        ran.add(number)

    task = worker.register_task(work, "work")
    await worker.startup()
    receiving = asyncio.ensure_future(run_receiver_task(worker, max_async_tasks=1))
    await asyncio.sleep(1)
    for number in range(10):
        await task.kiq(number)
    await asyncio.sleep(0.3)
    refused = broker.faults.network.refuse()
    broker.faults.network.reset()
    await asyncio.sleep(100)
    refused.remove()
    await asyncio.sleep(90)
    await returns(task.kiq(10), 30, "kiq")
    await asyncio.sleep(60)
    if receiving.done():
        raise broken("the receiver has ended", repr(receiving))
    if ran != {*range(11)}:
        raise broken("a task is not run", f"{sorted({*range(11)} - ran)}")
    receiving.cancel()
    await returns(asyncio.wait({receiving}), 60, "the receiver")
    await returns(worker.shutdown(), 60, "shutdown")


async def _stop(broker: Broker) -> None:
    worker = _broker(broker)
    worker.is_worker_process = True
    started: Counter[int] = Counter()
    ended: Counter[int] = Counter()

    async def work(number: int) -> None:
        started[number] += 1
        await asyncio.sleep(0.1)
        ended[number] += 1

    task = worker.register_task(work, "work")
    await worker.startup()
    for number in range(30):
        await task.kiq(number)
    finish = asyncio.Event()
    receiver = Receiver(worker, max_async_tasks=3, max_prefetch=2, run_startup=False)
    listening = asyncio.ensure_future(receiver.listen(finish))
    await asyncio.sleep(0.25)
    finish.set()
    await returns(listening, 60, "listen")
    await returns(worker.shutdown(), 60, "shutdown")
    if started != ended:
        raise broken("stop ends a task", f"{started - ended}")
    await broker.wait_until_idle.aio()
    left = {json.loads(message.body)["args"][0] for message in broker.queue("taskiq").messages}
    if left & ended.keys():
        raise broken("a task that was run is still in the queue", f"{sorted(left & ended.keys())}")
    if left | ended.keys() != {*range(30)}:
        raise broken("a task is lost", f"{sorted({*range(30)} - left - ended.keys())}")


WORKLOADS = [
    *(
        Workload(
            f"taskiq worker, {faults.name}",
            _PACKAGES,
            "each task that kiq has sent runs; a minute after the faults everything works",
            _SOURCE,
            partial(_worker, faults=faults),
            faults.words,
            known,
        )
        for faults, known in (
            (NETWORK, {}),
            (CONNECTIONS, {}),
            (
                CHANNELS,
                {
                    "the worker is not restored": "restore-once",
                    "kiq fails a minute after the faults": "restore-once",
                },
            ),
        )
    ),
    Workload(
        "taskiq delayed tasks, network",
        _PACKAGES,
        "each task that kiq has sent with a delay of 3 s is run",
        "README of taskiq-aio-pika, Delays",
        partial(_worker, faults=NETWORK, delay=3),
        NETWORK.words,
    ),
    Workload(
        "taskiq worker, 100 s without broker",
        _PACKAGES,
        "the worker goes on, and every task is run",
        _SOURCE,
        _outage,
        "the connection is reset while tasks run, then refused for 100 s",
    ),
    Workload(
        "taskiq stop",
        _PACKAGES,
        "the receiver waits for its tasks; finished tasks are acknowledged, the others stay in the queue",
        _SOURCE,
        _stop,
    ),
]
