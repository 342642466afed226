"""Interception: connections of this process to a given address reach the broker instead.

A client connects in two steps, and both are patched. `socket.getaddrinfo` returns the broker's address for an
intercepted name and port, also for names that do not exist. Clients with a numeric address skip this step
(asyncio does so by itself), so `connect` and `connect_ex` of `socket.socket` replace the address as well. TLS
is not affected: the client verifies the certificate for the name that it uses.

Not covered: other processes; clients that do not use Python's sockets (uvloop, gevent's resolvers); numeric
addresses with asyncio's proactor loop on Windows, which connects by handle.
"""

from __future__ import annotations

import _socket
import contextlib
import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import without_login
from fakeamqp.runtime.errors import InterceptError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Intercept"]

_LOOPBACK = ("127.0.0.1", "::1")


class Intercept:
    """While entered, connections to `targets` go to `address`. Reentrant and nestable; the innermost one
    wins.

    Args:
        targets: `"host:port"` or `"[ipv6]:port"`, or several of them. `localhost` includes 127.0.0.1 and ::1.
        address: numeric host and port where the broker listens.

    Raises:
        InterceptError: a target has no host or no port, or `address` is not numeric.
    """

    def __init__(self, targets: str | Iterable[str], address: tuple[str, int]) -> None:
        texts = [targets] if isinstance(targets, str) else list(targets)
        self._keys: set[tuple[str, int]] = set()
        for text in texts:
            host, port = _parse(text)
            self._keys.update(
                (name, port) for name in ((host, *_LOOPBACK) if host == "localhost" else (host,))
            )
        try:
            self._version = ipaddress.ip_address(address[0]).version
        except ValueError:
            raise InterceptError(f"the broker's address must be numeric, not {address[0]!r}") from None
        self._targets = tuple(texts)
        self.address = address

    def __enter__(self) -> Self:
        """Begin to intercept."""
        _patches.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; with the last interception gone, `socket` is as it was."""
        _patches.remove(self)

    def covers(self, host: object, port: object) -> bool:
        """Whether a connection to this host and port is redirected."""
        name = _normal(host)
        number = _port_number(port)
        return name is not None and number is not None and (name, number) in self._keys

    def host_for(self, family: int) -> str:
        """The broker's host in a form that a socket of this family can connect to (IPv4 works for both)."""
        if family == socket.AF_INET6 and self._version == 4:
            return f"::ffff:{self.address[0]}"
        if family == socket.AF_INET and self._version == 6:
            raise InterceptError(
                f"cannot intercept an IPv4 connection: the broker listens on IPv6 only ({self.address[0]}); "
                "let it listen on 127.0.0.1"
            )
        return self.address[0]

    def __repr__(self) -> str:
        return f"<Intercept {', '.join(self._targets)} -> {self.address[0]}:{self.address[1]}>"


class _Patches:
    """The patches of `socket`, installed while an interception is active."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: tuple[Intercept, ...] = ()
        self._undo: list[Callable[[], None]] = []

    def add(self, intercept: Intercept) -> None:
        with self._lock:
            if not self._active:
                self._install()
            self._active = (*self._active, intercept)

    def remove(self, intercept: Intercept) -> None:
        with self._lock:
            active = list(self._active)
            # From the end: if it was entered twice, the outer one keeps its position.
            del active[len(active) - 1 - active[::-1].index(intercept)]
            self._active = tuple(active)
            if not active:
                while self._undo:
                    self._undo.pop()()

    def after_fork(self) -> None:
        """In a forked child: interception stays active, but the thread that held the lock does not exist."""
        self._lock = threading.Lock()

    def find(self, host: object, port: object) -> Intercept | None:
        for intercept in reversed(self._active):
            if intercept.covers(host, port):
                return intercept
        return None

    def _install(self) -> None:
        original_getaddrinfo = socket.getaddrinfo
        python_socket = _python_socket_class()
        original_connect = python_socket.connect
        original_connect_ex = python_socket.connect_ex

        def getaddrinfo(
            host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
        ) -> Any:
            if not flags & socket.AI_PASSIVE:  # listeners are not intercepted
                intercept = self.find(host, port)
                if intercept is not None:
                    host, port = intercept.host_for(family), intercept.address[1]
            return original_getaddrinfo(host, port, family, type, proto, flags)

        def connect(sock: socket.socket, address: Any, /) -> None:
            original_connect(sock, self._redirect(sock, address))

        def connect_ex(sock: socket.socket, address: Any, /) -> int:
            status: int = original_connect_ex(sock, self._redirect(sock, address))
            return status

        self._patch(socket, "getaddrinfo", getaddrinfo)
        self._patch(python_socket, "connect", connect)
        self._patch(python_socket, "connect_ex", connect_ex)

    def _redirect(self, sock: socket.socket, address: Any) -> Any:
        if (
            sock.family in (socket.AF_INET, socket.AF_INET6)
            and isinstance(address, tuple)
            and len(address) >= 2
        ):
            intercept = self.find(address[0], address[1])
            if intercept is not None:
                return intercept.host_for(sock.family), intercept.address[1]
        return address

    def _patch(self, owner: Any, name: str, replacement: Any) -> None:
        inherited = name not in vars(owner)
        original = getattr(owner, name)
        setattr(owner, name, replacement)

        def undo() -> None:
            # A later patch of other code stays: without interceptions ours only calls the original.
            if vars(owner).get(name) is replacement:
                if inherited:
                    delattr(owner, name)
                else:
                    setattr(owner, name, original)

        self._undo.append(undo)


_patches = _Patches()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_patches.after_fork)


def _python_socket_class() -> Any:
    """The Python class directly above the C socket, even if `socket.socket` has been replaced."""
    for candidate in socket.socket.__mro__:
        if _socket.socket in candidate.__bases__:
            return candidate
    return socket.socket


def _parse(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    name = _normal(host)
    if not colon or not name or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise InterceptError(
            f"cannot intercept {without_login(text)!r}: give 'host:port', such as 'rabbit.prod:5672'"
        )
    return name, int(port)


def _normal(host: object) -> str | None:
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("ascii", "replace")
    if not isinstance(host, str):
        return None
    name = host.strip().lower().rstrip(".")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if ":" in name:
        with contextlib.suppress(ValueError):
            return str(ipaddress.ip_address(name))  # one spelling for each IPv6 address
    return name


def _port_number(port: object) -> int | None:
    if isinstance(port, int):
        return port
    if isinstance(port, (bytes, bytearray)):
        port = bytes(port).decode("ascii", "replace")
    if isinstance(port, str):
        if port.isdecimal():
            return int(port)
        with contextlib.suppress(OSError):
            return socket.getservbyname(port, "tcp")
    return None
