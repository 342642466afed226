"""Which web pages may send requests: those of this port itself, opened by a name that no other site can have.

A browser runs pages of any site, and lets them send requests to this machine, with the login that it
remembers. So the whole port refuses, whatever its path and its login:

- a name in `Host` that another site could have (DNS rebinding: its name points to this machine, and the page
  and this port have one origin then). An IP address, localhost, the names of this machine and of the broker's
  host, and those that the broker was given are none. From another machine, any name without a dot will do;
- a request of which the browser says that a page of another site makes it (`Origin`, `Sec-Fetch-Site`).

Tools send neither `Origin` nor `Sec-Fetch-Site`. The type of the content tells nothing: RabbitMQ takes JSON
of any type, except for definitions (measured on 4.3.6), and curl sends it with the type of a form.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from fakeamqp.management.errors import Refused
from fakeamqp.management.resource import refused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches a numeric address."""
    return ip_address(address.partition("%")[0]).is_loopback


class OwnPages:
    """Middleware that refuses requests of pages of other sites.

    Args:
        app: what answers all others.
        hosts: names by which the port may be asked, besides IP addresses and the names of this machine.
        public: paths that a page of another site may lead to; they say nothing about the broker.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], public: Collection[str]) -> None:
        self._app = app
        self._hosts = {_without_port(each) for each in (*hosts, "localhost", socket.gethostname())}
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or let the app answer it."""
        headers = Headers(scope=scope)
        try:
            self._check_host(headers.get("host"), scope.get("server"))
            if scope["path"] not in self._public:
                _check_origin(headers)
        except Refused as refusal:
            await refused(refusal)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check_host(self, host: str | None, server: tuple[str, int] | None) -> None:
        if host is None:
            return  # Only HTTP/1.0 permits this, and every browser sends a name.
        name = _without_port(host)
        if (
            name in self._hosts
            or _is_address(name)
            or name.endswith(".localhost")
            # Machines of a private network, such as containers, have such names, and no site has.
            or (name and "." not in name and server is not None and not is_loopback(server[0]))
        ):
            return
        raise Refused(
            421,
            "misdirected_request",
            f"this port does not answer to the name {name!r}: use localhost, or an IP address such as "
            f"127.0.0.1, or give the name to the broker: Broker(management_hosts=[{name!r}]), "
            f"fakeamqp serve --management-host {name}",
        )


def _check_origin(headers: Headers) -> None:
    origin = headers.get("origin")
    foreign = origin is not None and _netloc(origin) != headers.get("host", "").lower()
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused(403, "forbidden", "the request comes from a page of another site")


def _netloc(origin: str) -> str | None:
    """Host and port of an `Origin` header; None if it is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_port(host: str) -> str:
    """The name or the address in a `Host` header, without port and brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    # An IPv6 address without brackets comes from the broker's arguments only.
    return (host if host.count(":") > 1 else host.partition(":")[0]).rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
