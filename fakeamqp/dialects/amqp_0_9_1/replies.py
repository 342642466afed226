"""From what went wrong to what the peer is told: reply code, text, scope.

Model and wire errors name a condition; here it becomes a code. The ids of the failing method are filled
in by the endpoint, at the one place where exceptions turn into close methods.
"""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import Crash, ModelError
from fakeamqp.wire.amqp_0_9_1 import constants as c
from fakeamqp.wire.errors import WireError

__all__ = ["HARD_CODES", "ProtocolError", "Reply", "reply_for"]

CODES: dict[str, int] = {
    "content-too-large": c.CONTENT_TOO_LARGE,
    "no-route": c.NO_ROUTE,
    "no-consumers": c.NO_CONSUMERS,
    "connection-forced": c.CONNECTION_FORCED,
    "invalid-path": c.INVALID_PATH,
    "access-refused": c.ACCESS_REFUSED,
    "not-found": c.NOT_FOUND,
    "resource-locked": c.RESOURCE_LOCKED,
    "precondition-failed": c.PRECONDITION_FAILED,
    "frame-error": c.FRAME_ERROR,
    "syntax-error": c.SYNTAX_ERROR,
    "command-invalid": c.COMMAND_INVALID,
    "channel-error": c.CHANNEL_ERROR,
    "unexpected-frame": c.UNEXPECTED_FRAME,
    "resource-error": c.RESOURCE_ERROR,
    "not-allowed": c.NOT_ALLOWED,
    "not-implemented": c.NOT_IMPLEMENTED,
    "internal-error": c.INTERNAL_ERROR,
}

HARD_CODES = frozenset(code for code in CODES.values() if code >= 500) | {
    c.CONNECTION_FORCED,
    c.INVALID_PATH,
}
"""Codes that end the connection (errors/hard-error-class); the others end the channel."""


class ProtocolError(FakeAMQPError):
    """The peer broke the rules of the protocol itself. `condition` names the reply code.

    `silent` ends the transport without a word, which the documents demand for broken framing.
    """

    def __init__(self, condition: str, text: str, *, silent: bool = False) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text
        self.silent = silent


class Reply:
    """What a close method says. `text` starts with the name of the code, as RabbitMQ writes it."""

    __slots__ = ("code", "ends_connection", "names_no_method", "silent", "text")

    def __init__(self, code: int, text: str, ends_connection: bool, silent: bool = False) -> None:
        self.code = code
        self.text = text
        self.ends_connection = ends_connection
        self.silent = silent
        self.names_no_method = False


def reply_for(error: ProtocolError | ModelError | WireError) -> Reply:
    """The reply that tells a peer of this error."""
    code = CODES[error.condition]
    ends_connection = code in HARD_CODES
    if isinstance(error, ModelError) and error.ends_connection is not None:
        ends_connection = error.ends_connection
    silent = isinstance(error, ProtocolError) and error.silent
    name = c.REPLY_NAMES[code]
    crash = isinstance(error, Crash)
    text = name if crash or not str(error) else f"{name} - {error}"
    reply = Reply(code, short_text(text), ends_connection, silent)
    reply.names_no_method = crash
    return reply


def stripped(name: str) -> str:
    """A name as it is declared, bound and deleted: without line ends (RabbitMQ: measured)."""
    return name.replace("\r", "").replace("\n", "")


def short_text(text: str) -> str:
    """`text`, cut so that it fits a short string."""
    octets = text.encode("utf-8", "surrogateescape")
    if len(octets) <= 255:
        return text
    return octets[:252].decode("utf-8", "ignore") + "..."
