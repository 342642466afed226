"""A TCP relay between clients and a real broker, which holds, delays and cuts what passes through it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from typing_extensions import Self
from yarl import URL

__all__ = ["Relay"]


class Relay:
    """Relays connections to a broker.

    Args:
        url: the broker's.
        latency: seconds that bytes are under way in each direction.
    """

    def __init__(self, url: str, latency: float = 0.0) -> None:
        self._target = URL(url)
        self.latency = latency
        #: Called with what clients send.
        self.watch: Callable[[bytes], object] = lambda sent: None
        #: The ports from which the relay has connected to the broker.
        self.peers: list[int] = []
        #: What clients have sent since the start of the relay.
        self.sent = bytearray()
        #: Nothing passes to clients while it is cleared.
        self.answers = asyncio.Event()
        #: Nothing passes in any direction while it is cleared.
        self.passes = asyncio.Event()
        self.answers.set()
        self.passes.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0

    @property
    def url(self) -> str:
        """Where clients connect."""
        return str(self._target.with_port(self._port).with_host("127.0.0.1"))

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.refuse()

    async def listen(self) -> None:
        """Accept clients, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Accept no clients any more, and end all connections."""
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        to_broker = None
        with suppress(OSError, asyncio.CancelledError):
            await self.passes.wait()
            from_broker, to_broker = await asyncio.open_connection(self._target.host, self._target.port)
            self._writers.add(to_broker)
            self.peers.append(to_broker.get_extra_info("sockname")[1])
            both = (self._copy(reader, to_broker, True), self._copy(from_broker, writer, False))
            await asyncio.gather(*both)
        for each in (writer, to_broker):
            if each is not None:
                self._writers.discard(each)
                each.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bool) -> None:
        while data := await reader.read(65536):
            if sent:
                self.sent += data
                self.watch(data)
            if self.latency:
                await asyncio.sleep(self.latency)
            await self.passes.wait()
            if not sent:
                await self.answers.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError
