"""A small client of 1.0 on asyncio's streams, for brokers in event loops and in simulations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from typing_extensions import Self

from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, WINDOW, attach, message, sections
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, PROTOCOL_HEADER, SASL, SASL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol

C = TypeVar("C", bound=c.Composite)


class Client:
    """One connection with one session. Frames that nobody waits for are ignored."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._links = 0
        self._deliveries = 0

    @classmethod
    @asynccontextmanager
    async def connect(cls, host: str, port: int, name: str = "client") -> AsyncIterator[Self]:
        client = cls(*await asyncio.open_connection(host, port))
        response = b"\0guest\0guest"
        client._writer.write(SASL_HEADER)
        client.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=response), SASL)
        client._writer.write(PROTOCOL_HEADER)
        client.send(c.Open(container_id=name))
        client.send(c.Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW))
        await client.expect(c.Begin)
        yield client
        client.send(c.Close())
        await client.expect(c.Close)
        client._writer.close()
        await client._writer.wait_closed()

    def send(self, body: c.Composite, kind: int = AMQP, payload: bytes = b"") -> None:
        self._writer.write(frame(kind, 0, body.encode() + payload))

    async def take(self) -> tuple[Any, bytes]:
        """The next frame with a performative, and what follows it."""
        while True:
            header = await self._reader.readexactly(8)
            if header[:4] == b"AMQP":
                continue
            payload = await self._reader.readexactly(int.from_bytes(header[:4], "big") - 8)
            if payload:
                body, end = c.read_body(payload)
                return body, payload[end:]

    async def expect(self, kind: type[C]) -> C:
        """The next frame of this kind."""
        while True:
            body, _ = await self.take()
            if isinstance(body, kind):
                return body

    async def attach(self, role: bool, queue: str, credit: int = 0) -> int:
        handle, self._links = self._links, self._links + 1
        self.send(attach(role, f"/queues/{queue}", handle))
        if credit:
            fields = {"incoming_window": WINDOW, "next_outgoing_id": 0, "outgoing_window": WINDOW}
            self.send(c.Flow(handle=handle, delivery_count=0, link_credit=credit, **fields))
        await self.expect(c.Attach)
        return handle

    async def publish(self, queue: str, *bodies: bytes) -> list[str]:
        """Publish on a link of its own; returns the names of the outcomes."""
        handle = await self.attach(SENDER, queue)
        outcomes = []
        for body in bodies:
            number, self._deliveries = self._deliveries, self._deliveries + 1
            tag = str(number).encode()
            self.send(c.Transfer(handle=handle, delivery_id=number, delivery_tag=tag), payload=message(body))
            outcomes.append(c.read_composite((await self.expect(c.Disposition)).state).NAME)
        return outcomes

    async def consume(self, queue: str, count: int) -> list[bytes]:
        """Take and accept so many messages."""
        await self.attach(RECEIVER, queue, count)
        bodies = []
        while len(bodies) < count:
            body, payload = await self.take()
            if isinstance(body, c.Transfer):
                bodies.append(sections(payload)["data"])
                first = body.delivery_id
                self.send(c.Disposition(role=RECEIVER, first=first, settled=True, state=c.Accepted()))
        await self._writer.drain()
        return bodies
