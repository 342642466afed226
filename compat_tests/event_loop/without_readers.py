"""Event loops of asyncio that do not watch descriptors, such as Windows' Proactor loop, on any system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import socket
import struct
import warnings
from asyncio.proactor_events import BaseProactorEventLoop
from collections.abc import Callable
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any, NoReturn

__all__ = ["LOOPS", "ProactorLoop"]

_libc = ctypes.CDLL(None, use_errno=True)


class _Call(asyncio.Future[Any]):
    """A call on a socket that is under way. A cancelled one ends at once, as with CancelIoEx."""

    def __init__(self, proactor: _Proactor, key: tuple[int, int], call: Callable[[], Any]) -> None:
        super().__init__(loop=proactor.loop)
        self.proactor, self.key, self.call = proactor, key, call
        proactor.calls[key] = self
        proactor.watch(key[0])

    def end(self) -> None:
        if self.proactor.calls.get(self.key) is self:
            del self.proactor.calls[self.key]
            self.proactor.watch(self.key[0])

    def cancel(self, msg: Any = None) -> bool:
        self.end()
        return super().cancel(msg)

    def complete(self) -> None:
        try:
            result = self.call()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.end()
            self.set_exception(error)
        else:
            self.end()
            self.set_result(result)


class _Proactor:
    """Carries out calls on sockets for a loop, as Windows' IocpProactor does."""

    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self.calls: dict[tuple[int, int], _Call] = {}
        self._selector = DefaultSelector()

    def set_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def watch(self, number: int) -> None:
        with suppress(KeyError):
            self._selector.unregister(number)
        mask = sum(event for event in (EVENT_READ, EVENT_WRITE) if (number, event) in self.calls)
        if mask:
            self._selector.register(number, mask)

    def select(self, timeout: float | None = None) -> list[Any]:
        for key, mask in self._selector.select(timeout):
            for event in (EVENT_READ, EVENT_WRITE):
                if mask & event and (key.fd, event) in self.calls:
                    self.calls[key.fd, event].complete()
        return []

    def recv(self, sock: socket.socket, size: int, flags: int = 0) -> _Call:
        return _Call(self, (sock.fileno(), EVENT_READ), lambda: sock.recv(size, flags))

    def recv_into(self, sock: socket.socket, buffer: Any, flags: int = 0) -> _Call:
        return _Call(self, (sock.fileno(), EVENT_READ), lambda: sock.recv_into(buffer, 0, flags))

    def send(self, sock: socket.socket, data: Any, flags: int = 0) -> _Call:
        return _Call(self, (sock.fileno(), EVENT_WRITE), lambda: sock.send(data, flags))

    def accept(self, listener: socket.socket) -> _Call:
        return _Call(self, (listener.fileno(), EVENT_READ), listener.accept)

    def connect(self, sock: socket.socket, address: Any) -> _Call:
        # Past `socket.connect` and its audit event, as ConnectEx.
        number = sock.fileno()
        host, port = address[:2]
        packed = struct.pack("!H", port)
        if sock.family == socket.AF_INET6:
            packed += bytes(4) + socket.inet_pton(socket.AF_INET6, host) + bytes(4)
        else:
            packed += socket.inet_aton(host) + bytes(8)
        name = struct.pack("=H", sock.family) + packed
        _libc.connect(number, name, len(name))

        def connected() -> None:
            if problem := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(problem, os.strerror(problem))

        return _Call(self, (number, EVENT_WRITE), connected)

    def close(self) -> None:
        self._selector.close()


class ProactorLoop(BaseProactorEventLoop):
    """asyncio's own transports of Windows."""

    def __init__(self) -> None:
        super().__init__(_Proactor())  # type: ignore[call-arg]
        self.call_soon(self._loop_self_reading)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Close the loop, and what transports of clients leave open whose server has closed first.

        They shut their socket down then, which fails on Linux.
        """
        super().close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


class ReaderlessLoop(asyncio.SelectorEventLoop):
    """A loop with a selector that it keeps to itself."""

    def add_reader(self, *arguments: Any) -> NoReturn:  # type: ignore[override]
        """Refused."""
        raise NotImplementedError

    def add_writer(self, *arguments: Any) -> NoReturn:  # type: ignore[override]
        """Refused."""
        raise NotImplementedError


LOOPS: tuple[Callable[[], asyncio.AbstractEventLoop], ...] = (ProactorLoop, ReaderlessLoop)
