"""The loopback addresses of this machine."""

from __future__ import annotations

import socket

import pytest

__all__ = ["LOOPBACK", "needs_ipv6"]

LOOPBACK = ("127.0.0.1", "::1")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
