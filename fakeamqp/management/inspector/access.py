"""Who may use the inspector, and from where.

- The page itself (HTML, style, script) is for anyone who reaches the port: it contains nothing of the broker,
  and a link on another site, such as a web terminal, may lead to it.
- Everything else needs the token of the printed address, or the login of an administrator. The page sends
  either in the header `Authorization`, which no browser adds to a request of another site. There are no
  cookies, and no answer asks the browser to remember a login.
- A browser says which site makes a request (`Origin`, `Sec-Fetch-Site`): another one is refused.
- The name in `Host` has to be an IP address, localhost or the host that the broker was given. So a site whose
  name points to this machine (DNS rebinding) is refused, although it and the inspector have one origin.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fakeamqp.model.access import check_address
from fakeamqp.model.errors import AuthenticationFailed, ModelError

if TYPE_CHECKING:
    from starlette.requests import Request

    from fakeamqp.management.inspector.inspector import Inspector

__all__ = ["Denied", "check_host", "check_login", "check_origin"]

_ADMINISTRATOR = "administrator"


class Denied(Exception):
    """A request that is refused, with the status and the text of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def check_host(request: Request, host: str) -> None:
    """Check by which name the inspector is asked.

    Args:
        request: the request.
        host: the host that the broker was given.

    Raises:
        Denied: it is a name that anyone could point here.
    """
    name = _name(request.headers.get("host", ""))
    if not (_is_address(name) or name in ("localhost", host.lower()) or name.endswith(".localhost")):
        raise Denied(
            421,
            f"the inspector does not answer to the name {name!r}: open it by an IP address such as "
            "127.0.0.1, or by localhost",
        )


def check_origin(request: Request) -> None:
    """Check that no page of another site asks.

    Raises:
        Denied: one does.
    """
    asked = request.headers.get("host", "")
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "none")
    foreign = origin is not None and _netloc(origin) != asked.lower()
    if foreign or site not in ("none", "same-origin"):
        raise Denied(403, "the request comes from a page of another site")


def check_login(request: Request, inspector: Inspector) -> None:
    """Check the token or the login.

    Raises:
        Denied: it is missing or wrong, or the account is no administrator.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(secret.encode(), inspector.token.encode()):
        return
    if scheme.lower() == "basic":
        try:
            name, _, password = base64.b64decode(secret, validate=True).decode().partition(":")
            with inspector.engine.look():
                user = inspector.state.access.authenticate(name, password)
        except (binascii.Error, UnicodeDecodeError, ModelError):
            raise Denied(401, "the user name or the password is wrong") from None
        host = "" if request.client is None else request.client.host
        try:
            check_address(user, host, inspector.state.personality.loopback_users)
        except AuthenticationFailed as problem:
            raise Denied(403, f"{problem}; the address with the token works from everywhere") from None
        if _ADMINISTRATOR not in user.tags:
            raise Denied(
                403, f"user {user.name!r} has not the tag {_ADMINISTRATOR!r}, which the inspector needs"
            )
        return
    raise Denied(
        401, "log in, or open the address that the broker has printed: it ends in #token= and the token"
    )


def _netloc(origin: str) -> str | None:
    """Host and port of an `Origin` header; None if it is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _name(host: str) -> str:
    """The name in a `Host` header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
