"""A feed of prices: a user subscribes to symbols, and the feed shows their prices as they come.

The race is a reconnect that declares again, but does not bind again. The queue outlives its connection for
`keep` seconds: after a short interruption it still has its bindings, and no price is lost. If the reconnect
takes longer, the broker has deleted the queue. The racy form then declares an empty one, and the feed is
silent without any error.
"""

from __future__ import annotations

import asyncio

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue
from typing_extensions import Self

EXCHANGE = "prices"


class RacyPriceFeed:
    """Puts prices into `prices` for as long as the `async with` block runs."""

    def __init__(self, url: str, user: str, keep: float = 60.0) -> None:
        self.prices: asyncio.Queue[str] = asyncio.Queue()
        self.queue_name = f"feed.{user}"
        self._url = url
        self._keep = keep
        self._connected = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        await self._connected.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])

    async def subscribe(self, symbol: str) -> None:
        await self._connected.wait()
        await self._queue.bind(EXCHANGE, f"price.{symbol}")

    async def _run(self) -> None:
        while True:
            try:
                async with await aio_pika.connect(self._url) as connection:
                    await self._consume(connection)
            except aio_pika.exceptions.CONNECTION_EXCEPTIONS:
                await asyncio.sleep(1)
            finally:
                self._connected.clear()

    async def _consume(self, connection: AbstractConnection) -> None:
        lost = asyncio.Event()
        connection.close_callbacks.add(lambda *_: lost.set())
        self._queue = await self._declare(await connection.channel())
        await self._queue.consume(self._on_price, no_ack=True)
        self._connected.set()
        await lost.wait()

    async def _declare(self, channel: AbstractChannel) -> AbstractQueue:
        await channel.declare_exchange(EXCHANGE, "topic", durable=True)
        # The queue keeps prices and bindings while there is no connection, but not for ever.
        return await channel.declare_queue(
            self.queue_name, durable=True, arguments={"x-expires": int(self._keep * 1000)}
        )

    async def _on_price(self, message: AbstractIncomingMessage) -> None:
        symbol = (message.routing_key or "").rpartition(".")[2]
        self.prices.put_nowait(f"{symbol} {message.body.decode()}")


class PriceFeed(RacyPriceFeed):
    """The fix: each connection binds all symbols before it consumes. To bind again does no harm."""

    def __init__(self, url: str, user: str, keep: float = 60.0) -> None:
        super().__init__(url, user, keep)
        self._symbols: list[str] = []

    async def subscribe(self, symbol: str) -> None:
        self._symbols.append(symbol)
        await super().subscribe(symbol)

    async def _declare(self, channel: AbstractChannel) -> AbstractQueue:
        queue = await super()._declare(channel)
        for symbol in self._symbols:
            await queue.bind(EXCHANGE, f"price.{symbol}")
        return queue
