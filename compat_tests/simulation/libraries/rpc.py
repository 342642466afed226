"""`aio_pika.patterns.RPC` over robust connections."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from aio_pika.abc import AbstractRobustChannel
from aio_pika.patterns import RPC

from compat_tests.simulation.libraries.robust import connect
from compat_tests.simulation.libraries.workload import (
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

_PACKAGES = ("aio-pika", "aiormq")
_SOURCE = "docstring of RPC.call: it returns the result, or raises"


async def _multiply(*, x: int, y: int) -> int:
    await asyncio.sleep(0.02)
    return x * y


async def _calls(broker: Broker, faults: Faults, careful: bool) -> None:
    server, client = await connect(broker), await connect(broker)
    called = await RPC.create(await server.channel())
    await called.register("multiply", _multiply, durable=careful)
    channel = await client.channel()
    assert isinstance(channel, AbstractRobustChannel)
    if careful:
        channel.reopen_callbacks.add(_see_returned)
    caller = await RPC.create(channel)

    async def call(number: int) -> None:
        if careful:
            await channel.ready()
        answer = await caller.call("multiply", {"x": number, "y": 2}, delivery_mode=2)
        if answer != 2 * number:
            raise broken("a call gets a wrong answer", f"{number} * 2 = {answer}")

    with faults.on(broker):
        for number in range(40):
            await asyncio.sleep(0.2)
            await tell(call(number), 300, "a call")
    await asyncio.sleep(60)
    error = await tell(call(4711), 60, "a call")
    if error is not None:
        raise broken("a call fails a minute after the faults", repr(error))
    await returns(client.close(), 60, "close")
    await returns(server.close(), 60, "close")


async def _see_returned(channel: Any) -> None:
    (await channel.get_underlay_channel()).on_return_callbacks.add(channel._on_return)


async def _register_later(broker: Broker) -> None:
    server, client = await connect(broker), await connect(broker)
    channel = await server.channel()
    called = await RPC.create(channel)
    await channel.declare_queue("multiply", arguments={"x-dead-letter-exchange": RPC.DLX_NAME})
    caller = await RPC.create(await client.channel())
    calling = asyncio.ensure_future(caller.call("multiply", {"x": 7, "y": 2}))
    await asyncio.sleep(1)
    await called.register("multiply", _multiply)
    if await returns(calling, 60, "a call") != 14:
        raise broken("a call gets a wrong answer")
    await returns(client.close(), 60, "close")
    await returns(server.close(), 60, "close")


_HANGS = "a call does not return"

WORKLOADS = [
    Workload(
        "RPC, network",
        _PACKAGES,
        "each call returns its result or raises; a minute after the faults calls work",
        _SOURCE,
        partial(_calls, faults=NETWORK, careful=False),
        NETWORK.words,
        {_HANGS: "call-during-restore"},
    ),
    Workload(
        "RPC, connections",
        _PACKAGES,
        "the same",
        _SOURCE,
        partial(_calls, faults=CONNECTIONS, careful=False),
        CONNECTIONS.words,
        # Calls during a restore hang as well; most that hang were returned.
        {_HANGS: "returned-unseen"},
    ),
    *(
        Workload(
            f"RPC with care, {faults.name}",
            _PACKAGES,
            "the same, in a program that waits for channel.ready() before each call, adds the callback for "
            "returned messages again whenever the channel is reopened, and has a durable queue",
            _SOURCE,
            partial(_calls, faults=faults, careful=True),
            faults.words,
        )
        for faults in (NETWORK, CONNECTIONS)
    ),
    Workload(
        "RPC, call before registration",
        _PACKAGES,
        "a call that waits in the queue of a method gets its answer when the method is registered",
        _SOURCE,
        _register_later,
        known={_HANGS: "register-after-call"},
    ),
]
