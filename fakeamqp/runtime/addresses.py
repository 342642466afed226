"""Addresses to listen on, and sockets that have them."""

from __future__ import annotations

import _socket
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from selectors import EVENT_READ, BaseSelector, SelectSelector
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.errors import CannotListen, InterceptError, PortInUse, SelectorFull

if TYPE_CHECKING:
    from _typeshed import HasFileno

_log = logging.getLogger("fakeamqp.runtime")
BACKLOG = 512
_LOG_SECONDS = 10.0
_WSAEACCES = 10013
_WSAEMFILE = 10024
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, _WSAEMFILE}
# How long a listener on this machine may take to answer, in real seconds.
_ANSWER_SECONDS = 1.0
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


class Reserve:
    """A descriptor that a listener keeps for peers that come when the process has no other left.

    Such a peer is accepted with it and disconnected at once. Otherwise it would wait for as long as it likes
    to, and keep the listening socket readable. The log names `listener`, in one line per ten seconds.
    """

    def __init__(self, listener: object) -> None:
        self._listener = listener
        self._spare: socket.socket | None = None
        self._silent_until = 0.0
        self._left_out = 0
        self.take()

    def take(self) -> None:
        """Keep a descriptor, unless one is kept or there is none."""
        if self._spare is None:
            with suppress(OSError):
                self._spare = socket.socket()

    def give_up(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None

    def accept(self, listening: socket.socket) -> tuple[socket.socket, tuple[str, int]] | None:
        """Accept a peer; None if it has disconnected already, or is refused for want of a descriptor.

        Raises BlockingIOError if no peer waits, or OSError if it has to wait: none is in reserve either.
        """
        try:
            accepted: tuple[socket.socket, tuple[str, int]] = listening.accept()
        except (BlockingIOError, InterruptedError):
            raise BlockingIOError from None
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                return None
            refused = self._refuse(listening)
            self.log("refuses" if refused else "cannot accept", error)
            if not refused:
                raise
            return None
        self.take()
        return accepted

    def _refuse(self, listening: socket.socket) -> bool:
        if self._spare is None:
            return False
        self.give_up()
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            raise  # Without a descriptor, `accept` does not say whether a peer waits.
        except OSError:
            return False
        finally:
            self.take()
        return True

    def log(self, does: str, error: Exception) -> None:
        now = RealClock.now()
        if now < self._silent_until:
            self._left_out += 1
            return
        more = f" ({self._left_out} more lines like this were left out)" if self._left_out else ""
        self._silent_until, self._left_out = now + _LOG_SECONDS, 0
        _log.warning("%s %s a connection for now: %s%s", self._listener, does, error, more)


def check_room(selector: BaseSelector | None, sock: HasFileno, others: Iterable[HasFileno] = ()) -> None:
    """Check that a selector can watch one more socket, besides `others`, which it does not watch now.

    Raises SelectorFull. To watch the socket all the same would end the loop. None as a selector has room.
    """
    if not isinstance(selector, SelectSelector):
        return
    unwatched = {each.fileno() for each in (sock, *others)} - {-1, *selector.get_map()}
    for number in unwatched:
        selector.register(number, EVENT_READ)
    try:
        with suppress(OSError):  # Some socket has been closed while it was watched.
            selector.select(0)
    except ValueError:
        raise SelectorFull from None
    finally:
        for number in unwatched:
            selector.unregister(number)


def resolve(host: str, port: int) -> tuple[int, SocketAddress]:
    """The family and the address to listen on: the first one of `host`. Raises CannotListen."""
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
    """A non-blocking socket that has an address and does not listen yet. Raises PortInUse or CannotListen."""
    if _is_shadowed(family, sockaddr):
        raise PortInUse(*sockaddr[:2])
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


def _is_shadowed(family: int, sockaddr: SocketAddress) -> bool:
    """Whether another socket serves a port that could be bound all the same.

    On macOS and the BSDs, SO_REUSEADDR lets a socket have the port on one address while another one listens
    on all addresses, and the other way round; a client reaches the one with the more specific address.
    """
    host, port = sockaddr[:2]
    if not port or not ("bsd" in sys.platform or sys.platform == "darwin"):
        return False
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    # Not a `socket.socket`, whose connections may be intercepted.
    try:
        with closing(_socket.socket(family, socket.SOCK_STREAM)) as probe:
            probe.settimeout(_ANSWER_SECONDS)
            probe.connect((host, port, *sockaddr[2:]))
    except (OSError, InterceptError):
        return False
    return True


def cannot_listen(error: OSError, sockaddr: SocketAddress) -> CannotListen:
    """The error to raise for one of the operating system."""
    host, port = sockaddr[:2]
    # Windows says WSAEACCES where another socket has the port for itself, or the system has reserved it.
    if error.errno == errno.EADDRINUSE or getattr(error, "winerror", None) == _WSAEACCES:
        return PortInUse(host, port)
    return CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}")


# --- the host localhost -----------------------------------------------------------------------------------
#
# One port on both loopback addresses. Clients resolve the name to 127.0.0.1 and ::1. They differ in which
# address they try first, and some try only the first one, so a broker that listens on one of them is not
# reachable for all.


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

    A loopback address that this machine does not have is left out. `listen` creates the listener of one
    address. Port 0 takes one that is free on all addresses. Raises PortInUse or CannotListen.
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
    try:
        for address in _LOOPBACK:
            try:
                listeners.append(listen(address, listeners[0].port if listeners else port))
            except CannotListen as error:
                if not _is_absent(error):
                    raise
                absent = error
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    if not listeners and absent is not None:
        raise absent
    return tuple(listeners)


def _is_absent(error: CannotListen) -> bool:
    """Whether the machine does not have the address, or not even its family."""
    cause = error.__cause__
    return isinstance(cause, socket.gaierror) or (isinstance(cause, OSError) and cause.errno in _ABSENT)
