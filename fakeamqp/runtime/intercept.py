"""Interception: connections of this process to a given address reach the broker instead.

What a client calls to resolve and to connect is patched while an interception is active; `intercept_patches`
has the list. TLS is not affected: the client verifies the certificate for the name that it uses.

A connection that the patches cannot redirect is refused before it is dialled:

- `_socket` reports each connect of a Python socket to an audit hook. It refuses an intercepted address that
  no patch has replaced, for example one that a reference to the C function dials.
- An address without a name may be that of an intercepted name, which the process resolved earlier or in
  another way. It is refused if its port is intercepted, unless a name that is not intercepted led to it.

Not covered: other processes; libraries in C that use no Python sockets.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING

from fakeamqp.errors import without_login
from fakeamqp.runtime.errors import InterceptError
from fakeamqp.runtime.intercept_patches import is_numeric, normal, patches, port_number

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
        patches.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; with the last interception gone, `socket` is as it was."""
        patches.remove(self)

    def covers(self, host: object, port: object) -> bool:
        """Whether a connection to this host and port is redirected."""
        name = normal(host)
        number = port_number(port)
        return name is not None and number is not None and (name, number) in self._keys

    def leads_to(self, host: object, port: object) -> bool:
        """Whether this is the address of the broker."""
        return port_number(port) == self.address[1] and normal(host) == normal(self.address[0])

    def names(self, host: object) -> bool:
        """Whether this host is intercepted on some port."""
        name = normal(host)
        return any(name == each for each, _ in self._keys)

    def name_on(self, port: object) -> str | None:
        """The target on this port that is a name, if there is one: its address is not known."""
        number = port_number(port)
        for name, each in self._keys:
            if each == number and name != "localhost" and not is_numeric(name):
                return f"{name}:{each}"
        return None

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


def _parse(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    name = normal(host)
    if not colon or not name or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise InterceptError(
            f"cannot intercept {without_login(text)!r}: give 'host:port', such as 'rabbit.prod:5672'"
        )
    return name, int(port)
