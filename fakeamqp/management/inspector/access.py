"""Who may use the inspector.

- The page itself (HTML, style, script) is for anyone who reaches the port: it contains nothing of the broker,
  and a link on another site, such as a web terminal, may lead to it.
- Everything else needs the token of the printed address, or the login of an administrator. The page sends
  either in the header `Authorization`, which no browser adds to a request of another site. There are no
  cookies, and no answer asks the browser to remember a login.

From where it may be asked is the same for the whole port: see `fakeamqp.management.origins`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import TYPE_CHECKING

from fakeamqp.model.access import check_address
from fakeamqp.model.errors import AuthenticationFailed, ModelError

if TYPE_CHECKING:
    from starlette.requests import Request

    from fakeamqp.management.inspector.inspector import Inspector

_ADMINISTRATOR = "administrator"


class Denied(Exception):
    """A request that is refused, with the status and the text of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


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
