"""Interception: connections of this process to a given address reach the broker instead.

What a client calls to resolve and to connect is patched while an interception is active:

| Patched | for |
|---|---|
| `socket.getaddrinfo` | names, which need not exist |
| `_socket.getaddrinfo` | clients that hold a reference to the former function, which calls this one |
| `connect` and `connect_ex` of `socket.socket` | addresses, since numeric ones need no `getaddrinfo` |
| event loops that resolve or connect in their own way | the same. uvloop, if installed, is imported |
| `gevent.socket`, if it has been imported | the same: its sockets are a class of their own |

uvloop and Windows' Proactor loop connect in C. Other loops of asyncio, Twisted and trio use the functions and
the class of the first three rows. TLS is not affected: the client verifies the certificate for the name that
it uses.

A connection that the patches cannot redirect is refused before it is dialled:

- `_socket` reports each connect of a Python socket to an audit hook. It refuses an intercepted address that
  no patch has replaced, for example one that a reference to the C function dials.
- An address without a name may be that of an intercepted name, which the process resolved earlier or in
  another way. It is refused if its port is intercepted, unless a name that is not intercepted led to it.

Not covered: other processes; libraries in C that use no Python sockets.
"""

from __future__ import annotations

import _socket
import contextlib
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.connection import bracketed
from fakeamqp.errors import without_login
from fakeamqp.runtime.errors import InterceptError
from fakeamqp.runtime.thread.lock import FairLock

if TYPE_CHECKING:
    from typing_extensions import Self

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


_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class Patches:
    """The active interceptions, and the patches that are installed while there are any."""

    def __init__(self) -> None:
        self._lock = FairLock()
        self._active: tuple[Intercept, ...] = ()
        self._undo: list[Callable[[], None]] = []
        self._audited = False
        self._others: set[str] = set()
        """The addresses to which names that are not intercepted have led meanwhile."""

    def add(self, intercept: Intercept) -> None:
        """Begin to intercept. An interception that is added twice has to be removed twice."""
        with self._lock:
            if not self._active:
                self._install()
            self._active = (*self._active, intercept)

    def remove(self, intercept: Intercept) -> None:
        """Stop intercepting; the last one restores all that was patched."""
        with self._lock:
            active = list(self._active)
            # From the end: if it was entered twice, the outer one keeps its position.
            del active[len(active) - 1 - active[::-1].index(intercept)]
            self._active = tuple(active)
            if not active:
                while self._undo:
                    self._undo[-1]()  # An interrupt leaves it to the next removal.
                    self._undo.pop()
                self._others.clear()

    def after_fork(self) -> None:
        """In a forked child: interception stays active, but the thread that held the lock does not exist."""
        self._lock.after_fork()

    # --- questions ----------------------------------------------------------------------------------------

    def _find(self, host: object, port: object) -> Intercept | None:
        for intercept in reversed(self._active):
            if intercept.covers(host, port):
                return intercept
        return None

    def _is_broker(self, host: object, port: object) -> bool:
        return any(intercept.leads_to(host, port) for intercept in self._active)

    def _check(self, host: object, port: object) -> None:
        """Raise InterceptError if an address may be the one of an intercepted name."""
        name = normal(host)
        if not name or not is_numeric(name) or name in self._others or self._is_broker(host, port):
            return
        address = ipaddress.ip_address(name)
        if address.is_loopback or address.is_unspecified:
            return  # Such a broker runs on this machine, and tests use several.
        for intercept in self._active:
            target = intercept.name_on(port)
            if target is not None:
                numeric = f"{bracketed(name)}:{port}"
                raise InterceptError(
                    f"refused to connect to {name}:{port}: {target} is intercepted, and this may be its real "
                    "address, which the app looked up before or with a resolver of its own. Intercept it "
                    f"too: broker.intercept({target!r}, {numeric!r}); if it is another "
                    "server, connect to it by its name, or outside of the interception"
                )

    def _redirect(self, family: int, address: Any) -> Any:
        """The address to connect to. Raises InterceptError if it may be the one of an intercepted name."""
        if family not in _FAMILIES or not isinstance(address, tuple) or len(address) < 2:
            return address
        intercept = self._find(address[0], address[1])
        if intercept is not None:
            return intercept.host_for(family), intercept.address[1]
        self._check(address[0], address[1])
        return address

    def _note(self, host: object, infos: Iterable[Any]) -> None:
        """A name that is not intercepted has led to these addresses."""
        name = normal(host)
        if self._active and name and not is_numeric(name):
            found = (normal(info[4][0]) for info in infos if info[0] in _FAMILIES)
            self._others.update(address for address in found if address)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse a connection to an intercepted address that no patch has replaced."""
        if event != "socket.connect" or not self._active:
            return
        sock, address = arguments
        if sock.family not in _FAMILIES or not isinstance(address, tuple) or len(address) < 2:
            return
        host, port = address[:2]
        if self._is_broker(host, port):
            return
        if self._find(host, port) is not None:
            raise InterceptError(
                f"refused to connect to {host}:{port}: it is intercepted, but this client calls a connect "
                "function that was saved before the interception or is not Python's, and cannot be "
                "redirected. Import the client before the interception, or give it broker.url"
            )
        self._check(host, port)

    # --- installation -------------------------------------------------------------------------------------

    def _install(self) -> None:
        self._patch_resolver(socket)
        self._patch_resolver(_socket)
        self._patch_hosts("gethostbyname", lambda found: [found])
        self._patch_hosts("gethostbyname_ex", lambda found: found[2])
        self._patch_sockets(_python_socket_class())
        gevent = sys.modules.get("gevent._socketcommon")
        if gevent is not None:
            for name in ("gevent.socket", "gevent._socketcommon"):
                if hasattr(sys.modules.get(name), "getaddrinfo"):
                    self._patch_resolver(sys.modules[name])
            self._patch_sockets(gevent.SocketMixin)
        self._patch_loops()
        if not self._audited:  # An audit hook stays as long as the interpreter.
            self._audited = True
            sys.addaudithook(self._audit)

    def _patch_resolver(self, module: Any) -> None:
        original = module.getaddrinfo

        def getaddrinfo(
            host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
        ) -> Any:
            if flags & socket.AI_PASSIVE:  # Listeners are not intercepted.
                return original(host, port, family, type, proto, flags)
            # `socket.getaddrinfo` calls the other one with the address that it has replaced.
            intercept = None if self._is_broker(host, port) else self._find(host, port)
            if intercept is not None:
                host, port = intercept.host_for(family), intercept.address[1]
            infos = original(host, port, family, type, proto, flags)
            if intercept is None:
                self._note(host, infos)
            return infos

        self._patch(module, "getaddrinfo", getaddrinfo)

    def _patch_hosts(self, name: str, addresses: Callable[[Any], Iterable[str]]) -> None:
        """Functions that look up a name without a port: `connect` has to know the address of other names."""
        original = getattr(socket, name)

        def lookup(host: Any) -> Any:
            found = original(host)
            if not any(intercept.names(host) for intercept in self._active):
                self._note(host, ((socket.AF_INET, 0, 0, "", (each,)) for each in addresses(found)))
            return found

        self._patch(socket, name, lookup)

    def _patch_sockets(self, owner: Any) -> None:
        original_connect = owner.connect
        original_connect_ex = owner.connect_ex

        def connect(sock: Any, address: Any, /) -> None:
            original_connect(sock, self._redirect(sock.family, address))

        def connect_ex(sock: Any, address: Any, /) -> int:
            status: int = original_connect_ex(sock, self._redirect(sock.family, address))
            return status

        self._patch(owner, "connect", connect)
        self._patch(owner, "connect_ex", connect_ex)

    def _patch_loops(self) -> None:
        for loop, bases in _loop_classes():
            for name, replace in (
                ("getaddrinfo", self._resolving),
                ("create_connection", self._connecting),
                ("sock_connect", self._dialling),
            ):
                original = getattr(loop, name)
                if original not in [getattr(base, name) for base in bases]:
                    self._patch(loop, name, replace(original))

    def _resolving(self, original: Any) -> Any:
        async def getaddrinfo(
            loop: Any, host: Any, port: Any, *, family: int = 0, flags: int = 0, **options: Any
        ) -> Any:
            intercept = None if flags & socket.AI_PASSIVE else self._find(host, port)
            if intercept is not None:
                host, port = intercept.host_for(family), intercept.address[1]
            infos = await original(loop, host, port, family=family, flags=flags, **options)
            if intercept is None:
                self._note(host, infos)
            return infos

        return getaddrinfo

    def _connecting(self, original: Any) -> Any:
        async def create_connection(
            loop: Any, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
        ) -> Any:
            if host is not None:
                intercept = self._find(host, port)
                if intercept is None:
                    self._check(host, port)
                else:
                    if options.get("ssl") and options.get("server_hostname") is None:
                        options["server_hostname"] = host
                    host = intercept.host_for(options.get("family", 0))
                    port = intercept.address[1]
            return await original(loop, protocol_factory, host, port, **options)

        return create_connection

    def _dialling(self, original: Any) -> Any:
        async def sock_connect(loop: Any, sock: Any, address: Any) -> Any:
            return await original(loop, sock, self._redirect(sock.family, address))

        return sock_connect

    def _patch(self, owner: Any, name: str, replacement: Any) -> None:
        inherited = name not in vars(owner)
        original = getattr(owner, name)

        def undo() -> None:
            # A later patch of other code stays: without interceptions ours only calls the original.
            if vars(owner).get(name) is replacement:
                if inherited:
                    delattr(owner, name)
                else:
                    setattr(owner, name, original)

        self._undo.append(undo)
        setattr(owner, name, replacement)


patches: Patches = Patches()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=patches.after_fork)


def _python_socket_class() -> Any:
    """The Python class directly above the C socket, even if `socket.socket` has been replaced."""
    for candidate in socket.socket.__mro__:
        if _socket.socket in candidate.__bases__:
            return candidate
    return socket.socket


def _loop_classes() -> Iterator[tuple[type, list[type]]]:
    """The classes of event loops, each with those that it is derived from; base classes first."""
    with suppress(ImportError):  # An app could import it while the interception is active.
        import uvloop  # noqa: F401
    if sys.platform == "win32":  # Here, as well.
        import asyncio  # noqa: F401
    events = sys.modules.get("asyncio.events")
    if events is None:
        return
    classes: list[type] = [events.AbstractEventLoop]
    for loop in classes:
        derived: list[type] = loop.__subclasses__()
        classes += [each for each in derived if each not in classes]
        bases = [base for base in loop.__bases__ if issubclass(base, classes[0])]
        if bases:
            yield loop, bases


_LOOPBACK = ("127.0.0.1", "::1")


class Intercept:
    """While entered, connections to `targets` go to `address`. Reentrant; of several, the innermost wins.

    A target is `"host:port"` or `"[ipv6]:port"`; `localhost` includes 127.0.0.1 and ::1. The host of
    `address` is numeric. Raises InterceptError.
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
        patches.add(self)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        patches.remove(self)

    def covers(self, host: object, port: object) -> bool:
        name = normal(host)
        number = port_number(port)
        return name is not None and number is not None and (name, number) in self._keys

    def leads_to(self, host: object, port: object) -> bool:
        return port_number(port) == self.address[1] and normal(host) == normal(self.address[0])

    def names(self, host: object) -> bool:
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
