"""Connections in memory are not faster than sockets: nothing arrives before a selector could report it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import aio_pika
import pytest
from freezegun import freeze_time

from fakeamqp import Broker, simulation
from fakeamqp.runtime.event_loop.memory import LoopMemoryTransport
from fakeamqp.runtime.event_loop.turns import Arrivals

HEADER = b"AMQP\0\0\x09\x01"


def on_all_ways(test: Callable[[str], Coroutine[Any, Any, None]]) -> Callable[[str], None]:
    """Run a test with connections over sockets, in memory, and in a simulation."""

    @pytest.mark.parametrize("way", ["socket", "memory", "simulation"])
    def run(way: str) -> None:
        (simulation.run if way == "simulation" else asyncio.run)(test(way))

    run.__name__ = run.__qualname__ = test.__name__
    return run


class Client(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.answered, self.lost = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.told.append("made")

    def data_received(self, data: bytes) -> None:
        self.told.append("answer")
        self.answered.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()


async def connect(broker: Broker, way: str) -> tuple[asyncio.Transport, Client]:
    """A connection to the broker, in memory or over a socket."""
    address = {"sock": broker.connect()} if way == "socket" else {"host": broker.host, "port": broker.port}
    transport, client = await asyncio.get_running_loop().create_connection(Client, **address)
    assert isinstance(transport, LoopMemoryTransport) is (way != "socket")
    return transport, client


async def accepted() -> None:
    """Let the broker accept a connection, which takes some iterations of the loop."""
    for _ in range(20):
        await asyncio.sleep(0)


@on_all_ways
async def test_callbacks_scheduled_after_request_run_before_its_answer(way: str) -> None:
    loop = asyncio.get_running_loop()
    async with Broker(runtime="asyncio") as broker:
        transport, client = await connect(broker, way)
        await accepted()
        told = client.told

        def soon(times: int) -> None:
            told.append(times)
            if times > 1:
                loop.call_soon(soon, times - 1)

        transport.write(HEADER)
        # The broker receives it at the end of the next iteration, and the client the answer at that of the
        # second one.
        loop.call_soon(soon, 2)
        await client.answered.wait()
        assert told == ["made", 2, 1, "answer"]
        transport.close()
        await client.lost.wait()


@on_all_ways
async def test_callback_scheduled_before_connect_runs_before_connection_is_made(way: str) -> None:
    async with Broker(runtime="asyncio") as broker:
        ran: list[None] = []
        asyncio.get_running_loop().call_soon(ran.append, None)
        transport, client = await connect(broker, way)
        assert ran
        transport.close()
        await client.lost.wait()


@on_all_ways
async def test_callback_scheduled_after_resume_reading_runs_before_pending_input(way: str) -> None:
    loop = asyncio.get_running_loop()
    async with Broker(runtime="asyncio") as broker:
        transport, client = await connect(broker, way)
        transport.pause_reading()
        transport.write(HEADER)
        await broker.wait_for.aio(lambda: "connection.start" in broker.trace.timeline())
        transport.resume_reading()
        loop.call_soon(client.told.append, "soon")
        await client.answered.wait()
        assert client.told == ["made", "soon", "answer"]
        transport.close()
        await client.lost.wait()


@on_all_ways
async def test_closed_transport_keeps_no_reference_to_client_protocol(way: str) -> None:
    async with Broker(runtime="asyncio") as broker:
        transport, client = await connect(broker, way)
        transport.close()
        await client.lost.wait()
        alive = weakref.ref(client)
        gc.collect()
        gc.disable()
        try:
            del client
            assert alive() is None
        finally:
            gc.enable()


@pytest.mark.asyncio
async def test_client_works_while_freezegun_stops_loop_clock() -> None:
    with freeze_time("2026-01-01"):
        async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("orders")
            assert broker.queue("orders").ready == 0


@pytest.mark.asyncio
async def test_connection_to_unknown_service_name_raises_os_error() -> None:
    async with Broker(runtime="asyncio"):
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", "no-such-service")  # type: ignore[arg-type]


def test_pending_arrivals_are_called_when_interrupted_loop_runs_again() -> None:
    loop = asyncio.new_event_loop()
    arrived: list[int] = []

    def arrive(number: int) -> None:
        arrived.append(number)
        if number == 1:
            raise KeyboardInterrupt

    arrivals, context = Arrivals(loop), contextvars.copy_context()
    for number in range(4):
        arrivals.call(lambda number=number: arrive(number), context=context)  # type: ignore[misc]
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_forever()
        assert arrived == [0, 1]
        loop.call_later(0, loop.stop)
        loop.run_forever()
        assert arrived == [0, 1, 2, 3]
    finally:
        loop.close()


def test_the_event_loop_of_a_stopped_broker_is_freed():
    loops = []

    async def test() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        async with Broker(runtime="asyncio") as broker:
            connection = await aio_pika.connect(broker.url)
            await connection.close()

    for _ in range(3):
        asyncio.run(test())
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3
