"""Addresses to listen on, and sockets that have them."""

from __future__ import annotations

import errno
import logging
import os
import socket
from ipaddress import ip_address
from typing import TypeAlias

from fakeamqp.runtime.errors import CannotListen, PortInUse

__all__ = [
    "BACKLOG",
    "SocketAddress",
    "bound_socket",
    "cannot_listen",
    "is_exhausted",
    "is_loopback",
    "listening_socket",
    "resolve",
    "warn_if_exposed",
]

_log = logging.getLogger("fakeamqp.runtime")
BACKLOG = 512
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_WSAEACCES = 10013
_EVERY_NETWORK = ("0.0.0.0", "::")

SocketAddress: TypeAlias = "tuple[str, int] | tuple[str, int, int, int]"


def warn_if_exposed(host: str, sockaddr: SocketAddress) -> None:
    """Warn if other machines can connect to an address, which was given as `host`."""
    if sockaddr[0] in _EVERY_NETWORK:
        _log.warning(
            "listening on %s:%d, so every machine that reaches this one can connect; "
            "host='127.0.0.1' listens for this machine only",
            host,
            sockaddr[1],
        )


def listening_socket(host: str, port: int) -> socket.socket:
    """A non-blocking socket that listens on the first address of `host`; the caller closes it.

    Raises:
        PortInUse: another socket uses the port.
        CannotListen: the address is not one of this machine, or not usable.
    """
    family, sockaddr = resolve(host, port)
    sock = bound_socket(family, sockaddr)
    try:
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise cannot_listen(error, sockaddr) from error
    return sock


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches a numeric address."""
    return ip_address(address.partition("%")[0]).is_loopback


def is_exhausted(error: OSError) -> bool:
    """Whether the process or the machine has no descriptors or buffers left."""
    return error.errno in _EXHAUSTED


def resolve(host: str, port: int) -> tuple[int, SocketAddress]:
    """The family and the address to listen on: the first one of `host`.

    Raises:
        CannotListen: the host is empty, or not one of this machine.
    """
    if not host:
        raise CannotListen(
            "an empty host would listen on every network of this machine; give the address, "
            "such as host='127.0.0.1', or host='0.0.0.0' for all networks"
        )
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"cannot listen on {host!r}: {error}; use an address of this machine") from error
    # `localhost` can resolve to both families; every client tries IPv4.
    infos.sort(key=lambda info: info[0] != socket.AF_INET)
    family, _type, _proto, _name, sockaddr = infos[0]
    return family, sockaddr  # type: ignore[return-value]


def bound_socket(family: int, sockaddr: SocketAddress) -> socket.socket:
    """A non-blocking socket that has an address and does not listen yet.

    Raises:
        PortInUse: another socket uses the port.
        CannotListen: the address is not one of this machine, or not usable.
    """
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise cannot_listen(error, sockaddr) from error
    try:
        sock.setblocking(False)
        if os.name == "posix":
            # Connections of an earlier listener in TIME_WAIT must not block the port. On Windows this option
            # would share the port with another process.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        exclusive = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
        if exclusive is not None:
            # Windows: a process that sets SO_REUSEADDR would share the port all the same.
            sock.setsockopt(socket.SOL_SOCKET, exclusive, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(sockaddr)
    except OSError as error:
        sock.close()
        raise cannot_listen(error, sockaddr) from error
    return sock


def cannot_listen(error: OSError, sockaddr: SocketAddress) -> CannotListen:
    """The error to raise for one of the operating system."""
    host, port = sockaddr[:2]
    # Windows says WSAEACCES where another socket has the port for itself, or the system has reserved it.
    if error.errno == errno.EADDRINUSE or getattr(error, "winerror", None) == _WSAEACCES:
        return PortInUse(host, port)
    return CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}")
