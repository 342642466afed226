"""Brokers that run in the event loop of their test."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading

import aio_pika
import pytest

from compat_tests.tools.loopback import free_port
from fakeamqp import Broker, BrokerError, simulation
from fakeamqp.inspect import WaitTimeout
from fakeamqp.runtime import EngineError, PortInUse
from fakeamqp.runtime.event_loop.engine import LoopEngine
from fakeamqp.runtime.event_loop.memory import LoopMemoryTransport

in_loop = pytest.mark.asyncio


async def publish(connection: aio_pika.abc.AbstractConnection, queue: str, *bodies: bytes) -> None:
    channel = await connection.channel()
    await channel.declare_queue(queue)
    for body in bodies:
        await channel.default_exchange.publish(aio_pika.Message(body), queue)


@in_loop
async def test_client_in_same_loop_uses_memory_transport_and_no_thread():
    before = {*threading.enumerate()}  # One of an earlier test may end meanwhile.
    async with Broker(runtime="asyncio") as broker:
        _, writer = await asyncio.open_connection(broker.host, broker.port)
        assert isinstance(writer.transport, LoopMemoryTransport)
        writer.close()
        async with await aio_pika.connect(broker.url) as connection:
            await publish(connection, "orders", b"1", b"2")
            assert broker.queue("orders").ready == 2
            assert {*threading.enumerate()} <= before
            [seen] = broker.connections
            assert seen.user == "guest"
    assert not broker.running and broker.admin.failures == ()


@in_loop
async def test_localhost_and_loopback_address_use_memory_transport():
    async with Broker("localhost", runtime="asyncio") as broker:
        for host in ("localhost", "127.0.0.1"):
            _, writer = await asyncio.open_connection(host, broker.port)
            assert isinstance(writer.transport, LoopMemoryTransport)
            writer.close()


@in_loop
async def test_connections_to_other_addresses_use_sockets():
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with Broker(runtime="asyncio") as broker, server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert not isinstance(writer.transport, LoopMemoryTransport)
        writer.close()
        await writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", free_port())
        assert "create_connection" in vars(loop)
        assert broker.running
    assert "create_connection" not in vars(loop)


@in_loop
async def test_client_in_thread_connects_over_socket():
    def connect(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(b"AMQP\0\0\x09\x01")
            return client.recv(7)

    async with Broker(runtime="asyncio") as broker:
        # The beginning of connection.start: a method frame on channel 0.
        assert (await asyncio.to_thread(connect, broker.port)).startswith(b"\x01\0\0")


@in_loop
async def test_client_in_same_loop_publishes_over_tls():
    async with Broker(runtime="asyncio", tls=True) as broker:
        connection = await aio_pika.connect(broker.url, ssl_context=broker.tls.client_context)
        async with connection:
            await publish(connection, "orders", b"secret")
        assert broker.queue("orders").ready == 1


@in_loop
async def test_async_waits_return_queue_and_message_or_time_out():
    async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as connection:
        waiting = asyncio.ensure_future(broker.queue("orders").wait_for.aio(ready=1))
        await publish(connection, "orders", b"1")
        assert (await waiting).ready == 1
        [message] = await broker.expect_published.aio(routing_key="orders")
        assert message.body == b"1"
        await broker.wait_until_idle.aio()
        await broker.wait_for.aio(lambda: broker.published)
        with pytest.raises(WaitTimeout, match="to have exactly 2 ready, but there is"):
            await broker.queue("orders").wait_for.aio(ready=2, timeout=0.01)


@in_loop
async def test_a_wait_that_would_block_the_loop_is_refused():
    async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as connection:
        await publish(connection, "orders", b"1")
        assert broker.queue("orders").wait_for(ready=1).ready == 1  # There is nothing to wait for.
        with pytest.raises(EngineError, match=r"await broker\.queue"):
            broker.queue("orders").wait_for(ready=2)


@in_loop
async def test_message_in_event_loop_expires_when_virtual_clock_reaches_ttl():
    async with (
        Broker(runtime="asyncio", clock="virtual") as broker,
        await aio_pika.connect(broker.url) as connection,
    ):
        channel = await connection.channel()
        await channel.declare_queue("short", arguments={"x-message-ttl": 60_000})
        await channel.default_exchange.publish(aio_pika.Message(b""), "short")
        await broker.clock.advance.aio(59.9)
        assert broker.queue("short").ready == 1
        await broker.clock.advance.aio(0.1)
        assert broker.queue("short").ready == 0


@in_loop
async def test_message_ttl_expires_in_real_time_of_event_loop():
    async with Broker(runtime="asyncio") as broker:
        broker.load_definitions(
            {"queues": [{"name": "q", "durable": True, "arguments": {"x-message-ttl": 1}}]}
        )
        broker.publish(b"", routing_key="q")
        assert (await broker.queue("q").wait_until_consumed.aio()).ready == 0


@in_loop
async def test_publish_sent_before_advance_is_handled_before_time_moves():
    async with (
        Broker(runtime="asyncio", clock="virtual") as broker,
        await aio_pika.connect(broker.url) as connection,
    ):
        channel = await connection.channel(publisher_confirms=False)
        await channel.declare_queue("short", arguments={"x-message-ttl": 60_000})
        await channel.default_exchange.publish(aio_pika.Message(b""), "short")
        await broker.clock.advance.aio(60)
        assert [each.reason for each in broker.dropped] == ["expired"]


@in_loop
async def test_restart_in_event_loop_keeps_port_and_durable_queue():
    async with Broker(runtime="asyncio") as broker:
        port = broker.port
        connection = await aio_pika.connect(broker.url)
        channel = await connection.channel()
        await channel.declare_queue("durable", durable=True)
        broker.restart()
        assert broker.port == port
        async with await aio_pika.connect(broker.url) as another:
            channel = await another.channel()
            await channel.declare_queue("durable", passive=True)
        await connection.close()


@in_loop
async def test_stopped_broker_starts_again_on_same_port():
    broker = Broker(runtime="asyncio")
    ports = []
    for _ in range(3):
        async with broker:
            ports.append(broker.port)
            async with await aio_pika.connect(broker.url):
                pass
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", ports[0])
    assert len(set(ports)) == 1


@in_loop
async def test_two_brokers_in_one_loop_have_separate_queues():
    async with Broker(runtime="asyncio") as one, Broker(runtime="asyncio") as two:
        async with await aio_pika.connect(one.url) as connection:
            await publish(connection, "orders", b"1")
        assert one.queue("orders").exists and not two.queue("orders").exists


@in_loop
async def test_start_on_port_in_use_raises_port_in_use():
    async with Broker(runtime="asyncio") as broker:
        with pytest.raises(PortInUse):
            await Broker(runtime="asyncio", port=broker.port).start.aio()


@in_loop
async def test_publish_and_network_faults_work_in_event_loop():
    async with Broker(runtime="asyncio") as broker:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("orders")
            fault = broker.faults.on("basic.publish").nack().once()
            with pytest.raises(aio_pika.exceptions.DeliveryError):
                await channel.default_exchange.publish(aio_pika.Message(b""), "orders")
            await fault.wait.aio()
            broker.faults.network.slice(1)
            await channel.default_exchange.publish(aio_pika.Message(b"sliced"), "orders")
        with broker.faults.network.refuse(), pytest.raises(ConnectionError):
            await aio_pika.connect(broker.url)
        async with await aio_pika.connect(broker.url):
            pass
    assert [each.body for each in broker.published] == [b"sliced"]


@in_loop
async def test_messages_stay_in_queue_while_client_does_not_read():
    async with Broker(runtime="asyncio") as broker:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("large")
            received: list[bytes] = []

            async def consume(message: aio_pika.abc.AbstractIncomingMessage) -> None:
                received.append(message.body)

            await queue.consume(consume, no_ack=True)
            engine = broker._engine
            assert isinstance(engine, LoopEngine)
            [stream] = engine._streams
            assert isinstance(stream._stream, LoopMemoryTransport)
            client = stream._stream.outgoing.receiver
            client.pause_reading()
            for _ in range(8):
                broker.publish(bytes(1024 * 1024), routing_key="large")
            # The outbox takes no more deliveries while a megabyte waits in it.
            assert broker.queue("large").ready >= 5 and not received
            client.resume_reading()
            await broker.wait_for.aio(lambda: len(received) == 8)
        assert broker.queue("large").ready == 0 and len(received) == 8


@in_loop
async def test_trace_in_event_loop_contains_publish_of_client():
    async with Broker(runtime="asyncio") as broker:
        async with await aio_pika.connect(broker.url) as connection:
            await publish(connection, "orders", b"1")
        assert "basic.publish" in broker.trace.timeline()


@in_loop
async def test_broker_call_from_other_thread_raises_engine_error():
    async with Broker(runtime="asyncio") as broker:
        with pytest.raises(EngineError, match="event loop of another thread"):
            await asyncio.to_thread(lambda: broker.queue("q").ready)


@in_loop
async def test_stopped_broker_has_no_connection_though_client_stays_open():
    async with Broker(runtime="asyncio") as broker:
        connection = await aio_pika.connect(broker.url)
        await publish(connection, "orders", b"1")
    assert not broker.connections
    await connection.close()
    del connection
    gc.collect()


def test_a_start_without_a_loop_is_refused():
    with pytest.raises(BrokerError, match="async with broker"):
        Broker(runtime="asyncio").start()


def test_misspelled_runtime_is_refused_with_suggestion():
    with pytest.raises(BrokerError, match="did you mean 'asyncio'"):
        Broker(runtime="asynci")  # type: ignore[arg-type]


def test_management_in_asyncio_runtime_is_refused():
    with pytest.raises(BrokerError, match="runtime='thread'"):
        Broker(runtime="asyncio", management=True)


def test_consumer_handles_a_simulated_day_of_messages():
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        handled = []
        async with Broker(runtime="asyncio") as broker:
            connection = await aio_pika.connect_robust(broker.url, heartbeat=10)
            async with connection:
                channel = await connection.channel()
                queue = await channel.declare_queue("orders", durable=True)

                async def work(message: aio_pika.abc.AbstractIncomingMessage) -> None:
                    await asyncio.sleep(600)
                    await message.ack()
                    handled.append(loop.time())

                await queue.consume(work)
                for hour in range(24):
                    broker.publish(b"", routing_key="orders", delivery_mode=2)
                    await asyncio.sleep(3600)
                    if hour == 5:
                        broker.restart()
            assert broker.queue("orders").ready == broker.queue("orders").unacked == 0
        return handled

    handled = simulation.run(main())
    assert len(handled) == 24
    assert handled == simulation.run(main())
