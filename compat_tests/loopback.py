"""The loopback addresses of this machine."""

from __future__ import annotations

import errno
import socket

import pytest

__all__ = ["LOOPBACK", "free_port", "needs_ipv6"]

LOOPBACK = ("127.0.0.1", "::1")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


def free_port() -> int:
    """A port that is free on both loopback addresses; one that is free on one may be in use on the other."""
    while True:
        with (
            socket.create_server(("127.0.0.1", 0)) as first,
            socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as second,
        ):
            port: int = first.getsockname()[1]
            try:
                second.bind(("::1", port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise
            return port
