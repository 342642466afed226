"""The raw client over a socket, to whatever listens at an address: as much of a connection as it uses."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.model.personality import personality

PATIENCE = 10.0
"""Seconds to wait for what is expected."""


class SocketConnection:
    """One socket. A socket that has ended takes all that is sent."""

    def __init__(self, host: str, port: int, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.socket = socket.create_connection((host, port), patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.finished = self.aborted = False
        self.received = 0
        self._octets: list[bytes] = []

    def receive(self, octets: bytes) -> None:
        """Send bytes."""
        with contextlib.suppress(OSError):
            self.socket.sendall(octets)

    def wait(self, seconds: float | None = None) -> bool:
        """Take in what comes next within some seconds; False on silence, and at the end."""
        if self.finished or self.aborted:
            return False
        self.socket.settimeout(self.patience if seconds is None else max(seconds, 0.001))
        try:
            octets = self.socket.recv(1 << 16)
        except TimeoutError:
            return False
        except OSError:
            octets = b""
            self.aborted = True
        self.finished = not octets
        self.received += len(octets)
        self._octets.append(octets)
        return not self.finished

    def pending(self) -> list[bytes]:
        octets, self._octets = self._octets, []
        return octets

    def sent(self, octets: int) -> None:
        pass

    def close(self) -> None:
        self.socket.close()

    receive_eof = close


class SocketServer(Server):
    """Whatever listens at an address instead of a broker without sockets."""

    def __new__(cls, *arguments: Any, **settings: Any) -> Server:
        """The listener itself, also where a node stands for brokers."""
        return object.__new__(cls)

    def __init__(self, host: str, port: int, *, protocol: str = "0-9-1", patience: float = PATIENCE) -> None:
        self.host = host
        self.port = port
        self.patience = patience
        self.protocol = protocol
        self.state: Any = SimpleNamespace(personality=personality("rabbitmq-4.3"))

    def wait(self, connection: Any) -> bool:
        return bool(connection.wait())

    def wait_for_end(self, connection: Any) -> None:
        while connection.wait():
            pass

    def accept(self, peer: PeerAddress, use: Callable[[Connection], None]) -> Connection:
        return SocketConnection(self.host, self.port, self.patience)  # type: ignore[return-value]
