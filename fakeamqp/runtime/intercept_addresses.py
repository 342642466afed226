"""Hosts and ports in the many forms that clients give them, for comparison."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket

__all__ = ["is_numeric", "normal", "port_number"]

_SHORT_NUMERIC = re.compile(r"(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+)){0,3}")


def normal(host: object) -> str | None:
    """One spelling for each host; None if it is no host."""
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("ascii", "replace")
    if not isinstance(host, str):
        return None
    name = host.strip().lower().rstrip(".")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if ":" in name:
        with contextlib.suppress(ValueError):
            address = ipaddress.ip_address(name)  # one spelling for each IPv6 address
            return str(getattr(address, "ipv4_mapped", None) or address)
    elif _SHORT_NUMERIC.fullmatch(name):
        with contextlib.suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(name))  # 127.1 is 127.0.0.1
    return name


def is_numeric(name: str) -> bool:
    """Whether a host in the form that `normal` returns is an address, and not a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def port_number(port: object) -> int | None:
    """The number of a port, which may be a service's name; None if it is no port."""
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
