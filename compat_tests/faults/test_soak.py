"""Apps on real clients under chaos: every order they take for confirmed is processed at least once.

`FAKEAMQP_SOAK=60` has it go on for a minute for each client, by a seed that is drawn anew, or the one that
`FAKEAMQP_SOAK_SEED` says. A failure says its seed and the plan.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aio_pika
import pika
import pytest

from fakeamqp import Broker

SECONDS = float(os.environ.get("FAKEAMQP_SOAK", "3"))
SEED = os.environ.get("FAKEAMQP_SOAK_SEED") or (
    str(random.randrange(10**9)) if "FAKEAMQP_SOAK" in os.environ else "3"
)
QUEUE = "orders"
PATIENCE = 1.5
"""Seconds that a client is given for one thing; faults last for less."""
AT_LAST = 30.0
"""Seconds in which everything gets through when the faults have ended."""


class App:
    """Publishes orders until each is confirmed, and processes what comes; it survives whatever is raised."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.confirmed: set[int] = set()
        self.processed: set[int] = set()
        self.raised: Counter[str] = Counter()
        self.no_more_orders = threading.Event()
        self.ending = threading.Event()

    @contextmanager
    def surviving(self) -> Iterator[None]:
        """Count what is raised, and go on."""
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            self.raised[type(error).__name__] += 1

    def done(self) -> bool:
        """Whether all that is confirmed has been processed, and nothing is left to be confirmed."""
        return self.publishers_done() and self.confirmed <= self.processed

    def run(self) -> None:
        """In a thread: work until `ending`."""
        raise NotImplementedError

    def publishers_done(self) -> bool:
        """Whether the order that was begun last is confirmed, too."""
        raise NotImplementedError


class PikaApp(App):
    """Two threads with a connection each."""

    def run(self) -> None:
        self._published = threading.Event()
        threads = [threading.Thread(target=each) for each in (self._publish, self._consume)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def publishers_done(self) -> bool:
        return self._published.is_set()

    def _again_and_again(self, name: str, work: Callable[[pika.BlockingConnection], object]) -> None:
        while not self.ending.is_set():
            connection = None
            parameters = pika.ConnectionParameters(
                self.broker.host,
                self.broker.port,
                socket_timeout=PATIENCE,
                stack_timeout=PATIENCE,
                blocked_connection_timeout=PATIENCE,
                heartbeat=0,
                client_properties={"connection_name": name},
            )
            with self.surviving():
                connection = pika.BlockingConnection(parameters)
                work(connection)
            if connection is not None and connection.is_open:
                with self.surviving():
                    connection.close()

    def _publish(self) -> None:
        order = 0

        def work(connection: pika.BlockingConnection) -> None:
            nonlocal order
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare(QUEUE, durable=True)
            while not self.ending.is_set():
                if self.no_more_orders.is_set() and order in self.confirmed | {0}:
                    self._published.set()
                    self.ending.wait()
                    return
                if order in self.confirmed | {0}:
                    order += 1
                channel.basic_publish(
                    "", QUEUE, str(order).encode(), pika.BasicProperties(delivery_mode=2), mandatory=True
                )
                self.confirmed.add(order)

        self._again_and_again("publisher", work)

    def _consume(self) -> None:
        def work(connection: pika.BlockingConnection) -> None:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=10)
            channel.queue_declare(QUEUE, durable=True)
            for method, _properties, body in channel.consume(QUEUE, inactivity_timeout=0.2):
                if self.ending.is_set():
                    return
                if method is not None:
                    self.processed.add(int(body))
                    channel.basic_ack(method.delivery_tag)

        self._again_and_again("consumer", work)


class AioPikaApp(App):
    """Robust connections, and for what not even they survive new ones."""

    def run(self) -> None:
        self._done = False
        asyncio.run(self._run())

    def publishers_done(self) -> bool:
        return self._done

    async def _run(self) -> None:
        await asyncio.gather(self._publish(), self._consume())

    async def _connect(self, name: str) -> aio_pika.abc.AbstractRobustConnection:
        return await aio_pika.connect_robust(
            self.broker.url,
            timeout=PATIENCE,
            reconnect_interval=0.05,
            client_properties={"connection_name": name},
        )

    async def _part(self, connection: aio_pika.abc.AbstractRobustConnection | None) -> None:
        if connection is not None:
            with self.surviving():
                await asyncio.wait_for(connection.close(), PATIENCE)

    async def _publish(self) -> None:
        order = 0
        while not self.ending.is_set():
            connection = None
            with self.surviving():
                connection = await self._connect("publisher")
                channel = await asyncio.wait_for(
                    connection.channel(publisher_confirms=True, on_return_raises=True), PATIENCE
                )
                await asyncio.wait_for(channel.declare_queue(QUEUE, durable=True), PATIENCE)
                failures = 0
                while not self.ending.is_set() and failures < 3:
                    if order in self.confirmed | {0}:
                        if self.no_more_orders.is_set():
                            self._done = True
                            await asyncio.sleep(0.05)
                            continue
                        order += 1
                    message = aio_pika.Message(
                        str(order).encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT
                    )
                    failures += 1
                    with self.surviving():
                        await asyncio.wait_for(
                            channel.default_exchange.publish(message, QUEUE, mandatory=True), PATIENCE
                        )
                        self.confirmed.add(order)
                        failures = 0
            await self._part(connection)

    async def _consume(self) -> None:
        while not self.ending.is_set():
            connection = None
            with self.surviving():
                connection = await self._connect("consumer")
                channel = await asyncio.wait_for(connection.channel(), PATIENCE)
                await asyncio.wait_for(channel.set_qos(prefetch_count=10), PATIENCE)
                queue = await asyncio.wait_for(channel.declare_queue(QUEUE, durable=True), PATIENCE)
                async with queue.iterator(timeout=PATIENCE) as messages:
                    async for message in messages:
                        self.processed.add(int(message.body))
                        await asyncio.wait_for(message.ack(), PATIENCE)
                        if self.ending.is_set():
                            break
            await self._part(connection)


@pytest.mark.timeout(max(60, 4 * SECONDS + 3 * AT_LAST))
@pytest.mark.parametrize("make", [PikaApp, AioPikaApp])
def test_every_confirmed_order_is_processed(make: type[App]) -> None:
    with Broker(seed=SEED) as broker:
        app = make(broker)
        chaos = broker.faults.chaos(SEED, "mixed", intensity=0.5)
        story = f"FAKEAMQP_SOAK_SEED={SEED}, {make.__name__}"
        thread = threading.Thread(target=app.run, daemon=True)
        thread.start()
        app.ending.wait(SECONDS)
        broker.faults.clear()
        app.no_more_orders.set()
        # What is waited for is in the app, of which the broker is not told.
        until = time.monotonic() + AT_LAST
        while not (done := app.done()) and time.monotonic() < until:
            app.ending.wait(0.02)
        app.ending.set()
        thread.join(AT_LAST)
        told = f"{story}; raised {dict(app.raised)}\n{chaos.plan}\n{broker.trace.timeline(limit=60)}"
        assert done, f"never processed: {app.confirmed - app.processed}; {told}"
        assert not thread.is_alive(), told
        assert len(app.confirmed) > 5 and chaos.hits > 5, told
        assert broker.admin.failures == (), told
