"""The host `localhost`: one port on both loopback addresses.

Clients resolve the name to 127.0.0.1 and ::1. They differ in which address they try first, and some try only
the first one, so a broker that listens on one of them is not reachable for all.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from fakeamqp.runtime.errors import CannotListen, PortInUse

__all__ = ["listen_on"]


class _Listening(Protocol):
    """What listens on one address."""

    @property
    def port(self) -> int: ...

    def close(self) -> None: ...


T = TypeVar("T", bound=_Listening)


_LOOPBACK = ("127.0.0.1", "::1")
_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)
# A port that is free on one address is rarely taken on the other, so even the second attempt is rare.
_ATTEMPTS = 100


def listen_on(listen: Callable[[str, int], T], host: str, port: int) -> tuple[T, ...]:
    """The listeners for `host`, all with the same port; for `localhost` one on each loopback address.

    A loopback address that this machine does not have is left out.

    Args:
        listen: creates the listener of one address.
        host: address or name of this machine.
        port: 0 takes one that is free on all addresses.

    Raises:
        PortInUse: another socket uses the port, on one of the addresses.
        CannotListen: the machine has no such address.
    """
    if host.lower().rstrip(".") != "localhost":
        return (listen(host, port),)
    for _ in range(_ATTEMPTS):
        try:
            return _listen_on_loopback(listen, port)
        except PortInUse as error:
            if port:
                raise
            taken = error
    raise taken


def _listen_on_loopback(listen: Callable[[str, int], T], port: int) -> tuple[T, ...]:
    listeners: list[T] = []
    absent: CannotListen | None = None
    with _closed_on_error(listeners):
        for address in _LOOPBACK:
            try:
                listeners.append(listen(address, listeners[0].port if listeners else port))
            except CannotListen as error:
                if not _is_absent(error):
                    raise
                absent = error
        if not listeners and absent is not None:
            raise absent
    return tuple(listeners)


@contextmanager
def _closed_on_error(listeners: list[T]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for listener in listeners:
            listener.close()
        raise


def _is_absent(error: CannotListen) -> bool:
    """Whether the machine does not have the address, or not even its family."""
    cause = error.__cause__
    return isinstance(cause, socket.gaierror) or (isinstance(cause, OSError) and cause.errno in _ABSENT)
