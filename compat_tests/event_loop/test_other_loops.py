"""A broker in uvloop, and in loops of asyncio that do not watch descriptors, as Windows', or not many."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from selectors import SelectSelector
from typing import Any

import aio_pika
import pika
import pytest

from compat_tests.event_loop.without_readers import LOOPS
from compat_tests.tools.descriptors import high_descriptors
from compat_tests.tools.loopback import LOOPBACK, needs_ipv6
from fakeamqp import Broker
from fakeamqp.errors import CannotListen, PortInUse
from fakeamqp.runtime import EngineError
from fakeamqp.runtime.event_loop import listener

HEADER = b"AMQP\0\0\x09\x01"
START = b"\x01\0\0"
"""The beginning of connection.start: a method frame on channel 0."""
SECONDS = 20

Main = Callable[[], Coroutine[Any, Any, None]]


def run_in(loop: asyncio.AbstractEventLoop, main: Main) -> None:
    try:
        loop.run_until_complete(asyncio.wait_for(main(), 60))
        loop.run_until_complete(loop.shutdown_default_executor())
        assert not asyncio.all_tasks(loop)
    finally:
        loop.close()


def uvloop() -> asyncio.AbstractEventLoop:
    """It makes its connections itself: clients use sockets."""
    return pytest.importorskip("uvloop").new_event_loop()


def in_loops(*loops: Callable[[], asyncio.AbstractEventLoop]) -> Callable[[Main], Callable[[Any], None]]:
    """Run a test in each of these loops."""

    def decorate(main: Main) -> Callable[[Any], None]:
        @pytest.mark.parametrize("new_loop", loops)
        def run(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
            run_in(new_loop(), main)

        run.__name__ = run.__qualname__ = main.__name__  # type: ignore[attr-defined]
        return run

    return decorate


in_loops_without_readers = in_loops(*LOOPS)
in_other_loops = in_loops(*LOOPS, uvloop)
in_all_loops = in_loops(*LOOPS, uvloop, asyncio.SelectorEventLoop)


def dial(host: str, port: int) -> socket.socket:
    client = socket.create_connection((host, port), SECONDS)
    client.sendall(HEADER)
    return client


async def is_served(client: socket.socket) -> bool:
    """Whether the broker answers a client, from a thread of its own; the client is closed."""
    with client:
        return (await asyncio.to_thread(client.recv, 3)) == START


@needs_ipv6
@in_loops_without_readers
async def test_localhost_is_served_on_ipv4_and_ipv6_with_peer_address_in_name() -> None:
    async with Broker("localhost", runtime="asyncio") as broker:
        for host in LOOPBACK:
            client = dial(host, broker.port)
            await broker.wait_for.aio(lambda: broker.connections)
            [seen] = broker.connections
            shown = f"[{host}]" if ":" in host else host
            assert seen.name == f"{shown}:{client.getsockname()[1]} -> {shown}:{broker.port}"
            assert await is_served(client)
            await broker.wait_for.aio(lambda: not broker.connections)
    assert broker.admin.failures == ()


@in_other_loops
async def test_client_connects_immediately_after_restart() -> None:
    async with Broker(runtime="asyncio") as broker:
        for _ in range(3):
            broker.restart()
            client = dial(broker.host, broker.port)  # The loop has not run since.
            assert await is_served(client)
    assert broker.admin.failures == ()


@in_other_loops
async def test_client_in_same_loop_gets_large_message_plain_and_over_tls() -> None:
    for tls in (False, True):
        async with Broker(runtime="asyncio", tls=tls) as broker:
            context = broker.tls.client_context if tls else None
            async with await aio_pika.connect(broker.url, ssl_context=context) as connection:
                channel = await connection.channel()
                await channel.declare_queue("orders")
                body = b"x" * 300_000
                await channel.default_exchange.publish(aio_pika.Message(body), "orders")
                queue = await channel.get_queue("orders")
                message = await queue.get(no_ack=True)
                assert message is not None and message.body == body
        assert broker.admin.failures == ()


@in_other_loops
async def test_client_in_thread_gets_large_and_small_messages() -> None:
    bodies = [b"x" * 300_000, b"small"]

    def work(url: str) -> list[bytes]:
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            channel = connection.channel()
            channel.queue_declare("orders")
            for body in bodies:
                channel.basic_publish("", "orders", body)
            return [channel.basic_get("orders", auto_ack=True)[2] for _ in bodies]

    async with Broker(runtime="asyncio") as broker:
        assert await asyncio.to_thread(work, broker.url) == bodies
    assert broker.admin.failures == ()


@in_all_loops
async def test_connected_socket_gets_connection_start() -> None:
    async with Broker(runtime="asyncio") as broker:
        reader, writer = await asyncio.open_connection(sock=broker.connect())
        writer.write(HEADER)
        assert await reader.readexactly(3) == START
        assert [each.name for each in broker.connections] == ["socketpair:1 -> socketpair:0"]
        writer.close()
        await writer.wait_closed()


@in_other_loops
async def test_network_faults_refuse_hang_and_reset_connections() -> None:
    async with Broker(runtime="asyncio", clock="virtual") as broker:
        with broker.faults.network.refuse(), pytest.raises(ConnectionRefusedError):
            dial(broker.host, broker.port)
        with broker.faults.network.hang() as fault:
            client = dial(broker.host, broker.port)
            await fault.wait.aio()
        assert await is_served(client)
        with broker.faults.network.refuse(how="reset"):
            client = dial(broker.host, broker.port)
            with client, pytest.raises(ConnectionResetError):
                await asyncio.to_thread(client.recv, 3)
    assert broker.admin.failures == ()


@in_other_loops
async def test_stopped_broker_releases_its_port() -> None:
    async with Broker(runtime="asyncio") as broker:
        with pytest.raises(PortInUse):
            await Broker(runtime="asyncio", port=broker.port).start.aio()
        port = broker.port
        assert await is_served(dial(broker.host, port))
    async with Broker(runtime="asyncio", port=port) as broker:
        assert await is_served(dial(broker.host, port))
        broker.stop()
        await broker.start.aio()
        assert await is_served(dial(broker.host, port))


@in_other_loops
async def test_message_expires_when_virtual_clock_reaches_ttl_after_a_restart() -> None:
    async with Broker(runtime="asyncio", clock="virtual") as broker:
        connection = await aio_pika.connect(broker.url)
        broker.restart()
        await broker.wait_for.aio(lambda: not broker.connections)
        await connection.close()
        async with await aio_pika.connect(broker.url) as again:
            channel = await again.channel()
            await channel.declare_queue("short", arguments={"x-message-ttl": 60_000})
            await channel.default_exchange.publish(aio_pika.Message(b""), "short")
            await broker.clock.advance.aio(60)
            assert broker.queue("short").ready == 0


@in_loops_without_readers
async def test_port_stays_served_after_app_cancels_all_tasks() -> None:
    others = asyncio.all_tasks()
    async with Broker(runtime="asyncio") as broker:
        assert await is_served(dial(broker.host, broker.port))
        for task in asyncio.all_tasks() - others:
            task.cancel()
        await asyncio.sleep(0)
        assert await is_served(dial(broker.host, broker.port))


@in_loops_without_readers
async def test_restart_while_connection_is_accepted_causes_no_failure() -> None:
    unseen: list[bool] = []
    close_accepted = listener._close_accepted

    def noted(accepting: asyncio.Task[None]) -> None:
        waits_for = accepting._fut_waiter  # type: ignore[attr-defined]
        unseen.append(waits_for is not None and waits_for.done())
        close_accepted(accepting)

    with pytest.MonkeyPatch.context() as patch:
        async with Broker(runtime="asyncio") as broker:
            patch.setattr(listener, "_close_accepted", noted)
            for turn in range(20):
                for _ in range(3):
                    await asyncio.sleep(0)  # The broker waits for a client.
                client = dial(broker.host, broker.port)
                if turn % 2:
                    await asyncio.sleep(0)
                # In the iteration in which the loop has accepted the client, or the one before or after it.
                asyncio.get_running_loop().call_soon(broker.restart)
                await asyncio.sleep(0)
                with client, suppress(ConnectionResetError):
                    answer = await asyncio.to_thread(client.recv, 3)
                    assert answer == b"" or not unseen[-1], "it is closed, and not served"
            assert unseen.count(True) == 10
            assert await is_served(dial(broker.host, broker.port))
    assert broker.admin.failures == ()


@in_loops_without_readers
async def test_connections_are_accepted_again_after_emfile() -> None:
    loop = asyncio.get_running_loop()
    accept, refusals = loop.sock_accept, []

    async def exhausted(sock: socket.socket) -> Any:
        if len(refusals) < 2:
            refusals.append(errno.EMFILE)
            raise OSError(errno.EMFILE, "too many open files")
        return await accept(sock)

    loop.sock_accept = exhausted  # type: ignore[method-assign, assignment]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fakeamqp.runtime.listener._EXHAUSTED_SECONDS", 0.01)
        async with Broker(runtime="asyncio") as broker:
            assert await is_served(dial(broker.host, broker.port))
    assert len(refusals) == 2


@pytest.mark.parametrize("new_loop", LOOPS)
def test_broker_starts_again_in_another_loop(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    broker = Broker(runtime="asyncio")

    async def main() -> None:
        async with broker:
            assert await is_served(dial(broker.host, broker.port))

    for _ in range(2):
        run_in(new_loop(), main)


# --- select() -------------------------------------------------------------------------------------------


class Windows(SelectSelector):
    """`select` on Windows takes so many sockets; there they are 512."""

    most = 8

    def select(self, timeout: float | None = None) -> Any:
        if len(self.get_map()) > self.most:
            raise ValueError("too many file descriptors in select()")
        return super().select(timeout)


def is_refused(client: socket.socket) -> bool:
    with suppress(ConnectionResetError):
        return client.recv(3) == b""
    return True


def told(caplog: pytest.LogCaptureFixture) -> int:
    return sum("refuses a connection for now" in each.getMessage() for each in caplog.records)


FULL = pytest.mark.parametrize(
    ("selector", "full"), [(SelectSelector, high_descriptors), (Windows, nullcontext)]
)
too_many = partial(pytest.raises, match=r"waits with select\(\)")


@FULL
def test_loop_refuses_connections_beyond_select_limit_and_serves_earlier_ones(
    selector: type[SelectSelector],
    full: Callable[[], AbstractContextManager[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with Broker(runtime="asyncio") as broker:
            with ExitStack() as clients:

                async def dial_many() -> list[bool]:
                    many = [clients.enter_context(dial(broker.host, broker.port)) for _ in range(10)]
                    return [await asyncio.to_thread(is_refused, each) for each in many]

                served = clients.enter_context(dial(broker.host, broker.port))
                assert await asyncio.to_thread(served.recv, 3) == START
                with full():
                    refused = await dial_many()
                    assert refused == sorted(refused)
                    assert all(await dial_many())
                    with too_many(EngineError):
                        broker.connect()
                    with too_many(CannotListen):
                        await Broker(runtime="asyncio").start.aio()
                await broker.wait_for.aio(lambda: len(broker.connections) == 1 + refused.count(False))
            await broker.wait_for.aio(lambda: not broker.connections)
            assert await is_served(dial(broker.host, broker.port))
        assert broker.admin.failures == ()

    run_in(asyncio.SelectorEventLoop(selector()), main)
    assert 1 <= told(caplog) <= 2  # One line in ten seconds.


@FULL
def test_thread_refuses_connections_beyond_select_limit(
    selector: type[SelectSelector],
    full: Callable[[], AbstractContextManager[None]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fakeamqp.runtime.thread.loop.DefaultSelector", selector)
    with Broker() as broker:
        with ExitStack() as clients:

            def dial_many() -> list[bool]:
                many = [clients.enter_context(dial(broker.host, broker.port)) for _ in range(10)]
                return [is_refused(each) for each in many]

            served = clients.enter_context(dial(broker.host, broker.port))
            assert served.recv(3) == START
            with full():
                refused = dial_many()
                assert refused == sorted(refused)
                assert all(dial_many())
                with too_many(EngineError):
                    broker.connect()
                if selector is SelectSelector:
                    with too_many(EngineError):
                        Broker().start()
            broker.wait_for(lambda: len(broker.connections) == 1 + refused.count(False))
        broker.wait_for(lambda: not broker.connections)
        with dial(broker.host, broker.port) as client:
            assert client.recv(3) == START
    assert broker.admin.failures == ()
    assert 1 <= told(caplog) <= 2  # One line in ten seconds.
