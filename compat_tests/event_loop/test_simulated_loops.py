"""A broker in loops of others that simulate time or a network, or refuse sockets or servers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NoReturn

import aio_pika
import pytest

from fakeamqp import Broker
from fakeamqp.runtime import CannotListen, EngineError, PortInUse
from fakeamqp.runtime.event_loop.memory import LoopMemoryTransport

Main = Callable[[], Coroutine[Any, Any, None]]


def run_in(loop: asyncio.AbstractEventLoop, main: Main) -> None:
    try:
        loop.run_until_complete(asyncio.wait_for(main(), 7200))
    finally:
        loop.close()


def async_solipsism(main: Main) -> None:
    run_in(pytest.importorskip("async_solipsism").EventLoop(), main)


def looptime(main: Main) -> None:
    class Loop(pytest.importorskip("looptime").LoopTimeEventLoop, asyncio.SelectorEventLoop):  # type: ignore
        """Compacts time; its sockets are real."""

    run_in(Loop(), main)


def seedloop(main: Main) -> None:
    pytest.importorskip("seedloop").check(lambda world: main(), seeds=3)


def simloom(main: Main) -> None:
    module = pytest.importorskip("simloom")
    for seed in range(3):
        module.run(main, seed=seed)


def simloom_without_a_network(main: Main) -> None:
    pytest.importorskip("simloom").run(main, seed=1, world=False)


def simloop(main: Main) -> None:
    module = pytest.importorskip("simloop")
    for seed in range(3):
        run_in(module.SimLoop(seed=seed), main)


SIMULATED = (async_solipsism, looptime, seedloop, simloom, simloom_without_a_network, simloop)


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """Collect what the loops leave: some of their transports do not know that the peer has closed them."""
    yield
    gc.collect()


def in_simulated_loops(test: Any) -> Any:
    """Run a test in each of these loops that is installed."""
    test = pytest.mark.filterwarnings("ignore:unclosed <StreamWriter:ResourceWarning")(test)
    test = pytest.mark.filterwarnings("ignore:Ignoring socket option")(test)  # By async-solipsism.
    test = pytest.mark.usefixtures("no_garbage")(test)
    return pytest.mark.parametrize("run", SIMULATED)(test)


@in_simulated_loops
def test_reconnecting_consumer_handles_each_message_in_simulated_hour(run: Callable[[Main], None]) -> None:
    runs = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        handled = []
        async with (
            Broker(runtime="asyncio") as broker,
            await aio_pika.connect_robust(broker.url, heartbeat=30) as connection,
        ):
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=1)
            queue = await channel.declare_queue("orders", durable=True)
            await channel.declare_queue("short", durable=True, arguments={"x-message-ttl": 60_000})

            async def work(message: aio_pika.abc.AbstractIncomingMessage) -> None:
                await asyncio.sleep(60)
                if message.body not in handled:
                    handled.append(message.body)
                await message.ack()

            await queue.consume(work)
            broker.publish(b"", routing_key="short")
            for number in range(10):
                await channel.default_exchange.publish(
                    aio_pika.Message(b"%d" % number, delivery_mode=2), "orders"
                )
            await asyncio.sleep(90)
            assert broker.queue("short").ready == 0
            broker.faults.network.reset()
            await asyncio.sleep(90)
            port = broker.port
            broker.restart()
            await asyncio.sleep(3420)
            assert broker.port == port
            assert broker.queue("orders").ready == broker.queue("orders").unacked == 0
        assert broker.admin.failures == ()
        assert handled == [b"%d" % number for number in range(10)]
        runs.append(loop.time() - began)

    run(main)
    assert runs
    assert all(3600 <= seconds < 3700 for seconds in runs)


@in_simulated_loops
def test_two_brokers_in_simulated_loop_have_different_ports_and_refuse_connections(
    run: Callable[[Main], None],
) -> None:
    runs = []

    async def main() -> None:
        async with Broker(runtime="asyncio") as one, Broker(runtime="asyncio") as other:
            assert one.port and other.port and one.port != other.port
            with pytest.raises((PortInUse, CannotListen)):
                await Broker(runtime="asyncio", port=one.port).start.aio()
            for broker in (one, other):
                async with await aio_pika.connect(broker.url) as connection:
                    await (await connection.channel()).declare_queue("q")
                    assert len(broker.connections) == 1
            with one.faults.network.refuse(), pytest.raises(Exception) as refused:
                await aio_pika.connect(one.url)
            # Loops that have no network at all have errors of their own for what nobody serves.
            assert isinstance(refused.value, ConnectionError) or run in (seedloop, simloom_without_a_network)
            await asyncio.sleep(1)
            async with await aio_pika.connect(one.url):
                pass
        runs.append(one)

    run(main)
    assert runs


def test_client_on_other_simloop_host_declares_queue() -> None:
    module = pytest.importorskip("simloop")
    loop = module.SimLoop(seed=1)

    async def client(url: str) -> str:
        async with await aio_pika.connect(url) as connection:
            queue = await (await connection.channel()).declare_queue("orders")
            return queue.name

    async def main() -> None:
        async with Broker(runtime="asyncio") as broker:
            assert await loop.net.host("worker").create_task(client(broker.url)) == "orders"
            assert broker.queue("orders").ready == 0

    run_in(loop, main)


# -- loops that refuse what they cannot simulate; here of our own


class Refusal(Exception):
    """Stands for the errors of such loops."""


class NoDescriptors(asyncio.SelectorEventLoop):
    """Has servers, but lets nobody wait for a descriptor, as the loop of Windows."""

    def add_reader(self, *args: Any) -> NoReturn:
        raise Refusal("add_reader")

    remove_reader = add_reader


class NoServers(NoDescriptors):
    """Has no connections at all."""

    async def create_server(self, *args: Any, **options: Any) -> NoReturn:
        raise Refusal("create_server")

    async def create_connection(self, *args: Any, **options: Any) -> NoReturn:
        raise Refusal("create_connection")


class NoMemory(NoServers):
    """Cannot be changed either."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "create_connection":
            raise AttributeError(name)
        super().__setattr__(name, value)


async def exchange(broker: Broker) -> asyncio.BaseTransport:
    """Publish and get a message. Returns the transport of another connection, closed."""
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("orders")
        await channel.default_exchange.publish(aio_pika.Message(b"1"), "orders")
        assert (await queue.get()).body == b"1"
    _, writer = await asyncio.open_connection(broker.host, broker.port)
    writer.close()
    return writer.transport


def test_broker_in_loop_without_readers_serves_clients_but_connect_is_refused() -> None:
    async def main() -> None:
        async with Broker(runtime="asyncio") as broker:
            transport = await exchange(broker)
            assert not isinstance(transport, LoopMemoryTransport)
            with pytest.raises(PortInUse):
                await Broker(runtime="asyncio", port=broker.port).start.aio()
            with pytest.raises(EngineError, match=r"no sockets; connect to broker\.url"):
                broker.connect()

    run_in(NoDescriptors(), main)


def test_broker_in_loop_without_servers_serves_clients_in_memory() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Broker(runtime="asyncio") as broker:
            assert isinstance(await exchange(broker), LoopMemoryTransport)
            broker.restart()
            assert isinstance(await exchange(broker), LoopMemoryTransport)
            with broker.faults.network.refuse(), pytest.raises(Refusal):
                await asyncio.open_connection(broker.host, broker.port)
            async with Broker(runtime="asyncio", port=5672) as other:
                assert other.port == 5672 != broker.port
                await exchange(other)
                with pytest.raises(PortInUse):
                    await Broker(runtime="asyncio", port=5672).start.aio()
            with pytest.raises(Refusal):
                await asyncio.open_connection(broker.host, 5672)
        assert "create_connection" not in vars(loop)

    run_in(NoServers(), main)


def test_start_in_loop_without_servers_and_patching_raises_engine_error() -> None:
    async def main() -> None:
        with pytest.raises(EngineError, match=r"NoMemory has no servers \(create_server\).*simulation\.run"):
            await Broker(runtime="asyncio").start.aio()

    run_in(NoMemory(), main)
