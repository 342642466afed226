"""The loopback addresses of this machine, and free ports on them."""

from __future__ import annotations

import errno
import random
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

__all__ = ["LOOPBACK", "free_port", "free_ports", "has_ipv6", "needs_ipv6"]

LOOPBACK = ("127.0.0.1", "::1")

_LOWEST_PORT = 10_000
_EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Tests seed the shared generator: processes that run side by side would draw the same ports from it.
_random = random.SystemRandom()


def has_ipv6() -> bool:
    """Whether this machine has the loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


def free_port() -> int:
    """A port that is free on both loopback addresses."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different ports that are free on both loopback addresses.

    They are for servers that listen some time later, such as a node of RabbitMQ, which takes seconds. So they
    are not ephemeral ports: the system could give those to any connection or listener in between. Another
    process that draws ports here could still draw the same.
    """
    end = _first_ephemeral_port()
    families = (socket.AF_INET, socket.AF_INET6) if has_ipv6() else (socket.AF_INET,)
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = _random.randrange(_LOWEST_PORT, end)
            try:
                for family in families:
                    sock = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
                    sock.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                found.append(port)
    return found


def _first_ephemeral_port() -> int:
    default = 32_768
    try:
        first = int(_EPHEMERAL_PORTS.read_text().split()[0])
    except OSError:  # Not Linux; others begin at 49152.
        return default
    # Where almost all ports are ephemeral, the default is as good as any.
    return first if first > _LOWEST_PORT + 1000 else default
