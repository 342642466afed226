"""Repeats the findings on a real RabbitMQ: `python -m compat_tests.simulation.libraries.on_rabbitmq`.

No schedule is drawn here. Each function brings about, with a relay between client and broker, the order of
events that a simulation has found, and tells what the client does.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aio_pika
from aio_pika.exceptions import AMQPError, ChannelInvalidStateError
from aio_pika.patterns import RPC

from compat_tests.differential.rabbitmq_node import RabbitMQError, RabbitMQNode
from compat_tests.simulation.libraries.relay import Relay

__all__ = ["REPETITIONS", "main"]

# How long a client may take for what it does at once, in seconds.
_AT_ONCE = 5.0
# Messages that are acknowledged at once.
_MANY = 1000
_QUEUE_DECLARE = b"\0\x32\0\x0a"


async def _take(awaitable: Awaitable[Any], seconds: float = _AT_ONCE) -> str:
    """How something ends, in words."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        await asyncio.wait({task}, timeout=1)
        return f"does not return within {seconds:g} s"
    if task.cancelled():
        return "raises CancelledError"
    error = task.exception()
    return f"returns {task.result()!r}" if error is None else f"raises {type(error).__name__}"


async def _robust(url: str, **settings: Any) -> aio_pika.abc.AbstractRobustConnection:
    return await aio_pika.connect_robust(url, reconnect_interval=0.5, **settings)


async def _consumers(channel: aio_pika.abc.AbstractChannel, queue: str) -> int:
    declared = await channel.declare_queue(queue, passive=True)
    return declared.declaration_result.consumer_count or 0


async def restore_is_tried_once(node: RabbitMQNode) -> str:
    """The channel is closed again while it is restored: a binding fails."""
    async with await aio_pika.connect(node.url) as admin, Relay(node.url) as relay:
        control = await admin.channel()
        await control.declare_exchange("orders")
        connection = await _robust(relay.url)
        channel = await connection.channel()
        queue = await channel.declare_queue("work", durable=True)
        await queue.bind("orders", "key")
        await queue.consume(_ack)
        before = await _consumers(control, "work")
        await control.exchange_delete("orders")
        await (await channel.get_underlay_channel()).basic_ack(4711)  # Closes the channel: 406.
        await asyncio.sleep(2)
        await control.declare_exchange("orders")
        await asyncio.sleep(_AT_ONCE)
        after = await _consumers(control, "work")
        relay.cut()
        await asyncio.sleep(_AT_ONCE)
        again = await _consumers(control, "work")
        await connection.close()
    return f"{before} consumer before, {after} later, {again} when the connection was lost and came back"


async def recovery_waits_for_itself(node: RabbitMQNode) -> str:
    """The broker closes the connection while a cancelled consumer is recovered."""

    async def restored(cancel: bool) -> int:
        async with await aio_pika.connect(node.url) as admin, Relay(node.url) as relay:
            control = await admin.channel()
            connection = await _robust(relay.url)
            for number in range(8):
                channel = await connection.channel()
                queue = await channel.declare_queue(f"work{number}", durable=True)
                await queue.consume(_ack)
            recovering = asyncio.Event()

            def hold(sent: bytes) -> None:
                if _QUEUE_DECLARE in sent:
                    # What the broker answers, and that it closes the connection, comes together.
                    relay.answers.clear()
                    recovering.set()

            if cancel:
                relay.watch = hold
                for number in range(8):
                    await control.queue_delete(f"work{number}")
                await recovering.wait()
            peer = relay.peers[-1]
            await asyncio.to_thread(
                node.evaluate,
                f'[rabbit_networking:close_connection(Pid, "test") || [{{pid, Pid}}, {{peer_port, {peer}}}] '
                "<- rabbit_networking:connection_info_all([pid, peer_port])]",
            )
            await asyncio.sleep(0.5)
            relay.watch = _nothing
            relay.answers.set()
            await asyncio.sleep(10)
            count = 0
            for number in range(8):
                with suppress(AMQPError):
                    async with admin.channel() as probe:
                        count += await _consumers(probe, f"work{number}")
            await connection.close()
            return count

    without, with_ = await restored(False), await restored(True)
    return f"{without} of 8 consumers restored when none was being recovered, {with_} when they were"


async def cancel_with_consume_ok(node: RabbitMQNode) -> str:
    """The broker's basic.cancel comes together with consume-ok."""
    async with await aio_pika.connect(node.url) as admin, Relay(node.url) as relay:
        control = await admin.channel()
        connection = await _robust(relay.url)
        queue = await (await connection.channel()).declare_queue("work", durable=True)
        relay.answers.clear()
        consuming = asyncio.ensure_future(queue.consume(_ack))
        while not await _consumers(control, "work"):
            await asyncio.sleep(0.01)
        await control.queue_delete("work")
        await asyncio.sleep(0.2)
        relay.answers.set()
        await consuming
        await asyncio.sleep(_AT_ONCE)
        try:
            found = f"{await _consumers(control, 'work')} consumers"
        except AMQPError:
            found = "no queue"
        await connection.close()
    return f"{found} {_AT_ONCE:g} s later"


async def iteration_ends(node: RabbitMQNode) -> str:
    """The broker is away for more than a minute while messages are in the iterator."""
    async with await aio_pika.connect(node.url) as admin, Relay(node.url) as relay:
        control = await admin.channel()
        connection = await _robust(relay.url)
        queue = await (await connection.channel()).declare_queue("work", durable=True)
        for number in range(3):
            await control.default_exchange.publish(aio_pika.Message(b"%d" % number), "work")

        async def work() -> None:
            async with queue.iterator() as messages:
                async for message in messages:
                    await asyncio.sleep(0.5)
                    with suppress(AMQPError, RuntimeError):
                        await message.ack()

        working = asyncio.ensure_future(work())
        await asyncio.sleep(0.2)
        await relay.refuse()
        result = await _take(working, 75)
        await relay.listen()
        await connection.close()
    return f"the loop over messages {result}"


async def publish_raises_cancelled(node: RabbitMQNode) -> str:
    """No heartbeats come while a message is published."""
    async with Relay(node.url) as relay:
        connection = await _robust(relay.url, heartbeat=1)
        channel = await connection.channel()
        relay.passes.clear()
        result = await _take(channel.default_exchange.publish(aio_pika.Message(b""), "work"), 30)
        relay.passes.set()
        await connection.close()
    return f"publish {result}"


_PROGRAM = """
import asyncio, aio_pika
async def main():
    connection = await aio_pika.connect_robust({url!r}, reconnect_interval=0.5)
    print("connected", flush=True)
    await asyncio.sleep(2)
    raise SystemExit("an error of the program")
asyncio.run(main())
"""


async def program_does_not_end(node: RabbitMQNode) -> str:
    """A program ends by an error while the client waits for the answer of a broker that hangs."""
    async with Relay(node.url) as relay:
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            "-W",
            "ignore",
            "-c",
            _PROGRAM.format(url=relay.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert program.stdout is not None
        await program.stdout.readline()
        relay.passes.clear()
        relay.cut()
        try:
            code = await asyncio.wait_for(program.wait(), 15)
            result = f"ends with {code}"
        except asyncio.TimeoutError:
            program.kill()
            await program.wait()
            result = "is still running 13 s after its error"
        relay.passes.set()
    return f"the program {result}"


async def other_channels_end(node: RabbitMQNode) -> str:
    """One of two channels of a connection is closed by the broker while it has many acks to send."""
    lost = 0
    texts = set()
    for _ in range(20):
        connection = await aio_pika.connect(node.url)
        busy, other = await connection.channel(), await connection.channel()
        queue = await busy.declare_queue("busy", auto_delete=True)
        quiet = await other.declare_queue("quiet", exclusive=True)
        for number in range(_MANY):
            await busy.default_exchange.publish(aio_pika.Message(b"%d" % number), "busy")
        go, held = asyncio.Event(), []

        async def handle(message: Any, go: asyncio.Event = go, held: list[Any] = held) -> None:
            held.append(message)
            await go.wait()
            if message.body == b"0":
                await message.channel.basic_ack(4711, wait=False)
            await message.ack()

        await queue.consume(handle)
        while len(held) < _MANY:
            await asyncio.sleep(0.01)
        go.set()
        await asyncio.sleep(0.3)
        closing = connection.transport.connection.closing if connection.transport else None
        if closing is not None and closing.done():
            lost += 1
            texts.add(str(closing.exception()))
        else:
            await quiet.declare()
        await connection.close()
    return f"{lost} of 20 connections lost: {', '.join(sorted(texts)) or 'none'}"


async def queues_are_declared_again(node: RabbitMQNode) -> str:
    """A queue is declared 100 times on one channel."""
    async with Relay(node.url) as relay:
        connection = await _robust(relay.url)
        channel = await connection.channel()
        for _ in range(100):
            await channel.declare_queue("work", durable=True)
        relay.sent.clear()
        relay.cut()
        await asyncio.sleep(_AT_ONCE)
        count = relay.sent.count(_QUEUE_DECLARE)
        await connection.close()
    return f"{count} x queue.declare after the reconnect"


async def register_after_the_call(node: RabbitMQNode) -> str:
    """A call waits in the queue when its method is registered."""
    results = []
    for _ in range(20):
        async with Relay(node.url) as relay:
            server, client = await aio_pika.connect(relay.url), await aio_pika.connect(node.url)
            channel = await server.channel()
            called = await RPC.create(channel)
            await channel.declare_queue(
                "double", auto_delete=True, arguments={"x-dead-letter-exchange": RPC.DLX_NAME}
            )
            caller = await RPC.create(await client.channel())
            calling = asyncio.ensure_future(caller.call("double", {"n": 4}))
            await asyncio.sleep(0.05)
            registering = asyncio.ensure_future(called.register("double", _double, auto_delete=True))
            await asyncio.sleep(0)
            # consume-ok and the delivery come together, as over a network with some latency.
            while b"\0\x3c\0\x14" not in relay.sent:
                await asyncio.sleep(0)
            relay.answers.clear()
            await asyncio.sleep(0.05)
            relay.answers.set()
            await registering
            results.append(await _take(calling, 2))
            await client.close()
            await server.close()
    return _counted("the call", results)


async def call_during_restore(node: RabbitMQNode) -> str:
    """The app calls again as soon as it can after a reconnect."""
    results = []
    for _ in range(5):
        async with Relay(node.url, latency=0.02) as relay:
            server, client = await aio_pika.connect(node.url), await _robust(relay.url)
            called = await RPC.create(await server.channel())
            await called.register("double", _double, auto_delete=True)
            caller = await RPC.create(await client.channel())

            async def call(caller: RPC = caller) -> Any:
                while True:
                    try:
                        return await caller.call("double", {"n": 4})
                    except (AMQPError, ConnectionError, RuntimeError, ChannelInvalidStateError):
                        await asyncio.sleep(0.005)

            relay.cut()
            results.append(await _take(call()))
            await client.close()
            await server.close()
    return _counted("the call", results)


async def returned_after_reconnect(node: RabbitMQNode) -> str:
    """A call of a method that is not registered, before and after a reconnect."""
    async with Relay(node.url) as relay:
        client = await _robust(relay.url)
        channel = await client.channel()
        caller = await RPC.create(channel)
        returned: list[object] = []
        channel.return_callbacks.add(lambda _channel, message: returned.append(message))
        before = await _take(caller.call("nothing"))
        told = len(returned)
        relay.cut()
        await asyncio.sleep(2)
        await channel.ready()
        after = await _take(caller.call("nothing"))
        await client.close()
    return f"the call {before} before, {after} after; return_callbacks: {told}, then {len(returned) - told}"


async def _ack(message: Any) -> None:
    with suppress(AMQPError):
        await message.ack()


async def _double(*, n: int) -> int:
    return 2 * n


def _nothing(sent: bytes) -> None:
    pass


def _counted(subject: str, results: list[str]) -> str:
    return ", ".join(f"{subject} {each} ({results.count(each)}x)" for each in dict.fromkeys(results))


#: By the name of the finding.
REPETITIONS: dict[str, Callable[[RabbitMQNode], Awaitable[str]]] = {
    "restore-once": restore_is_tried_once,
    "recovery-waits-for-itself": recovery_waits_for_itself,
    "cancel-with-consume-ok": cancel_with_consume_ok,
    "iteration-ends": iteration_ends,
    "publish-cancelled": publish_raises_cancelled,
    "program-does-not-end": program_does_not_end,
    "other-channels-end": other_channels_end,
    "declared-again": queues_are_declared_again,
    "register-after-call": register_after_the_call,
    "call-during-restore": call_during_restore,
    "returned-unseen": returned_after_reconnect,
}


def main() -> int:
    """Run what is named, or everything, on one node each."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.simulation.libraries.on_rabbitmq")
    parser.add_argument("names", nargs="*", choices=[[], *REPETITIONS], help="findings; all by default")
    parser.add_argument("--version", default="4.3", help="the series of RabbitMQ (default: 4.3)")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    try:
        node = RabbitMQNode(arguments.version)
    except RabbitMQError as error:
        print(error)
        return 1
    with node:
        print(f"RabbitMQ {node.version}", flush=True)
        for name in arguments.names or REPETITIONS:
            for queue in ("work", *(f"work{number}" for number in range(8))):
                asyncio.run(_forget(node.url, queue))
            print(f"{name}: {asyncio.run(REPETITIONS[name](node))}", flush=True)
    return 0


async def _forget(url: str, queue: str) -> None:
    async with await aio_pika.connect(url) as connection:
        await (await connection.channel()).queue_delete(queue)


if __name__ == "__main__":
    sys.exit(main())
