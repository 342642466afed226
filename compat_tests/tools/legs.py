"""Compares the bytes on both legs of a proxy: client -> relay -> proxy -> relay -> broker.

Whatever one relay reads from a peer, the other relay must read from the proxy: the same bytes in order, then
the same end. The relays pass all of it on and know no AMQP. The comparison is made as the bytes come, so only
those under way are kept.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from typing_extensions import Self

__all__ = ["Legs", "Traffic"]

_T = TypeVar("_T")

_HOST = "127.0.0.1"
_READ = 256 * 1024
_SECONDS = 30.0
"""How long a proxy may take to dial, and for the last bytes and ends."""
_RESETS = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which `close` sends a reset."""
_FRAME = struct.Struct(">BHI")
_HEARTBEAT = 8
_PROTOCOL_HEADER_SIZE = 8


class End(NamedTuple):
    """How a stream has ended: "closed", "reset", or "cut" by a reset in the other direction."""

    kind: str
    number: int
    """The place of this event among all of a recording."""


@dataclass
class Stream:
    """One direction of a connection: what a peer sent, and what came out of the proxy."""

    name: str
    difference: str = ""
    """The first difference between the bytes."""
    count: int = 0
    """Bytes that have passed."""
    frames: int = 0
    heartbeats: int = 0
    waiting: bytearray = field(default_factory=bytearray)
    """Bytes that the peer has sent and that have not passed."""
    sent_end: End | None = None
    passed_end: End | None = None
    _head: bytes = b""
    _skipped: int | None = None
    """Bytes of a frame that are still to come; None before the first byte."""

    def sent(self, octets: bytes) -> None:
        self.waiting += octets

    def passed(self, octets: bytes) -> None:
        if self.difference:
            return
        if not self.waiting.startswith(octets):
            pairs = enumerate(zip(self.waiting, octets))  # noqa: B905  The shorter one ends.
            at = next((at for at, (one, other) in pairs if one != other), len(self.waiting))
            was, became = (bytes(each[at : at + 16]).hex() for each in (self.waiting, octets))
            self.difference = f"byte {self.count + at} was {was or 'not sent'} and became {became}"
            return
        del self.waiting[: len(octets)]
        self.count += len(octets)
        self._count_frames(octets)

    def _count_frames(self, octets: bytes) -> None:
        if self._skipped is None:
            self._skipped = _PROTOCOL_HEADER_SIZE if octets.startswith(b"A") else 0
        at = 0
        while at < len(octets):
            step = min(self._skipped, len(octets) - at)
            self._skipped -= step
            at += step
            if not self._skipped:
                step = _FRAME.size - len(self._head)
                self._head += octets[at : at + step]
                at += step
                if len(self._head) == _FRAME.size:
                    frame_type, _, size = _FRAME.unpack(self._head)
                    self.frames += 1
                    self.heartbeats += frame_type == _HEARTBEAT
                    self._head, self._skipped = b"", size + 1

    def problem(self, back: Stream) -> str:
        """What is not the same on both legs; empty if all is. `back` is the other direction.

        A receiver that has gone gets no more, and a reset destroys what is under way: then bytes may be
        missing at the end.
        """
        if self.difference:
            return self.difference
        sent, passed, left = self.sent_end, self.passed_end, back.sent_end
        kinds = ["not ended" if each is None else each.kind for each in (sent, passed)]
        if left is not None and left.kind != "cut" and passed is not None and left.number <= passed.number:
            return ""
        if kinds[0] != kinds[1] or (left is not None and passed is None):
            return "{} before the proxy, {} behind it".format(*kinds)
        return (
            f"the last {len(self.waiting)} bytes are missing" if self.waiting and "reset" not in kinds else ""
        )


def _settled(streams: tuple[Stream, Stream]) -> bool:
    ends = [end for each in streams for end in (each.sent_end, each.passed_end)]
    return None not in ends or (not any(ends) and not any(each.waiting for each in streams))


class Traffic(NamedTuple):
    """What has passed in all connections, and what was not the same on both legs."""

    connections: int
    frames: int
    heartbeats: int
    bytes: int
    problems: tuple[str, ...]


class Legs:
    """Relays on both sides of a proxy, in a thread; a context manager.

    The proxy is to dial the port `to`. Clients connect to the port that `listen` returns.
    """

    def __init__(self, broker_port: int) -> None:
        self.to: int = 0
        self.streams: list[tuple[Stream, Stream]] = []
        """Of each connection the stream to the broker, and that to the client."""
        self._broker_port = broker_port
        self._numbers = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="legs", daemon=True)
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._dialed: asyncio.Queue[socket.socket]

    def __enter__(self) -> Self:
        self._thread.start()
        behind = self._listener()
        self.to = behind.getsockname()[1]

        async def prepare() -> None:
            self._dialed = asyncio.Queue()
            self._begin(self._accept_proxy(behind))

        self._run(prepare())
        return self

    def listen(self, proxy_port: int) -> int:
        """Relay clients to the proxy that listens on this port; returns the port for clients."""
        before = self._listener()

        async def begin() -> None:
            self._begin(self._accept_clients(before, proxy_port))

        self._run(begin())
        port: int = before.getsockname()[1]
        return port

    def __exit__(self, *_: object) -> None:
        async def cancel() -> None:
            tasks = list(self._tasks)
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self._run(cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for each in self._listeners:
            each.close()

    def traffic(self) -> Traffic:
        """What has passed, once what has come or ended on one leg has done so on the other.

        What takes too long for that is a problem.
        """

        async def found() -> Traffic:
            deadline = self._loop.time() + _SECONDS
            while not all(map(_settled, self.streams)) and self._loop.time() < deadline:
                await asyncio.sleep(0.01)
            streams = [each for both in self.streams for each in both]
            return Traffic(
                len(self.streams),
                sum(each.frames for each in streams),
                sum(each.heartbeats for each in streams),
                sum(each.count for each in streams),
                tuple(
                    f"{stream.name}: {problem}"
                    for both in self.streams
                    for stream, back in (both, both[::-1])
                    if (problem := stream.problem(back))
                ),
            )

        return self._run(found())

    def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _listener(self) -> socket.socket:
        listener = socket.create_server((_HOST, 0), backlog=1024)
        listener.setblocking(False)
        self._listeners.append(listener)
        return listener

    async def _accept_proxy(self, behind: socket.socket) -> None:
        while True:
            self._dialed.put_nowait((await self._loop.sock_accept(behind))[0])

    async def _accept_clients(self, before: socket.socket, proxy_port: int) -> None:
        while True:
            client, _ = await self._loop.sock_accept(before)
            # One by one: the next connection that the proxy dials is that for this client.
            to_proxy = await self._connected(proxy_port)
            from_proxy = await asyncio.wait_for(self._dialed.get(), _SECONDS)
            to_broker = await self._connected(self._broker_port)
            self._begin(self._relay(client, to_proxy, from_proxy, to_broker))

    async def _connected(self, port: int) -> socket.socket:
        made = socket.socket()
        made.setblocking(False)
        await self._loop.sock_connect(made, (_HOST, port))
        return made

    async def _relay(
        self,
        client: socket.socket,
        to_proxy: socket.socket,
        from_proxy: socket.socket,
        to_broker: socket.socket,
    ) -> None:
        name = f"connection {len(self.streams) + 1} to the"
        streams = outward, inward = Stream(f"{name} broker"), Stream(f"{name} client")
        self.streams.append(streams)
        await asyncio.gather(
            self._leg(client, to_proxy, outward, inward), self._leg(to_broker, from_proxy, inward, outward)
        )

    async def _leg(self, peer: socket.socket, proxy: socket.socket, out: Stream, back: Stream) -> None:
        """Relay between a peer and the proxy. A reset of one socket resets the other."""
        sockets = (peer, proxy)
        for each in sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        broken: set[socket.socket] = set()
        sending = asyncio.ensure_future(self._pump(peer, proxy, out.sent, broken))
        passing = asyncio.ensure_future(self._pump(proxy, peer, back.passed, broken))
        try:
            left = {sending, passing}
            while left:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                kinds = {each: each.result() for each in done}
                if "reset" in kinds.values():
                    kinds |= dict.fromkeys(left, "cut")
                    for each in left:
                        each.cancel()
                    left = set()
                    for each in sockets:
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
                number = next(self._numbers)
                if sending in kinds:
                    out.sent_end = End(kinds[sending], number)
                if passing in kinds:
                    back.passed_end = End(kinds[passing], number)
        finally:
            for pump in (sending, passing):
                pump.cancel()
            await asyncio.gather(sending, passing, return_exceptions=True)
            for each in sockets:
                each.close()

    async def _pump(
        self,
        source: socket.socket,
        target: socket.socket,
        took: Any,
        broken: set[socket.socket],
    ) -> str:
        """Relay until the source ends, and then end the target; returns how it ended."""
        while True:
            try:
                octets = await self._loop.sock_recv(source, _READ)
            except OSError:
                return "reset"
            if not octets:
                break
            took(octets)
            if target not in broken:
                try:
                    await self._loop.sock_sendall(target, octets)
                except OSError:
                    broken.add(target)  # What comes for it is compared all the same.
        if source in broken:  # Sending has had the error of the reset.
            return "reset"
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        return "closed"
