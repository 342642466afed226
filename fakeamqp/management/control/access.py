"""Who may use the control interface and the inspector: the token, or the login of an administrator.

A client sends either in the header `Authorization`, which no browser adds to a request of another site. There
are no cookies, and no answer asks a browser to remember a login. From where it may be asked is the same for
the whole port: see `fakeamqp.management.origins`.
"""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING

from fakeamqp.management.errors import Refused
from fakeamqp.model.access import check_address
from fakeamqp.model.errors import AuthenticationFailed, ModelError

if TYPE_CHECKING:
    from starlette.requests import Request

    from fakeamqp.management.control.control import Control

_ADMINISTRATOR = "administrator"


def check_login(request: Request, control: Control) -> None:
    """Check the token or the login.

    Raises:
        Refused: 401: it is missing or wrong; 403: the account is no administrator.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(secret.encode(), control.token.encode()):
        return
    if scheme.lower() == "basic" and "login" not in control.endpoint._impossible:
        try:
            name, _, password = base64.b64decode(secret, validate=True).decode().partition(":")
            with control.engine.look():
                user = control.state.access.authenticate(name, password)
        except (ValueError, ModelError):  # It is no Base64, or there is no such account.
            raise _unauthorized("the user name or the password is wrong") from None
        host = "" if request.client is None else request.client.host
        try:
            check_address(user, host, control.state.personality.loopback_users)
        except AuthenticationFailed as problem:
            raise _forbidden(f"{problem}; the address with the token works from everywhere") from None
        if _ADMINISTRATOR not in user.tags:
            raise _forbidden(f"user {user.name!r} has not the tag {_ADMINISTRATOR!r}, which this needs")
        return
    raise _unauthorized(
        "log in: send the token in the header `Authorization: Bearer TOKEN`, or open the address of the page "
        "with it; the printed addresses end in #token= and the token"
    )


def _unauthorized(reason: str) -> Refused:
    return Refused(401, "unauthorized", reason)


def _forbidden(reason: str) -> Refused:
    return Refused(403, "forbidden", reason)
