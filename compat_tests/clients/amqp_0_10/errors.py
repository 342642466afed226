"""What may go wrong for a client."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode


class ClientError(Exception):
    """Something went wrong."""


class TimedOut(ClientError):
    """What was waited for did not come."""


class ConnectionLost(ClientError):
    """The transport has ended without a word. Sessions that the broker keeps can be attached elsewhere."""


class LoginFailed(ConnectionLost):
    """The broker did not let us in. It need not say why, so that it may also be the network."""


class ConnectionClosed(ClientError):
    """The broker sent connection.close."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class Redirected(ClientError):
    """The broker sent connection.redirect: it wants us at `host`."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host


class SessionFailed(ClientError):
    """The broker sent execution.exception, which ends the session."""

    def __init__(self, exception: x.ExecutionException) -> None:
        super().__init__(f"{exception.error_code}: {exception.description}")
        self.exception = exception
        self.code = exception.error_code


class SessionDetached(ClientError):
    """The broker did not attach the session, or attaches it no longer."""

    def __init__(self, code: int | None) -> None:
        super().__init__(DetachCode(code or 0).name.lower().replace("_", " "))
        self.code = DetachCode(code or 0)


class SessionLost(ClientError):
    """The session was attached again, but the broker knows nothing of it any more."""
